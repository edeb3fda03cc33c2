//! Bounds of schedules, their backlogs, backfills and audits.
//!
//! Owns: numbers only. Must never: hold logic. Next: `mod.rs`, where they are checked against each other.

/// Schedules of one shard; all of them are held in memory.
pub const SCHEDULES_PER_SHARD_MAX: usize = 100_000;
/// Bytes of their definitions with all that belongs to them: payloads, names, expressions and what they are
/// compiled to, exclusions, earlier versions. Beyond it creations and edits are refused.
pub const SCHEDULES_PER_SHARD_BYTES_MAX: usize = 128 << 20;
/// Tolerance: at most this late is on time.
pub const TOLERANCE_MS: u64 = 60_000;
/// Shortest interval of a schedule.
pub const INTERVAL_MS_MIN: u64 = 1;
/// Longest jitter window.
pub const JITTER_MS_MAX: u64 = 86_400_000;
/// Occurrences that policy `all` keeps by default.
pub const CATCH_UP_CAP_DEFAULT: u32 = 100;
/// Occurrences that policy `all` may keep at most.
pub const CATCH_UP_CAP_MAX: u32 = 100_000;
/// Jobs that one backlog releases a second by default.
pub const CATCH_UP_RATE_DEFAULT: u32 = 50;
/// Jobs that one backlog may release a second at most.
pub const CATCH_UP_RATE_MAX: u32 = 10_000;
/// Backlogs of one schedule before the oldest is given up as skipped by the cap; the newest outage counts as one.
pub const BACKLOG_SPANS_MAX: usize = 8;
/// Backlog rows of one schedule: what edits dropped in the newest outage cuts it into so many more.
pub const BACKLOG_ROWS_MAX: usize = BACKLOG_SPANS_MAX + EDIT_DROPS_MAX;
/// Occurrences that one backlog step may release.
pub const BACKLOG_PAGE: usize = 256;
/// Occurrences that one backfill request may make.
pub const BACKFILL_COUNT_MAX: u32 = 10_000;
/// Fate spans that one backfill request reads.
pub const BACKFILL_FATES_MAX: usize = 16_384;
/// Separate stretches of one backfill request.
pub const BACKFILL_SPANS_MAX: usize = 64;
/// Pause between two rounds of the auditor over a shard's schedules.
pub const AUDIT_ROUND_MS: u64 = 300_000;
/// Pause between two pages of the auditor.
pub const AUDIT_PAGE_MS: u64 = 200;
/// Fate spans that the auditor reads at once.
pub const AUDIT_ROWS: usize = 256;
/// Past lives of deleted schedules that one shard walks over at a time.
pub const PAST_LIVES_MAX: usize = 10_000;
/// Occurrences that one fault of an audit names.
pub const AUDIT_INSTANTS_MAX: usize = 100;
/// Fires that the dry run of an edit shows before and after.
pub const EDIT_PREVIEW_COUNT: usize = 10;
/// Fires of one schedule that edits dropped and that have not come yet.
pub const EDIT_DROPS_MAX: usize = 16;
/// Occurrences walked over to count a stretch of several cron expressions; beyond, it is left uncounted.
pub const COUNT_STEPS_MAX: u64 = 10_000;
/// Runs of excluded dates that a search passes before it takes a schedule for finished.
pub const EXCLUDED_RUNS_MAX: usize = 20_000;
/// Pieces that one decision cuts a long stretch into, where exclusions lie in it.
pub const FATE_PIECES_MAX: usize = 4_096;
/// Longest tolerance and grace.
pub const LATENESS_MS_MAX: u64 = 366 * 86_400_000;
/// Request numbers of run-now and backfill that one schedule remembers in a cell before level 2.
pub const REQUESTS_KEPT_MAX: usize = 16;
/// Requests about schedules that the walk over them reads at once; `SWEEP_ROWS` while most of them go.
pub const REQUEST_SWEEP_ROWS: usize = 32;
/// Entries in the histories of edits that the walk over them reads at once.
pub const EDIT_SWEEP_ROWS: usize = 256;
/// Fires of one step, over all schedules of a shard.
pub const FIRES_PER_STEP_MAX: usize = 1_024;
/// Instants that a preview answers with.
pub const PREVIEW_COUNT_MAX: u32 = 1_000;
/// Between two steps of a backlog, at least this long.
pub const BACKLOG_PACE_MS: u64 = 100;
/// Day rules of expressions that are kept compiled.
pub const DAY_RULES_KEPT_MAX: usize = 1_024;
