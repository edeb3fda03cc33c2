//! Bounds of what is held back or put aside because it may end its process.
//!
//! Owns: numbers only. Must never: hold logic. Next: `mod.rs`, where they are checked against each other.

/// Least wait of a job after a lost worker, whatever its backoff; a command waits for its grace, too.
pub const WORKER_LOST_WAIT_MS: u64 = 1_000;
/// Due jobs whose worker was lost that one shard keeps to run them apart; the rest runs among the others.
pub const APART_JOBS_MAX: usize = 256;
/// Bytes of them.
pub const APART_BYTES_MAX: usize = 8 << 20;
/// After this long a job that runs apart is taken for harmless, and the next one may start.
pub const APART_MS: u64 = 5_000;
/// Time in which every shard can say which such jobs it has, before the first of them is chosen.
pub const APART_SETTLE_MS: u64 = 2_000;
/// A job that lost more than one worker starts beside no other that lost one and has run for less than this, and
/// none of them beside it; halved for each that ran so long.
pub const APART_ALONE_MS: u64 = 60_000;
/// Never shorter than this.
pub const APART_ALONE_MS_MIN: u64 = 500;
/// So many of them that were taken for harmless let one more start at a time.
pub const APART_PROOFS_PER_PLACE: u32 = 2;
/// Deaths in a trial of its own that put a schedule into quarantine.
pub const TRIAL_DEATHS_MAX: u32 = 2;
/// First pause of a shard whose owners died young, doubled for each further one.
pub const YOUNG_DEATH_PAUSE_MS: u64 = 250;
/// Longest such pause.
pub const YOUNG_DEATH_PAUSE_MS_MAX: u64 = 8_000;
