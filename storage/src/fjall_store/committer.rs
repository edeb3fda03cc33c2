//! The commit thread: takes all that wait, judges it in order, one journal write, one sync.
//!
//! Owns: the only writer of the database, the scope rows in memory, the sequence and the chain. A
//! refused batch leaves no trace in its group. Must never: answer by itself (the marker does).
//! Next: `rules/mod.rs`, `marker.rs`.

use super::disk_space::DiskSpace;
use super::error::plain;
use super::folder::Folder;
use super::identity::Identity;
use super::mark::{Mark, MarkFile, MarkSlot};
use super::marker::{Answer, PanicGuard, Synced};
use super::presence::Presence;
use super::queue::{Item, Queue};
use super::redo;
use super::space::{SPACES, Spaces};
use crate::batch::RawWrite;
use crate::clock::TimeKeeper;
use crate::codec::{encode_scope, level_written};
use crate::keys::{chain_key, scope_key};
use crate::rules::{Group, State};
use crate::store::{Bytes, Committed, StoreError};
use fencepost_core::ids::Scope;
use fencepost_core::level::Level;
use fencepost_core::limits::{GROUP_BYTES_MAX, GROUP_PATIENCE_PART, GROUP_RETURN_US, GROUP_SPACING_US, MARK_SLOTS};
use fencepost_core::row::ScopeRow;
use fencepost_core::time::{Monotonic, Span, StoreTime};
use fjall::{OwnedWriteBatch, PersistMode};
use std::collections::BTreeMap;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

/// Between two groups while few wait, from the beginning of one.
const GROUP_SPACING: Span = Span(GROUP_SPACING_US);

/// Answered callers come back after so long; a shorter wait for them brings nobody.
const GROUP_RETURN: Span = Span(GROUP_RETURN_US);

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
    pub(super) synced: Sender<Synced>,
    /// Small groups' marks are written here, by this thread.
    pub(super) file: Arc<Mutex<MarkFile>>,
    /// The highest acknowledged mark, for all to see.
    pub(super) acknowledged: Arc<Mutex<Mark>>,
    /// Its format is raised before the first row of a higher level is written.
    pub(super) identity: Arc<Mutex<Identity>>,
    pub(super) folder: Folder,
    /// Looked at before a group is answered.
    pub(super) presence: Presence,
    /// The journal is synced up to this group.
    pub(super) journal_synced: u64,
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

    fn scopes_after(&self, time: StoreTime) -> Vec<ScopeRow> {
        self.scopes.values().filter(|row| row.at > time).cloned().collect()
    }
}

impl Committer {
    pub(super) fn run(mut self) {
        let _guard = PanicGuard(self.queue.clone(), "the commit thread panicked");
        let mut waiting = Vec::new();
        let mut not_before = Monotonic(0);
        let time = self.time.clone();
        let mut last = 0;
        while self
            .queue
            .take(&mut waiting, last, || not_before.since(time.mono()).to_std())
        {
            if waiting.is_empty() {
                self.look_while_idle();
                continue;
            }
            let began = time.mono();
            last = waiting.len();
            let mut items = waiting.drain(..).peekable();
            while items.peek().is_some() {
                let mut bytes = 0;
                let group: Vec<Item> = std::iter::from_fn(|| {
                    let item = items.next_if(|_| bytes < GROUP_BYTES_MAX)?;
                    bytes += item.bytes();
                    Some(item)
                })
                .collect();
                self.commit_group(group);
            }
            let ended = time.mono();
            let patience = Span(ended.since(began).0 / GROUP_PATIENCE_PART).min(GROUP_SPACING);
            let pause = if patience < GROUP_RETURN { Span::ZERO } else { patience };
            not_before = (began + GROUP_SPACING).max(ended + pause);
        }
        // Not needed for what was acknowledged: a start then has nothing to write again.
        let _ = self.sync_journal();
    }

    /// Nobody writes; what is read or said again is of the same folder.
    fn look_while_idle(&self) {
        if let Err(why) = self.presence.look() {
            self.queue.break_down(&why);
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
            return match self.presence.look() {
                Ok(()) => self.pass_on(gathered.answers),
                Err(why) => self.break_down(gathered.answers, &why),
            };
        }
        if let Err(why) = gathered.level().map_or(Ok(()), |level| self.raise_format(level)) {
            return self.break_down(gathered.answers, &why);
        }
        let mark = self.mark.next(gathered.digest.finalize().as_bytes());
        let committed = match gathered.rows() {
            Some(rows) => self.commit_small(&gathered, mark, rows),
            None => self.commit_large(&gathered, mark),
        };
        if let Err(why) = committed.and_then(|()| self.presence.look()) {
            return self.break_down(gathered.answers, &why);
        }
        self.mark = mark;
        self.current.scopes.extend(gathered.scopes);
        self.pass_on(gathered.answers);
        self.bound_journals();
    }

    /// So that an older version refuses the folder by its first line. Durable before the group is.
    fn raise_format(&self, level: Level) -> Result<(), String> {
        let mut identity = super::locked(&self.identity);
        let format = u32::from(level.0);
        if format <= identity.format {
            return Ok(());
        }
        let raised = Identity { format, ..*identity };
        raised
            .write(&self.folder)
            .map_err(|error| format!("the store's format cannot be raised: {error}"))?;
        *identity = raised;
        Ok(())
    }

    /// After a large group the answers wait for its mark; a small one's mark is durable.
    fn pass_on(&self, answers: Vec<Answer>) {
        match self.journal_synced == self.mark.sequence {
            true => self.hand_on(answers),
            false => self.answer(answers),
        }
    }

    /// The mark with the rows is what makes the group durable; the journal follows once a round.
    fn commit_small(&mut self, gathered: &Gathered, mark: Mark, rows: Vec<u8>) -> Result<(), String> {
        if mark.sequence > self.journal_synced + MARK_SLOTS {
            self.sync_journal()?;
        }
        let redo = Some((self.mark, rows));
        super::locked(&self.file)
            .write(&MarkSlot { mark, redo })
            .map_err(|error| format!("the high-water mark cannot be written: {error}"))?;
        self.write(gathered, mark, PersistMode::Buffer)
    }

    /// The journal makes the group durable, then its mark, which the marker writes.
    fn commit_large(&mut self, gathered: &Gathered, mark: Mark) -> Result<(), String> {
        self.write(gathered, mark, self.sync_mode())?;
        self.journal_synced = mark.sequence;
        Ok(())
    }

    fn sync_journal(&mut self) -> Result<(), String> {
        let database = self.current.spaces.database();
        database
            .persist(self.sync_mode())
            .map_err(|error| format!("the journal cannot be synced: {}", plain(&error)))?;
        self.journal_synced = self.mark.sequence;
        Ok(())
    }

    /// Answers a small group.
    fn answer(&self, answers: Vec<Answer>) {
        if let Some(why) = self.queue.broken() {
            return answers.into_iter().for_each(|answer| answer.give_unknown(&why));
        }
        *super::locked(&self.acknowledged) = self.mark;
        answers.into_iter().for_each(Answer::give);
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

    fn write(&self, gathered: &Gathered, mark: Mark, mode: PersistMode) -> Result<(), String> {
        let batches = gathered.batches.iter().map(|batch| &batch.writes);
        let lists: Vec<&Vec<RawWrite>> = batches.chain(&gathered.writes).collect();
        let count = lists.iter().map(|list| list.len()).sum::<usize>() + gathered.scopes.len() + SPACES.len();
        let spaces = &self.current.spaces;
        let mut batch = OwnedWriteBatch::with_capacity(spaces.database().clone(), count).durability(Some(mode));
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
        batch
            .commit()
            .map_err(|error| format!("a commit failed: {}", plain(&error)))
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
        if let Err(unsent) = self.synced.send(group) {
            self.break_down(unsent.0.answers, "the marker thread has ended");
        }
    }

    fn break_down(&self, answers: Vec<Answer>, why: &str) {
        self.queue.break_down(why);
        answers.into_iter().for_each(|answer| answer.give_unknown(why));
    }
}

impl Gathered {
    /// As bytes for its mark's slot; `None` if it is a large group.
    fn rows(&self) -> Option<Vec<u8>> {
        let batches = self.batches.iter().flat_map(|batch| &batch.writes);
        redo::encode(self.scopes.values(), batches.chain(self.writes.iter().flatten()))
    }

    /// The highest level that a write of it raises the cell to, if one does.
    fn level(&self) -> Option<Level> {
        let batches = self.batches.iter().flat_map(|batch| &batch.writes);
        let raised = batches
            .chain(self.writes.iter().flatten())
            .filter_map(|write| match write {
                RawWrite::Put { key, value, .. } => level_written(key, value),
                RawWrite::Delete { .. } => None,
            });
        raised.max()
    }

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
