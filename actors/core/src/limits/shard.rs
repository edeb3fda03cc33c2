//! Bounds of a shard's memory, steps, batches and mailbox.
//!
//! Owns: numbers only. Must never: hold logic. Next: `mod.rs`, where they are checked against each other.

/// Queues (of one tenant) with ready jobs that one shard keeps windows for, one for each of its lines.
pub const CLASS_COUNT_MAX: usize = 10_000;
/// Ready jobs of one shard held in memory, over all classes.
pub const READY_WINDOW_JOBS: usize = 2_048;
/// Bytes of ready jobs of one shard held in memory.
pub const READY_WINDOW_BYTES: usize = 2 << 20;
/// Waiting jobs of one shard held in memory: the soonest.
pub const WAIT_WINDOW_JOBS: usize = 1_024;
/// Bytes of waiting jobs of one shard held in memory.
pub const WAIT_WINDOW_BYTES: usize = 2 << 20;
/// Bytes of leased jobs of one shard: at this, nothing more is granted until outcomes come in.
pub const LEASED_BYTES_MAX: usize = 64 << 20;
/// Waiting jobs that one step moves to ready.
pub const PROMOTE_PER_STEP_MAX: usize = 1_024;
/// Ready commands that one step moves to their own lines.
pub const LINE_MOVES_PER_STEP_MAX: usize = 256;
/// Leases that one step reaps.
pub const REAP_PER_STEP_MAX: usize = 1_024;
/// Deletions in a range after which its low-water mark is stored anew.
pub const MARK_INTERVAL: u32 = 4_096;
/// Offers of one worker that a shard remembers, so that a repeated one gets the same grants.
pub const OFFERS_REMEMBERED_MAX: usize = 8;
/// Workers whose offers one shard remembers.
pub const WORKERS_REMEMBERED_MAX: usize = 1_024;
/// Ended attempts that a shard remembers besides the job rows, to answer a repeated outcome.
pub const TOKENS_REMEMBERED_MAX: usize = 8_192;
/// Pages of ready classes that one shard fetches at once.
pub const READY_LOADS_MAX: usize = 64;
/// Jobs in one page of the sweep that purges and audits, while there is much to purge.
pub const SWEEP_ROWS: usize = 256;
/// Jobs in one page of the sweep otherwise: what a store at rest costs.
pub const SWEEP_CALM_ROWS: usize = 128;
/// Row writes of one page of the sweep above which a job with pages of attempts is left for the next walk.
pub const SWEEP_WRITES_MAX: usize = 2_048;
/// Pause between pages of the sweep.
pub const SWEEP_PAUSE_MS: u64 = 5_000;
/// Pause between pages of the sweep while most of a page was to be purged.
pub const SWEEP_BUSY_PAUSE_MS: u64 = 100;
/// Pages after which the pause between pages of a walk over waits halves, again and again.
pub const WAIT_WALK_PAGES: u32 = 512;
/// Rows of one page of a range scan.
pub const SCAN_ROWS_MAX: usize = 1_024;
/// Bytes after which a page of a range scan ends early, soft: at least one row is read.
pub const SCAN_BYTES_MAX: usize = 2 << 20;
/// Row writes in one batch, soft: a step that passes it closes the batch.
pub const BATCH_WRITES_MAX: usize = 8_192;
/// Bytes of one batch, soft.
pub const BATCH_BYTES_MAX: usize = 4 << 20;
/// Messages in a shard's mailbox.
pub const MAILBOX_MAX: usize = 1_024;
/// A shard takes nothing new when a question to the store has waited this long.
pub const STORE_AWAY_MS: u64 = 400;
/// Callers are told that the end of their request is not known when its batch has waited this long.
pub const ANSWER_PATIENCE_MS: u64 = 1_200;
/// First pause before a batch of unknown end is sent again; it doubles.
pub const COMMIT_RESEND_FIRST_MS: u64 = 20;
/// Longest such pause.
pub const COMMIT_RESEND_CAP_MS: u64 = 1_000;
/// First pause before a store that is away is asked again; it doubles.
pub const STORE_ASK_FIRST_MS: u64 = 20;
/// Longest such pause.
pub const STORE_ASK_CAP_MS: u64 = 500;
/// First pause before a shard that was closed is opened again; it doubles.
pub const REOPEN_FIRST_MS: u64 = 20;
/// Longest such pause.
pub const REOPEN_CAP_MS: u64 = 2_000;
/// How old a stated time may be for a step to use it.
pub const STATED_FRESH_MS: u64 = 1;
/// Longest pause between questions while the store's clock stands still after a step back.
pub const CLOCK_HELD_PACE_MS: u64 = 1_000;
