//! The commit thread: takes all that wait, judges it in order, one journal write, one sync.
//!
//! Owns: the only writer of the database, the scope rows in memory, the sequence and the chain. A
//! refused batch leaves no trace in its group. Must never: answer by itself (the marker does).
//! Next: `rules/mod.rs`, `marker.rs`.

use super::disk_space::DiskSpace;
use super::error::plain;
use super::mark::{Mark, MarkSlot};
use super::marker::{Answer, PanicGuard, Synced, ToMarker};
use super::queue::{Item, Queue};
use super::redo;
use super::space::{SPACES, Spaces};
use crate::batch::RawWrite;
use crate::clock::TimeKeeper;
use crate::codec::encode_scope;
use crate::keys::{chain_key, scope_key};
use crate::rules::{Group, State};
use crate::store::{Bytes, Committed, StoreError};
use fencepost_core::ids::Scope;
use fencepost_core::row::ScopeRow;
use fjall::{OwnedWriteBatch, PersistMode};
use std::collections::BTreeMap;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

/// Bytes of rows in one journal write, soft: what waits beyond goes into the next.
const GROUP_BYTES_MAX: usize = 16 << 20;

/// What the rules start from: synced rows, and scope rows as of the last group.
pub(super) struct Current {
    pub(super) spaces: Spaces,
    pub(super) scopes: BTreeMap<Scope, ScopeRow>,
}

pub(super) struct Committer {
    pub(super) current: Current,
    pub(super) mark: Mark,
    pub(super) time: Arc<TimeKeeper>,
    pub(super) queue: Arc<Queue>,
    pub(super) disk: Arc<Mutex<DiskSpace>>,
    pub(super) marker: Sender<ToMarker>,
    /// Journals at the last look.
    pub(super) journals: usize,
    #[cfg(any(test, feature = "planted"))]
    pub(super) planted: super::PlantedFaults,
}

/// What a group has gathered.
#[derive(Default)]
struct Gathered {
    writes: Vec<Vec<RawWrite>>,
    batches: Vec<Arc<crate::batch::Batch>>,
    scopes: BTreeMap<Scope, ScopeRow>,
    digest: blake3::Hasher,
    answers: Vec<Answer>,
}

impl State for Current {
    fn scope(&self, scope: Scope) -> Option<ScopeRow> {
        self.scopes.get(&scope).cloned()
    }

    fn value(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let Some(space) = self.spaces.of_key(key) else {
            return Ok(None);
        };
        let value = space.get(key).map_err(|error| StoreError::Broken(plain(&error)))?;
        Ok(value.map(|value| Bytes::from(&*value)))
    }

    fn contains(&self, key: &[u8]) -> Result<bool, StoreError> {
        let Some(space) = self.spaces.of_key(key) else {
            return Ok(false);
        };
        space
            .contains_key(key)
            .map_err(|error| StoreError::Broken(plain(&error)))
    }
}

impl Committer {
    pub(super) fn run(mut self) {
        let _guard = PanicGuard(self.queue.clone(), "the commit thread panicked");
        let mut waiting = Vec::new();
        while self.queue.take(&mut waiting) {
            let mut items = waiting.drain(..).peekable();
            while items.peek().is_some() {
                let mut bytes = 0;
                let group: Vec<Item> = std::iter::from_fn(|| {
                    let item = items.next_if(|_| bytes < GROUP_BYTES_MAX)?;
                    bytes += item_bytes(&item);
                    Some(item)
                })
                .collect();
                self.commit_group(group);
            }
        }
    }

    fn commit_group(&mut self, items: Vec<Item>) {
        if let Some(why) = self.queue.broken() {
            return items.into_iter().for_each(|item| item.refuse(&why));
        }
        let (gathered, failed) = self.gather(items);
        if let Some(why) = failed {
            return self.break_down(gathered.answers, &why);
        }
        if gathered.is_empty() {
            return self.hand_on(gathered.answers);
        }
        let mark = self.mark.next(gathered.digest.finalize().as_bytes());
        self.prepare(&gathered, mark);
        if let Err(error) = self.write(&gathered, mark) {
            let why = format!("a commit failed: {}", plain(&error));
            return self.break_down(gathered.answers, &why);
        }
        self.mark = mark;
        self.current.scopes.extend(gathered.scopes);
        self.hand_on(gathered.answers);
        self.bound_journals();
    }

    /// When the engine has begun another journal, every keyspace is flushed, so that the old one
    /// goes: what a start replays is bounded by one journal, also for keyspaces that fill slowly.
    fn bound_journals(&mut self) {
        let count = self.current.spaces.database().journal_count();
        if count > self.journals
            && let Err(error) = self.current.spaces.flush()
        {
            self.queue.break_down(&format!("a flush failed: {}", plain(&error)));
        }
        self.journals = count;
    }

    /// Judges the items in order; with the reason if the state cannot be read.
    fn gather(&mut self, items: Vec<Item>) -> (Gathered, Option<String>) {
        let is_full = super::locked(&self.disk).is_full();
        let mut group = Group::new(&self.current, self.time.state(), is_full);
        let mut gathered = Gathered::default();
        let mut failed: Option<String> = None;
        for item in items {
            if let Some(why) = &failed {
                item.refuse(why);
                continue;
            }
            match item {
                Item::Open { request, answer } => {
                    let opened = group.open(&request);
                    if let Err(crate::store::OpenError::Store(StoreError::Broken(why))) = &opened {
                        failed = Some(why.clone());
                    }
                    gathered.digest.update(&request.holder.0.to_be_bytes());
                    gathered.answers.push(Answer::Open(answer, opened));
                }
                Item::Commit { request, answer } => {
                    let committed = group.commit(&request).unwrap_or_else(|error| {
                        failed = Some(error.to_string());
                        Committed::Unknown(error.to_string())
                    });
                    if matches!(committed, Committed::Committed(_)) {
                        gathered.digest.update(&request.batch.digest);
                        gathered.batches.push(request.batch);
                    }
                    gathered.answers.push(Answer::Commit(answer, committed));
                }
                Item::Repair { writes, scopes, answer } => {
                    gathered.writes.push(writes);
                    gathered.scopes.extend(scopes.into_iter().map(|row| (row.scope, row)));
                    let done = Committed::Committed(self.time.state());
                    gathered.answers.push(Answer::Repair(answer, done));
                }
            }
        }
        gathered.scopes.extend(group.into_scopes());
        (gathered, failed)
    }

    /// Has a small group's mark written beside its journal entry, with its rows; a large one's waits.
    fn prepare(&self, gathered: &Gathered, mark: Mark) {
        let batches = gathered.batches.iter().flat_map(|batch| &batch.writes);
        let writes = batches.chain(gathered.writes.iter().flatten());
        if let Some(rows) = redo::encode(gathered.scopes.values(), writes) {
            let redo = Some((self.mark, rows));
            // When the marker has ended, the group's answers find out.
            let _ = self.marker.send(ToMarker::Prepared(MarkSlot { mark, redo }));
        }
    }

    fn write(&self, gathered: &Gathered, mark: Mark) -> fjall::Result<()> {
        let batches = gathered.batches.iter().map(|batch| &batch.writes);
        let lists: Vec<&Vec<RawWrite>> = batches.chain(&gathered.writes).collect();
        let count = lists.iter().map(|list| list.len()).sum::<usize>() + gathered.scopes.len() + SPACES.len();
        let spaces = &self.current.spaces;
        let mut batch =
            OwnedWriteBatch::with_capacity(spaces.database().clone(), count).durability(Some(self.sync_mode()));
        let meta = spaces.get(SPACES[0]);
        for space in SPACES {
            batch.insert(spaces.get(space), chain_key(space.number()), mark.to_value());
        }
        for row in gathered.scopes.values() {
            batch.insert(meta, scope_key(row.scope), encode_scope(row));
        }
        for write in lists.into_iter().flatten() {
            put(&mut batch, spaces, write);
        }
        batch.commit()
    }

    /// `fdatasync`: data, length and where it lies, which is all that reading it back needs. A full
    /// `fsync` also writes the journal's times, one more transaction of the file system each time.
    fn sync_mode(&self) -> PersistMode {
        #[cfg(any(test, feature = "planted"))]
        if self.planted.answer_before_sync {
            return PersistMode::Buffer;
        }
        PersistMode::SyncData
    }

    fn hand_on(&self, answers: Vec<Answer>) {
        let group = Synced {
            mark: self.mark,
            answers,
        };
        if let Err(unsent) = self.marker.send(ToMarker::Synced(group))
            && let ToMarker::Synced(group) = unsent.0
        {
            self.break_down(group.answers, "the marker thread has ended");
        }
    }

    fn break_down(&self, answers: Vec<Answer>, why: &str) {
        self.queue.break_down(why);
        answers.into_iter().for_each(|answer| answer.give_unknown(why));
    }
}

impl Gathered {
    fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.scopes.is_empty() && self.writes.is_empty()
    }
}

fn put(batch: &mut OwnedWriteBatch, spaces: &Spaces, write: &RawWrite) {
    match write {
        RawWrite::Put { key, value, .. } => {
            if let Some(space) = spaces.of_key(key) {
                batch.insert(space, &**key, &**value);
            }
        }
        RawWrite::Delete { key } => {
            if let Some(space) = spaces.of_key(key) {
                batch.remove(space, &**key);
            }
        }
    }
}

fn item_bytes(item: &Item) -> usize {
    match item {
        Item::Open { .. } | Item::Repair { .. } => 0,
        Item::Commit { request, .. } => request.batch.bytes,
    }
}
