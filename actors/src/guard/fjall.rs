//! A ledger on disk.
//!
//! Owns: one transaction at a time, synced before its answer. Must never: answer after a failed write: what
//! the disk then holds is unknown until the ledger is opened again. Next: `ledger` for the contract.

use std::ops::Bound;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::GuardError;
use super::ledger::{Ledger, Page, Reader, Space, Step};

/// Keeps fences, keys and effects in one fjall database.
pub struct FjallLedger {
    database: Database,
    spaces: Spaces,
    /// Whether a write has failed. Held during a transaction.
    failed: Mutex<bool>,
}

struct Spaces {
    fences: Keyspace,
    keys: Keyspace,
    effects: Keyspace,
}

impl FjallLedger {
    /// Opens the ledger in this folder, or makes it.
    ///
    /// # Errors
    /// The folder cannot be used, another process has it open, or its content is damaged.
    pub fn open(folder: &Path) -> Result<Self, GuardError> {
        let database = Database::builder(folder).open().map_err(broken)?;
        let space = |name: &str| database.keyspace(name, KeyspaceCreateOptions::default).map_err(broken);
        let spaces = Spaces {
            fences: space("fences")?,
            keys: space("keys")?,
            effects: space("effects")?,
        };
        Ok(Self {
            database,
            spaces,
            failed: Mutex::new(false),
        })
    }
}

impl Spaces {
    fn of(&self, space: Space) -> &Keyspace {
        match space {
            Space::Fences => &self.fences,
            Space::Keys => &self.keys,
            Space::Effects => &self.effects,
        }
    }
}

impl Reader for Spaces {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, GuardError> {
        Ok(self.of(space).get(key).map_err(broken)?.map(|value| value.to_vec()))
    }
}

impl Ledger for FjallLedger {
    fn transact(&self, step: &mut Step<'_>) -> Result<(), GuardError> {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if *failed {
            return Err(GuardError::Ledger(
                "an earlier write failed; open the ledger again".to_owned(),
            ));
        }
        let writes = step(&self.spaces)?;
        if writes.is_empty() {
            return Ok(());
        }
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
        for write in writes {
            let keyspace = self.spaces.of(write.space);
            match write.value {
                Some(value) => batch.insert(keyspace, write.key, value),
                None => batch.remove(keyspace, write.key),
            }
        }
        batch.commit().map_err(|error| {
            *failed = true;
            broken(error)
        })
    }

    fn page(&self, space: Space, after: Option<&[u8]>, limit: usize) -> Result<Page, GuardError> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = self
            .spaces
            .of(space)
            .range::<&[u8], _>((from, Bound::Unbounded))
            .take(limit);
        rows.map(|row| {
            row.into_inner()
                .map(|(key, value)| (key.to_vec(), value.to_vec()))
                .map_err(broken)
        })
        .collect()
    }
}

fn broken(error: fjall::Error) -> GuardError {
    GuardError::Ledger(error.to_string())
}
