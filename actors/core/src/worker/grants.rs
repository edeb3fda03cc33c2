//! Taking grants: which to start, which to hand back, and until when they may run.
//!
//! Owns: the way from a grant to a start. Must never: start what was handed back, or start an
//! at-most-once attempt before its begin is durable (F15). Next: `leases.rs`.

use super::WorkerMachine;
use super::book::{Key, OpenOffer, Phase, Run, ShardBook};
use super::io::WorkerEffect;
use super::timers::Timer;
use crate::ids::{OfferId, ShardId, ShardOwner};
use crate::job::Delivery;
use crate::lease_manager::io::{Grant, Suspect};
use crate::time::{Monotonic, Span};

/// An answer to an offer.
pub(super) struct Answer {
    pub(super) offer: OfferId,
    pub(super) grants: Vec<Grant>,
    pub(super) waited: Span,
    pub(super) more: bool,
    pub(super) apart: Option<Suspect>,
}

impl WorkerMachine {
    pub(super) fn on_granted(
        &mut self,
        now: Monotonic,
        from: ShardOwner,
        answer: Answer,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let shard = from.shard;
        let Some(book) = self.book_mut(shard) else { return };
        book.hear(from);
        let asked = self.match_offer(shard, answer.offer);
        let mut back = Vec::new();
        let granted_some = !answer.grants.is_empty();
        let granted_apart = answer.grants.iter().any(|grant| grant.job.has_lost_a_worker());
        for grant in answer.grants {
            let key = (grant.job.id, grant.token);
            if !self.is_news(shard, &key) {
                continue;
            }
            if let Some(book) = self.book_mut(shard) {
                book.seen.note(grant.token);
            }
            match self.lease_end(now, &asked, answer.waited, grant.length) {
                Some(ends_at) if self.shard_of(key.0) == shard => self.take(now, shard, grant, ends_at, effects),
                Some(_) | None => back.push(key),
            }
        }
        self.hand_back(now, shard, back, effects);
        if let Some(asked) = asked {
            let idle = asked.waits && !granted_some;
            // A place that was offered in vain is not offered again at once.
            let may_ask = |first: &Suspect| granted_apart || first.lost > asked.apart;
            let first = answer.apart.filter(|first| asked.apart == 0 || may_ask(first));
            self.note_apart(now, shard, first);
            self.after_answer(now, shard, granted_some && answer.more, idle, effects);
        }
    }

    /// The open offer, if this is its number. Any other was given up or answered before.
    fn match_offer(&mut self, shard: ShardId, id: OfferId) -> Option<OpenOffer> {
        let book = self.book_mut(shard)?;
        let open = book.offer.as_ref().is_some_and(|offer| offer.id == id);
        if open { self.close_offer(shard) } else { None }
    }

    /// Whether it was certainly never here. What is not news is a repetition: it runs, has run, or
    /// was forsworn, and answering again could be a lie.
    fn is_news(&self, shard: ShardId, key: &Key) -> bool {
        let book = self.books.get(usize::from(shard.0));
        book.is_some_and(|book| !book.knows(key) && book.seen.is_new(key.1))
    }

    /// End of a lease by our own count (F13): never later than the owner's, which counts the full
    /// length from releasing the grant. `None` if it must go back: not asked for, no slot, too late.
    fn lease_end(&self, now: Monotonic, asked: &Option<OpenOffer>, waited: Span, length: Span) -> Option<Monotonic> {
        let offer = asked.as_ref()?;
        let room = self.room() > 0;
        let length = length - self.config.lease_margin;
        let ends_at = (offer.sent_at + waited + length).min(now + length);
        (room && ends_at > now).then_some(ends_at)
    }

    fn take(
        &mut self,
        now: Monotonic,
        shard: ShardId,
        grant: Grant,
        ends_at: Monotonic,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let (id, token) = (grant.job.id, grant.token);
        let mut run = Run {
            phase: Phase::Running,
            ends_at,
            lease_at: None,
            told_cancel: false,
            told_lost: false,
            told_drain: false,
        };
        self.timers
            .move_to(&mut run.lease_at, Some(ends_at), Timer::Lease(id, token));
        match grant.job.workers_lost() {
            0 => {}
            lost => self.begin_apart(now, (id, token), lost),
        }
        match grant.job.spec.delivery {
            Delivery::AtLeastOnce => {
                let left = ends_at.since(now);
                effects.push(WorkerEffect::StartAttempt { grant, shard, left });
            }
            Delivery::AtMostOnce => {
                let mut begin_at = None;
                let again_at = Self::after(now, self.config.offer_repeat);
                self.timers
                    .move_to(&mut begin_at, Some(again_at), Timer::Begin(id, token));
                let grant = Box::new(grant);
                run.phase = Phase::Beginning { grant, begin_at };
                effects.push(WorkerEffect::SendBegin { shard, id, token });
            }
        }
        self.used += 1;
        let heartbeat_at = Self::after(now, self.config.heartbeat);
        let Some(book) = self.books.get_mut(usize::from(shard.0)) else {
            return;
        };
        book.runs.insert((id, token), run);
        if book.heartbeat_at.is_none() {
            self.timers
                .move_to(&mut book.heartbeat_at, Some(heartbeat_at), Timer::Heartbeat(shard));
        }
    }

    /// `declined`: the shard did not keep an offer that was to wait; the sweep tries again.
    fn after_answer(
        &mut self,
        now: Monotonic,
        shard: ShardId,
        more: bool,
        declined: bool,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let Some(book) = self.book_mut(shard) else { return };
        book.slow = false;
        book.hinted |= more;
        match (book.hinted, declined) {
            (true, _) => self.put_in_line(shard),
            (false, true) => {}
            (false, false) => self.let_wait(now, shard, effects),
        }
    }

    /// Forswears what was never here. On what runs, has run or went back already it keeps silent: the
    /// heartbeats and reports say the rest.
    pub(super) fn on_reconcile(
        &mut self,
        now: Monotonic,
        from: ShardOwner,
        items: &[Key],
        effects: &mut Vec<WorkerEffect>,
    ) {
        let shard = from.shard;
        let Some(book) = self.book_mut(shard) else { return };
        book.hear(from);
        let mut back = items.to_vec();
        back.retain(|key| self.is_news(shard, key));
        if let Some(book) = self.book_mut(shard) {
            back.iter().for_each(|(_, token)| book.seen.note(*token));
        }
        self.hand_back(now, shard, back, effects);
    }

    /// The begin is durable: start it. One that was given up meanwhile is not known any more.
    pub(super) fn on_begun(&mut self, now: Monotonic, key: Key, effects: &mut Vec<WorkerEffect>) {
        let shard = self.shard_of(key.0);
        let Some(book) = self.books.get_mut(usize::from(shard.0)) else {
            return;
        };
        let Some(run) = book.runs.get_mut(&key) else { return };
        match std::mem::replace(&mut run.phase, Phase::Running) {
            Phase::Running => {}
            Phase::Beginning { grant, mut begin_at } => {
                self.timers.move_to(&mut begin_at, None, Timer::Begin(key.0, key.1));
                let left = run.ends_at.since(now);
                effects.push(WorkerEffect::StartAttempt {
                    grant: *grant,
                    shard,
                    left,
                });
            }
        }
    }

    pub(super) fn on_begin_due(&mut self, now: Monotonic, key: Key, effects: &mut Vec<WorkerEffect>) {
        let shard = self.shard_of(key.0);
        let again_at = Self::after(now, self.config.offer_repeat);
        let Some(book) = self.books.get_mut(usize::from(shard.0)) else {
            return;
        };
        let Some(run) = book.runs.get_mut(&key) else { return };
        let Phase::Beginning { begin_at, .. } = &mut run.phase else {
            return;
        };
        *begin_at = None;
        let (id, token) = key;
        self.timers.move_to(begin_at, Some(again_at), Timer::Begin(id, token));
        effects.push(WorkerEffect::SendBegin { shard, id, token });
    }

    /// Takes a run out and frees its slot.
    pub(super) fn remove_run(&mut self, shard: ShardId, key: Key) -> Option<Run> {
        let book: &mut ShardBook = self.books.get_mut(usize::from(shard.0))?;
        let mut run = book.runs.remove(&key)?;
        self.timers.move_to(&mut run.lease_at, None, Timer::Lease(key.0, key.1));
        if let Phase::Beginning { begin_at, .. } = &mut run.phase {
            self.timers.move_to(begin_at, None, Timer::Begin(key.0, key.1));
        }
        self.used -= 1;
        self.end_apart_run(key);
        Some(run)
    }
}
