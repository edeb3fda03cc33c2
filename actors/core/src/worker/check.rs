//! What is true of a worker between any two steps.
//!
//! Owns: the list. Must never: repair. Used by the property tests and the simulator. Next: `tests/`.

use super::WorkerMachine;
use super::apart::LOST_ALONE;
use super::book::{Phase, ShardBook};
use super::drain::Stage;
use super::timers::Timer;
use crate::ids::ShardId;
use crate::limits;

impl WorkerMachine {
    /// Panics if the machine contradicts itself. Costs what is held.
    pub fn check(&self) {
        let runs: usize = self.books.iter().map(|book| book.runs.len()).sum();
        let done: usize = self.books.iter().map(|book| book.done.len()).sum();
        let promised: u32 = self
            .books
            .iter()
            .filter_map(|book| book.offer.as_ref())
            .map(|o| o.promised)
            .sum();
        assert_eq!(runs, self.used as usize, "each run uses one slot");
        assert_eq!(done, self.unrecorded, "each ended run is unrecorded");
        assert_eq!(promised, self.promised, "promises are those of open offers");
        assert!(
            self.used + self.promised <= self.config.slots,
            "no slot is used or promised twice"
        );
        assert!(
            (self.stage == Stage::Working && !self.holds_back) || self.asking.is_empty(),
            "a worker that drains or holds back asks nobody"
        );
        let mut timers = usize::from(self.stage == Stage::Working);
        for ((id, token), run) in &self.apart.running {
            assert!(
                self.timers.has(run.until, Timer::Apart(*id, *token)),
                "the place for one is given up some day"
            );
            timers += 1;
        }
        if let Some(at) = self.apart.settle_at {
            assert!(self.timers.has(at, Timer::ApartSettled), "a choice is made some day");
            timers += 1;
        }
        for (shard, lost) in &self.apart.offered {
            let book = self.books.get(usize::from(shard.0));
            let is_open = book
                .and_then(|book| book.offer.as_ref())
                .is_some_and(|offer| offer.apart == *lost);
            assert!(is_open, "the place for one is kept for an open offer");
            let is_beside = *lost >= LOST_ALONE && self.apart.offered.len() > 1;
            assert!(!is_beside, "what lost more workers is asked for alone");
        }
        for (number, book) in self.books.iter().enumerate() {
            let shard = ShardId(number as u16);
            assert!(
                !(self.asking.contains(&shard) && book.offer.is_some()),
                "one open offer per shard"
            );
            self.check_bounds(book);
            timers += self.check_timers(shard, book);
        }
        assert!(
            timers <= self.timers.count() && self.timers.count() <= timers + 1,
            "no timer without a cause"
        );
    }

    fn check_bounds(&self, book: &ShardBook) {
        assert!(book.beats.len() <= limits::BEATS_OPEN_MAX);
        assert!(book.hand_backs.len() <= limits::HAND_BACKS_OPEN_MAX);
        let sent = book.done.values().filter(|done| done.sent_at.is_some()).count();
        assert_eq!(sent, book.in_flight, "sent and unrecorded");
        let unsent = book.unsent.iter().filter(|key| book.done.contains_key(key)).count();
        assert_eq!(sent + unsent, book.done.len(), "each outcome is sent or in line");
        for key in book.runs.keys().chain(book.done.keys()) {
            assert!(!book.hand_backs.contains_key(key), "what was handed back is gone");
        }
        assert!(
            book.runs.keys().all(|key| !book.done.contains_key(key)),
            "a run has ended or not"
        );
        let held = book.held().next().is_some();
        assert!(!held || book.heartbeat_at.is_some(), "what is held is renewed");
        assert!(
            book.done.is_empty() || book.outcomes_at.is_some(),
            "what is unrecorded is sent again"
        );
    }

    fn check_timers(&self, shard: ShardId, book: &ShardBook) -> usize {
        let mut wanted = vec![
            (book.heartbeat_at, Timer::Heartbeat(shard)),
            (book.outcomes_at, Timer::Outcomes(shard)),
            (book.hand_backs_at, Timer::HandBacks(shard)),
        ];
        if let Some(offer) = &book.offer {
            assert!(offer.repeat_at.is_some(), "an open offer is repeated");
            wanted.push((offer.repeat_at, Timer::Offer(shard)));
        }
        for ((id, token), run) in &book.runs {
            assert!(
                run.told_lost || run.lease_at.is_some(),
                "a lease that is held ends some day"
            );
            wanted.push((run.lease_at, Timer::Lease(*id, *token)));
            if let Phase::Beginning { begin_at, .. } = &run.phase {
                wanted.push((*begin_at, Timer::Begin(*id, *token)));
            }
        }
        let armed = wanted.iter().filter_map(|(at, timer)| at.map(|at| (at, *timer)));
        armed
            .inspect(|(at, timer)| assert!(self.timers.has(*at, *timer), "armed"))
            .count()
    }
}
