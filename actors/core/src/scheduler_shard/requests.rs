//! Requests that make jobs, each carried out once (PROTOCOL F26): the row that remembers one, what a repeated
//! one is answered, and the walk that drops rows whose time is over.
//!
//! Owns: request rows. Must never: keep one in memory, drop one in clock doubt or before what it made has ended,
//! or carry out a request whose row is there. Next: `run_now.rs`, `backfill.rs`.

use super::SchedulerShard;
use super::io::{ScheduleEffect, ScheduleReply, SweptRequest};
use super::live::Live;
use super::refusals;
use super::step::Step;
use crate::ids::{Incarnation, JobId, Slot};
use crate::level;
use crate::limits::{REQUEST_SWEEP_ROWS, REQUESTS_KEPT_MAX};
use crate::name::Name;
use crate::refusal::Refusal;
use crate::row::{Row, RowKey};
use crate::schedule::{RequestAnswer, RequestRow};
use crate::time::{Now, Span};

/// Version of the digests' own form.
pub(super) const DIGEST_PURPOSE: &str = "schedule request 1";

/// A request as far as it is told from others.
pub(super) struct Request {
    /// Of its key, or as drawn.
    pub(super) number: u64,
    pub(super) digest: [u8; 32],
    /// Its row, if it was carried out.
    pub(super) seen: Option<Box<RequestRow>>,
    /// How long its row will be kept after the end of what it makes; `None` where the cell has no such rows yet.
    pub(super) kept: Option<Span>,
}

/// What a request made.
pub(super) struct Made {
    pub(super) backlogs: (u32, u32),
    pub(super) jobs: Vec<JobId>,
}

impl Request {
    /// What it is answered when it was carried out in this life of the name, or another was under its key.
    pub(super) fn answered(&self, life: Incarnation) -> Option<Result<ScheduleReply, Refusal>> {
        let row = self.seen.as_ref().filter(|row| row.incarnation == life)?;
        Some(match row.digest == self.digest {
            true => Ok(row.answer.clone().into()),
            false => Err(refusals::key_reused()),
        })
    }

    /// Its row, once it is carried out.
    fn row(&self, live: &Live, now: Now, kept: Span, answer: RequestAnswer, made: Made) -> Row {
        Row::Request(Box::new(RequestRow {
            tenant: live.cursor.tenant.clone(),
            name: live.cursor.name.clone(),
            incarnation: live.cursor.incarnation,
            number: self.number,
            digest: self.digest,
            at: now.store,
            kept,
            answer,
            backlogs: made.backlogs,
            jobs: made.jobs,
        }))
    }
}

impl Live {
    /// Whether an owner of the version before remembered it in the cursor.
    pub(super) fn has_seen(&self, request: u64) -> bool {
        self.cursor.requests.contains(&request)
    }

    /// Remembers a request that was carried out, durably: by its row, and the numbers of the version before fall
    /// away one by one; or among these numbers, where the cell has no such rows yet.
    pub(super) fn remember(&mut self, step: &mut Step<'_>, request: &Request, answer: RequestAnswer, made: Made) {
        let kept_max = match request.kept {
            Some(kept) => {
                let row = request.row(self, step.now, kept, answer, made);
                step.out.put(row);
                self.cursor.requests.len().saturating_sub(1)
            }
            None => {
                self.cursor.requests.push(request.number);
                self.dirty = true;
                REQUESTS_KEPT_MAX
            }
        };
        let surplus = self.cursor.requests.len().saturating_sub(kept_max);
        self.cursor.requests.drain(..surplus);
        self.dirty |= surplus > 0;
    }
}

impl From<RequestAnswer> for ScheduleReply {
    fn from(answer: RequestAnswer) -> ScheduleReply {
        match answer {
            RequestAnswer::Ran(id) => ScheduleReply::Ran(id),
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

/// Where the walk over request rows is.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    /// Begin of the next page.
    from: Option<RowKey>,
    is_ordered: bool,
    /// All were met in this round.
    is_over: bool,
}

impl Requests {
    pub(super) fn is_waiting(&self) -> bool {
        self.is_ordered
    }

    pub(super) fn begin_round(&mut self) {
        *self = Requests::default();
    }

    /// Orders the next page; `false` when the round is over.
    pub(super) fn order(&mut self, step: &mut Step<'_>) -> bool {
        if self.is_over {
            return false;
        }
        self.is_ordered = true;
        step.out.effect(ScheduleEffect::LoadRequests {
            from: self.from.clone(),
            limit: REQUEST_SWEEP_ROWS,
        });
        true
    }
}

impl SchedulerShard {
    /// How long the row of a request is kept, where there are such rows.
    pub(super) fn request_kept(&self) -> Option<Span> {
        level::has_request_rows(self.level).then_some(self.facts.key_kept)
    }

    /// The name of the row of a request about the schedule that has this name now, where there are such rows.
    pub fn request_key(&self, name: &(Name, Name), number: u64) -> Option<RowKey> {
        self.request_kept()?;
        let life = self.incarnation_of(name)?;
        let slot = Slot::of_schedule(&name.0, &name.1);
        Some(RowKey::Request(slot, name.0.clone(), name.1.clone(), life, number))
    }

    pub(super) fn on_requests_loaded(
        &mut self,
        step: &mut Step<'_>,
        requests: Vec<SweptRequest>,
        next: Option<RowKey>,
    ) {
        for swept in requests {
            if self.is_request_over(step.now, &swept) {
                step.out.delete(Row::Request(Box::new(swept.row)).key());
            }
        }
        self.requests = Requests {
            is_over: next.is_none(),
            from: next,
            is_ordered: false,
        };
        self.page_came(step.now);
    }

    /// Whether a request was kept for its time after the end of all that it made. Of a life that is over none
    /// can be sent again.
    fn is_request_over(&self, now: Now, swept: &SweptRequest) -> bool {
        let row = &swept.row;
        let is_past = |at| !now.doubt && at <= now.store && now.store.since(at) >= row.kept;
        let live = self.index.find(&(row.tenant.clone(), row.name.clone()));
        let live = live.and_then(|place| self.index.get(place));
        let is_released = live
            .filter(|live| live.cursor.incarnation == row.incarnation)
            .is_none_or(|live| {
                let (first, count) = row.backlogs;
                live.backlogs.range(first..first.saturating_add(count)).next().is_none()
            });
        is_past(row.at) && is_released && swept.ends.iter().all(|end| end.is_some_and(is_past))
    }
}
