//! A few at a time: jobs whose worker was lost before, over all shards (BEH-R02).
//!
//! Owns: the places for such jobs on this worker, one at first. Must never: give a place to two open
//! offers. What has run for a while without ending this process gives its place up and runs on; the more have
//! done so, the more may start at once, or long jobs would come back one after the other for hours.
//! Next: `offers.rs`, `grants.rs`.

use super::WorkerMachine;
use super::book::{Key, ShardBook};
use super::drain::Stage;
use super::io::WorkerEffect;
use super::timers::Timer;
use crate::ids::ShardId;
use crate::limits::{APART_MS, APART_PROOFS_PER_PLACE};
use crate::time::{Monotonic, Span};
use std::collections::{BTreeMap, BTreeSet};

/// Who has the places.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Apart {
    /// Open offers to these shards; each may bring one job.
    pub(super) offered: BTreeSet<ShardId>,
    /// Attempts; each keeps its place until then at the latest.
    pub(super) running: BTreeMap<Key, Monotonic>,
    /// Attempts that ran for so long that they gave their place up, since such jobs came last. What ends
    /// sooner proves nothing here: its place is free already.
    proofs: u32,
}

impl Apart {
    /// Whether one more may start.
    pub(super) fn has_place(&self) -> bool {
        let places = (self.proofs / APART_PROOFS_PER_PLACE).max(1) as usize;
        self.offered.len() + self.running.len() < places
    }
}

impl WorkerMachine {
    /// Whether an offer to this shard may bring such a job; it has the place then.
    pub(super) fn take_apart(&mut self, shard: ShardId) -> bool {
        let has_place = self.apart.has_place();
        if has_place {
            self.apart.offered.insert(shard);
        }
        has_place
    }

    /// The offer to this shard is closed, or repeated without the place.
    pub(super) fn end_apart_offer(&mut self, shard: ShardId) {
        self.apart.offered.remove(&shard);
    }

    /// Such a job starts.
    pub(super) fn begin_apart(&mut self, now: Monotonic, key: Key) {
        let until = Self::after(now, Span::from_millis(APART_MS));
        self.apart.running.insert(key, until);
        self.timers.arm(until, Timer::Apart(key.0, key.1));
    }

    /// An attempt is over.
    pub(super) fn end_apart_run(&mut self, key: Key) {
        if let Some(until) = self.apart.running.remove(&key) {
            self.timers.disarm(until, Timer::Apart(key.0, key.1));
        }
    }

    /// It has not ended this process so far.
    pub(super) fn on_apart_due(&mut self, key: Key) {
        if self.apart.running.remove(&key).is_some() {
            self.apart.proofs = self.apart.proofs.saturating_add(1);
        }
    }

    /// Whether jobs that run apart wait at a shard; it is asked for one if a place is free. When none waits
    /// anywhere, what comes later has to prove itself anew.
    pub(super) fn note_apart(&mut self, shard: ShardId, waits: bool) {
        let has_place = self.apart.has_place();
        if let Some(book) = self.book_mut(shard) {
            book.apart_waits = waits;
            book.hinted |= waits && has_place;
        }
        let is_idle = self.apart.running.is_empty() && self.apart.offered.is_empty();
        let is_over = is_idle && self.books.iter().all(|book| !book.apart_waits);
        if is_over {
            self.apart.proofs = 0;
        }
    }

    /// A place is free: a shard where such jobs wait is asked next.
    pub(super) fn seek_apart(&mut self, now: Monotonic, effects: &mut Vec<WorkerEffect>) {
        if !self.apart.has_place() || self.stage != Stage::Working {
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
