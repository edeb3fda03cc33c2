//! From a folder to a running store, or to a refusal.
//!
//! Owns: the order of steps. Identity is read before anything is written; the lock is held before
//! anything is changed; a new store exists only once its identity file does. Must never: make a
//! store where one was. Next: `verify.rs`, `committer.rs`.

use super::backup;
use super::clock_file::ClockFile;
use super::committer::{Committer, Current};
use super::disk_space::{DiskSpace, FreeSpace, StatvfsProbe};
use super::error::StartError;
use super::folder::{Folder, is_there};
use super::identity::{Identity, format_known};
use super::journal::{self, Journals};
use super::lock::FolderLock;
use super::mark::{Mark, MarkFile, Ring};
use super::marker::Marker;
use super::presence::Presence;
use super::queue::{OnBroken, Queue};
use super::redo::{self, RedoRow};
use super::space::{SPACES, Spaces, open_database};
use super::{FjallStore, Shared, engine_panic, unfinished, verify};
use crate::clock::{Clock, TimeKeeper};
use crate::codec;
use crate::keys::{KeyRange, Kind, chain_key};
use fencepost_core::ids::Scope;
use fencepost_core::row::ScopeRow;
use fencepost_core::time::StoreTime;
use fjall::PersistMode;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Ids for a store that is made anew; drawn by the caller.
#[derive(Clone, Copy, Debug)]
pub struct NewStore {
    /// Of the store.
    pub store: u128,
    /// Of its cell.
    pub cell: u128,
}

/// How a store is started.
pub struct Options {
    /// Used only if the folder holds no store yet.
    pub fresh: NewStore,
    /// This machine's clocks.
    pub clock: Arc<dyn Clock>,
    /// Called once, from a thread of the store, when it breaks: end the process.
    pub on_broken: Option<OnBroken>,
    /// Asks for room on the disk; `None` asks the file system.
    pub free_space: Option<Box<dyn FreeSpace>>,
    /// Faults for tests of tests and for measuring.
    #[cfg(any(test, feature = "planted"))]
    pub planted: PlantedFaults,
}

/// What a test may break in the embedded store; never in a release build.
#[cfg(any(test, feature = "planted"))]
#[derive(Clone, Copy, Debug, Default)]
pub struct PlantedFaults {
    /// No high-water mark is written, to measure what it costs: such a store may lose acknowledged
    /// work in silence.
    pub without_mark: bool,
    /// Commits are answered before their sync, and without a mark.
    pub answer_before_sync: bool,
    /// The mark with this sequence cannot be written.
    pub fail_mark_at: Option<u64>,
    /// The folder is opened without looking for losses.
    pub without_checks: bool,
    /// Memtables of this size in a new store, so that little data makes tables.
    pub memtable_bytes: Option<u64>,
}

impl Options {
    /// The usual ones.
    pub fn new(fresh: NewStore, clock: Arc<dyn Clock>) -> Options {
        Options {
            fresh,
            clock,
            on_broken: None,
            free_space: None,
            #[cfg(any(test, feature = "planted"))]
            planted: PlantedFaults::default(),
        }
    }

    /// With a call for when the store breaks.
    #[must_use]
    pub fn on_broken(mut self, call: impl FnOnce(&str) + Send + 'static) -> Options {
        self.on_broken = Some(Box::new(call));
        self
    }
}

/// What planted faults change about opening; nothing in a release build.
#[derive(Clone, Copy, Default)]
struct Tuning {
    memtable_bytes: Option<u64>,
    is_unchecked: bool,
}

impl Tuning {
    #[cfg(any(test, feature = "planted"))]
    fn of(options: &Options) -> Tuning {
        Tuning {
            memtable_bytes: options.planted.memtable_bytes,
            is_unchecked: options.planted.without_checks,
        }
    }

    #[cfg(not(any(test, feature = "planted")))]
    fn of(_options: &Options) -> Tuning {
        Tuning::default()
    }
}

/// A folder that passed every check, with its engine open.
pub(super) struct Opened {
    identity: Identity,
    lock: FolderLock,
    spaces: Spaces,
    mark_file: MarkFile,
    mark: Mark,
}

pub(super) fn start(path: &Path, options: Options) -> Result<FjallStore, StartError> {
    let folder = Folder::new(path);
    let tuning = Tuning::of(&options);
    let opened = engine_panic::as_refusal(&folder, || open_folder(&folder, &options.fresh, tuning))?;
    run(path, options, opened)
}

/// Starts what a restore has copied, in the folder that it holds.
pub(super) fn start_restored(path: &Path, options: Options, lock: FolderLock) -> Result<FjallStore, StartError> {
    let folder = Folder::new(path);
    let tuning = Tuning::of(&options);
    let opened = engine_panic::as_refusal(&folder, || {
        let identity = Identity::read(&folder)?.ok_or_else(|| missing_identity(0))?;
        open_existing(&folder, identity, lock, tuning)
    })?;
    run(path, options, opened)
}

fn run(path: &Path, options: Options, opened: Opened) -> Result<FjallStore, StartError> {
    let folder = Folder::new(path);
    let scopes = load_scopes(&folder, &opened.spaces)?;
    let floor = scopes.values().map(|row| row.at).max().unwrap_or(StoreTime(0));
    let kept = Box::new(ClockFile::new(&folder));
    let time = Arc::new(TimeKeeper::keeping(options.clock.clone(), floor, kept));
    let queue = Arc::new(Queue::new(options.on_broken));
    let probe = options.free_space.unwrap_or_else(|| Box::new(StatvfsProbe::new(path)));
    let disk = Arc::new(Mutex::new(DiskSpace::new(&folder, probe)));
    let acknowledged = Arc::new(Mutex::new(opened.mark));
    let presence = Presence::of(&folder, &opened.lock, &opened.mark_file)?;
    let (synced, answers) = channel();
    #[cfg_attr(not(any(test, feature = "planted")), allow(unused_mut))]
    let mut mark_file = opened.mark_file;
    #[cfg(any(test, feature = "planted"))]
    {
        mark_file.planted = options.planted;
    }
    let mark_file = Arc::new(Mutex::new(mark_file));
    let identity = Arc::new(Mutex::new(opened.identity));
    let marker = Marker {
        file: mark_file.clone(),
        durable: acknowledged.clone(),
        queue: queue.clone(),
    };
    let committer = Committer {
        current: Current {
            spaces: opened.spaces.clone(),
            scopes,
        },
        mark: opened.mark,
        time: time.clone(),
        queue: queue.clone(),
        disk: disk.clone(),
        synced,
        file: mark_file,
        acknowledged: acknowledged.clone(),
        identity: identity.clone(),
        folder: folder.clone(),
        presence,
        journal_synced: opened.mark.sequence,
        journals: 1,
        #[cfg(any(test, feature = "planted"))]
        planted: options.planted,
    };
    let threads = vec![
        thread("store-commit", move || committer.run()).map_err(StartError::io(path))?,
        thread("store-mark", move || marker.run(&answers)).map_err(StartError::io(path))?,
    ];
    Ok(FjallStore {
        shared: Arc::new(Shared {
            spaces: opened.spaces,
            time,
            queue,
            disk,
            acknowledged,
            folder: path.to_path_buf(),
            identity,
            threads: Mutex::new(threads),
            _lock: opened.lock,
        }),
    })
}

/// The store's own two threads; they live and die with it.
#[allow(
    clippy::disallowed_methods,
    reason = "the commit thread and its marker are the storage's named threads"
)]
fn thread(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run)
}

fn open_folder(folder: &Folder, fresh: &NewStore, tuning: Tuning) -> Result<Opened, StartError> {
    unfinished::refuse(folder)?;
    backup::refuse(folder)?;
    Identity::read(folder)?;
    folder.make()?;
    let lock = FolderLock::take(folder)?;
    verify::noted(folder)?;
    // Looked at again: the lock's former holder may just have made the store, or left half of one.
    unfinished::refuse(folder)?;
    match Identity::read(folder)? {
        Some(identity) => {
            folder.remove(&folder.creating())?;
            open_existing(folder, identity, lock, tuning)
        }
        None => {
            create(folder, fresh, tuning)?;
            let identity = Identity::read(folder)?.ok_or_else(|| missing_identity(0))?;
            open_existing(folder, identity, lock, tuning)
        }
    }
}

fn missing_identity(acknowledged: u64) -> StartError {
    StartError::Damaged {
        what: "file IDENTITY is missing".into(),
        acknowledged,
        found: 0,
    }
}

/// Makes a store step by step; a crash in between is undone by the next start.
fn create(folder: &Folder, fresh: &NewStore, tuning: Tuning) -> Result<(), StartError> {
    let database = folder.database();
    if !is_there(&folder.creating())? && (is_there(&database)? || is_there(&folder.mark())?) {
        return Err(missing_identity(0));
    }
    folder.replace(&folder.creating(), b"a store is being made here\n")?;
    if is_there(&database)? {
        fs::remove_dir_all(&database).map_err(StartError::io(&database))?;
    }
    let mark = Mark::default();
    let spaces = open_database(&database)
        .and_then(|database| Spaces::open(database, tuning.memtable_bytes))
        .map_err(StartError::engine(&database))?;
    write_first_mark(&spaces, mark).map_err(StartError::engine(&database))?;
    drop(spaces);
    // The engine syncs its files, not the names of the folders that it makes.
    sync_tree(&database).map_err(StartError::io(&database))?;
    MarkFile::create(folder, fresh.store, &[mark.alone()])?;
    let identity = Identity {
        store: fresh.store,
        cell: fresh.cell,
        format: format_known(),
    };
    identity.write(folder)?;
    folder.remove(&folder.creating())
}

/// Makes names and contents durable, the folder's own name but last.
fn sync_tree(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            sync_tree(&entry?.path())?;
        }
    }
    fs::File::open(path)?.sync_all()
}

/// Every keyspace begins with a chain row, so that an empty one is seen to be new.
fn write_first_mark(spaces: &Spaces, mark: Mark) -> fjall::Result<()> {
    let mut batch = spaces.database().batch().durability(Some(PersistMode::SyncAll));
    for space in SPACES {
        batch.insert(spaces.get(space), chain_key(space.number()), mark.to_value());
    }
    batch.commit()
}

fn open_existing(folder: &Folder, identity: Identity, lock: FolderLock, tuning: Tuning) -> Result<Opened, StartError> {
    let (mut mark_file, mut ring) = MarkFile::open(folder, identity.store)?;
    let journals = if tuning.is_unchecked {
        (ring.base, ring.redo) = (ring.top, Vec::new());
        Journals::default()
    } else {
        verify::before(folder, &ring.base)?
    };
    let path = folder.database();
    // A process that was killed, or that a sync failed, left bytes that no disk holds yet; from here on they
    // count as synced.
    journals.write_again()?;
    journal::sync_all(&path)?;
    let database = open_database(&path).map_err(StartError::engine(&path))?;
    for space in SPACES {
        if !tuning.is_unchecked && !database.keyspace_exists(space.name()) {
            return Err(journals.damage(format!("keyspace {} is not listed", space.name()), &ring.base));
        }
    }
    let spaces = Spaces::open(database, None).map_err(StartError::engine(&path))?;
    let lowest = if tuning.is_unchecked {
        ring.top
    } else {
        verify::after(folder, &spaces, &journals, &ring)?
    };
    // From the journal's end at the latest, or it would have a gap.
    let whole_up_to = journals
        .last
        .map_or(lowest.sequence, |last| last.sequence.min(lowest.sequence));
    let mark = if whole_up_to < ring.top.sequence && !tuning.is_unchecked {
        bring_back(&spaces, &ring, whole_up_to, &path)?
    } else {
        lowest
    };
    // What was synced and not acknowledged may be read from now on: it is marked first.
    if mark != ring.top {
        mark_file.write(&mark.alone()).map_err(StartError::io(&folder.mark()))?;
    }
    Ok(Opened {
        identity,
        lock,
        spaces,
        mark_file,
        mark,
    })
}

/// Writes the groups again that only the ring holds: a journal lost them, or never had them.
fn bring_back(spaces: &Spaces, ring: &Ring, whole_up_to: u64, path: &Path) -> Result<Mark, StartError> {
    for slot in ring.redo.iter().filter(|slot| slot.mark.sequence > whole_up_to) {
        let rows = slot.redo.as_ref().and_then(|(_, rows)| redo::decode(rows));
        let rows = rows.ok_or_else(|| StartError::Damaged {
            what: "file HIGHWATER holds rows that cannot be read".into(),
            acknowledged: ring.top.sequence,
            found: slot.mark.sequence - 1,
        })?;
        write_again(spaces, slot.mark, &rows).map_err(StartError::engine(path))?;
    }
    spaces
        .database()
        .persist(PersistMode::SyncData)
        .map_err(StartError::engine(path))?;
    tracing::warn!(
        from = whole_up_to + 1,
        to = ring.top.sequence,
        "groups that the journal had lost were brought back from the file HIGHWATER"
    );
    Ok(ring.top)
}

/// One group as it was, in a batch of its own: the journal has one entry for each sequence.
fn write_again(spaces: &Spaces, mark: Mark, rows: &[RedoRow]) -> fjall::Result<()> {
    let mut batch = spaces.database().batch().durability(Some(PersistMode::Buffer));
    for space in SPACES {
        batch.insert(spaces.get(space), chain_key(space.number()), mark.to_value());
    }
    for (key, value) in rows {
        match (spaces.of_key(key), value) {
            (Some(space), Some(value)) => batch.insert(space, key.as_slice(), value.as_slice()),
            (Some(space), None) => batch.remove(space, key.as_slice()),
            (None, _) => {}
        }
    }
    batch.commit()
}

fn load_scopes(folder: &Folder, spaces: &Spaces) -> Result<BTreeMap<Scope, ScopeRow>, StartError> {
    let path = folder.database();
    let rows = spaces
        .scan(&KeyRange::kind(Kind::Scope).scan(usize::MAX))
        .map_err(StartError::engine(&path))?;
    let mut scopes = BTreeMap::new();
    for (key, value) in rows {
        let row = codec::decode_scope(&key, &value).map_err(|error| StartError::Engine {
            path: path.clone(),
            reason: format!("row {}: {error}", crate::rules::shown(&key)),
        })?;
        scopes.insert(row.scope, row);
    }
    Ok(scopes)
}
