//! What a worker is told once, when its node starts.
//!
//! Owns: the settings. Must never: change while the worker lives. Next: `mod.rs`.

use crate::ids::ShardMap;
use crate::limits;
use crate::name::Name;
use crate::time::Span;

/// Settings of a worker.
#[derive(Clone, Debug, Hash)]
pub struct WorkerConfig {
    /// Attempts that run at once.
    pub slots: u32,
    /// Whether it asks for work at all. One that does not says what others did (`CameLate`, `NeverBegun`).
    pub takes_work: bool,
    /// Only these queues; empty means all.
    pub queues: Vec<Name>,
    /// Whether it runs commands: what it does not run it is not to be granted.
    pub commands: bool,
    /// The cell's shards; the worker asks each.
    pub shards: ShardMap,
    /// Subtracted from each lease.
    pub lease_margin: Span,
    /// Between heartbeats.
    pub heartbeat: Span,
    /// Between rounds in which every shard is asked.
    pub sweep: Span,
    /// An offer that waits at a shard is asked after when it is this old.
    pub offer_wait: Span,
    /// Unanswered offers and begins are sent again after this long.
    pub offer_repeat: Span,
    /// Outcomes not yet recorded beyond which no work is asked for.
    pub outcome_count_max: usize,
}

impl WorkerConfig {
    /// Defaults for a cell with these shards.
    pub fn new(slots: u32, shards: ShardMap) -> WorkerConfig {
        WorkerConfig {
            slots: slots.clamp(1, limits::WORKER_SLOTS_MAX),
            takes_work: true,
            queues: Vec::new(),
            commands: true,
            shards,
            lease_margin: Span::from_millis(limits::LEASE_MARGIN_MS),
            heartbeat: Span::from_millis(limits::HEARTBEAT_MS),
            sweep: Span::from_millis(limits::WORKER_SWEEP_MS),
            offer_wait: Span::from_millis(limits::OFFER_WAIT_MS),
            offer_repeat: Span::from_millis(limits::OFFER_REPEAT_MS),
            outcome_count_max: limits::OUTCOMES_UNRECORDED_MAX,
        }
    }
}
