//! What every machine shares: a step gets `Now` and an input, and fills `Out`.
//!
//! Owns: writes, effects' envelope, replies' addresses. Must never: do IO. The shell commits
//! `out.writes` as one batch and releases `out.effects` only when all batches stamped before the
//! step are durable. Next: `scheduler_shard/io.rs`, `lease_manager/io.rs`, `worker/io.rs`.

use crate::row::{Row, RowKey};
use crate::time::{Monotonic, StoreTime};

/// Whom a reply goes to: the shell's number for a waiting caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReplyTo(pub u64);

/// A condition the store checks in the same atomic step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// None.
    Any,
    /// The row must be absent.
    Absent,
    /// The row must be there with this version (job rows).
    Version(u64),
}

/// One row write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Insert or replace.
    Put {
        /// The row; it names itself.
        row: Row,
        /// Condition.
        expect: Expect,
    },
    /// Delete.
    Delete(RowKey),
}

/// What a step wants: rows to write, then effects to release once they are durable.
#[derive(Clone, Debug)]
pub struct Out<E> {
    /// One atomic batch.
    pub writes: Vec<Write>,
    /// Orders, in order.
    pub effects: Vec<E>,
}

/// When a machine wants to be stepped again, at the latest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wake {
    /// By the monotonic clock.
    pub mono: Option<Monotonic>,
    /// By store time.
    pub store: Option<StoreTime>,
}

impl<E> Default for Out<E> {
    fn default() -> Out<E> {
        Out {
            writes: Vec::new(),
            effects: Vec::new(),
        }
    }
}

impl<E> Out<E> {
    /// Puts a row without a condition.
    pub fn put(&mut self, row: Row) {
        self.writes.push(Write::Put {
            row,
            expect: Expect::Any,
        });
    }

    /// Inserts a row that must be absent.
    pub fn insert(&mut self, row: Row) {
        self.writes.push(Write::Put {
            row,
            expect: Expect::Absent,
        });
    }

    /// Replaces a row of this version.
    pub fn replace(&mut self, row: Row, version: u64) {
        self.writes.push(Write::Put {
            row,
            expect: Expect::Version(version),
        });
    }

    /// Deletes a row.
    pub fn delete(&mut self, key: RowKey) {
        self.writes.push(Write::Delete(key));
    }

    /// Orders an effect.
    pub fn effect(&mut self, effect: E) {
        self.effects.push(effect);
    }
}

impl Wake {
    /// The earlier of both, for each clock.
    pub fn earliest(self, other: Wake) -> Wake {
        Wake {
            mono: [self.mono, other.mono].into_iter().flatten().min(),
            store: [self.store, other.store].into_iter().flatten().min(),
        }
    }
}
