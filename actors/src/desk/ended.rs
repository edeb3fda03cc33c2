//! Attempts that have ended: which of them are remembered, and for how long.
//!
//! Owns: the order in which they are forgotten. Must never: forget one that is not recorded, for its report would be
//! answered as lost although it was taken (F18). Next: `mod.rs`.

use super::Key;
use fencepost_core::limits::REPORTS_KEPT_MAX;
use std::collections::{BTreeSet, VecDeque};

/// Of one desk.
#[derive(Default)]
pub(super) struct Ended {
    unrecorded: BTreeSet<Key>,
    /// Oldest first.
    recorded: VecDeque<Key>,
}

impl Ended {
    /// It has ended, and is not recorded yet.
    pub(super) fn end(&mut self, key: Key) {
        self.unrecorded.insert(key);
    }

    /// It is recorded; who is forgotten for it.
    pub(super) fn record(&mut self, key: Key) -> Option<Key> {
        self.unrecorded.remove(&key);
        self.recorded.push_back(key);
        let is_too_much = self.recorded.len() > REPORTS_KEPT_MAX;
        is_too_much.then(|| self.recorded.pop_front()).flatten()
    }

    /// So many wait to be recorded that no more are handed out.
    pub(super) fn is_full(&self) -> bool {
        self.unrecorded.len() >= REPORTS_KEPT_MAX
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
            let forgotten = ended.record(key(number));
            assert_eq!(
                forgotten,
                number.checked_sub(REPORTS_KEPT_MAX).map(key),
                "the oldest one"
            );
        }
        assert!(!ended.is_full());
    }
}
