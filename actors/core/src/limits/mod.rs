//! Every bound of the product, in one place, checked against each other at compile time.
//!
//! Owns: the list of files, one a concept, and the checks. Must never: hold logic, or a number of its own.
//! `docs/limits.md` is generated from this folder, so each constant carries a doc comment that a user can
//! read. Next: `jobs.rs`, `schedules.rs`.

mod cell;
mod clock;
mod cluster;
mod desk;
mod jobs;
mod mesh;
mod requests;
mod schedules;
mod shard;
mod store;
mod suspects;
mod targets;
mod workers;

pub use cell::*;
pub use clock::*;
pub use cluster::*;
pub use desk::*;
pub use jobs::*;
pub use mesh::*;
pub use requests::*;
pub use schedules::*;
pub use shard::*;
pub use store::*;
pub use suspects::*;
pub use targets::*;
pub use workers::*;

const _: () = assert!(LINK_PING_MS * 3 <= LINK_SILENT_MS && LINK_SILENT_MS + GREETING_MS <= 10_000);
const _: () = assert!(FRAME_BYTES_MAX <= SEND_QUEUE_BYTES_MAX && BATCH_BYTES_MAX * 2 <= REMOTE_BATCH_BYTES_MAX);
const _: () = assert!(REFUSED_LINGER_BYTES_MAX > GREETING_BYTES_MAX as u64);
const _: () = assert!(HEARTBEAT_MS * 3 <= LEASE_MS);
const _: () = assert!(CLAIM_MS_MAX > ATTEMPT_TIMEOUT_MS_MAX && CLI_LOOK_MS <= HTTP_WAIT_MS_MAX);
const _: () = assert!(JOURNAL_VALUE_BYTES_MAX as usize > ROW_BYTES_MAX);
const _: () = assert!(LEASE_MARGIN_MS < HEARTBEAT_MS);
// F17
const _: () = assert!(LEASE_MS - HEARTBEAT_MS > SHARD_LEASE_MS_MAX + SHARD_LEASE_MARGIN_MS + HANDOVER_MS_MAX);
const _: () = assert!(SHARD_LEASE_MS_MIN <= SHARD_LEASE_MS && SHARD_LEASE_MS <= SHARD_LEASE_MS_MAX);
const _: () = assert!(BOARD_POST_MS * 4 < SHARD_LEASE_MS && BALANCE_HOLD_MS > SHARD_LEASE_MS + SHARD_LEASE_MARGIN_MS);
const _: () = assert!(SHARD_STALL_MS > BALANCE_HOLD_MS && BOARD_BYTES_MAX <= FRAME_BYTES_MAX / 2);
const _: () = assert!(FOLLOW_CONNECT_MS < FOLLOW_MS && RESEND_MS < FOLLOW_MS && FOLLOW_MS < REQUEST_CALL_MS);
const _: () = assert!(BOARD_POST_MS + BOARD_ANSWER_MS < SHARD_LEASE_MS && PROGRESS_PROBE_MS < SHARD_STALL_MS);
const _: () = assert!(STORE_CALL_MS + 4 * RESEND_PAUSE_MS < CREATION_REFUSED_MS && CREATION_REFUSED_MS <= 1_900);
const _: () = assert!(STORE_AWAY_MS < ANSWER_PATIENCE_MS && ANSWER_PATIENCE_MS + RESEND_MS < CREATION_REFUSED_MS);
const _: () = assert!(
    FOLLOW_MS <= ANSWER_PATIENCE_MS && STORE_CALL_MS < STORE_PROBE_MS && BATCH_FLIGHTS_MAX * 2 <= REMOTE_COMMITS_MAX
);
const _: () = assert!(RELEASE_MS * 2 < FOLLOW_MS && RELEASE_MS * 2 < DRAIN_HAND_OVER_MS);
const _: () = assert!(RELEASE_MS < HANDOVER_MS_MAX && DRAIN_HAND_OVER_MS <= HANDOVER_MS_MAX);
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
const _: () = assert!(KEY_RETENTION_MS_MIN <= KEY_RETENTION_HOURS * 3_600_000);
const _: () = assert!(KEY_RETENTION_HOURS * 3_600_000 <= KEY_RETENTION_MS_MAX);
const _: () = assert!(KEY_RETENTION_MS_MAX <= JOB_RETENTION_DAYS * 86_400_000);
const _: () = assert!(BACKOFF_FIRST_MS <= BACKOFF_CAP_MS && BACKOFF_CAP_MS <= BACKOFF_CAP_MS_MAX);
const _: () = assert!(CLOCK_JUMP_MAX_MS < CLOCK_DOUBT_MAX_MS);
const _: () = assert!(CLOCK_OFFSET_MS_MIN <= CLOCK_OFFSET_MS && CLOCK_OFFSET_MS <= CLOCK_JUMP_MAX_MS);
const _: () = assert!(STORE_CALL_MS < CLOCK_OFFSET_MS && CLOCK_OFFSET_MS <= CLOCK_OFFSET_MS_MAX);
const _: () = assert!(DISK_RESERVE_BYTES < DISK_FREE_MIN_BYTES);
const _: () = assert!(MARK_ROWS_BYTES_MAX < GROUP_ENOUGH_BYTES && GROUP_ENOUGH_BYTES < GROUP_BYTES_MAX);
const _: () = assert!(BATCH_BYTES_MAX <= GROUP_BYTES_MAX && DOUBT_PACE_MS < CLOCK_DOUBT_MAX_MS);
const _: () = assert!(PAYLOAD_BYTES_MAX < BATCH_BYTES_MAX && ROW_BYTES_MAX <= BATCH_BYTES_MAX);
const _: () = assert!(CONNECT_MS * (CONNECT_TRIES_MAX as u64) < ATTEMPT_TIMEOUT_MS);
const _: () = assert!(OUTPUT_TAIL_BYTES_MAX <= ANSWER_BODY_BYTES_MAX);
const _: () = assert!(SCHEDULES_PER_SHARD_MAX * 1_280 <= SCHEDULES_PER_SHARD_BYTES_MAX);
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
const _: () = assert!(CLAIM_COUNT_MAX <= OFFER_SLOTS_MAX && REPORT_WAIT_MS < HEARTBEAT_MS);
const _: () = assert!(WORKER_LOST_WAIT_MS < HEARTBEAT_MS);
// What waits since an earlier loss must not be chosen before what was lost just now is due. A command with a grace
// comes later all the same.
const _: () = assert!(WORKER_LOST_WAIT_MS * 2 <= APART_SETTLE_MS);
const _: () = assert!(APART_MS < APART_ALONE_MS && APART_ALONE_MS_MIN < APART_MS);
