//! What people ask of jobs that exist: cancel, send back, settle.
//!
//! Owns: the three honest answers to a cancel. Must never: answer "cancelled" while an attempt may
//! still start. Next: `outcomes.rs`, `places.rs`.

use super::decide::CANCELLED;
use super::io::{CancelAnswer, LeaseEffect, LeaseReply, Settlement};
use super::places::put_job;
use super::{LeaseManager, Orders};
use crate::ids::JobId;
use crate::job::{Delivery, Job, JobState, Place};
use crate::machine::ReplyTo;
use crate::refusal::{Refusal, RefusalKind};
use crate::time::Now;
use std::sync::Arc;

const SETTLED_AS_DEAD: &str = "settled: no effect, given up";
const SETTLED_AS_SUCCEEDED: &str = "settled: the effect is there";

impl LeaseManager {
    /// A client asks to cancel.
    pub(super) fn on_cancel_job(
        &mut self,
        now: Now,
        reply: ReplyTo,
        id: JobId,
        job: Option<Box<Job>>,
        out: &mut Orders,
    ) {
        let answer = match job {
            None => Err(not_found(id)),
            Some(_) if self.leases.get(id).is_some() => Ok(self.cancel_leased(now, id, out)),
            Some(job) if job.state.is_finished() => Ok(CancelAnswer::Finished(job.state)),
            Some(job) => Ok(self.cancel_unstarted(now, *job, out)),
        };
        out.effect(LeaseEffect::Reply(reply, LeaseReply::Cancel(answer)));
    }

    /// Waiting, ready or uncertain: no attempt starts after this.
    fn cancel_unstarted(&mut self, now: Now, mut job: Job, out: &mut Orders) -> CancelAnswer {
        self.leave_place(&job, out);
        job.cancel_requested_at = Some(now.store);
        let from = job.state;
        let job = self.finish(now, job, (from, JobState::Cancelled), Some(CANCELLED));
        put_job(&job, out);
        out.effect(LeaseEffect::JobChanged(Box::new(job)));
        CancelAnswer::Cancelled
    }

    /// An attempt is current: it is asked to stop, now and at each heartbeat. One that needs a durable
    /// begin and has none has not started, and never will.
    fn cancel_leased(&mut self, now: Now, id: JobId, out: &mut Orders) -> CancelAnswer {
        let Some(lease) = self.leases.get_mut(id) else {
            return CancelAnswer::Cancelled;
        };
        if lease.job.spec.delivery == Delivery::AtMostOnce && !lease.row.begun {
            return self.cancel_unbegun(now, id, out);
        }
        let attempt = lease.row.attempt;
        out.effect(LeaseEffect::SendCancel {
            worker: lease.row.worker.clone(),
            id,
            token: lease.row.token,
        });
        if lease.job.cancel_requested_at.is_none() {
            let mut job = Job::clone(&lease.job);
            job.version += 1;
            job.state = JobState::Leased;
            job.place = Place::Leased;
            job.cancel_requested_at = Some(now.store);
            put_job(&job, out);
            out.effect(LeaseEffect::JobChanged(Box::new(job.clone())));
            lease.job = Arc::new(job);
        }
        CancelAnswer::Running { attempt }
    }

    fn cancel_unbegun(&mut self, now: Now, id: JobId, out: &mut Orders) -> CancelAnswer {
        if let Some(lease) = self.leases.remove(id) {
            let mut job = self.refund(now, lease.job, &lease.row, out);
            job.cancel_requested_at = Some(now.store);
            let job = self.finish(now, job, (JobState::Leased, JobState::Cancelled), Some(CANCELLED));
            put_job(&job, out);
            out.effect(LeaseEffect::AttemptEnded(Box::new(job)));
        }
        CancelAnswer::Cancelled
    }

    /// A person sends a dead job back: same identity, key and history; its budget of attempts begins
    /// anew, their numbers go on.
    pub(super) fn on_retry_dead(
        &mut self,
        now: Now,
        reply: ReplyTo,
        id: JobId,
        job: Option<Box<Job>>,
        out: &mut Orders,
    ) {
        let answer = match job {
            None => Err(not_found(id)),
            Some(job) if job.state != JobState::Dead => Err(wrong_state("job_not_dead", &job, "dead")),
            Some(job) => Ok(self.send_back(now, *job, JobState::Dead, out)),
        };
        out.effect(LeaseEffect::Reply(reply, LeaseReply::Job(answer)));
    }

    /// A person says what became of an uncertain job.
    pub(super) fn on_settle_uncertain(
        &mut self,
        now: Now,
        reply: ReplyTo,
        (id, job): (JobId, Option<Box<Job>>),
        verdict: Settlement,
        out: &mut Orders,
    ) {
        let answer = match job {
            None => Err(not_found(id)),
            Some(job) if job.state != JobState::Uncertain => Err(wrong_state("job_not_uncertain", &job, "uncertain")),
            Some(job) => Ok(self.settle(now, *job, verdict, out)),
        };
        out.effect(LeaseEffect::Reply(reply, LeaseReply::Job(answer)));
    }

    fn settle(&mut self, now: Now, job: Job, verdict: Settlement, out: &mut Orders) -> Box<Job> {
        let from = JobState::Uncertain;
        let job = Box::new(match verdict {
            Settlement::Succeeded => {
                self.leave_place(&job, out);
                self.finish(now, job, (from, JobState::Succeeded), Some(SETTLED_AS_SUCCEEDED))
            }
            Settlement::Dead => {
                self.leave_place(&job, out);
                self.give_up(now, job, from, SETTLED_AS_DEAD, out)
            }
            Settlement::Retry => return self.send_back(now, job, from, out),
        });
        put_job(&job, out);
        out.effect(LeaseEffect::JobChanged(job.clone()));
        job
    }

    fn send_back(&mut self, now: Now, mut job: Job, from: JobState, out: &mut Orders) -> Box<Job> {
        self.leave_place(&job, out);
        job.charged = 0;
        job.cancel_requested_at = None;
        let job = Box::new(self.revive(job, from, now.store, out));
        put_job(&job, out);
        out.effect(LeaseEffect::JobChanged(job.clone()));
        job
    }
}

fn not_found(id: JobId) -> Refusal {
    Refusal::new(
        RefusalKind::NotFound,
        "job_not_found",
        format!("there is no job {id}"),
        "Check the id; finished jobs are kept for some days only.",
    )
    .at("id")
}

fn wrong_state(code: &'static str, job: &Job, wanted: &str) -> Refusal {
    Refusal::new(
        RefusalKind::Conflict,
        code,
        format!("{} is not {wanted}", job.id),
        match job.state {
            JobState::Uncertain => "It is uncertain: settle it with what you found.",
            JobState::Dead => "It is dead: send it back with a retry.",
            JobState::Waiting | JobState::Ready | JobState::Leased => "It goes on; someone may have been faster.",
            JobState::Succeeded | JobState::Cancelled | JobState::Expired => "It has ended; make a new job.",
        },
    )
}
