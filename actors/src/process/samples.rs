//! The sample schedules of `dev`: made once, in an empty store.
//!
//! Owns: what a newcomer sees firing. Must never: touch a store that has schedules. Next: `serve.rs`.

use crate::gateway::{Gateway, ScheduleRequest, ShardRequest};
use fencepost_core::ids::Slot;
use fencepost_core::job::{Delivery, JobSpec, RetryPolicy};
use fencepost_core::limits;
use fencepost_core::name::Name;
use fencepost_core::schedule::{GapPolicy, MisfirePolicy, OverlapPolicy, Rule, ScheduleSpec};
use fencepost_core::target::{CommandTarget, Payload, Target};
use fencepost_core::time::{Span, StoreTime};
use std::sync::Arc;

/// Makes the samples if the store has no schedule.
pub async fn make(gateway: &dyn Gateway) {
    match gateway.schedules(None, 1).await {
        Ok(page) if page.items.is_empty() => {}
        _ => return,
    }
    let every = |secs| Rule::Interval {
        every: Span::from_secs(secs),
        anchor: whole_second(gateway.now()),
        zone: "UTC".into(),
    };
    let minutely = Rule::Cron {
        expressions: vec!["* * * * *".into()],
        resolved: vec!["* * * * *".into()],
        zone: "UTC".into(),
        gap: GapPolicy::NextValid,
        overlap: OverlapPolicy::First,
    };
    make_one(gateway, "sample-tick", every(2), &["echo", "tick"]).await;
    make_one(gateway, "sample-date", every(5), &["date"]).await;
    make_one(gateway, "sample-minute", minutely, &["echo", "a new minute"]).await;
}

async fn make_one(gateway: &dyn Gateway, name: &str, rule: Rule, argv: &[&str]) {
    let (Ok(name), Ok(default)) = (Name::new(name), Name::new("default")) else {
        return;
    };
    let spec = ScheduleSpec {
        rule,
        starts_at: None,
        ends_at: None,
        count_max: None,
        exclusions: Vec::new(),
        jitter: Span::ZERO,
        misfire: MisfirePolicy::Latest,
        tolerance: Span::from_millis(limits::TOLERANCE_MS),
        grace: None,
        job: Arc::new(job_of(&default, argv)),
    };
    let shard = gateway.shard_map().shard_of(Slot::of_schedule(&default, &name));
    let create = ScheduleRequest::Create {
        spec: Box::new(spec),
        paused: false,
    };
    if let Err(refusal) = gateway
        .call(shard, ShardRequest::Schedule((default, name), create))
        .await
    {
        tracing::warn!(%refusal, "sample schedule not made");
    }
}

fn job_of(default: &Name, argv: &[&str]) -> JobSpec {
    let command = CommandTarget {
        argv: argv.iter().map(ToString::to_string).collect(),
        shell: false,
        env: Vec::new(),
        directory: None,
        grace: Span::from_secs(5),
    };
    JobSpec {
        tenant: default.clone(),
        queue: default.clone(),
        target: Target::Command(command),
        payload: Payload::empty(),
        priority: limits::PRIORITY_DEFAULT,
        tags: Vec::new(),
        timeout: Span::from_secs(30),
        retry: RetryPolicy {
            attempt_count_max: 3,
            backoff_first: Span::from_millis(limits::BACKOFF_FIRST_MS),
            backoff_cap: Span::from_millis(limits::BACKOFF_CAP_MS),
        },
        delivery: Delivery::AtLeastOnce,
        expires_at: None,
    }
}

fn whole_second(at: StoreTime) -> StoreTime {
    StoreTime::from_secs(at.secs())
}
