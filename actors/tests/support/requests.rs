//! Requests to a whole node, as its tests name them.
//!
//! Owns: the plain job and the schedule `tick`, and asking for them. Must never: make a node (each test program
//! has a world of its own). Next: `../node.rs`, `../bad_rows/`.
#![allow(dead_code, reason = "each test program uses a part of it")]

use fencepost::gateway::{Gateway, ScheduleRequest, ShardReply, ShardRequest};
use fencepost::node::Node;
use fencepost_core::ids::{JobId, Slot};
use fencepost_core::job::{Delivery, JobSpec, RetryPolicy};
use fencepost_core::lease_manager::io::CreateItem;
use fencepost_core::name::Name;
use fencepost_core::schedule::{MisfirePolicy, Rule, ScheduleSpec};
use fencepost_core::scheduler_shard::io::{ScheduleReply, ScheduleView};
use fencepost_core::target::{Payload, Target};
use fencepost_core::time::{Span, StoreTime};
use std::sync::Arc;

#[path = "whole.rs"]
mod whole;
pub use whole::run;

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub fn spec(handler: &str) -> Arc<JobSpec> {
    Arc::new(JobSpec {
        tenant: name("default"),
        queue: name("default"),
        target: Target::Handler(name(handler)),
        payload: Payload::empty(),
        priority: 5,
        tags: Vec::new(),
        timeout: Span::from_secs(10),
        retry: RetryPolicy {
            attempt_count_max: 2,
            backoff_first: Span::from_millis(1),
            backoff_cap: Span::from_millis(2),
        },
        delivery: Delivery::AtLeastOnce,
        expires_at: None,
    })
}

pub fn item(id: JobId, handler: &str) -> CreateItem {
    CreateItem {
        id,
        spec: spec(handler),
        due_at: None,
        delay: None,
        grace: None,
        key: None,
        resent: false,
        key_row: None,
        existing: None,
    }
}

pub fn fresh(node: &Node) -> JobId {
    let drawn = node.gateway.draw().to_be_bytes();
    let mut chance = [0; 14];
    chance.copy_from_slice(&drawn[..14]);
    JobId::fresh(Slot::of(&[&drawn]), chance)
}

pub async fn create(node: &Node, item: CreateItem) -> JobId {
    let shard = node.gateway.shard_map().shard_of(item.id.slot());
    match node
        .gateway
        .call(shard, ShardRequest::CreateJobs(vec![item]))
        .await
        .unwrap()
    {
        ShardReply::Created(mut items) => items.remove(0).unwrap().id,
        other => panic!("not created: {other:?}"),
    }
}

pub fn every(millis: u64, anchor: StoreTime) -> ScheduleSpec {
    ScheduleSpec {
        rule: Rule::Interval {
            every: Span::from_millis(millis),
            anchor,
            zone: "UTC".into(),
        },
        starts_at: None,
        ends_at: None,
        count_max: Some(5),
        exclusions: Vec::new(),
        jitter: Span::ZERO,
        misfire: MisfirePolicy::Latest,
        tolerance: Span::from_secs(60),
        grace: None,
        job: spec("noop"),
    }
}

/// Asks about the schedule `tick`.
pub async fn ask(node: &Node, request: ScheduleRequest) -> ScheduleReply {
    let schedule = (name("default"), name("tick"));
    let slot = Slot::of_schedule(&schedule.0, &schedule.1);
    let shard = node.gateway.shard_map().shard_of(slot);
    match node
        .gateway
        .call(shard, ShardRequest::Schedule(schedule, request))
        .await
    {
        Ok(ShardReply::Schedule(reply)) => reply,
        other => panic!("no answer about a schedule: {other:?}"),
    }
}

pub fn view(reply: ScheduleReply) -> ScheduleView {
    match reply {
        ScheduleReply::Schedule(view) => *view,
        other => panic!("not a schedule: {other:?}"),
    }
}
