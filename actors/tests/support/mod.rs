//! What tests of real processes share: a server, a client of its API, a service that jobs call, and waiting.
//!
//! Owns: the one harness. Start at `server.rs`. Must never: judge. Next: `../process/`, `../cli/`.
#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::disallowed_methods, reason = "real processes and real time")]

pub mod api;
pub mod pace;
pub mod server;
pub mod sink;
