//! Several nodes of one cell: who is there, who owns which shard, and the way to it.
//!
//! Owns: carrying out what `fencepost_core::coordinator` decides, over the mesh and the store. Must never:
//! decide a move, or take a message for a proof. Next: `member.rs` (a node at work), `board.rs` (the store
//! node's side), `decider.rs` (the coordinator's calls to the store), `owners.rs` and `route.rs` (the
//! way to an owner), `work.rs` (workers and owners on different nodes), `onlooker.rs` (a node that owns nothing).

pub mod board;
mod counted;
pub mod decider;
pub mod far_workers;
pub mod member;
pub mod message;
pub mod near_workers;
pub mod onlooker;
pub mod order;
pub mod owners;
mod refusal;
pub mod report;
pub mod request;
pub mod route;
pub mod services;
pub mod work;
