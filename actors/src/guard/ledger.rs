//! Where a guard keeps what it has seen, together with the effects themselves.
//!
//! Owns: the contract of a ledger, and the one in memory. Must never: decide. The contract is all of the
//! safety: a step's reads and writes are one transaction, durable before the step's answer is.
//! Next: `fjall` for the one on disk.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, PoisonError};

use super::GuardError;

/// The three kinds of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Space {
    /// Fences of lines, by line.
    Fences,
    /// What is known of keys, by key.
    Keys,
    /// The service's own rows: the effects.
    Effects,
}

/// One row to put, or to delete where there is no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Its kind.
    pub space: Space,
    /// Its key.
    pub key: Vec<u8>,
    /// Its new value.
    pub value: Option<Vec<u8>>,
}

/// Reads rows within a transaction.
pub trait Reader {
    /// The row as of this transaction.
    ///
    /// # Errors
    /// The ledger cannot be read.
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, GuardError>;
}

/// Reads, and returns what to write.
pub type Step<'a> = dyn FnMut(&dyn Reader) -> Result<Vec<Write>, GuardError> + 'a;

/// Rows of a page: key and value.
pub type Page = Vec<(Vec<u8>, Vec<u8>)>;

/// Keeps rows. The tests of the guard run on every ledger.
pub trait Ledger: Send + Sync {
    /// Runs the step alone: between its reads and its writes nobody else writes, all its writes become
    /// visible at once or not at all, and they are durable when this returns.
    ///
    /// # Errors
    /// The step's own, or the ledger's; then nothing was written, or the ledger refuses all further work.
    fn transact(&self, step: &mut Step<'_>) -> Result<(), GuardError>;

    /// Rows of a space in key order, after the given key, at most `limit`.
    ///
    /// # Errors
    /// The ledger cannot be read.
    fn page(&self, space: Space, after: Option<&[u8]>, limit: usize) -> Result<Page, GuardError>;
}

impl<L: Ledger + ?Sized> Ledger for Box<L> {
    fn transact(&self, step: &mut Step<'_>) -> Result<(), GuardError> {
        (**self).transact(step)
    }

    fn page(&self, space: Space, after: Option<&[u8]>, limit: usize) -> Result<Page, GuardError> {
        (**self).page(space, after, limit)
    }
}

type Rows = BTreeMap<(Space, Vec<u8>), Vec<u8>>;

/// A ledger in memory, for tests and for effects that end with the process too.
#[derive(Debug, Default)]
pub struct MemoryLedger {
    rows: Mutex<Rows>,
}

impl Reader for Rows {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, GuardError> {
        Ok(BTreeMap::get(self, &(space, key.to_vec())).cloned())
    }
}

impl Ledger for MemoryLedger {
    fn transact(&self, step: &mut Step<'_>) -> Result<(), GuardError> {
        // A step that panicked has written nothing: its writes are applied below, after it.
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        for write in step(&*rows)? {
            match write.value {
                Some(value) => rows.insert((write.space, write.key), value),
                None => rows.remove(&(write.space, write.key)),
            };
        }
        Ok(())
    }

    fn page(&self, space: Space, after: Option<&[u8]>, limit: usize) -> Result<Page, GuardError> {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let from = match after {
            Some(key) => Bound::Excluded((space, key.to_vec())),
            None => Bound::Included((space, Vec::new())),
        };
        let rows = rows
            .range((from, Bound::Unbounded))
            .take_while(|((kind, _), _)| *kind == space);
        Ok(rows
            .take(limit)
            .map(|((_, key), value)| (key.clone(), value.clone()))
            .collect())
    }
}
