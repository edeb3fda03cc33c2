//! What is made up of a worker's silence, by whoever waited for its report.
//!
//! Owns: how such an outcome is told from a worker's word. Must never: judge a word. Next: `lease_manager/outcomes.rs`.

use crate::job::Outcome;

/// What the error of an outcome begins with that stands for a worker's silence.
pub const SILENT: &str = "worker_lost: ";
/// The error of one that stands for its silence until the time-out of its job.
pub const SILENT_TO_THE_END: &str = "timed_out: the worker did not report in time";

/// Whether nobody said it: whoever waited for a worker over HTTP made it up.
pub fn is_silence(outcome: &Outcome) -> bool {
    let error = outcome.error.as_deref();
    error.is_some_and(|error| error == SILENT_TO_THE_END || error.starts_with(SILENT))
}
