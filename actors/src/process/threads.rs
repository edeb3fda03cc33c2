//! The threads of a server: one lane per processor and one for the worker, made here and nowhere else.
//!
//! Owns: arbiters and the main system. Must never: be reachable from the simulator. Next:
//! `../node/lanes.rs`.

use crate::node::lanes::{Lane, OnLane};
use actix::{Arbiter, System};
use std::sync::Arc;

/// The system that `main` runs everything else on.
#[allow(clippy::disallowed_methods, reason = "production's main makes the system")]
pub fn main_system() -> actix::SystemRunner {
    System::new()
}

/// `count` lanes, each a thread with a local executor; must be called inside the main system.
#[allow(clippy::disallowed_methods, reason = "production's main makes the lanes")]
pub fn make_lanes(count: usize) -> Vec<Lane> {
    let lane = |_| -> Lane {
        let arbiter = Arbiter::new();
        Arc::new(move |work: OnLane| {
            arbiter.spawn_fn(work);
        })
    };
    (0..count.max(1)).map(lane).collect()
}

/// The lanes of a node: `shards` for its shards and one for its worker, whose runs are not to hold up a shard,
/// nor a shard's many steps at one instant the starts of what it granted.
pub fn node_lanes(shards: usize) -> Vec<Lane> {
    make_lanes(shards.max(1) + 1)
}

/// Processors that this process may use.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
