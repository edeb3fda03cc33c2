//! A window: the first keys of a durable range, held in memory up to a horizon (PROTOCOL F34).
//!
//! Owns: which keys are in memory, what lies beyond them, and the one load that may be under way.
//! Must never: grow by itself (its owner bounds the cost and evicts the last). Next: `ready.rs`,
//! `waiting.rs`.

use crate::job::Job;
use crate::limits::{READY_WINDOW_BYTES, READY_WINDOW_JOBS};
use std::collections::{BTreeMap, BTreeSet};

/// What a job of the smallest size costs: bounding the cost bounds the count too.
pub(super) const COST_MIN: usize = READY_WINDOW_BYTES / READY_WINDOW_JOBS;

/// What lies beyond the keys in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Beyond<K> {
    /// Nothing was loaded yet: every key is beyond.
    Unloaded,
    /// Rows from this key on exist, or may.
    From(K),
    /// Nothing: all keys of the range are in memory.
    Complete,
}

/// What a window can hold.
pub(super) trait Costly {
    /// In bytes, at least `COST_MIN`.
    fn cost(&self) -> usize;
}

/// The first keys of a range.
#[derive(Clone, Debug, Hash)]
pub(super) struct Window<K, E> {
    items: BTreeMap<K, E>,
    beyond: Beyond<K>,
    /// From where a load is under way.
    loading: Option<Beyond<K>>,
    /// Keys beyond the horizon that were deleted while a load is under way.
    gone: BTreeSet<K>,
    cost: usize,
}

impl<K: Copy + Ord, E: Costly> Window<K, E> {
    /// An empty window over a range of which only this is known.
    pub(super) fn new(beyond: Beyond<K>) -> Window<K, E> {
        Window {
            items: BTreeMap::new(),
            beyond,
            loading: None,
            gone: BTreeSet::new(),
            cost: 0,
        }
    }

    /// Whether a row with this key belongs in memory.
    pub(super) fn admits(&self, key: &K) -> bool {
        match self.beyond {
            Beyond::Unloaded => false,
            Beyond::From(horizon) => *key < horizon,
            Beyond::Complete => true,
        }
    }

    /// Takes a key that it admits; a key beyond the horizon is only noted as existing.
    pub(super) fn insert(&mut self, key: K, entry: E) -> bool {
        self.gone.remove(&key);
        if !self.admits(&key) {
            return false;
        }
        self.cost += entry.cost();
        if let Some(old) = self.items.insert(key, entry) {
            self.cost -= old.cost();
        }
        true
    }

    /// Removes a key whose row is being deleted, wherever it lies.
    pub(super) fn remove(&mut self, key: &K) -> Option<E> {
        let removed = self.items.remove(key);
        match &removed {
            Some(entry) => self.cost -= entry.cost(),
            None if self.loading.is_some() => {
                self.gone.insert(*key);
            }
            None => {}
        }
        removed
    }

    /// Takes the first out.
    pub(super) fn pop_first(&mut self) -> Option<(K, E)> {
        let (key, entry) = self.items.pop_first()?;
        self.cost -= entry.cost();
        Some((key, entry))
    }

    /// Pushes the last out: its row stays, the horizon falls to it.
    pub(super) fn evict_last(&mut self) -> Option<(K, E)> {
        let (key, entry) = self.items.pop_last()?;
        self.cost -= entry.cost();
        self.beyond = Beyond::From(key);
        Some((key, entry))
    }

    /// Whether a page should be fetched now that at most `low` keys are left.
    pub(super) fn wants_load(&self, low: usize) -> bool {
        self.beyond != Beyond::Complete && self.loading.is_none() && self.items.len() <= low
    }

    /// Notes that a load is under way; answers from where (`None`: from the mark or the head).
    pub(super) fn begin_load(&mut self) -> Option<K> {
        self.loading = Some(self.beyond);
        match self.beyond {
            Beyond::From(key) => Some(key),
            Beyond::Unloaded | Beyond::Complete => None,
        }
    }

    /// A row was written below where the first page under way begins: it must be read again from there.
    pub(super) fn begins_lower(&mut self) {
        if self.loading == Some(Beyond::Unloaded) {
            // What nothing joins on to.
            self.loading = Some(Beyond::Complete);
        }
    }

    /// A page came in, after which `beyond` follows. False if it does not join on any more (the horizon
    /// fell meanwhile), or was not asked for: then it is to be dropped. True: `insert` its rows now,
    /// skipping those that are `is_gone`, then call `end_load`.
    pub(super) fn join(&mut self, beyond: Beyond<K>) -> bool {
        let joins = self.loading == Some(self.beyond);
        if joins {
            self.beyond = beyond;
        } else {
            self.end_load();
        }
        joins
    }

    /// Whether a loaded row was deleted after its load began.
    pub(super) fn is_gone(&self, key: &K) -> bool {
        self.gone.contains(key)
    }

    /// The page is in.
    pub(super) fn end_load(&mut self) {
        self.loading = None;
        self.gone.clear();
    }

    /// An entry in memory.
    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut E> {
        self.items.get_mut(key)
    }

    /// Whether the key is in memory.
    pub(super) fn contains(&self, key: &K) -> bool {
        self.items.contains_key(key)
    }

    /// Entries in memory, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &E)> {
        self.items.iter()
    }

    /// No row of the range lies below this; `None` if nothing is known or nothing exists.
    pub(super) fn first_possible(&self) -> Option<K> {
        match (self.items.first_key_value(), self.beyond) {
            (Some((key, _)), _) => Some(*key),
            (None, Beyond::From(key)) => Some(key),
            (None, Beyond::Unloaded | Beyond::Complete) => None,
        }
    }

    /// What lies beyond.
    pub(super) fn beyond(&self) -> Beyond<K> {
        self.beyond
    }

    /// Whether a load is under way.
    pub(super) fn is_loading(&self) -> bool {
        self.loading.is_some()
    }

    /// Keys in memory.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether no key is in memory.
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Bytes in memory, as its entries state them.
    pub(super) fn cost(&self) -> usize {
        self.cost
    }

    /// Panics on a contradiction.
    pub(super) fn check(&self) {
        let sum: usize = self.items.values().map(Costly::cost).sum();
        assert_eq!(sum, self.cost, "a window's cost is the sum of its entries");
        assert!(
            self.items.keys().all(|key| self.admits(key)),
            "a key beyond the horizon is in memory"
        );
        assert!(
            self.loading.is_some() || self.gone.is_empty(),
            "deletions are noted without a load"
        );
    }
}

/// What holding a job costs.
pub(super) fn cost_of(job: &Job) -> usize {
    job.weight().max(COST_MIN)
}
