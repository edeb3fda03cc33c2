//! Batches of an open shard on their way to the store, a few at a time, in order.
//!
//! Owns: sending, sending again, and what each answer means (PROTOCOL F2). Answers count in the order
//! of the numbers: what the store says to a batch whose predecessor is not settled may say no more than
//! that the predecessor was lost. Must never: settle an unknown end by reading, or change a batch that
//! was sent. Next: `log.rs` (numbers), `open_shard.rs` (steps), `release.rs` (effects).

#[cfg(madsim)]
use crate::planted::{self, Bug};
use crate::shell::away::ANSWER_PATIENCE;
use crate::shell::log::Sealed;
use crate::shell::shard_actor::{REOPEN_FIRST, ShardActor};
use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};
use fencepost_core::ids::{BatchNo, Scope};
use fencepost_core::limits::{BATCH_FLIGHTS_MAX, COMMIT_RESEND_CAP_MS, COMMIT_RESEND_FIRST_MS};
use fencepost_core::machine::{Expect, Write};
use fencepost_core::refusal::storage_full;
use fencepost_core::row::Row;
use fencepost_core::time::{Monotonic, Span};
use fencepost_storage::codec::encode_batch;
use fencepost_storage::store::{Commit, Committed};
use metrics::counter;
use std::rc::Rc;
use std::sync::Arc;

/// First pause before a batch is sent again.
const RESEND_FIRST: Span = Span::from_millis(COMMIT_RESEND_FIRST_MS);
/// Longest pause before a batch is sent again.
const RESEND_CAP: Span = Span::from_millis(COMMIT_RESEND_CAP_MS);

/// A batch that was sent and is not settled.
pub(super) struct Flight {
    sealed: Rc<Sealed>,
    commit: Commit,
    /// When it was sent first.
    pub(super) sent_at: Monotonic,
    /// The next pause before it is sent again; grows with each.
    pause: Span,
    /// It was sent last while a batch before it was not settled.
    is_behind: bool,
    /// What the store said; looked at once all before it are settled.
    answer: Option<Committed>,
}

impl ShardActor {
    /// Sends what is stamped once the messages that wait have been stepped, too: they share a batch.
    pub(super) fn kick_later(&mut self, ctx: &mut Context<ShardActor>) {
        let Some(open) = self.open.as_mut() else { return };
        if std::mem::replace(&mut open.kicked, true) {
            return;
        }
        let life = self.life;
        ctx.spawn(std::future::ready(()).into_actor(self).map(move |(), shard, ctx| {
            if shard.life == life {
                shard.kick(ctx);
            }
        }));
    }

    /// Sends the next batches, as many as may be on their way.
    fn kick(&mut self, ctx: &mut Context<ShardActor>) {
        let Some(open) = self.open.as_mut() else { return };
        open.kicked = false;
        while let Some(open) = self.open.as_mut().filter(|open| open.flights.len() < BATCH_FLIGHTS_MAX) {
            let Some(sealed) = open.log.next_to_commit(open.flights.len()) else {
                return self.settle();
            };
            open.sync_overlay();
            let batch = match encode_batch(sealed.writes.as_slice(), makes_work(sealed.writes.as_slice())) {
                Ok(batch) => Arc::new(batch),
                Err(error) => return self.close(&error.to_string(), ctx),
            };
            let commit = Commit {
                scope: Scope::Shard(open.facts.shard),
                holder: open.facts.holder,
                epoch: open.facts.epoch,
                number: sealed.number,
                batch,
            };
            open.flights.push_back(Flight {
                is_behind: !open.flights.is_empty(),
                sealed,
                commit: commit.clone(),
                sent_at: self.parts.clock.mono(),
                pause: RESEND_FIRST,
                answer: None,
            });
            self.send(commit, ctx);
        }
    }

    fn send(&mut self, commit: Commit, ctx: &mut Context<ShardActor>) {
        let (life, number) = (self.life, commit.number);
        let sending = self.parts.store.commit(commit);
        ctx.spawn(sending.into_actor(self).map(move |committed, shard, ctx| {
            if shard.life == life {
                shard.on_answered(number, committed, ctx);
            }
        }));
    }

    fn on_answered(&mut self, number: BatchNo, committed: Committed, ctx: &mut Context<ShardActor>) {
        let Some(open) = self.open.as_mut() else { return };
        if let Some(flight) = open.flights.iter_mut().find(|flight| flight.sealed.number == number) {
            flight.answer = Some(committed);
        }
        while let Some(answer) = self.first_answer() {
            self.on_committed(answer, ctx);
        }
    }

    /// The answer to the oldest batch on its way, if it is there.
    fn first_answer(&mut self) -> Option<Committed> {
        let open = self.open.as_mut()?;
        open.flights.front_mut()?.answer.take()
    }

    /// The oldest batch on its way has its answer.
    fn on_committed(&mut self, committed: Committed, ctx: &mut Context<ShardActor>) {
        let Some(flight) = self.open.as_mut().and_then(|open| open.flights.front_mut()) else {
            return;
        };
        match committed {
            Committed::Committed(_) | Committed::Already(_) => self.on_durable(ctx),
            #[cfg(madsim)]
            Committed::Unknown(_) if planted::is_planted(Bug::UnknownTakenForDurable) => self.on_durable(ctx),
            #[cfg(madsim)]
            Committed::Unknown(_) if planted::is_planted(Bug::UnknownNeverSentAgain) => {}
            Committed::Unavailable(reason) | Committed::Unknown(reason) => {
                let number = flight.sealed.number.0;
                tracing::warn!(
                    shard = self.parts.plan.shard.0,
                    number,
                    reason,
                    "commit to be sent again"
                );
                self.tell_unknown_after(ANSWER_PATIENCE);
                self.resend_later(ctx);
            }
            // The one before it was lost on its way then, and is settled now.
            Committed::Stale if flight.is_behind => self.send_first_again(ctx),
            Committed::Stale => {
                counter!("fencepost_commits_refused_total", "reason" => "stale").increment(1);
                self.close("stale epoch", ctx);
            }
            Committed::Conflict(what) => {
                counter!("fencepost_commits_refused_total", "reason" => "conflict").increment(1);
                self.close(&format!("conflict: {what}"), ctx);
            }
            // Room ran out since the step. A batch sent once and refused was not done, nor was any after it.
            Committed::Full if flight.pause == RESEND_FIRST => self.close_telling("disk full", storage_full, ctx),
            Committed::Full => self.close("disk full", ctx),
        }
    }

    /// Sends the oldest batch on its way again: the same bytes under the same number.
    fn send_first_again(&mut self, ctx: &mut Context<ShardActor>) {
        let Some(flight) = self.open.as_mut().and_then(|open| open.flights.front_mut()) else {
            return;
        };
        flight.is_behind = false;
        let commit = flight.commit.clone();
        self.send(commit, ctx);
    }

    fn resend_later(&mut self, ctx: &mut Context<ShardActor>) {
        let Some(flight) = self.open.as_mut().and_then(|open| open.flights.front_mut()) else {
            return;
        };
        let (life, wait) = (self.life, self.parts.clock.sleep(flight.pause));
        flight.pause = Span((flight.pause.0 * 2).min(RESEND_CAP.0));
        ctx.spawn(wait.into_actor(self).map(move |(), shard, ctx| {
            if shard.life == life {
                shard.send_first_again(ctx);
            }
        }));
    }

    /// The oldest batch on its way is durable.
    fn on_durable(&mut self, ctx: &mut Context<ShardActor>) {
        let mono = self.parts.clock.mono();
        let Some(open) = self.open.as_mut() else { return };
        let Some(flight) = open.flights.pop_front() else { return };
        open.is_stale = true;
        self.reopen_delay = REOPEN_FIRST;
        let released = open.log.durable(flight.sealed.number);
        open.overlay.durable(flight.sealed.number);
        self.release(released, ctx);
        self.kick_later(ctx);
        self.arm_timer(mono, ctx);
    }
}

/// Whether a batch inserts a job or a schedule: such batches are refused on a full disk.
fn makes_work(writes: &[Write]) -> bool {
    let inserts = |write: &Write| match write {
        Write::Put {
            row: Row::Job(_) | Row::Definition(_),
            expect,
        } => *expect == Expect::Absent,
        Write::Put { .. } | Write::Delete(_) => false,
    };
    writes.iter().any(inserts)
}
