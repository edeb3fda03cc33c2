//! One shard: both machines stepped together, in step order, into one batch (PROTOCOL F1).
//!
//! Owns: the crossing of a fire from the SchedulerShard to the LeaseManager. Must never: decide by
//! itself. Next: `scheduler_shard/`, `lease_manager/`.

use crate::ids::{Epoch, Generation, Holder, ShardId, ShardMap};
use crate::lease_manager::io::{LeaseEffect, LeaseInput, LeaseOpened};
use crate::scheduler_shard::io::{ScheduleEffect, ScheduleInput, ScheduleOpened};
use crate::time::Span;

/// A fact for one of the shard's machines.
#[derive(Clone, Debug)]
pub enum ShardInput {
    /// For the SchedulerShard.
    Schedule(ScheduleInput),
    /// For the LeaseManager.
    Lease(LeaseInput),
    /// Time has passed, for both.
    Tick,
}

/// An order of one of the shard's machines.
#[derive(Clone, Debug)]
pub enum ShardEffect {
    /// Of the SchedulerShard.
    Schedule(ScheduleEffect),
    /// Of the LeaseManager.
    Lease(LeaseEffect),
}

/// What a shard is told when it was opened.
#[derive(Clone, Debug, Default)]
pub struct ShardOpened {
    /// For the SchedulerShard.
    pub schedules: ScheduleOpened,
    /// For the LeaseManager.
    pub leases: LeaseOpened,
}

/// Facts that hold for as long as a shard is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShardFacts {
    /// Which shard.
    pub shard: ShardId,
    /// The cell's map.
    pub map: ShardMap,
    /// The cell's generation.
    pub generation: Generation,
    /// This owner's epoch.
    pub epoch: Epoch,
    /// This owner's nonce.
    pub holder: Holder,
    /// Length of an attempt's lease.
    pub lease: Span,
    /// Interval of heartbeats.
    pub heartbeat: Span,
}
