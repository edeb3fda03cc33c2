//! Keeping leases: heartbeats, renewals, and the worker's own fence.
//!
//! Owns: when a lease ends here. Must never: let a run go on after that (it is told to stop, and its
//! slot is free only when it has really ended). Next: `outcomes.rs`.

use super::WorkerMachine;
use super::book::{Key, Phase};
use super::io::{StopReason, WorkerEffect};
use super::timers::Timer;
use crate::ids::{BeatId, ShardId, ShardOwner};
use crate::lease_manager::io::Renewal;
use crate::limits;
use crate::time::Monotonic;

impl WorkerMachine {
    /// Renews everything held of a shard, what is finished and not recorded included (F18).
    pub(super) fn on_heartbeat_due(&mut self, now: Monotonic, shard: ShardId, effects: &mut Vec<WorkerEffect>) {
        let next_at = Self::after(now, self.config.heartbeat);
        let beat = BeatId(self.beat_last + 1);
        let Some(book) = self.books.get_mut(usize::from(shard.0)) else {
            return;
        };
        book.heartbeat_at = None;
        let held: Vec<Key> = book.held().collect();
        if book.runs.is_empty() && held.is_empty() {
            return;
        }
        self.timers
            .move_to(&mut book.heartbeat_at, Some(next_at), Timer::Heartbeat(shard));
        if held.is_empty() {
            return;
        }
        self.beat_last = beat.0;
        book.note_beat(beat, now);
        for part in held.chunks(limits::HEARTBEAT_ITEMS_MAX) {
            let held = part.to_vec();
            effects.push(WorkerEffect::SendHeartbeat { shard, beat, held });
        }
    }

    /// Extends from when the heartbeat was sent. An owner older than the newest heard of cannot
    /// extend anything (F17), nor can an answer to a heartbeat that is not remembered.
    pub(super) fn on_renewed(
        &mut self,
        now: Monotonic,
        from: ShardOwner,
        beat: BeatId,
        held: &[Renewal],
        effects: &mut Vec<WorkerEffect>,
    ) {
        let shard = from.shard;
        let Some(book) = self.book_mut(shard) else { return };
        if !book.hear(from) {
            return;
        }
        let Some(sent_at) = book.beat_sent_at(beat) else { return };
        for renewal in held {
            let key = (renewal.id, renewal.token);
            let ends_at = sent_at + (renewal.length - self.config.lease_margin);
            self.extend(now, shard, key, ends_at, effects);
        }
    }

    /// Stops a run on request; what has not begun goes back instead.
    pub(super) fn on_cancel_requested(
        &mut self,
        now: Monotonic,
        from: ShardOwner,
        key: Key,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let shard = from.shard;
        let Some(book) = self.book_mut(shard) else { return };
        if !book.hear(from) {
            return;
        }
        if self.is_beginning(shard, &key) {
            self.remove_run(shard, key);
            self.hand_back(now, shard, vec![key], effects);
        } else {
            self.stop(shard, key, StopReason::CancelRequested, effects);
        }
    }

    fn extend(
        &mut self,
        now: Monotonic,
        shard: ShardId,
        key: Key,
        ends_at: Monotonic,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let Some(book) = self.book_mut(shard) else { return };
        let Some(run) = book.runs.get_mut(&key) else { return };
        if run.told_lost || ends_at <= run.ends_at {
            return;
        }
        run.ends_at = ends_at;
        if matches!(run.phase, Phase::Running) {
            let (id, token) = key;
            let left = ends_at.since(now);
            effects.push(WorkerEffect::ExtendAttempt { id, token, left });
        }
    }

    /// The owner holds these leases no more. An older owner may only not know them.
    pub(super) fn on_lost(&mut self, now: Monotonic, from: ShardOwner, lost: &[Key], effects: &mut Vec<WorkerEffect>) {
        let shard = from.shard;
        let Some(book) = self.book_mut(shard) else { return };
        if !book.hear(from) {
            return;
        }
        for key in lost {
            let Some(book) = self.book_mut(shard) else { return };
            book.hand_backs.remove(key);
            if let Some(done) = book.done.get_mut(key) {
                done.held = false;
            }
            self.end_lease(now, shard, *key, effects);
        }
    }

    pub(super) fn on_lease_due(&mut self, now: Monotonic, key: Key, effects: &mut Vec<WorkerEffect>) {
        let shard = self.shard_of(key.0);
        let Some(book) = self.books.get_mut(usize::from(shard.0)) else {
            return;
        };
        let Some(run) = book.runs.get_mut(&key) else { return };
        run.lease_at = None;
        if run.ends_at > now {
            let ends_at = Some(run.ends_at);
            return self
                .timers
                .move_to(&mut run.lease_at, ends_at, Timer::Lease(key.0, key.1));
        }
        self.end_lease(now, shard, key, effects);
    }

    /// What was not started goes back, what runs is stopped.
    fn end_lease(&mut self, now: Monotonic, shard: ShardId, key: Key, effects: &mut Vec<WorkerEffect>) {
        if self.is_beginning(shard, &key) {
            self.remove_run(shard, key);
            return self.hand_back(now, shard, vec![key], effects);
        }
        self.stop(shard, key, StopReason::LeaseLost, effects);
        let Some(book) = self.books.get_mut(usize::from(shard.0)) else {
            return;
        };
        if let Some(run) = book.runs.get_mut(&key) {
            self.timers.move_to(&mut run.lease_at, None, Timer::Lease(key.0, key.1));
        }
    }

    /// Tells a run to stop, once for each reason.
    pub(super) fn stop(&mut self, shard: ShardId, key: Key, reason: StopReason, effects: &mut Vec<WorkerEffect>) {
        let Some(book) = self.book_mut(shard) else { return };
        let Some(run) = book.runs.get_mut(&key) else { return };
        let told = match reason {
            StopReason::CancelRequested => &mut run.told_cancel,
            StopReason::LeaseLost => &mut run.told_lost,
            StopReason::Draining => &mut run.told_drain,
        };
        if !std::mem::replace(told, true) {
            let (id, token) = key;
            effects.push(WorkerEffect::StopAttempt { id, token, reason });
        }
    }

    pub(super) fn is_beginning(&self, shard: ShardId, key: &Key) -> bool {
        let run = self.books.get(usize::from(shard.0)).and_then(|book| book.runs.get(key));
        run.is_some_and(|run| matches!(run.phase, Phase::Beginning { .. }))
    }
}
