//! The rows of a few fields each: cell, assignment, places of a job, keys, marks, quarantine.
//!
//! Owns: their first format. Must never: repeat what the key says. Next: `scope_row.rs`.

use super::RowError;
use crate::keys::{key_bytes, parse_key};
use crate::wire::{In, Out, within};
use fencepost_core::ids::{Epoch, Generation, JobId, Scope, ShardId, ShardMap};
use fencepost_core::level::{self, Level};
use fencepost_core::limits::{ERROR_BYTES_MAX, SHARD_COUNT_MAX};
use fencepost_core::name::Name;
use fencepost_core::row::{
    AssignmentRow, CellRow, DeadLetterRow, KeyRow, LeasedRow, MarkRange, MarkRow, ParkedRow, QuarantineRow, WaitRow,
};
use fencepost_core::time::StoreTime;
use std::sync::Arc;

pub(super) fn put_cell(row: &CellRow, out: &mut Out<'_>) {
    out.put(row.cell).put(row.generation.0).put(row.shards);
    out.time(row.created_at);
    // Only in the second format.
    if row.level > level::FIRST {
        out.put(row.level.0);
    }
}

/// The end of a cell's row in its second format; a level that is not known is refused by its number.
pub(super) fn take_level(input: &mut In<'_>) -> Result<Level, RowError> {
    let level = Level(input.take()?);
    if level <= level::FIRST {
        return Err(RowError::Illegal("level"));
    }
    match level <= level::NEWEST {
        true => Ok(level),
        false => Err(RowError::Level(level)),
    }
}

pub(super) fn take_cell(input: &mut In<'_>) -> Result<CellRow, RowError> {
    let row = CellRow {
        cell: input.take()?,
        generation: Generation(input.take()?),
        shards: within(input.take()?, 1, SHARD_COUNT_MAX, "shards")?,
        created_at: input.time()?,
        level: level::FIRST,
    };
    ShardMap::new(row.shards).ok_or(RowError::Illegal("shards"))?;
    Ok(row)
}

pub(super) fn put_assignment(row: &AssignmentRow, out: &mut Out<'_>) {
    out.name(&row.node).put(row.version);
}

pub(super) fn take_assignment(scope: Scope, input: &mut In<'_>) -> Result<AssignmentRow, RowError> {
    Ok(AssignmentRow {
        scope,
        node: input.name()?,
        version: input.take()?,
    })
}

pub(super) fn put_wait(row: &WaitRow, out: &mut Out<'_>) {
    if let Some(length) = row.length {
        out.span(length);
    }
}

pub(super) fn take_wait((shard, at, id): (ShardId, StoreTime, JobId), input: &mut In<'_>) -> Result<WaitRow, RowError> {
    let length = if input.end().is_ok() { None } else { Some(input.span()?) };
    Ok(WaitRow { shard, at, id, length })
}

pub(super) fn put_leased(row: &LeasedRow, out: &mut Out<'_>) {
    out.put(row.job_version).put(row.attempt).token(row.token);
    out.worker(&row.worker).time(row.granted_at).span(row.length);
    out.put(row.begun).put(row.seen.0).put(row.unseen_starts);
    out.time(row.order);
}

pub(super) fn take_leased(id: JobId, input: &mut In<'_>) -> Result<LeasedRow, RowError> {
    Ok(LeasedRow {
        id,
        job_version: input.take()?,
        attempt: input.take()?,
        token: input.token()?,
        worker: input.worker()?,
        granted_at: input.time()?,
        length: input.span()?,
        begun: input.flag()?,
        seen: Epoch(input.take()?),
        unseen_starts: input.take()?,
        order: input.time()?,
    })
}

pub(super) fn put_parked(row: &ParkedRow, out: &mut Out<'_>) {
    out.time(row.at);
}

pub(super) fn take_parked(id: JobId, input: &mut In<'_>) -> Result<ParkedRow, RowError> {
    Ok(ParkedRow { id, at: input.time()? })
}

pub(super) fn put_dead_letter(row: &DeadLetterRow, out: &mut Out<'_>) {
    out.time(row.at);
}

pub(super) fn take_dead_letter(id: JobId, input: &mut In<'_>) -> Result<DeadLetterRow, RowError> {
    Ok(DeadLetterRow { id, at: input.time()? })
}

pub(super) fn put_key(row: &KeyRow, out: &mut Out<'_>) {
    out.put(row.job.as_bytes()).put(row.digest).time(row.created_at);
}

pub(super) fn take_key((tenant, key): (Name, Arc<str>), input: &mut In<'_>) -> Result<KeyRow, RowError> {
    Ok(KeyRow {
        tenant,
        key,
        job: JobId::from_bytes(input.fixed()?).ok_or(RowError::Illegal("job id"))?,
        digest: input.fixed()?,
        created_at: input.time()?,
    })
}

pub(super) fn put_mark(row: &MarkRow, out: &mut Out<'_>) {
    out.bytes(&key_bytes(&row.from));
}

pub(super) fn take_mark((shard, range): (ShardId, MarkRange), input: &mut In<'_>) -> Result<MarkRow, RowError> {
    let from: &[u8] = input.take()?;
    Ok(MarkRow {
        shard,
        range,
        from: parse_key(from)?,
    })
}

pub(super) fn put_quarantine(row: &QuarantineRow, out: &mut Out<'_>) {
    out.text(&row.reason).time(row.at).put(row.deaths);
}

pub(super) fn take_quarantine(
    (shard, key): (ShardId, Arc<[u8]>),
    input: &mut In<'_>,
) -> Result<QuarantineRow, RowError> {
    Ok(QuarantineRow {
        shard,
        key,
        reason: input.text(ERROR_BYTES_MAX, "reason")?,
        at: input.time()?,
        deaths: input.take()?,
    })
}
