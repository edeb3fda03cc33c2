//! Bounds of attempts, retries, priorities, and how long what has ended is kept.
//!
//! Owns: numbers only. Must never: hold logic. Next: `mod.rs`, where they are checked against each other.

/// Attempts a job may be given at most.
pub const ATTEMPT_COUNT_MAX: u32 = 1_000;
/// Attempts of a job whose policy names no count.
pub const ATTEMPT_COUNT_DEFAULT: u32 = 5;
/// Attempt records kept inside the job row (the newest).
pub const ATTEMPT_RECORDS_MAX: usize = 16;
/// Attempt records of one row of their own, where older ones go when the job row is full.
pub const ATTEMPT_PAGE_RECORDS: u32 = 8;
/// First retry delay by default.
pub const BACKOFF_FIRST_MS: u64 = 1_000;
/// Longest retry delay by default.
pub const BACKOFF_CAP_MS: u64 = 3_600_000;
/// Longest retry delay that a policy may name.
pub const BACKOFF_CAP_MS_MAX: u64 = 7 * 86_400_000;
/// Time-out of one attempt by default.
pub const ATTEMPT_TIMEOUT_MS: u64 = 300_000;
/// Longest time-out of one attempt.
pub const ATTEMPT_TIMEOUT_MS_MAX: u64 = 7 * 86_400_000;
/// Priorities run from 0 (first) to this.
pub const PRIORITY_MAX: u8 = 9;
/// Priority when none is named.
pub const PRIORITY_DEFAULT: u8 = 5;
/// Days that finished jobs and their attempts are kept.
pub const JOB_RETENTION_DAYS: u64 = 7;
/// Days that dead letters are kept.
pub const DEAD_LETTER_RETENTION_DAYS: u64 = 30;
/// Days that fates are kept, as ranges, and the entries in the history of a schedule's edits but its newest.
pub const FATE_RETENTION_DAYS: u64 = 90;
/// Hours that an idempotency key is kept after its job's end when a server is told nothing else.
pub const KEY_RETENTION_HOURS: u64 = 24;
/// Shortest that a server may be told to keep idempotency keys after their jobs' end.
pub const KEY_RETENTION_MS_MIN: u64 = 60_000;
/// Longest: a key goes before its job's row.
pub const KEY_RETENTION_MS_MAX: u64 = JOB_RETENTION_DAYS * 86_400_000;
