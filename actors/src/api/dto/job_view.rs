//! A job as answers show it.
//!
//! Owns: the shapes of jobs, attempts and output in answers. Must never: show a secret, or a payload in a
//! list. Next: `job.rs` for the part that mirrors the request.

use super::job::JobBody;
use crate::api::text;
use crate::gateway::JobView;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fencepost_core::job::{AttemptRecord, AttemptResult, FireCause, JobState, Origin, Place};
use serde::Serialize;
use utoipa::ToSchema;

/// States as text, in the order of their life.
pub const STATES: &[(&str, JobState)] = &[
    ("waiting", JobState::Waiting),
    ("ready", JobState::Ready),
    ("running", JobState::Leased),
    ("uncertain", JobState::Uncertain),
    ("succeeded", JobState::Succeeded),
    ("cancelled", JobState::Cancelled),
    ("dead", JobState::Dead),
    ("expired", JobState::Expired),
];

/// The word for a state.
pub fn state_word(state: JobState) -> &'static str {
    STATES
        .iter()
        .find(|(_, known)| *known == state)
        .map_or("unknown", |(word, _)| word)
}

/// A job.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct JobAnswer {
    /// `job_` and 32 hexadecimal digits.
    pub id: String,
    /// `waiting ready running uncertain succeeded cancelled dead expired`.
    #[schema(value_type = String)]
    pub state: &'static str,
    /// Why it stands there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What was asked for; the payload only when one job is read.
    #[serde(flatten)]
    pub body: JobBody,
    /// The key it was made under.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The occurrence it was made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub occurrence: Option<OccurrenceAnswer>,
    /// When it was made.
    pub created_at: String,
    /// First due instant; lateness counts from here.
    pub due_at: String,
    /// When its next attempt may start, while it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<String>,
    /// When someone asked to cancel it while it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_requested_at: Option<String>,
    /// When it was finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Attempts that count against `retry.attempts` in this round, one that runs included; those that provably never
    /// began do not. A retry by a person begins a new round at 0; `/attempts` lists those of all rounds, numbered on.
    pub attempt_count: u32,
    /// The attempt that runs now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<CurrentAnswer>,
    /// How the last attempt ended, in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// The occurrence that a job was made for.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct OccurrenceAnswer {
    /// Name of the schedule.
    pub schedule: String,
    /// Which life of that name.
    pub incarnation: String,
    /// Definition version.
    pub definition: u64,
    /// Nominal instant.
    pub nominal_at: String,
    /// `due catch_up coalesced run_now backfill`.
    #[schema(value_type = String)]
    pub cause: &'static str,
    /// Policy coalesce: the oldest occurrence it stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_at: Option<String>,
    /// Policy coalesce: how many it stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// The attempt that runs now.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CurrentAnswer {
    /// Counted from 1.
    pub attempt: u32,
    /// Fencing token.
    pub token: String,
    /// Who holds it.
    pub worker: String,
    /// When it was granted.
    pub granted_at: String,
    /// How far it says it is: the newest word of a handler or of a worker over HTTP, told by the node where it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
}

/// An attempt that ended.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AttemptAnswer {
    /// Counted from 1.
    pub attempt: u32,
    /// Fencing token.
    pub token: String,
    /// Who held it.
    pub worker: String,
    /// When it was granted.
    pub granted_at: String,
    /// When its outcome was recorded.
    pub ended_at: String,
    /// `succeeded failed timed_out worker_lost handed_back cancelled`.
    #[schema(value_type = String)]
    pub result: &'static str,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Bytes kept of its output; see `logs`.
    pub output_bytes: usize,
}

/// The kept tail of one attempt's output.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LogAnswer {
    /// Counted from 1.
    pub attempt: u32,
    /// How it ended.
    #[schema(value_type = String)]
    pub result: &'static str,
    /// The output, when it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The output in base64, when it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_base64: Option<String>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl JobAnswer {
    /// A job on its own, payload included.
    pub fn whole(view: &JobView) -> JobAnswer {
        JobAnswer::of(view, true)
    }

    /// A job in a list.
    pub fn listed(view: &JobView) -> JobAnswer {
        JobAnswer::of(view, false)
    }

    fn of(view: &JobView, with_payload: bool) -> JobAnswer {
        let job = &view.job;
        let (idempotency_key, occurrence) = origin(&job.origin);
        JobAnswer {
            id: job.id.to_string(),
            state: state_word(shown_state(view)),
            reason: job.reason.as_deref().map(str::to_owned),
            body: JobBody::of(&job.spec, with_payload),
            idempotency_key,
            occurrence,
            created_at: text::instant(job.created_at),
            due_at: text::instant(job.due_at),
            next_attempt_at: next_attempt(view).map(text::instant),
            cancel_requested_at: job.cancel_requested_at.map(text::instant),
            ended_at: job.ended_at.map(text::instant),
            attempt_count: job.charged + u32::from(view.leased.is_some()),
            current: view.leased.as_ref().map(|leased| CurrentAnswer {
                attempt: leased.attempt,
                token: leased.token.to_string(),
                worker: leased.worker.to_string(),
                granted_at: text::instant(leased.granted_at),
                progress: view.progress.clone(),
            }),
            last_error: job
                .attempts
                .last()
                .and_then(|last| last.error.as_deref().map(str::to_owned)),
        }
    }
}

/// The state as people see it: the leased row decides whether a ready job runs.
pub fn shown_state(view: &JobView) -> JobState {
    match (&view.leased, view.job.state) {
        (Some(_), state) if !state.is_finished() => JobState::Leased,
        (_, state) => state,
    }
}

fn next_attempt(view: &JobView) -> Option<fencepost_core::time::StoreTime> {
    match (&view.job.place, &view.leased) {
        (Place::Wait { at, .. }, None) => Some(*at),
        _ => None,
    }
}

fn origin(origin: &Origin) -> (Option<String>, Option<OccurrenceAnswer>) {
    match origin {
        Origin::Request { key } => (key.as_deref().map(str::to_owned), None),
        Origin::Occurrence {
            schedule,
            incarnation,
            definition,
            nominal,
            cause,
        } => {
            let (word, first_at, count) = cause_parts(*cause);
            let answer = OccurrenceAnswer {
                schedule: schedule.to_string(),
                incarnation: text::incarnation(*incarnation),
                definition: *definition,
                nominal_at: text::instant(*nominal),
                cause: word,
                first_at,
                count,
            };
            (None, Some(answer))
        }
    }
}

fn cause_parts(cause: FireCause) -> (&'static str, Option<String>, Option<u64>) {
    match cause {
        FireCause::Due => ("due", None, None),
        FireCause::CatchUp => ("catch_up", None, None),
        FireCause::Coalesced { first, count } => ("coalesced", Some(text::instant(first)), Some(count)),
        FireCause::RunNow => ("run_now", None, None),
        FireCause::Backfill => ("backfill", None, None),
    }
}

/// How attempts end, by word.
pub const RESULTS: &[(&str, AttemptResult)] = &[
    ("succeeded", AttemptResult::Succeeded),
    ("failed", AttemptResult::Failed),
    ("timed_out", AttemptResult::TimedOut),
    ("worker_lost", AttemptResult::WorkerLost),
    ("handed_back", AttemptResult::HandedBack),
    ("cancelled", AttemptResult::Cancelled),
];

/// The word for how an attempt ended.
pub fn result_word(result: AttemptResult) -> &'static str {
    let found = RESULTS.iter().find(|(_, known)| *known == result);
    found.map_or("failed", |(word, _)| word)
}

/// An attempt that ended.
pub fn attempt(record: &AttemptRecord) -> AttemptAnswer {
    AttemptAnswer {
        attempt: record.no,
        token: record.token.to_string(),
        worker: record.worker.to_string(),
        granted_at: text::instant(record.granted_at),
        ended_at: text::instant(record.ended_at),
        result: result_word(record.result),
        error: record.error.as_deref().map(str::to_owned),
        output_bytes: record.output.len(),
    }
}

/// The tail of an attempt's output.
pub fn log(record: &AttemptRecord) -> LogAnswer {
    let output = std::str::from_utf8(&record.output).ok().map(str::to_owned);
    LogAnswer {
        attempt: record.no,
        result: result_word(record.result),
        output_base64: output.is_none().then(|| STANDARD.encode(&record.output)),
        output,
        error: record.error.as_deref().map(str::to_owned),
    }
}
