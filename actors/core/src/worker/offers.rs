//! Asking shards for work: only as much as there is room, each shard in its turn.
//!
//! Owns: offers and the slots promised to them. Must never: promise a slot twice (F15: no prefetch).
//! Hints say whom to ask; the sweep asks everyone, for hints may be lost (F8). While there is room, each
//! shard keeps a small offer that waits: at most half of all slots wait, and they are called back when
//! another shard has work for them. Next: `grants.rs`.

use super::WorkerMachine;
use super::book::{OpenOffer, ShardBook};
use super::drain::Stage;
use super::io::WorkerEffect;
use super::timers::Timer;
use crate::ids::{OfferId, ShardId};
use crate::limits;
use crate::time::Monotonic;
use std::ops::Bound;

impl WorkerMachine {
    pub(super) fn on_hint(&mut self, now: Monotonic, shard: ShardId, effects: &mut Vec<WorkerEffect>) {
        let Some(book) = self.book_mut(shard) else { return };
        book.hinted = true;
        match book.offer.as_ref().map(|offer| offer.waits) {
            None => self.put_in_line(shard),
            // It has work, yet did not grant: it is another owner, or its grants are on their way.
            Some(true) => self.call_back(now, shard, effects),
            Some(false) => {}
        }
    }

    /// To be asked when there is room.
    pub(super) fn put_in_line(&mut self, shard: ShardId) {
        let may = self.book_mut(shard).is_some_and(|book| book.may_hand_back());
        if may && self.stage == Stage::Working && !self.holds_back {
            self.asking.insert(shard);
        }
    }

    pub(super) fn on_sweep_due(&mut self, now: Monotonic) {
        if self.stage != Stage::Working {
            return;
        }
        let sweep = self.config.sweep;
        if self.holds_back {
            self.timers.arm(Self::after(now, sweep), Timer::Sweep);
            return;
        }
        for (number, book) in self.books.iter().enumerate() {
            let asked_lately = book.asked_at.is_some_and(|at| now.since(at) < sweep);
            if book.offer.is_none() && !asked_lately && book.may_hand_back() {
                self.asking.insert(ShardId(number as u16));
            }
        }
        self.timers.arm(Self::after(now, sweep), Timer::Sweep);
    }

    /// Sends offers while there is room and someone to ask.
    pub(super) fn ask(&mut self, now: Monotonic, effects: &mut Vec<WorkerEffect>) {
        if self.holds_back {
            return;
        }
        self.seek_apart(now, effects);
        while self.room() > 0 {
            let Some(shard) = self.next_to_ask() else { return };
            self.asked_last = shard;
            match self.eager(shard) {
                true => self.open_offer(now, shard, self.share_of(shard), false, effects),
                false if self.may_wait() => self.open_offer(now, shard, self.share_waiting(), true, effects),
                false => self.open_offer(now, shard, self.share_of(shard), false, effects),
            }
        }
        self.call_back_for_others(now, effects);
    }

    /// Takes back what is offered: what waits is called back, and nothing is asked for until the sweep after the end
    /// of it. Grants that are on their way are taken; their slots stay promised.
    pub(super) fn on_hold_back(&mut self, now: Monotonic, holds_back: bool, effects: &mut Vec<WorkerEffect>) {
        let was = std::mem::replace(&mut self.holds_back, holds_back);
        if was == holds_back || !holds_back {
            return;
        }
        self.asking.clear();
        for shard in self.config.shards.shards() {
            self.call_back(now, shard, effects);
            if let Some(offer) = self.book_mut(shard).and_then(|book| book.offer.as_mut()) {
                offer.slots = 0;
            }
        }
    }

    /// An offer that waits, if there is room for one: the shard has nothing to say at the moment. Those
    /// that have work come first, or what was called back for them would only wait again.
    pub(super) fn let_wait(&mut self, now: Monotonic, shard: ShardId, effects: &mut Vec<WorkerEffect>) {
        let is_wanted = self.asking.iter().any(|other| self.eager(*other));
        let may = self.book_mut(shard).is_some_and(|book| book.may_hand_back());
        if may && self.may_wait() && !is_wanted {
            self.open_offer(now, shard, self.share_waiting(), true, effects);
        }
    }

    fn may_wait(&self) -> bool {
        let share = self.share_waiting();
        share > 0 && self.room() >= share
    }

    /// Of each shard; all together are at most half of the slots.
    fn share_waiting(&self) -> u32 {
        let share = self.config.slots / (2 * u32::from(self.config.shards.count()));
        share.min(limits::OFFER_SLOTS_MAX)
    }

    fn open_offer(&mut self, now: Monotonic, shard: ShardId, slots: u32, waits: bool, effects: &mut Vec<WorkerEffect>) {
        self.offer_last += 1;
        let id = OfferId(self.offer_last);
        let mut offer = OpenOffer {
            id,
            slots,
            promised: slots,
            waits,
            apart: if waits { 0 } else { self.take_apart(shard) },
            sent_at: now,
            repeats: 0,
            repeat_at: None,
        };
        let patience = if waits {
            self.config.offer_wait
        } else {
            self.config.offer_repeat
        };
        let repeat_at = Some(Self::after(now, patience));
        self.timers
            .move_to(&mut offer.repeat_at, repeat_at, Timer::Offer(shard));
        self.promised += slots;
        self.asking.remove(&shard);
        let (queues, apart) = (self.config.queues.clone(), offer.apart);
        let Some(book) = self.book_mut(shard) else { return };
        book.hinted = false;
        book.apart_waits = book.apart_waits.filter(|_| apart == 0);
        book.asked_at = Some(now);
        book.offer = Some(offer);
        effects.push(WorkerEffect::SendOffer {
            shard,
            offer: id,
            slots,
            queues,
            commands: self.config.commands,
            waits,
            apart,
        });
    }

    /// Asks for the answer to an offer that waits: the same number, no room. Its slots stay promised
    /// until then, for grants may be on their way.
    pub(super) fn call_back(&mut self, now: Monotonic, shard: ShardId, effects: &mut Vec<WorkerEffect>) {
        let repeat_at = Self::after(now, self.config.offer_repeat);
        let queues = self.config.queues.clone();
        let Some(book) = self.books.get_mut(usize::from(shard.0)) else {
            return;
        };
        let Some(offer) = book.offer.as_mut().filter(|offer| offer.waits) else {
            return;
        };
        offer.waits = false;
        offer.slots = 0;
        self.timers
            .move_to(&mut offer.repeat_at, Some(repeat_at), Timer::Offer(shard));
        effects.push(WorkerEffect::SendOffer {
            shard,
            offer: offer.id,
            slots: 0,
            queues,
            commands: self.config.commands,
            waits: false,
            apart: 0,
        });
    }

    /// No room, but a shard that said it has work: what waits elsewhere comes back, one offer a step.
    fn call_back_for_others(&mut self, now: Monotonic, effects: &mut Vec<WorkerEffect>) {
        let starved = self.stage == Stage::Working
            && self.used < self.config.slots
            && self.unrecorded < self.config.outcome_count_max
            && self.asking.iter().any(|shard| self.eager(*shard));
        if !starved {
            return;
        }
        let waits = |book: &ShardBook| book.offer.as_ref().is_some_and(|offer| offer.waits);
        let called_back = |book: &ShardBook| {
            book.offer
                .as_ref()
                .is_some_and(|offer| !offer.waits && offer.promised > 0)
        };
        if self.books.iter().any(called_back) {
            return;
        }
        if let Some(number) = self.books.iter().position(waits) {
            self.call_back(now, ShardId(number as u16), effects);
        }
    }

    /// Said to have work since it was last asked, and answers in time.
    fn eager(&self, shard: ShardId) -> bool {
        let book = self.books.get(usize::from(shard.0));
        book.is_some_and(|book| book.hinted && !book.slow)
    }

    /// Free slots that nobody was promised; none while outcomes pile up, in a drain, or while held back.
    pub(super) fn room(&self) -> u32 {
        if self.stage != Stage::Working || self.holds_back || self.unrecorded >= self.config.outcome_count_max {
            return 0;
        }
        self.config
            .slots
            .saturating_sub(self.used)
            .saturating_sub(self.promised)
    }

    fn next_to_ask(&self) -> Option<ShardId> {
        let later = (Bound::Excluded(self.asked_last), Bound::Unbounded);
        self.asking.range(later).next().or_else(|| self.asking.first()).copied()
    }

    /// An even share of the room for a shard that said it has work; a small one for the others, so
    /// that a shard that never answers cannot hold the slots that others need.
    fn share_of(&self, shard: ShardId) -> u32 {
        let room = self.room();
        let share = match self.eager(shard) {
            true => room.div_ceil(self.asking.len().max(1) as u32),
            false => self.share_small(),
        };
        share.clamp(1, limits::OFFER_SLOTS_MAX).min(room)
    }

    fn share_small(&self) -> u32 {
        (self.config.slots / u32::from(self.config.shards.count())).max(1)
    }

    /// The same number again, so that grants whose message was lost come once more (F14); after a
    /// few times a new number, or leases counted from the first sending would be over on arrival.
    pub(super) fn on_offer_due(&mut self, now: Monotonic, shard: ShardId, effects: &mut Vec<WorkerEffect>) {
        let book = self.books.get_mut(usize::from(shard.0));
        if let Some(offer) = book.and_then(|book| book.offer.as_mut()).filter(|offer| offer.waits) {
            offer.repeat_at = None;
            return self.call_back(now, shard, effects);
        }
        self.release_promise(shard);
        self.withdraw_apart(shard);
        let (room, small) = (self.room(), self.share_small());
        let repeat_at = Self::after(now, self.config.offer_repeat);
        let queues = self.config.queues.clone();
        let Some(book) = self.books.get_mut(usize::from(shard.0)) else {
            return;
        };
        let Some(offer) = book.offer.as_mut() else { return };
        book.slow = true;
        offer.repeat_at = None;
        offer.repeats += 1;
        if offer.repeats > limits::OFFER_REPEATS_MAX {
            return self.give_up_offer(shard);
        }
        self.timers
            .move_to(&mut offer.repeat_at, Some(repeat_at), Timer::Offer(shard));
        offer.slots = offer.slots.min(room).min(small);
        offer.promised = offer.slots;
        self.promised += offer.promised;
        // Without room it asks what was granted: only an answer closes it, and until then the shard is not asked anew,
        // whatever it hints.
        let (offer, slots) = (offer.id, offer.slots);
        effects.push(WorkerEffect::SendOffer {
            shard,
            offer,
            slots,
            queues,
            commands: self.config.commands,
            waits: false,
            apart: 0,
        });
    }

    /// An offer that is not answered keeps the place for one from nobody.
    fn withdraw_apart(&mut self, shard: ShardId) {
        if let Some(offer) = self.book_mut(shard).and_then(|book| book.offer.as_mut()) {
            offer.apart = 0;
        }
        self.end_apart_offer(shard);
    }

    pub(super) fn on_shard_away(&mut self, now: Monotonic, shard: ShardId) {
        self.release_promise(shard);
        self.withdraw_apart(shard);
        let soon = Self::after(now, self.config.offer_repeat);
        let Some(book) = self.books.get_mut(usize::from(shard.0)) else {
            return;
        };
        book.slow = true;
        // Whoever waits there may be another node's to run; if not, the next answer says so.
        book.apart_waits = None;
        if let Some(offer) = book.offer.as_mut().filter(|offer| offer.waits) {
            offer.waits = false;
            self.timers
                .move_to(&mut offer.repeat_at, Some(soon), Timer::Offer(shard));
        }
        if book.heartbeat_at.is_some_and(|at| at > soon) {
            self.timers
                .move_to(&mut book.heartbeat_at, Some(soon), Timer::Heartbeat(shard));
        }
    }

    /// Frees the slots kept for a shard's open offer. Grants that come all the same are taken if
    /// there is room then, or else go back.
    fn release_promise(&mut self, shard: ShardId) {
        let Some(book) = self.books.get_mut(usize::from(shard.0)) else {
            return;
        };
        if let Some(offer) = book.offer.as_mut() {
            self.promised -= offer.promised;
            offer.promised = 0;
        }
    }

    /// Forgets an open offer; grants that come for it all the same go back (F14).
    pub(super) fn give_up_offer(&mut self, shard: ShardId) {
        if self.close_offer(shard).is_none() {
            return;
        }
        let Some(book) = self.book_mut(shard) else { return };
        if book.hinted {
            self.put_in_line(shard);
        }
    }

    /// Takes the open offer out and frees what was promised to it.
    pub(super) fn close_offer(&mut self, shard: ShardId) -> Option<OpenOffer> {
        self.release_promise(shard);
        let book = self.books.get_mut(usize::from(shard.0))?;
        let mut offer = book.offer.take()?;
        self.timers.move_to(&mut offer.repeat_at, None, Timer::Offer(shard));
        self.end_apart_offer(shard);
        Some(offer)
    }
}
