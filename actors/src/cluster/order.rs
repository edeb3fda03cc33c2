//! What a shard says to a worker on another node, as bytes.
//!
//! Owns: these messages: grants, renewals, answers, questions and hints. The first version is for the node's own
//! worker; the second names which of those beside it is meant. Every decode is bounded and must consume
//! everything. Each may be lost, doubled or late: the worker asks again until it has an answer, and the owner's
//! rows are what counts. Must never: carry what a worker tells itself, or know a connection. Next:
//! `report.rs` (the way there), `work.rs`.

use crate::cluster::report::{
    BESIDE_VERSION, put_attempt, put_attempts, start, take_attempt, take_attempts, take_worker, version_for,
};
use crate::cluster::request::{put_row, take_job};
use fencepost_core::ids::{BeatId, Epoch, Generation, JobId, OfferId, ShardId, ShardOwner, Token, WorkerId};
use fencepost_core::lease_manager::io::{Grant, Recorded, Renewal, Suspect};
use fencepost_core::limits::{HEARTBEAT_ITEMS_MAX, LEASES_PER_SHARD_MAX, OFFER_SLOTS_MAX};
use fencepost_core::row::Row;
use fencepost_core::worker::io::WorkerInput;
use fencepost_storage::codec::RowError;
use fencepost_storage::wire::{In, Out, WireError};
use std::cmp::Reverse;
use std::sync::Arc;

/// A shard's message for a worker, as bytes; `None` for what only the worker's own node can say.
pub fn encode_order(worker: &WorkerId, order: &WorkerInput) -> Option<Vec<u8>> {
    let mut bytes = vec![version_for(worker)];
    let mut out = Out::new(&mut bytes);
    if worker.is_beside() {
        out.worker(worker);
    }
    match order {
        WorkerInput::ReadyHint(shard) => {
            out.put(1_u8).put(shard.0);
        }
        WorkerInput::Granted {
            from,
            offer,
            grants,
            waited,
            more,
            apart,
        } => {
            put_owner(out.put(2_u8), from);
            out.put(offer.0).span(*waited).put(*more);
            out.option(apart.as_ref(), put_suspect).list(grants, put_grant);
        }
        WorkerInput::Renewed { from, beat, held } => {
            put_owner(out.put(3_u8), from);
            out.put(beat.0).list(held, |out, renewal| {
                put_attempt(out, &(renewal.id, renewal.token));
                out.span(renewal.length);
            });
        }
        WorkerInput::Lost { from, lost } => {
            put_owner(out.put(4_u8), from);
            put_attempts(&mut out, lost);
        }
        WorkerInput::CancelRequested { from, id, token } => {
            put_owner(out.put(5_u8), from);
            put_attempt(&mut out, &(*id, *token));
        }
        WorkerInput::Begun { id, token } => put_attempt(out.put(6_u8), &(*id, *token)),
        WorkerInput::Recorded { from, items } => {
            put_owner(out.put(7_u8), from);
            out.list(items, put_recorded);
        }
        WorkerInput::Reconcile { from, items } => {
            put_owner(out.put(8_u8), from);
            put_attempts(&mut out, items);
        }
        WorkerInput::ShardAway(shard) => {
            out.put(9_u8).put(shard.0);
        }
        WorkerInput::ShardHere(shard) => {
            out.put(10_u8).put(shard.0);
        }
        WorkerInput::HoldBack(_)
        | WorkerInput::AttemptsFinished { .. }
        | WorkerInput::NotStarted { .. }
        | WorkerInput::CameLate { .. }
        | WorkerInput::NeverBegun { .. }
        | WorkerInput::Drain
        | WorkerInput::DrainExpired
        | WorkerInput::Tick => {
            return None;
        }
    }
    Some(bytes)
}

/// A shard's message from bytes, for the worker that it names or, if none, for the node's own.
///
/// # Errors
/// They are not exactly such a message.
pub fn decode_order(bytes: &[u8]) -> Result<(Option<WorkerId>, WorkerInput), RowError> {
    let (mut input, version) = start(bytes)?;
    let worker = match version {
        BESIDE_VERSION => Some(take_worker(&mut input, version)?),
        _ => None,
    };
    let order = take_order(&mut input)?;
    input.end()?;
    Ok((worker, order))
}

fn take_order(input: &mut In<'_>) -> Result<WorkerInput, RowError> {
    Ok(match input.fixed::<1>()?[0] {
        1 => WorkerInput::ReadyHint(ShardId(input.take()?)),
        2 => take_granted(input)?,
        3 => WorkerInput::Renewed {
            from: take_owner(input)?,
            beat: BeatId(input.take()?),
            held: input.list(HEARTBEAT_ITEMS_MAX, "renewals", take_renewal)?,
        },
        4 => WorkerInput::Lost {
            from: take_owner(input)?,
            lost: take_attempts(input, LEASES_PER_SHARD_MAX)?,
        },
        5 => {
            let from = take_owner(input)?;
            let (id, token) = take_attempt(input)?;
            WorkerInput::CancelRequested { from, id, token }
        }
        6 => {
            let (id, token) = take_attempt(input)?;
            WorkerInput::Begun { id, token }
        }
        7 => WorkerInput::Recorded {
            from: take_owner(input)?,
            items: input.list(LEASES_PER_SHARD_MAX, "records", take_recorded)?,
        },
        8 => WorkerInput::Reconcile {
            from: take_owner(input)?,
            items: take_attempts(input, LEASES_PER_SHARD_MAX)?,
        },
        9 => WorkerInput::ShardAway(ShardId(input.take()?)),
        10 => WorkerInput::ShardHere(ShardId(input.take()?)),
        _ => return Err(RowError::Illegal("kind of order")),
    })
}

fn take_granted(input: &mut In<'_>) -> Result<WorkerInput, RowError> {
    Ok(WorkerInput::Granted {
        from: take_owner(input)?,
        offer: OfferId(input.take()?),
        waited: input.span()?,
        more: input.flag()?,
        apart: input.option(take_suspect)?,
        grants: input.list(OFFER_SLOTS_MAX as usize, "grants", take_grant)?,
    })
}

fn put_owner(out: &mut Out<'_>, owner: &ShardOwner) {
    out.put(owner.shard.0).put(owner.generation.0).put(owner.epoch.0);
}

fn take_owner(input: &mut In<'_>) -> Result<ShardOwner, WireError> {
    Ok(ShardOwner {
        shard: ShardId(input.take()?),
        generation: Generation(input.take()?),
        epoch: Epoch(input.take()?),
    })
}

fn put_grant(out: &mut Out<'_>, grant: &Grant) {
    out.put(grant.attempt).token(grant.token).span(grant.length);
    put_row(out.time(grant.granted_at), &Row::Job(Box::new((*grant.job).clone())));
}

fn take_grant(input: &mut In<'_>) -> Result<Grant, RowError> {
    Ok(Grant {
        attempt: input.take()?,
        token: input.token()?,
        length: input.span()?,
        granted_at: input.time()?,
        job: Arc::new(take_job(input)?),
    })
}

fn put_suspect(out: &mut Out<'_>, suspect: &Suspect) {
    out.put(suspect.lost)
        .span(suspect.unevenness.0)
        .time(suspect.granted_at);
}

fn take_suspect(input: &mut In<'_>) -> Result<Suspect, WireError> {
    Ok(Suspect {
        lost: input.take()?,
        unevenness: Reverse(input.span()?),
        granted_at: input.time()?,
    })
}

fn take_renewal(input: &mut In<'_>) -> Result<Renewal, WireError> {
    let (id, token) = take_attempt(input)?;
    let length = input.span()?;
    Ok(Renewal { id, token, length })
}

fn put_recorded(out: &mut Out<'_>, (id, token, recorded): &(JobId, Token, Recorded)) {
    put_attempt(out, &(*id, *token));
    out.put(*recorded == Recorded::Recorded);
}

fn take_recorded(input: &mut In<'_>) -> Result<(JobId, Token, Recorded), WireError> {
    let (id, token) = take_attempt(input)?;
    let recorded = match input.flag()? {
        true => Recorded::Recorded,
        false => Recorded::Stale,
    };
    Ok((id, token, recorded))
}
