//! Tests of the SchedulerShard, by concept. `world.rs` is the store and the clock they run on.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod changes;
mod due;
mod missed;
pub(crate) mod world;
