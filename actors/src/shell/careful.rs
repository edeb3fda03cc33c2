//! Before and between evaluations: the owner's mark, the pause after young deaths, the turn of a trial.
//!
//! Owns: PROTOCOL F9's marks as far as they are IO. Must never: let the machines see a row before the
//! owner's mark is durable. Next: `load.rs`, `fencepost_core::scheduler_shard` (marks, trials).

use crate::chance::draw_holder;
use crate::shell::load::{Loaded, leave};
use crate::shell::shard_actor::ShardActor;
use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};
use fencepost_core::ids::{BatchNo, Scope};
use fencepost_core::limits::{YOUNG_DEATH_PAUSE_MS, YOUNG_DEATH_PAUSE_MS_MAX};
use fencepost_core::scheduler_shard::io::ScheduleInput;
use fencepost_core::shard::ShardInput;
use fencepost_core::time::Span;
use fencepost_storage::codec::encode_batch;
use fencepost_storage::store::{Commit, Committed};
use std::sync::Arc;

impl ShardActor {
    /// Writes the owner's mark as the first batch of its epoch, then begins.
    pub(crate) fn mark_owner(&mut self, loaded: Loaded, ctx: &mut Context<ShardActor>) {
        if loaded.marks.is_empty() {
            return self.begin_epoch(loaded, ctx);
        }
        self.is_marked = true;
        let batch = match encode_batch(&loaded.marks, false) {
            Ok(batch) => Arc::new(batch),
            Err(error) => return self.close(&error.to_string(), ctx),
        };
        let committing = self.parts.store.commit(Commit {
            scope: Scope::Shard(self.parts.plan.shard),
            holder: loaded.holder,
            epoch: loaded.epoch,
            number: BatchNo(1),
            batch,
        });
        let pause = pause_after(loaded.deaths).map(|pause| self.parts.clock.sleep(pause));
        let marking = async move {
            let committed = committing.await;
            if let Some(pause) = pause {
                pause.await;
            }
            committed
        };
        let life = self.life;
        ctx.spawn(marking.into_actor(self).map(move |committed, shard, ctx| {
            if shard.life == life {
                shard.on_marked(committed, loaded, ctx);
            }
        }));
    }

    /// Told to stop while no machine is open: what this process marked is no death. A mark still on its way
    /// is of an older epoch then, and refused.
    pub(crate) fn take_back_mark(&mut self, ctx: &mut Context<ShardActor>) {
        self.life += 1;
        if !std::mem::take(&mut self.is_marked) {
            return;
        }
        self.is_leaving = true;
        let holder = draw_holder(&*self.parts.chance);
        let leaving = leave(self.parts.store.clone(), self.parts.plan.clone(), holder);
        ctx.spawn(leaving.into_actor(self).map(|left, shard, _| {
            if let Err(error) = left {
                tracing::warn!(shard = shard.parts.plan.shard.0, %error, "the owner's mark stays");
            }
            shard.is_leaving = false;
            shard.settle();
        }));
    }

    /// Nothing was decided on yet, so another open settles what is not known (F2).
    fn on_marked(&mut self, committed: Committed, loaded: Loaded, ctx: &mut Context<ShardActor>) {
        match committed {
            Committed::Committed(_) | Committed::Already(_) => self.begin_epoch(loaded, ctx),
            Committed::Conflict(what) => self.close(&format!("conflict: {what}"), ctx),
            Committed::Stale => self.close("stale epoch", ctx),
            Committed::Full => self.close("disk full", ctx),
            Committed::Unavailable(reason) | Committed::Unknown(reason) => self.close(&reason, ctx),
        }
    }

    /// Waits until no other shard of this node makes a trial.
    pub(crate) fn ask_trial_turn(&mut self, ctx: &mut Context<ShardActor>) {
        let life = self.life;
        let turn = self.parts.trial_turn.clone().acquire_owned();
        ctx.spawn(turn.into_actor(self).map(move |turn, shard, ctx| {
            if shard.life == life {
                shard.trial = turn.ok();
                shard.step(ShardInput::Schedule(ScheduleInput::TrialTurn), ctx);
            }
        }));
    }
}

/// Takeovers of a shard whose owners die young are spaced out.
fn pause_after(deaths: u32) -> Option<Span> {
    let more = deaths.checked_sub(2)?;
    let pause = YOUNG_DEATH_PAUSE_MS << more.min(16);
    Some(Span::from_millis(pause.min(YOUNG_DEATH_PAUSE_MS_MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f9_takeovers_of_a_shard_whose_owners_die_young_are_spaced_out() {
        let pauses: Vec<_> = (0..6).map(pause_after).collect();
        let ms = |ms| Some(Span::from_millis(ms));
        assert_eq!(pauses, [None, None, ms(250), ms(500), ms(1_000), ms(2_000)]);
        assert_eq!(pause_after(u32::MAX), ms(YOUNG_DEATH_PAUSE_MS_MAX));
    }
}
