//! What a node says of itself: log lines, metrics, the console of `dev`.
//!
//! Owns: sinks of news. Must never: log payloads, headers or secrets. Next: `console.rs`,
//! `metrics.rs`, `logging.rs`.

pub mod console;
pub mod logging;
pub mod metrics;

use fencepost_core::job::{AttemptRecord, AttemptResult, Job, JobState};
use fencepost_core::time::Span;

/// The attempt that has just ended.
pub(crate) fn last_attempt(job: &Job) -> Option<&AttemptRecord> {
    job.attempts.last()
}

/// How late the attempt started: for the first one counted from the due instant.
pub(crate) fn lateness(job: &Job, attempt: &AttemptRecord) -> Span {
    attempt.granted_at.since(job.due_at)
}

/// The word for how an attempt ended.
pub(crate) fn result_word(result: AttemptResult) -> &'static str {
    match result {
        AttemptResult::Succeeded => "succeeded",
        AttemptResult::Failed => "failed",
        AttemptResult::TimedOut => "timed_out",
        AttemptResult::WorkerLost => "worker_lost",
        AttemptResult::HandedBack => "handed_back",
        AttemptResult::Cancelled => "cancelled",
    }
}

/// The word for where a job stands.
pub(crate) fn state_word(state: JobState) -> &'static str {
    match state {
        JobState::Waiting => "waiting",
        JobState::Ready => "ready",
        JobState::Leased => "running",
        JobState::Uncertain => "uncertain",
        JobState::Succeeded => "succeeded",
        JobState::Cancelled => "cancelled",
        JobState::Dead => "dead",
        JobState::Expired => "expired",
    }
}
