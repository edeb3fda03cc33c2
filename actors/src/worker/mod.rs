//! The worker of a node: its machine in an actor, its runs in local futures.
//!
//! Read `actor.rs`; the machine is `fencepost_core::worker`, what a run does is in `targets/`.

mod actor;
mod ended;

pub use actor::{ToWorker, WorkerActor, WorkerParts};
