//! Effects of a shard: answers, grants, orders to load, news.
//!
//! Owns: where each effect goes. Must never: be called before the effect's batches are durable.
//! Next: `gather.rs` (loads), `links.rs` (workers), `messages.rs`.

use crate::gateway::ShardReply;
use crate::shell::fates::Life;
use crate::shell::fetch::BadRow;
use crate::shell::shard_actor::ShardActor;
use actix::Context;
use fencepost_core::fate::FateKind;
use fencepost_core::lease_manager::io::{LeaseEffect, LeaseReply};
use fencepost_core::machine::ReplyTo;
use fencepost_core::refusal::Refusal;
use fencepost_core::row::RowKey;
use fencepost_core::scheduler_shard::io::{ScheduleEffect, ScheduleInput};
use fencepost_core::shard::{ShardEffect, ShardInput};
use fencepost_core::worker::io::WorkerInput;
use fencepost_storage::keys::key_bytes;

impl ShardActor {
    pub(crate) fn release(&mut self, effects: Vec<ShardEffect>, ctx: &mut Context<ShardActor>) {
        for effect in effects {
            match effect {
                ShardEffect::Schedule(ScheduleEffect::Reply(to, reply)) => {
                    self.answer(to, reply.map(ShardReply::Schedule));
                    self.tell_quarantined(false);
                }
                ShardEffect::Schedule(ScheduleEffect::Note(note)) => {
                    self.parts.notes.fired(&note);
                    self.tell_quarantined(note.kind == FateKind::Quarantined);
                }
                ShardEffect::Schedule(ScheduleEffect::AskTrialTurn) => self.ask_trial_turn(ctx),
                ShardEffect::Schedule(ScheduleEffect::TrialMarked) => {
                    self.step(ShardInput::Schedule(ScheduleInput::TrialMarked), ctx);
                }
                ShardEffect::Schedule(ScheduleEffect::EndTrialTurn) => self.trial = None,
                ShardEffect::Schedule(ScheduleEffect::LoadRequests { from, limit }) => {
                    self.load_requests(from, limit, ctx);
                }
                ShardEffect::Schedule(ScheduleEffect::LoadEdits { after, limit }) => {
                    self.load_edits(after, limit, ctx);
                }
                ShardEffect::Schedule(ScheduleEffect::LoadFates {
                    name,
                    incarnation,
                    after,
                    limit,
                }) => self.load_fates(Life { name, incarnation }, after, limit, ctx),
                ShardEffect::Schedule(ScheduleEffect::AuditFault { name, fault }) => {
                    self.parts.notes.audit_fault(&name.1, &fault);
                }
                ShardEffect::Lease(effect) => self.release_lease(effect, ctx),
            }
        }
    }

    fn release_lease(&mut self, effect: LeaseEffect, ctx: &mut Context<ShardActor>) {
        let Some(from) = self.open.as_ref().map(|open| open.owner) else {
            return;
        };
        match effect {
            LeaseEffect::Reply(to, reply) => self.answer_lease(to, reply),
            LeaseEffect::SendGrants {
                worker,
                offer,
                received_at,
                grants,
                more,
                apart,
            } => {
                let waited = self.parts.clock.mono().since(received_at);
                let grants = self.may_leave(grants);
                let granted = grants.iter().map(|grant| (grant.job.id, grant.token)).collect();
                let answer = WorkerInput::Granted {
                    from,
                    offer,
                    grants,
                    waited,
                    more,
                    apart,
                };
                let told = self.is_told(&worker, answer);
                self.on_grants_told((worker, offer), granted, told, ctx);
            }
            LeaseEffect::SendRenewed { worker, beat, held } => {
                self.tell(&worker, WorkerInput::Renewed { from, beat, held });
            }
            LeaseEffect::SendLost { worker, lost } => self.tell(&worker, WorkerInput::Lost { from, lost }),
            LeaseEffect::SendCancel { worker, id, token } => {
                self.tell(&worker, WorkerInput::CancelRequested { from, id, token });
            }
            LeaseEffect::SendBegun { worker, id, token } => self.tell(&worker, WorkerInput::Begun { id, token }),
            LeaseEffect::SendRecorded { worker, items } => self.tell(&worker, WorkerInput::Recorded { from, items }),
            LeaseEffect::SendReconcile { worker, items } => self.tell(&worker, WorkerInput::Reconcile { from, items }),
            LeaseEffect::HintReady => self.hint_workers(),
            LeaseEffect::LoadReady { class, from, limit } => self.load_ready(class, from, limit, ctx),
            LeaseEffect::LoadWait { from, limit } => self.load_wait(from, limit, ctx),
            LeaseEffect::LoadMoved { from, limit } => self.load_moved(from, limit, ctx),
            LeaseEffect::LoadSweep { from, limit } => self.load_sweep(from, limit, ctx),
            LeaseEffect::JobPurged { id, state } => self.parts.notes.job_purged(id, state),
            LeaseEffect::JobRepaired { id, what } => {
                tracing::error!(job = %id, what, "the sweep mended a job's rows");
            }
            LeaseEffect::JobRejected { id, reason } => {
                self.quarantine(vec![BadRow {
                    key: key_bytes(&RowKey::Job(id)).into(),
                    reason: reason.to_owned(),
                }]);
            }
            LeaseEffect::JobChanged(job) => self.parts.notes.job_changed(&job),
            LeaseEffect::AttemptEnded(job) => self.parts.notes.attempt_ended(&job),
        }
    }

    /// Tells how many schedules are in quarantine when that has changed; more only where `more` says so.
    pub(crate) fn tell_quarantined(&mut self, more: bool) {
        let Some(open) = self.open.as_ref().filter(|_| more || self.quarantined > 0) else {
            return;
        };
        let count = open.machine.scheduler().quarantined() as u64;
        if count != self.quarantined {
            self.quarantined = count;
            self.parts.notes.quarantined(self.parts.plan.shard, count);
        }
    }

    pub(crate) fn answer(&mut self, to: ReplyTo, reply: Result<ShardReply, Refusal>) {
        if let Some(answering) = self.replies.remove(&to) {
            // The caller may be gone; what it asked for is durable all the same.
            let _ = answering.send(reply);
        }
    }

    fn answer_lease(&mut self, to: ReplyTo, reply: LeaseReply) {
        let reply = match reply {
            LeaseReply::Created(items) => Ok(ShardReply::Created(items)),
            LeaseReply::Cancel(answer) => answer.map(ShardReply::Cancel),
            LeaseReply::Job(job) => job.map(ShardReply::Job),
        };
        self.answer(to, reply);
    }
}
