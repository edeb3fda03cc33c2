//! Every bound of the product, in one place, checked against each other at compile time.
//!
//! Owns: numbers only. Must never: hold logic. `docs/limits.md` is generated from this file, so each
//! constant carries a doc comment that a user can read. Next: `job.rs`, `schedule.rs`.

/// Slots that routing keys hash to; fixed for ever.
pub const SLOT_COUNT: u32 = 16_384;
/// Shards of a new cell; fixed when the cell is made.
pub const SHARD_COUNT_DEFAULT: u16 = 16;
/// Most shards a cell may have.
pub const SHARD_COUNT_MAX: u16 = 256;

/// Bytes of a name (schedule, queue, tenant, handler, tag).
pub const NAME_BYTES_MAX: usize = 128;
/// Bytes of one cron expression.
pub const EXPRESSION_BYTES_MAX: usize = 256;
/// Cron expressions of one schedule.
pub const EXPRESSION_COUNT_MAX: usize = 16;
/// Exclusion entries of one schedule's calendars.
pub const EXCLUSION_COUNT_MAX: usize = 1_000;
/// Bytes of a crontab that are read.
pub const CRONTAB_BYTES_MAX: usize = 1 << 20;
/// Lines of a crontab that are read.
pub const CRONTAB_LINES_MAX: usize = 10_000;
/// Due jobs whose worker was lost that one shard keeps to run them apart; the rest runs among the others.
pub const APART_JOBS_MAX: usize = 256;
/// Bytes of them.
pub const APART_BYTES_MAX: usize = 8 << 20;
/// After this long a job that runs apart is taken for harmless, and the next one may start.
pub const APART_MS: u64 = 5_000;
/// So many of them that were taken for harmless let one more start at a time.
pub const APART_PROOFS_PER_PLACE: u32 = 2;
/// Deaths in a trial of its own that put a schedule into quarantine.
pub const TRIAL_DEATHS_MAX: u32 = 2;
/// First pause of a shard whose owners died young, doubled for each further one.
pub const YOUNG_DEATH_PAUSE_MS: u64 = 250;
/// Longest such pause.
pub const YOUNG_DEATH_PAUSE_MS_MAX: u64 = 8_000;
/// Schedules of one shard; all of them are held in memory.
pub const SCHEDULES_PER_SHARD_MAX: usize = 100_000;
/// Bytes of their definitions, payloads and earlier versions included; beyond it creations and edits are refused.
pub const SCHEDULES_PER_SHARD_BYTES_MAX: usize = 64 << 20;

/// Bytes of a job's payload.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// Jobs in one creation batch.
pub const BATCH_JOBS_MAX: usize = 1_000;
/// Bytes of one HTTP request body (a batch with its JSON overhead).
pub const BODY_BYTES_MAX: usize = 16 << 20;
/// Bytes of all headers of one HTTP request.
pub const HEADER_BYTES_MAX: usize = 32 << 10;
/// Headers of one HTTP request.
pub const HEADER_COUNT_MAX: usize = 100;
/// HTTP connections that the API holds at once; further ones wait to be accepted.
pub const HTTP_CONNECTION_COUNT_MAX: usize = 1_024;
/// Time that an HTTP connection may stay silent before a request, and that the request's head may take.
pub const HTTP_HEAD_MS: u64 = 20_000;
/// Time for the body of an HTTP request.
pub const HTTP_BODY_MS: u64 = 30_000;
/// Time in which a client must take at least a byte of an answer.
pub const HTTP_STALL_MS: u64 = 30_000;
/// Longest wait of a long poll.
pub const HTTP_WAIT_MS_MAX: u64 = 60_000;
/// Bytes of all HTTP request bodies in work at once; further requests wait for their turn.
pub const HTTP_BODIES_BYTES_MAX: usize = 128 << 20;
/// Rows that a list request holds at once (each may be as large as a payload).
pub const LIST_PAGE_ROWS: usize = 64;
/// Rows that one list request reads before it answers with what it found.
pub const LIST_SCAN_ROWS_MAX: usize = 10_000;
/// Nesting of JSON in a request.
pub const JSON_DEPTH_MAX: usize = 64;
/// Items of one page of a list.
pub const PAGE_ITEMS_MAX: usize = 1_000;
/// Items of a page when the caller names no limit.
pub const PAGE_ITEMS_DEFAULT: usize = 100;
/// Bytes of an idempotency key.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 256;
/// Tags of one job.
pub const TAG_COUNT_MAX: usize = 16;
/// Bytes of a target's URL.
pub const URL_BYTES_MAX: usize = 2_048;
/// Headers of an http target.
pub const TARGET_HEADER_COUNT_MAX: usize = 32;
/// Bytes of one header value of an http target.
pub const TARGET_HEADER_BYTES_MAX: usize = 4_096;
/// Arguments of a command target.
pub const ARGV_COUNT_MAX: usize = 256;
/// Bytes of a command target's arguments and environment together.
pub const ARGV_BYTES_MAX: usize = 64 << 10;
/// Bytes kept of an attempt's output (its tail).
pub const OUTPUT_TAIL_BYTES_MAX: usize = 16 << 10;
/// Bytes kept of an attempt's error text.
pub const ERROR_BYTES_MAX: usize = 2_048;

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

/// Length of an attempt's lease.
pub const LEASE_MS: u64 = 30_000;
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
/// Times that a hand-back is sent while it is not acknowledged.
pub const HAND_BACK_SENDS_MAX: u32 = 4;
/// Hand-backs per shard that are sent again while they are not acknowledged.
pub const HAND_BACKS_OPEN_MAX: usize = 4_096;
/// Leases of one shard at once.
pub const LEASES_PER_SHARD_MAX: usize = 65_536;

/// Classes (queue, tenant) with ready jobs that one shard keeps a window for.
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
/// Longest wait after a lost worker; the lease has been waited for already.
pub const WORKER_LOST_WAIT_MS_MAX: u64 = 2_000;
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
/// Rows of one page of a range scan.
pub const SCAN_ROWS_MAX: usize = 1_024;
/// Bytes after which a page of a range scan ends early, soft: at least one row is read.
pub const SCAN_BYTES_MAX: usize = 2 << 20;
/// Row writes in one batch, soft: a step that passes it closes the batch.
pub const BATCH_WRITES_MAX: usize = 8_192;
/// Bytes of one batch, soft.
pub const BATCH_BYTES_MAX: usize = 4 << 20;
/// Bytes of one frame between nodes: a batch and the step that passed its bound.
pub const FRAME_BYTES_MAX: usize = 32 << 20;
/// Silence after which a connection between nodes is closed and made anew.
pub const LINK_SILENT_MS: u64 = 5_000;
/// Pause between two signs of life on a silent connection.
pub const LINK_PING_MS: u64 = 1_000;
/// Time for one frame, from its head to its last byte.
pub const FRAME_MS_MAX: u64 = 60_000;
/// Time for a connection between nodes to be made, its greeting included.
pub const GREETING_MS: u64 = 5_000;
/// First pause before a lost connection is made anew; it doubles, and half of it is drawn.
pub const REDIAL_MS: u64 = 50;
/// Longest such pause.
pub const REDIAL_MS_MAX: u64 = 2_000;
/// Frames that wait to be sent to one node.
pub const SEND_QUEUE_FRAMES_MAX: usize = 4_096;
/// Bytes of them.
pub const SEND_QUEUE_BYTES_MAX: usize = 64 << 20;
/// Calls of one connection that are in work at once, answers not yet written included; further ones are not read.
pub const CALLS_IN_WORK_MAX: usize = 128;
/// Connections from other nodes at once.
pub const LINK_COUNT_MAX: usize = 1_024;
/// Bytes of a frame before its sender has proved where it belongs.
pub const GREETING_BYTES_MAX: usize = 4 << 10;
/// Time for a store call to another node, its wait for a connection included.
pub const STORE_CALL_MS: u64 = 1_500;
/// Keys of one read from a store on another node.
pub const REMOTE_KEYS_MAX: usize = 1_024;
/// Row writes of one batch for a store on another node.
pub const REMOTE_WRITES_MAX: usize = 64 << 10;
/// Bytes of keys and values of one such batch; the rest of its frame is for conditions and lengths.
pub const REMOTE_BATCH_BYTES_MAX: usize = FRAME_BYTES_MAX - (4 << 20);
/// Bytes of a reason or fact that a store on another node tells.
pub const REMOTE_TEXT_BYTES_MAX: usize = 4 << 10;
/// Messages in a shard's mailbox.
pub const MAILBOX_MAX: usize = 1_024;

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
/// Backlog rows of one schedule before they are merged.
pub const BACKLOG_SPANS_MAX: usize = 8;
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
/// Occurrences walked over to count a stretch of several cron expressions; beyond, it is left uncounted.
pub const COUNT_STEPS_MAX: u64 = 10_000;
/// Runs of excluded dates that a search passes before it takes a schedule for finished.
pub const EXCLUDED_RUNS_MAX: usize = 20_000;
/// Pieces that one decision cuts a long stretch into, where exclusions lie in it.
pub const FATE_PIECES_MAX: usize = 4_096;
/// Longest tolerance and grace.
pub const LATENESS_MS_MAX: u64 = 366 * 86_400_000;
/// Request numbers of run-now and backfill that one schedule remembers.
pub const REQUESTS_KEPT_MAX: usize = 16;
/// Fires of one step, over all schedules of a shard.
pub const FIRES_PER_STEP_MAX: usize = 1_024;
/// Instants that a preview answers with.
pub const PREVIEW_COUNT_MAX: u32 = 1_000;
/// A forward step of the store's clock above this is clock doubt.
pub const CLOCK_JUMP_MAX_MS: u64 = 60_000;
/// Clock doubt ends by itself after the clock ran steadily for this long.
pub const CLOCK_DOUBT_MAX_MS: u64 = 300_000;
/// In clock doubt, a shard asks for the time this often.
pub const DOUBT_PACE_MS: u64 = 1_000;
/// On a full disk, a shard asks this often whether what is due has room.
pub const FULL_PACE_MS: u64 = 250;
/// Between two steps of a backlog, at least this long.
pub const BACKLOG_PACE_MS: u64 = 100;

/// Days that finished jobs and their attempts are kept.
pub const JOB_RETENTION_DAYS: u64 = 7;
/// Days that dead letters are kept.
pub const DEAD_LETTER_RETENTION_DAYS: u64 = 30;
/// Days that fates are kept, as ranges.
pub const FATE_RETENTION_DAYS: u64 = 90;
/// Hours that an idempotency key is kept after its job's end.
pub const KEY_RETENTION_HOURS: u64 = 24;

/// Bytes of one stored row.
pub const ROW_BYTES_MAX: usize = 2 << 20;
/// Bytes of disk kept back so that complete, cancel and drain work on a full disk.
pub const DISK_RESERVE_BYTES: u64 = 16 << 20;
/// Bytes of rows in one journal write, soft: what waits beyond goes into the next.
pub const GROUP_BYTES_MAX: usize = 16 << 20;
/// Bytes of waiting rows from which a group is written at once, without waiting for more callers.
pub const GROUP_ENOUGH_BYTES: usize = 64 << 10;
/// Microseconds between the beginnings of two small groups: callers that the first one answered come back
/// within this time, and one sync for all of them costs less than two. After a pause nothing waits.
pub const GROUP_SPACING_US: u64 = 300;
/// The part of a group's own time that the next one waits after its end, as one in so many: callers that a
/// slow disk kept waiting come back together, too.
pub const GROUP_PATIENCE_PART: u64 = 4;
/// Bytes of rows that a small group may keep with its high-water mark; a larger group goes to the journal first.
pub const MARK_ROWS_BYTES_MAX: usize = 30 << 10;
/// High-water marks in the ring: the journal is synced after as many small groups.
pub const MARK_SLOTS: u64 = 16;
/// Bytes of all block caches of the store together.
pub const STORE_CACHE_BYTES: u64 = 16 << 20;
/// Bytes of journals from which the store flushes rows to its tables.
pub const STORE_JOURNAL_BYTES: u64 = 64 << 20;
/// Files that the store keeps open.
pub const STORE_FILES_MAX: usize = 256;
/// Free bytes of the store's disk below which work is not created any more (507).
pub const DISK_FREE_MIN_BYTES: u64 = 64 << 20;
/// Time that a drain waits for attempts in flight.
pub const DRAIN_MS: u64 = 30_000;
const _: () = assert!(LINK_PING_MS * 3 <= LINK_SILENT_MS && LINK_SILENT_MS + GREETING_MS <= 10_000);
const _: () = assert!(FRAME_BYTES_MAX <= SEND_QUEUE_BYTES_MAX && BATCH_BYTES_MAX * 2 <= REMOTE_BATCH_BYTES_MAX);
const _: () = assert!(HEARTBEAT_MS * 3 <= LEASE_MS);
const _: () = assert!(LEASE_MARGIN_MS < HEARTBEAT_MS);
const _: () = assert!(
    PAYLOAD_BYTES_MAX + (64 << 10) + (ATTEMPT_RECORDS_MAX * (OUTPUT_TAIL_BYTES_MAX + ERROR_BYTES_MAX + 512))
        <= ROW_BYTES_MAX
);
const _: () = assert!(
    (ATTEMPT_PAGE_RECORDS as usize) < ATTEMPT_RECORDS_MAX
        && ATTEMPT_PAGE_RECORDS as usize * (OUTPUT_TAIL_BYTES_MAX + ERROR_BYTES_MAX + 512) <= ROW_BYTES_MAX
);
const _: () = assert!(SHARD_COUNT_DEFAULT <= SHARD_COUNT_MAX && (SHARD_COUNT_MAX as u32) <= SLOT_COUNT);
const _: () = assert!(PAYLOAD_BYTES_MAX * 4 / 3 < BODY_BYTES_MAX);
const _: () = assert!(BODY_BYTES_MAX <= HTTP_BODIES_BYTES_MAX && LIST_PAGE_ROWS <= SCAN_ROWS_MAX);
const _: () = assert!(JOB_RETENTION_DAYS * 24 >= KEY_RETENTION_HOURS);
const _: () = assert!(BACKOFF_FIRST_MS <= BACKOFF_CAP_MS && BACKOFF_CAP_MS <= BACKOFF_CAP_MS_MAX);
const _: () = assert!(CLOCK_JUMP_MAX_MS < CLOCK_DOUBT_MAX_MS);
const _: () = assert!(DISK_RESERVE_BYTES < DISK_FREE_MIN_BYTES);
const _: () = assert!(MARK_ROWS_BYTES_MAX < GROUP_ENOUGH_BYTES && GROUP_ENOUGH_BYTES < GROUP_BYTES_MAX);
const _: () = assert!(BATCH_BYTES_MAX <= GROUP_BYTES_MAX && DOUBT_PACE_MS < CLOCK_DOUBT_MAX_MS);
const _: () = assert!(PAYLOAD_BYTES_MAX < BATCH_BYTES_MAX && ROW_BYTES_MAX <= BATCH_BYTES_MAX);
/// Addresses that one host name may lead to; each is checked.
pub const RESOLVED_ADDRESS_COUNT_MAX: usize = 64;
/// Addresses of one host that an attempt tries to connect to.
pub const CONNECT_TRIES_MAX: usize = 4;
/// Time for one address to take a connection.
pub const CONNECT_MS: u64 = 10_000;
/// Bytes of a target's answer before its body: status line, headers and interim answers.
pub const ANSWER_HEAD_BYTES_MAX: usize = 64 << 10;
/// Bytes read of the body of a target's answer; the rest is not read.
pub const ANSWER_BODY_BYTES_MAX: usize = 1 << 20;
/// Longest wait that a target may ask for with Retry-After; a longer one is shortened.
pub const RETRY_AFTER_MS_MAX: u64 = 86_400_000;
/// Bytes of a key or a line at a resource-side guard.
pub const GUARD_KEY_BYTES_MAX: usize = 512;
/// Bytes of the result that a guard stores with a key.
pub const GUARD_RESULT_BYTES_MAX: usize = 64 << 10;
/// Longest time between TERM and KILL of a command.
pub const GRACE_MS_MAX: u64 = 600_000;
/// Time between TERM and KILL of a command that names none.
pub const GRACE_MS: u64 = 10_000;
const _: () = assert!(CONNECT_MS * (CONNECT_TRIES_MAX as u64) < ATTEMPT_TIMEOUT_MS);
const _: () = assert!(OUTPUT_TAIL_BYTES_MAX <= ANSWER_BODY_BYTES_MAX);
const _: () = assert!(SCHEDULES_PER_SHARD_MAX * 640 <= SCHEDULES_PER_SHARD_BYTES_MAX);
const _: () = assert!(PAYLOAD_BYTES_MAX * 16 <= SCHEDULES_PER_SHARD_BYTES_MAX);
const _: () = assert!(RETRY_AFTER_MS_MAX <= BACKOFF_CAP_MS_MAX);
const _: () = assert!(GRACE_MS <= GRACE_MS_MAX);
const _: () = assert!(OFFER_REPEAT_MS * (OFFER_REPEATS_MAX as u64 + 1) + LEASE_MARGIN_MS < LEASE_MS);
const _: () = assert!(OFFER_REPEAT_MS < HEARTBEAT_MS && OUTCOME_RETRY_CAP_MS < LEASE_MS);
const _: () =
    assert!(WORKER_SLOTS_DEFAULT <= WORKER_SLOTS_MAX && WORKER_SLOTS_DEFAULT as usize <= OUTCOMES_UNRECORDED_MAX);
// One number bounds a window: a job's bytes, at least the fair share of one (`lease_manager/window.rs`).
const _: () = assert!(READY_WINDOW_BYTES.is_multiple_of(READY_WINDOW_JOBS));
const _: () = assert!(WAIT_WINDOW_JOBS / 2 <= SCAN_ROWS_MAX);
const _: () = assert!(PAYLOAD_BYTES_MAX * 2 <= READY_WINDOW_BYTES && PAYLOAD_BYTES_MAX * 2 <= WAIT_WINDOW_BYTES);
const _: () = assert!(WORKER_LOST_WAIT_MS_MAX < HEARTBEAT_MS);
