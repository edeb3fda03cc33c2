//! Tests of the SchedulerShard, by concept. `world.rs` is the store and the clock they run on.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod backfill;
mod bounds;
mod broken;
mod changes;
mod clock;
pub(crate) mod dropped;
mod due;
mod leaving;
mod lives;
mod lost;
pub(crate) mod make;
mod missed;
mod model;
mod once;
mod opening;
mod random;
pub(crate) mod requests;
mod restoring;
mod room;
mod specs;
mod suspects;
mod sweeping;
mod trials;
pub(crate) mod world;
mod zone_data;
