//! One at a time: jobs whose worker was lost before, over all shards (BEH-R02).
//!
//! Owns: the one place for such a job on this worker. Must never: give the place to two open offers. What
//! has run for a while without ending this process gives it up and runs on. Next: `offers.rs`, `grants.rs`.

use super::WorkerMachine;
use super::book::{Key, ShardBook};
use super::drain::Stage;
use super::io::WorkerEffect;
use super::timers::Timer;
use crate::ids::ShardId;
use crate::limits::APART_MS;
use crate::time::{Monotonic, Span};

/// Who has the place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Apart {
    /// Nobody.
    #[default]
    Free,
    /// An open offer to this shard.
    Offered(ShardId),
    /// An attempt; it keeps the place until then at the latest.
    Running(Key, Monotonic),
}

impl WorkerMachine {
    /// Whether an offer to this shard may bring such a job; it has the place then.
    pub(super) fn take_apart(&mut self, shard: ShardId) -> bool {
        let is_free = self.apart == Apart::Free;
        if is_free {
            self.apart = Apart::Offered(shard);
        }
        is_free
    }

    /// The offer to this shard is closed, or repeated without the place.
    pub(super) fn end_apart_offer(&mut self, shard: ShardId) {
        if self.apart == Apart::Offered(shard) {
            self.apart = Apart::Free;
        }
    }

    /// Such a job starts.
    pub(super) fn begin_apart(&mut self, now: Monotonic, key: Key) {
        let until = Self::after(now, Span::from_millis(APART_MS));
        if let Apart::Running(_, at) = std::mem::replace(&mut self.apart, Apart::Running(key, until)) {
            self.timers.disarm(at, Timer::Apart);
        }
        self.timers.arm(until, Timer::Apart);
    }

    /// An attempt is over.
    pub(super) fn end_apart_run(&mut self, key: Key) {
        if let Apart::Running(held, until) = self.apart
            && held == key
        {
            self.timers.disarm(until, Timer::Apart);
            self.apart = Apart::Free;
        }
    }

    /// It has not ended this process so far.
    pub(super) fn on_apart_due(&mut self) {
        self.apart = Apart::Free;
    }

    /// The place is free: a shard where such jobs wait is asked next.
    pub(super) fn seek_apart(&mut self, now: Monotonic, effects: &mut Vec<WorkerEffect>) {
        if self.apart != Apart::Free || self.stage != Stage::Working {
            return;
        }
        let waits = |shard: &ShardId| {
            let book = self.books.get(usize::from(shard.0));
            let may_ask = |book: &ShardBook| book.offer.as_ref().is_none_or(|offer| offer.waits);
            book.is_some_and(|book| book.apart_waits && may_ask(book))
        };
        let shards = || (0..self.books.len()).map(|number| ShardId(number as u16));
        let later = shards().filter(|shard| *shard > self.asked_last).find(waits);
        let Some(shard) = later.or_else(|| shards().find(waits)) else {
            return;
        };
        // Called back where its offer waits, it says again that such jobs wait, and is asked then.
        self.call_back(now, shard, effects);
        if let Some(book) = self.book_mut(shard).filter(|book| book.offer.is_none()) {
            book.hinted = true;
            self.put_in_line(shard);
        }
    }
}
