//! Requests for a shard's owner on another node, and its replies, as bytes, in their first version; jobs with a
//! delay and run-nows in the second, over a connection whose protocol has it.
//!
//! Owns: these messages. What is a row when it is stored is a row here too, so that there is one form of each.
//! Every decode is bounded and must consume everything. Must never: know a connection. Next: `route.rs`.

use crate::cluster::refusal::{put as put_refusal, take as take_refusal};
use crate::gateway::{ScheduleRequest, ShardReply, ShardRequest};
use crate::mesh::body::Body;
use crate::mesh::frame::{PROTOCOL, PROTOCOL_OLDEST};
use fencepost_core::ids::{Incarnation, JobId, ShardId};
use fencepost_core::job::Job;
use fencepost_core::lease_manager::io::{CancelAnswer, CreateItem, Created, Settlement};
use fencepost_core::limits::{
    BATCH_JOBS_MAX, FRAME_BYTES_MAX, IDEMPOTENCY_KEY_BYTES_MAX, KEY_BYTES_MAX, PAGE_ITEMS_MAX, REMOTE_TEXT_BYTES_MAX,
    ROW_BYTES_MAX,
};
use fencepost_core::name::Name;
use fencepost_core::refusal::Refusal;
use fencepost_core::row::Row;
use fencepost_core::schedule::{PendingFate, Rule, ScheduleDefinition, ScheduleSpec};
use fencepost_core::scheduler_shard::io::{ScheduleReply, ScheduleView, Seen};
use fencepost_core::time::StoreTime;
use fencepost_storage::codec::{RowError, decode_row, encode_row, put_job_spec, state_number, state_of, take_job_spec};
use fencepost_storage::keys::key_bytes;
use fencepost_storage::wire::{In, Out, WireError};
use std::sync::Arc;

/// Version of most messages.
pub const MESSAGE_VERSION: u8 = 1;
/// Version of a request whose jobs say their delay (before it, an instant stood for that), of a run-now, whose
/// reply then says whether its key had made the job before, and of an edit that says which life of the schedule it saw.
pub const SECOND_VERSION: u8 = 2;

/// What became of a request.
pub type Reply = Result<ShardReply, Refusal>;

/// The first one that has a place for all of it, of those that the other node knows.
fn version_of(request: &ShardRequest, protocol: u16) -> u8 {
    match request {
        ShardRequest::CreateJobs(items) if protocol > 1 && items.iter().any(|item| item.delay.is_some()) => {
            SECOND_VERSION
        }
        ShardRequest::Schedule(_, ScheduleRequest::RunNow { .. }) if protocol > 1 => SECOND_VERSION,
        ShardRequest::Schedule(_, ScheduleRequest::Edit { if_match, .. })
            if protocol > 1 && if_match.is_some_and(|seen| seen.incarnation.is_some()) =>
        {
            SECOND_VERSION
        }
        ShardRequest::CreateJobs(_)
        | ShardRequest::CancelJob(_)
        | ShardRequest::RetryDead(_)
        | ShardRequest::SettleUncertain(..)
        | ShardRequest::Schedule(..) => MESSAGE_VERSION,
    }
}

/// A request for a shard, for a connection of whichever protocol there will be.
pub fn request_body(shard: ShardId, request: &ShardRequest) -> Body {
    match version_of(request, PROTOCOL_OLDEST) == version_of(request, PROTOCOL) {
        true => encode_request(shard, request, PROTOCOL).into(),
        false => Body::of(|protocol| Some(encode_request(shard, request, protocol))),
    }
}

/// A request for a shard, as bytes for a connection of this protocol.
pub fn encode_request(shard: ShardId, request: &ShardRequest, protocol: u16) -> Vec<u8> {
    let version = version_of(request, protocol);
    let mut bytes = vec![version];
    let mut out = Out::new(&mut bytes);
    out.put(shard.0);
    match request {
        ShardRequest::CreateJobs(items) => {
            out.put(1_u8).list(items, |out, item| put_item(out, item, version));
        }
        ShardRequest::CancelJob(id) => put_id(out.put(2_u8), id),
        ShardRequest::RetryDead(id) => put_id(out.put(3_u8), id),
        ShardRequest::SettleUncertain(id, settlement) => {
            put_id(out.put(4_u8), id);
            out.put(match settlement {
                Settlement::Succeeded => 0_u8,
                Settlement::Dead => 1,
                Settlement::Retry => 2,
            });
        }
        ShardRequest::Schedule((tenant, name), asked) => {
            out.put(5_u8).name(tenant).name(name);
            put_schedule(&mut out, (tenant, name), asked, version);
        }
    }
    bytes
}

/// A request from bytes.
///
/// # Errors
/// They are not exactly such a request.
pub fn decode_request(bytes: &[u8]) -> Result<(ShardId, ShardRequest), RowError> {
    let (mut input, version) = start(bytes, SECOND_VERSION)?;
    let shard = ShardId(input.take()?);
    let request = match input.fixed::<1>()?[0] {
        1 => ShardRequest::CreateJobs(input.list(BATCH_JOBS_MAX, "items", |input| take_item(input, version))?),
        2 => ShardRequest::CancelJob(take_id(&mut input)?),
        3 => ShardRequest::RetryDead(take_id(&mut input)?),
        4 => {
            let id = take_id(&mut input)?;
            let settlement = match input.take::<u8>()? {
                0 => Settlement::Succeeded,
                1 => Settlement::Dead,
                2 => Settlement::Retry,
                _ => return Err(RowError::Illegal("settlement")),
            };
            ShardRequest::SettleUncertain(id, settlement)
        }
        5 => {
            let name = (input.name()?, input.name()?);
            ShardRequest::Schedule(name, take_schedule(&mut input, version)?)
        }
        _ => return Err(RowError::Illegal("kind of request")),
    };
    input.end()?;
    // One form of each message.
    if version != version_of(&request, u16::from(version)) {
        return Err(RowError::Illegal("version"));
    }
    Ok((shard, request))
}

/// The version of a reply to a request of that version.
fn version_of_reply(reply: &Reply, asked: u8) -> u8 {
    match reply {
        Ok(ShardReply::Schedule(ScheduleReply::Ran { .. })) => asked.clamp(MESSAGE_VERSION, SECOND_VERSION),
        Ok(ShardReply::Created(_) | ShardReply::Cancel(_) | ShardReply::Job(_) | ShardReply::Schedule(_)) | Err(_) => {
            MESSAGE_VERSION
        }
    }
}

/// A reply to a request of this version as bytes.
pub fn encode_reply(reply: &Reply, asked: u8) -> Vec<u8> {
    let version = version_of_reply(reply, asked);
    let mut bytes = vec![version];
    let mut out = Out::new(&mut bytes);
    match reply {
        Err(refusal) => put_refusal(out.put(0_u8), refusal),
        Ok(ShardReply::Created(items)) => {
            out.put(1_u8).list(items, |out, item| match item {
                Ok(created) => {
                    put_id(out.put(1_u8), &created.id);
                    out.put(created.replayed);
                }
                Err(refusal) => put_refusal(out.put(0_u8), refusal),
            });
        }
        Ok(ShardReply::Cancel(answer)) => {
            let (kind, number) = match answer {
                CancelAnswer::Cancelled => (0_u8, 0),
                CancelAnswer::Running { attempt } => (1, *attempt),
                CancelAnswer::Finished(state) => (2, u32::from(state_number(*state))),
            };
            out.put(2_u8).put(kind).put(number);
        }
        Ok(ShardReply::Job(job)) => put_row(out.put(3_u8), &Row::Job(job.clone())),
        Ok(ShardReply::Schedule(reply)) => put_schedule_reply(out.put(4_u8), reply, version),
    }
    bytes
}

/// A reply from bytes.
///
/// # Errors
/// They are not exactly such a reply.
pub fn decode_reply(bytes: &[u8]) -> Result<Reply, RowError> {
    let (mut input, version) = start(bytes, SECOND_VERSION)?;
    let reply = match input.fixed::<1>()?[0] {
        0 => Err(take_refusal(&mut input)?),
        1 => Ok(ShardReply::Created(input.list(BATCH_JOBS_MAX, "items", |input| {
            Ok::<_, RowError>(match input.flag()? {
                true => Ok(Created {
                    id: take_id(input)?,
                    replayed: input.flag()?,
                }),
                false => Err(take_refusal(input)?),
            })
        })?)),
        2 => Ok(ShardReply::Cancel(match (input.take::<u8>()?, input.take::<u32>()?) {
            (0, _) => CancelAnswer::Cancelled,
            (1, attempt) => CancelAnswer::Running { attempt },
            (2, state) => {
                let number = u8::try_from(state).map_err(|_| RowError::Illegal("state"))?;
                CancelAnswer::Finished(state_of(number)?)
            }
            _ => return Err(RowError::Illegal("answer to a cancel")),
        })),
        3 => Ok(ShardReply::Job(Box::new(take_job(&mut input)?))),
        4 => Ok(ShardReply::Schedule(take_schedule_reply(&mut input, version)?)),
        _ => return Err(RowError::Illegal("kind of reply")),
    };
    input.end()?;
    if version != version_of_reply(&reply, version) {
        return Err(RowError::Illegal("version"));
    }
    Ok(reply)
}

fn start(bytes: &[u8], newest: u8) -> Result<(In<'_>, u8), WireError> {
    let mut input = In::new(bytes, FRAME_BYTES_MAX)?;
    match input.fixed::<1>()?[0] {
        version @ MESSAGE_VERSION.. if version <= newest => Ok((input, version)),
        _ => Err(WireError::Illegal("version")),
    }
}

pub(super) fn put_id(out: &mut Out<'_>, id: &JobId) {
    out.put(*id.as_bytes());
}

pub(super) fn take_id(input: &mut In<'_>) -> Result<JobId, WireError> {
    JobId::from_bytes(input.fixed()?).ok_or(WireError::Illegal("job id"))
}

fn put_item(out: &mut Out<'_>, item: &CreateItem, version: u8) {
    put_id(out, &item.id);
    out.put(item.resent);
    put_job_spec(&item.spec, out);
    out.option(item.due_at, |out, at| {
        out.time(at);
    });
    out.option(item.grace, |out, grace| {
        out.span(grace);
    });
    out.option(item.key.as_ref(), |out, (key, digest)| {
        out.text(key).put(*digest);
    });
    if version >= SECOND_VERSION {
        out.option(item.delay, |out, delay| {
            out.span(delay);
        });
    }
}

/// Cold rows are the owner's to fetch.
fn take_item(input: &mut In<'_>, version: u8) -> Result<CreateItem, RowError> {
    Ok(CreateItem {
        id: take_id(input)?,
        resent: input.flag()?,
        spec: Arc::new(take_job_spec(input)?),
        due_at: input.option(In::time)?,
        grace: input.option(In::span)?,
        key: input.option(|input| {
            let key = input.text(IDEMPOTENCY_KEY_BYTES_MAX, "key")?;
            Ok::<_, WireError>((key, input.fixed()?))
        })?,
        delay: match version >= SECOND_VERSION {
            true => input.option(In::span)?,
            false => None,
        },
        key_row: None,
        existing: None,
    })
}

pub(super) fn put_row(out: &mut Out<'_>, row: &Row) {
    let mut value = Vec::new();
    encode_row(row, &mut value);
    out.bytes(&key_bytes(&row.key())).bytes(&value);
}

pub(super) fn take_row(input: &mut In<'_>) -> Result<Row, RowError> {
    let key = input.bytes(KEY_BYTES_MAX, "key of a row")?;
    let value = input.bytes(ROW_BYTES_MAX, "row")?;
    decode_row(&key, &value)
}

pub(super) fn take_job(input: &mut In<'_>) -> Result<Job, RowError> {
    let job = take_row(input)?.into_job().ok_or(RowError::Illegal("row of a job"))?;
    Ok(*job)
}

/// A rule as a definition that was never stored: there is one form of it. `H` may not be resolved yet, which a
/// stored one always is.
fn put_spec(out: &mut Out<'_>, (tenant, name): (&Name, &Name), spec: &ScheduleSpec) {
    let mut spec = spec.clone();
    let mut is_resolved = true;
    if let Rule::Cron {
        expressions, resolved, ..
    } = &mut spec.rule
        && resolved.is_empty()
    {
        is_resolved = false;
        resolved.clone_from(expressions);
    }
    out.put(is_resolved);
    put_row(
        out,
        &Row::Definition(Box::new(ScheduleDefinition {
            tenant: tenant.clone(),
            name: name.clone(),
            incarnation: Incarnation::default(),
            version: 1,
            created_at: StoreTime(0),
            effective_at: StoreTime(0),
            spec,
        })),
    );
}

fn take_spec(input: &mut In<'_>) -> Result<Box<ScheduleSpec>, RowError> {
    let is_resolved = input.flag()?;
    let row = take_row(input)?.into_definition();
    let mut spec = row.ok_or(RowError::Illegal("row of a definition"))?.spec;
    if let Rule::Cron { resolved, .. } = &mut spec.rule
        && !is_resolved
    {
        resolved.clear();
    }
    Ok(Box::new(spec))
}

fn put_schedule(out: &mut Out<'_>, name: (&Name, &Name), asked: &ScheduleRequest, message: u8) {
    match asked {
        ScheduleRequest::Create { spec, paused } => put_spec(out.put(1_u8).put(*paused), name, spec),
        ScheduleRequest::Edit {
            if_match,
            spec,
            pending,
            dry_run,
        } => {
            out.put(2_u8).option(*if_match, |out, seen| {
                out.put(seen.version);
                if let Some(life) = seen.incarnation.filter(|_| message >= SECOND_VERSION) {
                    out.incarnation(&life);
                }
            });
            put_spec(out.put(pending_number(*pending)).put(*dry_run), name, spec);
        }
        ScheduleRequest::Pause => {
            out.put(3_u8);
        }
        ScheduleRequest::Resume => {
            out.put(4_u8);
        }
        ScheduleRequest::Delete => {
            out.put(5_u8);
        }
        ScheduleRequest::RunNow { request } => {
            out.put(6_u8).put(*request);
        }
        ScheduleRequest::Backfill {
            from,
            to,
            cap,
            rerun,
            request,
            dry_run,
        } => {
            out.put(7_u8).time(*from).time(*to).put(*cap);
            out.put(*rerun).put(*request).put(*dry_run);
        }
    }
}

fn take_seen(input: &mut In<'_>, message: u8) -> Result<Seen, WireError> {
    let version = input.take()?;
    let incarnation = match message >= SECOND_VERSION {
        true => Some(input.incarnation()?),
        false => None,
    };
    Ok(Seen { incarnation, version })
}

fn take_schedule(input: &mut In<'_>, message: u8) -> Result<ScheduleRequest, RowError> {
    Ok(match input.fixed::<1>()?[0] {
        1 => ScheduleRequest::Create {
            paused: input.flag()?,
            spec: take_spec(input)?,
        },
        2 => ScheduleRequest::Edit {
            if_match: input.option(|input| take_seen(input, message))?,
            pending: pending_of(input.take()?)?,
            dry_run: input.flag()?,
            spec: take_spec(input)?,
        },
        3 => ScheduleRequest::Pause,
        4 => ScheduleRequest::Resume,
        5 => ScheduleRequest::Delete,
        6 => ScheduleRequest::RunNow { request: input.take()? },
        7 => ScheduleRequest::Backfill {
            from: input.time()?,
            to: input.time()?,
            cap: input.take()?,
            rerun: input.flag()?,
            request: input.take()?,
            dry_run: input.flag()?,
        },
        _ => return Err(RowError::Illegal("kind of request about a schedule")),
    })
}

fn put_times(out: &mut Out<'_>, times: &[StoreTime]) {
    out.list(times, |out, at| {
        out.time(*at);
    });
}

fn take_times(input: &mut In<'_>) -> Result<Vec<StoreTime>, WireError> {
    input.list(PAGE_ITEMS_MAX, "instants", In::time)
}

fn put_schedule_reply(out: &mut Out<'_>, reply: &ScheduleReply, version: u8) {
    match reply {
        ScheduleReply::Schedule(view) => {
            put_row(out.put(1_u8), &Row::Definition(Box::new(view.definition.clone())));
            put_row(out, &Row::Cursor(Box::new(view.cursor.clone())));
            out.option(view.next, |out, (nominal, due)| {
                out.time(nominal).time(due);
            });
            out.option(view.quarantined.as_ref(), |out, why| {
                out.text(why);
            });
        }
        ScheduleReply::Deleted => {
            out.put(2_u8);
        }
        ScheduleReply::Ran { job, replayed } => {
            put_id(out.put(3_u8), job);
            if version >= SECOND_VERSION {
                out.put(*replayed);
            }
        }
        ScheduleReply::Backfill {
            count,
            instants,
            already_fired,
            over_cap,
        } => {
            out.put(4_u8).put(*count).put(*already_fired).put(*over_cap);
            put_times(out, instants);
        }
        ScheduleReply::EditPreview { before, after, pending } => {
            put_times(out.put(5_u8), before);
            put_times(out, after);
            out.option(*pending, |out, (at, fate)| {
                out.time(at).put(pending_number(fate));
            });
        }
    }
}

fn take_schedule_reply(input: &mut In<'_>, version: u8) -> Result<ScheduleReply, RowError> {
    Ok(match input.fixed::<1>()?[0] {
        1 => {
            let definition = take_row(input)?.into_definition();
            let cursor = take_row(input)?.into_cursor();
            let (Some(definition), Some(cursor)) = (definition, cursor) else {
                return Err(RowError::Illegal("rows of a schedule"));
            };
            ScheduleReply::Schedule(Box::new(ScheduleView {
                definition: *definition,
                cursor: *cursor,
                next: input.option(|input| Ok::<_, WireError>((input.time()?, input.time()?)))?,
                quarantined: input.option(|input| input.text(REMOTE_TEXT_BYTES_MAX, "reason"))?,
            }))
        }
        2 => ScheduleReply::Deleted,
        3 => ScheduleReply::Ran {
            job: take_id(input)?,
            replayed: version >= SECOND_VERSION && input.flag()?,
        },
        4 => ScheduleReply::Backfill {
            count: input.take()?,
            already_fired: input.take()?,
            over_cap: input.take()?,
            instants: take_times(input)?,
        },
        5 => ScheduleReply::EditPreview {
            before: take_times(input)?,
            after: take_times(input)?,
            pending: input.option(|input| Ok::<_, RowError>((input.time()?, pending_of(input.take()?)?)))?,
        },
        _ => return Err(RowError::Illegal("kind of reply about a schedule")),
    })
}

fn pending_number(fate: PendingFate) -> u8 {
    match fate {
        PendingFate::Keep => 0,
        PendingFate::Retime => 1,
        PendingFate::Drop => 2,
    }
}

fn pending_of(number: u8) -> Result<PendingFate, RowError> {
    match number {
        0 => Ok(PendingFate::Keep),
        1 => Ok(PendingFate::Retime),
        2 => Ok(PendingFate::Drop),
        _ => Err(RowError::Illegal("fate of a planned fire")),
    }
}
