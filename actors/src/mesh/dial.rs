//! Keeps a connection to one address, making it anew whenever it breaks.
//!
//! Owns: greeting as a dialer and the pauses between tries. Must never: give up, or take a refusal for
//! the other node's death. Next: `link.rs`, `greeting.rs`.

use crate::chance::{draw_holder, draw_u64};
use crate::mesh::frame::{Frame, FrameError, FrameKind, GREETING, Origin, read_frame, write_frame};
use crate::mesh::greeting::{Hello, RefusedGreeting, Welcome, is_proof, proof_of};
use crate::mesh::link::{self, Link};
use crate::mesh::peer::Peer;
use crate::mesh::wire::{self, Wire};
use crate::mesh::{MeshParts, NodeFacts, Roles};
use crate::net::{Stream, rt};
use fencepost_core::limits::{GREETING_BYTES_MAX, GREETING_MS, REDIAL_MS, REDIAL_MS_MAX};
use fencepost_core::time::Span;
use fencepost_storage::wire::WireError;
use futures_util::future::{Either, select};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Why a connection was not made.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// Not reached, or no frame came.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// Not in time.
    #[error("no connection in time")]
    Late,
    /// The other node said no.
    #[error("refused: {0}")]
    Refused(#[from] RefusedGreeting),
    /// This node said no, or the two cannot be sure of each other.
    #[error("{0}")]
    Unfit(RefusedGreeting),
    /// Its greeting cannot be read.
    #[error("the greeting cannot be read: {0}")]
    Greeting(#[from] WireError),
    /// It does not have the cell's secret.
    #[error("the other side does not have this cell's secret")]
    NotProven,
    /// Its greeting is not one.
    #[error("the other side greets with another frame")]
    NoGreeting,
}

impl From<io::Error> for DialError {
    fn from(error: io::Error) -> DialError {
        DialError::Frame(error.into())
    }
}

impl From<wire::WireError> for DialError {
    fn from(error: wire::WireError) -> DialError {
        match error {
            wire::WireError::Ended(error) => error.into(),
            wire::WireError::Refused(refused) => DialError::Unfit(refused),
        }
    }
}

impl DialError {
    fn code(&self) -> &str {
        match self {
            DialError::Frame(error) => error.code(),
            DialError::Late => "late",
            DialError::Refused(refused) | DialError::Unfit(refused) => &refused.code,
            DialError::NotProven => "not-proven",
            DialError::Greeting(_) | DialError::NoGreeting => "bad-greeting",
        }
    }
}

/// A peer at this address, `host:port`, connected to from now on until it is closed.
pub fn dial(parts: Arc<MeshParts>, address: String) -> Peer {
    dial_for(parts, address, Roles::default())
}

/// The same, for a node that has these roles: nothing is sent to one that has not.
pub fn dial_for(parts: Arc<MeshParts>, address: String, wanted: Roles) -> Peer {
    let peer = Peer::new(parts.clock.clone());
    let dialed = peer.clone();
    rt::spawn(async move { keep(&parts, &dialed, (&address, wanted)).await });
    peer
}

async fn keep(parts: &Arc<MeshParts>, peer: &Peer, (address, wanted): (&str, Roles)) {
    let (mut pause, mut told) = (REDIAL_MS, None);
    while !peer.shared.queue.is_closed() {
        match connect(parts, (address, wanted)).await {
            Ok(link) => {
                tracing::info!(address, node = %link.facts.node, "connected");
                pause = REDIAL_MS;
                let end = link::run(parts, peer, link).await;
                tracing::info!(address, reason = %end, "connection ended");
            }
            Err(error) => {
                parts.refuse(error.code());
                let said = error.to_string();
                // What does not mend itself is said once.
                if !matches!(error, DialError::Frame(_) | DialError::Late) && told.as_ref() != Some(&said) {
                    tracing::warn!(address, error = said, "not connected");
                    told = Some(said);
                }
            }
        }
        // Half of the pause is drawn, so that many nodes do not come back in one instant.
        let drawn = draw_u64(&*parts.chance) % (pause / 2).max(1);
        parts.clock.sleep(Span::from_millis(pause / 2 + drawn)).await;
        pause = (pause * 2).min(REDIAL_MS_MAX);
    }
}

async fn connect(parts: &Arc<MeshParts>, (address, wanted): (&str, Roles)) -> Result<Link<Box<dyn Stream>>, DialError> {
    #[cfg(madsim)]
    crate::net::seam::dialing(address);
    let connecting = async {
        let stream = TcpStream::connect(address).await?;
        greet(parts, wire::dialed(parts, stream).await?, wanted).await
    };
    let late = parts.clock.sleep(Span::from_millis(GREETING_MS));
    match select(pin!(connecting), late).await {
        Either::Left((Err(DialError::Frame(FrameError::Ended(error))), _)) => {
            Err(wire::told_by(&error).map_or(error.into(), DialError::Unfit))
        }
        Either::Left((made, _)) => made,
        Either::Right(((), _)) => Err(DialError::Late),
    }
}

/// Whether the listener is a node that this one looks for.
fn check_listener(parts: &MeshParts, wire: &Wire, (said, wanted): (&NodeFacts, Roles)) -> Result<(), RefusedGreeting> {
    if let Some(proven) = &wire.proven {
        proven.check(said, parts.cell())?;
    }
    if said.roles.has_all(wanted) {
        return Ok(());
    }
    let (node, roles) = (&said.node, said.roles);
    let why = format!("the node there, {node}, has the roles {roles}, not {wanted}: check the address");
    Err(RefusedGreeting::new("role-missing", why))
}

/// Greets over a connected stream.
async fn greet(parts: &Arc<MeshParts>, mut wire: Wire, wanted: Roles) -> Result<Link<Box<dyn Stream>>, DialError> {
    let hello = Hello {
        oldest: parts.versions.oldest(),
        newest: parts.versions.newest(),
        cell: parts.cell(),
        facts: parts.facts.clone(),
        nonce: draw_holder(&*parts.chance).0.to_be_bytes(),
    };
    let origin = Origin {
        version: GREETING,
        cell: parts.cell().unwrap_or(0),
        sender: parts.facts.boot,
        link: 0,
    };
    let mut out = Vec::new();
    write_frame(FrameKind::Hello, &origin, 0, &hello.encode(), &mut out);
    wire.stream.write_all(&out).await?;
    wire.stream.flush().await?;
    let answer = read_frame(&mut wire.stream, &parts.clock, GREETING_BYTES_MAX).await?;
    let welcome = welcome_of(&answer)?;
    hello.check_cell(welcome.cell)?;
    check_listener(parts, &wire, (&welcome.facts, wanted)).map_err(DialError::Unfit)?;
    if !(hello.oldest..=hello.newest).contains(&welcome.version) {
        return Err(FrameError::Version(welcome.version).into());
    }
    let proof = |who| proof_of(&wire.secret, who, &hello, (&welcome.nonce, welcome.link));
    if !is_proof(&welcome.proof, &proof("listener")) {
        return Err(DialError::NotProven);
    }
    out.clear();
    write_frame(FrameKind::Prove, &origin, 0, &proof("dialer"), &mut out);
    wire.stream.write_all(&out).await?;
    wire.stream.flush().await?;
    // From now on this node is of that cell, wherever the address may lead later.
    let cell = match welcome.cell {
        Some(theirs) => *parts.cell.get_or_init(|| theirs),
        None => parts.cell().unwrap_or(0),
    };
    let stamped = |sender| Origin {
        version: welcome.version,
        cell,
        sender,
        link: welcome.link,
    };
    Ok(Link {
        stream: wire.stream,
        ours: stamped(parts.facts.boot),
        theirs: stamped(welcome.facts.boot),
        facts: welcome.facts,
        is_ours: true,
    })
}

fn welcome_of(frame: &Frame) -> Result<Welcome, DialError> {
    match frame.kind {
        FrameKind::Welcome => Ok(Welcome::decode(&frame.payload)?),
        FrameKind::Refused => Err(RefusedGreeting::decode(&frame.payload)?.into()),
        _ => Err(DialError::NoGreeting),
    }
}
