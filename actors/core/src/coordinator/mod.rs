//! Which node owns which shard: the board where nodes say what they hold, the coordinator that decides,
//! and the host that follows on each node. None of them is needed for safety: what a coordinator writes
//! and what an owner commits is judged by the store's epochs alone (PROTOCOL F6, F32). They decide *when*
//! a shard moves.
//!
//! Owns: `Board` (leases of sessions, on one clock), `Coordinator` (rows of assignments), `Host` (what this
//! node claims, holds and releases). Must never: compare clocks of two nodes, or decide whether a write
//! counts. Next: `board.rs`, `decide.rs`, `placement.rs`, `host/`.

pub mod board;
mod check;
mod decide;
pub mod host;
pub mod io;
pub mod placement;

use crate::ids::Epoch;
use crate::time::{Monotonic, Span};
use board::BoardView;
use decide::ShardBook;
use io::{Assigned, CoordinatorConfig, CoordinatorCounts, CoordinatorEffect, CoordinatorInput};
use std::collections::{BTreeMap, BTreeSet};

/// Whether this coordinator is the one that decides. Its authority is an epoch in the store; it may be wrong
/// about having it, and then its next batch is refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Standing {
    /// Another one decides, or nobody yet.
    Standby,
    /// The scope is being opened.
    Opening,
    /// It is open; the rows are being read.
    Reading(Epoch),
    /// Decides.
    Active(Epoch),
}

/// One coordinator of the cell, active or standing by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Coordinator {
    config: CoordinatorConfig,
    standing: Standing,
    /// The newest view of the board.
    view: Option<BoardView>,
    /// Rows as they are durable, by shard number.
    rows: Vec<Option<Assigned>>,
    /// Shards whose durable row cannot be read, or is older than what a node has read: each is decided anew,
    /// above every version that anybody knows.
    unreadable: BTreeSet<u16>,
    /// Rows of the batch in flight, by shard number.
    pending: BTreeMap<u16, Assigned>,
    /// Batches of this epoch that are durable.
    decided: u64,
    books: Vec<ShardBook>,
    /// How long a session lasts, as the board said last.
    length: Span,
    /// Since when each node (and which start of it) is on the board.
    joined: BTreeMap<(crate::name::Name, u64), Monotonic>,
    counts: CoordinatorCounts,
}

impl Coordinator {
    /// Stands by.
    pub fn new(config: CoordinatorConfig) -> Coordinator {
        let shards = usize::from(config.shards.count());
        Coordinator {
            config,
            standing: Standing::Standby,
            view: None,
            rows: vec![None; shards],
            unreadable: BTreeSet::new(),
            pending: BTreeMap::new(),
            decided: 0,
            books: vec![ShardBook::default(); shards],
            length: Span::ZERO,
            joined: BTreeMap::new(),
            counts: CoordinatorCounts::default(),
        }
    }

    /// Takes a fact in and gives orders, all to be carried out at once.
    pub fn step(&mut self, now: Monotonic, input: CoordinatorInput, effects: &mut Vec<CoordinatorEffect>) {
        match input {
            CoordinatorInput::Viewed(view) => self.on_view(now, view, effects),
            CoordinatorInput::Opened(epoch) => self.on_opened(epoch, effects),
            CoordinatorInput::NotOpened => self.on_not_opened(),
            CoordinatorInput::RowsRead {
                epoch,
                rows,
                unreadable,
            } => self.on_rows(now, epoch, (rows, unreadable), effects),
            CoordinatorInput::Unreadable(shards) => self.on_unreadable(now, shards, effects),
            CoordinatorInput::Committed { epoch, number } => self.on_committed(now, epoch, number, effects),
            CoordinatorInput::Refused { epoch } => self.on_refused(epoch),
        }
    }

    /// Under which epoch it decides, and how many batches of it are durable: for the node's session.
    pub fn coordinates(&self) -> Option<(Epoch, u64)> {
        match self.standing {
            Standing::Active(epoch) => Some((epoch, self.decided)),
            Standing::Standby | Standing::Opening | Standing::Reading(_) => None,
        }
    }

    /// What it ignored.
    pub fn counts(&self) -> CoordinatorCounts {
        self.counts
    }

    /// A standby waits for as long as somebody on the board decides: the board is the counter of F32, kept
    /// by one clock.
    fn on_view(&mut self, now: Monotonic, view: BoardView, effects: &mut Vec<CoordinatorEffect>) {
        if self.view.as_ref().is_some_and(|known| known.is_newer_than(&view)) {
            self.counts.old_views += 1;
            return;
        }
        self.note_sessions(now, &view);
        let other = view.sessions.iter().filter(|session| session.boot != self.config.boot);
        let other = other.filter_map(|session| session.coordinates).max();
        self.view = Some(view);
        match (&self.standing, other) {
            (Standing::Standby, None) => {
                self.standing = Standing::Opening;
                effects.push(CoordinatorEffect::Open);
            }
            (Standing::Active(mine) | Standing::Reading(mine), Some(other)) if other > *mine => self.stand_by(),
            (Standing::Active(_), _) if self.is_overtaken() => self.stand_by(),
            (Standing::Active(_), _) => self.decide(now, effects),
            (Standing::Standby, Some(_)) | (Standing::Opening | Standing::Reading(_), _) => {}
        }
    }

    /// A node has read a decision that this one did not make: another one decided after it, and may be gone
    /// again. One that has nothing to commit would never hear that it was refused.
    fn is_overtaken(&self) -> bool {
        let Some(view) = &self.view else { return false };
        self.numbered().any(|(shard, row)| {
            let known = self.pending.get(&shard).or(row).map_or(0, |row| row.version);
            !self.unreadable.contains(&shard) && view.newest(shard) > known
        })
    }

    fn on_opened(&mut self, epoch: Epoch, effects: &mut Vec<CoordinatorEffect>) {
        if self.standing != Standing::Opening {
            self.counts.stale += 1;
            return;
        }
        self.standing = Standing::Reading(epoch);
        effects.push(CoordinatorEffect::ReadRows { epoch });
    }

    fn on_not_opened(&mut self) {
        if self.standing == Standing::Opening {
            self.standing = Standing::Standby;
        }
    }

    /// What an open holder reads is at least as durable as its open, and nothing older can follow (F5).
    fn on_rows(
        &mut self,
        now: Monotonic,
        epoch: Epoch,
        (rows, unreadable): (Vec<Option<Assigned>>, Vec<u16>),
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        if self.standing != Standing::Reading(epoch) || rows.len() != self.rows.len() {
            self.counts.stale += 1;
            return;
        }
        self.rows = rows;
        self.unreadable = unreadable.into_iter().collect();
        let newest = |shard| self.view.as_ref().map_or(0, |view| view.newest(shard));
        let behind = |(shard, row): (u16, Option<&Assigned>)| {
            let is_behind = newest(shard) > row.map_or(0, |row| row.version);
            is_behind.then_some(shard)
        };
        // An older store came back: nodes would take its rows for old ones.
        let behind: Vec<u16> = self.numbered().filter_map(behind).collect();
        self.unreadable.extend(behind);
        self.pending.clear();
        self.decided = 0;
        self.books = vec![ShardBook::default(); self.rows.len()];
        self.standing = Standing::Active(epoch);
        self.decide(now, effects);
    }

    /// What this one decided is known, and is said again. A row that is being written may read as it was.
    fn on_unreadable(&mut self, now: Monotonic, shards: Vec<u16>, effects: &mut Vec<CoordinatorEffect>) {
        if !matches!(self.standing, Standing::Active(_)) {
            return;
        }
        let count = self.rows.len();
        let known = |shard: &u16| usize::from(*shard) < count && !self.pending.contains_key(shard);
        let found: Vec<u16> = shards.into_iter().filter(known).collect();
        self.unreadable.extend(found);
        self.decide(now, effects);
    }

    fn on_committed(&mut self, now: Monotonic, epoch: Epoch, number: u64, effects: &mut Vec<CoordinatorEffect>) {
        let is_next = number == self.decided + 1 && !self.pending.is_empty();
        if self.standing != Standing::Active(epoch) || !is_next {
            self.counts.stale += 1;
            return;
        }
        self.decided = number;
        for (shard, row) in std::mem::take(&mut self.pending) {
            let at = usize::from(shard);
            self.counts.restated += u64::from(self.unreadable.remove(&shard));
            if let Some(place) = self.rows.get_mut(at) {
                *place = Some(row);
            }
        }
        effects.push(CoordinatorEffect::Announce);
        self.decide(now, effects);
    }

    /// Another one opened the scope: nothing of this one counts any more.
    fn on_refused(&mut self, epoch: Epoch) {
        match self.standing {
            Standing::Active(mine) | Standing::Reading(mine) if mine == epoch => self.stand_by(),
            Standing::Active(_) | Standing::Reading(_) | Standing::Standby | Standing::Opening => {
                self.counts.stale += 1;
            }
        }
    }

    fn stand_by(&mut self) {
        self.counts.deposed += 1;
        self.standing = Standing::Standby;
        self.pending.clear();
    }
}
