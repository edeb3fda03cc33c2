//! What a host is told and what it orders.
//!
//! Owns: these shapes. Must never: carry a clock reading of another node. Next: `mod.rs`.

use crate::coordinator::board::{BoardView, Session};
use crate::coordinator::io::Assigned;
use crate::ids::Epoch;
use crate::name::Name;
use crate::time::Span;
use std::sync::Arc;

/// Settings of a host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostConfig {
    /// Its node.
    pub node: Name,
    /// Which start of it.
    pub boot: u64,
    /// Shards of the cell; zero for a node that owns none.
    pub shards: u16,
    /// Where other nodes reach it; empty if they do not.
    pub address: Arc<str>,
    /// Longest pause between posts; five of it between reads of the rows that nobody told of.
    pub interval: Span,
    /// How long a claim waits for another node on the board to release.
    pub handover_max: Span,
}

/// A fact for a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostInput {
    /// Time has passed.
    Tick,
    /// A post was taken; the board as it was after that.
    Answered {
        /// Which post.
        beat: u64,
        /// The board.
        view: BoardView,
    },
    /// A post brought no answer, or was refused.
    NotTaken {
        /// Which post.
        beat: u64,
    },
    /// Every assignment row, by shard number; `None` where there is none.
    RowsRead(Vec<Option<Assigned>>),
    /// The rows could not be read.
    RowsNotRead,
    /// A shard is closed: nothing of it is in flight here.
    Closed {
        /// Which.
        shard: u16,
    },
    /// An open shard stepped.
    Progressed {
        /// Which.
        shard: u16,
        /// Grows.
        progress: u64,
    },
    /// This node's coordinator: its epoch and the batches of it that are durable.
    Coordinates(Option<(Epoch, u64)>),
    /// Give the shards away.
    Drain,
    /// Close what nobody took.
    GiveUp,
}

/// An order of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostEffect {
    /// Post this, and wait for the board to change from the number that was seen last.
    Post {
        /// What.
        session: Session,
        /// Number of the newest view.
        seen: u64,
        /// For so long at most.
        wait: Span,
    },
    /// Read every assignment row.
    ReadRows,
    /// Open a shard.
    Open {
        /// Which.
        shard: u16,
        /// Of the row that says so.
        version: u64,
    },
    /// Take nothing new, make durable what is in flight, close; then `Closed`.
    Release {
        /// Which.
        shard: u16,
    },
    /// The lease is over, and another node may have been named: ask the store whether the shard is still this
    /// node's, and close it if it says no. Until then it goes on: commits and answers prove themselves (F32).
    Fence {
        /// Which.
        shard: u16,
    },
    /// The lease holds again, and nobody else was named meanwhile.
    Unfence {
        /// Which.
        shard: u16,
    },
    /// Nothing is held any more.
    Drained,
}

/// What a host saw and did not follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HostCounts {
    /// Rows older than those it knew.
    pub old_rows: u64,
    /// Answers to posts that it does not remember.
    pub old_answers: u64,
    /// Claims that it gave up for a later decision.
    pub yielded: u64,
    /// Leases that ended before they were extended.
    pub fenced: u64,
    /// Claims that waited too long for another node's release.
    pub forced: u64,
}
