//! The modelled disk: what is durable, what is written and not synced, and what a crash leaves.
//!
//! Owns: both sets and the log between them. Reads see the durable set only (PROTOCOL F5); the rules
//! see both. Must never: apply half a commit. Next: `mod.rs`.

use super::faults::Crash;
#[cfg(any(test, feature = "planted"))]
use super::faults::Planted;
use crate::batch::RawWrite;
use crate::rules::{Group, State};
use crate::store::{Bytes, Commit, Committed, KeyValue, Open, OpenError, Opened, Scan, Stated, StoreError};
use fencepost_core::ids::Scope;
use fencepost_core::row::ScopeRow;
use fencepost_core::time::StoreTime;
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Default)]
struct Image {
    rows: BTreeMap<Bytes, Bytes>,
    scopes: BTreeMap<Scope, ScopeRow>,
}

/// One commit or open in the log.
struct Entry {
    writes: Vec<RawWrite>,
    scopes: Vec<ScopeRow>,
}

/// Where a call stands in the log, and in which life of the store.
#[derive(Clone, Copy)]
pub(super) struct Ticket {
    life: u64,
    position: u64,
}

#[derive(Default)]
pub(super) struct Disk {
    durable: Image,
    /// The durable image with all unsynced entries applied.
    tip: Image,
    log: VecDeque<Entry>,
    /// Entries ever synced; the first of the log has this position.
    synced: u64,
    life: u64,
    pub(super) away: bool,
    pub(super) full: bool,
    pub(super) broken: bool,
    #[cfg(any(test, feature = "planted"))]
    pub(super) planted: Option<Planted>,
}

impl State for Image {
    fn scope(&self, scope: Scope) -> Option<ScopeRow> {
        self.scopes.get(&scope).cloned()
    }

    fn value(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        Ok(self.rows.get(key).cloned())
    }

    fn scopes_after(&self, time: StoreTime) -> Vec<ScopeRow> {
        self.scopes.values().filter(|row| row.at > time).cloned().collect()
    }
}

impl Image {
    fn apply(&mut self, entry: &Entry) {
        for write in &entry.writes {
            match write {
                RawWrite::Put { key, value, .. } => {
                    self.rows.insert(key.clone(), value.clone());
                }
                RawWrite::Delete { key } => {
                    self.rows.remove(key);
                }
            }
        }
        for scope in &entry.scopes {
            self.scopes.insert(scope.scope, scope.clone());
        }
    }
}

impl Disk {
    pub(super) fn readable(&self) -> Result<(), StoreError> {
        if self.broken {
            return Err(StoreError::Broken("a sync failed".into()));
        }
        if self.away {
            return Err(StoreError::Unavailable("the store is away".into()));
        }
        Ok(())
    }

    fn seen(&self) -> &Image {
        #[cfg(any(test, feature = "planted"))]
        if self.planted == Some(Planted::ReadUnsynced) {
            return &self.tip;
        }
        &self.durable
    }

    pub(super) fn scope(&self, scope: Scope) -> Option<ScopeRow> {
        self.seen().scope(scope)
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<Bytes> {
        self.seen().rows.get(key).cloned()
    }

    pub(super) fn scan(&self, scan: &Scan) -> Vec<KeyValue> {
        if scan.from >= scan.to {
            return Vec::new();
        }
        let bounds = Bytes::from(scan.from.as_slice())..Bytes::from(scan.to.as_slice());
        let range = self
            .seen()
            .rows
            .range(bounds)
            .map(|(key, value)| (key.clone(), value.clone()));
        if scan.backwards {
            take_rows(range.rev(), scan)
        } else {
            take_rows(range, scan)
        }
    }

    pub(super) fn get_within(&self, keys: &[Vec<u8>], most: usize) -> Vec<Option<Bytes>> {
        let mut bytes = 0;
        let values = keys.iter().enumerate().map_while(|(at, key)| {
            let is_over = at > 0 && bytes >= most;
            let value = self.get(key);
            bytes += value.as_ref().map_or(0, |value| value.len());
            (!is_over).then_some(value)
        });
        values.collect()
    }

    pub(super) fn durable_rows(&self) -> Vec<KeyValue> {
        let rows = self.durable.rows.iter();
        rows.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    pub(super) fn keeps(&self, request: &Commit) -> bool {
        let is_owners = |row: &ScopeRow| row.holder == request.holder && row.epoch == request.epoch;
        let row = self.durable.scope(request.scope).filter(is_owners);
        row.is_some_and(|row| row.batch >= request.number)
    }

    pub(super) fn unsynced(&self) -> usize {
        self.log.len()
    }

    /// Commits and opens that are durable since the last crash.
    pub(super) fn high_water(&self) -> u64 {
        self.synced
    }

    pub(super) fn floor(&self) -> StoreTime {
        let times = self.durable.scopes.values().map(|row| row.at);
        times.max().unwrap_or(StoreTime(0))
    }

    /// The answer to give once the ticket is synced.
    pub(super) fn commit(&mut self, request: &Commit, now: Stated) -> Result<(Committed, Ticket), StoreError> {
        self.readable()?;
        let mut group = Group::new(&self.tip, now, self.full);
        #[cfg(any(test, feature = "planted"))]
        let request = &super::faults::bent(self.planted, &self.tip, request);
        let answer = group.commit(request)?;
        #[cfg(any(test, feature = "planted"))]
        let answer = super::faults::bent_answer(self.planted, &mut group, request, answer);
        let scopes: Vec<ScopeRow> = group.into_scopes().into_values().collect();
        if matches!(answer, Committed::Committed(_)) {
            return Ok((answer, self.append(request.batch.writes.clone(), scopes)));
        }
        #[cfg(any(test, feature = "planted"))]
        if self.planted == Some(Planted::RefusedBatchLeavesTrace) {
            self.append(request.batch.writes.clone(), Vec::new());
        }
        Ok((answer, self.last_ticket()))
    }

    /// As `commit`.
    pub(super) fn open(
        &mut self,
        request: &Open,
        now: Stated,
    ) -> Result<(Result<Opened, OpenError>, Ticket), StoreError> {
        self.readable()?;
        let mut group = Group::new(&self.tip, now, self.full);
        #[cfg(any(test, feature = "planted"))]
        let request = &super::faults::bent_open(self.planted, &self.tip, request);
        let answer = group.open(request);
        let scopes: Vec<ScopeRow> = group.into_scopes().into_values().collect();
        #[cfg(any(test, feature = "planted"))]
        let (answer, scopes) = self.bent_opened(request.scope, answer, scopes);
        let ticket = if scopes.is_empty() {
            self.last_ticket()
        } else {
            self.append(Vec::new(), scopes)
        };
        Ok((answer, ticket))
    }

    /// What a store with a planted bug makes of an open.
    #[cfg(any(test, feature = "planted"))]
    fn bent_opened(
        &self,
        scope: Scope,
        answer: Result<Opened, OpenError>,
        mut scopes: Vec<ScopeRow>,
    ) -> (Result<Opened, OpenError>, Vec<ScopeRow>) {
        let before = self.tip.scope(scope).map(|row| row.epoch).filter(|epoch| epoch.0 > 0);
        let bent = |epoch| super::faults::bent_epoch(self.planted, before, epoch);
        for row in &mut scopes {
            row.epoch = bent(row.epoch);
        }
        let answer = answer.map(|opened| Opened {
            epoch: bent(opened.epoch),
            ..opened
        });
        (answer, scopes)
    }

    fn append(&mut self, writes: Vec<RawWrite>, scopes: Vec<ScopeRow>) -> Ticket {
        let entry = Entry { writes, scopes };
        self.tip.apply(&entry);
        self.log.push_back(entry);
        self.last_ticket()
    }

    /// An answer that wrote nothing still waits for what it was judged against (F3, F5).
    fn last_ticket(&self) -> Ticket {
        Ticket {
            life: self.life,
            position: self.synced + self.log.len() as u64,
        }
    }

    /// Syncs everything up to the ticket; false if that is not to be known any more.
    pub(super) fn sync(&mut self, ticket: Ticket) -> bool {
        if ticket.life != self.life || self.broken || self.away {
            return false;
        }
        while self.synced < ticket.position {
            let Some(entry) = self.log.pop_front() else {
                break;
            };
            self.durable.apply(&entry);
            self.synced += 1;
        }
        true
    }

    pub(super) fn crash(&mut self, how: Crash) {
        let kept = match how {
            Crash::Process => self.log.len(),
            Crash::Power { kept } => kept.min(self.log.len()),
        };
        for entry in self.log.drain(..).take(kept) {
            self.durable.apply(&entry);
        }
        self.log.clear();
        self.synced = 0;
        self.tip = self.durable.clone();
        self.life += 1;
        self.broken = false;
        self.away = false;
    }
}

fn take_rows(range: impl Iterator<Item = KeyValue>, scan: &Scan) -> Vec<KeyValue> {
    let mut rows = Vec::new();
    let mut bytes = 0;
    for (key, value) in range {
        if scan.is_done(rows.len(), bytes) {
            break;
        }
        bytes += key.len() + value.len();
        rows.push((key, value));
    }
    rows
}
