//! A shard whose store does not answer: it stays open, renews leases and takes nothing new.
//!
//! Owns: what is done without store time. Renewals go on, at the time last stated: nothing becomes
//! due, is skipped or expires by it (PROTOCOL F17, F20). Clients are told at once; workers repeat
//! what they said. Must never: grant, fire or keep a request in memory only. Next: `open_shard.rs`,
//! `patient.rs`.

use crate::shell::inbox::Waiting;
use crate::shell::messages::{FromWorker, outcome_unknown};
use crate::shell::shard_actor::ShardActor;
use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};
use fencepost_core::limits::{ANSWER_PATIENCE_MS, STORE_AWAY_MS};
use fencepost_core::time::Span;
use std::collections::VecDeque;

/// The store is away when a question has waited this long.
const AWAY_AFTER: Span = Span::from_millis(STORE_AWAY_MS);
/// Callers are told that the end of their request is not known when its batch has waited this long.
pub(super) const ANSWER_PATIENCE: Span = Span::from_millis(ANSWER_PATIENCE_MS);

impl ShardActor {
    /// Looks later whether this question is answered.
    pub(super) fn watch_question(&mut self, question: u64, ctx: &mut Context<ShardActor>) {
        let life = self.life;
        let wait = self.parts.clock.sleep(AWAY_AFTER);
        ctx.spawn(wait.into_actor(self).map(move |(), shard, ctx| {
            if shard.life == life {
                shard.on_unanswered(question, ctx);
            }
        }));
    }

    fn on_unanswered(&mut self, question: u64, ctx: &mut Context<ShardActor>) {
        let Some(open) = self.open.as_mut() else { return };
        if open.asking && open.questions == question {
            open.is_away = true;
            tracing::warn!(shard = self.parts.plan.shard.0, "the store does not answer");
            self.tell_unknown();
            self.renew(ctx);
        }
    }

    /// Whoever waits learns that what became of the request is not known; it may still be done.
    pub(super) fn tell_unknown(&mut self) {
        for (_, answering) in std::mem::take(&mut self.replies) {
            let _ = answering.send(Err(outcome_unknown()));
        }
    }

    /// The same once the oldest batch on its way has waited for so long.
    pub(super) fn tell_unknown_after(&mut self, patience: Span) {
        let now = self.parts.clock.mono();
        let first = self.open.as_ref().and_then(|open| open.flights.front());
        let waited = first.map(|flight| now.since(flight.sent_at));
        if waited.is_some_and(|waited| waited >= patience) {
            self.tell_unknown();
        }
    }

    /// Whether a worker's message is taken while the store is away.
    pub(super) fn is_taken_while_away(&self, message: &FromWorker) -> bool {
        let is_away = self.open.as_ref().is_some_and(|open| open.is_away);
        !is_away || matches!(message, FromWorker::Heartbeat { .. })
    }

    /// Steps the heartbeats that wait for store time.
    pub(super) fn renew(&mut self, ctx: &mut Context<ShardActor>) {
        let Some(open) = self.open.as_mut() else { return };
        let (beats, rest): (VecDeque<Waiting>, _) = std::mem::take(&mut open.inbox)
            .into_iter()
            .partition(Waiting::is_heartbeat);
        open.inbox = rest;
        for beat in beats {
            self.take_up(beat, ctx);
        }
    }
}
