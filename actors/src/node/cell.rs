//! The cell's facts: made once, checked at every start.
//!
//! Owns: the cell row and, until a coordinator does it, the assignment of every shard to this node
//! by the same compare-and-set (PROTOCOL F6). Must never: change the shard map (F28). Next: `mod.rs`.

use crate::chance::{SharedChance, draw_holder};
use crate::clock::SharedClock;
use crate::node::{NodeConfig, NodeParts, StartError};
use crate::shell::fetch::{SharedStore, read_rows};
use crate::shell::patient::patient;
use fencepost_core::ids::{BatchNo, Generation, Scope, ShardMap};
use fencepost_core::level;
use fencepost_core::limits::{CELL_JOIN_TRIES_MAX, RESEND_PAUSE_MS};
use fencepost_core::machine::{Expect, Write};
use fencepost_core::name::Name;
use fencepost_core::refusal::{Refusal, RefusalKind};
use fencepost_core::row::{AssignmentRow, CellRow, Row, RowKey};
use fencepost_core::time::Span;
use fencepost_storage::codec::encode_batch;
use fencepost_storage::keys::key_bytes;
use fencepost_storage::store::{Commit, Committed, Open, OpenError, StoreError};
use std::sync::Arc;

/// Pause before the cell's batch is sent again.
const RESEND_PAUSE: Span = Span::from_millis(RESEND_PAUSE_MS);

/// What mends itself at another start, or is a fault of ours.
pub(super) fn refused(code: &'static str, detail: impl Into<String>) -> StartError {
    let hint = "start it again; report it if that does not help";
    StartError::Cell(Refusal::new(RefusalKind::Unavailable, code, detail, hint))
}

/// A map of so many shards is none.
pub(super) fn no_shards(count: u16) -> StartError {
    refused("cell_refused", format!("the cell's row names {count} shards"))
}

fn unreadable(reason: &str) -> StartError {
    let detail = format!("the cell's own row cannot be read: {reason}");
    let hint = "start the version that wrote it, or restore a backup";
    StartError::Cell(Refusal::new(RefusalKind::Conflict, "cell_unreadable", detail, hint))
}

/// Reads the cell row, or makes the cell; then makes this node the owner of all shards.
pub async fn settle_cell(parts: &NodeParts, config: &NodeConfig) -> Result<CellRow, StartError> {
    let store = &patient(parts.store.clone(), parts.clock.clone());
    let (rows, bad) = read_rows(store, &[RowKey::Cell]).await?;
    if let Some(row) = bad.first() {
        return Err(unreadable(&row.reason));
    }
    let found = rows.into_values().flatten().find_map(Row::into_cell);
    let mut writes = Vec::new();
    let cell = match found {
        Some(cell) => keep_shards(cell, config)?,
        None => new_cell(parts, config.shards, &mut writes).await?,
    };
    let map = ShardMap::new(cell.shards).ok_or_else(|| no_shards(cell.shards))?;
    claim_shards(store, &config.name, map, &mut writes).await?;
    if !writes.is_empty() {
        commit_as_coordinator(parts, &config.name, &writes).await?;
    }
    Ok(cell)
}

/// Reads the cell row, or makes the cell; who owns a shard is the coordinator's to say. Nodes that start at once
/// may all make it: one of them does, the others read it.
pub async fn join_cell(parts: &NodeParts, config: &NodeConfig) -> Result<CellRow, StartError> {
    let store = &patient(parts.store.clone(), parts.clock.clone());
    let mut failed = None;
    for _ in 0..CELL_JOIN_TRIES_MAX {
        let (rows, bad) = read_rows(store, &[RowKey::Cell]).await?;
        if let Some(row) = bad.first() {
            return Err(unreadable(&row.reason));
        }
        if let Some(cell) = rows.into_values().flatten().find_map(Row::into_cell) {
            return keep_shards(cell, config);
        }
        let mut writes = Vec::new();
        new_cell(parts, config.shards, &mut writes).await?;
        failed = commit_as_coordinator(parts, &config.name, &writes).await.err();
        parts.clock.sleep(RESEND_PAUSE).await;
    }
    Err(failed.unwrap_or_else(|| refused("cell_refused", "the cell was made and is not there")))
}

/// Rows stand where the cell's own number of shards put them; another number would not find them (F28).
fn keep_shards(cell: CellRow, config: &NodeConfig) -> Result<CellRow, StartError> {
    if config.shards_asked && config.shards != cell.shards {
        let detail = format!(
            "this store was made with {} shards and cannot be opened with {}",
            cell.shards, config.shards
        );
        let hint = "leave the number out, or use another data folder";
        let refusal = Refusal::new(RefusalKind::Conflict, "shards_fixed", detail, hint).at("shards");
        return Err(StartError::Cell(refusal));
    }
    #[cfg(madsim)]
    if crate::planted::is_planted(crate::planted::Bug::ShardCountChanged) {
        let shards = cell.shards + 1;
        return Ok(CellRow { shards, ..cell });
    }
    Ok(cell)
}

async fn new_cell(parts: &NodeParts, shards: u16, writes: &mut Vec<Write>) -> Result<CellRow, StartError> {
    let store = patient(parts.store.clone(), parts.clock.clone());
    let at = store.now(Scope::Coordinator).await?.time;
    let cell = CellRow {
        cell: parts.cell,
        generation: Generation(1),
        shards,
        created_at: at,
        level: parts.store.level().min(level::known()),
    };
    writes.push(Write::Put {
        row: Row::Cell(cell.clone()),
        expect: Expect::Absent,
    });
    Ok(cell)
}

async fn claim_shards(
    store: &SharedStore,
    node: &Name,
    map: ShardMap,
    writes: &mut Vec<Write>,
) -> Result<(), StartError> {
    let keys: Vec<RowKey> = map
        .shards()
        .map(|shard| RowKey::Assignment(Scope::Shard(shard)))
        .collect();
    let (rows, bad) = read_rows(store, &keys).await?;
    // Above all that was ever counted, as a coordinator says it (`coordinator/decide.rs`).
    let above_all = match bad.is_empty() {
        true => 0,
        false => (store.epoch(Scope::Coordinator).await?.0 + 1) << 32,
    };
    for shard in map.shards() {
        let scope = Scope::Shard(shard);
        let found = rows.get(&RowKey::Assignment(scope)).cloned().flatten();
        let current = found.and_then(Row::into_assignment);
        if current.as_ref().is_some_and(|row| row.node == *node) {
            continue;
        }
        let raw = key_bytes(&RowKey::Assignment(scope));
        let bad = bad.iter().find(|row| *row.key == *raw);
        if let Some(row) = bad {
            let (shard, reason) = (shard.0, &row.reason);
            tracing::error!(
                shard,
                reason,
                "the assignment of a shard cannot be read; it is written anew"
            );
        }
        let version = current.map_or(bad.map_or(0, |_| above_all), |row| row.version) + 1;
        let row = Row::Assignment(AssignmentRow {
            scope,
            node: node.clone(),
            version,
        });
        writes.push(Write::Put {
            row,
            expect: Expect::Any,
        });
    }
    Ok(())
}

async fn commit_as_coordinator(parts: &NodeParts, node: &Name, writes: &[Write]) -> Result<(), StartError> {
    let with = (&parts.store, &parts.clock, &parts.chance);
    commit_under_coordinator(with, node, (writes, false)).await
}

/// Opens the coordinator's scope for one batch, which a full disk may refuse or not. A coordinator that is at work sees
/// that, and another takes over.
pub(super) async fn commit_under_coordinator(
    (store, clock, chance): (&SharedStore, &SharedClock, &SharedChance),
    node: &Name,
    (writes, needs_room): (&[Write], bool),
) -> Result<(), StartError> {
    let store = &patient(store.clone(), clock.clone());
    let scope = Scope::Coordinator;
    let holder = draw_holder(&**chance);
    let expected = store.epoch(scope).await?;
    let request = Open {
        scope,
        holder,
        expected,
        node: node.clone(),
    };
    let opened = loop {
        match store.open(request.clone()).await {
            // The same nonce gets the same answer (F6).
            Err(OpenError::Store(StoreError::Unavailable(_))) => clock.sleep(RESEND_PAUSE).await,
            opened => break opened?,
        }
    };
    let batch = encode_batch(writes, needs_room).map_err(|error| refused("cell_refused", error.to_string()))?;
    let batch = Arc::new(batch);
    let commit = Commit {
        scope,
        holder,
        epoch: opened.epoch,
        number: BatchNo(1),
        batch,
    };
    loop {
        match store.commit(commit.clone()).await {
            Committed::Committed(_) | Committed::Already(_) => return Ok(()),
            // Settled by sending the same again (F2), unless the store has ended for this process.
            Committed::Unknown(_) | Committed::Unavailable(_) => {
                if let Err(StoreError::Broken(reason)) = store.now(scope).await {
                    return Err(StoreError::Broken(reason).into());
                }
                clock.sleep(RESEND_PAUSE).await;
            }
            Committed::Conflict(what) => return Err(refused("cell_refused", what)),
            Committed::Stale => return Err(refused("cell_refused", "another node took the cell meanwhile")),
            Committed::Full => return Err(StartError::Full),
        }
    }
}
