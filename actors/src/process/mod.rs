//! The process around a node: exit codes, panics, signals, threads.
//!
//! Owns: what only production's `main` may do. Must never: be used by the simulator. Next:
//! `serve.rs`, `exit.rs`.

#[cfg(not(madsim))]
mod certificate;
pub mod exit;
pub mod fine_timer;
#[cfg(not(madsim))]
pub mod init;
#[cfg(not(madsim))]
mod notify;
#[cfg(not(madsim))]
pub mod panics;
#[cfg(not(madsim))]
pub mod roles;
#[cfg(not(madsim))]
mod samples;
pub mod say;
#[cfg(not(madsim))]
pub mod serve;
#[cfg(not(madsim))]
pub(crate) mod signals;
#[cfg(all(feature = "test-switches", not(madsim)))]
pub mod switches;
#[cfg(not(madsim))]
pub mod threads;
