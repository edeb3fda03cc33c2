//! What a node posts on the board and what it is answered, as bytes, in both versions.
//!
//! Owns: these messages. Over a connection of the first protocol the first version is spoken: it says no level,
//! which is the first, and has no word for the store's time. Every decode is bounded and must consume everything;
//! golden bytes refuse a change. Must never: know a connection. Next: `board.rs`, `member.rs`.

use fencepost_core::coordinator::board::{BoardView, Hold, Session, ShardReport};
use fencepost_core::ids::Epoch;
use fencepost_core::level::{self, Level};
use fencepost_core::limits::{BOARD_BYTES_MAX, BOARD_NODES_MAX, NODE_ADDRESS_BYTES_MAX, SHARD_COUNT_MAX};
use fencepost_core::name::Name;
use fencepost_core::time::StoreTime;
use fencepost_storage::wire::{In, Out, WireError};

/// Newest version of the messages; an answer has the version of its call.
pub const MESSAGE_VERSION: u8 = 2;
/// Oldest version that this build speaks.
pub const MESSAGE_OLDEST: u8 = 1;

/// A call to the board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoardCall {
    /// This node is there; answered at once when the board is not as it was last seen, else after `wait_ms`.
    Post {
        /// What it says.
        session: Session,
        /// Number of the newest view that it has.
        seen: u64,
        /// Milliseconds.
        wait_ms: u32,
    },
    /// This start of this node holds nothing and is gone.
    Leave {
        /// Who.
        node: Name,
        /// Which start.
        boot: u64,
    },
    /// What time is it in the store? From the second version on.
    Time {
        /// Who asks.
        node: Name,
        /// Which start.
        boot: u64,
    },
}

/// The board's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoardAnswer {
    /// The post counts; the board as it is.
    Taken(BoardView),
    /// A later post came before.
    Old,
    /// Another process of that name has a session.
    NameTaken,
    /// To `Leave`.
    Left,
    /// To `Time`, as the store stated it.
    Stated(StoreTime),
    /// The call cannot be read, or is not known to this build.
    NotUnderstood,
}

impl BoardAnswer {
    /// Why a post was not taken, with the next step.
    pub(super) fn why_not(&self) -> String {
        match self {
            BoardAnswer::NameTaken => {
                "another process of this node's name is there, or was until now: it is waited for; give each process a \
                 --node name (and a certificate) of its own"
            }
            BoardAnswer::NotUnderstood => {
                "the process with the store does not understand this node: see that both are of one version, or upgrade \
                 one version at a time"
            }
            BoardAnswer::Taken(_) | BoardAnswer::Stated(_) | BoardAnswer::Old | BoardAnswer::Left => "a later word of this node was there first",
        }
        .to_owned()
    }
}

impl BoardCall {
    /// As bytes of this version.
    pub fn encode(&self, version: u8) -> Vec<u8> {
        let mut bytes = vec![version];
        let mut out = Out::new(&mut bytes);
        match self {
            BoardCall::Post { session, seen, wait_ms } => {
                put_session(out.put(1_u8), session, version);
                out.put(*seen).put(*wait_ms);
            }
            BoardCall::Leave { node, boot } => {
                out.put(2_u8).name(node).put(*boot);
            }
            BoardCall::Time { node, boot } => {
                out.put(3_u8).name(node).put(*boot);
            }
        }
        bytes
    }

    /// Version of the call that these bytes are, for its answer: the oldest where it is none.
    pub fn version_of(bytes: &[u8]) -> u8 {
        let version = bytes.first().copied().unwrap_or(MESSAGE_OLDEST);
        version.clamp(MESSAGE_OLDEST, MESSAGE_VERSION)
    }

    /// From bytes.
    ///
    /// # Errors
    /// They are not exactly such a call.
    pub fn decode(bytes: &[u8]) -> Result<BoardCall, WireError> {
        let (mut input, version) = start(bytes)?;
        let call = match input.fixed::<1>()?[0] {
            1 => BoardCall::Post {
                session: take_session(&mut input, version)?,
                seen: input.take()?,
                wait_ms: input.take()?,
            },
            2 => BoardCall::Leave {
                node: input.name()?,
                boot: input.take()?,
            },
            3 if version > 1 => BoardCall::Time {
                node: input.name()?,
                boot: input.take()?,
            },
            _ => return Err(WireError::Illegal("kind of call")),
        };
        input.end()?;
        Ok(call)
    }
}

impl BoardAnswer {
    /// As bytes of this version.
    pub fn encode(&self, version: u8) -> Vec<u8> {
        let mut bytes = vec![version];
        let mut out = Out::new(&mut bytes);
        match self {
            BoardAnswer::Taken(view) => {
                out.put(1_u8).put(view.board).put(view.number).put(view.is_young);
                out.span(view.length)
                    .list(&view.sessions, |out, session| put_session(out, session, version));
            }
            BoardAnswer::Old => {
                out.put(2_u8);
            }
            BoardAnswer::NameTaken => {
                out.put(3_u8);
            }
            BoardAnswer::Left => {
                out.put(4_u8);
            }
            BoardAnswer::NotUnderstood => {
                out.put(5_u8);
            }
            BoardAnswer::Stated(time) => {
                out.put(6_u8).time(*time);
            }
        }
        bytes
    }

    /// From bytes.
    ///
    /// # Errors
    /// They are not exactly such an answer.
    pub fn decode(bytes: &[u8]) -> Result<BoardAnswer, WireError> {
        let (mut input, version) = start(bytes)?;
        let answer = match input.fixed::<1>()?[0] {
            1 => BoardAnswer::Taken(BoardView {
                board: input.take()?,
                number: input.take()?,
                is_young: input.flag()?,
                length: input.span()?,
                sessions: input.list(BOARD_NODES_MAX, "sessions", |input| take_session(input, version))?,
            }),
            2 => BoardAnswer::Old,
            3 => BoardAnswer::NameTaken,
            4 => BoardAnswer::Left,
            5 => BoardAnswer::NotUnderstood,
            6 if version > 1 => BoardAnswer::Stated(input.time()?),
            _ => return Err(WireError::Illegal("kind of answer")),
        };
        input.end()?;
        Ok(answer)
    }
}

fn start(bytes: &[u8]) -> Result<(In<'_>, u8), WireError> {
    let mut input = In::new(bytes, BOARD_BYTES_MAX)?;
    match input.fixed::<1>()?[0] {
        version @ MESSAGE_OLDEST..=MESSAGE_VERSION => Ok((input, version)),
        _ => Err(WireError::Illegal("version")),
    }
}

fn put_session(out: &mut Out<'_>, session: &Session, version: u8) {
    out.name(&session.node).put(session.boot).put(session.beat);
    out.put(session.takes);
    out.option(session.coordinates, |out, epoch| {
        out.put(epoch.0);
    });
    out.put(session.decided).list(&session.shards, |out, said| {
        let hold = match said.hold {
            Hold::Idle => 0_u8,
            Hold::Claiming => 1,
            Hold::Held => 2,
            Hold::Leaving => 3,
        };
        out.put(said.version).put(hold).put(said.progress);
    });
    out.text(&session.address);
    if version > 1 {
        out.put(session.level.0);
    }
}

fn take_session(input: &mut In<'_>, version: u8) -> Result<Session, WireError> {
    Ok(Session {
        node: input.name()?,
        boot: input.take()?,
        beat: input.take()?,
        takes: input.flag()?,
        coordinates: input.option(|input| Ok(Epoch(input.take()?)))?,
        decided: input.take()?,
        shards: input.list(usize::from(SHARD_COUNT_MAX), "shards", take_report)?,
        address: input.text(NODE_ADDRESS_BYTES_MAX, "address")?,
        level: if version > 1 {
            Level(input.take()?)
        } else {
            level::FIRST
        },
    })
}

fn take_report(input: &mut In<'_>) -> Result<ShardReport, WireError> {
    Ok(ShardReport {
        version: input.take()?,
        hold: match input.take::<u8>()? {
            0 => Hold::Idle,
            1 => Hold::Claiming,
            2 => Hold::Held,
            3 => Hold::Leaving,
            _ => return Err(WireError::Illegal("hold")),
        },
        progress: input.take()?,
    })
}
