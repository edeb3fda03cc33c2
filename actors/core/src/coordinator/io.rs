//! What a coordinator is told and what it orders.
//!
//! Owns: these shapes. Must never: carry a clock reading of another node. Next: `mod.rs`.

use super::board::BoardView;
use crate::ids::{Epoch, ShardMap};
use crate::name::Name;
use crate::time::Span;

/// One assignment row: who may open a shard, and the number of that decision.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Assigned {
    /// Who.
    pub node: Name,
    /// Grows with each decision about the shard.
    pub version: u64,
}

/// Settings of a coordinator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CoordinatorConfig {
    /// This start of its node.
    pub boot: u64,
    /// The cell's map.
    pub shards: ShardMap,
    /// A shard that moved, and a node that came, is left alone for so long by balancing, or for two sessions if
    /// those are shorter.
    pub hold: Span,
    /// Planned moves under way at a time.
    pub moves_max: usize,
    /// A shard whose owner shows no progress for so long moves.
    pub stall_max: Span,
    /// First pause before the takeover of a shard whose owner died within `hold`; doubled for each further.
    pub young_pause: Span,
    /// Longest such pause.
    pub young_pause_max: Span,
}

/// A fact for a coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoordinatorInput {
    /// The board as it is.
    Viewed(BoardView),
    /// Its scope is open under this epoch.
    Opened(Epoch),
    /// It is not; another one was first, or the store is away.
    NotOpened,
    /// Every assignment row, by shard number, as read after the open.
    RowsRead {
        /// Of the open they were read after.
        epoch: Epoch,
        /// `None` where a shard was never assigned, or its row cannot be read.
        rows: Vec<Option<Assigned>>,
        /// Shards whose row is there and cannot be read.
        unreadable: Vec<u16>,
    },
    /// A later read, of whoever it was for, found that these shards' rows cannot be read.
    Unreadable(Vec<u16>),
    /// A batch is durable.
    Committed {
        /// Its epoch.
        epoch: Epoch,
        /// Its number.
        number: u64,
    },
    /// A batch or a read was refused for good: the epoch is over.
    Refused {
        /// Which.
        epoch: Epoch,
    },
}

/// An order of a coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoordinatorEffect {
    /// Open the coordinator's scope by compare-and-set.
    Open,
    /// Read every assignment row.
    ReadRows {
        /// Of the open.
        epoch: Epoch,
    },
    /// Commit these rows as one batch; an unknown end is settled by sending it again (F2).
    Commit {
        /// Under this epoch.
        epoch: Epoch,
        /// Counted from 1 in each epoch.
        number: u64,
        /// (shard number, row).
        rows: Vec<(u16, Assigned)>,
    },
    /// Tell the board at once that there are new rows.
    Announce,
}

/// What a coordinator saw and did not follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CoordinatorCounts {
    /// Views older than the one it had.
    pub old_views: u64,
    /// Answers of an epoch that is over.
    pub stale: u64,
    /// Times it found that another one decides.
    pub deposed: u64,
    /// Rows that could not be read and were decided anew.
    pub restated: u64,
}
