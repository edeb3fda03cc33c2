//! What clients and the sink saw, in one order, and what they were shown at the end.
//!
//! Owns: the record that the verdict is over. Must never: judge. Next: `log.rs` reads it out of the logs,
//! `verdict.rs` judges it.

/// One thing seen from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The server is about to be killed.
    Kill,
    /// A client sends the creation of a job under its key.
    Sent { client: usize, key: String },
    /// It was answered: this job, durable.
    Acknowledged { client: usize, key: String, id: String },
    /// It was answered with a refusal; nothing was made.
    Refused { client: usize, key: String },
    /// No answer came.
    Unanswered { client: usize, key: String },
    /// A client read a job and was shown this state.
    Seen { key: String, state: String },
    /// An attempt's call arrived at the sink.
    Arrived { effect: String, token: String },
    /// The sink applied the effect.
    Applied { effect: String },
    /// The sink had applied it before.
    Already { effect: String },
    /// The sink refused an older attempt.
    Stale { effect: String },
}

/// A job as the list shows it at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndJob {
    pub id: String,
    pub state: String,
    /// Schedule and nominal instant in microseconds, where a schedule made it.
    pub occurrence: Option<(String, i64)>,
}

/// A stretch of nominal time with one fate, in microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndFate {
    pub from: i64,
    pub to: i64,
    pub kind: String,
    pub count: Option<u64>,
}

/// A schedule at the end: the test's own rule, and what the server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndSchedule {
    pub name: String,
    /// Occurrences are the multiples of this many microseconds since 1970.
    pub every: i64,
    pub created_at: i64,
    /// When the test asked at the latest, by its own clock: all before it must be decided.
    pub asked_at: i64,
    pub decided_until: i64,
    pub fates: Vec<EndFate>,
}

/// The end of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    pub jobs: Vec<EndJob>,
    pub schedules: Vec<EndSchedule>,
}
