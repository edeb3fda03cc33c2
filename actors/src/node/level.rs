//! The level of the cell, as this node knows it, and raising it once every node knows the higher one.
//!
//! Owns: what an operator is told before and after (`fencepost upgrade`). Must never: raise it by itself, for until
//! then every node can go back to the version before; or use the last of a disk for it: the store's format is a file
//! of its own. Next: `fencepost_core::level`, `cell.rs`, docs/guides/upgrade.md.

use crate::gateway::{Answer, LevelFacts};
use crate::node::StartError;
use crate::node::cell::commit_under_coordinator;
use crate::node::gateway::NodeGateway;
use crate::shell::fetch::{SharedStore, read_rows};
use fencepost_core::level::{self, Level};
use fencepost_core::machine::{Expect, Write};
use fencepost_core::name::Name;
use fencepost_core::refusal::{Refusal, RefusalKind};
use fencepost_core::row::{CellRow, Row, RowKey};
use fencepost_core::time::Span;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

/// The level that the cell had when this node last saw it; it never falls.
#[derive(Debug)]
pub struct CellLevel(AtomicU16);

impl CellLevel {
    /// As a cell's row says at the start.
    pub fn new(level: Level) -> Arc<CellLevel> {
        Arc::new(CellLevel(AtomicU16::new(level.0)))
    }

    /// Nothing beyond it may be written.
    pub fn get(&self) -> Level {
        Level(self.0.load(Ordering::SeqCst))
    }

    /// How long keys are kept that are asked to be kept for so long.
    pub(crate) fn key_kept(&self, asked: Span) -> Span {
        self.get().key_kept(asked)
    }

    /// As the cell's row says now.
    pub(crate) fn learn(&self, level: Level) {
        if self.0.fetch_max(level.0, Ordering::SeqCst) < level.0 {
            tracing::info!(level = level.0, "the cell was raised to a level");
        }
    }

    /// Reads it again, as long as it may still rise.
    pub(crate) async fn look(self: Arc<CellLevel>, store: SharedStore) {
        if self.get() < level::known()
            && let Ok(cell) = read_cell(&store).await
        {
            self.learn(cell.level);
        }
    }
}

async fn read_cell(store: &SharedStore) -> Result<CellRow, Refusal> {
    let (rows, _) = read_rows(store, &[RowKey::Cell]).await.map_err(|error| away(&error))?;
    let cell = rows.into_values().flatten().find_map(Row::into_cell);
    cell.ok_or_else(|| away(&"the cell's row is not there"))
}

fn away(why: &dyn std::fmt::Display) -> Refusal {
    let next = "Try again once the store answers; fencepost doctor says whether it does.";
    Refusal::new(RefusalKind::Unavailable, "store_unavailable", why.to_string(), next)
}

impl NodeGateway {
    /// The levels of the cell, of the store's node and of every node on the board.
    pub(super) fn read_level(&self) -> Answer<LevelFacts> {
        let (store, nodes) = (self.store.clone(), self.levels_of_nodes());
        let of_store = match &self.owners {
            Some(_) => store.level(),
            None => level::known(),
        };
        Box::pin(async move {
            Ok(LevelFacts {
                cell: read_cell(&store).await?.level,
                known: level::known(),
                of_store,
                nodes: nodes?,
            })
        })
    }

    /// Raises the cell to the level of this build.
    pub(super) fn raise_level(&self) -> Answer<LevelFacts> {
        let reading = self.read_level();
        let (store, clock, chance) = (self.store.clone(), self.clock.clone(), self.chance.clone());
        let (node, known) = (self.node.clone(), self.level.clone());
        Box::pin(async move {
            let facts = reading.await?;
            refuse_older(&facts)?;
            let cell = read_cell(&store).await?;
            if cell.level < facts.known {
                if store.is_full() {
                    return Err(no_room(cell.level));
                }
                let level = facts.known;
                let row = Row::Cell(CellRow { level, ..cell });
                let expect = Expect::Any;
                let writes = [Write::Put { row, expect }];
                let committed = commit_under_coordinator((&store, &clock, &chance), &node, (&writes, true));
                committed.await.map_err(|error| match error {
                    StartError::Full => no_room(cell.level),
                    error @ (StartError::Store(_) | StartError::Open(_) | StartError::Cell(_)) => away(&error),
                })?;
                tracing::warn!(level = level.0, "an operator raised the cell's level");
            }
            known.learn(facts.known);
            Ok(LevelFacts {
                cell: facts.known.max(cell.level),
                ..facts
            })
        })
    }

    fn levels_of_nodes(&self) -> Result<Vec<(Name, Level)>, Refusal> {
        let Some(owners) = &self.owners else {
            return Ok(vec![(self.node.clone(), level::known())]);
        };
        owners.levels().ok_or_else(|| {
            let why = "the board is too young to know every node";
            let next = "Try again in a few seconds.";
            Refusal::new(RefusalKind::Unavailable, "board_young", why, next)
        })
    }
}

fn no_room(level: Level) -> Refusal {
    let why = format!("the disk of the store has no room for it; the cell stays at level {level}");
    let next = "Free space on the disk of the store's folder and say it again; nothing was changed.";
    Refusal::new(RefusalKind::StorageFull, "storage_full", why, next)
}

/// Every node must know the level before a row of it is written.
fn refuse_older(facts: &LevelFacts) -> Result<(), Refusal> {
    let older = facts.nodes.iter().filter(|(_, level)| *level < facts.known);
    let mut names: Vec<String> = older.map(|(node, _)| node.to_string()).collect();
    if facts.of_store < facts.known {
        names.push("the store's node".to_owned());
    }
    if names.is_empty() {
        return Ok(());
    }
    let why = format!(
        "not every node is of this version: {}; the cell stays at level {}",
        names.join(", "),
        facts.cell
    );
    let next = "Start the new version there, see with fencepost upgrade status that all have it, then try again.";
    Err(Refusal::new(RefusalKind::Conflict, "older_nodes", why, next))
}
