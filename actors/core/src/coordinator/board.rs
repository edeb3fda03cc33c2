//! The board: where every node says, with each beat, that it is there and what it holds.
//!
//! Owns: the leases of sessions, all counted on the clock of the one node that keeps the board. A session is
//! over when nothing came for its length plus a margin; its node, which counts the length alone and from
//! before it sent the beat, has stopped by then. Nothing here is durable: a young board knows of nobody, so
//! for one length and margin nobody's absence means anything (F32). Must never: decide a move.
//! Next: `host/` (who posts), `mod.rs` (who reads).

use crate::ids::Epoch;
use crate::level::Level;
use crate::name::Name;
use crate::time::{Monotonic, Span};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a node does with a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hold {
    /// Nothing.
    #[default]
    Idle,
    /// The row names it; it will open once nobody else holds the shard.
    Claiming,
    /// Opens it or has it open.
    Held,
    /// Lets what is in flight become durable, then closes it.
    Leaving,
}

/// What a node says of one shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ShardReport {
    /// Newest version of the assignment row that the node has read.
    pub version: u64,
    /// What it does with it.
    pub hold: Hold,
    /// Grows while the open shard steps.
    pub progress: u64,
}

/// What a node says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Session {
    /// Its name.
    pub node: Name,
    /// Which start of its process.
    pub boot: u64,
    /// Grows with each post.
    pub beat: u64,
    /// May be given shards.
    pub takes: bool,
    /// Decides assignments under this epoch of the coordinator's scope.
    pub coordinates: Option<Epoch>,
    /// Batches of that epoch that are durable: whoever sees it grow reads the rows.
    pub decided: u64,
    /// By shard number; empty for a node that owns none.
    pub shards: Vec<ShardReport>,
    /// Where other nodes reach it; empty if they do not.
    pub address: Arc<str>,
    /// The highest level that it knows (`level.rs`).
    pub level: Level,
}

/// The board as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BoardView {
    /// Which start of the board.
    pub board: u64,
    /// Grows with each change of what is on it, beats and progress aside.
    pub number: u64,
    /// Not old enough for anybody's absence to mean something.
    pub is_young: bool,
    /// How long a node may count its session, from before it sent its post.
    pub length: Span,
    /// Who is there, by name.
    pub sessions: Vec<Session>,
}

/// What became of a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    /// The session is extended.
    Taken,
    /// It came before, or after a later one.
    Old,
    /// Another process of that name has a session.
    NameTaken,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Entry {
    session: Session,
    heard_at: Monotonic,
}

/// The board's machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Board {
    boot: u64,
    number: u64,
    length: Span,
    margin: Span,
    started_at: Monotonic,
    entries: BTreeMap<Name, Entry>,
    /// Posts that were not taken.
    refused: u64,
}

impl BoardView {
    /// The session of a node.
    pub fn session(&self, node: &Name) -> Option<&Session> {
        self.sessions.iter().find(|session| session.node == *node)
    }

    /// The newest decision about a shard that anybody on it has read.
    pub fn newest(&self, shard: u16) -> u64 {
        let said = self.sessions.iter().map(|session| session.report(shard).version);
        said.max().unwrap_or(0)
    }

    /// Whether this one is of the same board and later.
    pub fn is_newer_than(&self, other: &BoardView) -> bool {
        self.board == other.board && self.number > other.number
    }
}

impl Session {
    /// What it says of a shard.
    pub fn report(&self, shard: u16) -> ShardReport {
        self.shards.get(usize::from(shard)).copied().unwrap_or_default()
    }

    /// Whether a post says more than that the node is there.
    fn is_news(&self, known: &Session) -> bool {
        let holds = |session: &Session| -> Vec<(u64, Hold)> {
            session.shards.iter().map(|said| (said.version, said.hold)).collect()
        };
        self.boot != known.boot
            || self.takes != known.takes
            || self.coordinates != known.coordinates
            || self.decided != known.decided
            || self.address != known.address
            || holds(self) != holds(known)
    }
}

impl Board {
    /// Empty and young.
    pub fn new(boot: u64, length: Span, margin: Span, now: Monotonic) -> Board {
        Board {
            boot,
            number: 1,
            length,
            margin,
            started_at: now,
            entries: BTreeMap::new(),
            refused: 0,
        }
    }

    /// A node's post. One name has one session: a second process of that name waits until the first is over,
    /// so that an owner may take the leases of its own earlier starts for those of the dead.
    pub fn post(&mut self, now: Monotonic, session: Session) -> Posted {
        self.end_sessions(now);
        if let Some(known) = self.entries.get(&session.node) {
            let posted = match known.session.boot == session.boot {
                false => Posted::NameTaken,
                true if session.beat <= known.session.beat => Posted::Old,
                true => Posted::Taken,
            };
            if posted != Posted::Taken {
                self.refused += 1;
                return posted;
            }
        }
        let known = self.entries.get(&session.node).map(|entry| &entry.session);
        self.number += u64::from(known.is_none_or(|known| session.is_news(known)));
        let entry = Entry { heard_at: now, session };
        self.entries.insert(entry.session.node.clone(), entry);
        Posted::Taken
    }

    /// A node says that it holds nothing and is gone.
    pub fn leave(&mut self, node: &Name, boot: u64) {
        if self.entries.get(node).is_some_and(|entry| entry.session.boot == boot) {
            self.entries.remove(node);
            self.number += 1;
        }
    }

    /// The board as it is now.
    pub fn view(&mut self, now: Monotonic) -> BoardView {
        self.end_sessions(now);
        BoardView {
            board: self.boot,
            number: self.number,
            is_young: now.since(self.started_at) < self.patience(),
            length: self.length,
            sessions: self.entries.values().map(|entry| entry.session.clone()).collect(),
        }
    }

    /// The number that a view would have now.
    pub fn number(&mut self, now: Monotonic) -> u64 {
        self.end_sessions(now);
        self.number
    }

    /// When the next session is over, or the board is no longer young.
    pub fn next_wake(&self, now: Monotonic) -> Option<Monotonic> {
        let patience = self.patience();
        let ends = self.entries.values().map(|entry| entry.heard_at + patience);
        let grown = Some(self.started_at + patience).filter(|at| *at > now);
        ends.chain(grown).min()
    }

    /// Posts that were not taken.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn patience(&self) -> Span {
        self.length + self.margin
    }

    fn end_sessions(&mut self, now: Monotonic) {
        let (patience, before) = (self.patience(), self.entries.len());
        self.entries.retain(|_, entry| now.since(entry.heard_at) < patience);
        self.number += u64::from(self.entries.len() != before);
    }
}
