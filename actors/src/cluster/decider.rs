//! The coordinator's calls to the store: opening its scope, reading the assignments, committing decisions.
//!
//! Owns: settling what is not known by sending it again (PROTOCOL F2, F6). Must never: decide, or write under
//! any scope but the coordinator's. Next: `member.rs`, `fencepost_core::coordinator`.

use crate::clock::SharedClock;
use crate::shell::fetch::{SharedStore, read_rows};
use crate::shell::load::check_cell;
use fencepost_core::coordinator::io::Assigned;
use fencepost_core::ids::{BatchNo, Epoch, Generation, Holder, Scope, ShardId, ShardMap};
use fencepost_core::limits::RESEND_PAUSE_MS;
use fencepost_core::machine::{Expect, Write};
use fencepost_core::name::Name;
use fencepost_core::row::{AssignmentRow, Row, RowKey};
use fencepost_core::time::Span;
use fencepost_storage::codec::encode_batch;
use fencepost_storage::keys::key_bytes;
use fencepost_storage::store::{Commit, Committed, Open, OpenError, StoreError};
use std::sync::Arc;

/// Pause before an open or a batch is sent again.
const RESEND_PAUSE: Span = Span::from_millis(RESEND_PAUSE_MS);

/// What the coordinator's calls need.
#[derive(Clone)]
pub struct Decider {
    /// The store.
    pub store: SharedStore,
    /// This node's clocks.
    pub clock: SharedClock,
    /// This node.
    pub node: Name,
    /// The cell's map.
    pub map: ShardMap,
    /// The cell's generation, as this node knows it.
    pub generation: Generation,
}

/// Assignments as they were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignedRows {
    /// By shard number; `None` where there is none, or it cannot be read.
    pub rows: Vec<Option<Assigned>>,
    /// Shards whose row is there and cannot be read.
    pub unreadable: Vec<u16>,
}

/// How a batch of decisions ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decided {
    /// It is durable.
    Yes,
    /// This epoch is over, or the batch can never be taken.
    No(String),
}

impl Decider {
    /// Opens the coordinator's scope for this holder; the error says why not.
    ///
    /// # Errors
    /// Another node was first, or the store does not answer.
    pub async fn open(&self, holder: Holder) -> Result<Epoch, OpenError> {
        let scope = Scope::Coordinator;
        let request = Open {
            scope,
            holder,
            expected: self.store.epoch(scope).await?,
            node: self.node.clone(),
        };
        loop {
            match self.store.open(request.clone()).await {
                // It may have been done; the same nonce gets the same answer.
                Err(OpenError::Store(StoreError::Unavailable(_))) => self.clock.sleep(RESEND_PAUSE).await,
                opened => return opened.map(|opened| opened.epoch),
            }
        }
    }

    /// Every assignment row, by shard number, and the shards whose row cannot be read.
    ///
    /// # Errors
    /// The store does not answer, or it was restored: its rows may be older than those that this node knows,
    /// which must start anew (F11).
    pub async fn rows(&self) -> Result<AssignedRows, StoreError> {
        check_cell(&self.store, self.generation, self.map).await?;
        let key = |shard: ShardId| RowKey::Assignment(Scope::Shard(shard));
        let keys: Vec<RowKey> = self.map.shards().map(key).collect();
        let (mut rows, bad) = read_rows(&self.store, &keys).await?;
        let is_bad = |shard: &ShardId| {
            let raw = key_bytes(&key(*shard));
            let row = bad.iter().find(|row| *row.key == *raw);
            if let Some(row) = row {
                let (shard, reason) = (shard.0, &row.reason);
                tracing::error!(
                    shard,
                    reason,
                    "the assignment of a shard cannot be read; it is decided anew"
                );
            }
            row.is_some()
        };
        let unreadable = self.map.shards().filter(is_bad).map(|shard| shard.0).collect();
        let mut take = |shard: ShardId| {
            let row = rows.remove(&key(shard)).flatten().and_then(Row::into_assignment)?;
            Some(Assigned {
                node: row.node,
                version: row.version,
            })
        };
        let rows = self.map.shards().map(&mut take).collect();
        Ok(AssignedRows { rows, unreadable })
    }

    /// Commits decisions as one batch, however long that takes.
    pub async fn commit(&self, (holder, epoch): (Holder, Epoch), number: u64, rows: Vec<(u16, Assigned)>) -> Decided {
        let writes: Vec<Write> = rows.into_iter().map(write_of).collect();
        let batch = match encode_batch(&writes, false) {
            Ok(batch) => Arc::new(batch),
            Err(error) => return Decided::No(error.to_string()),
        };
        let commit = Commit {
            scope: Scope::Coordinator,
            holder,
            epoch,
            number: BatchNo(number),
            batch,
        };
        loop {
            match self.store.commit(commit.clone()).await {
                Committed::Committed(_) | Committed::Already(_) => return Decided::Yes,
                Committed::Stale => return Decided::No("another coordinator decides".to_owned()),
                Committed::Conflict(why) => return Decided::No(why),
                // Assignments need no room of their own; it comes back.
                Committed::Full | Committed::Unknown(_) | Committed::Unavailable(_) => {
                    self.clock.sleep(RESEND_PAUSE).await;
                }
            }
        }
    }
}

fn write_of((shard, row): (u16, Assigned)) -> Write {
    Write::Put {
        row: Row::Assignment(AssignmentRow {
            scope: Scope::Shard(ShardId(shard)),
            node: row.node,
            version: row.version,
        }),
        expect: Expect::Any,
    }
}
