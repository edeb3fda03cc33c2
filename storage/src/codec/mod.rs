//! Rows as bytes: a version byte, then the fields of that version in their order, for ever.
//!
//! Owns: the versioned mirror of every row kind (`*_row.rs`, one function pair each), the byte limit
//! and the check that everything was consumed. What the key says is not said again in the value.
//! Defaults that are left out are constants of the version, not of `limits`: changing a default
//! changes no stored byte. Golden bytes in `storage/golden/` refuse a change.
//! Must never: panic on any bytes (F9). Next: `../wire.rs`, `job_row.rs`, `golden.rs`.

#[cfg(test)]
pub(crate) mod arbitrary;
mod encode;
mod fate_row;
#[cfg(test)]
mod golden;
mod job_row;
#[cfg(test)]
pub(crate) mod samples;
mod schedule_row;
mod scope_row;
mod small_rows;
mod spec;
#[cfg(test)]
mod tests;

pub use encode::{EncodeError, digest_of, encode_batch, encode_row};
pub use job_row::{state_number, state_of};
pub use scope_row::{decode_scope, encode_scope};

use crate::keys::{KeyError, Kind, parse_key};
use crate::wire::{In, Out, WireError};
use fencepost_core::job::JobSpec;
use fencepost_core::level::{self, Level};
use fencepost_core::limits::ROW_BYTES_MAX;
use fencepost_core::row::{Row, RowKey};

/// Appends what a job is to do, as it stands in rows of this version: for messages between nodes.
pub fn put_job_spec(spec: &JobSpec, out: &mut Out<'_>) {
    spec::put_spec(spec, out);
}

/// Takes it off again.
///
/// # Errors
/// It is not one.
pub fn take_job_spec(input: &mut In<'_>) -> Result<JobSpec, RowError> {
    spec::take_spec(input)
}

/// Format of the row values that this version writes.
pub const ROW_VERSION: u8 = 1;
/// Format of a job's row that says how long its key is kept: the first one, and that behind it.
pub const JOB_ROW_VERSION: u8 = 2;
/// Format of a cell's row that says its level: the first one, and that behind it. Written from level 2 on.
pub const CELL_ROW_VERSION: u8 = 2;
/// Format of a schedule's cursor row that says what edits dropped ahead of its time: the first one, and that behind it.
pub const CURSOR_ROW_VERSION: u8 = 2;

/// Why bytes are no row. Local to the row: it is quarantined with this reason (F9).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// The key names no row.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A later version wrote it.
    #[error("the row has format {0}, newer than this version knows; start the version that wrote it")]
    Newer(u8),
    /// The cell was raised to a level that this version does not know.
    #[error("the cell is at level {0}, and this version knows levels up to {known}; start the version that raised it, or a later one", known = level::known())]
    Level(Level),
    /// It ends too early.
    #[error("the row ends too early")]
    Short,
    /// More bytes than a row may have.
    #[error("the row has {0} bytes, more than a row may have")]
    TooLong(usize),
    /// Bytes are left over.
    #[error("the row has {0} bytes too many")]
    Trailing(usize),
    /// A field cannot be read.
    #[error("the row cannot be decoded: {0}")]
    Undecodable(&'static str),
    /// A field has a value that cannot be.
    #[error("the row holds an illegal value: {0}")]
    Illegal(&'static str),
}

impl From<WireError> for RowError {
    fn from(error: WireError) -> RowError {
        match error {
            WireError::Short => RowError::Short,
            WireError::TooLong(bytes) => RowError::TooLong(bytes),
            WireError::Trailing(bytes) => RowError::Trailing(bytes),
            WireError::Undecodable(why) => RowError::Undecodable(why),
            WireError::Illegal(what) => RowError::Illegal(what),
        }
    }
}

/// The row under `key` with this `value`.
pub fn decode_row(key: &[u8], value: &[u8]) -> Result<Row, RowError> {
    let key = parse_key(key)?;
    let mut input = In::new(value, ROW_BYTES_MAX)?;
    let version = input.fixed::<1>()?[0];
    match version {
        ROW_VERSION => {}
        JOB_ROW_VERSION if matches!(key, RowKey::Job(_)) && level::known() > level::FIRST => {}
        CELL_ROW_VERSION if matches!(key, RowKey::Cell) && level::known() > level::FIRST => {}
        CURSOR_ROW_VERSION if matches!(key, RowKey::Cursor(..)) && level::known() > level::FIRST => {}
        0 => return Err(RowError::Illegal("format")),
        newer => return Err(RowError::Newer(newer)),
    }
    let mut row = decode_v1(key, &mut input)?;
    if let (Row::Job(job), JOB_ROW_VERSION) = (&mut row, version) {
        job.key_kept = Some(input.span()?);
    }
    if let (Row::Cell(cell), CELL_ROW_VERSION) = (&mut row, version) {
        cell.level = small_rows::take_level(&mut input)?;
    }
    if let (Row::Cursor(cursor), CURSOR_ROW_VERSION) = (&mut row, version) {
        cursor.dropped = schedule_row::take_dropped(&mut input)?;
    }
    input.end()?;
    Ok(row)
}

fn decode_v1(key: RowKey, input: &mut In<'_>) -> Result<Row, RowError> {
    Ok(match key {
        RowKey::Cell => Row::Cell(small_rows::take_cell(input)?),
        RowKey::Assignment(scope) => Row::Assignment(small_rows::take_assignment(scope, input)?),
        RowKey::Definition(_, tenant, name, life, version) => Row::Definition(Box::new(schedule_row::take_definition(
            (tenant, name),
            life,
            version,
            input,
        )?)),
        RowKey::Cursor(_, tenant, name) => Row::Cursor(Box::new(schedule_row::take_cursor((tenant, name), input)?)),
        RowKey::Backlog(_, tenant, name, life, number) => Row::Backlog(Box::new(schedule_row::take_backlog(
            (tenant, name),
            life,
            number,
            input,
        )?)),
        RowKey::Fate(_, tenant, name, life, to, from) => {
            Row::Fate(Box::new(fate_row::take_fate((tenant, name), life, (from, to), input)?))
        }
        RowKey::Edit(_, tenant, name, life, at, version) => Row::Edit(Box::new(schedule_row::take_edit(
            (tenant, name),
            life,
            (at, version),
            input,
        )?)),
        RowKey::Job(id) => Row::Job(Box::new(job_row::take_job(id, input)?)),
        RowKey::Wait(shard, at, id) => Row::Wait(small_rows::take_wait((shard, at, id), input)?),
        RowKey::Ready(row) => Row::Ready(row),
        RowKey::Leased(id) => Row::Leased(Box::new(small_rows::take_leased(id, input)?)),
        RowKey::Parked(id) => Row::Parked(small_rows::take_parked(id, input)?),
        RowKey::Key(_, tenant, key) => Row::Key(Box::new(small_rows::take_key((tenant, key), input)?)),
        RowKey::DeadLetter(id) => Row::DeadLetter(small_rows::take_dead_letter(id, input)?),
        RowKey::Attempts(id, page) => Row::Attempts(Box::new(job_row::take_attempts((id, page), input)?)),
        RowKey::Mark(shard, range) => Row::Mark(small_rows::take_mark((shard, range), input)?),
        RowKey::Quarantine(shard, raw) => Row::Quarantine(Box::new(small_rows::take_quarantine((shard, raw), input)?)),
        RowKey::Request(_, tenant, name, life, number) => Row::Request(Box::new(schedule_row::take_request(
            (tenant, name),
            (life, number),
            input,
        )?)),
    })
}

/// The level that a write raises its cell to, if it is one of the cell's own row.
#[cfg(not(madsim))]
pub(crate) fn level_written(key: &[u8], value: &[u8]) -> Option<Level> {
    if Kind::of(key) != Some(Kind::Cell) {
        return None;
    }
    match decode_row(key, value) {
        Ok(Row::Cell(cell)) => Some(cell.level),
        Ok(_) | Err(_) => None,
    }
}

/// The version that a job row's value carries at its fixed place (bytes 1 to 8, big-endian, in this
/// and every later format), without decoding the row. `None` if the value is no job row's.
pub fn version_of(key: &[u8], value: &[u8]) -> Option<u64> {
    if Kind::of(key) != Some(Kind::Job) {
        return None;
    }
    let (_, rest) = value.split_first()?;
    rest.first_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes))
}
