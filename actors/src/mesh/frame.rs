//! Frames: what travels on a connection between two nodes.
//!
//! Owns: the head (length, magic, version, kind, cell, sender, link, sequence, checksum), its limits,
//! and reading a frame without believing its length. Must never: allocate what has not arrived, or
//! know what a payload means. Next: `greeting.rs`, `envelope.rs`, `link.rs`.

use crate::clock::SharedClock;
use crate::problem::plain;
use fencepost_core::level;
use fencepost_core::limits::{FRAME_MS_MAX, LINK_SILENT_MS};
use fencepost_core::time::Span;
use futures_util::future::{Either, select};
use std::io;
use std::pin::pin;
use tokio::io::{AsyncRead, AsyncReadExt};

/// First bytes of every frame after its length.
pub const MAGIC: [u8; 4] = *b"FNCP";
/// Newest version of the frames and of what is in them; the same number as the level of rows.
pub const PROTOCOL: u16 = level::NEWEST.0;
/// Oldest version that this build understands.
pub const PROTOCOL_OLDEST: u16 = level::OLDEST.0;
/// Version of greetings, for ever: they agree on the version of what follows.
pub const GREETING: u16 = 1;
/// Bytes of a frame's head, its length included.
pub const HEAD_BYTES: usize = 56;

/// Bytes that are asked of the connection at once.
const STEP: usize = 64 << 10;

/// What a frame is for. Kinds of later builds are read as `Other`, refused and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// The dialer says who it is.
    Hello,
    /// The listener takes it.
    Welcome,
    /// The listener does not.
    Refused,
    /// A call.
    Request,
    /// Its answer.
    Answer,
    /// A message without an answer.
    Tell,
    /// Shows that the sender is there.
    Ping,
    /// The dialer shows that it has the cell's secret.
    Prove,
    /// Not known to this build.
    Other(u8),
}

impl FrameKind {
    fn byte(self) -> u8 {
        match self {
            FrameKind::Hello => 1,
            FrameKind::Welcome => 2,
            FrameKind::Refused => 3,
            FrameKind::Request => 4,
            FrameKind::Answer => 5,
            FrameKind::Tell => 6,
            FrameKind::Ping => 7,
            FrameKind::Prove => 8,
            FrameKind::Other(byte) => byte,
        }
    }

    fn of(byte: u8) -> FrameKind {
        match byte {
            1 => FrameKind::Hello,
            2 => FrameKind::Welcome,
            3 => FrameKind::Refused,
            4 => FrameKind::Request,
            5 => FrameKind::Answer,
            6 => FrameKind::Tell,
            7 => FrameKind::Ping,
            8 => FrameKind::Prove,
            other => FrameKind::Other(other),
        }
    }
}

/// Where a frame belongs. All of it is checked on each frame: one of another connection, replayed or
/// sent by another process, changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Version of the protocol: `GREETING` in a greeting, then the one agreed on.
    pub version: u16,
    /// The cell; zero while the sender does not know it.
    pub cell: u128,
    /// Nonce of the sending process.
    pub sender: u64,
    /// Number of the connection, drawn by the listener; zero before it has said so.
    pub link: u64,
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is for.
    pub kind: FrameKind,
    /// Where it belongs.
    pub origin: Origin,
    /// Counted from 1 in each direction of a link; zero for greetings.
    pub sequence: u64,
    /// What it carries.
    pub payload: Vec<u8>,
}

/// Why no frame could be read. The connection is closed.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The connection ended or broke. Never evidence that the other node is dead.
    #[error("the connection ended: {}", plain(.0))]
    Ended(#[from] io::Error),
    /// Nothing came for too long, or a frame took too long.
    #[error("the other side fell silent")]
    Silent,
    /// Not this protocol.
    #[error("these are no frames of this protocol")]
    NotOurs,
    /// Longer than a frame may be.
    #[error("a frame of {0} bytes is longer than a frame may be")]
    TooLong(u64),
    /// Another version of the protocol.
    #[error("the frame has protocol version {0}, this build understands {PROTOCOL_OLDEST} to {PROTOCOL}")]
    Version(u16),
    /// Damaged on the way.
    #[error("the frame's checksum is wrong")]
    Checksum,
}

impl FrameError {
    /// A stable word for it.
    pub fn code(&self) -> &'static str {
        match self {
            FrameError::Ended(_) => "ended",
            FrameError::Silent => "late",
            FrameError::Version(_) => "protocol-version",
            FrameError::NotOurs | FrameError::TooLong(_) | FrameError::Checksum => "unreadable",
        }
    }
}

/// Appends a frame to `out`.
pub fn write_frame(kind: FrameKind, origin: &Origin, sequence: u64, payload: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let length = u32::try_from(HEAD_BYTES - 4 + payload.len()).expect("payloads are bounded far below");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&origin.version.to_be_bytes());
    out.extend_from_slice(&[kind.byte(), 0]);
    out.extend_from_slice(&origin.cell.to_be_bytes());
    out.extend_from_slice(&origin.sender.to_be_bytes());
    out.extend_from_slice(&origin.link.to_be_bytes());
    out.extend_from_slice(&sequence.to_be_bytes());
    let head = out.get(start..).unwrap_or_default();
    let checksum = checksum_of(head, payload);
    out.extend_from_slice(&checksum.to_be_bytes());
    out.extend_from_slice(payload);
}

fn checksum_of(head: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    hasher.update(payload);
    hasher.finalize()
}

/// Fields of a head, in order.
struct Head {
    length: u32,
    kind: FrameKind,
    origin: Origin,
    sequence: u64,
    checksum: u32,
}

fn parse_head(head: &[u8; HEAD_BYTES]) -> Option<Head> {
    let (length, rest) = head.split_first_chunk::<4>()?;
    let (magic, rest) = rest.split_first_chunk::<4>()?;
    let (version, rest) = rest.split_first_chunk::<2>()?;
    let ([kind, reserved], rest) = rest.split_first_chunk::<2>()?;
    let (cell, rest) = rest.split_first_chunk::<16>()?;
    let (sender, rest) = rest.split_first_chunk::<8>()?;
    let (link, rest) = rest.split_first_chunk::<8>()?;
    let (sequence, rest) = rest.split_first_chunk::<8>()?;
    let (checksum, _) = rest.split_first_chunk::<4>()?;
    if *magic != MAGIC || *reserved != 0 {
        return None;
    }
    Some(Head {
        length: u32::from_be_bytes(*length),
        kind: FrameKind::of(*kind),
        origin: Origin {
            version: u16::from_be_bytes(*version),
            cell: u128::from_be_bytes(*cell),
            sender: u64::from_be_bytes(*sender),
            link: u64::from_be_bytes(*link),
        },
        sequence: u64::from_be_bytes(*sequence),
        checksum: u32::from_be_bytes(*checksum),
    })
}

/// Reads the next frame, of at most `max` bytes of payload.
pub async fn read_frame<R: AsyncRead + Unpin>(
    stream: &mut R,
    clock: &SharedClock,
    max: usize,
) -> Result<Frame, FrameError> {
    let mut head = [0; HEAD_BYTES];
    // Between frames the other side may be silent as long as its pings come.
    within(clock, LINK_SILENT_MS, stream.read_exact(&mut head)).await?;
    let parsed = parse_head(&head).ok_or(FrameError::NotOurs)?;
    let length = u64::from(parsed.length);
    let payload_length = length.checked_sub(HEAD_BYTES as u64 - 4).ok_or(FrameError::NotOurs)?;
    let payload_length = usize::try_from(payload_length).unwrap_or(usize::MAX);
    if payload_length > max {
        return Err(FrameError::TooLong(length));
    }
    let version = parsed.origin.version;
    if version != GREETING && !(PROTOCOL_OLDEST..=PROTOCOL).contains(&version) {
        return Err(FrameError::Version(version));
    }
    let payload = within(clock, FRAME_MS_MAX, read_payload(stream, clock, payload_length)).await?;
    if checksum_of(head.get(..HEAD_BYTES - 4).unwrap_or_default(), &payload) != parsed.checksum {
        return Err(FrameError::Checksum);
    }
    Ok(Frame {
        kind: parsed.kind,
        origin: parsed.origin,
        sequence: parsed.sequence,
        payload,
    })
}

/// Grows with what arrives: a length costs nothing before its bytes are there.
async fn read_payload<R: AsyncRead + Unpin>(
    stream: &mut R,
    clock: &SharedClock,
    length: usize,
) -> Result<Vec<u8>, FrameError> {
    let mut payload = Vec::with_capacity(length.min(STEP));
    while payload.len() < length {
        let missing = (length - payload.len()).min(STEP);
        let step = stream.take(missing as u64);
        let read = within(clock, LINK_SILENT_MS, pin!(step).read_buf(&mut payload)).await?;
        if read == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
    }
    Ok(payload)
}

async fn within<T, E: Into<FrameError>>(
    clock: &SharedClock,
    millis: u64,
    reading: impl Future<Output = Result<T, E>>,
) -> Result<T, FrameError> {
    match select(pin!(reading), clock.sleep(Span::from_millis(millis))).await {
        Either::Left((read, _)) => read.map_err(Into::into),
        Either::Right(((), _)) => Err(FrameError::Silent),
    }
}
