//! Bounds of what a request may hold, and the connections it comes over.
//!
//! Owns: numbers only. Must never: hold logic. Next: `mod.rs`, where they are checked against each other.

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
/// Bytes of a job's payload.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// Jobs in one creation batch.
pub const BATCH_JOBS_MAX: usize = 1_000;
/// Bytes of one HTTP request body (a batch with its JSON overhead).
pub const BODY_BYTES_MAX: usize = 16 << 20;
/// Keys of one JSON object outside payloads; keeps the check for duplicates cheap.
pub const OBJECT_KEYS_MAX: usize = 512;
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
/// Longest delay of a job: from any present of this century it does not reach beyond the year 9999.
pub const DELAY_MS_MAX: u64 = 7_900 * 366 * 86_400 * 1_000;
/// Bytes of a duration's text.
pub const DURATION_BYTES_MAX: usize = 64;
/// Bytes of a token file; more is none of ours.
pub const TOKEN_FILE_BYTES_MAX: u64 = 4_096;
/// Pause after an HTTP connection could not be accepted: out of file handles, say.
pub const HTTP_ACCEPT_PAUSE_MS: u64 = 50;
/// Pause between two looks at a job that another node runs, for a client that waits for its end.
pub const WAIT_LOOK_PAUSE_MS: u64 = 100;
/// Bytes of an answer that the command line takes.
pub const CLI_ANSWER_BYTES_MAX: usize = 256 << 20;
/// Bytes of a file that a command takes.
pub const CLI_FILE_BYTES_MAX: u64 = 64 << 20;
/// Milliseconds that a server which stops lets answers under way go on.
pub const HTTP_STOP_MS: u64 = 5_000;
/// Milliseconds that the command line waits for an answer when nobody says.
pub const CLI_ANSWER_MS: u64 = 30_000;
/// Milliseconds of one look of `job wait` at the server.
pub const CLI_LOOK_MS: u64 = 30_000;
/// Milliseconds that `job wait` waits when nobody says.
pub const CLI_WAIT_MS: u64 = 3_600_000;
/// Milliseconds that `doctor` waits for a connection.
pub const DOCTOR_CONNECT_MS: u64 = 2_000;
/// Syncs that `doctor` makes to see how long one takes.
pub const DOCTOR_SYNC_COUNT: usize = 16;
/// Milliseconds that two clocks may be apart before `doctor` says so.
pub const DOCTOR_CLOCK_GAP_MS: u64 = 2_000;
