//! A job's row. A small pending job is some forty bytes beside its payload: what stands at its usual
//! value costs one bit.
//!
//! Owns: the first format, and the second, which ends with how long the job's key is kept. Must never: move the
//! version from bytes 1 to 8 (see `version_of`). Next: `spec.rs`.

use super::RowError;
use super::spec::{put_spec, take_shared_spec};
use crate::wire::{In, Out, checked_time};
use fencepost_core::ids::JobId;
use fencepost_core::job::{AttemptRecord, AttemptResult, FireCause, Job, JobState, Origin, Place};
use fencepost_core::limits::{
    ATTEMPT_PAGE_RECORDS, ATTEMPT_RECORDS_MAX, ERROR_BYTES_MAX, IDEMPOTENCY_KEY_BYTES_MAX, OUTPUT_TAIL_BYTES_MAX,
};
use fencepost_core::row::AttemptsRow;
use fencepost_core::time::Span;

const HAS_ORIGIN: u8 = 1;
const HAS_DUE: u8 = 1 << 1;
const HAS_REASON: u8 = 1 << 2;
const HAS_PLACE: u8 = 1 << 3;
const HAS_COUNTS: u8 = 1 << 4;
const HAS_ATTEMPTS: u8 = 1 << 5;
const HAS_CANCEL: u8 = 1 << 6;
const HAS_END: u8 = 1 << 7;

fn flags_of(job: &Job) -> u8 {
    [
        (job.origin != Origin::Request { key: None }, HAS_ORIGIN),
        (job.due_at != job.created_at, HAS_DUE),
        (job.reason.is_some(), HAS_REASON),
        (job.place != usual_place(job.state, job.due_at), HAS_PLACE),
        ((job.charged, job.refunded, job.attempt_next) != (0, 0, 1), HAS_COUNTS),
        (!job.attempts.is_empty(), HAS_ATTEMPTS),
        (job.cancel_requested_at.is_some(), HAS_CANCEL),
        (job.ended_at.is_some(), HAS_END),
    ]
    .iter()
    .filter(|(set, _)| *set)
    .fold(0, |flags, (_, bit)| flags | bit)
}

/// The place that is not written down.
fn usual_place(state: JobState, due_at: fencepost_core::time::StoreTime) -> Place {
    match state {
        JobState::Waiting => Place::Wait {
            at: due_at,
            length: Span::ZERO,
        },
        JobState::Ready => Place::Ready { order: due_at },
        JobState::Leased => Place::Leased,
        JobState::Uncertain => Place::Parked,
        JobState::Succeeded | JobState::Cancelled | JobState::Dead | JobState::Expired => Place::None,
    }
}

/// After the version byte and the eight bytes of the job's own version.
pub(super) fn put_job(job: &Job, out: &mut Out<'_>) {
    out.put(flags_of(job)).put(state_number(job.state)).time(job.created_at);
    if job.due_at != job.created_at {
        out.put(job.due_at.0.wrapping_sub(job.created_at.0));
    }
    put_spec(&job.spec, out);
    if job.origin != (Origin::Request { key: None }) {
        put_origin(&job.origin, out);
    }
    if let Some(reason) = &job.reason {
        out.text(reason);
    }
    if job.place != usual_place(job.state, job.due_at) {
        put_place(&job.place, out);
    }
    if (job.charged, job.refunded, job.attempt_next) != (0, 0, 1) {
        out.put(job.charged).put(job.refunded).put(job.attempt_next);
    }
    if !job.attempts.is_empty() {
        out.list(&job.attempts, |out, attempt| put_attempt(attempt, out));
    }
    for at in [job.cancel_requested_at, job.ended_at].into_iter().flatten() {
        out.time(at);
    }
    // Only in the second format.
    if let Some(kept) = job.key_kept {
        out.span(kept);
    }
}

pub(super) fn take_job(id: JobId, input: &mut In<'_>) -> Result<Job, RowError> {
    let version = u64::from_be_bytes(input.fixed()?);
    let flags: u8 = input.take()?;
    let has = |bit: u8| flags & bit != 0;
    let state = state_of(input.take()?)?;
    let created_at = input.time()?;
    let due_at = if has(HAS_DUE) {
        checked_time(created_at.0.wrapping_add(input.take()?))?
    } else {
        created_at
    };
    let spec = take_shared_spec(input)?;
    let origin = if has(HAS_ORIGIN) {
        take_origin(input)?
    } else {
        Origin::Request { key: None }
    };
    let reason = if has(HAS_REASON) {
        Some(input.text(ERROR_BYTES_MAX, "reason")?)
    } else {
        None
    };
    let place = if has(HAS_PLACE) {
        take_place(input)?
    } else {
        usual_place(state, due_at)
    };
    let (charged, refunded, attempt_next) = if has(HAS_COUNTS) {
        (input.take()?, input.take()?, input.take()?)
    } else {
        (0, 0, 1)
    };
    let attempts = if has(HAS_ATTEMPTS) {
        input.list(ATTEMPT_RECORDS_MAX, "attempts", take_attempt)?
    } else {
        Vec::new()
    };
    Ok(Job {
        id,
        version,
        spec,
        origin,
        created_at,
        due_at,
        state,
        reason,
        place,
        charged,
        refunded,
        attempt_next,
        attempts,
        cancel_requested_at: if has(HAS_CANCEL) { Some(input.time()?) } else { None },
        ended_at: if has(HAS_END) { Some(input.time()?) } else { None },
        key_kept: None,
    })
}

/// The number of a state in rows and messages.
pub fn state_number(state: JobState) -> u8 {
    match state {
        JobState::Waiting => 0,
        JobState::Ready => 1,
        JobState::Leased => 2,
        JobState::Uncertain => 3,
        JobState::Succeeded => 4,
        JobState::Cancelled => 5,
        JobState::Dead => 6,
        JobState::Expired => 7,
    }
}

/// The state of a number.
///
/// # Errors
/// There is none.
pub fn state_of(number: u8) -> Result<JobState, RowError> {
    Ok(match number {
        0 => JobState::Waiting,
        1 => JobState::Ready,
        2 => JobState::Leased,
        3 => JobState::Uncertain,
        4 => JobState::Succeeded,
        5 => JobState::Cancelled,
        6 => JobState::Dead,
        7 => JobState::Expired,
        _ => return Err(RowError::Illegal("job state")),
    })
}

fn put_origin(origin: &Origin, out: &mut Out<'_>) {
    match origin {
        Origin::Request { key } => {
            out.put(0_u8).option(key.as_deref(), |out, key| {
                out.text(key);
            });
        }
        Origin::Occurrence {
            schedule,
            incarnation,
            definition,
            nominal,
            cause,
        } => {
            out.put(1_u8).name(schedule).incarnation(incarnation);
            out.put(*definition).time(*nominal);
            match cause {
                FireCause::Due => out.put(0_u8),
                FireCause::CatchUp => out.put(1_u8),
                FireCause::Coalesced { first, count } => out.put(2_u8).time(*first).put(*count),
                FireCause::RunNow => out.put(3_u8),
                FireCause::Backfill => out.put(4_u8),
            };
        }
    }
}

fn take_origin(input: &mut In<'_>) -> Result<Origin, RowError> {
    match input.take::<u8>()? {
        0 => Ok(Origin::Request {
            key: input.option(|input| input.text(IDEMPOTENCY_KEY_BYTES_MAX, "key"))?,
        }),
        1 => Ok(Origin::Occurrence {
            schedule: input.name()?,
            incarnation: input.incarnation()?,
            definition: input.take()?,
            nominal: input.time()?,
            cause: match input.take::<u8>()? {
                0 => FireCause::Due,
                1 => FireCause::CatchUp,
                2 => FireCause::Coalesced {
                    first: input.time()?,
                    count: input.take()?,
                },
                3 => FireCause::RunNow,
                4 => FireCause::Backfill,
                _ => return Err(RowError::Illegal("fire cause")),
            },
        }),
        _ => Err(RowError::Illegal("origin")),
    }
}

fn put_place(place: &Place, out: &mut Out<'_>) {
    match place {
        Place::Wait { at, length } => out.put(0_u8).time(*at).span(*length),
        Place::Ready { order } => out.put(1_u8).time(*order),
        Place::Leased => out.put(2_u8),
        Place::Parked => out.put(3_u8),
        Place::DeadLetter { at } => out.put(4_u8).time(*at),
        Place::None => out.put(5_u8),
    };
}

fn take_place(input: &mut In<'_>) -> Result<Place, RowError> {
    Ok(match input.take::<u8>()? {
        0 => Place::Wait {
            at: input.time()?,
            length: input.span()?,
        },
        1 => Place::Ready { order: input.time()? },
        2 => Place::Leased,
        3 => Place::Parked,
        4 => Place::DeadLetter { at: input.time()? },
        5 => Place::None,
        _ => return Err(RowError::Illegal("place")),
    })
}

/// Ended attempts that the job's row has no room for.
pub(super) fn put_attempts(row: &AttemptsRow, out: &mut Out<'_>) {
    out.list(&row.records, |out, attempt| put_attempt(attempt, out));
}

/// The same, read.
pub(super) fn take_attempts((id, page): (JobId, u32), input: &mut In<'_>) -> Result<AttemptsRow, RowError> {
    Ok(AttemptsRow {
        id,
        page,
        records: input.list(ATTEMPT_PAGE_RECORDS as usize, "attempts", take_attempt)?,
    })
}

fn put_attempt(attempt: &AttemptRecord, out: &mut Out<'_>) {
    out.put(attempt.no).token(attempt.token).worker(&attempt.worker);
    out.time(attempt.granted_at).time(attempt.ended_at);
    out.put(match attempt.result {
        AttemptResult::Succeeded => 0_u8,
        AttemptResult::Failed => 1,
        AttemptResult::TimedOut => 2,
        AttemptResult::WorkerLost => 3,
        AttemptResult::HandedBack => 4,
        AttemptResult::Cancelled => 5,
    });
    out.option(attempt.error.as_deref(), |out, error| {
        out.text(error);
    });
    out.bytes(&attempt.output);
}

fn take_attempt(input: &mut In<'_>) -> Result<AttemptRecord, RowError> {
    Ok(AttemptRecord {
        no: input.take()?,
        token: input.token()?,
        worker: input.worker()?,
        granted_at: input.time()?,
        ended_at: input.time()?,
        result: match input.take::<u8>()? {
            0 => AttemptResult::Succeeded,
            1 => AttemptResult::Failed,
            2 => AttemptResult::TimedOut,
            3 => AttemptResult::WorkerLost,
            4 => AttemptResult::HandedBack,
            5 => AttemptResult::Cancelled,
            _ => return Err(RowError::Illegal("attempt result")),
        },
        error: input.option(|input| input.text(ERROR_BYTES_MAX, "error"))?,
        output: input.bytes(OUTPUT_TAIL_BYTES_MAX, "output")?,
    })
}
