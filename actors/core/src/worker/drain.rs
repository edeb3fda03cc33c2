//! Going away in order: nothing new, what runs may end, what did not start goes back.
//!
//! Owns: the stages of a worker's life. Must never: lose a grant that is on its way: open offers are
//! asked after until they are answered. Next: `check.rs`.

use super::WorkerMachine;
use super::book::Key;
use super::io::{StopReason, WorkerEffect};
use super::timers::Timer;
use crate::ids::ShardId;
use crate::time::Monotonic;

/// Where a worker stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Stage {
    /// Takes work.
    Working,
    /// Takes none; what runs may end.
    Draining,
    /// What runs was told to stop.
    Stopping,
    /// Nothing is left.
    Drained,
}

impl WorkerMachine {
    pub(super) fn on_drain(&mut self, now: Monotonic, effects: &mut Vec<WorkerEffect>) {
        if self.stage == Stage::Drained && !self.config.takes_work {
            // It was told so when there was nothing yet.
            self.stage = Stage::Draining;
        }
        if self.stage >= Stage::Draining {
            return;
        }
        self.stage = Stage::Draining;
        self.asking.clear();
        for shard in self.config.shards.shards() {
            self.hand_back_beginning(now, shard, effects);
            self.call_back(now, shard, effects);
            self.ask_after_offer(now, shard);
        }
    }

    pub(super) fn on_drain_expired(&mut self, now: Monotonic, effects: &mut Vec<WorkerEffect>) {
        if self.stage >= Stage::Stopping {
            return;
        }
        self.on_drain(now, effects);
        self.stage = Stage::Stopping;
        for shard in self.config.shards.shards() {
            self.give_up_offer(shard);
            let Some(book) = self.books.get(usize::from(shard.0)) else {
                continue;
            };
            let runs: Vec<Key> = book.runs.keys().copied().collect();
            for key in runs {
                self.stop(shard, key, StopReason::Draining, effects);
            }
        }
    }

    fn hand_back_beginning(&mut self, now: Monotonic, shard: ShardId, effects: &mut Vec<WorkerEffect>) {
        let Some(book) = self.books.get(usize::from(shard.0)) else {
            return;
        };
        let runs = book.runs.keys().copied();
        let back: Vec<Key> = runs.filter(|key| self.is_beginning(shard, key)).collect();
        for key in &back {
            self.remove_run(shard, *key);
        }
        self.hand_back(now, shard, back, effects);
    }

    /// The open offer is repeated with no room, soon: only to learn what it was granted.
    fn ask_after_offer(&mut self, now: Monotonic, shard: ShardId) {
        let soon = Self::after(now, self.config.offer_repeat);
        let Some(book) = self.books.get_mut(usize::from(shard.0)) else {
            return;
        };
        let Some(offer) = book.offer.as_mut() else { return };
        self.promised -= offer.promised;
        (offer.promised, offer.slots) = (0, 0);
        if offer.repeat_at.is_none_or(|at| at > soon) {
            self.timers
                .move_to(&mut offer.repeat_at, Some(soon), Timer::Offer(shard));
        }
    }

    /// Says so once, when nothing is left. Hand-backs are waited for only until the limit.
    pub(super) fn tell_drained(&mut self, effects: &mut Vec<WorkerEffect>) {
        let left = match self.stage {
            Stage::Working | Stage::Drained => return,
            Stage::Draining => self.books.iter().any(|book| !book.is_empty()),
            Stage::Stopping => self.used > 0 || self.unrecorded > 0,
        };
        if !left {
            self.stage = Stage::Drained;
            effects.push(WorkerEffect::Drained);
        }
    }
}
