//! The low-water mark of a range (PROTOCOL F7): where a scan may begin instead of at the tombstones.
//!
//! Owns: when the mark moves. Must never: pass over a key that this range's writer did not delete, or
//! stay above a key that it inserts. Next: `ready.rs`, `waiting.rs`.

use crate::limits::MARK_INTERVAL;

/// The mark of one range.
#[derive(Clone, Debug, Hash)]
pub(super) struct Mark<K> {
    /// As the stored row says; a row of the range lies at or above it.
    stored: Option<K>,
    deleted: u32,
    deleted_max: Option<K>,
}

impl<K: Copy + Ord> Mark<K> {
    /// As stored.
    pub(super) fn new(stored: Option<K>) -> Mark<K> {
        Mark {
            stored,
            deleted: 0,
            deleted_max: None,
        }
    }

    /// A key of the range is deleted in this step.
    pub(super) fn on_delete(&mut self, key: K) {
        self.deleted += 1;
        self.deleted_max = self.deleted_max.max(Some(key));
    }

    /// A key is inserted in this step: the mark to store in the same step, if it must fall.
    pub(super) fn on_insert(&mut self, key: K) -> Option<K> {
        let lowered = self.stored.filter(|mark| key < *mark).map(|_| key);
        if lowered.is_some() {
            self.stored = lowered;
        }
        lowered
    }

    /// Whether it is worth storing anew.
    pub(super) fn is_due(&self) -> bool {
        self.deleted >= MARK_INTERVAL
    }

    /// Moves it over deleted keys, up to the first that may exist: the mark to store, if it rises.
    pub(super) fn advance(&mut self, first_possible: Option<K>) -> Option<K> {
        self.deleted = 0;
        let reached = self.deleted_max?;
        let next = first_possible.map_or(reached, |first| first.min(reached));
        if self.stored.is_some_and(|stored| stored >= next) {
            return None;
        }
        self.stored = Some(next);
        self.stored
    }

    /// As stored.
    pub(super) fn stored(&self) -> Option<K> {
        self.stored
    }
}
