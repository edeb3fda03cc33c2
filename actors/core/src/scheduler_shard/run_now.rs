//! Firing by hand: once, now, without moving the rule.
//!
//! Owns: what such a request makes. Must never: touch the cursor's place or a fate, or fire twice for one
//! request. Next: `requests.rs`.

use super::SchedulerShard;
use super::io::{FireNote, MadeBefore, ScheduleReply};
use super::live::Live;
use super::refusals;
use super::requests::{DIGEST_PURPOSE, Made, Request, is_kept};
use super::settle::{Case, fire};
use super::step::Step;
use super::version::Discriminator;
use crate::fate::FateKind;
use crate::ids::{JobId, digest};
use crate::job::{FireCause, KEY_KEPT};
use crate::machine::ReplyTo;
use crate::name::Name;
use crate::refusal::Refusal;
use crate::schedule::{EditKind, RequestAnswer, RequestRow};
use crate::time::StoreTime;

impl SchedulerShard {
    /// The job that the version before made or makes of a request in this life of the name.
    pub fn run_now_id(&self, name: &(Name, Name), request: u64) -> Option<JobId> {
        let version = self.index.get(self.index.find(name)?)?.current()?;
        Some(version.job_id(StoreTime(0), Discriminator::RunNow(request, StoreTime(0))))
    }

    pub(super) fn on_run_now(
        &mut self,
        step: &mut Step<'_>,
        reply: ReplyTo,
        name: &(Name, Name),
        (number, seen, made): (u64, Option<Box<RequestRow>>, Option<MadeBefore>),
    ) {
        let request = Request {
            number,
            digest: digest(DIGEST_PURPOSE, &[b"run-now"]),
            seen,
            kept: self.request_kept(),
        };
        let answer = self.find(name).and_then(|place| {
            let answer = self.index.with(place, |live| {
                let answer = live.run_now(step, &request, made);
                live.flush(step);
                answer
            });
            answer.unwrap_or_else(|| Err(refusals::not_found(name.1.as_str())))
        });
        step.reply(reply, answer);
    }
}

impl Live {
    fn run_now(
        &mut self,
        step: &mut Step<'_>,
        request: &Request,
        made: Option<MadeBefore>,
    ) -> Result<ScheduleReply, Refusal> {
        if let Some(answer) = request.answered(self.cursor.incarnation) {
            return answer;
        }
        let Some(version) = self.current() else {
            return Err(refusals::quarantined(
                self.quarantined.as_deref().unwrap_or("its definition is missing"),
            ));
        };
        let earlier = version.job_id(StoreTime(0), Discriminator::RunNow(request.number, StoreTime(0)));
        // Where its key makes another job after its time, that time is over some day; the job stays for longer.
        let is_over = |end: Option<StoreTime>| request.kept.is_some() && !is_kept(step.now, end, KEY_KEPT);
        let is_made = made.is_some_and(|(id, end)| id == earlier && !is_over(end));
        if self.was_carried_out_before(request) || is_made {
            return Ok(ScheduleReply::Ran {
                job: earlier,
                replayed: true,
            });
        }
        step.need_room()?;
        let case = Case {
            nominal: step.now.store,
            due: step.now.store,
            cause: FireCause::RunNow,
        };
        let number = version.definition.version;
        self.record(step, EditKind::RunNow, (number, number), None);
        // No two entries of a life's history are of one instant, so no two run-nows name one job.
        // The version before has one id for a key for ever.
        let recorded_at = request.kept.and(self.recorded_at).unwrap_or(StoreTime(0));
        let job = fire(step, &version, case, Discriminator::RunNow(request.number, recorded_at));
        let made = Made {
            backlogs: (self.cursor.backlog_next, 0),
            jobs: vec![job],
        };
        self.remember(step, request, RequestAnswer::Ran(job), made);
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
        Ok(ScheduleReply::Ran { job, replayed: false })
    }
}
