//! Firing by hand: once, now, without moving the rule.
//!
//! Owns: the request numbers that make a repeated request harmless. Must never: touch the cursor's
//! place or a fate.

use super::SchedulerShard;
use super::io::{FireNote, ScheduleReply};
use super::live::Live;
use super::refusals;
use super::settle::{Case, fire};
use super::step::Step;
use super::version::Discriminator;
use crate::fate::FateKind;
use crate::ids::JobId;
use crate::job::FireCause;
use crate::limits::REQUESTS_KEPT_MAX;
use crate::machine::ReplyTo;
use crate::name::Name;
use crate::refusal::Refusal;
use crate::schedule::EditKind;
use crate::time::StoreTime;

impl SchedulerShard {
    /// The job that a request makes or made: of its number and of this life of the name, so that a repeated
    /// request names the same job, also when the schedule has forgotten the number.
    pub fn run_now_id(&self, name: &(Name, Name), request: u64) -> Option<JobId> {
        let version = self.index.get(self.index.find(name)?)?.current()?;
        Some(version.job_id(StoreTime(0), Discriminator::RunNow(request)))
    }

    pub(super) fn on_run_now(
        &mut self,
        step: &mut Step<'_>,
        reply: ReplyTo,
        name: &(Name, Name),
        (request, made): (u64, Option<JobId>),
    ) {
        let answer = self.find(name).and_then(|place| {
            let answer = self.index.with(place, |live| {
                let answer = live.run_now(step, request, made);
                live.flush(step);
                answer
            });
            answer.unwrap_or_else(|| Err(refusals::not_found(name.1.as_str())))
        });
        step.reply(reply, answer);
    }
}

impl Live {
    fn run_now(&mut self, step: &mut Step<'_>, request: u64, made: Option<JobId>) -> Result<ScheduleReply, Refusal> {
        let Some(version) = self.current() else {
            return Err(refusals::quarantined(
                self.quarantined.as_deref().unwrap_or("its definition is missing"),
            ));
        };
        let id = version.job_id(step.now.store, Discriminator::RunNow(request));
        if self.has_seen(request) || made == Some(id) {
            return Ok(ScheduleReply::Ran(id));
        }
        step.need_room()?;
        self.remember(request);
        let case = Case {
            nominal: step.now.store,
            due: step.now.store,
            cause: FireCause::RunNow,
        };
        let number = version.definition.version;
        self.record(step, EditKind::RunNow, (number, number), None);
        let job = fire(step, &version, case, Discriminator::RunNow(request));
        step.note(FireNote {
            name: (self.cursor.tenant.clone(), self.cursor.name.clone()),
            incarnation: self.cursor.incarnation,
            kind: FateKind::FiredOnTime,
            nominal: case.nominal,
            due: case.due,
            at: step.now.store,
            count: None,
            job: Some(job),
            cause: Some(case.cause),
        });
        Ok(ScheduleReply::Ran(job))
    }

    /// Whether a request was carried out already.
    pub(super) fn has_seen(&self, request: u64) -> bool {
        self.cursor.requests.contains(&request)
    }

    /// Remembers a request, durably, among the newest.
    pub(super) fn remember(&mut self, request: u64) {
        self.cursor.requests.push(request);
        let surplus = self.cursor.requests.len().saturating_sub(REQUESTS_KEPT_MAX);
        self.cursor.requests.drain(..surplus);
        self.dirty = true;
    }
}
