//! States that a run can see, by the words of `sometimes`.
//!
//! Owns: their list. Each is counted as `seen:` and the word with dashes. Must never: name a state that nothing
//! counts (`tests/scenarios.rs` finds it). Next: `../run.rs`, which counts most of them.

/// All of them.
pub const STATES: &[&str] = &[
    "backfilled",
    "beyond_cap",
    "beyond_grace",
    "cancelled",
    "cancelled_while_running",
    "clock_change_of_a_zone",
    "coalesced",
    "dead",
    "effect_already_there",
    "excluded",
    "fired_after_gap",
    "fired_in_repeated_hour",
    "fired_late",
    "given_back",
    "job_cancelled",
    "job_reassigned",
    "key_replayed",
    "later_attempt",
    "paused",
    "reported_late",
    "shard_moved",
    "skipped",
    "stale_token_rejected",
    "stopped_in_time",
    "uncertain",
    "unsynced_lost",
    "withdrawn_by_delete",
    "withdrawn_by_edit",
    "worked_elsewhere",
    "worker_lost",
    "worker_lost_twice",
];

/// As it is counted.
pub fn counted(state: &str) -> String {
    format!("seen:{}", state.replace('_', "-"))
}
