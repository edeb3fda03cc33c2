//! The HTTP API: JSON over axum on our own hyper accept loop.
//!
//! Owns: everything between a socket and the `Gateway`. Must never: decide what a request means (the
//! machines do), or listen beyond loopback. Start at `server.rs` (sockets), `guard.rs` (who may), `routes/`
//! (what there is), `dto/` (shapes), `json.rs` and `fields.rs` (reading).

pub mod dto;
pub mod fields;
pub mod json;
mod span_text;
pub mod text;
