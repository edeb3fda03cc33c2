//! Targets against real peers: scripted HTTP servers on loopback and real programs.
//!
//! Each test holds its server by a handle that stops it. Nothing here leaves the machine.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
#![cfg(not(madsim))]

mod command;
#[cfg(target_os = "linux")]
mod escapes;
mod guarded;
mod http;
mod payments;
mod peers;
mod supervised;
mod tls;

use fencepost::targets::AttemptContext;
use fencepost_core::ids::{Epoch, Generation, JobId, Token};
use fencepost_core::name::Name;
use fencepost_core::target::{Payload, PayloadKind, Target};
use fencepost_core::time::{Span, StoreTime};

/// An attempt like one a worker would hand over: the second of a schedule's job, with a JSON payload.
fn attempt(target: Target) -> AttemptContext {
    AttemptContext {
        job: JobId::from_bytes([1; 16]).unwrap(),
        tenant: Name::new("default").unwrap(),
        queue: Name::new("default").unwrap(),
        schedule: Some(Name::new("nightly").unwrap()),
        token: Token {
            generation: Generation(1),
            epoch: Epoch(2),
            sequence: 3,
        },
        attempt: 2,
        scheduled_for: StoreTime(1_767_225_600_500_000),
        timeout: Span::from_secs(60),
        target,
        payload: Payload {
            kind: PayloadKind::Json,
            bytes: br#"{"amount":7}"#.as_slice().into(),
        },
    }
}

/// The text of an outcome's output.
fn text(output: &[u8]) -> &str {
    std::str::from_utf8(output).unwrap()
}
