//! A shard that comes to this node and goes again.
//!
//! Owns: opening and closing on the host's word, and asking the store whether it is still ours. Must never:
//! take the word for a proof; what this owner may write or say is the store's to decide. Next:
//! `shard_actor.rs`, `../cluster/member.rs`.

use crate::shell::away::ANSWER_PATIENCE;
use crate::shell::messages::{FromWorker, outcome_unknown};
use crate::shell::shard_actor::{REOPEN_FIRST, ShardActor};
use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};
use fencepost_core::ids::{Scope, WorkerId};
use fencepost_core::lease_manager::io::LeaseEffect;
use fencepost_core::machine::ReplyTo;
use fencepost_core::scheduler_shard::io::ScheduleEffect;
use fencepost_core::shard::ShardEffect;
use fencepost_core::worker::io::WorkerInput;
use futures_util::future::{Either, select};

impl ShardActor {
    pub(crate) fn on_host(&mut self, hosted: bool, ctx: &mut Context<ShardActor>) {
        let was_hosted = std::mem::replace(&mut self.hosted, hosted);
        self.draining = false;
        if hosted && !was_hosted && !self.stays_shut {
            self.reopen_delay = REOPEN_FIRST;
            self.begin_open(ctx);
        }
        if !hosted {
            self.forget_epoch(outcome_unknown, ctx);
            // Its mark is the next owner's to judge.
            self.is_marked = false;
            if !self.stays_shut {
                self.refused = None;
            }
        }
    }

    /// The lease is over, so another node may have been named. Only a plain no closes the shard: a store that
    /// does not answer says nothing (F17).
    pub(crate) fn on_prove(&mut self, ctx: &mut Context<ShardActor>) {
        let Some(open) = self.open.as_ref() else { return };
        let (scope, life) = (Scope::Shard(open.facts.shard), self.life);
        let asked = self.parts.store.check(scope, open.facts.holder, open.facts.epoch);
        ctx.spawn(asked.into_actor(self).map(move |is_ours, shard, ctx| {
            if shard.life == life && is_ours == Ok(false) {
                shard.close("another node owns it", ctx);
            }
        }));
    }

    /// Answers of a step that wrote nothing rest on what this owner remembers: no commit proves that it is one
    /// still (F32). Where other nodes may own the shard, the store is asked after the step.
    pub(super) fn answer_when_proven(&mut self, replies: Vec<ShardEffect>, ctx: &mut Context<ShardActor>) {
        let Some(open) = self.open.as_ref().filter(|_| !replies.is_empty()) else {
            return;
        };
        let (scope, life) = (Scope::Shard(open.facts.shard), self.life);
        let asked = self.parts.store.check(scope, open.facts.holder, open.facts.epoch);
        let proving = select(asked, self.parts.clock.sleep(ANSWER_PATIENCE));
        ctx.spawn(proving.into_actor(self).map(move |proved, shard, ctx| {
            if shard.life != life {
                return;
            }
            match proved {
                Either::Left((Ok(true), _)) => shard.hold_back(replies, ctx),
                Either::Left((Ok(false), _)) => shard.close("another node owns it", ctx),
                Either::Left((Err(error), _)) => shard.on_store_error(error, ctx),
                Either::Right(((), _)) => replies.iter().filter_map(reply_of).for_each(|reply| {
                    shard.answer(reply, Err(outcome_unknown()));
                }),
            }
        }));
    }

    fn hold_back(&mut self, replies: Vec<ShardEffect>, ctx: &mut Context<ShardActor>) {
        let Some(open) = self.open.as_mut() else { return };
        let released = open.log.stamp(Vec::new(), replies);
        self.release(released, ctx);
    }

    /// An offer keeps no room at its worker, and is the first to be answered if the shard comes here.
    pub(crate) fn keep_offer(&mut self, worker: WorkerId, message: FromWorker) {
        if let Some(link) = self.links.get(&worker) {
            link(WorkerInput::ShardAway(self.parts.plan.shard));
        }
        if matches!(message, FromWorker::Offer { .. }) {
            self.keep_early(worker, message);
        }
    }
}

/// Whom an effect answers, if it is a client.
pub(super) fn reply_of(effect: &ShardEffect) -> Option<ReplyTo> {
    match effect {
        ShardEffect::Schedule(ScheduleEffect::Reply(to, _)) | ShardEffect::Lease(LeaseEffect::Reply(to, _)) => {
            Some(*to)
        }
        ShardEffect::Schedule(_) | ShardEffect::Lease(_) => None,
    }
}
