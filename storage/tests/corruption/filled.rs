//! A folder with tables, journals and acknowledged rows in every keyspace.
//!
//! Owns: filling, copying and reading it. Must never: leave the store open. Next: `main.rs`.

use fencepost_core::ids::{BatchNo, Epoch, Holder, JobId, Scope, ShardId, Slot};
use fencepost_core::machine::{Expect, Write};
use fencepost_core::name::Name;
use fencepost_core::row::{AssignmentRow, DeadLetterRow, QuarantineRow, Row, WaitRow};
use fencepost_core::time::{Monotonic, StoreTime};
use fencepost_storage::clock::Clock;
use fencepost_storage::codec::encode_batch;
use fencepost_storage::fjall_store::{FjallStore, NewStore, Options};
use fencepost_storage::keys::Kind;
use fencepost_storage::store::{Commit, Committed, Open, Scan, Store};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A key and its value.
pub type Rows = BTreeSet<(Vec<u8>, Vec<u8>)>;

/// A closed store and what it acknowledged.
pub struct Filled {
    pub folder: PathBuf,
    pub rows: Rows,
    _temp: tempfile::TempDir,
}

/// Why there was no answer.
#[derive(Debug)]
pub enum Refusal {
    Start(String),
    Read(String),
}

struct Clocks(AtomicU64);

impl Clock for Clocks {
    fn wall(&self) -> StoreTime {
        StoreTime(1_795_000_000_000_000 + i64::try_from(self.0.fetch_add(1, Ordering::Relaxed)).unwrap())
    }

    fn mono(&self) -> Monotonic {
        Monotonic(self.0.load(Ordering::Relaxed))
    }
}

pub fn memory_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

/// Whether the store checks its folder at the start.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Checks {
    On,
    /// Planted: the engine opens whatever it finds.
    Off,
}

fn options(checks: Checks) -> Options {
    let clocks = Clocks(AtomicU64::new(0));
    let mut options = Options::new(NewStore { store: 1, cell: 2 }, Arc::new(clocks));
    options.planted.memtable_bytes = Some(32 << 10);
    options.planted.without_checks = checks == Checks::Off;
    options
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

fn put(row: Row) -> Write {
    Write::Put {
        row,
        expect: Expect::Any,
    }
}

/// Rows of every keyspace; some are deleted again by later batches.
fn writes(round: u64) -> Vec<Write> {
    let mut writes = Vec::new();
    for place in 0..4 {
        let mut chance = [0; 14];
        chance[..8].copy_from_slice(&(round * 4 + place).to_be_bytes());
        let id = JobId::fresh(Slot::new(9).unwrap(), chance);
        let at = StoreTime(i64::try_from(round).unwrap());
        writes.push(put(Row::DeadLetter(DeadLetterRow { id, at })));
        let wait = Row::Wait(WaitRow {
            shard: ShardId(1),
            at,
            id,
            length: None,
        });
        if place == 0 {
            writes.push(put(wait.clone()));
            writes.push(Write::Delete(wait.key()));
        } else {
            writes.push(put(wait));
        }
    }
    writes.push(put(Row::Quarantine(Box::new(QuarantineRow {
        shard: ShardId(1),
        key: Arc::from(round.to_be_bytes()),
        reason: Arc::from(format!("{round} ").repeat(60)),
        at: StoreTime(1),
        deaths: 0,
    }))));
    writes.push(put(Row::Assignment(AssignmentRow {
        scope: Scope::Shard(ShardId(u16::try_from(round % 300).unwrap())),
        node: Name::new("a").unwrap(),
        version: round,
    })));
    writes
}

/// Fills a store over three starts, so that it has tables, and a journal with batches in it.
pub fn fill() -> Filled {
    let temp = memory_folder();
    let folder = temp.path().join("store");
    let mut round = 0;
    for start in 0..3 {
        let store = FjallStore::start(&folder, options(Checks::On)).unwrap();
        runtime().block_on(async {
            let open = Open {
                scope: Scope::Coordinator,
                holder: Holder(start + 1),
                expected: Epoch(u64::try_from(start).unwrap()),
                node: Name::new("a").unwrap(),
            };
            let epoch = store.open(open).await.unwrap().epoch;
            for number in 1..=100 {
                round += 1;
                let request = Commit {
                    scope: Scope::Coordinator,
                    holder: Holder(start + 1),
                    epoch,
                    number: BatchNo(number),
                    batch: Arc::new(encode_batch(&writes(round), true).unwrap()),
                };
                let answer = store.commit(request).await;
                assert!(matches!(answer, Committed::Committed(_)), "{answer:?}");
            }
        });
    }
    let rows = read_all(&folder, Checks::On).unwrap();
    Filled {
        folder,
        rows,
        _temp: temp,
    }
}

/// Every row of a machine, in all keyspaces, or why there is no answer.
pub fn read_all(folder: &Path, checks: Checks) -> Result<Rows, Refusal> {
    let store = FjallStore::start(folder, options(checks)).map_err(|error| Refusal::Start(error.to_string()))?;
    let scan = Scan {
        from: vec![Kind::Cell.byte()],
        to: vec![u8::MAX],
        limit: usize::MAX,
        bytes: usize::MAX,
        backwards: false,
    };
    let rows = runtime().block_on(store.scan(scan));
    let rows = rows.map_err(|error| Refusal::Read(error.to_string()))?;
    Ok(rows
        .into_iter()
        .map(|(key, value)| (key.to_vec(), value.to_vec()))
        .collect())
}

/// Files below a folder, by relative path. The lock and the reserve hold nothing.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(folder, Path::new(""), &mut found);
    found.retain(|path| !matches!(path.to_str(), Some("LOCK" | "RESERVE" | "db/lock")));
    found.sort();
    found
}

fn collect(folder: &Path, below: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder.join(below)).unwrap() {
        let entry = entry.unwrap();
        let path = below.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            collect(folder, &path, found);
        } else {
            found.push(path);
        }
    }
}

/// Copies a folder without its reserve.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else if entry.file_name() != "RESERVE" {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
