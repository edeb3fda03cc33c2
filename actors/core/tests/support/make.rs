//! Makers of small values for tests.

use fencepost_core::ids::{Epoch, Generation, Holder, JobId, ShardId, ShardMap, Slot, WorkerId};
use fencepost_core::job::{Delivery, EffectProof, JobSpec, Outcome, RetryAdvice, RetryPolicy, Verdict};
use fencepost_core::lease_manager::io::CreateItem;
use fencepost_core::limits::{HEARTBEAT_MS, LEASE_MS};
use fencepost_core::name::Name;
use fencepost_core::shard::ShardFacts;
use fencepost_core::target::{Payload, Target};
use fencepost_core::time::{Span, StoreTime};
use std::sync::Arc;

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// A cell of one shard.
pub fn facts(epoch: u64) -> ShardFacts {
    ShardFacts {
        shard: ShardId(0),
        map: ShardMap::new(1).unwrap(),
        generation: Generation(1),
        epoch: Epoch(epoch),
        holder: Holder(u128::from(epoch)),
        lease: Span::from_millis(LEASE_MS),
        heartbeat: Span::from_millis(HEARTBEAT_MS),
        key_kept: fencepost_core::job::KEY_KEPT,
    }
}

pub fn job_id(number: u64) -> JobId {
    let mut chance = [0; 14];
    chance[6..].copy_from_slice(&number.to_be_bytes());
    JobId::fresh(Slot::new(7).unwrap(), chance)
}

pub fn worker(node: &str, boot: u64) -> WorkerId {
    WorkerId::of_start(name(node), boot << 24)
}

/// A start of a node: workers of any other are gone.
pub fn start(node: &str, boot: u64) -> (Name, u64) {
    let WorkerId { node, boot } = worker(node, boot);
    (node, boot)
}

pub fn spec() -> JobSpec {
    JobSpec {
        tenant: name("default"),
        queue: name("default"),
        target: Target::Handler(name("noop")),
        payload: Payload::empty(),
        priority: 5,
        tags: Vec::new(),
        timeout: Span::from_secs(300),
        retry: RetryPolicy {
            attempt_count_max: 3,
            backoff_first: Span::from_secs(1),
            backoff_cap: Span::from_secs(60),
        },
        delivery: Delivery::AtLeastOnce,
        expires_at: None,
    }
}

/// A job asked for, due now, without a key.
pub fn item(number: u64, spec: JobSpec) -> CreateItem {
    CreateItem {
        id: job_id(number),
        spec: Arc::new(spec),
        due_at: None,
        delay: None,
        grace: None,
        key: None,
        resent: false,
        key_row: None,
        existing: None,
    }
}

pub fn item_due(number: u64, due_at: StoreTime) -> CreateItem {
    CreateItem {
        due_at: Some(due_at),
        ..item(number, spec())
    }
}

pub fn outcome(verdict: Verdict) -> Outcome {
    Outcome {
        verdict,
        error: (verdict != Verdict::Succeeded).then(|| Arc::from("it went wrong")),
        output: Arc::from([]),
    }
}

pub fn succeeded() -> Outcome {
    outcome(Verdict::Succeeded)
}

pub fn failed() -> Outcome {
    failed_with(RetryAdvice::ByPolicy, EffectProof::Unproven)
}

pub fn failed_with(retry: RetryAdvice, effect: EffectProof) -> Outcome {
    outcome(Verdict::Failed { retry, effect })
}
