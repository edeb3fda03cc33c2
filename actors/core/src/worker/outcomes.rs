//! Reporting: outcomes until they are recorded, hand-backs until they are acknowledged.
//!
//! Owns: what is still to be told. Must never: forget an outcome that is not recorded (F18). While a
//! message is on its way, later outcomes gather for the next: a busy worker sends few large
//! messages, an idle one sends at once. Next: `drain.rs`.

use super::WorkerMachine;
use super::book::{Done, Key, Phase, ShardBook};
use super::io::WorkerEffect;
use super::timers::Timer;
use crate::ids::{JobId, ShardId, ShardOwner, Token};
use crate::job::Outcome;
use crate::lease_manager::io::Recorded;
use crate::limits;
use crate::time::{Monotonic, Span};
use std::collections::{BTreeMap, BTreeSet};

const RETRY_FIRST: Span = Span::from_millis(limits::OUTCOME_RETRY_FIRST_MS);
const RETRY_CAP: Span = Span::from_millis(limits::OUTCOME_RETRY_CAP_MS);

impl WorkerMachine {
    /// What ended together is told together, shard by shard.
    pub(super) fn on_finished(
        &mut self,
        now: Monotonic,
        items: Vec<(JobId, Token, Outcome)>,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let mut touched = BTreeSet::new();
        for (id, token, outcome) in items {
            let shard = self.shard_of(id);
            if self.end_run(shard, (id, token), outcome) {
                touched.insert(shard);
            }
        }
        for shard in touched {
            self.send_outcomes(now, shard, effects);
        }
    }

    /// Runs that were given to someone who proves that nothing was done: they go back (F14). One whose lease is
    /// over is another's by now.
    pub(super) fn on_not_started(&mut self, now: Monotonic, items: Vec<Key>, effects: &mut Vec<WorkerEffect>) {
        let mut back: BTreeMap<ShardId, Vec<Key>> = BTreeMap::new();
        for key in items {
            let shard = self.shard_of(key.0);
            if self.is_beginning(shard, &key) {
                continue;
            }
            if let Some(run) = self.remove_run(shard, key)
                && !run.told_lost
            {
                back.entry(shard).or_default().push(key);
            }
        }
        for (shard, keys) in back {
            self.hand_back(now, shard, keys, effects);
        }
    }

    /// A run has really ended: its slot is free, its lease is held on. False if there is no such run.
    fn end_run(&mut self, shard: ShardId, key: Key, outcome: Outcome) -> bool {
        if self.is_beginning(shard, &key) {
            return false;
        }
        let Some(run) = self.remove_run(shard, key) else {
            return false;
        };
        debug_assert!(matches!(run.phase, Phase::Running));
        let Some(book) = self.book_mut(shard) else { return false };
        let held = !run.told_lost;
        let sent_at = None;
        book.done.insert(key, Done { outcome, held, sent_at });
        book.unsent.push_back(key);
        self.unrecorded += 1;
        true
    }

    /// Sends what has gathered once it is at least as much as what is on its way.
    fn send_outcomes(&mut self, now: Monotonic, shard: ShardId, effects: &mut Vec<WorkerEffect>) {
        let Some(book) = self.books.get_mut(usize::from(shard.0)) else {
            return;
        };
        while !book.unsent.is_empty() {
            let enough = book.in_flight.min(limits::OUTCOME_ITEMS_MAX);
            if book.unsent.len() < enough {
                return;
            }
            let items = next_batch(book, now);
            if items.is_empty() {
                return;
            }
            book.in_flight += items.len();
            effects.push(WorkerEffect::SendOutcomes { shard, items });
            if book.outcomes_at.is_none() {
                book.outcome_retry = book.outcome_retry.max(RETRY_FIRST);
                let retry_at = Some(now + book.outcome_retry);
                self.timers
                    .move_to(&mut book.outcomes_at, retry_at, Timer::Outcomes(shard));
            }
        }
    }

    /// Sends all of it, and waits for the shortest time again.
    pub(super) fn send_outcomes_soon(&mut self, now: Monotonic, shard: ShardId, effects: &mut Vec<WorkerEffect>) {
        let Some(book) = self.books.get_mut(usize::from(shard.0)) else {
            return;
        };
        book.outcome_retry = RETRY_FIRST;
        let retry_at = (!book.done.is_empty()).then_some(now + RETRY_FIRST);
        self.timers
            .move_to(&mut book.outcomes_at, retry_at, Timer::Outcomes(shard));
        self.send_outcomes(now, shard, effects);
    }

    /// What was sent and not recorded for a while goes out again, later and later while nothing is
    /// heard at all.
    pub(super) fn on_outcomes_due(&mut self, now: Monotonic, shard: ShardId, effects: &mut Vec<WorkerEffect>) {
        let Some(book) = self.books.get_mut(usize::from(shard.0)) else {
            return;
        };
        book.outcomes_at = None;
        let mut overdue = 0;
        for (key, done) in &mut book.done {
            if done.sent_at.is_some_and(|at| at + book.outcome_retry <= now) {
                done.sent_at = None;
                book.unsent.push_back(*key);
                overdue += 1;
            }
        }
        book.in_flight -= overdue;
        if overdue > 0 {
            book.outcome_retry = (book.outcome_retry + book.outcome_retry).min(RETRY_CAP);
        }
        let retry_at = (!book.done.is_empty()).then_some(now + book.outcome_retry);
        self.timers
            .move_to(&mut book.outcomes_at, retry_at, Timer::Outcomes(shard));
        self.send_outcomes(now, shard, effects);
    }

    /// Durable, or too late for good. "Too late" counts only from the newest owner: an older one may
    /// not know the attempt.
    pub(super) fn on_recorded(
        &mut self,
        now: Monotonic,
        from: ShardOwner,
        items: &[(JobId, Token, Recorded)],
        effects: &mut Vec<WorkerEffect>,
    ) {
        let shard = from.shard;
        let Some(book) = self.books.get_mut(usize::from(shard.0)) else {
            return;
        };
        let current = book.hear(from);
        let mut told = Vec::new();
        for (id, token, recorded) in items {
            let counts = match recorded {
                Recorded::Recorded => true,
                Recorded::Stale => current,
            };
            let key = (*id, *token);
            if !counts {
                continue;
            }
            if book.hand_backs.remove(&key).is_some() {
                told.push((*id, *token, *recorded));
                continue;
            }
            let Some(done) = book.done.remove(&key) else { continue };
            told.push((*id, *token, *recorded));
            book.in_flight -= usize::from(done.sent_at.is_some());
            self.unrecorded -= 1;
            book.outcome_retry = RETRY_FIRST;
        }
        if !told.is_empty() {
            effects.push(WorkerEffect::TellRecorded { items: told });
        }
        // Steady progress must not put off what was lost on its way: the timer only moves forward.
        let soonest = book.outcomes_at.map(|at| at.min(now + RETRY_FIRST));
        let retry_at = soonest.filter(|_| !book.done.is_empty());
        self.timers
            .move_to(&mut book.outcomes_at, retry_at, Timer::Outcomes(shard));
        self.send_outcomes(now, shard, effects);
    }

    /// Forswears attempts for ever: their tokens are marked as seen, so none of them can start here.
    pub(super) fn hand_back(
        &mut self,
        now: Monotonic,
        shard: ShardId,
        items: Vec<Key>,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let Some(book) = self.books.get_mut(usize::from(shard.0)) else {
            return;
        };
        if items.is_empty() {
            return;
        }
        let free = limits::HAND_BACKS_OPEN_MAX.saturating_sub(book.hand_backs.len());
        book.hand_backs.extend(items.iter().take(free).map(|key| (*key, 1)));
        if book.hand_backs_at.is_none() && !book.hand_backs.is_empty() {
            let again_at = Some(Self::after(now, RETRY_FIRST.min(self.config.heartbeat.half())));
            self.timers
                .move_to(&mut book.hand_backs_at, again_at, Timer::HandBacks(shard));
        }
        effects.push(WorkerEffect::SendHandBack { shard, items });
    }

    /// As if none of them had been sent.
    pub(super) fn hand_back_again(&mut self, now: Monotonic, shard: ShardId, effects: &mut Vec<WorkerEffect>) {
        let Some(book) = self.books.get_mut(usize::from(shard.0)) else {
            return;
        };
        book.hand_backs.values_mut().for_each(|sends| *sends = 0);
        self.timers
            .move_to(&mut book.hand_backs_at, None, Timer::HandBacks(shard));
        self.on_hand_backs_due(now, shard, effects);
    }

    /// A lost hand-back costs the job an attempt, so it is sent until the newest owner has answered: taken
    /// back, or too late for good. When its lease ends there nobody here can know, for an outage of the
    /// store prolongs it. It is never silent for longer than half a heartbeat: an owner that hears again
    /// waits for a whole one before it reaps (F17).
    pub(super) fn on_hand_backs_due(&mut self, now: Monotonic, shard: ShardId, effects: &mut Vec<WorkerEffect>) {
        let Some(book) = self.books.get_mut(usize::from(shard.0)) else {
            return;
        };
        book.hand_backs_at = None;
        let Some(most) = book.hand_backs.values().max().copied() else {
            return;
        };
        book.hand_backs
            .values_mut()
            .for_each(|sends| *sends = sends.saturating_add(1));
        let items = book.hand_backs.keys().copied().collect();
        effects.push(WorkerEffect::SendHandBack { shard, items });
        let pause = Span(RETRY_FIRST.0 << most.min(4)).min(self.config.heartbeat.half());
        let again_at = Some(Self::after(now, pause));
        self.timers
            .move_to(&mut book.hand_backs_at, again_at, Timer::HandBacks(shard));
    }
}

/// Takes outcomes off the line, up to the limits of one message.
fn next_batch(book: &mut ShardBook, now: Monotonic) -> Vec<(JobId, Token, Outcome)> {
    let mut items = Vec::new();
    let mut bytes = 0;
    while items.len() < limits::OUTCOME_ITEMS_MAX && bytes < limits::OUTCOME_BYTES_MAX {
        let Some(key) = book.unsent.pop_front() else { break };
        let Some(done) = book.done.get_mut(&key) else { continue };
        done.sent_at = Some(now);
        bytes += done.bytes();
        items.push((key.0, key.1, done.outcome.clone()));
    }
    items
}
