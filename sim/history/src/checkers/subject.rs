//! What a violation is about: where a person has to look.
//!
//! Owns: that pointer. Must never: decide anything; a checker that says none is none the worse, and a report looks
//! for ids in its words. Next: `mod.rs`.

use crate::seen::Call;
use fencepost_core::ids::JobId;

/// What a violation is about; whatever is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The job.
    pub job: Option<JobId>,
    /// The token of the attempt that did it.
    pub token: Option<String>,
    /// When it went wrong, in simulated microseconds since the run began.
    pub at: Option<u64>,
    /// The schedule and the nominal instant, in microseconds since the Unix epoch.
    pub occurrence: Option<(String, i64)>,
}

impl Subject {
    /// One job.
    pub fn job(id: JobId) -> Subject {
        Subject {
            job: Some(id),
            ..Subject::default()
        }
    }

    /// One call at the target.
    pub fn call(call: &Call) -> Subject {
        Subject {
            job: JobId::parse(&call.key),
            token: Some(call.token.clone()),
            at: Some(call.at),
            occurrence: None,
        }
    }

    /// One occurrence.
    pub fn occurrence(schedule: &str, nominal: i64) -> Subject {
        Subject {
            occurrence: Some((schedule.to_owned(), nominal)),
            ..Subject::default()
        }
    }

    /// At this moment of the run.
    pub fn at(mut self, at: u64) -> Subject {
        self.at = Some(at);
        self
    }

    /// Under this token.
    pub fn with_token(mut self, token: impl ToString) -> Subject {
        self.token = Some(token.to_string());
        self
    }
}
