//! Offline restore: a store made of a backup.
//!
//! Owns: what must change so that the lost tail can do no harm (PROTOCOL F11): the generation rises, every
//! scope gets a new epoch, every unfinished at-most-once job that could have been granted is parked as
//! uncertain, and schedules of at-most-once jobs are held. Must never: restore over a store, or leave a
//! folder that opens before all of that is durable (`unfinished.rs`). Next: `start.rs`.

use super::FjallStore;
use super::backup::{BackupError, IsStopped, Source, go_on, refuse_nested};
use super::folder::Folder;
use super::identity::Identity;
use super::mark::MarkFile;
use super::queue::Item;
use super::start::{Options, start_restored};
use super::unfinished::{Unfinished, Work};
use crate::batch::RawWrite;
use crate::codec;
use crate::keys::{KeyRange, Kind, key_bytes, parse_key};
use crate::store::{Bytes, Committed, KeyValue, Scan, Store, StoreError};
use fencepost_core::ids::{BatchNo, Epoch, Generation, Holder, ShardMap};
use fencepost_core::job::{Delivery, Job, JobState, Place};
use fencepost_core::limits::SCAN_ROWS_MAX;
use fencepost_core::machine::Write;
use fencepost_core::name::Name;
use fencepost_core::row::{CellRow, ParkedRow, ReadyRow, Row, RowKey, ScopeRow};
use fencepost_core::schedule::CursorRow;
use fencepost_core::scheduler_shard::hold_restored;
use fencepost_core::time::StoreTime;
use std::path::Path;
use std::sync::Arc;

/// What a restore did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The cell's generation from now on.
    pub generation: Generation,
    /// At-most-once jobs parked as uncertain.
    pub parked: u64,
    /// Schedules held for a person, because their jobs run at most once.
    pub held: Vec<Name>,
    /// Rows that could not be read; they are left for the quarantine.
    pub unreadable: u64,
}

/// What a restore does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreStep {
    /// Copy the backup's files.
    Copy,
    /// Make the copy a store of its own.
    Identify,
    /// Open it.
    Open,
    /// Park at-most-once jobs.
    Park,
    /// Hold schedules of at-most-once jobs.
    Hold,
    /// Raise generation and epochs.
    Raise,
    /// Let it be opened.
    Finish,
}

/// All of them, in order.
#[cfg(test)]
pub(super) const STEPS: [RestoreStep; 7] = [
    RestoreStep::Copy,
    RestoreStep::Identify,
    RestoreStep::Open,
    RestoreStep::Park,
    RestoreStep::Hold,
    RestoreStep::Raise,
    RestoreStep::Finish,
];

/// What a restore of this thread leaves undone, so that its tests can be seen to notice.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeftOut {
    /// At-most-once jobs stay where they were.
    Parking,
    /// Schedules of at-most-once jobs go on.
    Holding,
    /// The generation stays.
    Generation,
    /// The epochs stay.
    Epochs,
    /// The folder opens as soon as the copy is there.
    Mark,
}

#[cfg(test)]
thread_local! {
    pub(super) static LEFT_OUT: std::cell::Cell<Option<LeftOut>> = const { std::cell::Cell::new(None) };
}

/// Whether a test has this left out.
macro_rules! is_left_out {
    ($what:ident) => {{
        #[cfg(test)]
        let is = LEFT_OUT.get() == Some(LeftOut::$what);
        #[cfg(not(test))]
        let is = false;
        is
    }};
}

/// Told before each step.
type OnStep<'a> = &'a mut dyn FnMut(RestoreStep);

/// Restores a backup (or any closed store) from `from` to `to`, which must not exist, or hold nothing but
/// half of a restore. `generation` is the lowest to rise to: give one above any that the lost side can hold.
/// `options.fresh.store` becomes the id of the restored store. Ended at any moment, it leaves a folder that
/// is refused until the restore is run again.
pub fn restore(
    from: &Path,
    to: &Path,
    generation: Generation,
    options: Options,
    on_step: OnStep<'_>,
    is_stopped: IsStopped<'_>,
) -> Result<Restored, BackupError> {
    let source = Source::take(from)?;
    refuse_nested(from, to)?;
    let (unfinished, lock) = Unfinished::begin(to, Work::Restore)?;
    on_step(RestoreStep::Copy);
    source.copy(&unfinished.folder, is_stopped)?;
    on_step(RestoreStep::Identify);
    identify(&unfinished.folder, options.fresh.store)?;
    if is_left_out!(Mark) {
        unfinished.finish()?;
    }
    on_step(RestoreStep::Open);
    let store = start_restored(to, options, lock)?;
    let done = Restore { store, is_stopped }.run(generation, on_step)?;
    on_step(RestoreStep::Finish);
    if !is_left_out!(Mark) {
        unfinished.finish()?;
    }
    Ok(done)
}

/// Gives the copy an id of its own.
fn identify(folder: &Folder, store: u128) -> Result<(), BackupError> {
    let identity = Identity::read(folder)?;
    let identity = identity.ok_or_else(|| BackupError::NoStore(folder.path().display().to_string()))?;
    let (_, ring) = MarkFile::open(folder, identity.store)?;
    MarkFile::create(folder, store, &ring.slots())?;
    Ok(Identity { store, ..identity }.write(folder)?)
}

/// The changes to a restored store, before anybody else sees it.
struct Restore<'a> {
    store: FjallStore,
    is_stopped: IsStopped<'a>,
}

impl Restore<'_> {
    /// The store is closed when it returns.
    fn run(self, lowest: Generation, on_step: OnStep<'_>) -> Result<Restored, BackupError> {
        let cell = self.cell()?;
        let now = self.store.shared.time.state().time;
        let mut done = Restored {
            generation: Generation(lowest.0.max(cell.generation.0.saturating_add(1))),
            parked: 0,
            held: Vec::new(),
            unreadable: 0,
        };
        if done.generation <= cell.generation {
            return Err(BackupError::Unreadable("no generation is left above its own".into()));
        }
        on_step(RestoreStep::Park);
        if !is_left_out!(Parking) {
            self.park_jobs(&cell, now, &mut done)?;
        }
        on_step(RestoreStep::Hold);
        if !is_left_out!(Holding) {
            self.hold_schedules(now, &mut done)?;
        }
        on_step(RestoreStep::Raise);
        let row = Row::Cell(CellRow {
            generation: match is_left_out!(Generation) {
                true => cell.generation,
                false => done.generation,
            },
            ..cell
        });
        let scopes = match is_left_out!(Epochs) {
            true => Vec::new(),
            false => self.raised_scopes()?,
        };
        self.write(vec![put(&row)], scopes)?;
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
            for row in readable(&page, &mut done.unreadable) {
                if let Row::Job(job) = row
                    && may_have_been_granted(&job, now)
                {
                    done.parked += 1;
                    park(*job, map, now, &mut writes);
                }
            }
            if !writes.is_empty() {
                self.write(writes, Vec::new())?;
            }
        }
    }

    /// What fired after the backup was taken must not fire again: schedules of at-most-once jobs are held.
    fn hold_schedules(&self, now: StoreTime, done: &mut Restored) -> Result<(), BackupError> {
        let mut range = KeyRange::kind(Kind::Cursor);
        loop {
            let page = self.scan(range.clone().scan(SCAN_ROWS_MAX))?;
            let Some((last, _)) = page.last() else {
                return Ok(());
            };
            range = range.after(last);
            for row in readable(&page, &mut done.unreadable) {
                if let Row::Cursor(cursor) = row {
                    self.hold_schedule(*cursor, now, done)?;
                }
            }
        }
    }

    fn hold_schedule(&self, cursor: CursorRow, now: StoreTime, done: &mut Restored) -> Result<(), BackupError> {
        let of_life = |kind| KeyRange::of_life(kind, &cursor.tenant, &cursor.name, &cursor.incarnation);
        let mut rows = self.scan(of_life(Kind::Definition).scan(usize::MAX))?;
        rows.extend(self.scan(of_life(Kind::Backlog).scan(usize::MAX))?);
        let (mut definitions, mut backlogs) = (Vec::new(), Vec::new());
        for row in readable(&rows, &mut done.unreadable) {
            match row {
                Row::Definition(row) => definitions.push(*row),
                Row::Backlog(row) => backlogs.push(*row),
                _ => {}
            }
        }
        let newest = of_life(Kind::Edit).scan_back(1);
        let recorded_at = self.scan(newest)?.pop().and_then(|(key, _)| match parse_key(&key) {
            Ok(RowKey::Edit(.., at, _)) => Some(at),
            _ => None,
        });
        let name = cursor.name.clone();
        let writes = hold_restored(cursor, &definitions, backlogs, (recorded_at, now));
        if !writes.is_empty() {
            self.write(writes.iter().map(raw).collect(), Vec::new())?;
            done.held.push(name);
        }
        Ok(())
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
            Ok(other) => Err(StoreError::Broken(other.to_string()).into()),
            Err(_) => Err(StoreError::Broken("the store ended".into()).into()),
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, BackupError> {
        let mut values = wait(self.store.get(vec![key.to_vec()]))?;
        Ok(values.pop().flatten())
    }

    /// A page, unless somebody wants the work to end.
    fn scan(&self, scan: Scan) -> Result<Vec<KeyValue>, BackupError> {
        go_on(self.is_stopped)?;
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

fn raw(write: &Write) -> RawWrite {
    match write {
        Write::Put { row, .. } => put(row),
        Write::Delete(key) => RawWrite::Delete {
            key: Bytes::from(key_bytes(key)),
        },
    }
}

/// The rows of a page; those that cannot be read are counted and left for the quarantine.
fn readable(page: &[KeyValue], unreadable: &mut u64) -> Vec<Row> {
    let decoded = page.iter().map(|(key, value)| codec::decode_row(key, value));
    let rows: Vec<Row> = decoded.filter_map(Result::ok).collect();
    *unreadable += (page.len() - rows.len()) as u64;
    rows
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
        // It may lie among the ready ones since it was due.
        Place::Wait { at, .. } => {
            delete(RowKey::Wait(shard, *at, job.id));
            ReadyRow::each_of(shard, &job, *at).for_each(|row| delete(RowKey::Ready(row)));
        }
        Place::Ready { order } => ReadyRow::each_of(shard, &job, *order).for_each(|row| delete(RowKey::Ready(row))),
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
