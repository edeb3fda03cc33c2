//! One epoch of an open shard: stepping, committing, time.
//!
//! Owns: the loop "step at once, stamp, release when durable". Must
//! never: fire on a time that the store has not stated (PROTOCOL F20). Next: `log.rs`,
//! `flight.rs`, `release.rs`.

#[cfg(madsim)]
use crate::planted::{self, Bug};
use crate::shell::flight::Flight;
use crate::shell::hosting::reply_of;
use crate::shell::inbox::Waiting;
use crate::shell::load::Loaded;
use crate::shell::log::CommitLog;
use crate::shell::overlay::Overlay;
use crate::shell::shard_actor::{Ending, REOPEN_CAP, ShardActor};
use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};
use fencepost_core::ids::{BatchNo, JobId, Scope, ShardOwner, Token};
use fencepost_core::limits::{CLOCK_HELD_PACE_MS, DOUBT_PACE_MS, STATED_FRESH_MS};
use fencepost_core::machine::{Out, Wake};
use fencepost_core::scheduler_shard::OpenRefused;
use fencepost_core::shard::{Shard, ShardEffect, ShardFacts, ShardInput};
use fencepost_core::time::{Monotonic, Now, Span, StoreTime};
use fencepost_storage::store::{Stated, StoreError};
use futures_util::FutureExt;
use std::collections::{BTreeSet, VecDeque};

/// How old a stated time may be for a step to use it.
const STATED_FRESH: Span = Span::from_millis(STATED_FRESH_MS);
/// How often the store's clock is asked again while it is in doubt.
const DOUBT_POLL: Span = Span::from_millis(DOUBT_PACE_MS);
/// Longest pause between questions while the store's clock stands still (held after a step back, F20).
const HELD_POLL: Span = Span::from_millis(CLOCK_HELD_PACE_MS);

/// One epoch of an open shard.
pub struct OpenShard {
    pub(crate) machine: Shard,
    pub(crate) facts: ShardFacts,
    pub(crate) owner: ShardOwner,
    pub(crate) log: CommitLog<ShardEffect>,
    pub(crate) overlay: Overlay,
    stated: Stated,
    stated_at: Monotonic,
    /// A timer went off or a commit was answered since: the next step asks anew, so that what follows an
    /// answer is stamped after it.
    pub(super) is_stale: bool,
    /// How long not to ask again: grows while the store's clock stands still.
    held_poll: Span,
    pub(super) inbox: VecDeque<Waiting>,
    pub(super) asking: bool,
    /// How often the store's time was asked for and not there at once.
    pub(super) questions: u64,
    /// The store has not answered for a while: see `away.rs`.
    pub(super) is_away: bool,
    /// Grants that found no way to their worker, until they are taken back.
    pub(super) forsworn: BTreeSet<(JobId, Token)>,
    /// Batches sent and not settled, in order.
    pub(super) flights: VecDeque<Flight>,
    /// The next look at what is to be sent is on its way.
    pub(super) kicked: bool,
    steps: u64,
    /// Its opening is replayed and has passed the self-audit.
    pub(crate) is_audited: bool,
}

impl OpenShard {
    fn now(&self, mono: Monotonic) -> Now {
        #[cfg(madsim)]
        if planted::is_planted(Bug::FiresAhead) {
            return Now {
                store: self.stated.time + Span::from_secs(2),
                mono,
                doubt: self.stated.doubt,
            };
        }
        Now {
            store: self.stated.time,
            mono,
            doubt: self.stated.doubt,
        }
    }

    /// Whether nothing waits to be stepped, and nothing is stamped and not durable.
    pub(crate) fn is_idle(&self) -> bool {
        self.inbox.is_empty() && self.log.is_idle()
    }

    /// Store time as last stated.
    pub(crate) fn stated_time(&self) -> StoreTime {
        self.stated.time
    }

    /// Takes an answer of the store's clock as it is: one below the last comes of an audited lowering
    /// (F20). Questions are asked one at a time, so answers come in order; a commit's reply may be older
    /// than the last answer and states nothing here.
    fn on_stated(&mut self, stated: Stated, mono: Monotonic) {
        let passed = mono.since(self.stated_at);
        self.held_poll = match stated.time == self.stated.time {
            true => (self.held_poll + passed.max(self.held_poll)).min(HELD_POLL),
            false => Span::ZERO,
        };
        self.stated = stated;
        self.stated_at = mono;
        self.is_stale = false;
    }

    /// Moves sealed batches into the overlay, so that look-ups see them.
    pub(crate) fn sync_overlay(&mut self) {
        for batch in self.log.sealed() {
            self.overlay.push(batch.clone());
        }
    }

    /// When to step again at the latest, by this node's monotonic clock.
    fn wake_at(&self, mono: Monotonic) -> Option<Monotonic> {
        let Wake { mono: by_mono, store } = self.machine.next_wake();
        let by_store = store.map(|at| self.estimate(at, mono));
        [by_mono, by_store].into_iter().flatten().min()
    }

    /// When the store's clock will show `at`, by this node's monotonic clock. Only a guess of when
    /// it is worth asking.
    fn estimate(&self, at: StoreTime, mono: Monotonic) -> Monotonic {
        if self.stated.doubt {
            return mono + DOUBT_POLL;
        }
        self.stated_at + at.since(self.stated.time).max(self.held_poll)
    }
}

impl ShardActor {
    pub(crate) fn begin_epoch(&mut self, loaded: Loaded, ctx: &mut Context<ShardActor>) {
        let mono = self.parts.clock.mono();
        let plan = &self.parts.plan;
        let facts = ShardFacts {
            shard: plan.shard,
            map: plan.map,
            generation: plan.generation,
            epoch: loaded.epoch,
            holder: loaded.holder,
            lease: self.parts.lease,
            heartbeat: self.parts.heartbeat,
            key_kept: self.parts.level.key_kept(self.parts.key_kept),
        };
        let owner = ShardOwner {
            shard: plan.shard,
            generation: plan.generation,
            epoch: loaded.epoch,
        };
        let life = self.life;
        let asked = self.parts.store.now(Scope::Shard(plan.shard));
        ctx.spawn(asked.into_actor(self).map(move |stated, shard, ctx| {
            if shard.life != life {
                return;
            }
            match stated {
                Ok(stated) => shard.open_machine(loaded, facts, owner, stated, mono, ctx),
                Err(error) => shard.on_store_error(error, ctx),
            }
        }));
    }

    fn open_machine(
        &mut self,
        loaded: Loaded,
        facts: ShardFacts,
        owner: ShardOwner,
        stated: Stated,
        mono: Monotonic,
        ctx: &mut Context<ShardActor>,
    ) {
        let now = Now {
            store: stated.time,
            mono,
            doubt: stated.doubt,
        };
        let committed = BatchNo(u64::from(!loaded.marks.is_empty()));
        let mut out = Out::default();
        let machine = match Shard::open(facts, loaded.opened, now, &mut out) {
            Ok(mut machine) => {
                machine.set_level(self.parts.level.get());
                machine
            }
            Err(refusal) => {
                // Another build (F22) or other data may open it; the other shards go on.
                tracing::error!(shard = facts.shard.0, %refusal, "shard not opened");
                return self.refuse(&refusal, ctx);
            }
        };
        self.open = Some(Box::new(OpenShard {
            machine,
            facts,
            owner,
            log: CommitLog::after(committed),
            overlay: Overlay::default(),
            stated,
            stated_at: mono,
            is_stale: false,
            held_poll: Span::ZERO,
            inbox: VecDeque::new(),
            asking: false,
            questions: 0,
            is_away: false,
            forsworn: BTreeSet::new(),
            flights: VecDeque::new(),
            kicked: false,
            steps: 0,
            is_audited: false,
        }));
        self.quarantine(loaded.bad);
        self.tell_quarantined(true);
        self.stamp(out, ctx);
        tracing::debug!(shard = facts.shard.0, epoch = facts.epoch.0, "shard open");
        self.greet_workers();
        self.take_early_offers(ctx);
        self.on_timer(ctx);
    }

    /// What failed its self-audit is not opened again by this process: each opening raises the epoch, and
    /// rows of a later epoch would be taken for older ones after so many of them (P4).
    fn refuse(&mut self, refusal: &OpenRefused, ctx: &mut Context<ShardActor>) {
        self.refused = Some(why_shut(refusal));
        self.reopen_delay = REOPEN_CAP;
        self.stays_shut = matches!(refusal, OpenRefused::SelfAudit(_));
        self.close("refused", ctx);
    }

    /// Hands an input to the machines as soon as a fresh stated time is there.
    pub(crate) fn step(&mut self, input: ShardInput, ctx: &mut Context<ShardActor>) {
        self.take_up_later(Waiting::Input(input), ctx);
    }

    pub(super) fn pump(&mut self, ctx: &mut Context<ShardActor>) {
        let mono = self.parts.clock.mono();
        let Some(open) = self.open.as_mut() else { return };
        if open.asking {
            if open.is_away {
                self.renew(ctx);
            }
            return;
        }
        if open.is_stale || mono.since(open.stated_at) > STATED_FRESH || open.stated.doubt {
            let mut asked = self.parts.store.now(Scope::Shard(self.parts.plan.shard));
            match (&mut asked).now_or_never() {
                Some(Ok(stated)) => open.on_stated(stated, mono),
                Some(Err(error)) => return self.on_store_error(error, ctx),
                None => {
                    open.asking = true;
                    open.questions += 1;
                    let (life, question) = (self.life, open.questions);
                    ctx.spawn(asked.into_actor(self).map(move |stated, shard, ctx| {
                        if shard.life == life {
                            shard.on_asked(stated, ctx);
                        }
                    }));
                    return self.watch_question(question, ctx);
                }
            }
        }
        self.drain_inbox(mono, ctx);
    }

    fn on_asked(&mut self, stated: Result<Stated, StoreError>, ctx: &mut Context<ShardActor>) {
        let mono = self.parts.clock.mono();
        let Some(open) = self.open.as_mut() else { return };
        open.asking = false;
        if std::mem::take(&mut open.is_away) {
            open.machine.came_back(mono);
            tracing::info!(shard = self.parts.plan.shard.0, "the store answers again");
        }
        match stated {
            Ok(stated) => open.on_stated(stated, mono),
            Err(error) => return self.on_store_error(error, ctx),
        }
        self.drain_inbox(mono, ctx);
    }

    fn drain_inbox(&mut self, mono: Monotonic, ctx: &mut Context<ShardActor>) {
        if let Some(open) = self.open.as_mut().filter(|open| !open.inbox.is_empty()) {
            open.machine.set_full(self.parts.store.is_full());
            open.machine.set_holds_back(self.parts.trust.holds_back());
            open.machine
                .set_key_kept(self.parts.level.key_kept(self.parts.key_kept));
            open.machine.set_level(self.parts.level.get());
        }
        while let Some(waiting) = self.open.as_mut().and_then(|open| open.inbox.pop_front()) {
            self.take_up(waiting, ctx);
        }
        self.audit_itself(ctx);
        self.arm_timer(mono, ctx);
    }

    /// Steps at the time last stated: only where that is fresh, or where no time decides.
    pub(super) fn step_now(&mut self, input: ShardInput, ctx: &mut Context<ShardActor>) {
        let mono = self.parts.clock.mono();
        let Some(open) = self.open.as_mut() else { return };
        #[cfg(feature = "test-switches")]
        crate::process::switches::panic_in("shard");
        let mut out = Out::default();
        let now = open.now(mono);
        #[cfg(madsim)]
        let now = Now {
            store: match planted::is_planted(Bug::DueByOwnClock) {
                true => now.store.max(StoreTime(self.parts.clock.wall())),
                false => now.store,
            },
            ..now
        };
        open.machine.step(now, input, &mut out);
        open.steps += 1;
        if cfg!(debug_assertions) && open.steps.is_multiple_of(16) {
            open.machine.check();
        }
        self.stamp(out, ctx);
    }

    /// Once after an opening, when what is due first is in memory: until then the node is not ready.
    fn audit_itself(&mut self, ctx: &mut Context<ShardActor>) {
        let Some(open) = self.open.as_mut() else { return };
        if open.is_audited || !open.machine.is_replayed() {
            return;
        }
        match open.machine.self_audit() {
            Ok(()) => {
                open.is_audited = true;
                self.refused = None;
            }
            Err(fault) => {
                tracing::error!(shard = open.facts.shard.0, %fault, "self-audit failed");
                self.refuse(&OpenRefused::SelfAudit(fault), ctx);
            }
        }
    }

    /// Numbers a step's writes and releases what need not wait.
    fn stamp(&mut self, out: Out<ShardEffect>, ctx: &mut Context<ShardActor>) {
        #[cfg(madsim)]
        if planted::is_planted(Bug::WriteFreeReplyEarly) && out.writes.is_empty() {
            return self.release(out.effects, ctx);
        }
        let at_once = |effect: &ShardEffect| {
            #[cfg(feature = "test-switches")]
            if crate::process::switches::is_planted("ack-before-commit") {
                return true;
            }
            may_overtake(effect)
        };
        let (at_once, held): (Vec<_>, Vec<_>) = out.effects.into_iter().partition(at_once);
        let is_unproven = out.writes.is_empty() && !self.parts.hosted;
        let (unproven, held): (Vec<_>, Vec<_>) = held
            .into_iter()
            .partition(|effect| is_unproven && reply_of(effect).is_some());
        self.answer_when_proven(unproven, ctx);
        let Some(open) = self.open.as_mut() else { return };
        #[cfg_attr(not(madsim), allow(unused_mut))]
        let mut released = open.log.stamp(out.writes, held);
        #[cfg(madsim)]
        if planted::is_planted(Bug::ReleasedBeforeDurable) {
            released.extend(open.log.release_all());
        }
        self.release(at_once, ctx);
        self.release(released, ctx);
        self.kick_later(ctx);
    }

    pub(crate) fn on_store_error(&mut self, error: StoreError, ctx: &mut Context<ShardActor>) {
        match error {
            StoreError::Broken(reason) => (self.parts.fatal)(Ending::StoreBroke(reason)),
            StoreError::Unavailable(reason) => self.close(&reason, ctx),
        }
    }

    pub(super) fn arm_timer(&mut self, mono: Monotonic, ctx: &mut Context<ShardActor>) {
        let Some(open) = self.open.as_ref() else { return };
        let Some(at) = open.wake_at(mono) else { return };
        if let Some((armed, handle)) = self.timer {
            if armed <= at {
                return;
            }
            ctx.cancel_future(handle);
        }
        let life = self.life;
        let sleeping = self.parts.clock.sleep_exactly(at.since(mono));
        let handle = ctx.spawn(sleeping.into_actor(self).map(move |(), shard, ctx| {
            if shard.life == life {
                shard.timer = None;
                shard.on_timer(ctx);
            }
        }));
        self.timer = Some((at, handle));
    }

    fn on_timer(&mut self, ctx: &mut Context<ShardActor>) {
        if let Some(open) = self.open.as_mut() {
            open.is_stale = true;
        }
        self.step(ShardInput::Tick, ctx);
    }
}

/// For those who may not see names; the log says more.
fn why_shut(refusal: &OpenRefused) -> &'static str {
    match refusal {
        OpenRefused::NewerZoneData { .. } => "was planned with newer zone data than this build has",
        OpenRefused::SelfAudit(_) => "failed its self-audit",
    }
}

/// Renewals may overtake a batch (F3); reads of ranges show nothing to anyone.
fn may_overtake(effect: &ShardEffect) -> bool {
    use fencepost_core::lease_manager::io::LeaseEffect;
    use fencepost_core::scheduler_shard::io::ScheduleEffect;
    matches!(
        effect,
        ShardEffect::Lease(
            LeaseEffect::SendRenewed { .. }
                | LeaseEffect::LoadReady { .. }
                | LeaseEffect::LoadWait { .. }
                | LeaseEffect::LoadMoved { .. }
                | LeaseEffect::LoadSweep { .. }
        ) | ShardEffect::Schedule(
            ScheduleEffect::LoadFates { .. } | ScheduleEffect::LoadRequests { .. } | ScheduleEffect::LoadEdits { .. }
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_core::ids::{BeatId, Epoch, Generation, JobId, Slot, Token, WorkerId};
    use fencepost_core::lease_manager::io::LeaseEffect;

    #[test]
    fn f03_a_renewal_overtakes_and_the_word_of_a_cancel_waits_for_its_batch() {
        let worker = WorkerId {
            node: fencepost_core::name::Name::new("a").unwrap(),
            boot: 1,
        };
        let id = JobId::fresh(Slot::new(0).unwrap(), [1; 14]);
        let token = Token {
            generation: Generation(1),
            epoch: Epoch(1),
            sequence: 1,
        };
        let renewed = LeaseEffect::SendRenewed {
            worker: worker.clone(),
            beat: BeatId(1),
            held: Vec::new(),
        };
        assert!(may_overtake(&ShardEffect::Lease(renewed)));
        for held in [
            LeaseEffect::SendCancel {
                worker: worker.clone(),
                id,
                token,
            },
            LeaseEffect::SendLost {
                worker: worker.clone(),
                lost: vec![(id, token)],
            },
            LeaseEffect::SendBegun { worker, id, token },
            LeaseEffect::HintReady,
        ] {
            assert!(!may_overtake(&ShardEffect::Lease(held)));
        }
    }
}
