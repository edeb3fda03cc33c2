//! The wait range: jobs whose time has not come, the first of them in memory (F34).
//!
//! Owns: which waiting jobs are in memory and when each is due. First starts at an instant are due by
//! StoreTime; delays, and waits between attempts, by the monotonic clock (F20). Must never: hold more than
//! `WAIT_WINDOW_JOBS` or `WAIT_WINDOW_BYTES`. Next: `places.rs`, `loads.rs`, `elapsed.rs`.

use super::mark::Mark;
use super::window::{Beyond, Costly, Window};
use crate::ids::{JobId, ShardId};
use crate::job::Job;
use crate::limits::{WAIT_WINDOW_BYTES, WAIT_WINDOW_JOBS};
use crate::row::RowKey;
use crate::time::{Monotonic, Now, StoreTime};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Due instant and id: a wait row's key within its shard.
pub(super) type WaitKey = (StoreTime, JobId);

/// A waiting job in memory.
#[derive(Clone, Debug, Hash)]
pub(super) struct WaitEntry {
    /// As stored.
    pub(super) job: Arc<Job>,
    /// Set for a wait of a length: when it ends by this node's clock.
    pub(super) ends_at: Option<Monotonic>,
    /// Of `cost_of`.
    pub(super) cost: usize,
}

/// The wait range of a shard.
#[derive(Clone, Debug, Hash)]
pub(super) struct WaitRange {
    window: Window<WaitKey, WaitEntry>,
    /// First starts at an instant in the window.
    by_calendar: BTreeSet<WaitKey>,
    /// Waits of a length in the window.
    by_clock: BTreeSet<(Monotonic, WaitKey)>,
    /// Rows of jobs that are in a ready window already.
    lent: BTreeSet<WaitKey>,
    mark: Mark<WaitKey>,
}

impl Costly for WaitEntry {
    fn cost(&self) -> usize {
        self.cost
    }
}

/// The name of a wait row.
pub(super) fn row_key(shard: ShardId, key: WaitKey) -> RowKey {
    RowKey::Wait(shard, key.0, key.1)
}

impl WaitRange {
    /// Nothing loaded yet, with the mark as stored.
    pub(super) fn new(mark: Option<WaitKey>) -> WaitRange {
        WaitRange {
            window: Window::new(Beyond::Unloaded),
            by_calendar: BTreeSet::new(),
            by_clock: BTreeSet::new(),
            lent: BTreeSet::new(),
            mark: Mark::new(mark),
        }
    }

    /// Puts a job into the window if it lies below the horizon, and pushes the last out when it
    /// becomes too much; their rows stay.
    pub(super) fn insert(&mut self, key: WaitKey, entry: WaitEntry) {
        let ends_at = entry.ends_at;
        if !self.window.insert(key, entry) {
            return;
        }
        match ends_at {
            Some(at) => self.by_clock.insert((at, key)),
            None => self.by_calendar.insert(key),
        };
        while self.window.cost() > WAIT_WINDOW_BYTES || self.window.len() > WAIT_WINDOW_JOBS {
            let Some((key, entry)) = self.window.evict_last() else {
                break;
            };
            self.forget(key, &entry);
        }
    }

    /// Takes a job out whose row is being deleted.
    pub(super) fn remove(&mut self, key: WaitKey) -> Option<WaitEntry> {
        self.lent.remove(&key);
        let entry = self.window.remove(&key)?;
        self.forget(key, &entry);
        Some(entry)
    }

    /// Takes the next due job out of the window; its row stays, and is lent to the ready range until
    /// it is deleted.
    pub(super) fn take_due(&mut self, now: Now) -> Option<(WaitKey, WaitEntry)> {
        let by_clock = self
            .by_clock
            .first()
            .filter(|(at, _)| *at <= now.mono)
            .map(|(_, key)| *key);
        let by_calendar = self
            .by_calendar
            .first()
            .filter(|key| !now.doubt && key.0 <= now.store)
            .copied();
        let key = by_clock.or(by_calendar)?;
        let entry = self.window.remove(&key)?;
        self.forget(key, &entry);
        self.lent.insert(key);
        Some((key, entry))
    }

    /// When the next job in the window is due, on either clock.
    pub(super) fn next_due(&self) -> (Option<Monotonic>, Option<StoreTime>) {
        (
            self.by_clock.first().map(|(at, _)| *at),
            self.by_calendar.first().map(|key| key.0),
        )
    }

    /// Whether a wait row's job is in memory, here or in a ready window.
    pub(super) fn knows(&self, key: &WaitKey) -> bool {
        self.window.contains(key) || self.lent.contains(key)
    }

    /// The window.
    pub(super) fn window(&mut self) -> &mut Window<WaitKey, WaitEntry> {
        &mut self.window
    }

    /// Whether the row of this key is held by a ready window.
    pub(super) fn is_lent(&self, key: &WaitKey) -> bool {
        self.lent.contains(key)
    }

    /// The mark.
    pub(super) fn mark(&mut self) -> &mut Mark<WaitKey> {
        &mut self.mark
    }

    /// The mark's new place, when enough was deleted.
    pub(super) fn advance_mark(&mut self) -> Option<WaitKey> {
        if !self.mark.is_due() || self.window.beyond() == Beyond::Unloaded {
            return None;
        }
        let first = [self.window.first_possible(), self.lent.first().copied()]
            .into_iter()
            .flatten()
            .min();
        self.mark.advance(first)
    }

    fn forget(&mut self, key: WaitKey, entry: &WaitEntry) {
        match entry.ends_at {
            Some(at) => self.by_clock.remove(&(at, key)),
            None => self.by_calendar.remove(&key),
        };
    }

    /// Whether a page of it has come in.
    pub(super) fn is_loaded(&self) -> bool {
        self.window.beyond() != Beyond::Unloaded
    }

    /// Panics on a contradiction.
    pub(super) fn check(&self) {
        self.window.check();
        let bounded = self.window.cost() <= WAIT_WINDOW_BYTES && self.window.len() <= WAIT_WINDOW_JOBS;
        assert!(bounded, "the wait window is bounded");
        assert_eq!(
            self.by_calendar.len() + self.by_clock.len(),
            self.window.len(),
            "each waiting job in memory is due by one clock"
        );
        for (key, entry) in self.window.iter() {
            let listed = match entry.ends_at {
                Some(at) => self.by_clock.contains(&(at, *key)),
                None => self.by_calendar.contains(key),
            };
            assert!(listed, "a waiting job in memory is listed under its due time");
            assert!(!self.lent.contains(key), "a lent row's job is not in the wait window");
        }
    }

    /// Keys lent to the ready range.
    pub(super) fn lent(&self) -> &BTreeSet<WaitKey> {
        &self.lent
    }
}
