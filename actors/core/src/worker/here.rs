//! An owner that can be reached again: what it has not answered goes out at once.
//!
//! Owns: saying everything anew, in one step. Whoever says that the owner is there may be wrong or say it
//! twice: repeats change nothing at an owner (F14, F18). Must never: count as a repeat of its own, or end a
//! lease or an offer. Next: `offers.rs`, `outcomes.rs`.

use super::WorkerMachine;
use super::book::{Key, Phase};
use super::io::WorkerEffect;
use super::timers::Timer;
use crate::ids::ShardId;
use crate::time::Monotonic;

impl WorkerMachine {
    pub(super) fn on_shard_here(&mut self, now: Monotonic, shard: ShardId, effects: &mut Vec<WorkerEffect>) {
        let Some(book) = self.books.get_mut(usize::from(shard.0)) else {
            return;
        };
        self.timers
            .move_to(&mut book.heartbeat_at, None, Timer::Heartbeat(shard));
        let from = effects.len();
        self.on_heartbeat_due(now, shard, effects);
        self.begin_again(now, shard, effects);
        self.report_again(now, shard, effects);
        self.hand_back_again(now, shard, effects);
        self.offer_again(now, shard, effects);
        keep_planted_back(from, effects);
    }

    /// The same number with the room that there is; one that waits is asked after, for its owner may be another.
    fn offer_again(&mut self, now: Monotonic, shard: ShardId, effects: &mut Vec<WorkerEffect>) {
        let Some(offer) = self.book_mut(shard).and_then(|book| book.offer.as_mut()) else {
            return;
        };
        // Not the offer's fault, so it is no repeat of it; but one that is old gets a new number in time.
        offer.repeats = offer.repeats.saturating_sub(1);
        self.on_offer_due_now(now, shard, effects);
        if let Some(book) = self.book_mut(shard) {
            book.slow = false;
        }
    }

    fn on_offer_due_now(&mut self, now: Monotonic, shard: ShardId, effects: &mut Vec<WorkerEffect>) {
        let Some(book) = self.books.get_mut(usize::from(shard.0)) else {
            return;
        };
        let Some(offer) = book.offer.as_mut() else { return };
        self.timers.move_to(&mut offer.repeat_at, None, Timer::Offer(shard));
        self.on_offer_due(now, shard, effects);
    }

    fn begin_again(&mut self, now: Monotonic, shard: ShardId, effects: &mut Vec<WorkerEffect>) {
        let Some(book) = self.books.get_mut(usize::from(shard.0)) else {
            return;
        };
        let mut beginning: Vec<Key> = Vec::new();
        for (key, run) in &mut book.runs {
            if let Phase::Beginning { begin_at, .. } = &mut run.phase {
                self.timers.move_to(begin_at, None, Timer::Begin(key.0, key.1));
                beginning.push(*key);
            }
        }
        for key in beginning {
            self.on_begin_due(now, key, effects);
        }
    }

    fn report_again(&mut self, now: Monotonic, shard: ShardId, effects: &mut Vec<WorkerEffect>) {
        let Some(book) = self.books.get_mut(usize::from(shard.0)) else {
            return;
        };
        for (key, done) in &mut book.done {
            if done.sent_at.take().is_some() {
                book.unsent.push_back(*key);
            }
        }
        book.in_flight = 0;
        self.send_outcomes_soon(now, shard, effects);
    }
}

#[cfg(not(test))]
fn keep_planted_back(_: usize, _: &mut Vec<WorkerEffect>) {}

/// The planted fault: one kind of what was said just now is not sent.
#[cfg(test)]
fn keep_planted_back(from: usize, effects: &mut Vec<WorkerEffect>) {
    use crate::planted::Bug;
    let said = effects.split_off(from);
    let bug_of = |effect: &WorkerEffect| match effect {
        WorkerEffect::SendOutcomes { .. } => Some(Bug::OutcomesUnsaid),
        WorkerEffect::SendHandBack { .. } => Some(Bug::HandBacksUnsaid),
        WorkerEffect::SendOffer { .. } => Some(Bug::OfferUnsaid),
        WorkerEffect::SendBegin { .. } => Some(Bug::BeginsUnsaid),
        WorkerEffect::SendHeartbeat { .. } => Some(Bug::HeartbeatUnsaid),
        WorkerEffect::StartAttempt { .. }
        | WorkerEffect::ExtendAttempt { .. }
        | WorkerEffect::StopAttempt { .. }
        | WorkerEffect::TellRecorded { .. }
        | WorkerEffect::Drained => None,
    };
    let is_sent = |effect: &WorkerEffect| !bug_of(effect).is_some_and(Bug::is_planted);
    effects.extend(said.into_iter().filter(is_sent));
}
