//! Specs, requests and facts as the tests name them.

use crate::ids::{Epoch, Generation, Holder, ShardId, ShardMap};
use crate::job::{Delivery, JobSpec, RetryPolicy};
use crate::machine::ReplyTo;
use crate::name::Name;
use crate::schedule::{GapPolicy, MisfirePolicy, OverlapPolicy, PendingFate, Rule, ScheduleSpec};
use crate::scheduler_shard::io::{ScheduleInput, ScheduleView, Seen};
use crate::shard::ShardFacts;
use crate::target::{Payload, Target};
use crate::time::{Span, StoreTime};
use std::sync::Arc;

/// 2026-01-05 (a Monday) 12:00:00 UTC.
pub const NOON: i64 = 1_767_614_400;
pub const MINUTE: i64 = 60;
pub const HOUR: i64 = 3_600;
pub const DAY: i64 = 86_400;

pub fn name(text: &str) -> (Name, Name) {
    (Name::new("default").unwrap(), Name::new(text).unwrap())
}

pub fn at(seconds: i64) -> StoreTime {
    StoreTime::from_secs(seconds)
}

pub fn job() -> Arc<JobSpec> {
    Arc::new(JobSpec {
        tenant: Name::new("default").unwrap(),
        queue: Name::new("default").unwrap(),
        target: Target::Handler(Name::new("noop").unwrap()),
        payload: Payload::empty(),
        priority: 5,
        tags: Vec::new(),
        timeout: Span::from_secs(60),
        retry: RetryPolicy {
            attempt_count_max: 5,
            backoff_first: Span::from_secs(1),
            backoff_cap: Span::from_secs(60),
        },
        delivery: Delivery::AtLeastOnce,
        expires_at: None,
    })
}

pub fn spec(rule: Rule) -> ScheduleSpec {
    ScheduleSpec {
        rule,
        starts_at: None,
        ends_at: None,
        count_max: None,
        exclusions: Vec::new(),
        jitter: Span::ZERO,
        misfire: MisfirePolicy::Latest,
        tolerance: Span::from_secs(60),
        grace: None,
        job: job(),
    }
}

pub fn cron_in(zone: &str, expressions: &[&str]) -> ScheduleSpec {
    spec(Rule::Cron {
        expressions: expressions.iter().map(|text| Arc::from(*text)).collect(),
        resolved: expressions.iter().map(|text| Arc::from(*text)).collect(),
        zone: zone.into(),
        gap: GapPolicy::NextValid,
        overlap: OverlapPolicy::First,
    })
}

pub fn cron(expression: &str) -> ScheduleSpec {
    cron_in("UTC", &[expression])
}

pub fn every(seconds: u64, anchor: i64) -> ScheduleSpec {
    spec(Rule::Interval {
        every: Span::from_secs(seconds),
        anchor: at(anchor),
        zone: "UTC".into(),
    })
}

pub fn once(seconds: i64) -> ScheduleSpec {
    spec(Rule::Once {
        at: at(seconds),
        local: None,
        zone: "UTC".into(),
        gap: GapPolicy::NextValid,
        overlap: OverlapPolicy::First,
    })
}

pub fn facts(epoch: u64) -> ShardFacts {
    ShardFacts {
        shard: ShardId(0),
        map: ShardMap::new(1).unwrap(),
        generation: Generation(1),
        epoch: Epoch(epoch),
        holder: Holder(u128::from(epoch)),
        lease: Span::from_secs(30),
        heartbeat: Span::from_secs(8),
        key_kept: crate::job::KEY_KEPT,
    }
}

pub fn resume(text: &str) -> ScheduleInput {
    ScheduleInput::Resume {
        reply: ReplyTo(1),
        name: name(text),
    }
}

pub fn pause(text: &str) -> ScheduleInput {
    ScheduleInput::Pause {
        reply: ReplyTo(1),
        name: name(text),
    }
}

pub fn delete(text: &str) -> ScheduleInput {
    ScheduleInput::Delete {
        reply: ReplyTo(1),
        name: name(text),
    }
}

pub fn run_now(text: &str, request: u64) -> ScheduleInput {
    ScheduleInput::RunNow {
        reply: ReplyTo(1),
        name: name(text),
        request,
        seen: None,
        made: None,
    }
}

/// What who reads this schedule has seen.
pub fn seen(view: &ScheduleView) -> Seen {
    Seen {
        incarnation: Some(view.definition.incarnation),
        version: view.definition.version,
    }
}

pub fn edit_with(
    text: &str,
    spec: ScheduleSpec,
    (if_match, pending, dry_run): (Option<Seen>, PendingFate, bool),
) -> ScheduleInput {
    ScheduleInput::Edit {
        reply: ReplyTo(1),
        name: name(text),
        if_match,
        spec: Box::new(spec),
        pending,
        dry_run,
    }
}

pub fn edit(text: &str, spec: ScheduleSpec) -> ScheduleInput {
    edit_with(text, spec, (None, PendingFate::Retime, false))
}

pub fn with(policy: MisfirePolicy, mut spec: ScheduleSpec) -> ScheduleSpec {
    spec.misfire = policy;
    spec
}
