//! The mesh: connections between nodes, and calls over them.
//!
//! Owns: frames, greeting, queues, reconnecting. A message is a hint or a call whose answer may be
//! lost; nothing here is proof of anything, least of all the end of a connection (PROTOCOL,
//! foundations). Must never: know what a service's messages mean, or hold a decision. Next:
//! `peer.rs` (calls), `link.rs` (a connection at work), `dial.rs`, `listen.rs`, `frame.rs`.

pub mod body;
pub mod counts;
pub mod dial;
pub mod envelope;
pub mod frame;
pub mod greeting;
pub mod identity;
pub mod link;
pub mod listen;
pub mod peer;
mod queue;
pub mod store_link;
#[cfg(not(madsim))]
pub mod tls;
mod wire;

use crate::chance::SharedChance;
use crate::clock::SharedClock;
use counts::MeshCounts;
use envelope::ServiceId;
use fencepost_core::level;
use fencepost_core::name::Name;
use futures_util::future::BoxFuture;
use peer::Peer;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

impl MeshParts {
    /// The cell, if this node knows it.
    pub fn cell(&self) -> Option<u128> {
        self.cell.get().copied()
    }

    /// Counts a connection that was not made; whether its reason has not been told for a while.
    pub(crate) fn refuse(&self, code: &str) -> bool {
        self.counts.refuse(code, self.clock.mono())
    }
}

/// What a node does, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roles(u8);

impl Roles {
    /// Holds the store.
    pub const STORE: Roles = Roles(1);
    /// Owns shards.
    pub const SCHEDULER: Roles = Roles(2);
    /// Runs attempts.
    pub const WORKER: Roles = Roles(4);
    /// Serves the API.
    pub const GATEWAY: Roles = Roles(8);
    /// Assigns shards.
    pub const COORDINATOR: Roles = Roles(16);
    /// Everything.
    pub const ALL: Roles = Roles(31);

    /// Both sets together.
    pub const fn with(self, other: Roles) -> Roles {
        Roles(self.0 | other.0)
    }

    /// Whether one of these is among them.
    pub const fn has_any(self, of: Roles) -> bool {
        self.0 & of.0 != 0
    }

    /// Each alone, with its word.
    pub const WORDS: [(Roles, &str); 5] = [
        (Roles::STORE, "store"),
        (Roles::SCHEDULER, "scheduler"),
        (Roles::WORKER, "worker"),
        (Roles::GATEWAY, "gateway"),
        (Roles::COORDINATOR, "coordinator"),
    ];

    /// Whether all of these are among them.
    pub const fn has_all(self, of: Roles) -> bool {
        self.0 & of.0 == of.0
    }

    /// From words with commas between them; one at least.
    pub fn parse(text: &str) -> Option<Roles> {
        text.split(',').try_fold(Roles::default(), |roles, word| {
            let (role, _) = Roles::WORDS.iter().find(|(_, known)| *known == word)?;
            Some(roles.with(*role))
        })
    }

    /// As a number, for messages.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// From a number; roles of later builds are left out.
    pub const fn from_bits(bits: u8) -> Roles {
        Roles(bits & Roles::ALL.0)
    }
}

/// Their words with commas between them.
impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = Roles::WORDS.iter().filter(|(role, _)| self.has_any(*role));
        f.write_str(&words.map(|(_, word)| *word).collect::<Vec<_>>().join(","))
    }
}

/// Who a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    /// Its name.
    pub node: Name,
    /// Nonce of this start of its process.
    pub boot: u64,
    /// What it does.
    pub roles: Roles,
}

/// What a node offers to others over the mesh.
pub trait Service: Send + Sync + 'static {
    /// Whether a node of these roles may use it.
    fn is_open_to(&self, roles: Roles) -> bool;
    /// Answers a call. What must keep the order of calls is done here, not when the future is polled.
    fn call(&self, from: &NodeFacts, body: &[u8]) -> BoxFuture<'static, Vec<u8>>;
    /// Takes a message without an answer: a hint. `back` reaches its sender while the connection lasts.
    fn tell(&self, from: &NodeFacts, back: &Peer, body: &[u8]);
    /// A connection over which this service may be used was made or has ended. Proof of nothing.
    fn on_link(&self, _from: &NodeFacts, _news: LinkNews<'_>) {}
}

/// What became of a connection.
#[derive(Clone, Copy)]
pub enum LinkNews<'a> {
    /// The other node made it.
    Came(&'a Peer),
    /// One that the other node had made has ended.
    Went(&'a Peer),
    /// This node made it.
    Reached,
    /// One that this node had made has ended; it is made anew.
    Cut,
}

/// Versions of the protocol that a node speaks: the newest one that two nodes have in common is spoken.
#[derive(Clone)]
pub struct Versions {
    newest: u16,
    floor: Arc<dyn Fn() -> u16 + Send + Sync>,
}

impl Default for Versions {
    /// All that this build knows.
    fn default() -> Versions {
        Versions::up_to(level::known().0)
    }
}

impl Versions {
    /// No newer than this.
    pub fn up_to(newest: u16) -> Versions {
        Versions {
            newest: newest.min(frame::PROTOCOL),
            floor: Arc::new(|| frame::PROTOCOL_OLDEST),
        }
    }

    /// No older than the level of a cell, asked anew at each greeting: who does not know it may not come near its
    /// rows.
    pub fn at_least(self, floor: impl Fn() -> u16 + Send + Sync + 'static) -> Versions {
        let floor = Arc::new(floor);
        Versions { floor, ..self }
    }

    /// The newest.
    pub fn newest(&self) -> u16 {
        self.newest
    }

    /// The oldest, at this moment.
    pub fn oldest(&self) -> u16 {
        (self.floor)().clamp(frame::PROTOCOL_OLDEST, self.newest)
    }
}

/// What every node of a cell knows and nobody else. Never shown.
#[derive(Clone)]
pub struct MeshSecret([u8; 32]);

impl MeshSecret {
    /// From the text of its file.
    pub fn of(text: &str) -> MeshSecret {
        MeshSecret(blake3::derive_key(
            "fencepost 2026-11 secret between nodes",
            text.as_bytes(),
        ))
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// What all connections of a node share.
pub struct MeshParts {
    /// The cell, once this node knows it: from its own store, or from the first node that told it. It stays
    /// in that cell.
    pub cell: OnceLock<u128>,
    /// What the nodes of the cell share; not asked for under certificates.
    pub secret: MeshSecret,
    /// This node's certificate: with one, no connection goes without, in either direction.
    #[cfg(not(madsim))]
    pub tls: Option<Arc<tls::MeshTls>>,
    /// Of nodes with one of these roles only one may be connected at a time.
    pub lone: Roles,
    /// Who this node is.
    pub facts: NodeFacts,
    /// Its clocks.
    pub clock: SharedClock,
    /// Its chance.
    pub chance: SharedChance,
    /// Which versions of the protocol it speaks.
    pub versions: Versions,
    /// What it offers.
    pub services: BTreeMap<ServiceId, Arc<dyn Service>>,
    /// What happened so far.
    pub counts: MeshCounts,
}
