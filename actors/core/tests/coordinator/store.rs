//! A store in small: epochs by compare-and-set, and rows under the coordinator's newest epoch.
//!
//! Owns: what a store judges (PROTOCOL F2, F6). Must never: help a machine. Next: `world.rs`.

use fencepost_core::coordinator::io::{Assigned, CoordinatorInput};
use fencepost_core::ids::Epoch;
use fencepost_core::name::Name;
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Store {
    /// Epoch and holder's boot.
    pub coordinator: (Epoch, u64),
    pub rows: Vec<Option<Assigned>>,
    /// Shards whose row has rotted.
    pub unreadable: BTreeSet<u16>,
    /// Highest version that each shard's row ever had.
    pub highest: Vec<u64>,
    /// Of each shard: epoch and holder's boot.
    pub shards: Vec<(Epoch, u64)>,
    /// A decision that came after a later one.
    pub went_back: bool,
    pub moves: u64,
}

impl Store {
    pub fn open_coordinator(&mut self, expected: Epoch, boot: u64) -> CoordinatorInput {
        if self.coordinator.0 != expected {
            return CoordinatorInput::NotOpened;
        }
        self.coordinator = (Epoch(expected.0 + 1), boot);
        CoordinatorInput::Opened(self.coordinator.0)
    }

    pub fn commit(&mut self, epoch: Epoch, boot: u64, rows: Vec<(u16, Assigned)>, is_checked: bool) -> bool {
        if is_checked && self.coordinator != (epoch, boot) {
            return false;
        }
        for (shard, row) in rows {
            let known = &mut self.rows[usize::from(shard)];
            let highest = &mut self.highest[usize::from(shard)];
            self.went_back |= match self.unreadable.remove(&shard) {
                true => row.version <= *highest,
                false => known.as_ref().map_or(0, |known| known.version) + 1 != row.version,
            };
            *highest = row.version;
            self.moves += 1;
            *known = Some(row);
        }
        true
    }

    /// A row that is there cannot be read any more.
    pub fn rot(&mut self, shard: u16) {
        if self.rows[usize::from(shard)].is_some() {
            self.unreadable.insert(shard);
        }
    }

    /// As whoever reads them gets them: what is there, and what cannot be read.
    pub fn read(&self) -> (Vec<Option<Assigned>>, Vec<u16>) {
        let rows = self.rows.iter().cloned().enumerate();
        let read = rows.map(|(at, row)| row.filter(|_| !self.unreadable.contains(&(at as u16))));
        (read.collect(), self.unreadable.iter().copied().collect())
    }

    pub fn open_shard(&mut self, shard: u16, node: &Name, boot: u64) -> Option<Epoch> {
        let at = usize::from(shard);
        let is_named = !self.unreadable.contains(&shard) && self.rows[at].as_ref().is_some_and(|row| row.node == *node);
        if !is_named {
            return None;
        }
        let (epoch, _) = self.shards[at];
        self.shards[at] = (Epoch(epoch.0 + 1), boot);
        Some(self.shards[at].0)
    }
}
