//! Lateness: from the due instant to the first instruction of the handler, by the store's clock.
//!
//! Owns: jobs at 200 a second, stored beforehand or made when they are due, and schedules that each fire every
//! second. Must never: count what began before it was asked for. Next: `rig.rs` (the handler `stamp`).

use crate::bench::BenchOptions;
use crate::bench::drain::SLOTS;
use crate::bench::figure::{Figure, Target};
use crate::bench::rig::{Rig, noop_spec};
use crate::gateway::{Gateway, ScheduleRequest, ShardRequest};
use fencepost_core::ids::Slot;
use fencepost_core::job::JobSpec;
use fencepost_core::lease_manager::io::CreateItem;
use fencepost_core::limits;
use fencepost_core::name::Name;
use fencepost_core::schedule::{MisfirePolicy, Rule, ScheduleSpec};
use fencepost_core::time::{Span, StoreTime};
use futures_util::future::try_join_all;
use std::sync::Arc;

const JOBS_MAX: usize = 2_000;
const JOBS_PER_SECOND: u64 = 200;
const GAP: Span = Span::from_millis(1_000 / JOBS_PER_SECOND);
/// Slots with which each shard holds an offer as large as an offer may be: what fires at one instant is not
/// to wait for a slot.
const ROOM_FOR_ALL: u32 = 2 * limits::SHARD_COUNT_DEFAULT as u32 * limits::OFFER_SLOTS_MAX;
/// Clients that create the live jobs in turn.
const CLIENTS: u64 = 8;
const SECONDS_MAX: usize = 10;
const PATIENCE: Span = Span::from_secs(90);

/// Milliseconds that the design wants at most; `None` sets no bound.
#[derive(Clone, Copy, Debug, Default)]
struct Bounds {
    p50: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
}

const JOB_BOUNDS: Bounds = Bounds {
    p50: Some(1.0),
    p99: Some(5.0),
    max: None,
};

/// 2,000 jobs, 200 a second, stored before the first is due.
pub async fn jobs(options: &BenchOptions) -> Result<Vec<Figure>, String> {
    let mut rig = Rig::start(options).await?;
    rig.start_worker(SLOTS).await?;
    let spec = stamp_spec()?;
    let count = JOBS_MAX.min(options.jobs);
    // Time enough to store them all.
    let first = rig.node.gateway.now() + Span::from_millis(1_000 + count as u64);
    let calls = (0..count as u64).map(|n| create_one(&rig, &spec, Some(first + Span(GAP.0 * n))));
    try_join_all(calls).await?;
    finish(rig, "lateness", count, JOB_BOUNDS).await
}

/// The same number, each made when it is due: its own commit is part of its lateness.
pub async fn live_jobs(options: &BenchOptions) -> Result<Vec<Figure>, String> {
    let mut rig = Rig::start(options).await?;
    rig.start_worker(SLOTS).await?;
    let spec = stamp_spec()?;
    let count = JOBS_MAX.min(options.jobs);
    let first = rig.mono() + Span::from_secs(1);
    let client = async |client: u64| {
        for n in (client..count as u64).step_by(CLIENTS as usize) {
            let turn = first + Span(GAP.0 * n);
            rig.clock.sleep(turn.since(rig.mono())).await;
            create_one(&rig, &spec, None).await?;
        }
        Ok::<(), String>(())
    };
    try_join_all((0..CLIENTS).map(client)).await?;
    finish(rig, "lateness-live", count, JOB_BOUNDS).await
}

async fn create_one(rig: &Rig, spec: &Arc<JobSpec>, due_at: Option<StoreTime>) -> Result<(), String> {
    let item = CreateItem {
        spec: spec.clone(),
        ..rig.item(due_at)
    };
    let gateway = &rig.node.gateway;
    let shard = gateway.shard_map().shard_of(item.id.slot());
    let made = gateway.call(shard, ShardRequest::CreateJobs(vec![item])).await;
    made.map(|_| ()).map_err(|refusal| refusal.to_string())
}

/// 1,000 schedules that each fire every second, all at the same instant, for ten seconds.
pub async fn thousand_schedules(options: &BenchOptions) -> Result<Vec<Figure>, String> {
    let bounds = Bounds {
        p99: Some(10.0),
        ..Bounds::default()
    };
    schedules(options, "schedules-1000", 1_000, bounds).await
}

/// 10,000 of them.
pub async fn many_schedules(options: &BenchOptions) -> Result<Vec<Figure>, String> {
    let bounds = Bounds {
        p99: Some(50.0),
        max: Some(1_000.0),
        ..Bounds::default()
    };
    schedules(options, "schedules-10000", 10_000, bounds).await
}

async fn schedules(
    options: &BenchOptions,
    bench: &'static str,
    count: usize,
    bounds: Bounds,
) -> Result<Vec<Figure>, String> {
    let count = count.min(options.jobs);
    let seconds = (options.jobs / count.max(1)).clamp(1, SECONDS_MAX);
    let mut rig = Rig::start(options).await?;
    rig.start_worker(ROOM_FOR_ALL).await?;
    let tenant = Name::new("default").map_err(|error| error.to_string())?;
    // All are there before the first is due.
    let starts_at = StoreTime::from_secs(rig.node.gateway.now().secs() + 4 + count as i64 / 1_000);
    let spec = every_second(starts_at, seconds as u64, stamp_spec()?);
    let map = rig.node.gateway.shard_map();
    let calls = (0..count).map(|n| {
        let name = Name::new(&format!("bench-{n}")).expect("letters, digits and a dash");
        let shard = map.shard_of(Slot::of_schedule(&tenant, &name));
        let create = ScheduleRequest::Create {
            spec: Box::new(spec.clone()),
            paused: false,
        };
        let request = ShardRequest::Schedule((tenant.clone(), name), create);
        rig.node.gateway.call(shard, request)
    });
    try_join_all(calls).await.map_err(|refusal| refusal.to_string())?;
    finish(rig, bench, count * seconds, bounds).await
}

/// Fires each second from `starts_at` on, `count` times.
pub fn every_second(starts_at: StoreTime, count: u64, job: Arc<JobSpec>) -> ScheduleSpec {
    ScheduleSpec {
        rule: Rule::Interval {
            every: Span::from_secs(1),
            anchor: starts_at,
            zone: "UTC".into(),
        },
        starts_at: Some(starts_at),
        ends_at: None,
        count_max: Some(count),
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

/// Waits for the attempts, stops the rig.
async fn finish(rig: Rig, bench: &'static str, count: usize, bounds: Bounds) -> Result<Vec<Figure>, String> {
    let began = rig.mono();
    while rig.late.count() < count {
        rig.clock.sleep(Span::from_millis(20)).await;
        if rig.mono().since(began) > PATIENCE {
            let (late, seconds) = (rig.late.count(), PATIENCE.to_std().as_secs());
            return Err(format!("only {late} of {count} attempts began within {seconds} s"));
        }
    }
    let figures = percentiles(bench, rig.late.take(), bounds);
    rig.stop().await;
    Ok(figures)
}

fn percentiles(bench: &'static str, mut late: Vec<u64>, bounds: Bounds) -> Vec<Figure> {
    late.sort_unstable();
    let at = |share: f64| {
        let place = ((late.len() as f64 * share) as usize).min(late.len().saturating_sub(1));
        late.get(place).copied().unwrap_or(0) as f64 / 1_000.0
    };
    let figure = |name, share, bound: Option<f64>| Figure {
        target: bound.map(Target::AtMost),
        ..Figure::new(bench, name, at(share), "ms")
    };
    vec![
        figure("p50", 0.5, bounds.p50),
        figure("p99", 0.99, bounds.p99),
        figure("max", 1.0, bounds.max),
    ]
}
