//! What the user asked for: job spec, target and payload, as stored inside jobs and definitions.
//!
//! Owns: their first format. Fields at their default cost one bit. Must never: read `limits` for a
//! default (see `mod.rs`). Next: `job_row.rs`.

use super::RowError;
use crate::wire::{In, Out, within};
use fencepost_core::job::{Delivery, JobSpec, RetryPolicy};
use fencepost_core::limits::{
    ARGV_BYTES_MAX, ARGV_COUNT_MAX, ATTEMPT_COUNT_MAX, NAME_BYTES_MAX, PAYLOAD_BYTES_MAX, PRIORITY_MAX, TAG_COUNT_MAX,
    TARGET_HEADER_BYTES_MAX, TARGET_HEADER_COUNT_MAX, URL_BYTES_MAX,
};
use fencepost_core::name::Name;
use fencepost_core::target::{CommandTarget, HttpTarget, Payload, PayloadKind, Target};
use fencepost_core::time::Span;
use std::sync::Arc;

const TENANT: &str = "default";
const QUEUE: &str = "default";
const HANDLER: &str = "noop";
const PRIORITY: u8 = 5;
const TIMEOUT: Span = Span::from_secs(300);
const RETRY: RetryPolicy = RetryPolicy {
    attempt_count_max: 5,
    backoff_first: Span::from_secs(1),
    backoff_cap: Span::from_secs(3_600),
};

const HAS_TENANT: u16 = 1;
const HAS_QUEUE: u16 = 1 << 1;
const HAS_TARGET: u16 = 1 << 2;
const HAS_PRIORITY: u16 = 1 << 3;
const HAS_TAGS: u16 = 1 << 4;
const HAS_TIMEOUT: u16 = 1 << 5;
const HAS_RETRY: u16 = 1 << 6;
const AT_MOST_ONCE: u16 = 1 << 7;
const HAS_EXPIRY: u16 = 1 << 8;
const ALL: u16 = (1 << 9) - 1;

fn flags_of(spec: &JobSpec) -> u16 {
    let is_noop = matches!(&spec.target, Target::Handler(name) if name.as_str() == HANDLER);
    [
        (spec.tenant.as_str() != TENANT, HAS_TENANT),
        (spec.queue.as_str() != QUEUE, HAS_QUEUE),
        (!is_noop, HAS_TARGET),
        (spec.priority != PRIORITY, HAS_PRIORITY),
        (!spec.tags.is_empty(), HAS_TAGS),
        (spec.timeout != TIMEOUT, HAS_TIMEOUT),
        (spec.retry != RETRY, HAS_RETRY),
        (spec.delivery == Delivery::AtMostOnce, AT_MOST_ONCE),
        (spec.expires_at.is_some(), HAS_EXPIRY),
    ]
    .iter()
    .filter(|(set, _)| *set)
    .fold(0, |flags, (_, bit)| flags | bit)
}

pub(super) fn put_spec(spec: &JobSpec, out: &mut Out<'_>) {
    let flags = flags_of(spec);
    let has = |bit: u16| flags & bit != 0;
    out.put(flags);
    if has(HAS_TENANT) {
        out.name(&spec.tenant);
    }
    if has(HAS_QUEUE) {
        out.name(&spec.queue);
    }
    if has(HAS_TARGET) {
        put_target(&spec.target, out);
    }
    put_payload(&spec.payload, out);
    if has(HAS_PRIORITY) {
        out.put(spec.priority);
    }
    if has(HAS_TAGS) {
        out.list(&spec.tags, |out, tag| {
            out.name(tag);
        });
    }
    if has(HAS_TIMEOUT) {
        out.span(spec.timeout);
    }
    if has(HAS_RETRY) {
        out.put(spec.retry.attempt_count_max)
            .span(spec.retry.backoff_first)
            .span(spec.retry.backoff_cap);
    }
    if let Some(at) = spec.expires_at {
        out.time(at);
    }
}

pub(super) fn take_spec(input: &mut In<'_>) -> Result<JobSpec, RowError> {
    let flags: u16 = input.take()?;
    if flags & !ALL != 0 {
        return Err(RowError::Illegal("job flags"));
    }
    let has = |bit: u16| flags & bit != 0;
    Ok(JobSpec {
        tenant: name_or(input, has(HAS_TENANT), TENANT)?,
        queue: name_or(input, has(HAS_QUEUE), QUEUE)?,
        target: if has(HAS_TARGET) {
            take_target(input)?
        } else {
            Target::Handler(constant(HANDLER)?)
        },
        payload: take_payload(input)?,
        priority: if has(HAS_PRIORITY) {
            within(input.take()?, 0, PRIORITY_MAX, "priority")?
        } else {
            PRIORITY
        },
        tags: if has(HAS_TAGS) {
            input.list(TAG_COUNT_MAX, "tags", In::name)?
        } else {
            Vec::new()
        },
        timeout: if has(HAS_TIMEOUT) { input.span()? } else { TIMEOUT },
        retry: if has(HAS_RETRY) { take_retry(input)? } else { RETRY },
        delivery: if has(AT_MOST_ONCE) {
            Delivery::AtMostOnce
        } else {
            Delivery::AtLeastOnce
        },
        expires_at: if has(HAS_EXPIRY) { Some(input.time()?) } else { None },
    })
}

fn constant(text: &str) -> Result<Name, RowError> {
    Name::new(text).map_err(|_| RowError::Illegal("name"))
}

fn name_or(input: &mut In<'_>, present: bool, default: &str) -> Result<Name, RowError> {
    if present { Ok(input.name()?) } else { constant(default) }
}

fn take_retry(input: &mut In<'_>) -> Result<RetryPolicy, RowError> {
    Ok(RetryPolicy {
        attempt_count_max: within(input.take()?, 1, ATTEMPT_COUNT_MAX, "attempt limit")?,
        backoff_first: input.span()?,
        backoff_cap: input.span()?,
    })
}

fn put_payload(payload: &Payload, out: &mut Out<'_>) {
    match payload.kind {
        PayloadKind::Empty => out.put(0_u8),
        PayloadKind::Json => out.put(1_u8).bytes(&payload.bytes),
        PayloadKind::Bytes => out.put(2_u8).bytes(&payload.bytes),
    };
}

fn take_payload(input: &mut In<'_>) -> Result<Payload, RowError> {
    let kind = match input.take::<u8>()? {
        0 => return Ok(Payload::empty()),
        1 => PayloadKind::Json,
        2 => PayloadKind::Bytes,
        _ => return Err(RowError::Illegal("payload kind")),
    };
    Ok(Payload {
        kind,
        bytes: input.bytes(PAYLOAD_BYTES_MAX, "payload")?,
    })
}

fn put_target(target: &Target, out: &mut Out<'_>) {
    match target {
        Target::Http(http) => {
            out.put(0_u8).text(&http.method).text(&http.url);
            put_pairs(&http.headers, out);
        }
        Target::Command(command) => {
            out.put(1_u8).list(&command.argv, |out, word| {
                out.text(word);
            });
            out.put(command.shell);
            put_pairs(&command.env, out);
            out.option(command.directory.as_deref(), |out, folder| {
                out.text(folder);
            });
            out.span(command.grace);
        }
        Target::Handler(name) => {
            out.put(2_u8).name(name);
        }
        Target::Remote(name) => {
            out.put(3_u8).name(name);
        }
    }
}

fn take_target(input: &mut In<'_>) -> Result<Target, RowError> {
    match input.take::<u8>()? {
        0 => Ok(Target::Http(HttpTarget {
            method: input.text(NAME_BYTES_MAX, "method")?,
            url: input.text(URL_BYTES_MAX, "url")?,
            headers: take_pairs(input, TARGET_HEADER_COUNT_MAX, TARGET_HEADER_BYTES_MAX, "headers")?,
        })),
        1 => Ok(Target::Command(CommandTarget {
            argv: input.list(ARGV_COUNT_MAX, "argv", |input| input.string(ARGV_BYTES_MAX, "argument"))?,
            shell: input.flag()?,
            env: take_pairs(input, ARGV_COUNT_MAX, ARGV_BYTES_MAX, "environment")?,
            directory: input.option(|input| input.string(ARGV_BYTES_MAX, "folder"))?,
            grace: input.span()?,
        })),
        2 => Ok(Target::Handler(input.name()?)),
        3 => Ok(Target::Remote(input.name()?)),
        _ => Err(RowError::Illegal("target kind")),
    }
}

fn put_pairs(pairs: &[(String, String)], out: &mut Out<'_>) {
    out.list(pairs, |out, (name, value)| {
        out.text(name).text(value);
    });
}

fn take_pairs(
    input: &mut In<'_>,
    count_max: usize,
    bytes_max: usize,
    what: &'static str,
) -> Result<Vec<(String, String)>, RowError> {
    input.list(count_max, what, |input| {
        Ok((input.string(bytes_max, what)?, input.string(bytes_max, what)?))
    })
}

/// Shared, as jobs hold it.
pub(super) fn take_shared_spec(input: &mut In<'_>) -> Result<Arc<JobSpec>, RowError> {
    take_spec(input).map(Arc::new)
}
