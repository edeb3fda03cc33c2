//! Rows and batches to bytes, once, on the caller's thread.
//!
//! Owns: the batch's digest (over all writes and conditions, so that a batch sent again can be told
//! from another one). Must never: write an oversize row. Next: `batch.rs`, `wire.rs`.

use super::{
    CELL_ROW_VERSION, CURSOR_ROW_VERSION, JOB_ROW_VERSION, ROW_VERSION, fate_row, job_row, schedule_row, small_rows,
};
use crate::batch::{Batch, RawExpect, RawWrite};
use crate::keys::{Kind, write_key};
use crate::store::Bytes;
use crate::wire::Out;
use fencepost_core::level;
use fencepost_core::limits::ROW_BYTES_MAX;
use fencepost_core::machine::{Expect, Write};
use fencepost_core::row::Row;

/// A row that no store takes: a machine let something grow beyond its limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a row of kind {kind:?} has {bytes} bytes, more than the {ROW_BYTES_MAX} a row may have")]
pub struct EncodeError {
    /// Which kind.
    pub kind: Kind,
    /// How long it would be.
    pub bytes: usize,
}

/// The first format, but for what that has no place for.
fn version_for(row: &Row) -> u8 {
    match row {
        Row::Job(job) if job.key_kept.is_some() => JOB_ROW_VERSION,
        Row::Cell(cell) if cell.level > level::FIRST => CELL_ROW_VERSION,
        Row::Cursor(cursor) if !cursor.dropped.is_empty() => CURSOR_ROW_VERSION,
        Row::Job(_)
        | Row::Cell(_)
        | Row::Cursor(_)
        | Row::Assignment(_)
        | Row::Definition(_)
        | Row::Backlog(_)
        | Row::Fate(_)
        | Row::Edit(_)
        | Row::Wait(_)
        | Row::Ready(_)
        | Row::Leased(_)
        | Row::Parked(_)
        | Row::Key(_)
        | Row::DeadLetter(_)
        | Row::Attempts(_)
        | Row::Mark(_)
        | Row::Quarantine(_)
        | Row::Request(_) => ROW_VERSION,
    }
}

/// Appends the value of a row: version byte, then fields.
pub fn encode_row(row: &Row, out: &mut Vec<u8>) {
    out.push(version_for(row));
    if let Row::Job(job) = row {
        out.extend_from_slice(&job.version.to_be_bytes());
    }
    let mut fields = Out::new(out);
    match row {
        Row::Cell(row) => small_rows::put_cell(row, &mut fields),
        Row::Assignment(row) => small_rows::put_assignment(row, &mut fields),
        Row::Definition(row) => schedule_row::put_definition(row, &mut fields),
        Row::Cursor(row) => schedule_row::put_cursor(row, &mut fields),
        Row::Backlog(row) => schedule_row::put_backlog(row, &mut fields),
        Row::Fate(row) => fate_row::put_fate(row, &mut fields),
        Row::Edit(row) => schedule_row::put_edit(row, &mut fields),
        Row::Job(row) => job_row::put_job(row, &mut fields),
        Row::Wait(row) => small_rows::put_wait(row, &mut fields),
        Row::Ready(_) => {}
        Row::Leased(row) => small_rows::put_leased(row, &mut fields),
        Row::Parked(row) => small_rows::put_parked(row, &mut fields),
        Row::Key(row) => small_rows::put_key(row, &mut fields),
        Row::DeadLetter(row) => small_rows::put_dead_letter(row, &mut fields),
        Row::Attempts(row) => job_row::put_attempts(row, &mut fields),
        Row::Mark(row) => small_rows::put_mark(row, &mut fields),
        Row::Quarantine(row) => small_rows::put_quarantine(row, &mut fields),
        Row::Request(row) => schedule_row::put_request(row, &mut fields),
    }
}

/// All writes of a batch, in order. `creates`: it makes new work, so a full disk may refuse it.
pub fn encode_batch(writes: &[Write], creates: bool) -> Result<Batch, EncodeError> {
    let mut raw = Vec::with_capacity(writes.len());
    let mut scratch = Vec::with_capacity(512);
    let mut digest = Digest::new();
    let mut bytes = 0;
    for write in writes {
        let write = encode_write(write, &mut scratch)?;
        bytes += digest.add(&write);
        raw.push(write);
    }
    Ok(Batch {
        writes: raw,
        digest: digest.finish(),
        bytes,
        creates,
    })
}

fn encode_write(write: &Write, scratch: &mut Vec<u8>) -> Result<RawWrite, EncodeError> {
    scratch.clear();
    match write {
        Write::Delete(key) => {
            write_key(key, scratch);
            Ok(RawWrite::Delete {
                key: Bytes::from(scratch.as_slice()),
            })
        }
        Write::Put { row, expect } => {
            let name = row.key();
            write_key(&name, scratch);
            let key = Bytes::from(scratch.as_slice());
            scratch.clear();
            encode_row(row, scratch);
            if scratch.len() > ROW_BYTES_MAX {
                return Err(EncodeError {
                    kind: Kind::of_row(&name),
                    bytes: scratch.len(),
                });
            }
            Ok(RawWrite::Put {
                key,
                value: Bytes::from(scratch.as_slice()),
                expect: match expect {
                    Expect::Any => RawExpect::Any,
                    Expect::Absent => RawExpect::Absent,
                    Expect::Version(version) => RawExpect::Version(*version),
                },
            })
        }
    }
}

/// The running digest of a batch: each part length-prefixed, gathered in pages for the hash's speed.
struct Digest {
    hasher: blake3::Hasher,
    page: Vec<u8>,
}

const PAGE: usize = 16 << 10;

impl Digest {
    fn new() -> Digest {
        Digest {
            hasher: blake3::Hasher::new(),
            page: Vec::with_capacity(PAGE),
        }
    }

    /// Adds a write; the bytes of its key and value.
    fn add(&mut self, write: &RawWrite) -> usize {
        match write {
            RawWrite::Delete { key } => {
                self.page.push(0);
                self.part(key);
                key.len()
            }
            RawWrite::Put { key, value, expect } => {
                match expect {
                    RawExpect::Any => self.page.push(1),
                    RawExpect::Absent => self.page.push(2),
                    RawExpect::Version(version) => {
                        self.page.push(3);
                        self.page.extend_from_slice(&version.to_be_bytes());
                    }
                }
                self.part(key);
                self.part(value);
                key.len() + value.len()
            }
        }
    }

    fn part(&mut self, part: &[u8]) {
        self.page.extend_from_slice(&(part.len() as u64).to_be_bytes());
        self.page.extend_from_slice(part);
        if self.page.len() >= PAGE {
            self.hasher.update(&self.page);
            self.page.clear();
        }
    }

    fn finish(mut self) -> [u8; 32] {
        self.hasher.update(&self.page);
        *self.hasher.finalize().as_bytes()
    }
}

/// Digest and bytes of raw writes, as `encode_batch` makes them: who takes a batch from the network
/// computes them anew.
pub fn digest_of(writes: &[RawWrite]) -> ([u8; 32], usize) {
    let mut digest = Digest::new();
    let bytes = writes.iter().map(|write| digest.add(write)).sum();
    (digest.finish(), bytes)
}
