//! Takes connections of other nodes.
//!
//! Owns: greeting as a listener, and the bound on connections. Beyond loopback a listener needs
//! certificates. Must never: spend more on a stranger than a greeting. Next: `link.rs`.

use crate::chance::{draw_holder, draw_u64};
use crate::mesh::MeshParts;
use crate::mesh::frame::{FrameError, FrameKind, GREETING, Origin, read_frame, write_frame};
use crate::mesh::greeting::{Hello, RefusedGreeting, Welcome, is_proof, proof_of};
use crate::mesh::link::{self, Link};
use crate::mesh::peer::Peer;
use crate::mesh::wire::{self, Wire, WireError};
use crate::net::{Stream, rt};
use crate::problem::plain;
use fencepost_core::limits::{GREETING_BYTES_MAX, GREETING_MS, LINK_ACCEPT_PAUSE_MS, LINK_COUNT_MAX};
use fencepost_core::refusal::{Refusal, RefusalKind};
use fencepost_core::time::Span;
use futures_util::future::{Either, select};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// Pause after a connection could not be accepted: out of file handles, say.
const ACCEPT_PAUSE: Span = Span::from_millis(LINK_ACCEPT_PAUSE_MS);

/// A bound listener that takes no connection yet.
pub struct MeshListener {
    listener: TcpListener,
    address: SocketAddr,
}

/// Why a listener was not bound.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Other machines could reach it.
    #[error("without certificates a node listens for others on a loopback address only, not on {0}")]
    Beyond(SocketAddr),
    /// In use, say.
    #[error("cannot listen on {address}: {}", plain(error))]
    Bind {
        /// Where.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
}

impl ListenError {
    /// What a person is told.
    pub fn refusal(&self) -> Refusal {
        let (code, hint) = match self {
            ListenError::Beyond(_) => (
                "mesh_listen_beyond",
                "make certificates with 'fencepost certs' and name them with --mesh-ca, --mesh-cert and --mesh-key",
            ),
            ListenError::Bind { .. } => (
                "mesh_listen_failed",
                "another process may be there: stop it, or choose another address with --mesh-listen",
            ),
        };
        Refusal::new(RefusalKind::Unavailable, code, self.to_string(), hint).at("mesh.listen")
    }
}

impl MeshListener {
    /// Binds, for connections without certificates.
    ///
    /// # Errors
    /// The address is not loopback, or cannot be bound.
    pub async fn bind(address: SocketAddr) -> Result<MeshListener, ListenError> {
        // In the simulated world every node has an address of its own.
        if cfg!(not(madsim)) && !address.ip().is_loopback() {
            return Err(ListenError::Beyond(address));
        }
        MeshListener::bind_anywhere(address).await
    }

    /// Binds for a node that may have a certificate.
    ///
    /// # Errors
    /// It has none and the address is not loopback, or it cannot be bound.
    #[cfg(not(madsim))]
    pub async fn bind_for(
        tls: Option<&Arc<crate::mesh::tls::MeshTls>>,
        address: SocketAddr,
    ) -> Result<MeshListener, ListenError> {
        match tls {
            Some(_) => MeshListener::bind_anywhere(address).await,
            None => MeshListener::bind(address).await,
        }
    }

    async fn bind_anywhere(address: SocketAddr) -> Result<MeshListener, ListenError> {
        let failed = |error| ListenError::Bind { address, error };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(MeshListener { listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes connections until told to stop.
    pub async fn serve(self, parts: Arc<MeshParts>, mut stop: watch::Receiver<bool>) {
        let lone = Arc::new(Semaphore::new(1));
        let slots = Arc::new(Semaphore::new(LINK_COUNT_MAX));
        loop {
            let accepted = tokio::select! {
                biased;
                _ = stop.wait_for(|stopped| *stopped) => return,
                accepted = async {
                    let slot = slots.clone().acquire_owned().await.map_err(io::Error::other)?;
                    let (stream, _) = self.listener.accept().await?;
                    Ok::<_, io::Error>((stream, slot))
                } => accepted,
            };
            match accepted {
                Ok((stream, slot)) => {
                    let (parts, stop, lone) = (parts.clone(), stop.clone(), lone.clone());
                    rt::spawn(async move {
                        take(&parts, stream, stop, &lone).await;
                        drop(slot);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection of a node could not be accepted");
                    parts.clock.sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

async fn take(parts: &Arc<MeshParts>, stream: TcpStream, mut stop: watch::Receiver<bool>, lone: &Arc<Semaphore>) {
    let late = parts.clock.sleep(Span::from_millis(GREETING_MS));
    let greeting = async {
        let wire = wire::accepted(parts, stream).await?;
        greet(parts, wire).await
    };
    let link = match select(pin!(greeting), late).await {
        Either::Left((Ok(link), _)) => link,
        Either::Left((Err(error), _)) => return not_taken(parts, &error),
        Either::Right(((), _)) => {
            parts.refuse("late");
            return;
        }
    };
    let _alone = if link.facts.roles.has_any(parts.lone) {
        let Ok(alone) = lone.clone().try_acquire_owned() else {
            if parts.refuse("role-taken") {
                tracing::warn!(node = %link.facts.node, "refused: another node with its role is connected");
            }
            return;
        };
        Some(alone)
    } else {
        None
    };
    tracing::info!(node = %link.facts.node, "a node connected");
    let node = link.facts.node.clone();
    let peer = Peer::new(parts.clock.clone());
    let ended = {
        let running = pin!(link::run(parts, &peer, link));
        let stopped = pin!(stop.wait_for(|stopped| *stopped));
        match select(running, stopped).await {
            Either::Left((end, _)) => end.to_string(),
            Either::Right(_) => "this node stops".to_owned(),
        }
    };
    peer.close();
    tracing::info!(%node, reason = ended, "a node's connection ended");
}

#[derive(Debug, thiserror::Error)]
enum GreetError {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("refused: {0}")]
    Refused(#[from] RefusedGreeting),
}

/// Counted each time, told now and then: strangers come as often as they like.
fn not_taken(parts: &MeshParts, error: &GreetError) {
    let code = match error {
        GreetError::Frame(error) => error.code(),
        GreetError::Refused(refused) => &refused.code,
    };
    match (parts.refuse(code), error) {
        (true, GreetError::Refused(refused)) => tracing::warn!(code, why = refused.why, "a connection was refused"),
        _ => tracing::debug!(%error, "connection not taken"),
    }
}

impl From<WireError> for GreetError {
    fn from(error: WireError) -> GreetError {
        match error {
            WireError::Ended(error) => error.into(),
            WireError::Refused(refused) => refused.into(),
        }
    }
}

impl From<io::Error> for GreetError {
    fn from(error: io::Error) -> GreetError {
        GreetError::Frame(error.into())
    }
}

async fn greet(parts: &Arc<MeshParts>, mut wire: Wire) -> Result<Link<Box<dyn Stream>>, GreetError> {
    let stream = &mut wire.stream;
    let first = read_frame(stream, &parts.clock, GREETING_BYTES_MAX).await?;
    let proven = wire.proven.as_ref();
    let judged = judge(parts, first.kind, &first.payload).and_then(|(hello, version)| {
        proven.map_or(Ok(()), |proven| proven.check(&hello.facts, parts.cell()))?;
        Ok((hello, version))
    });
    let (hello, version) = match judged {
        Ok(judged) => judged,
        Err(refused) => return refuse(parts, stream, refused).await,
    };
    let link = draw_u64(&*parts.chance);
    let nonce = draw_holder(&*parts.chance).0.to_be_bytes();
    let proof = |who| proof_of(&wire.secret, who, &hello, (&nonce, link));
    let welcome = Welcome {
        version,
        cell: parts.cell(),
        facts: parts.facts.clone(),
        link,
        nonce,
        proof: proof("listener"),
    };
    say(parts, stream, FrameKind::Welcome, &welcome.encode(), link).await?;
    let answer = read_frame(stream, &parts.clock, GREETING_BYTES_MAX).await?;
    if answer.kind != FrameKind::Prove || !is_proof(&answer.payload, &proof("dialer")) {
        parts.counts.forbidden.add();
        let refused = RefusedGreeting {
            code: "not-proven".to_owned(),
            why: "the other side does not have this cell's secret".to_owned(),
        };
        return Err(refused.into());
    }
    let cell = hello.cell.or(parts.cell()).unwrap_or(0);
    let stamped = |sender| Origin {
        version,
        cell,
        sender,
        link,
    };
    Ok(Link {
        stream: wire.stream,
        ours: stamped(parts.facts.boot),
        theirs: stamped(hello.facts.boot),
        facts: hello.facts,
        is_ours: false,
    })
}

async fn refuse<T>(
    parts: &Arc<MeshParts>,
    stream: &mut Box<dyn Stream>,
    refused: RefusedGreeting,
) -> Result<T, GreetError> {
    say(parts, stream, FrameKind::Refused, &refused.encode(), 0).await?;
    Err(refused.into())
}

async fn say(
    parts: &Arc<MeshParts>,
    stream: &mut Box<dyn Stream>,
    kind: FrameKind,
    payload: &[u8],
    link: u64,
) -> io::Result<()> {
    let origin = Origin {
        version: GREETING,
        cell: parts.cell().unwrap_or(0),
        sender: parts.facts.boot,
        link,
    };
    let mut out = Vec::new();
    write_frame(kind, &origin, 0, payload, &mut out);
    stream.write_all(&out).await?;
    stream.flush().await
}

fn judge(parts: &MeshParts, kind: FrameKind, payload: &[u8]) -> Result<(Hello, u16), RefusedGreeting> {
    let refused = |why: String| RefusedGreeting {
        code: "bad-greeting".to_owned(),
        why,
    };
    if kind != FrameKind::Hello {
        return Err(refused("the first frame of a connection is a greeting".to_owned()));
    }
    let hello = Hello::decode(payload).map_err(|error| refused(error.to_string()))?;
    let version = hello.common_version(&parts.versions)?;
    hello.check_cell(parts.cell())?;
    Ok((hello, version))
}
