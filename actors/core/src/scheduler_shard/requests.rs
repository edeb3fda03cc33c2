//! Requests that make jobs, each carried out once (PROTOCOL F26): the row that remembers one, what a repeated
//! one is answered, and the walk that drops rows whose time is over.
//!
//! Owns: request rows; that they may be written depends on the cell's level, what one says does not. Must never: keep
//! one in memory, drop one in clock doubt or before what it made has ended, or carry out a request whose row is
//! there. Next: `run_now.rs`, `backfill.rs`.

use super::SchedulerShard;
use super::io::{ScheduleEffect, ScheduleReply, SweptRequest};
use super::live::Live;
use super::refusals;
use super::step::Step;
use super::version::Discriminator;
use crate::ids::{Incarnation, JobId, Slot};
use crate::job::KEY_KEPT;
use crate::limits::{REQUEST_SWEEP_ROWS, REQUESTS_KEPT_MAX, SWEEP_ROWS};
use crate::name::Name;
use crate::refusal::Refusal;
use crate::row::{Row, RowKey};
use crate::schedule::{RequestAnswer, RequestRow};
use crate::time::{Now, Span, StoreTime};

/// Version of the digests' own form.
pub(super) const DIGEST_PURPOSE: &str = "schedule request 1";

/// In place of the digest of a request that the version before carried out: it kept a number, and neither what was
/// asked for nor what was answered.
const NO_DIGEST: [u8; 32] = [0; 32];

/// A request as far as it is told from others.
pub(super) struct Request {
    /// Of its key, or as drawn.
    pub(super) number: u64,
    pub(super) digest: [u8; 32],
    /// Its row, if it was carried out.
    pub(super) seen: Option<Box<RequestRow>>,
    /// How long its row will be kept after the end of what it makes; `None` where no such row may be written yet.
    pub(super) kept: Option<Span>,
}

/// What a request made.
pub(super) struct Made {
    pub(super) backlogs: (u32, u32),
    pub(super) jobs: Vec<JobId>,
}

impl Request {
    fn seen_in(&self, life: Incarnation) -> Option<&RequestRow> {
        self.seen.as_deref().filter(|row| row.incarnation == life)
    }

    /// What it is answered when it was carried out in this life of the name, or another was under its key.
    pub(super) fn answered(&self, life: Incarnation) -> Option<Result<ScheduleReply, Refusal>> {
        let row = self.seen_in(life).filter(|row| row.digest != NO_DIGEST)?;
        Some(match row.digest == self.digest {
            true => Ok(row.answer.clone().into()),
            false => Err(refusals::key_reused()),
        })
    }
}

impl Live {
    /// Whether the version before carried it out: its number was all that was remembered, in the cursor first.
    pub(super) fn was_carried_out_before(&self, request: &Request) -> bool {
        let row = request.seen_in(self.cursor.incarnation);
        self.cursor.requests.contains(&request.number) || row.is_some_and(|row| row.digest == NO_DIGEST)
    }

    /// Remembers a request that was carried out, durably: by its row, or by its number in the cursor, where no such row
    /// may be written yet.
    pub(super) fn remember(&mut self, step: &mut Step<'_>, request: &Request, answer: RequestAnswer, made: Made) {
        let Some(kept) = request.kept else {
            self.cursor.requests.push(request.number);
            let surplus = self.cursor.requests.len().saturating_sub(REQUESTS_KEPT_MAX);
            self.cursor.requests.drain(..surplus);
            self.dirty = true;
            return;
        };
        let row = self.request_row(step.now, (request.number, request.digest), (answer, made));
        step.out.put(Row::Request(Box::new(RequestRow { kept, ..row })));
    }

    /// Once rows may be written: what was remembered by its number gets one, so that it is answered for as long as
    /// its key is kept, however many others come, and no longer. It is not known which of the backlogs and jobs are of
    /// which number: all the backlogs that there are now are waited for, and the job that a run-now made.
    pub(super) fn move_numbers(&mut self, step: &mut Step<'_>) {
        if self.cursor.requests.is_empty() || !step.level.has_request_rows() || step.now.doubt || step.is_full {
            return;
        }
        let Some(version) = self.current() else {
            return;
        };
        for number in std::mem::take(&mut self.cursor.requests) {
            let job = version.job_id(StoreTime(0), Discriminator::RunNow(number, StoreTime(0)));
            let made = Made {
                backlogs: (0, self.cursor.backlog_next),
                jobs: vec![job],
            };
            let row = self.request_row(step.now, (number, NO_DIGEST), (RequestAnswer::Ran(job), made));
            step.out.put(Row::Request(Box::new(row)));
        }
        self.dirty = true;
    }

    fn request_row(
        &self,
        now: Now,
        (number, digest): (u64, [u8; 32]),
        (answer, made): (RequestAnswer, Made),
    ) -> RequestRow {
        RequestRow {
            tenant: self.cursor.tenant.clone(),
            name: self.cursor.name.clone(),
            incarnation: self.cursor.incarnation,
            number,
            digest,
            at: now.store,
            kept: KEY_KEPT,
            answer,
            backlogs: made.backlogs,
            jobs: made.jobs,
        }
    }
}

/// What was remembered is told to a request that comes again.
impl From<RequestAnswer> for ScheduleReply {
    fn from(answer: RequestAnswer) -> ScheduleReply {
        match answer {
            RequestAnswer::Ran(job) => ScheduleReply::Ran { job, replayed: true },
            RequestAnswer::Backfill {
                count,
                instants,
                already_fired,
                over_cap,
            } => ScheduleReply::Backfill {
                count,
                instants,
                already_fired,
                over_cap,
            },
        }
    }
}

/// Whether what ended then, or not yet, is still kept for its time. In clock doubt everything is.
pub(super) fn is_kept(now: Now, end: Option<StoreTime>, kept: Span) -> bool {
    now.doubt || end.is_none_or(|at| at > now.store || now.store.since(at) < kept)
}

impl SchedulerShard {
    /// How long the row of a request is kept, where one may be written.
    pub(super) fn request_kept(&self) -> Option<Span> {
        self.level.has_request_rows().then_some(self.facts.key_kept)
    }

    /// The name of the row of a request about the schedule that has this name now. An owner that has not heard yet
    /// that rows may be written looks for those of an owner that had.
    pub fn request_key(&self, name: &(Name, Name), number: u64) -> Option<RowKey> {
        let life = self.incarnation_of(name)?;
        let slot = Slot::of_schedule(&name.0, &name.1);
        Some(RowKey::Request(slot, name.0.clone(), name.1.clone(), life, number))
    }

    /// Orders the next page of rows; `false` when the round is over. While most of them go they are walked over as fast
    /// as jobs are purged: each request made one, or asked for it in vain.
    pub(super) fn order_requests(&mut self, step: &mut Step<'_>) -> bool {
        let limit = if self.requests.is_busy() {
            SWEEP_ROWS
        } else {
            REQUEST_SWEEP_ROWS
        };
        let Some(from) = self.requests.order() else {
            return false;
        };
        step.out.effect(ScheduleEffect::LoadRequests { from, limit });
        true
    }

    pub(super) fn on_requests_loaded(
        &mut self,
        step: &mut Step<'_>,
        requests: Vec<SweptRequest>,
        next: Option<RowKey>,
    ) {
        let (count, mut dropped) = (requests.len(), 0);
        for swept in requests {
            if self.is_request_over(step.now, &swept) {
                step.out.delete(Row::Request(Box::new(swept.row)).key());
                dropped += 1;
            }
        }
        self.requests.on_page(next, (dropped, count));
        self.page_came(step.now, self.requests.is_busy());
    }

    /// Whether a request was kept for its time after the end of all that it made. Of a life that is over none
    /// can be sent again.
    fn is_request_over(&self, now: Now, swept: &SweptRequest) -> bool {
        let row = &swept.row;
        let is_past = |end| !is_kept(now, end, row.kept);
        let live = self.index.find(&(row.tenant.clone(), row.name.clone()));
        let live = live.and_then(|place| self.index.get(place));
        let is_released = live
            .filter(|live| live.cursor.incarnation == row.incarnation)
            .is_none_or(|live| {
                let (first, count) = row.backlogs;
                live.backlogs.range(first..first.saturating_add(count)).next().is_none()
            });
        is_past(Some(row.at)) && is_released && swept.ends.iter().copied().all(is_past)
    }
}
