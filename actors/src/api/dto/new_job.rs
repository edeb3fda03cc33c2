//! A request to make jobs: what a job is, when, and under which idempotency key.
//!
//! Owns: `at`, `delay`, `grace`, the key and the digest of the request. Must never: draw an id. The digest
//! is over the request as parsed, before defaults (PROTOCOL F26). Next: `routes/jobs.rs`.

use super::job::{JobBody, read_spec};
use crate::api::fields::{Fields, length_hint};
use crate::api::json::Json;
use crate::targets::TargetsConfig;
use fencepost_core::ids::digest;
use fencepost_core::job::JobSpec;
use fencepost_core::limits::{BATCH_JOBS_MAX, DELAY_MS_MAX, IDEMPOTENCY_KEY_BYTES_MAX};
use fencepost_core::refusal::{Refusal, RefusalKind};
use fencepost_core::time::{Span, StoreTime};
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// Version of the digest's own form.
const DIGEST_PURPOSE: &str = "job request v1";

/// Body of `POST /v1/jobs`.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NewJobBody {
    /// What the job does and how.
    #[serde(flatten)]
    pub job: JobBody,
    /// First due instant; the past means now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// First due after this long; instead of `at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<String>,
    /// Asked for later than this after `at`: refused instead of made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace: Option<String>,
    /// Makes the request safe to repeat; the header `Idempotency-Key` does the same. The same key with the
    /// same body gives the same job, with another body 422.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Body of `POST /v1/jobs:batch`.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BatchBody {
    /// 1 to 1,000 jobs; each is made or refused on its own.
    pub jobs: Vec<NewJobBody>,
}

/// A job asked for, as parsed.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// What.
    pub spec: JobSpec,
    /// When.
    pub start: Start,
    /// Later than this after the start: refused.
    pub grace: Option<Span>,
    /// Key and digest.
    pub key: Option<(Arc<str>, [u8; 32])>,
}

/// When a job is first due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At once.
    Now,
    /// After this long.
    After(Span),
    /// At this instant.
    At(StoreTime),
}

impl Start {
    /// The due instant counted from `now`; `None` for at once, and beyond the year 9999 never comes (the
    /// reader has refused such a delay).
    pub fn due_at(self, now: StoreTime) -> Option<StoreTime> {
        match self {
            Start::Now => None,
            Start::After(span) => Some(now + span),
            Start::At(at) => Some(at),
        }
    }

    /// The delay, if it is one: counted by the owner, from when the job is made.
    pub fn delay(self) -> Option<Span> {
        match self {
            Start::Now | Start::At(_) => None,
            Start::After(span) => Some(span),
        }
    }
}

/// Every field of a job that is created.
const FIELDS: &[&str] = &[
    "idempotency_key",
    "target",
    "payload",
    "payload_base64",
    "queue",
    "priority",
    "tags",
    "timeout",
    "retry",
    "delivery",
    "expires_at",
    "at",
    "delay",
    "grace",
];

/// Reads one job. `header` is the key from the `Idempotency-Key` header.
///
/// # Errors
/// The first field that is wrong.
pub fn read_new_job(json: Json, path: &str, header: Option<&str>, targets: &TargetsConfig) -> Result<NewJob, Refusal> {
    let mut body = Vec::new();
    json.feed(&["idempotency_key"], &mut body);
    let mut fields = Fields::of(json, path)?.only(FIELDS)?;
    let key = read_key(&mut fields, header)?;
    let spec = read_spec(&mut fields, targets)?;
    let start = read_start(&mut fields)?;
    let grace = fields.span("grace", Span(u64::MAX))?;
    fields.end()?;
    Ok(NewJob {
        spec,
        start,
        grace,
        key: key.map(|key| (key, digest(DIGEST_PURPOSE, &[&body]))),
    })
}

fn read_start(fields: &mut Fields) -> Result<Start, Refusal> {
    let at = fields.instant("at")?;
    let delay = fields.span("delay", Span::from_millis(DELAY_MS_MAX))?;
    match (at, delay) {
        (None, None) => Ok(Start::Now),
        (Some(at), None) => Ok(Start::At(at)),
        (None, Some(span)) => Ok(Start::After(span)),
        (Some(_), Some(_)) => Err(fields.refuse(
            "delay",
            "start_twice",
            "Both at and delay are given.",
            "Send one of them.",
        )),
    }
}

fn read_key(fields: &mut Fields, header: Option<&str>) -> Result<Option<Arc<str>>, Refusal> {
    let field = fields.line("idempotency_key", IDEMPOTENCY_KEY_BYTES_MAX)?;
    match (field, header) {
        (Some(field), Some(header)) if field != header => Err(fields.refuse(
            "idempotency_key",
            "idempotency_key_twice",
            "The field and the header Idempotency-Key differ.",
            "Send the key once.",
        )),
        (Some(field), _) => Ok(Some(field.into())),
        (None, Some(header)) => check_header_key(header).map(|()| Some(header.into())),
        (None, None) => Ok(None),
    }
}

/// Whether a key from the header has a key's length.
///
/// # Errors
/// It has not.
pub fn check_header_key(key: &str) -> Result<(), Refusal> {
    if key.is_empty() || key.len() > IDEMPOTENCY_KEY_BYTES_MAX {
        let detail = format!(
            "An idempotency key has 1 to {IDEMPOTENCY_KEY_BYTES_MAX} bytes, not {}.",
            key.len()
        );
        return Err(Refusal::new(RefusalKind::Invalid, "field_length", detail, length_hint(key)).at("Idempotency-Key"));
    }
    Ok(())
}

/// Reads a batch: each job on its own, as parsed or refused.
///
/// # Errors
/// The list itself is wrong.
pub fn read_batch(json: Json, targets: &TargetsConfig) -> Result<Vec<Result<NewJob, Refusal>>, Refusal> {
    let mut fields = Fields::of(json, "")?.only(&["jobs"])?;
    let jobs = fields.list("jobs", BATCH_JOBS_MAX)?;
    if jobs.is_empty() {
        return Err(fields.refuse(
            "jobs",
            "field_count",
            "A batch holds 1 to 1,000 jobs, and this one none.",
            "Send at least one.",
        ));
    }
    fields.end()?;
    let read = |(at, job)| read_new_job(job, &format!("jobs[{at}]"), None, targets);
    Ok(jobs.into_iter().enumerate().map(read).collect())
}
