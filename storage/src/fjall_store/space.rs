//! The keyspaces: which kinds lie in which, their settings, and reads across them.
//!
//! Owns: names and order of keyspaces (fixed by the first format) and how much memory each may use.
//! Must never: write. Next: `keys/mod.rs`, `committer.rs`.

use crate::keys::Kind;
use crate::store::{Bytes, KeyValue, Scan};
use fencepost_core::limits;
use fjall::config::{BlockSizePolicy, CompressionPolicy, FilterPolicy};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, Readable, Snapshot};
use std::path::Path;

/// A keyspace. They hold neighbouring kinds, so that a scan over all keys meets them in key order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Space {
    /// The store's own rows, the cell and its assignments.
    Meta,
    /// Schedules: definitions, cursors, backlogs, fates, edits, quarantines.
    Schedules,
    /// Jobs, idempotency keys, dead letters, parked rows.
    Jobs,
    /// Places: wait, ready, leased, marks. Written once, deleted once.
    Places,
}

/// All, in key order; a new store makes them in this order.
pub(super) const SPACES: [Space; 4] = [Space::Meta, Space::Schedules, Space::Jobs, Space::Places];

impl Space {
    pub(super) fn name(self) -> &'static str {
        match self {
            Space::Meta => "meta",
            Space::Schedules => "schedules",
            Space::Jobs => "jobs",
            Space::Places => "places",
        }
    }

    /// Its number in chain rows.
    pub(super) fn number(self) -> u8 {
        match self {
            Space::Meta => 0,
            Space::Schedules => 1,
            Space::Jobs => 2,
            Space::Places => 3,
        }
    }

    fn of_kind(kind: Kind) -> Space {
        match kind {
            Kind::Scope | Kind::Chain | Kind::Cell | Kind::Assignment => Space::Meta,
            Kind::Definition
            | Kind::Cursor
            | Kind::Backlog
            | Kind::Fate
            | Kind::Edit
            | Kind::Quarantine
            | Kind::Request => Space::Schedules,
            Kind::Job | Kind::Key | Kind::DeadLetter | Kind::Parked | Kind::Attempts => Space::Jobs,
            Kind::Wait | Kind::Ready | Kind::Leased | Kind::Mark => Space::Places,
        }
    }

    /// The last byte below which all its kinds lie.
    fn ends_before(self) -> u8 {
        match self {
            Space::Meta => Kind::Definition.byte(),
            Space::Schedules => Kind::Job.byte(),
            Space::Jobs => Kind::Wait.byte(),
            Space::Places => u8::MAX,
        }
    }

    fn memtable_bytes(self) -> u64 {
        match self {
            Space::Meta => 1 << 20,
            Space::Schedules | Space::Places => 4 << 20,
            Space::Jobs => 8 << 20,
        }
    }

    fn options(self, memtable_bytes: Option<u64>) -> KeyspaceCreateOptions {
        KeyspaceCreateOptions::default()
            .manual_journal_persist(true)
            .max_memtable_size(memtable_bytes.unwrap_or(self.memtable_bytes()))
            .data_block_size_policy(BlockSizePolicy::all(8 << 10))
            .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
            .filter_policy(FilterPolicy::all(fjall::config::FilterPolicyEntry::Bloom(
                fjall::config::BloomConstructionPolicy::BitsPerKey(10.0),
            )))
    }
}

/// The database with its keyspaces.
#[derive(Clone)]
pub(super) struct Spaces {
    database: Database,
    spaces: [Keyspace; 4],
}

/// Opens the database as it is, without making keyspaces.
pub(super) fn open_database(path: &Path) -> fjall::Result<Database> {
    Database::builder(path)
        .manual_journal_persist(true)
        .cache_size(limits::STORE_CACHE_BYTES)
        .max_journaling_size(limits::STORE_JOURNAL_BYTES)
        .max_cached_files(Some(limits::STORE_FILES_MAX))
        // With a second one, one of the two spins for as long as the other compacts.
        .worker_threads(1)
        .open()
}

impl Spaces {
    /// Opens the keyspaces, or makes those that are absent (`memtable_bytes` is kept with them).
    pub(super) fn open(database: Database, memtable_bytes: Option<u64>) -> fjall::Result<Spaces> {
        let open = |space: Space| database.keyspace(space.name(), || space.options(memtable_bytes));
        let spaces = [
            open(Space::Meta)?,
            open(Space::Schedules)?,
            open(Space::Jobs)?,
            open(Space::Places)?,
        ];
        Ok(Spaces { database, spaces })
    }

    pub(super) fn database(&self) -> &Database {
        &self.database
    }

    pub(super) fn get(&self, space: Space) -> &Keyspace {
        let [meta, schedules, jobs, places] = &self.spaces;
        match space {
            Space::Meta => meta,
            Space::Schedules => schedules,
            Space::Jobs => jobs,
            Space::Places => places,
        }
    }

    /// The keyspace of a key; `None` if the key has no kind.
    pub(super) fn of_key(&self, key: &[u8]) -> Option<&Keyspace> {
        Kind::of(key).map(|kind| self.get(Space::of_kind(kind)))
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.database.snapshot()
    }

    /// Rows of a range in key order, over as many keyspaces as it touches.
    pub(super) fn scan(&self, scan: &Scan) -> fjall::Result<Vec<KeyValue>> {
        let mut rows = Vec::new();
        if scan.from >= scan.to {
            return Ok(rows);
        }
        let snapshot = self.snapshot();
        let touched = self.touched(scan);
        let spaces: Vec<Space> = if scan.backwards {
            touched.into_iter().rev().collect()
        } else {
            touched
        };
        for space in spaces {
            let range = snapshot.range(self.get(space), scan.from.as_slice()..scan.to.as_slice());
            if scan.backwards {
                take_rows(range.rev(), scan, &mut rows)?;
            } else {
                take_rows(range, scan, &mut rows)?;
            }
        }
        Ok(rows)
    }

    fn touched(&self, scan: &Scan) -> Vec<Space> {
        let (first, last) = (
            scan.from.first().copied().unwrap_or(0),
            scan.to.first().copied().unwrap_or(0),
        );
        let mut start = 0;
        SPACES
            .into_iter()
            .filter(|space| {
                let begin = std::mem::replace(&mut start, space.ends_before());
                first < space.ends_before() && last >= begin
            })
            .collect()
    }

    pub(super) fn disk_bytes(&self) -> u64 {
        self.database.disk_space().unwrap_or(0)
    }

    /// Begins to write every memtable to tables; does not wait.
    pub(super) fn flush(&self) -> fjall::Result<()> {
        for space in SPACES {
            self.get(space).rotate_memtable()?;
        }
        Ok(())
    }

    pub(super) fn compact(&self) -> fjall::Result<()> {
        for space in SPACES {
            self.get(space).rotate_memtable_and_wait()?;
            self.get(space).major_compact()?;
        }
        Ok(())
    }
}

/// Appends rows until the scan is done. The chain rows that every keyspace holds are not part of it.
fn take_rows(range: impl Iterator<Item = fjall::Guard>, scan: &Scan, rows: &mut Vec<KeyValue>) -> fjall::Result<()> {
    let mut bytes: usize = rows.iter().map(|(key, value)| key.len() + value.len()).sum();
    for guard in range {
        if scan.is_done(rows.len(), bytes) {
            break;
        }
        let (key, value) = guard.into_inner()?;
        if Kind::of(&key) != Some(Kind::Chain) {
            bytes += key.len() + value.len();
            rows.push((Bytes::from(&*key), Bytes::from(&*value)));
        }
    }
    Ok(())
}
