//! Workers in other languages: claiming jobs, staying alive, reporting.
//!
//! Owns: the shapes of the four calls; each word about an attempt carries the grant that the claim answered. Must
//! never: decide about a lease. Next: `../../desk/`; the guide `docs/guides/workers.md`.

use crate::api::body::{JsonBody, ok};
use crate::api::fields::Fields;
use crate::api::handle::Shared;
use crate::api::query::Params;
use crate::desk::{Ask, Desk, Handed, Report};
use crate::problem::Problem;
use crate::targets::signal::cut_text;
use crate::targets::tail::OutputTail;
use axum::extract::State;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fencepost_core::job::{EffectProof, RetryAdvice, Verdict};
use fencepost_core::limits::{
    BEAT_COUNT_MAX, CLAIM_COUNT_MAX, CLAIM_ID_BYTES_MAX, CLAIM_QUEUES_MAX, CLAIM_WAIT_MS, ERROR_BYTES_MAX,
    GRANT_BYTES_MAX, HTTP_WAIT_MS_MAX,
};
use fencepost_core::name::Name;
use fencepost_core::refusal::{Refusal, RefusalKind};
use fencepost_core::target::{PayloadKind, Target};
use fencepost_core::time::Span;
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use utoipa::ToSchema;

/// Body of `POST /v1/worker/claim`.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClaimBody {
    /// The worker's name: one for each process.
    pub worker: String,
    /// The worker's own number for this claim, up to 64 characters. Sent again, it is answered with the same attempts,
    /// with the time that is left of them: so nothing is lost with an answer.
    pub claim: String,
    /// Remote jobs of these queues, 1 to 32.
    pub queues: Vec<String>,
    /// Attempts at most, 1 to 100; 1.
    pub count: Option<u32>,
    /// Seconds to wait while there is nothing, 0 to 60; 30.
    pub wait: Option<u32>,
}

/// An attempt that was claimed.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClaimedAttempt {
    /// To be sent with each word about this attempt.
    pub grant: String,
    /// The job.
    pub job: String,
    /// Counted from 1.
    pub attempt: u32,
    /// Fencing token: larger than that of every earlier attempt of the job. Hand it to the guard.
    pub token: String,
    /// The same for every attempt of the job. Hand it to whatever has the effect.
    pub idempotency_key: String,
    /// What to do.
    pub name: String,
    /// The queue it waited in.
    pub queue: String,
    /// The schedule, if the job is one of its occurrences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// The nominal instant, RFC 3339.
    pub scheduled_for: String,
    /// The input, if it is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub payload: Option<Box<RawValue>>,
    /// The input in base64, if it is bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
    /// Milliseconds the attempt may take in all.
    pub timeout_ms: u64,
    /// Milliseconds that it is this worker's from now on. Without a heartbeat by then, stop: it is another's.
    pub lease_ms: u64,
}

/// The answer to a claim.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClaimAnswer {
    /// The claim's number.
    pub claim: String,
    /// What was claimed; empty if nothing came in time.
    pub attempts: Vec<ClaimedAttempt>,
}

/// Body of `POST /v1/worker/heartbeat`.
#[derive(Debug, Serialize, ToSchema)]
pub struct HeartbeatBody {
    /// The worker's name, as it claimed.
    pub worker: String,
    /// Attempts that it has, 1 to 1,000.
    pub attempts: Vec<HeartbeatItem>,
}

/// An attempt in a heartbeat.
#[derive(Debug, Serialize, ToSchema)]
pub struct HeartbeatItem {
    /// As claimed.
    pub grant: String,
    /// How far it is, for people: the newest is shown as the job's `current.progress` by the node that took it.
    pub progress: Option<String>,
}

/// What a worker is told of an attempt, in the order of the request.
#[derive(Debug, Serialize, ToSchema)]
pub struct HeartbeatState {
    /// `held`; `cancel`: someone asked to cancel the job, so stop and report `cancelled`; `lost`: stop, it is
    /// another's by now.
    #[schema(value_type = String)]
    pub state: &'static str,
    /// Milliseconds that it is this worker's from now on; 0 when it is lost.
    pub lease_ms: u64,
}

/// The answer to a heartbeat.
#[derive(Debug, Serialize, ToSchema)]
pub struct HeartbeatAnswer {
    /// One for each.
    pub attempts: Vec<HeartbeatState>,
}

/// Body of `POST /v1/worker/finish`.
#[derive(Debug, Serialize, ToSchema)]
pub struct FinishBody {
    /// The worker's name, as it claimed.
    pub worker: String,
    /// As claimed.
    pub grant: String,
    /// `succeeded`, `failed` or `cancelled`.
    pub result: String,
    /// What went wrong, for people, up to 2,048 bytes.
    pub error: Option<String>,
    /// A failure that no further attempt can mend: the job is given up at once.
    pub permanent: Option<bool>,
    /// It is certain that nothing happened. Only then is an at-most-once job tried again.
    pub no_effect: Option<bool>,
    /// What the attempt printed; the end of it is kept.
    pub output: Option<String>,
}

/// Body of `POST /v1/worker/release`.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReleaseBody {
    /// The worker's name, as it claimed.
    pub worker: String,
    /// As claimed. Nothing was done under it, and nothing will be.
    pub grant: String,
}

/// The answer to a report.
#[derive(Debug, Serialize, ToSchema)]
pub struct FinishAnswer {
    /// `recorded`: it is durable. `released`: it goes back and costs the job no attempt.
    #[schema(value_type = String)]
    pub state: &'static str,
}

#[derive(Clone, Copy)]
enum Ended {
    Succeeded,
    Failed,
    Cancelled,
}

const RESULTS: &[(&str, Ended)] = &[
    ("succeeded", Ended::Succeeded),
    ("failed", Ended::Failed),
    ("cancelled", Ended::Cancelled),
];

/// Claims remote jobs: as soon as there are any, at the latest after `wait` seconds.
#[utoipa::path(post, path = "/v1/worker/claim", tag = "workers", request_body = ClaimBody,
    responses((status = 200, description = "What was claimed.", body = ClaimAnswer), (status = "default", description = "A problem.", body = Problem)))]
pub async fn claim(
    State(shared): State<Arc<Shared>>,
    params: Params,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    params.end()?;
    let mut fields = Fields::of(body, "")?;
    let worker = worker_of(&mut fields)?;
    let hint = "Draw a number for each claim, such as a UUID, and send it again until the claim is answered.";
    let claim = fields.line("claim", CLAIM_ID_BYTES_MAX)?;
    let claim: Arc<str> = claim.ok_or_else(|| fields.missing("claim", hint))?.into();
    let queues = queues_of(&mut fields)?;
    let count = fields.whole("count", 1..=u64::from(CLAIM_COUNT_MAX))?.unwrap_or(1);
    let wait = fields
        .whole("wait", 0..=HTTP_WAIT_MS_MAX / 1_000)?
        .unwrap_or(CLAIM_WAIT_MS / 1_000);
    fields.end()?;
    let ask = Ask {
        worker,
        claim: claim.clone(),
        queues,
        count: u32::try_from(count).unwrap_or(1),
        wait: Span::from_secs(wait),
    };
    let handed = desk(&shared)?.claim(ask).await?;
    Ok(ok(&ClaimAnswer {
        claim: claim.to_string(),
        attempts: handed.iter().map(claimed).collect(),
    }))
}

/// Says that a worker lives and has these attempts.
#[utoipa::path(post, path = "/v1/worker/heartbeat", tag = "workers", request_body = HeartbeatBody,
    responses((status = 200, description = "What it is told of each.", body = HeartbeatAnswer), (status = "default", description = "A problem.", body = Problem)))]
pub async fn heartbeat(
    State(shared): State<Arc<Shared>>,
    params: Params,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    params.end()?;
    let mut fields = Fields::of(body, "")?;
    let worker = worker_of(&mut fields)?;
    let items = fields.list("attempts", BEAT_COUNT_MAX)?;
    if items.is_empty() {
        return Err(fields
            .missing("attempts", "Name the attempts that the worker has.")
            .into());
    }
    let mut attempts = Vec::with_capacity(items.len());
    for (at, item) in items.into_iter().enumerate() {
        let mut item = Fields::of(item, format!("attempts[{at}]"))?;
        attempts.push((grant_of(&mut item)?, item.text("progress")?));
        item.end()?;
    }
    fields.end()?;
    let beats = desk(&shared)?.beat(&worker, &attempts);
    let states = beats.iter().map(|beat| HeartbeatState {
        state: match (beat.left, beat.cancel) {
            (None, _) => "lost",
            (Some(_), true) => "cancel",
            (Some(_), false) => "held",
        },
        lease_ms: beat.left.map_or(0, Span::as_millis),
    });
    Ok(ok(&HeartbeatAnswer {
        attempts: states.collect(),
    }))
}

/// Reports how an attempt ended; the answer means durable. Safe to send again.
#[utoipa::path(post, path = "/v1/worker/finish", tag = "workers", request_body = FinishBody,
    responses((status = 200, description = "Recorded.", body = FinishAnswer), (status = 409, description = "The attempt is another's by now.", body = Problem), (status = "default", description = "A problem.", body = Problem)))]
pub async fn finish(
    State(shared): State<Arc<Shared>>,
    params: Params,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    params.end()?;
    let mut fields = Fields::of(body, "")?;
    let worker = worker_of(&mut fields)?;
    let grant = grant_of(&mut fields)?;
    let hint = "Use succeeded, failed or cancelled.";
    let ended = fields
        .word("result", RESULTS)?
        .ok_or_else(|| fields.missing("result", hint))?;
    let effect = match fields.flag("no_effect")? {
        true => EffectProof::NoEffect,
        false => EffectProof::Unproven,
    };
    let retry = match fields.flag("permanent")? {
        true => RetryAdvice::Stop,
        false => RetryAdvice::ByPolicy,
    };
    let report = Report {
        verdict: match ended {
            Ended::Succeeded => Verdict::Succeeded,
            Ended::Failed => Verdict::Failed { retry, effect },
            Ended::Cancelled => Verdict::Cancelled { effect },
        },
        error: fields.text("error")?.map(|error| {
            let error = format!("worker_error: {error}");
            cut_text(&error, ERROR_BYTES_MAX).to_owned()
        }),
        output: tail_of(fields.text("output")?.unwrap_or_default()),
    };
    fields.end()?;
    desk(&shared)?.report(&worker, &grant, report).await?;
    Ok(ok(&FinishAnswer { state: "recorded" }))
}

/// Gives an attempt back that was not begun: it costs the job no attempt.
#[utoipa::path(post, path = "/v1/worker/release", tag = "workers", request_body = ReleaseBody,
    responses((status = 200, description = "It goes back.", body = FinishAnswer), (status = 409, description = "The attempt is another's by now.", body = Problem), (status = "default", description = "A problem.", body = Problem)))]
pub async fn release(
    State(shared): State<Arc<Shared>>,
    params: Params,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    params.end()?;
    let mut fields = Fields::of(body, "")?;
    let worker = worker_of(&mut fields)?;
    let grant = grant_of(&mut fields)?;
    fields.end()?;
    desk(&shared)?.release(&worker, &grant).await?;
    Ok(ok(&FinishAnswer { state: "released" }))
}

/// The end of an output, which is all that is kept.
fn tail_of(output: String) -> Vec<u8> {
    let mut tail = OutputTail::default();
    tail.push(output.as_bytes());
    tail.into_output().to_vec()
}

fn desk(shared: &Shared) -> Result<Arc<Desk>, Refusal> {
    let refusal = || {
        Refusal::new(
            RefusalKind::Unavailable,
            "claims_unavailable",
            "This server takes no workers.",
            "Claim from a server that does.",
        )
    };
    shared.gateway.desk().ok_or_else(refusal)
}

fn worker_of(fields: &mut Fields) -> Result<Name, Refusal> {
    let hint = "Give each worker process a name of its own.";
    fields.name("worker")?.ok_or_else(|| fields.missing("worker", hint))
}

fn grant_of(fields: &mut Fields) -> Result<String, Refusal> {
    let hint = "Send the grant as the claim answered it.";
    fields
        .line("grant", GRANT_BYTES_MAX)?
        .ok_or_else(|| fields.missing("grant", hint))
}

fn queues_of(fields: &mut Fields) -> Result<Vec<Name>, Refusal> {
    let texts = fields.texts("queues", CLAIM_QUEUES_MAX)?;
    if texts.is_empty() {
        return Err(fields.missing("queues", "Name the queues whose remote jobs this worker can do."));
    }
    let names = texts.iter().enumerate().map(|(at, text)| {
        Name::new(text).map_err(|error| {
            let hint = "Use letters, digits, '.', '_' and '-'; begin with a letter or digit.";
            fields.refuse(
                &format!("queues[{at}]"),
                "name_invalid",
                format!("This is no queue's name: {error}."),
                hint,
            )
        })
    });
    names.collect()
}

fn claimed(handed: &Handed) -> ClaimedAttempt {
    let context = &handed.context;
    let (payload, payload_base64) = match context.payload.kind {
        PayloadKind::Empty => (None, None),
        PayloadKind::Json => {
            let text = String::from_utf8_lossy(&context.payload.bytes).into_owned();
            (RawValue::from_string(text).ok(), None)
        }
        PayloadKind::Bytes => (None, Some(STANDARD.encode(&context.payload.bytes))),
    };
    let name = match &context.target {
        Target::Remote(name) => name.to_string(),
        Target::Http(_) | Target::Command(_) | Target::Handler(_) => String::new(),
    };
    ClaimedAttempt {
        grant: handed.grant.clone(),
        job: context.job.to_string(),
        attempt: context.attempt,
        token: context.token.to_string(),
        idempotency_key: context.idempotency_key(),
        name,
        queue: context.queue.to_string(),
        schedule: context.schedule.as_ref().map(Name::to_string),
        scheduled_for: context.scheduled_for_text(),
        payload,
        payload_base64,
        timeout_ms: context.timeout.as_millis(),
        lease_ms: handed.left.as_millis(),
    }
}
