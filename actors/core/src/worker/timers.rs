//! What is to be done when: one ordered set, so that a step looks only at what is due.
//!
//! Owns: the order. Must never: read a clock. Whoever arms a timer keeps its instant, to take it out
//! again. Next: `mod.rs`.

use crate::ids::{JobId, ShardId, Token};
use crate::time::Monotonic;
use std::collections::BTreeSet;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Timer {
    /// A lease may have ended (renewals do not move its timer; it looks again when it fires).
    Lease(JobId, Token),
    /// A begin is unanswered.
    Begin(JobId, Token),
    /// Heartbeats are due.
    Heartbeat(ShardId),
    /// An offer is unanswered.
    Offer(ShardId),
    /// Outcomes are not recorded.
    Outcomes(ShardId),
    /// Hand-backs are not acknowledged.
    HandBacks(ShardId),
    /// A job that runs apart has done so for long enough.
    Apart(JobId, Token),
    /// Every shard had time to say which jobs it has that run apart.
    ApartSettled,
    /// Every shard is to be asked.
    Sweep,
}

/// All armed timers.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Timers {
    set: BTreeSet<(Monotonic, Timer)>,
}

impl Timers {
    /// Arms.
    pub(super) fn arm(&mut self, at: Monotonic, timer: Timer) {
        self.set.insert((at, timer));
    }

    /// Takes out what was armed for `at`.
    pub(super) fn disarm(&mut self, at: Monotonic, timer: Timer) {
        self.set.remove(&(at, timer));
    }

    /// Moves a timer that its owner remembers in `slot`.
    pub(super) fn move_to(&mut self, slot: &mut Option<Monotonic>, at: Option<Monotonic>, timer: Timer) {
        if let Some(old) = slot.take() {
            self.disarm(old, timer);
        }
        if let Some(new) = at {
            self.arm(new, timer);
        }
        *slot = at;
    }

    /// The next one that is due.
    pub(super) fn pop_due(&mut self, now: Monotonic) -> Option<Timer> {
        let first = *self.set.first()?;
        if first.0 > now {
            return None;
        }
        self.set.remove(&first);
        Some(first.1)
    }

    /// When the next one is due.
    pub(super) fn next_at(&self) -> Option<Monotonic> {
        self.set.first().map(|(at, _)| *at)
    }

    /// Whether it is armed for `at`.
    pub(super) fn has(&self, at: Monotonic, timer: Timer) -> bool {
        self.set.contains(&(at, timer))
    }

    /// How many.
    pub(super) fn count(&self) -> usize {
        self.set.len()
    }
}
