//! Offline backup and restore.
//!
//! Owns: the copy under the lock, and what a restore must change so that the lost tail can do no harm
//! (PROTOCOL F11): the generation rises, every scope gets a new epoch, and every unfinished
//! at-most-once job that could have been granted is parked as uncertain. Must never: restore over an
//! existing store. Next: `start.rs`.

use super::FjallStore;
use super::error::StartError;
use super::folder::{Folder, is_there};
use super::identity::Identity;
use super::lock::FolderLock;
use super::mark::MarkFile;
use super::queue::Item;
use super::start::Options;
use super::verify;
use crate::batch::RawWrite;
use crate::codec;
use crate::keys::{KeyRange, Kind, key_bytes};
use crate::store::{Bytes, Committed, KeyValue, Scan, Store, StoreError};
use fencepost_core::ids::{BatchNo, Epoch, Generation, Holder, ShardMap};
use fencepost_core::job::{Delivery, Job, JobState, Place};
use fencepost_core::limits::SCAN_ROWS_MAX;
use fencepost_core::row::{CellRow, ParkedRow, ReadyRow, Row, RowKey, ScopeRow};
use fencepost_core::time::StoreTime;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Why a backup or a restore failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The store cannot be opened.
    #[error(transparent)]
    Start(#[from] StartError),
    /// There is something at the destination.
    #[error("{0} is there already")]
    Occupied(String),
    /// The source holds no store.
    #[error("{0} holds no store")]
    NoStore(String),
    /// The store failed on the way.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A row that the restore must change cannot be read.
    #[error("the backup cannot be restored: {0}")]
    Unreadable(String),
}

/// What a restore did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The cell's generation from now on.
    pub generation: Generation,
    /// At-most-once jobs parked as uncertain.
    pub parked: u64,
    /// Job rows that could not be read; they are left for the quarantine.
    pub unreadable: u64,
}

/// Copies the store in `folder`, which no process may have open, to `to`, which must not exist.
pub fn backup(folder: &Path, to: &Path) -> Result<(), BackupError> {
    let from = Folder::new(folder);
    if Identity::read(&from)?.is_none() {
        return Err(BackupError::NoStore(folder.display().to_string()));
    }
    let _lock = FolderLock::take(&from)?;
    // A copy would leave the note of the damage behind, and open.
    verify::noted(&from)?;
    copy_store(&from, to)
}

/// Restores a backup (or any closed store) from `from` to `to`, which must not exist. `generation`
/// is the lowest to rise to: give one above any that the lost side can hold. `options.fresh.store`
/// becomes the id of the restored store.
pub fn restore(from: &Path, to: &Path, generation: Generation, options: Options) -> Result<Restored, BackupError> {
    backup(from, to)?;
    let folder = Folder::new(to);
    let identity = Identity::read(&folder)?.ok_or_else(|| BackupError::NoStore(to.display().to_string()))?;
    let (_, ring) = MarkFile::open(&folder, identity.store)?;
    let fresh = Identity {
        store: options.fresh.store,
        ..identity
    };
    MarkFile::create(&folder, fresh.store, &ring.slots())?;
    fresh.write(&folder)?;
    let store = FjallStore::start(to, options)?;
    Restore { store }.run(generation)
}

fn copy_store(from: &Folder, to: &Path) -> Result<(), BackupError> {
    if is_there(to)? {
        return Err(BackupError::Occupied(to.display().to_string()));
    }
    let target = Folder::new(to);
    target.make()?;
    for path in [from.identity(), from.mark()] {
        let name = path.file_name().unwrap_or_default();
        copy_file(&path, &to.join(name)).map_err(StartError::io(&path))?;
    }
    copy_folder(&from.database(), &target.database()).map_err(StartError::io(to))?;
    target.sync().map_err(StartError::io(to))?;
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    fs::File::open(to)?.sync_all()
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            copy_file(&entry.path(), &target)?;
        }
    }
    fs::File::open(to)?.sync_all()
}

/// The changes to a restored store, before anybody else sees it.
struct Restore {
    store: FjallStore,
}

impl Restore {
    fn run(&self, lowest: Generation) -> Result<Restored, BackupError> {
        let cell = self.cell()?;
        let now = self.store.shared.time.state().time;
        let mut done = Restored {
            generation: Generation(lowest.0.max(cell.generation.0.saturating_add(1))),
            parked: 0,
            unreadable: 0,
        };
        // Epochs and generation come last: until then the restore can be begun anew.
        self.park_jobs(&cell, now, &mut done)?;
        let row = Row::Cell(CellRow {
            generation: done.generation,
            ..cell
        });
        self.write(vec![put(&row)], self.raised_scopes()?)?;
        Ok(done)
    }

    fn cell(&self) -> Result<CellRow, BackupError> {
        let key = key_bytes(&RowKey::Cell);
        let value = self.get(&key)?;
        let value = value.ok_or_else(|| BackupError::Unreadable("it has no cell row".into()))?;
        match codec::decode_row(&key, &value) {
            Ok(Row::Cell(row)) => Ok(row),
            Ok(_) => Err(BackupError::Unreadable("its cell row is of another kind".into())),
            Err(error) => Err(BackupError::Unreadable(format!("its cell row: {error}"))),
        }
    }

    fn park_jobs(&self, cell: &CellRow, now: StoreTime, done: &mut Restored) -> Result<(), BackupError> {
        let map =
            ShardMap::new(cell.shards).ok_or_else(|| BackupError::Unreadable("its cell row names no shards".into()))?;
        let mut range = KeyRange::kind(Kind::Job);
        loop {
            let page = self.scan(range.clone().scan(SCAN_ROWS_MAX))?;
            let Some((last, _)) = page.last() else {
                return Ok(());
            };
            range = range.after(last);
            let mut writes = Vec::new();
            for (key, value) in &page {
                match codec::decode_row(key, value) {
                    Ok(Row::Job(job)) if may_have_been_granted(&job, now) => {
                        done.parked += 1;
                        park(*job, map, now, &mut writes);
                    }
                    Ok(_) => {}
                    Err(_) => done.unreadable += 1,
                }
            }
            if !writes.is_empty() {
                self.write(writes, Vec::new())?;
            }
        }
    }

    fn raised_scopes(&self) -> Result<Vec<ScopeRow>, BackupError> {
        let rows = self.scan(KeyRange::kind(Kind::Scope).scan(usize::MAX))?;
        rows.iter()
            .map(|(key, value)| {
                let row = codec::decode_scope(key, value)
                    .map_err(|error| BackupError::Unreadable(format!("a scope row: {error}")))?;
                Ok(ScopeRow {
                    epoch: Epoch(row.epoch.0.saturating_add(1)),
                    holder: Holder(0),
                    batch: BatchNo(0),
                    digest: [0; 32],
                    ..row
                })
            })
            .collect()
    }

    fn write(&self, writes: Vec<RawWrite>, scopes: Vec<ScopeRow>) -> Result<(), BackupError> {
        let (answer, receiver) = std::sync::mpsc::channel();
        self.store.shared.queue.push(Item::Repair { writes, scopes, answer });
        match receiver.recv() {
            Ok(Committed::Committed(_)) => Ok(()),
            Ok(other) => Err(StoreError::Broken(format!("{other:?}")).into()),
            Err(_) => Err(StoreError::Broken("the store ended".into()).into()),
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, BackupError> {
        let mut values = wait(self.store.get(vec![key.to_vec()]))?;
        Ok(values.pop().flatten())
    }

    fn scan(&self, scan: Scan) -> Result<Vec<KeyValue>, BackupError> {
        Ok(wait(self.store.scan(scan))?)
    }
}

/// Reads of this store are done when first polled.
fn wait<T>(read: futures_util::future::BoxFuture<'static, Result<T, StoreError>>) -> Result<T, StoreError> {
    futures_util::FutureExt::now_or_never(read)
        .unwrap_or_else(|| Err(StoreError::Unavailable("the read did not finish".into())))
}

fn put(row: &Row) -> RawWrite {
    let mut value = Vec::new();
    codec::encode_row(row, &mut value);
    RawWrite::Put {
        key: Bytes::from(key_bytes(&row.key())),
        value: Bytes::from(value),
        expect: crate::batch::RawExpect::Any,
    }
}

/// Unfinished, at most once, and due: an attempt of it may lie in the lost tail.
fn may_have_been_granted(job: &Job, now: StoreTime) -> bool {
    let is_due = match &job.place {
        Place::Wait { at, .. } => *at <= now,
        Place::Ready { .. } | Place::Leased => true,
        Place::Parked | Place::DeadLetter { .. } | Place::None => false,
    };
    job.spec.delivery == Delivery::AtMostOnce && !job.state.is_finished() && is_due
}

fn park(mut job: Job, map: ShardMap, now: StoreTime, writes: &mut Vec<RawWrite>) {
    let shard = map.shard_of(job.id.slot());
    let mut delete = |key: RowKey| {
        writes.push(RawWrite::Delete {
            key: Bytes::from(key_bytes(&key)),
        });
    };
    match &job.place {
        Place::Wait { at, .. } => delete(RowKey::Wait(shard, *at, job.id)),
        Place::Ready { order } => delete(RowKey::Ready(ReadyRow::of(shard, &job, *order))),
        Place::Leased | Place::Parked | Place::DeadLetter { .. } | Place::None => {}
    }
    delete(RowKey::Leased(job.id));
    job.version += 1;
    job.state = JobState::Uncertain;
    job.place = Place::Parked;
    job.reason = Some(Arc::from("restored from a backup: an attempt may have begun after it"));
    let parked = Row::Parked(ParkedRow { id: job.id, at: now });
    writes.push(put(&Row::Job(Box::new(job))));
    writes.push(put(&parked));
}
