//! What a job is asked to be: the body of a request, the same shape that answers show.
//!
//! Owns: the fields of a job in requests, their defaults and bounds. Must never: make an id or ask a
//! clock. Next: `target.rs`, `job_view.rs`.

use crate::api::fields::{Fields, invalid};
use crate::api::json::Json;
use crate::api::text;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fencepost_core::job::{Delivery, JobSpec, RetryPolicy};
use fencepost_core::limits::{
    ATTEMPT_COUNT_DEFAULT, ATTEMPT_COUNT_MAX, ATTEMPT_TIMEOUT_MS, ATTEMPT_TIMEOUT_MS_MAX, BACKOFF_CAP_MS,
    BACKOFF_CAP_MS_MAX, BACKOFF_FIRST_MS, PAYLOAD_BYTES_MAX, PRIORITY_DEFAULT, PRIORITY_MAX, TAG_COUNT_MAX,
};
use fencepost_core::name::Name;
use fencepost_core::refusal::{Refusal, RefusalKind};
use fencepost_core::target::{Payload, PayloadKind, Target};
use fencepost_core::time::Span;
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use utoipa::ToSchema;

use super::target::{TargetBody, read_target};
use crate::targets::TargetsConfig;

const DELIVERIES: &[(&str, Delivery)] = &[
    ("at-least-once", Delivery::AtLeastOnce),
    ("at-most-once", Delivery::AtMostOnce),
];

/// What a job does and how. Everything but `target` has a default.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct JobBody {
    /// What it does.
    pub target: TargetBody,
    /// Its input as JSON, kept byte for byte, at most 1 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub payload: Option<Box<RawValue>>,
    /// Its input as bytes in base64; instead of `payload`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
    /// The line it waits in; `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// 0 first, 9 last; 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Words to filter by, at most 16.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Limit of one attempt; `5m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// When to try again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryBody>,
    /// `at-least-once` (default) or `at-most-once`: then an attempt that began and has no proven outcome is
    /// parked as uncertain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<String>,
    /// Not started by then: never starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// When to try again.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RetryBody {
    /// Attempts in all, 1 to 1,000; 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Delay before the second attempt, doubled with each; `1s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<String>,
    /// Longest delay; `1h`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap: Option<String>,
}

/// Reads what a job is; the caller takes its own fields and ends the reading.
///
/// # Errors
/// The first field that is wrong.
pub fn read_spec(fields: &mut Fields, targets: &TargetsConfig) -> Result<JobSpec, Refusal> {
    let hint = "Say what the job does: {\"type\": \"http\", \"url\": …}, a command, a handler or remote; on the command line \
                --http, --handler, --remote, or the command behind --.";
    let target = fields.object("target")?.ok_or_else(|| fields.missing("target", hint))?;
    let (target, payload) = (read_target(target, targets)?, read_payload(fields)?);
    refuse_unsent(fields, &target, &payload)?;
    Ok(JobSpec {
        target,
        payload,
        tenant: fixed_name("default"),
        queue: fields.name("queue")?.unwrap_or_else(|| fixed_name("default")),
        priority: fields
            .whole("priority", 0..=u64::from(PRIORITY_MAX))?
            .map_or(PRIORITY_DEFAULT, |value| value as u8),
        tags: read_tags(fields)?,
        timeout: read_timeout(fields)?,
        retry: read_retry(fields)?,
        delivery: read_delivery(fields)?,
        expires_at: fields.instant("expires_at")?,
    })
}

/// A job that does nothing, with every default.
pub fn noop() -> JobSpec {
    JobSpec {
        tenant: fixed_name("default"),
        queue: fixed_name("default"),
        target: Target::Handler(fixed_name("noop")),
        payload: Payload::empty(),
        priority: PRIORITY_DEFAULT,
        tags: Vec::new(),
        timeout: Span::from_millis(ATTEMPT_TIMEOUT_MS),
        retry: RetryPolicy {
            attempt_count_max: ATTEMPT_COUNT_DEFAULT,
            backoff_first: Span::from_millis(BACKOFF_FIRST_MS),
            backoff_cap: Span::from_millis(BACKOFF_CAP_MS),
        },
        delivery: Delivery::AtLeastOnce,
        expires_at: None,
    }
}

/// A name that is written in the source.
pub fn fixed_name(text: &'static str) -> Name {
    Name::new(text).expect("a literal of the alphabet")
}

fn read_timeout(fields: &mut Fields) -> Result<Span, Refusal> {
    let timeout = fields
        .span("timeout", Span::from_millis(ATTEMPT_TIMEOUT_MS_MAX))?
        .unwrap_or(Span::from_millis(ATTEMPT_TIMEOUT_MS));
    if timeout.as_millis() == 0 {
        return Err(fields.refuse(
            "timeout",
            "timeout_zero",
            "A time-out of nothing ends every attempt.",
            "Give at least 1ms, or leave it out.",
        ));
    }
    Ok(timeout)
}

fn read_delivery(fields: &mut Fields) -> Result<Delivery, Refusal> {
    let delivery = fields.word("delivery", DELIVERIES)?.unwrap_or(Delivery::AtLeastOnce);
    #[cfg(madsim)]
    if crate::planted::is_planted(crate::planted::Bug::OnceTriedAgain) {
        return Ok(Delivery::AtLeastOnce);
    }
    Ok(delivery)
}

fn read_tags(fields: &mut Fields) -> Result<Vec<Name>, Refusal> {
    let tags = fields.texts("tags", TAG_COUNT_MAX)?;
    let name = |(at, tag): (usize, &String)| {
        Name::new(tag).map_err(|error| {
            fields.refuse(
                &format!("tags[{at}]"),
                "name_invalid",
                crate::api::fields::sentence(&error.to_string()),
                "Use letters, digits, '.', '_' and '-'; begin with a letter or digit.",
            )
        })
    };
    tags.iter().enumerate().map(name).collect()
}

fn read_retry(fields: &mut Fields) -> Result<RetryPolicy, Refusal> {
    let (first, cap) = (Span::from_millis(BACKOFF_FIRST_MS), Span::from_millis(BACKOFF_CAP_MS));
    let Some(mut retry) = fields.object("retry")? else {
        return Ok(RetryPolicy {
            attempt_count_max: ATTEMPT_COUNT_DEFAULT,
            backoff_first: first,
            backoff_cap: cap,
        });
    };
    let longest = Span::from_millis(BACKOFF_CAP_MS_MAX);
    let attempts = retry.whole("attempts", 1..=u64::from(ATTEMPT_COUNT_MAX))?;
    let backoff_first = retry.span("backoff", longest)?.unwrap_or(first);
    let backoff_cap = retry.span("cap", longest)?.unwrap_or(cap.max(backoff_first));
    if backoff_cap < backoff_first {
        let detail = "The longest delay is shorter than the first one.";
        return Err(retry.refuse("cap", "retry_cap_below_backoff", detail, "Raise cap or lower backoff."));
    }
    retry.end()?;
    Ok(RetryPolicy {
        attempt_count_max: attempts.map_or(ATTEMPT_COUNT_DEFAULT, |value| value as u32),
        backoff_first,
        backoff_cap,
    })
}

/// These calls have no body: nobody would ever see it.
fn refuse_unsent(fields: &Fields, target: &Target, payload: &Payload) -> Result<(), Refusal> {
    let Target::Http(http) = target else { return Ok(()) };
    if !matches!(&*http.method, "GET" | "HEAD") || payload.kind == PayloadKind::Empty {
        return Ok(());
    }
    Err(fields.refuse(
        "payload",
        "payload_unsent",
        format!("A {} call has no body, so this payload would not be sent.", http.method),
        "Leave the payload out, or name another method, such as POST.",
    ))
}

fn read_payload(fields: &mut Fields) -> Result<Payload, Refusal> {
    let json = fields.take("payload");
    let coded = fields.text("payload_base64")?;
    match (json, coded) {
        (None, None) => Ok(Payload::empty()),
        (Some(_), Some(_)) => Err(fields.refuse(
            "payload_base64",
            "payload_twice",
            "Both payload and payload_base64 are given.",
            "Send one of them.",
        )),
        (Some(Json::Raw(raw)), None) => bounded(fields, "payload", PayloadKind::Json, raw.as_bytes()),
        (Some(other), None) => Err(invalid(
            "field_type",
            format!("A JSON value is expected here, not {}.", other.kind()),
            "Send any JSON value.",
        )
        .at(fields.name_of("payload"))),
        (None, Some(text)) => {
            let bytes = STANDARD.decode(text.as_bytes()).map_err(|_| {
                fields.refuse(
                    "payload_base64",
                    "base64_invalid",
                    "This is no base64 with padding and the alphabet A-Z a-z 0-9 + /.",
                    "Encode the bytes as standard base64.",
                )
            })?;
            bounded(fields, "payload_base64", PayloadKind::Bytes, &bytes)
        }
    }
}

fn bounded(fields: &Fields, field: &str, kind: PayloadKind, bytes: &[u8]) -> Result<Payload, Refusal> {
    if bytes.len() > PAYLOAD_BYTES_MAX {
        let detail = format!("A payload has at most {PAYLOAD_BYTES_MAX} bytes, not {}.", bytes.len());
        let hint = "Store the data elsewhere and send its address.";
        return Err(Refusal::new(RefusalKind::TooLarge, "payload_too_large", detail, hint).at(fields.name_of(field)));
    }
    Ok(Payload {
        kind,
        bytes: Arc::from(bytes),
    })
}

impl JobBody {
    /// The body that would make this spec, every field given. Secrets in it are masked.
    pub fn of(spec: &JobSpec, with_payload: bool) -> JobBody {
        let (payload, payload_base64) = match spec.payload.kind {
            _ if !with_payload => (None, None),
            PayloadKind::Empty => (None, None),
            PayloadKind::Json => (raw_json(&spec.payload.bytes), None),
            PayloadKind::Bytes => (None, Some(STANDARD.encode(&spec.payload.bytes))),
        };
        let delivery = DELIVERIES.iter().find(|(_, delivery)| *delivery == spec.delivery);
        JobBody {
            target: TargetBody::of(&spec.target),
            payload,
            payload_base64,
            queue: Some(spec.queue.to_string()),
            priority: Some(spec.priority),
            tags: Some(spec.tags.iter().map(ToString::to_string).collect()),
            timeout: Some(text::span(spec.timeout)),
            retry: Some(RetryBody {
                attempts: Some(spec.retry.attempt_count_max),
                backoff: Some(text::span(spec.retry.backoff_first)),
                cap: Some(text::span(spec.retry.backoff_cap)),
            }),
            delivery: delivery.map(|(word, _)| (*word).to_owned()),
            expires_at: spec.expires_at.map(text::instant),
        }
    }
}

/// Stored JSON as it was sent.
fn raw_json(bytes: &[u8]) -> Option<Box<RawValue>> {
    let text = std::str::from_utf8(bytes).ok()?;
    RawValue::from_string(text.to_owned()).ok()
}
