//! The greeting of a connection: who dials, who listens, under which version.
//!
//! Owns: the three messages and the checks of a listener. Must never: take a node into a cell that is
//! not its own. Next: `listen.rs`, `dial.rs`.

use crate::mesh::{MeshSecret, NodeFacts, Roles, Versions};
use fencepost_core::limits::GREETING_BYTES_MAX;
use fencepost_storage::wire::{In, Out, WireError};
use subtle::ConstantTimeEq;

/// What a dialer says first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Oldest version it understands.
    pub oldest: u16,
    /// Newest version it understands.
    pub newest: u16,
    /// Its cell, if it knows it.
    pub cell: Option<u128>,
    /// Who it is.
    pub facts: NodeFacts,
    /// Drawn for this connection.
    pub nonce: [u8; 16],
}

/// What a listener answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The version to speak.
    pub version: u16,
    /// The listener's cell, if it knows it.
    pub cell: Option<u128>,
    /// Who it is.
    pub facts: NodeFacts,
    /// Number of the connection.
    pub link: u64,
    /// Drawn for this connection.
    pub nonce: [u8; 16],
    /// Shows that the listener has the cell's secret.
    pub proof: [u8; 32],
}

/// What only a holder of the secret can say of one connection.
pub fn proof_of(secret: &MeshSecret, who: &str, hello: &Hello, (nonce, link): (&[u8; 16], u64)) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_keyed(secret.bytes());
    for part in [who.as_bytes(), &hello.encode(), nonce, &link.to_be_bytes()] {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}

/// Compares in constant time.
pub fn is_proof(said: &[u8], expected: &[u8; 32]) -> bool {
    said.ct_eq(expected).into()
}

/// Why a listener does not take a dialer, with a stable code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why} ({code})")]
pub struct RefusedGreeting {
    /// Stable.
    pub code: String,
    /// For people, with the next step.
    pub why: String,
}

impl RefusedGreeting {
    pub(crate) fn new(code: &str, why: impl Into<String>) -> RefusedGreeting {
        RefusedGreeting {
            code: code.to_owned(),
            why: why.into(),
        }
    }
}

impl Hello {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut out = Out::new(&mut bytes);
        out.put(self.oldest).put(self.newest);
        put_cell(&mut out, self.cell);
        put_facts(&mut out, &self.facts);
        out.put(self.nonce);
        bytes
    }

    /// From bytes.
    pub fn decode(bytes: &[u8]) -> Result<Hello, WireError> {
        let mut input = In::new(bytes, GREETING_BYTES_MAX)?;
        let hello = Hello {
            oldest: input.take()?,
            newest: input.take()?,
            cell: input.option(In::take)?,
            facts: take_facts(&mut input)?,
            nonce: input.fixed()?,
        };
        input.end()?;
        Ok(hello)
    }

    /// The newest version that both understand.
    pub fn common_version(&self, ours: &Versions) -> Result<u16, RefusedGreeting> {
        let (oldest, newest) = (ours.oldest(), ours.newest());
        let version = self.newest.min(newest);
        if version < self.oldest.max(oldest) {
            return Err(RefusedGreeting {
                code: "protocol-version".to_owned(),
                why: format!(
                    "this node speaks protocol versions {oldest} to {newest}, the other {} to {}: upgrade one \
                     version at a time",
                    self.oldest, self.newest
                ),
            });
        }
        Ok(version)
    }

    /// Refuses a node of another cell.
    pub fn check_cell(&self, cell: Option<u128>) -> Result<(), RefusedGreeting> {
        match (self.cell, cell) {
            (Some(theirs), Some(ours)) if theirs != ours => Err(RefusedGreeting {
                code: "other-cell".to_owned(),
                why: format!("this node is of cell {ours:032x}, the other of cell {theirs:032x}: check the addresses"),
            }),
            _ => Ok(()),
        }
    }
}

impl Welcome {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut out = Out::new(&mut bytes);
        out.put(self.version).put(self.link);
        put_cell(&mut out, self.cell);
        put_facts(&mut out, &self.facts);
        out.put(self.nonce).put(self.proof);
        bytes
    }

    /// From bytes.
    pub fn decode(bytes: &[u8]) -> Result<Welcome, WireError> {
        let mut input = In::new(bytes, GREETING_BYTES_MAX)?;
        let welcome = Welcome {
            version: input.take()?,
            link: input.take()?,
            cell: input.option(In::take)?,
            facts: take_facts(&mut input)?,
            nonce: input.fixed()?,
            proof: input.fixed()?,
        };
        input.end()?;
        Ok(welcome)
    }
}

impl RefusedGreeting {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        Out::new(&mut bytes).text(&self.code).text(&self.why);
        bytes
    }

    /// From bytes.
    pub fn decode(bytes: &[u8]) -> Result<RefusedGreeting, WireError> {
        let mut input = In::new(bytes, GREETING_BYTES_MAX)?;
        let refused = RefusedGreeting {
            code: input.string(64, "code")?,
            why: input.string(1_024, "reason")?,
        };
        input.end()?;
        Ok(refused)
    }
}

fn put_cell(out: &mut Out<'_>, cell: Option<u128>) {
    out.option(cell, |out, cell| {
        out.put(cell);
    });
}

fn put_facts(out: &mut Out<'_>, facts: &NodeFacts) {
    out.name(&facts.node).put(facts.boot).put(facts.roles.bits());
}

fn take_facts(input: &mut In<'_>) -> Result<NodeFacts, WireError> {
    Ok(NodeFacts {
        node: input.name()?,
        boot: input.take()?,
        roles: Roles::from_bits(input.take()?),
    })
}
