//! Jobs: making, reading, waiting, cancelling, sending back, settling.
//!
//! Owns: the way from a request to shards and back. Must never: decide about a job. Next: `dto/new_job.rs`,
//! `gateway.rs`.

use crate::api::body::{JsonBody, NoBody, answer, ok, with_header};
use crate::api::dto::job_view::{JobAnswer, state_word};
use crate::api::dto::new_job::{BatchBody, NewJob, NewJobBody, read_batch, read_new_job};
use crate::api::fields::{Fields, invalid};
use crate::api::handle::Shared;
use crate::api::query::{JobPath, Params};
use crate::gateway::{JobView, ShardReply, ShardRequest};
#[cfg(madsim)]
use crate::planted::{Bug, is_planted};
use crate::problem::Problem;
use axum::extract::State;
use axum::response::Response;
use fencepost_core::ids::{JobId, ShardId, Slot};
use fencepost_core::lease_manager::io::{CancelAnswer, CreateItem, Created, Settlement};
use fencepost_core::limits::HTTP_WAIT_MS_MAX;
use fencepost_core::refusal::{Refusal, RefusalKind};
use fencepost_core::time::Span;
use hyper::{HeaderMap, StatusCode};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// A job made or found.
#[derive(Debug, Serialize, ToSchema)]
pub struct CreatedAnswer {
    /// Its id.
    pub id: String,
    /// The idempotency key had made it before.
    pub replayed: bool,
}

/// One item of a batch: a job, or the problem.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum BatchItem {
    /// Made or found.
    Created(CreatedAnswer),
    /// Refused.
    Refused {
        /// Why.
        problem: Box<Problem>,
    },
}

/// The answer to a batch, one item per job, in order.
#[derive(Debug, Serialize, ToSchema)]
pub struct BatchAnswer {
    /// Jobs made.
    pub created: usize,
    /// Jobs that were there.
    pub replayed: usize,
    /// Jobs refused.
    pub refused: usize,
    /// In the order of the request.
    pub items: Vec<BatchItem>,
}

/// The honest answer to a cancel.
#[derive(Debug, Serialize, ToSchema)]
pub struct CancelledAnswer {
    /// The job.
    pub id: String,
    /// `cancelled`: no attempt starts after this answer. `running`: an attempt runs and was asked to stop.
    /// `finished`: it had ended already.
    #[schema(value_type = String)]
    pub result: &'static str,
    /// The attempt that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// How it had ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub state: Option<&'static str>,
}

/// Body of `POST /v1/jobs/{id}/settle`.
#[derive(Debug, Serialize, ToSchema)]
pub struct SettleBody {
    /// What a person found: `succeeded` (the effect is there), `dead` (it is not: give up) or `retry` (it is
    /// not: try again).
    pub verdict: String,
}

/// An answer of another kind than the request asks for: our own fault.
pub fn odd_reply() -> Problem {
    let hint = "Report this with the request id.";
    Problem::http(500, "reply_unexpected", "The shard answered something else.", hint)
}

/// What a job id that nobody knows is answered with.
pub fn job_not_found(id: JobId) -> Refusal {
    let detail = format!("There is no job {id}.");
    let hint = "Check the id; finished jobs are kept for 7 days.";
    Refusal::new(RefusalKind::NotFound, "job_not_found", detail, hint).at("id")
}

/// Makes one job.
#[utoipa::path(post, path = "/v1/jobs", tag = "jobs", request_body = NewJobBody,
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat.")),
    responses((status = 201, description = "Made; durable.", body = CreatedAnswer), (status = 200, description = "The key had made it before.", body = CreatedAnswer),
        (status = 422, description = "The key was used with another body.", body = Problem), (status = "default", description = "A problem.", body = Problem)))]
pub async fn create_job(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    params: Params,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    params.end()?;
    let key = key_header(&headers)?;
    let job = read_new_job(body, "", key, &shared.targets)?;
    let item = place(&shared, job);
    let shard = shared.gateway.shard_map().shard_of(item.id.slot());
    let reply = shared.call(shard, ShardRequest::CreateJobs(vec![item])).await?;
    let ShardReply::Created(results) = reply else {
        return Err(odd_reply());
    };
    let created = results.into_iter().next().ok_or_else(odd_reply)??;
    Ok(made(&created))
}

/// The answer about a job that was made, by this request or by its key before.
pub(super) fn made(created: &Created) -> Response {
    let status = match created.replayed {
        true => StatusCode::OK,
        false => StatusCode::CREATED,
    };
    let response = answer(status, &created_answer(created));
    with_header(response, "location", &format!("/v1/jobs/{}", created.id))
}

const KEY_HEADER: &str = "idempotency-key";

/// The `Idempotency-Key` header.
///
/// # Errors
/// It comes twice, or is not visible ASCII.
pub fn key_header(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let mut values = headers.get_all(KEY_HEADER).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    match value.to_str() {
        Ok(key) if values.next().is_none() => Ok(Some(key)),
        _ => {
            let detail = "The header Idempotency-Key comes twice or is not visible ASCII.";
            let hint = "Send it once, or use the field idempotency_key.";
            Err(invalid("idempotency_key_invalid", detail, hint).at("Idempotency-Key"))
        }
    }
}

/// A header that no job of a batch would read: who sends it trusts that the batch can be repeated.
fn no_key_header(headers: &HeaderMap) -> Result<(), Refusal> {
    if !headers.contains_key(KEY_HEADER) {
        return Ok(());
    }
    let detail = "A batch has no idempotency key of its own; each of its jobs has one.";
    let hint = "Leave the header out and give each item of jobs its idempotency_key.";
    Err(invalid("header_unexpected", detail, hint).at("Idempotency-Key"))
}

fn created_answer(created: &Created) -> CreatedAnswer {
    CreatedAnswer {
        id: created.id.to_string(),
        replayed: created.replayed,
    }
}

/// Gives a job its id: the slot of its key, or of the drawn id itself.
fn place(shared: &Shared, job: NewJob) -> CreateItem {
    let mut chance = [0; 14];
    chance.copy_from_slice(shared.gateway.draw().to_be_bytes().get(..14).unwrap_or(&[0; 14]));
    #[cfg(madsim)]
    if let Some((key, _)) = job.key.as_ref().filter(|_| is_planted(Bug::KeyNamesTheJob)) {
        let digest = blake3::hash(key.as_bytes());
        chance.copy_from_slice(digest.as_bytes().get(..14).unwrap_or(&[0; 14]));
    }
    let slot = match &job.key {
        Some((key, _)) => Slot::of_key(&job.spec.tenant, key),
        None => Slot::of(&[b"id", &chance]),
    };
    CreateItem {
        id: JobId::fresh(slot, chance),
        spec: Arc::new(job.spec),
        due_at: job.start.due_at(shared.gateway.now()),
        delay: job.start.delay(),
        grace: job.grace,
        key: job.key,
        resent: false,
        key_row: None,
        existing: None,
    }
}

/// Makes up to 1,000 jobs; each is made or refused on its own.
#[utoipa::path(post, path = "/v1/jobs:batch", tag = "jobs", request_body = BatchBody,
    responses((status = 200, description = "One result per job.", body = BatchAnswer), (status = "default", description = "A problem.", body = Problem)))]
pub async fn create_batch(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    params: Params,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    params.end()?;
    no_key_header(&headers)?;
    let jobs = read_batch(body, &shared.targets)?;
    let mut results: Vec<Option<Result<Created, Refusal>>> = Vec::with_capacity(jobs.len());
    let mut by_shard: BTreeMap<ShardId, (Vec<usize>, Vec<CreateItem>)> = BTreeMap::new();
    for (at, job) in jobs.into_iter().enumerate() {
        match job {
            Ok(job) => {
                let item = place(&shared, job);
                let shard = shared.gateway.shard_map().shard_of(item.id.slot());
                let (places, items) = by_shard.entry(shard).or_default();
                places.push(at);
                items.push(item);
                results.push(None);
            }
            Err(refusal) => results.push(Some(Err(refusal))),
        }
    }
    let calls = by_shard.into_iter().map(|(shard, (places, items))| {
        let call = shared.call(shard, ShardRequest::CreateJobs(items));
        async move { (places, call.await) }
    });
    for (places, reply) in futures_util::future::join_all(calls).await {
        spread(&mut results, &places, reply);
    }
    Ok(ok(&batch_answer(results)))
}

/// Puts a shard's answer where its items came from.
fn spread(results: &mut [Option<Result<Created, Refusal>>], places: &[usize], reply: Result<ShardReply, Refusal>) {
    let mut each = match reply {
        Ok(ShardReply::Created(each)) => each.into_iter(),
        Ok(_) => Vec::new().into_iter(),
        Err(refusal) => vec![Err(refusal); places.len()].into_iter(),
    };
    for at in places {
        if let Some(result) = results.get_mut(*at) {
            *result = each.next();
        }
    }
}

fn batch_answer(results: Vec<Option<Result<Created, Refusal>>>) -> BatchAnswer {
    let (mut created, mut replayed, mut refused) = (0, 0, 0);
    let items = results.into_iter().enumerate().map(|(at, result)| match result {
        Some(Ok(made)) => {
            *(if made.replayed { &mut replayed } else { &mut created }) += 1;
            BatchItem::Created(created_answer(&made))
        }
        Some(Err(refusal)) => {
            refused += 1;
            let mut problem = Problem::of(&refusal);
            problem.field = Some(item_field(at, problem.field.as_deref()).into());
            BatchItem::Refused {
                problem: Box::new(problem),
            }
        }
        None => {
            refused += 1;
            BatchItem::Refused {
                problem: Box::new(odd_reply()),
            }
        }
    });
    let items = items.collect();
    BatchAnswer {
        created,
        replayed,
        refused,
        items,
    }
}

/// A field's name within the batch.
fn item_field(at: usize, field: Option<&str>) -> String {
    let item = format!("jobs[{at}]");
    match field {
        Some(field) if field.starts_with(&item) => field.to_owned(),
        Some(field) => format!("{item}.{field}"),
        None => item,
    }
}

/// Reads one job; with `Prefer: wait=N` once it is finished, at the latest after N seconds.
#[utoipa::path(get, path = "/v1/jobs/{id}", tag = "jobs",
    params(("id" = String, Path, description = "Its id."), ("Prefer" = Option<String>, Header, description = "wait=N: up to 60 seconds.")),
    responses((status = 200, description = "The job.", body = JobAnswer), (status = "default", description = "A problem.", body = Problem)))]
pub async fn get_job(
    State(shared): State<Arc<Shared>>,
    JobPath(id): JobPath,
    headers: HeaderMap,
    params: Params,
) -> Result<Response, Problem> {
    params.end()?;
    let wait = headers
        .get_all("prefer")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .find_map(|preference| preference.trim().strip_prefix("wait=")?.parse::<u64>().ok());
    let Some(seconds) = wait else {
        return read(&shared, id).await;
    };
    let seconds = seconds.min(HTTP_WAIT_MS_MAX / 1_000);
    let response = read_once_finished(&shared, id, Span::from_secs(seconds)).await?;
    Ok(with_header(response, "preference-applied", &format!("wait={seconds}")))
}

/// Reads one job once it is finished or uncertain, at the latest after `timeout`.
#[utoipa::path(get, path = "/v1/jobs/{id}/wait", tag = "jobs",
    params(("id" = String, Path, description = "Its id."), ("timeout" = Option<u32>, Query, description = "Seconds, 0 to 60; 30.")),
    responses((status = 200, description = "The job, finished or not.", body = JobAnswer), (status = "default", description = "A problem.", body = Problem)))]
pub async fn wait_job(
    State(shared): State<Arc<Shared>>,
    JobPath(id): JobPath,
    mut params: Params,
) -> Result<Response, Problem> {
    let seconds = params.whole("timeout", 0, HTTP_WAIT_MS_MAX / 1_000)?.unwrap_or(30);
    params.end()?;
    read_once_finished(&shared, id, Span::from_secs(seconds)).await
}

async fn read(shared: &Shared, id: JobId) -> Result<Response, Problem> {
    let view = shared.gateway.job(id).await?.ok_or_else(|| job_not_found(id))?;
    Ok(ok(&JobAnswer::whole(&view)))
}

async fn read_once_finished(shared: &Shared, id: JobId, wait: Span) -> Result<Response, Problem> {
    let view = shared
        .gateway
        .wait_job(id, wait)
        .await?
        .ok_or_else(|| job_not_found(id))?;
    Ok(ok(&JobAnswer::whole(&view)))
}

/// Cancels a job; the answer says honestly how far that went.
#[utoipa::path(post, path = "/v1/jobs/{id}/cancel", tag = "jobs", params(("id" = String, Path, description = "Its id.")),
    responses((status = 200, description = "What came of it.", body = CancelledAnswer), (status = "default", description = "A problem.", body = Problem)))]
pub async fn cancel_job(
    State(shared): State<Arc<Shared>>,
    JobPath(id): JobPath,
    params: Params,
    NoBody: NoBody,
) -> Result<Response, Problem> {
    params.end()?;
    let ShardReply::Cancel(cancel) = call(&shared, id, ShardRequest::CancelJob(id)).await? else {
        return Err(odd_reply());
    };
    let (result, attempt, state) = match cancel {
        CancelAnswer::Cancelled => ("cancelled", None, None),
        #[cfg(madsim)]
        CancelAnswer::Running { .. } if is_planted(Bug::RunningToldAsCancelled) => ("cancelled", None, None),
        CancelAnswer::Running { attempt } => ("running", Some(attempt), None),
        CancelAnswer::Finished(state) => ("finished", None, Some(state_word(state))),
    };
    Ok(ok(&CancelledAnswer {
        id: id.to_string(),
        result,
        attempt,
        state,
    }))
}

/// Sends a dead job back: one more round of attempts.
#[utoipa::path(post, path = "/v1/jobs/{id}/retry", tag = "jobs", params(("id" = String, Path, description = "Its id.")),
    responses((status = 200, description = "The job as it is now.", body = JobAnswer), (status = "default", description = "A problem.", body = Problem)))]
pub async fn retry_job(
    State(shared): State<Arc<Shared>>,
    JobPath(id): JobPath,
    params: Params,
    NoBody: NoBody,
) -> Result<Response, Problem> {
    params.end()?;
    job_reply(call(&shared, id, ShardRequest::RetryDead(id)).await?)
}

const VERDICTS: &[(&str, Settlement)] = &[
    ("succeeded", Settlement::Succeeded),
    ("dead", Settlement::Dead),
    ("retry", Settlement::Retry),
];

/// Settles an uncertain job with what a person found.
#[utoipa::path(post, path = "/v1/jobs/{id}/settle", tag = "jobs", request_body = SettleBody, params(("id" = String, Path, description = "Its id.")),
    responses((status = 200, description = "The job as it is now.", body = JobAnswer), (status = "default", description = "A problem.", body = Problem)))]
pub async fn settle_job(
    State(shared): State<Arc<Shared>>,
    JobPath(id): JobPath,
    params: Params,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    params.end()?;
    let mut fields = Fields::of(body, "")?.only(&["verdict"])?;
    let hint = "Use succeeded, dead or retry.";
    let verdict = fields
        .word("verdict", VERDICTS)?
        .ok_or_else(|| fields.missing("verdict", hint))?;
    fields.end()?;
    job_reply(call(&shared, id, ShardRequest::SettleUncertain(id, verdict)).await?)
}

async fn call(shared: &Shared, id: JobId, request: ShardRequest) -> Result<ShardReply, Refusal> {
    let shard = shared.gateway.shard_map().shard_of(id.slot());
    shared.call(shard, request).await
}

fn job_reply(reply: ShardReply) -> Result<Response, Problem> {
    let ShardReply::Job(job) = reply else {
        return Err(odd_reply());
    };
    let view = JobView {
        job: Arc::new(*job),
        leased: None,
        progress: None,
    };
    Ok(ok(&JobAnswer::whole(&view)))
}
