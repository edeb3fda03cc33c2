//! Roughly how many bytes things take, in memory and in a batch: what limits in bytes are judged by.
//!
//! Owns: the estimates. Must never: be exact, or walk over more than a row. Next: `limits/mod.rs`,
//! `lease_manager/window.rs`, `scheduler_shard/step.rs`.

use crate::job::{AttemptRecord, Job, JobSpec};
use crate::machine::Write;
use crate::row::Row;
use crate::schedule::{RequestAnswer, RequestRow, Rule, ScheduleSpec};
use crate::target::Target;
use std::sync::Arc;

/// What a row takes beside its long fields.
const ROW: usize = 200;
/// What a job takes beside its long fields.
const JOB: usize = 600;
/// What the record of an attempt takes beside its long fields.
const RECORD: usize = 200;
/// What a short text takes beside its bytes.
const TEXT: usize = 32;
/// What a cron expression takes beside its texts: its compiled form.
const EXPRESSION: usize = 400;
/// What one takes that names years: a bit for each.
const YEARS: usize = 1_024;
/// What an exclusion takes, as sent and as searched.
const EXCLUSION: usize = 24;

impl Target {
    /// Bytes of its long fields.
    pub fn weight(&self) -> usize {
        let pairs = |pairs: &[(String, String)]| pairs.iter().map(|(a, b)| a.len() + b.len()).sum::<usize>();
        match self {
            Target::Http(http) => http.url.len() + pairs(&http.headers),
            Target::Command(command) => command.argv.iter().map(String::len).sum::<usize>() + pairs(&command.env),
            Target::Handler(_) | Target::Remote(_) => 0,
        }
    }
}

impl JobSpec {
    /// Bytes of a job that was just made of it.
    pub fn weight(&self) -> usize {
        self.payload.bytes.len() + self.target.weight() + JOB
    }
}

impl ScheduleSpec {
    /// Bytes in memory, with what its rule is compiled to.
    pub fn weight(&self) -> usize {
        let job = &self.job;
        let tags: usize = job.tags.iter().map(|tag| tag.as_bytes().len() + TEXT).sum();
        let names = job.tenant.as_bytes().len() + job.queue.as_bytes().len() + tags;
        job.weight() + names + self.rule.weight() + self.exclusions.len() * EXCLUSION
    }
}

impl Rule {
    /// Bytes: each text is kept as it was sent, resolved, and once more beside its compiled form.
    fn weight(&self) -> usize {
        match self {
            Rule::Cron {
                expressions,
                resolved,
                zone,
                ..
            } => {
                let texts: usize = expressions.iter().chain(resolved).map(|text| 2 * text.len()).sum();
                let has_years = |text: &&Arc<str>| text.split_ascii_whitespace().count() > 6;
                let years = resolved.iter().filter(has_years).count() * YEARS;
                texts + years + expressions.len() * EXPRESSION + zone.len()
            }
            Rule::Interval { zone, .. } => zone.len(),
            Rule::Once { local, zone, .. } => zone.len() + local.as_ref().map_or(0, |local| local.len()),
        }
    }
}

impl Job {
    /// Bytes, its attempts included.
    pub fn weight(&self) -> usize {
        self.spec.weight() + self.attempts.iter().map(AttemptRecord::weight).sum::<usize>()
    }
}

impl AttemptRecord {
    /// Bytes.
    pub fn weight(&self) -> usize {
        let error = self.error.as_ref().map_or(0, |error| error.len());
        self.output.len() + error + RECORD
    }
}

impl Row {
    /// Bytes.
    pub fn weight(&self) -> usize {
        match self {
            Row::Job(job) => job.weight(),
            Row::Definition(definition) => definition.spec.job.weight(),
            Row::Cell(_)
            | Row::Assignment(_)
            | Row::Cursor(_)
            | Row::Backlog(_)
            | Row::Fate(_)
            | Row::Edit(_)
            | Row::Wait(_)
            | Row::Ready(_)
            | Row::Leased(_)
            | Row::Parked(_)
            | Row::Key(_)
            | Row::DeadLetter(_)
            | Row::Mark(_) => ROW,
            Row::Attempts(row) => ROW + row.records.iter().map(AttemptRecord::weight).sum::<usize>(),
            Row::Quarantine(row) => ROW + row.key.len() + row.reason.len(),
            Row::Request(row) => row.weight(),
        }
    }
}

impl RequestRow {
    /// Bytes.
    pub fn weight(&self) -> usize {
        let instants = match &self.answer {
            RequestAnswer::Ran(_) => 0,
            RequestAnswer::Backfill { instants, .. } => size_of_val(instants.as_slice()),
        };
        ROW + instants + size_of_val(self.jobs.as_slice())
    }
}

impl Write {
    /// Bytes that it adds to a batch.
    pub fn weight(&self) -> usize {
        match self {
            Write::Put { row, .. } => row.weight(),
            Write::Delete(_) => ROW,
        }
    }
}
