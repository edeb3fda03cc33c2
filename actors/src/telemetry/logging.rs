//! Log lines: one event per transition, levels by `FENCEPOST_LOG`, JSON on request.
//!
//! Owns: the subscriber and the log's sink of news. Must never: log health checks or secrets. Next:
//! `mod.rs`.

use crate::api::text;
use crate::node::notes::Notes;
use crate::telemetry::{last_attempt, result_word, state_word};
use fencepost_core::ids::JobId;
use fencepost_core::job::{Job, JobState};
use fencepost_core::name::Name;
use fencepost_core::scheduler_shard::audit::AuditFault;
use fencepost_core::scheduler_shard::io::FireNote;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts logging to standard error. `level` is the default; the variable `FENCEPOST_LOG` wins.
pub fn start(format: LogFormat, level: &str) {
    let filter = EnvFilter::try_from_env("FENCEPOST_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    // A second start (tests in one process) keeps the first subscriber.
    let _ = match format {
        LogFormat::Text => builder.with_target(false).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
}

/// Logs news.
#[derive(Debug, Default)]
pub struct LogNotes;

impl Notes for LogNotes {
    fn job_changed(&self, job: &Job) {
        tracing::debug!(job = %job.id, state = state_word(job.state), reason = job.reason.as_deref(), "job changed");
    }

    fn attempt_ended(&self, job: &Job) {
        let Some(attempt) = last_attempt(job) else { return };
        tracing::debug!(
            job = %job.id,
            attempt = attempt.no,
            token = %attempt.token,
            result = result_word(attempt.result),
            error = attempt.error.as_deref(),
            "attempt ended"
        );
    }

    fn job_purged(&self, id: JobId, state: JobState) {
        tracing::debug!(job = %id, state = state_word(state), "job purged");
    }

    fn fired(&self, note: &FireNote) {
        tracing::debug!(
            schedule = %note.name.1,
            fate = note.kind.as_str(),
            count = note.count,
            job = note.job.map(tracing::field::display),
            "occurrence decided"
        );
    }

    fn audit_fault(&self, schedule: &Name, fault: &AuditFault) {
        let occurrences: Vec<String> = fault.instants.iter().copied().map(text::instant).collect();
        tracing::error!(
            schedule = %schedule,
            fault = fault.kind.as_str(),
            from = text::instant(fault.from),
            to = text::instant(fault.to),
            occurrences = occurrences.join(" "),
            "the auditor found a fault in a history"
        );
    }
}
