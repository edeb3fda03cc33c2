//! Bounds of workers over HTTP: claims, heartbeats, reports.
//!
//! Owns: numbers only. Must never: hold logic. Next: `mod.rs`, where they are checked against each other.

/// Claims of one node that wait, or whose attempts have not all ended.
pub const CLAIMS_OPEN_MAX: usize = 1_024;
/// Attempts that one claim may ask for.
pub const CLAIM_COUNT_MAX: u32 = 100;
/// Queues that one claim may name.
pub const CLAIM_QUEUES_MAX: usize = 32;
/// Bytes of a claim's number, chosen by its worker.
pub const CLAIM_ID_BYTES_MAX: usize = 64;
/// How long a claim waits for its first attempt when it does not say.
pub const CLAIM_WAIT_MS: u64 = 30_000;
/// A claim waits at least so long: what is ready is granted after a commit.
pub const CLAIM_WAIT_MS_MIN: u64 = 200;
/// Bytes of a claim's body.
pub const CLAIM_BODY_BYTES_MAX: usize = 64 << 10;
/// Bytes of a grant's text.
pub const GRANT_BYTES_MAX: usize = 512;
/// How long a claim that has its first attempt waits for more.
pub const CLAIM_GATHER_MS: u64 = 20;
/// Attempts in one heartbeat of a worker over HTTP.
pub const BEAT_COUNT_MAX: usize = 1_000;
/// How long a report waits until it is recorded before it answers that it does not know yet.
pub const REPORT_WAIT_MS: u64 = 5_000;
/// Recorded attempts of workers over HTTP whose reports a node still answers as it did the first time; and how many
/// may have ended and wait to be recorded before no more are handed out.
pub const REPORTS_KEPT_MAX: usize = 8_192;
/// Milliseconds that an answered claim may stay: longer than any attempt takes.
pub const CLAIM_MS_MAX: u64 = 366 * 86_400_000;
