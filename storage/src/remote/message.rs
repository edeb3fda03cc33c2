//! Calls of the Store trait and their answers as bytes, in their first version.
//!
//! Owns: the messages between a node and the node that holds the store. Every decode is bounded and
//! must consume everything. Golden bytes in `storage/golden/` refuse a change. Must never: know a
//! connection. Next: `mod.rs` (the caller), `serve.rs` (the store's side), `../wire.rs`.

use crate::batch::{Batch, RawExpect, RawWrite};
use crate::codec::digest_of;
use crate::store::{Bytes, Commit, Committed, KeyValue, Open, OpenError, Opened, Scan, Stated, StoreError, StoreFacts};
use crate::wire::{In, Out, WireError};
use fencepost_core::ids::{BatchNo, Epoch, Holder, Scope, ShardId};
use fencepost_core::limits::{
    FRAME_BYTES_MAX, KEY_BYTES_MAX, REMOTE_KEYS_MAX, REMOTE_TEXT_BYTES_MAX, REMOTE_WRITES_MAX, ROW_BYTES_MAX,
    SCAN_ROWS_MAX,
};
use std::sync::Arc;

/// Version of the messages that this build writes.
pub const MESSAGE_VERSION: u8 = 1;

/// A call of the Store trait.
#[derive(Clone, Debug)]
pub enum StoreCall {
    /// `Store::open`.
    Open(Open),
    /// `Store::epoch`.
    Epoch(Scope),
    /// `Store::commit`.
    Commit(Commit),
    /// `Store::check`.
    Check(Scope, Holder, Epoch),
    /// `Store::get_within`: keys, and the bytes after which the answer ends.
    Get(Vec<Vec<u8>>, usize),
    /// `Store::scan`.
    Scan(Scan),
    /// `Store::now`.
    Now(Scope),
    /// `Store::describe`.
    Facts,
    /// `Store::confirm_clock`.
    ConfirmClock,
}

/// What the store's side answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreAnswer {
    /// To `Open`.
    Opened(Result<Opened, OpenError>),
    /// To `Epoch`.
    Epoch(Epoch),
    /// To `Commit`.
    Committed(Committed),
    /// To `Check`.
    Checked(bool),
    /// To `Get`: values of the first of the keys.
    Values(Vec<Option<Bytes>>),
    /// To `Scan`: rows, and whether the range holds no further one.
    Rows(Vec<KeyValue>, bool),
    /// To `Now`.
    Stated(Stated),
    /// To `Facts`: also the number of the cell that a new cell in this store gets.
    Facts(StoreFacts, u128),
    /// To any but `Open` and `Commit`: try again.
    Unavailable(String),
    /// The call could not be read, or is of a kind that this build does not know.
    NotUnderstood(String),
    /// To `ConfirmClock`: whether there was doubt.
    ClockConfirmed(bool),
}

/// An answer, and whether the store has room for new work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// `Store::is_full`.
    pub is_full: bool,
    /// The answer.
    pub answer: StoreAnswer,
}

impl StoreCall {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![MESSAGE_VERSION];
        let mut out = Out::new(&mut bytes);
        match self {
            StoreCall::Open(open) => {
                put_scope(out.put(1_u8), open.scope);
                out.put(open.holder.0).put(open.expected.0).name(&open.node);
            }
            StoreCall::Epoch(scope) => {
                put_scope(out.put(2_u8), *scope);
            }
            StoreCall::Commit(commit) => put_commit(out.put(3_u8), commit),
            StoreCall::Check(scope, holder, epoch) => {
                put_scope(out.put(4_u8), *scope);
                out.put(holder.0).put(epoch.0);
            }
            StoreCall::Get(keys, most) => {
                out.put(5_u8).put(*most as u64).list(keys, |out, key| {
                    out.bytes(key);
                });
            }
            StoreCall::Scan(scan) => {
                out.put(6_u8).bytes(&scan.from).bytes(&scan.to);
                out.put(scan.limit as u64).put(scan.bytes as u64).put(scan.backwards);
            }
            StoreCall::Now(scope) => {
                put_scope(out.put(7_u8), *scope);
            }
            StoreCall::Facts => {
                out.put(8_u8);
            }
            StoreCall::ConfirmClock => {
                out.put(9_u8);
            }
        }
        bytes
    }

    /// From bytes; the digest of a batch is computed anew and compared.
    pub fn decode(bytes: &[u8]) -> Result<StoreCall, WireError> {
        let mut input = start(bytes)?;
        let call = match input.fixed::<1>()?[0] {
            1 => StoreCall::Open(Open {
                scope: take_scope(&mut input)?,
                holder: Holder(input.take()?),
                expected: Epoch(input.take()?),
                node: input.name()?,
            }),
            2 => StoreCall::Epoch(take_scope(&mut input)?),
            3 => StoreCall::Commit(take_commit(&mut input)?),
            4 => StoreCall::Check(take_scope(&mut input)?, Holder(input.take()?), Epoch(input.take()?)),
            5 => {
                let most = take_size(&mut input)?;
                let keys = input.list(REMOTE_KEYS_MAX, "keys", take_key)?;
                StoreCall::Get(keys, most)
            }
            6 => StoreCall::Scan(Scan {
                from: take_key(&mut input)?,
                to: take_key(&mut input)?,
                limit: take_size(&mut input)?,
                bytes: take_size(&mut input)?,
                backwards: input.flag()?,
            }),
            7 => StoreCall::Now(take_scope(&mut input)?),
            8 => StoreCall::Facts,
            9 => StoreCall::ConfirmClock,
            _ => return Err(WireError::Illegal("kind of call")),
        };
        input.end()?;
        Ok(call)
    }
}

impl Answered {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![MESSAGE_VERSION];
        let mut out = Out::new(&mut bytes);
        out.put(self.is_full);
        match &self.answer {
            StoreAnswer::Opened(opened) => put_opened(out.put(1_u8), opened),
            StoreAnswer::Epoch(epoch) => {
                out.put(2_u8).put(epoch.0);
            }
            StoreAnswer::Committed(committed) => put_committed(out.put(3_u8), committed),
            StoreAnswer::Checked(holds) => {
                out.put(4_u8).put(*holds);
            }
            StoreAnswer::Values(values) => {
                out.put(5_u8).list(values, |out, value| {
                    out.option(value.as_deref(), |out, value| {
                        out.bytes(value);
                    });
                });
            }
            StoreAnswer::Rows(rows, is_end) => {
                out.put(6_u8).put(*is_end).list(rows, |out, (key, value)| {
                    out.bytes(key).bytes(value);
                });
            }
            StoreAnswer::Stated(stated) => put_stated(out.put(7_u8), stated),
            StoreAnswer::Facts(facts, cell) => {
                out.put(8_u8).put(*cell).text(&facts.engine).put(facts.high_water);
                out.text(&facts.chain).option(facts.folder.as_deref(), |out, folder| {
                    out.text(folder);
                });
            }
            StoreAnswer::Unavailable(why) => put_text(out.put(9_u8), why),
            StoreAnswer::NotUnderstood(why) => put_text(out.put(10_u8), why),
            StoreAnswer::ClockConfirmed(was_in_doubt) => {
                out.put(11_u8).put(*was_in_doubt);
            }
        }
        bytes
    }

    /// From bytes.
    pub fn decode(bytes: &[u8]) -> Result<Answered, WireError> {
        let mut input = start(bytes)?;
        let is_full = input.flag()?;
        let answer = match input.fixed::<1>()?[0] {
            1 => StoreAnswer::Opened(take_opened(&mut input)?),
            2 => StoreAnswer::Epoch(Epoch(input.take()?)),
            3 => StoreAnswer::Committed(take_committed(&mut input)?),
            4 => StoreAnswer::Checked(input.flag()?),
            5 => StoreAnswer::Values(input.list(REMOTE_KEYS_MAX, "values", |input| {
                input.option(|input| input.bytes(ROW_BYTES_MAX, "value"))
            })?),
            6 => {
                let is_end = input.flag()?;
                let rows = input.list(SCAN_ROWS_MAX, "rows", |input| {
                    let key = input.bytes(KEY_BYTES_MAX, "key")?;
                    Ok::<_, WireError>((key, input.bytes(ROW_BYTES_MAX, "value")?))
                })?;
                StoreAnswer::Rows(rows, is_end)
            }
            7 => StoreAnswer::Stated(take_stated(&mut input)?),
            8 => take_facts(&mut input)?,
            9 => StoreAnswer::Unavailable(take_text(&mut input)?),
            10 => StoreAnswer::NotUnderstood(take_text(&mut input)?),
            11 => StoreAnswer::ClockConfirmed(input.flag()?),
            _ => return Err(WireError::Illegal("kind of answer")),
        };
        input.end()?;
        Ok(Answered { is_full, answer })
    }
}

fn start(bytes: &[u8]) -> Result<In<'_>, WireError> {
    let mut input = In::new(bytes, FRAME_BYTES_MAX)?;
    match input.fixed::<1>()?[0] {
        MESSAGE_VERSION => Ok(input),
        _ => Err(WireError::Illegal("version")),
    }
}

fn put_scope(out: &mut Out<'_>, scope: Scope) {
    match scope {
        Scope::Coordinator => out.put(0_u8),
        Scope::Shard(shard) => out.put(1_u8).put(shard.0),
    };
}

fn take_scope(input: &mut In<'_>) -> Result<Scope, WireError> {
    match input.fixed::<1>()?[0] {
        0 => Ok(Scope::Coordinator),
        1 => Ok(Scope::Shard(ShardId(input.take()?))),
        _ => Err(WireError::Illegal("scope")),
    }
}

fn take_size(input: &mut In<'_>) -> Result<usize, WireError> {
    let size: u64 = input.take()?;
    Ok(usize::try_from(size).unwrap_or(usize::MAX))
}

/// Of a read; a bound of a scan may be longer than any row's key.
fn take_key(input: &mut In<'_>) -> Result<Vec<u8>, WireError> {
    let key: &[u8] = input.take()?;
    if key.len() > 2 * KEY_BYTES_MAX {
        return Err(WireError::Illegal("key"));
    }
    Ok(key.to_vec())
}

/// Cut to what may be sent, at a character's edge.
fn put_text(out: &mut Out<'_>, text: &str) {
    let mut end = text.len().min(REMOTE_TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    out.text(text.get(..end).unwrap_or_default());
}

fn take_text(input: &mut In<'_>) -> Result<String, WireError> {
    input.string(REMOTE_TEXT_BYTES_MAX, "text")
}

fn put_commit(out: &mut Out<'_>, commit: &Commit) {
    put_scope(out, commit.scope);
    out.put(commit.holder.0).put(commit.epoch.0).put(commit.number.0);
    out.put(commit.batch.creates).put(commit.batch.digest);
    out.list(&commit.batch.writes, |out, write| match write {
        RawWrite::Delete { key } => {
            out.put(0_u8).bytes(key);
        }
        RawWrite::Put { key, value, expect } => {
            match expect {
                RawExpect::Any => out.put(1_u8),
                RawExpect::Absent => out.put(2_u8),
                RawExpect::Version(version) => out.put(3_u8).put(*version),
            };
            out.bytes(key).bytes(value);
        }
    });
}

fn take_commit(input: &mut In<'_>) -> Result<Commit, WireError> {
    let scope = take_scope(input)?;
    let (holder, epoch) = (Holder(input.take()?), Epoch(input.take()?));
    let number = BatchNo(input.take()?);
    let creates = input.flag()?;
    let sent: [u8; 32] = input.fixed()?;
    let writes = input.list(REMOTE_WRITES_MAX, "writes", take_write)?;
    let (digest, bytes) = digest_of(&writes);
    if digest != sent {
        return Err(WireError::Illegal("digest of the batch"));
    }
    let batch = Arc::new(Batch {
        writes,
        digest,
        bytes,
        creates,
    });
    Ok(Commit {
        scope,
        holder,
        epoch,
        number,
        batch,
    })
}

/// Too long a key is refused by the store's own rules, as a conflict.
fn take_write(input: &mut In<'_>) -> Result<RawWrite, WireError> {
    let expect = match input.fixed::<1>()?[0] {
        0 => {
            let key = input.bytes(ROW_BYTES_MAX, "key")?;
            return Ok(RawWrite::Delete { key });
        }
        1 => RawExpect::Any,
        2 => RawExpect::Absent,
        3 => RawExpect::Version(input.take()?),
        _ => return Err(WireError::Illegal("kind of write")),
    };
    Ok(RawWrite::Put {
        key: input.bytes(ROW_BYTES_MAX, "key")?,
        value: input.bytes(ROW_BYTES_MAX, "value")?,
        expect,
    })
}

fn put_stated(out: &mut Out<'_>, stated: &Stated) {
    out.time(stated.time).put(stated.doubt);
}

fn take_stated(input: &mut In<'_>) -> Result<Stated, WireError> {
    Ok(Stated {
        time: input.time()?,
        doubt: input.flag()?,
    })
}

fn put_opened(out: &mut Out<'_>, opened: &Result<Opened, OpenError>) {
    match opened {
        Ok(opened) => {
            out.put(0_u8).put(opened.epoch.0).time(opened.at);
        }
        Err(OpenError::Moved { current }) => {
            out.put(1_u8).put(current.0);
        }
        Err(OpenError::NotAssigned) => {
            out.put(2_u8);
        }
        // A broken store ends its own process; to others it is away.
        Err(OpenError::Store(StoreError::Unavailable(why) | StoreError::Broken(why))) => put_text(out.put(3_u8), why),
    }
}

fn take_opened(input: &mut In<'_>) -> Result<Result<Opened, OpenError>, WireError> {
    Ok(match input.fixed::<1>()?[0] {
        0 => Ok(Opened {
            epoch: Epoch(input.take()?),
            at: input.time()?,
        }),
        1 => Err(OpenError::Moved {
            current: Epoch(input.take()?),
        }),
        2 => Err(OpenError::NotAssigned),
        3 => Err(StoreError::Unavailable(take_text(input)?).into()),
        _ => return Err(WireError::Illegal("what became of an open")),
    })
}

fn put_committed(out: &mut Out<'_>, committed: &Committed) {
    match committed {
        Committed::Committed(stated) => put_stated(out.put(0_u8), stated),
        Committed::Already(stated) => put_stated(out.put(1_u8), stated),
        Committed::Conflict(what) => put_text(out.put(2_u8), what),
        Committed::Stale => {
            out.put(3_u8);
        }
        Committed::Full => {
            out.put(4_u8);
        }
        Committed::Unavailable(why) => put_text(out.put(5_u8), why),
        Committed::Unknown(why) => put_text(out.put(6_u8), why),
    }
}

fn take_committed(input: &mut In<'_>) -> Result<Committed, WireError> {
    Ok(match input.fixed::<1>()?[0] {
        0 => Committed::Committed(take_stated(input)?),
        1 => Committed::Already(take_stated(input)?),
        2 => Committed::Conflict(take_text(input)?),
        3 => Committed::Stale,
        4 => Committed::Full,
        5 => Committed::Unavailable(take_text(input)?),
        6 => Committed::Unknown(take_text(input)?),
        _ => return Err(WireError::Illegal("what became of a batch")),
    })
}

fn take_facts(input: &mut In<'_>) -> Result<StoreAnswer, WireError> {
    let cell = input.take()?;
    let engine = take_text(input)?;
    let high_water = input.take()?;
    let chain = take_text(input)?;
    let folder = input.option(take_text)?;
    let facts = StoreFacts {
        engine,
        folder,
        high_water,
        chain,
    };
    Ok(StoreAnswer::Facts(facts, cell))
}
