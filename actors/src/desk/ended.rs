//! Attempts that have ended: which of them are remembered, and for how long.
//!
//! Owns: the order in which they are forgotten. Must never: forget one that is not recorded, for its report would be
//! answered as lost although it was taken (F18), nor one that its owner may still take for current, for it would be
//! given back as never begun (F14). Next: `mod.rs`.

use super::Key;
use fencepost_core::limits::REPORTS_KEPT_MAX;
use fencepost_core::time::Monotonic;
use std::collections::{BTreeSet, VecDeque};

/// Of one desk.
#[derive(Default)]
pub(super) struct Ended {
    unrecorded: BTreeSet<Key>,
    /// Those whose leases were over, and up to when their owners may not know that; oldest first.
    forfeited: VecDeque<(Key, Monotonic)>,
    /// Oldest first.
    recorded: VecDeque<Key>,
}

impl Ended {
    /// It has ended, and is not recorded yet.
    pub(super) fn end(&mut self, key: Key) {
        self.unrecorded.insert(key);
    }

    /// It is recorded.
    pub(super) fn record(&mut self, key: Key) {
        self.unrecorded.remove(&key);
        self.recorded.push_back(key);
    }

    /// Its lease was over; its owner may take it for current until then.
    pub(super) fn forfeit(&mut self, key: Key, until: Monotonic) {
        self.unrecorded.remove(&key);
        self.forfeited.push_back((key, until));
    }

    /// A late report of it is on its way.
    pub(super) fn reopen(&mut self, key: Key) {
        self.forfeited.retain(|(known, _)| *known != key);
        self.recorded.retain(|known| *known != key);
        self.unrecorded.insert(key);
    }

    /// Who is forgotten by now.
    pub(super) fn forget(&mut self, now: Monotonic) -> Vec<Key> {
        while let Some((key, _)) = self.forfeited.pop_front_if(|(_, until)| *until <= now) {
            self.recorded.push_back(key);
        }
        let too_many = self.recorded.len().saturating_sub(REPORTS_KEPT_MAX);
        self.recorded.drain(..too_many).collect()
    }

    /// So many wait to be recorded that no more are handed out.
    pub(super) fn is_full(&self) -> bool {
        self.unrecorded.len() + self.forfeited.len() >= REPORTS_KEPT_MAX
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use fencepost_core::ids::{JobId, Slot, Token};

    fn key(number: usize) -> Key {
        let mut chance = [0; 14];
        chance[..8].copy_from_slice(&number.to_be_bytes());
        (JobId::fresh(Slot::new(1).unwrap(), chance), Token::default())
    }

    #[test]
    fn f18_in_an_outage_of_the_store_no_attempt_is_forgotten_before_it_is_recorded() {
        let mut ended = Ended::default();
        for number in 0..REPORTS_KEPT_MAX - 1 {
            ended.end(key(number));
        }
        assert!(!ended.is_full());
        // What runs may end although nothing more is handed out.
        for number in REPORTS_KEPT_MAX - 1..2 * REPORTS_KEPT_MAX {
            ended.end(key(number));
            assert!(ended.is_full());
        }
        for number in 0..2 * REPORTS_KEPT_MAX {
            ended.record(key(number));
            let oldest = number.checked_sub(REPORTS_KEPT_MAX).map(key);
            assert_eq!(ended.forget(Monotonic(0)), Vec::from_iter(oldest), "the oldest one");
        }
        assert!(!ended.is_full());
    }

    fn record_others(ended: &mut Ended, now: u64) -> Vec<Key> {
        let others = 10..REPORTS_KEPT_MAX + 20;
        let forgotten = others.map(|number| {
            ended.record(key(number));
            ended.forget(Monotonic(now))
        });
        forgotten.flatten().collect()
    }

    #[test]
    fn f14_one_that_its_owner_may_take_for_current_is_not_forgotten_however_many_are_recorded() {
        let mut ended = Ended::default();
        ended.end(key(1));
        ended.forfeit(key(1), Monotonic(100));
        assert!(!record_others(&mut ended, 99).contains(&key(1)));
        assert_eq!(ended.forget(Monotonic(100)).len(), 1, "another one");
        assert!(record_others(&mut ended, 100).contains(&key(1)));
    }

    #[test]
    fn f18_one_whose_late_report_is_on_its_way_is_not_forgotten() {
        let mut ended = Ended::default();
        ended.record(key(1));
        ended.reopen(key(1));
        assert!(!record_others(&mut ended, 0).contains(&key(1)));
        ended.record(key(1));
        assert!(record_others(&mut ended, 0).contains(&key(1)));
    }
}
