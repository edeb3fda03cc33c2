//! The one shell around durable machines: steps, merges, commits, releases, reloads.
//!
//! Read `log.rs` (durable before visible), `overlay.rs` (cold rows), `fetch.rs` (reads), `load.rs`
//! (opening a shard), then `shard_actor.rs` (the actor).

mod away;
mod careful;
mod edits;
mod fates;
pub mod fetch;
mod flight;
mod gather;
mod hosting;
mod inbox;
mod links;
pub mod load;
pub mod log;
pub mod messages;
mod needs;
mod open_shard;
pub mod overlay;
pub mod patient;
mod release;
mod requests;
pub mod shard_actor;
mod sweep;
mod window;
pub mod writes;
