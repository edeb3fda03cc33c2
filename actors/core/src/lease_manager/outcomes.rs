//! The ends of attempts: outcomes, reaps, hand-backs, and words that come too late.
//!
//! Owns: attempt records and the refund. Must never: let an attempt that is not current move its job,
//! but for settling an uncertain one (F18). Next: `decide.rs`, `places.rs`.

use super::decide::{self, Next};
use super::io::{AttemptOutcome, LeaseEffect, Recorded};
use super::leases::Lease;
use super::places::{move_job, put_job};
use super::{LeaseManager, Orders};
use crate::ids::{JobId, Token, WorkerId};
use crate::job::{AttemptRecord, AttemptResult, EffectProof, Job, JobState, Outcome, Place, Verdict};
use crate::limits::{ATTEMPT_RECORDS_MAX, ERROR_BYTES_MAX, OUTPUT_TAIL_BYTES_MAX};
use crate::machine::Write;
use crate::row::{AttemptsRow, LeasedRow, Row, RowKey};
use crate::silence::is_silence;
use crate::time::{Now, Span};
use std::sync::Arc;

/// Between what was known of an attempt and what its worker said later.
const CAME_BACK: &str = "; it came back later and reported ";

impl LeaseManager {
    /// A worker reports outcomes.
    pub(super) fn on_outcomes(&mut self, now: Now, worker: WorkerId, items: Vec<AttemptOutcome>, out: &mut Orders) {
        let mut answers = Vec::with_capacity(items.len());
        for item in items {
            let (id, token) = (item.id, item.token);
            let answer = if self.leases.current(id, token).is_some() {
                self.end_by_outcome(now, id, item.outcome, out);
                Recorded::Recorded
            } else {
                self.on_late_outcome(now, item, out)
            };
            answers.push((id, token, answer));
        }
        out.effect(LeaseEffect::SendRecorded { worker, items: answers });
    }

    fn end_by_outcome(&mut self, now: Now, id: JobId, outcome: Outcome, out: &mut Orders) {
        let Some(lease) = self.leases.remove(id) else { return };
        let (row, job) = (lease.row, lease.job);
        self.recent.add(row.token, Recorded::Recorded);
        let verdict = outcome.verdict;
        let mut job = charge(job, &row);
        job.attempts
            .push(record_of(&row, now, decide::result_of(verdict), outcome));
        let next = decide::decide_after_outcome(&job, verdict);
        self.end_attempt(now, &row, job, next, out);
    }

    /// A lease ended, or its worker is known dead: a crash counts (R02).
    pub(super) fn reap(&mut self, now: Now, lease: Lease, out: &mut Orders) {
        let (row, job) = (lease.row, lease.job);
        self.recent.add(row.token, Recorded::Stale);
        let mut job = charge(job, &row);
        #[cfg(madsim)]
        if crate::planted::Bug::LossUncounted.is_planted() {
            job.charged -= 1;
        }
        let lost = Outcome {
            verdict: Verdict::TimedOut {
                effect: EffectProof::Unproven,
            },
            error: Some(Arc::from(decide::WORKER_LOST)),
            output: Arc::from([]),
        };
        job.attempts.push(record_of(&row, now, AttemptResult::WorkerLost, lost));
        let next = match decide::decide_after_loss(&job, row.begun) {
            // It waits in any case, and comes back to run apart.
            Next::RetryAfter(wait) => Next::RetryAfter(wait.max(Span::from_millis(1))),
            other => other,
        };
        self.end_attempt(now, &row, job, next, out);
    }

    fn end_attempt(&mut self, now: Now, row: &LeasedRow, mut job: Job, next: Next, out: &mut Orders) {
        spill_records(&mut job, out);
        out.delete(RowKey::Leased(row.id));
        let job = self.move_on(now, job, JobState::Leased, next, out);
        put_job(&job, out);
        out.effect(LeaseEffect::AttemptEnded(Box::new(job)));
    }

    /// Moves a job whose attempt has ended; `from` is leased, or uncertain when it is settled.
    pub(super) fn move_on(&mut self, now: Now, job: Job, from: JobState, next: Next, out: &mut Orders) -> Job {
        match next {
            Next::Succeed => self.finish(now, job, (from, JobState::Succeeded), None),
            Next::Cancel => self.finish(now, job, (from, JobState::Cancelled), Some(decide::CANCELLED)),
            Next::GiveUp(reason) => self.give_up(now, job, from, reason, out),
            Next::Park(reason) => self.park(now, job, reason, out),
            Next::RetryAfter(wait) if wait == Span::ZERO || from == JobState::Uncertain => {
                self.revive(job, from, now.store, out)
            }
            Next::RetryAfter(wait) => self.wait_for_retry(now, job, wait, out),
        }
    }

    fn wait_for_retry(&mut self, now: Now, mut job: Job, length: Span, out: &mut Orders) -> Job {
        let at = self.elapsed.end_of(now, length, job.id);
        move_job(&mut job, JobState::Leased, JobState::Waiting);
        job.place = Place::Wait { at, length };
        let lost = job
            .attempts
            .last()
            .is_some_and(|a| a.result == AttemptResult::WorkerLost);
        job.reason = lost.then(|| Arc::from(decide::WORKER_LOST));
        self.enter_wait(now, Arc::new(job.clone()), at, Some(length), out);
        job
    }

    /// An outcome of an attempt that is not current: the one that is recorded, evidence, or what settles an
    /// uncertain job. Evidence is also what a worker says of an attempt that ended without its word, by silence.
    fn on_late_outcome(&mut self, now: Now, item: AttemptOutcome, out: &mut Orders) -> Recorded {
        let Some(job) = item.job.map(|fetched| newest_row(fetched, out)) else {
            return self.recent.get(item.token).unwrap_or(Recorded::Stale);
        };
        let Some(record) = job.attempts.iter().rfind(|record| record.token == item.token) else {
            return self.recent.get(item.token).unwrap_or(Recorded::Stale);
        };
        let newest = job.attempts.last().is_some_and(|last| last.token == item.token);
        if job.state == JobState::Uncertain && newest {
            return self.settle_by_outcome(now, *job, item.outcome, out);
        }
        if is_said_again(record, &item.outcome) {
            return Recorded::Recorded;
        }
        self.keep_evidence(*job, item.token, &item.outcome, out);
        Recorded::Stale
    }

    fn settle_by_outcome(&mut self, now: Now, mut job: Job, outcome: Outcome, out: &mut Orders) -> Recorded {
        let verdict = outcome.verdict;
        let next = decide::decide_after_outcome(&job, verdict);
        if matches!(next, Next::Park(_)) {
            return self.leave_uncertain(job, &outcome, out);
        }
        if let Some(last) = job.attempts.last_mut() {
            last.result = decide::result_of(verdict);
            last.error = outcome.error.map(bounded_error);
            last.output = bounded_output(outcome.output);
            self.recent.add(last.token, Recorded::Recorded);
        }
        self.leave_place(&job, out);
        let job = self.move_on(now, job, JobState::Uncertain, next, out);
        put_job(&job, out);
        out.effect(LeaseEffect::JobChanged(Box::new(job)));
        Recorded::Recorded
    }

    /// What was said settles nothing: a person does.
    fn leave_uncertain(&mut self, job: Job, outcome: &Outcome, out: &mut Orders) -> Recorded {
        let last = job.attempts.last();
        if last.is_some_and(|record| is_said_again(record, outcome)) {
            return Recorded::Recorded;
        }
        if let Some(token) = last.map(|record| record.token) {
            self.keep_evidence(job, token, outcome, out);
        }
        Recorded::Stale
    }

    /// Notes once, in the attempt's record, what its worker said when it came back. Its silence says nothing, and
    /// must not take the place of its word.
    fn keep_evidence(&mut self, mut job: Job, token: Token, outcome: &Outcome, out: &mut Orders) {
        if is_silence(outcome) {
            return;
        }
        let Some(record) = job.attempts.iter_mut().rfind(|record| record.token == token) else {
            return;
        };
        let Some(noted) = with_evidence(record, outcome.verdict) else {
            return;
        };
        record.error = Some(noted);
        job.version += 1;
        put_job(&job, out);
        self.refresh(Arc::new(job));
    }

    /// The job's row was rewritten where it stands: memory follows.
    pub(super) fn refresh(&mut self, job: Arc<Job>) {
        if let Some(lease) = self.leases.get_mut(job.id) {
            lease.job = job;
            return;
        }
        match job.place {
            Place::Ready { order } => self.refresh_ready(order, job),
            Place::Wait { at, .. } => match self.waits.window().get_mut(&(at, job.id)) {
                Some(entry) => entry.job = job,
                None if self.apart.refresh(&(at, job.id), &job) => {}
                None => self.refresh_ready(at, job),
            },
            Place::Leased | Place::Parked | Place::DeadLetter { .. } | Place::None => {}
        }
    }

    fn refresh_ready(&mut self, order: crate::time::StoreTime, job: Arc<Job>) {
        let key = (job.spec.priority, order, job.id);
        for class in self.classes_of(&job) {
            if let Some(entry) = self.ready.class_mut(class).window.get_mut(&key) {
                entry.job = job.clone();
            }
        }
    }

    /// A worker proves that attempts did not start: refunded, and never granted under that number again.
    pub(super) fn on_hand_back(&mut self, now: Now, worker: WorkerId, items: Vec<(JobId, Token)>, out: &mut Orders) {
        let mut answers = Vec::with_capacity(items.len());
        for (id, token) in items {
            let answer = if self.leases.current(id, token).is_some() {
                self.hand_back(now, id, out);
                Recorded::Recorded
            } else {
                self.recent.get(token).unwrap_or(Recorded::Stale)
            };
            answers.push((id, token, answer));
        }
        out.effect(LeaseEffect::SendRecorded { worker, items: answers });
    }

    pub(super) fn hand_back(&mut self, now: Now, id: JobId, out: &mut Orders) {
        let Some(lease) = self.leases.remove(id) else { return };
        self.recent.add(lease.row.token, Recorded::Recorded);
        let row = lease.row;
        let job = self.refund(now, lease.job, &row, out);
        let job = if job.cancel_requested_at.is_some() {
            self.finish(
                now,
                job,
                (JobState::Leased, JobState::Cancelled),
                Some(decide::CANCELLED),
            )
        } else {
            self.revive(job, JobState::Leased, row.order, out)
        };
        put_job(&job, out);
        out.effect(LeaseEffect::AttemptEnded(Box::new(job)));
    }

    /// Takes an attempt back that is proven not to have started: its lease goes, its number is burnt.
    pub(super) fn refund(&mut self, now: Now, job: Arc<Job>, row: &LeasedRow, out: &mut Orders) -> Job {
        let mut job = Arc::unwrap_or_clone(job);
        job.refunded = job.refunded.saturating_add(1);
        job.attempt_next = row.attempt.saturating_add(1);
        let nothing = Outcome {
            verdict: Verdict::Cancelled {
                effect: EffectProof::NoEffect,
            },
            error: None,
            output: Arc::from([]),
        };
        job.attempts
            .push(record_of(row, now, AttemptResult::HandedBack, nothing));
        spill_records(&mut job, out);
        out.delete(RowKey::Leased(row.id));
        job
    }

    /// A job that never started passed its expiry; its place row is gone in this step.
    pub(super) fn expire(&mut self, now: Now, job: Arc<Job>, out: &mut Orders) {
        let job = Arc::unwrap_or_clone(job);
        let from = match job.state {
            JobState::Waiting => JobState::Waiting,
            // A job that becomes due is ready, whatever its row says until it is written anew.
            JobState::Ready
            | JobState::Leased
            | JobState::Succeeded
            | JobState::Dead
            | JobState::Cancelled
            | JobState::Expired
            | JobState::Uncertain => JobState::Ready,
        };
        let job = self.finish(
            now,
            job,
            (from, JobState::Expired),
            Some("not started before its expiry"),
        );
        put_job(&job, out);
        out.effect(LeaseEffect::JobChanged(Box::new(job)));
    }
}

/// The job as this step has left it: one message may speak of several attempts of one job, and its
/// row was fetched before the first of them was decided.
fn newest_row(fetched: Box<Job>, out: &Orders) -> Box<Job> {
    let written = out.writes.iter().rev().find_map(|write| match write {
        Write::Put { row: Row::Job(job), .. } if job.id == fetched.id => Some(job.clone()),
        _ => None,
    });
    written.unwrap_or(fetched)
}

fn charge(job: Arc<Job>, row: &LeasedRow) -> Job {
    let mut job = Arc::unwrap_or_clone(job);
    job.charged = job.charged.saturating_add(1);
    job.attempt_next = row.attempt.saturating_add(1);
    job
}

fn record_of(row: &LeasedRow, now: Now, result: AttemptResult, outcome: Outcome) -> AttemptRecord {
    AttemptRecord {
        no: row.attempt,
        token: row.token,
        worker: row.worker.clone(),
        granted_at: row.granted_at,
        ended_at: now.store,
        result,
        error: outcome.error.map(bounded_error),
        output: bounded_output(outcome.output),
    }
}

/// When the job's row is full, its oldest page of records goes into a row of its own, for good.
fn spill_records(job: &mut Job, out: &mut Orders) {
    if job.attempts.len() <= ATTEMPT_RECORDS_MAX {
        return;
    }
    let page = AttemptsRow::count_of(job);
    let is_older = |record: &&AttemptRecord| AttemptsRow::page_of(record.no) == page;
    let count = job.attempts.iter().take_while(is_older).count();
    let row = AttemptsRow {
        id: job.id,
        page,
        records: job.attempts.drain(..count).collect(),
    };
    out.put(Row::Attempts(Box::new(row)));
}

/// Whether it is what is recorded of the attempt, and no other word about it.
fn is_said_again(record: &AttemptRecord, outcome: &Outcome) -> bool {
    let error = outcome.error.as_deref().map(|error| cut(error, ERROR_BYTES_MAX));
    let known = record.error.as_deref();
    let before = known.map(|known| known.rsplit_once(CAME_BACK).map_or(known, |(before, _)| before));
    record.result == decide::result_of(outcome.verdict) && (known == error || before == error)
}

/// The record's error with what was said later; nothing if something is noted, or nothing was missing.
fn with_evidence(record: &AttemptRecord, verdict: Verdict) -> Option<Arc<str>> {
    let error = record.error.as_deref()?;
    if error.contains(CAME_BACK) {
        return None;
    }
    let said = match verdict {
        Verdict::Succeeded => "success",
        Verdict::Failed { .. } => "a failure",
        Verdict::TimedOut { .. } => "a time-out",
        Verdict::Cancelled { .. } => "that it had stopped",
    };
    let known = cut(error, ERROR_BYTES_MAX - CAME_BACK.len() - said.len());
    Some(Arc::from(format!("{known}{CAME_BACK}{said}")))
}

fn bounded_error(error: Arc<str>) -> Arc<str> {
    match error.len() <= ERROR_BYTES_MAX {
        true => error,
        false => Arc::from(cut(&error, ERROR_BYTES_MAX)),
    }
}

/// The longest beginning of so many bytes that ends at a character.
fn cut(text: &str, bytes_max: usize) -> &str {
    let most = bytes_max.min(text.len());
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.get(..end).unwrap_or("")
}

fn bounded_output(output: Arc<[u8]>) -> Arc<[u8]> {
    match output.len().checked_sub(OUTPUT_TAIL_BYTES_MAX) {
        None | Some(0) => output,
        Some(surplus) => Arc::from(output.get(surplus..).unwrap_or(&[])),
    }
}
