//! Lateness: from the due instant to the first instruction of the handler, by the store's clock.
//!
//! Owns: jobs at 200 a second, stored beforehand, and schedules that each fire every second. Must
//! never: count what began before it was asked for. Next: `rig.rs` (the handler `stamp`).

use crate::bench::rig::{Rig, noop_spec};
use crate::bench::{BenchOptions, Figure};
use crate::gateway::{Gateway, ScheduleRequest, ShardRequest};
use fencepost_core::ids::Slot;
use fencepost_core::job::JobSpec;
use fencepost_core::lease_manager::io::CreateItem;
use fencepost_core::limits::{self, WORKER_SLOTS_MAX};
use fencepost_core::name::Name;
use fencepost_core::schedule::{MisfirePolicy, Rule, ScheduleSpec};
use fencepost_core::time::{Span, StoreTime};
use futures_util::future::try_join_all;
use std::sync::Arc;

const JOBS: u64 = 2_000;
const JOBS_PER_SECOND: u64 = 200;
const SECONDS: u64 = 10;

/// 2,000 jobs, 200 a second, stored before the first is due.
pub async fn jobs(options: &BenchOptions) -> Result<Vec<Figure>, String> {
    let mut rig = Rig::start(options).await?;
    rig.node
        .start_worker(WORKER_SLOTS_MAX / 8)
        .await
        .map_err(|error| error.to_string())?;
    let spec = stamp_spec()?;
    let first = rig.node.gateway.now() + Span::from_secs(3);
    let gap = Span::from_millis(1_000 / JOBS_PER_SECOND);
    let map = rig.node.gateway.shard_map();
    let calls = (0..JOBS).map(|n| {
        let due_at = Some(first + Span(gap.0 * n));
        let item = CreateItem {
            spec: spec.clone(),
            ..rig.item(due_at)
        };
        rig.node
            .gateway
            .call(map.shard_of(item.id.slot()), ShardRequest::CreateJobs(vec![item]))
    });
    try_join_all(calls).await.map_err(|refusal| refusal.to_string())?;
    await_stamps(&rig, JOBS as usize).await?;
    let figures = percentiles("lateness", rig.late.take());
    rig.stop().await;
    Ok(figures)
}

/// Schedules that each fire every second, all at the same instant.
pub async fn schedules(options: &BenchOptions, count: usize) -> Result<Vec<Figure>, String> {
    let bench = if count > 1_000 {
        "schedules-10000"
    } else {
        "schedules-1000"
    };
    let mut rig = Rig::start(options).await?;
    rig.node
        .start_worker(WORKER_SLOTS_MAX / 8)
        .await
        .map_err(|error| error.to_string())?;
    let tenant = Name::new("default").map_err(|error| error.to_string())?;
    let starts_at = StoreTime::from_secs(rig.node.gateway.now().secs() + 4);
    let spec = every_second(starts_at, stamp_spec()?);
    let map = rig.node.gateway.shard_map();
    let calls = (0..count).map(|n| {
        let name = Name::new(&format!("bench-{n}")).expect("letters, digits and a dash");
        let shard = map.shard_of(Slot::of_schedule(&tenant, &name));
        let create = ScheduleRequest::Create {
            spec: Box::new(spec.clone()),
            paused: false,
        };
        rig.node
            .gateway
            .call(shard, ShardRequest::Schedule((tenant.clone(), name), create))
    });
    try_join_all(calls).await.map_err(|refusal| refusal.to_string())?;
    await_stamps(&rig, count * SECONDS as usize).await?;
    let figures = percentiles(bench, rig.late.take());
    rig.stop().await;
    Ok(figures)
}

fn every_second(starts_at: StoreTime, job: Arc<JobSpec>) -> ScheduleSpec {
    ScheduleSpec {
        rule: Rule::Interval {
            every: Span::from_secs(1),
            anchor: starts_at,
            zone: "UTC".into(),
        },
        starts_at: Some(starts_at),
        ends_at: None,
        count_max: Some(SECONDS),
        exclusions: Vec::new(),
        jitter: Span::ZERO,
        misfire: MisfirePolicy::All {
            cap: limits::CATCH_UP_CAP_DEFAULT,
            rate: limits::CATCH_UP_RATE_DEFAULT,
        },
        tolerance: Span::from_millis(limits::TOLERANCE_MS),
        grace: None,
        job,
    }
}

fn stamp_spec() -> Result<Arc<JobSpec>, String> {
    let name = |text| Name::new(text).map_err(|error| error.to_string());
    Ok(Arc::new(noop_spec(&name("default")?, name("stamp")?)))
}

async fn await_stamps(rig: &Rig, count: usize) -> Result<(), String> {
    let began = rig.mono();
    while rig.late.count() < count {
        rig.clock.sleep(Span::from_millis(20)).await;
        if rig.mono().since(began) > Span::from_secs(90) {
            return Err(format!(
                "only {} of {count} attempts began within 90 s",
                rig.late.count()
            ));
        }
    }
    Ok(())
}

fn percentiles(bench: &'static str, mut late: Vec<u64>) -> Vec<Figure> {
    late.sort_unstable();
    let at = |share: f64| {
        let place = ((late.len() as f64 * share) as usize).min(late.len().saturating_sub(1));
        late.get(place).copied().unwrap_or(0) as f64 / 1_000.0
    };
    let figure = |name, value| Figure {
        bench,
        name,
        value,
        unit: "ms",
    };
    vec![figure("p50", at(0.5)), figure("p99", at(0.99)), figure("max", at(1.0))]
}
