//! The stream of a connection, and what it proves about the other side before a word is said.
//!
//! Owns: the choice between a plain stream, for loopback and the simulated world, and one under certificates.
//! Must never: fall back from one to the other. Next: `tls/`, `dial.rs`, `listen.rs`.

use crate::mesh::greeting::RefusedGreeting;
use crate::mesh::identity::Identity;
use crate::mesh::{MeshParts, MeshSecret};
use crate::net::Stream;
use std::io;
use tokio::net::TcpStream;

/// A stream that is fit for a greeting.
pub(super) struct Wire {
    pub(super) stream: Box<dyn Stream>,
    /// What both sides prove to know: the cell's secret, or what only the two ends of this stream can.
    pub(super) secret: MeshSecret,
    /// What the other side's certificate says, where there is one.
    pub(super) proven: Option<Identity>,
}

/// Why a stream is not fit.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    #[error("the connection ended: {}", crate::problem::plain(.0))]
    Ended(#[from] io::Error),
    #[error("{0}")]
    Refused(#[from] RefusedGreeting),
}

fn plain(parts: &MeshParts, stream: TcpStream) -> Wire {
    Wire {
        #[cfg(madsim)]
        stream: crate::net::seam::wrap(stream),
        #[cfg(not(madsim))]
        stream: Box::new(stream),
        secret: parts.secret.clone(),
        proven: None,
    }
}

/// As a dialer.
pub(super) async fn dialed(parts: &MeshParts, stream: TcpStream) -> Result<Wire, WireError> {
    let _ = stream.set_nodelay(true);
    #[cfg(not(madsim))]
    if let Some(tls) = &parts.tls {
        return tls.dialed(stream).await;
    }
    Ok(plain(parts, stream))
}

/// As a listener. Whoever comes with the other kind of stream is told so, in its own kind.
pub(super) async fn accepted(parts: &MeshParts, stream: TcpStream) -> Result<Wire, WireError> {
    let _ = stream.set_nodelay(true);
    #[cfg(not(madsim))]
    return secured::accepted(parts, stream).await;
    #[cfg(madsim)]
    Ok(plain(parts, stream))
}

/// What the other side said before it hung up, where it says so by TLS: under version 1.3 a dialer hears only after
/// its own last word that it was refused.
pub(super) fn told_by(error: &io::Error) -> Option<RefusedGreeting> {
    #[cfg(not(madsim))]
    return crate::mesh::tls::refusal::told_by(error);
    #[cfg(madsim)]
    {
        let _ = error;
        None
    }
}

#[cfg(not(madsim))]
pub(super) use secured::linger;

#[cfg(not(madsim))]
mod secured {
    use super::{Wire, WireError, plain};
    use crate::mesh::MeshParts;
    use crate::mesh::frame::{FrameKind, GREETING, Origin, write_frame};
    use crate::mesh::greeting::RefusedGreeting;
    use fencepost_core::limits::REFUSED_LINGER_BYTES_MAX;
    use std::io;
    use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    /// First byte of a TLS handshake; a frame begins with its length, which is never that large.
    const HANDSHAKE: u8 = 0x16;

    pub(super) async fn accepted(parts: &MeshParts, mut stream: TcpStream) -> Result<Wire, WireError> {
        let mut first = [0];
        if stream.peek(&mut first).await? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let refused = match (&parts.tls, first == [HANDSHAKE]) {
            (Some(tls), true) => return tls.accepted(stream).await,
            (None, false) => return Ok(plain(parts, stream)),
            (Some(_), false) => RefusedGreeting::new(
                "tls-required",
                "this node takes connections with certificates only: start the other one with --mesh-ca, --mesh-cert \
                 and --mesh-key",
            ),
            (None, true) => RefusedGreeting::new(
                "tls-not-served",
                "this node has no certificate, and the other one speaks TLS: start both with certificates or both \
                 without",
            ),
        };
        let origin = Origin {
            version: GREETING,
            cell: 0,
            sender: parts.facts.boot,
            link: 0,
        };
        let mut out = Vec::new();
        write_frame(FrameKind::Refused, &origin, 0, &refused.encode(), &mut out);
        stream.write_all(&out).await?;
        linger(&mut stream).await;
        Err(refused.into())
    }

    /// Ends a stream so that what was written is read at the other end: unread bytes would reset it.
    pub async fn linger(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
        if stream.shutdown().await.is_ok() {
            let mut rest = stream.take(REFUSED_LINGER_BYTES_MAX);
            let _ = tokio::io::copy(&mut rest, &mut tokio::io::sink()).await;
        }
    }
}
