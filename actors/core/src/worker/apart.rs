//! A few at a time: jobs whose worker was lost before, over all shards (BEH-R02).
//!
//! Owns: the places for such jobs on this worker, one at first, and which shard is asked for one: that of the
//! worst suspect. Must never: give a place to two open offers, or start what lost more than one worker beside
//! another suspect. What has run for a while without ending this process gives its place up and runs on; the
//! more have done so, the more may start at once, or long jobs would come back one after the other for hours.
//! Next: `offers.rs`, `grants.rs`.

use super::WorkerMachine;
use super::book::{Key, ShardBook};
use super::drain::Stage;
use super::io::WorkerEffect;
use super::timers::Timer;
use crate::ids::ShardId;
use crate::lease_manager::io::Suspect;
use crate::limits::{APART_ALONE_MS, APART_ALONE_MS_MIN, APART_MS, APART_PROOFS_PER_PLACE, APART_SETTLE_MS};
use crate::time::{Monotonic, Span};
use std::collections::BTreeMap;

/// Workers lost by a job that must not run beside another suspect.
pub(super) const LOST_ALONE: u32 = 2;

/// Who has the places.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Apart {
    /// Open offers to these shards; each may bring one job that lost at most so many workers.
    pub(super) offered: BTreeMap<ShardId, u32>,
    /// Attempts that are not taken for harmless yet.
    pub(super) running: BTreeMap<Key, Suspected>,
    /// The first of them all is not chosen before this, so that every shard can say whom it has.
    pub(super) settle_at: Option<Monotonic>,
    /// Attempts that ran for so long that they gave their place up, since such jobs came last. What ends
    /// sooner proves nothing here: its place is free already.
    proofs: u32,
    /// Attempts that ran for so long that what lost more workers may start beside them.
    proofs_alone: u32,
}

/// An attempt that may end this process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Suspected {
    /// Timer.
    pub(super) until: Monotonic,
    /// Workers that its job lost.
    lost: u32,
    /// It keeps others from starting; later only those that lost more workers.
    has_place: bool,
}

impl Apart {
    fn in_place(&self) -> usize {
        self.offered.len() + self.running.values().filter(|run| run.has_place).count()
    }

    /// How many workers the next one may have lost, if the worst that waits lost `lost`; 0 if none may start.
    fn allowance(&self, lost: u32) -> u32 {
        let places = (self.proofs / APART_PROOFS_PER_PLACE).max(1) as usize;
        let placed = self.running.values().filter(|run| run.has_place).map(|run| run.lost);
        let is_alone = self
            .offered
            .values()
            .copied()
            .chain(placed)
            .any(|lost| lost >= LOST_ALONE);
        let may_start = self.settle_at.is_none() && !is_alone && self.in_place() < places;
        match (may_start, lost >= LOST_ALONE) {
            (false, _) => 0,
            (true, false) => LOST_ALONE - 1,
            (true, true) if self.offered.is_empty() && self.running.is_empty() => u32::MAX,
            (true, true) => 0,
        }
    }

    /// How long what lost more workers keeps away from others, and they from it.
    fn alone_for(&self) -> Span {
        let shorter = APART_ALONE_MS >> self.proofs_alone.min(32);
        Span::from_millis(shorter.max(APART_ALONE_MS_MIN))
    }
}

impl WorkerMachine {
    /// How many workers a job among the grants of an offer to this shard may have lost; it has the place then.
    pub(super) fn take_apart(&mut self, shard: ShardId) -> u32 {
        let allowance = self.apart_allowance(shard);
        if allowance > 0 {
            self.apart.offered.insert(shard, allowance);
        }
        allowance
    }

    /// None for any shard but the one with the worst suspect.
    fn apart_allowance(&self, shard: ShardId) -> u32 {
        match self.worst_apart() {
            Some((suspect, worst)) if worst == shard => self.apart.allowance(suspect.lost),
            Some(_) | None => 0,
        }
    }

    /// A shard that does not answer keeps nobody waiting.
    fn worst_apart(&self) -> Option<(Suspect, ShardId)> {
        let said = self.books.iter().enumerate().filter(|(_, book)| !book.slow);
        said.filter_map(|(number, book)| Some((book.apart_waits?, ShardId(number as u16))))
            .max_by_key(|(suspect, shard)| (*suspect, std::cmp::Reverse(*shard)))
    }

    /// The offer to this shard is closed, or repeated without the place.
    pub(super) fn end_apart_offer(&mut self, shard: ShardId) {
        self.apart.offered.remove(&shard);
    }

    /// A job that lost so many workers starts.
    pub(super) fn begin_apart(&mut self, now: Monotonic, key: Key, lost: u32) {
        let span = match lost >= LOST_ALONE {
            true => self.apart.alone_for(),
            false => Span::from_millis(APART_MS),
        };
        let until = Self::after(now, span);
        let has_place = true;
        self.apart.running.insert(key, Suspected { until, lost, has_place });
        self.timers.arm(until, Timer::Apart(key.0, key.1));
    }

    /// An attempt is over.
    pub(super) fn end_apart_run(&mut self, key: Key) {
        if let Some(run) = self.apart.running.remove(&key) {
            self.timers.disarm(run.until, Timer::Apart(key.0, key.1));
        }
    }

    /// It has not ended this process so far.
    pub(super) fn on_apart_due(&mut self, now: Monotonic, key: Key) {
        let Some(mut run) = self.apart.running.remove(&key) else {
            return;
        };
        let rest = self.apart.alone_for() - Span::from_millis(APART_MS);
        self.apart.proofs = self.apart.proofs.saturating_add(u32::from(run.has_place));
        if run.has_place && run.lost < LOST_ALONE && rest > Span::ZERO {
            run.has_place = false;
            run.until = Self::after(now, rest);
            self.timers.arm(run.until, Timer::Apart(key.0, key.1));
            self.apart.running.insert(key, run);
        } else {
            self.apart.proofs_alone = self.apart.proofs_alone.saturating_add(1);
        }
    }

    /// Every shard had time to say whom it has.
    pub(super) fn on_apart_settled(&mut self) {
        self.apart.settle_at = None;
    }

    /// Who is first of the jobs that run apart at a shard; it is asked for one if a place is free. When none
    /// waits anywhere, what comes later has to prove itself anew.
    pub(super) fn note_apart(&mut self, now: Monotonic, shard: ShardId, first: Option<Suspect>) {
        let was_at_rest = self.is_apart_at_rest();
        if let Some(book) = self.book_mut(shard) {
            book.apart_waits = first;
        }
        if was_at_rest && first.is_some() {
            let settle_at = Some(Self::after(now, Span::from_millis(APART_SETTLE_MS)));
            self.timers
                .move_to(&mut self.apart.settle_at, settle_at, Timer::ApartSettled);
        }
        let is_next = self.apart_allowance(shard) > 0;
        if let Some(book) = self.book_mut(shard) {
            book.hinted |= is_next;
        }
        if self.is_apart_at_rest() {
            (self.apart.proofs, self.apart.proofs_alone) = (0, 0);
        }
    }

    fn is_apart_at_rest(&self) -> bool {
        self.apart.in_place() == 0 && self.books.iter().all(|book| book.apart_waits.is_none())
    }

    /// A place is free: the shard with the worst suspect is asked next.
    pub(super) fn seek_apart(&mut self, now: Monotonic, effects: &mut Vec<WorkerEffect>) {
        let Some((suspect, shard)) = self.worst_apart() else {
            return;
        };
        if self.apart.allowance(suspect.lost) == 0 || self.stage != Stage::Working {
            return;
        }
        let is_asked = |book: &ShardBook| book.offer.as_ref().is_some_and(|offer| !offer.waits);
        if self.books.get(usize::from(shard.0)).is_some_and(is_asked) {
            return;
        }
        // Called back where its offer waits, it says again that such jobs wait, and is asked then.
        self.call_back(now, shard, effects);
        if let Some(book) = self.book_mut(shard).filter(|book| book.offer.is_none()) {
            book.hinted = true;
            self.put_in_line(shard);
        }
    }
}
