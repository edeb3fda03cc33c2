//! What a worker says to a shard on another node, as bytes.
//!
//! Owns: these messages: offers, heartbeats, begins, outcomes, hand-backs. A node's own worker speaks the first
//! version; a claim beside it speaks the second, which names lines and says when the claim is gone, and which an
//! owner of the first version refuses as a whole. Every decode is bounded and must consume everything. Each may be
//! lost, doubled or late: the worker's timers say all of it again until it is answered, and an owner that hears it
//! twice changes nothing (F14, F15, F18). Must never: know a connection. Next: `order.rs` (the way back),
//! `work.rs`.

use crate::cluster::request::{put_id, take_id};
use crate::mesh::frame::PROTOCOL_OLDEST;
use crate::shell::messages::FromWorker;
use fencepost_core::ids::{BeatId, JobId, OfferId, ShardId, Token, WorkerId};
use fencepost_core::job::{EffectProof, Outcome, RetryAdvice, Verdict};
use fencepost_core::limits::{
    CLASS_COUNT_MAX, ERROR_BYTES_MAX, FRAME_BYTES_MAX, HEARTBEAT_ITEMS_MAX, LEASES_PER_SHARD_MAX, OFFER_SLOTS_MAX,
    OUTCOME_ITEMS_MAX, OUTPUT_TAIL_BYTES_MAX, RETRY_AFTER_MS_MAX,
};
use fencepost_core::time::Span;
use fencepost_storage::wire::{In, Out, WireError, within};

/// Version of what is said by or to a node's own worker.
pub const OWN_VERSION: u8 = 1;
/// Version of what is said by or to the workers beside it.
pub const BESIDE_VERSION: u8 = 2;

/// The version in which one speaks with this worker.
pub(super) fn version_for(worker: &WorkerId) -> u8 {
    match worker.is_beside() {
        false => OWN_VERSION,
        true => BESIDE_VERSION,
    }
}

/// A message behind its version; any other is refused.
pub(super) fn start(bytes: &[u8]) -> Result<(In<'_>, u8), WireError> {
    let mut input = In::new(bytes, FRAME_BYTES_MAX)?;
    match input.fixed::<1>()?[0] {
        version @ (OWN_VERSION | BESIDE_VERSION) => Ok((input, version)),
        _ => Err(WireError::Illegal("version")),
    }
}

/// A worker, of those that are spoken with in this version.
pub(super) fn take_worker(input: &mut In<'_>, version: u8) -> Result<WorkerId, WireError> {
    let worker = input.worker()?;
    match version_for(&worker) == version {
        true => Ok(worker),
        false => Err(WireError::Illegal("worker of another version")),
    }
}

/// A worker that is gone for good says so, as bytes: to the whole node, so the shard means nothing.
pub fn encode_gone(worker: &WorkerId) -> Vec<u8> {
    let mut bytes = vec![BESIDE_VERSION];
    Out::new(&mut bytes).put(0_u16).worker(worker).put(GONE);
    bytes
}

/// Who sends this one runs commands, or its build does not say.
const OFFER: u8 = 1;
const GONE: u8 = 6;
/// The same of a worker that runs none.
const OFFER_NO_COMMANDS: u8 = 7;
/// The protocol that knows it.
const COMMANDS_FROM: u16 = 2;

/// A worker's message for a shard, as bytes that every build knows.
pub fn encode_report(shard: ShardId, worker: &WorkerId, report: &FromWorker) -> Vec<u8> {
    encode_report_in(PROTOCOL_OLDEST, shard, worker, report)
}

/// A worker's message for a shard, as bytes for a connection of this version of the protocol.
pub fn encode_report_in(protocol: u16, shard: ShardId, worker: &WorkerId, report: &FromWorker) -> Vec<u8> {
    let mut bytes = vec![version_for(worker)];
    let mut out = Out::new(&mut bytes);
    out.put(shard.0).worker(worker);
    match report {
        FromWorker::Offer {
            offer,
            slots,
            queues,
            waits,
            apart,
            commands,
        } => {
            let kind = match *commands || protocol < COMMANDS_FROM {
                true => OFFER,
                false => OFFER_NO_COMMANDS,
            };
            out.put(kind).put(offer.0).put(*slots).put(*waits).put(*apart);
            out.list(queues, |out, queue| {
                out.name(queue);
            });
        }
        FromWorker::Heartbeat { beat, held } => {
            put_attempts(out.put(2_u8).put(beat.0), held);
        }
        FromWorker::Begin { id, token } => put_attempt(out.put(3_u8), &(*id, *token)),
        FromWorker::Outcomes { items } => {
            out.put(4_u8).list(items, |out, (id, token, outcome)| {
                put_attempt(out, &(*id, *token));
                put_outcome(out, outcome);
            });
        }
        FromWorker::HandBack { items } => put_attempts(out.put(5_u8), items),
    }
    bytes
}

/// A worker's message from bytes; without a report it is gone for good.
///
/// # Errors
/// They are not exactly such a message.
pub fn decode_report(bytes: &[u8]) -> Result<(ShardId, WorkerId, Option<FromWorker>), WireError> {
    let (mut input, version) = start(bytes)?;
    let shard = ShardId(input.take()?);
    let worker = take_worker(&mut input, version)?;
    let kind = input.fixed::<1>()?[0];
    let report = match (kind, version) {
        (GONE, BESIDE_VERSION) => None,
        _ => Some(take_report(&mut input, kind, version)?),
    };
    input.end()?;
    Ok((shard, worker, report))
}

fn take_report(input: &mut In<'_>, kind: u8, version: u8) -> Result<FromWorker, WireError> {
    Ok(match kind {
        OFFER | OFFER_NO_COMMANDS => FromWorker::Offer {
            commands: kind == OFFER,
            offer: OfferId(input.take()?),
            slots: within(input.take()?, 0, OFFER_SLOTS_MAX, "slots")?,
            waits: input.flag()?,
            apart: input.take()?,
            queues: input.list(CLASS_COUNT_MAX, "queues", |input| match version {
                BESIDE_VERSION => input.line(),
                _ => input.name(),
            })?,
        },
        2 => FromWorker::Heartbeat {
            beat: BeatId(input.take()?),
            held: take_attempts(input, HEARTBEAT_ITEMS_MAX)?,
        },
        3 => {
            let (id, token) = take_attempt(input)?;
            FromWorker::Begin { id, token }
        }
        4 => FromWorker::Outcomes {
            items: input.list(OUTCOME_ITEMS_MAX, "outcomes", |input| {
                let (id, token) = take_attempt(input)?;
                Ok::<_, WireError>((id, token, take_outcome(input)?))
            })?,
        },
        5 => FromWorker::HandBack {
            items: take_attempts(input, LEASES_PER_SHARD_MAX)?,
        },
        _ => return Err(WireError::Illegal("kind of report")),
    })
}

pub(super) fn put_attempt(out: &mut Out<'_>, (id, token): &(JobId, Token)) {
    put_id(out, id);
    out.token(*token);
}

pub(super) fn take_attempt(input: &mut In<'_>) -> Result<(JobId, Token), WireError> {
    Ok((take_id(input)?, input.token()?))
}

pub(super) fn put_attempts(out: &mut Out<'_>, attempts: &[(JobId, Token)]) {
    out.list(attempts, put_attempt);
}

pub(super) fn take_attempts(input: &mut In<'_>, max: usize) -> Result<Vec<(JobId, Token)>, WireError> {
    input.list(max, "attempts", take_attempt)
}

fn put_outcome(out: &mut Out<'_>, outcome: &Outcome) {
    match outcome.verdict {
        Verdict::Succeeded => {
            out.put(0_u8);
        }
        Verdict::Failed { retry, effect } => {
            put_effect(out.put(1_u8), effect);
            match retry {
                RetryAdvice::ByPolicy => out.put(0_u8),
                RetryAdvice::After(span) => out.put(1_u8).span(span),
                RetryAdvice::Stop => out.put(2_u8),
            };
        }
        Verdict::TimedOut { effect } => put_effect(out.put(2_u8), effect),
        Verdict::Cancelled { effect } => put_effect(out.put(3_u8), effect),
    }
    out.option(outcome.error.as_deref(), |out, error| {
        out.text(error);
    });
    out.bytes(&outcome.output);
}

fn take_outcome(input: &mut In<'_>) -> Result<Outcome, WireError> {
    let verdict = match input.take::<u8>()? {
        0 => Verdict::Succeeded,
        1 => Verdict::Failed {
            effect: take_effect(input)?,
            retry: match input.take::<u8>()? {
                0 => RetryAdvice::ByPolicy,
                1 => {
                    let most = Span::from_millis(RETRY_AFTER_MS_MAX);
                    RetryAdvice::After(within(input.span()?, Span::ZERO, most, "wait before a retry")?)
                }
                2 => RetryAdvice::Stop,
                _ => return Err(WireError::Illegal("advice about a retry")),
            },
        },
        2 => Verdict::TimedOut {
            effect: take_effect(input)?,
        },
        3 => Verdict::Cancelled {
            effect: take_effect(input)?,
        },
        _ => return Err(WireError::Illegal("verdict")),
    };
    Ok(Outcome {
        verdict,
        error: input.option(|input| input.text(ERROR_BYTES_MAX, "error"))?,
        output: input.bytes(OUTPUT_TAIL_BYTES_MAX, "output")?,
    })
}

fn put_effect(out: &mut Out<'_>, effect: EffectProof) {
    out.put(effect == EffectProof::NoEffect);
}

fn take_effect(input: &mut In<'_>) -> Result<EffectProof, WireError> {
    Ok(match input.flag()? {
        true => EffectProof::NoEffect,
        false => EffectProof::Unproven,
    })
}
