//! Bounds of leases, heartbeats, offers and outcomes.
//!
//! Owns: numbers only. Must never: hold logic. Next: `mod.rs`, where they are checked against each other.

/// Length of an attempt's lease.
pub const LEASE_MS: u64 = 30_000;
/// Shortest lease that can be set.
pub const LEASE_MS_MIN: u64 = 1_000;
/// Longest lease that can be set.
pub const LEASE_MS_MAX: u64 = 3_600_000;
/// Interval of a worker's heartbeats.
pub const HEARTBEAT_MS: u64 = 8_000;
/// Margin that a worker subtracts from its own lease.
pub const LEASE_MARGIN_MS: u64 = 1_000;
/// Grants that one offer may ask for.
pub const OFFER_SLOTS_MAX: u32 = 1_024;
/// Attempts that one worker runs at once by default.
pub const WORKER_SLOTS_DEFAULT: u32 = 64;
/// Attempts that one worker may run at once.
pub const WORKER_SLOTS_MAX: u32 = 65_536;
/// Interval at which a worker asks every shard for work, hinted or not.
pub const WORKER_SWEEP_MS: u64 = 1_000;
/// An unanswered offer or begin is sent again under the same number after this long.
pub const OFFER_REPEAT_MS: u64 = 2_000;
/// Repeats of an unanswered offer before the worker takes a new number.
pub const OFFER_REPEATS_MAX: u32 = 4;
/// How long a worker lets an offer wait at a shard that has nothing, before it asks anew.
pub const OFFER_WAIT_MS: u64 = 5_000;
/// How long a shard keeps such an offer at most: its worker may be gone.
pub const OFFER_KEPT_MS: u64 = 2 * OFFER_WAIT_MS;
/// Heartbeats per shard that may still be answered.
pub const BEATS_OPEN_MAX: usize = 16;
/// Attempts in one heartbeat message.
pub const HEARTBEAT_ITEMS_MAX: usize = 4_096;
/// Outcomes in one message.
pub const OUTCOME_ITEMS_MAX: usize = 1_024;
/// Bytes of error texts and outputs in one message of outcomes, soft.
pub const OUTCOME_BYTES_MAX: usize = 4 << 20;
/// Outcomes not yet recorded beyond which a worker takes no new work.
pub const OUTCOMES_UNRECORDED_MAX: usize = 8_192;
/// First delay before outcomes are sent again; doubles with each.
pub const OUTCOME_RETRY_FIRST_MS: u64 = 1_000;
/// Longest delay before outcomes are sent again.
pub const OUTCOME_RETRY_CAP_MS: u64 = 15_000;
/// Hand-backs per shard that are sent again until they are answered; a shard that could come to more is
/// asked for no work.
pub const HAND_BACKS_OPEN_MAX: usize = 4_096;
/// Leases of one shard at once.
pub const LEASES_PER_SHARD_MAX: usize = 65_536;
/// Time that a drain waits for attempts in flight.
pub const DRAIN_MS: u64 = 30_000;
/// Owner epochs of a shard of which a worker remembers what it was granted.
pub const GRANT_EPOCHS_KEPT: usize = 4;
