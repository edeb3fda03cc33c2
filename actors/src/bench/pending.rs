//! What pending jobs cost: memory, disk, processor at rest, start-up, and the drain of others among them.
//!
//! Owns: jobs due in ten years, 10^4, 10^5 and 10^6 of them (fewer with a smaller `--jobs`). Memory, start-up
//! and rest are those of a new server process on the folder; the process that stored the jobs tells nothing.
//! Next: `child.rs`, `drain.rs`.

use crate::bench::child::ServerProcess;
use crate::bench::create::create_batch;
use crate::bench::drain::drain_due;
use crate::bench::figure::{Figure, Target, mean};
use crate::bench::late::every_second;
use crate::bench::rig::Rig;
use crate::bench::{BenchOptions, Report};
use crate::clock::{Clock, SystemClock};
use crate::gateway::{Gateway, ScheduleRequest, ShardRequest};
use fencepost_core::ids::Slot;
use fencepost_core::limits::BATCH_JOBS_MAX;
use fencepost_core::name::Name;
use fencepost_core::time::{Span, StoreTime};
use futures_util::future::try_join_all;
use std::path::{Path, PathBuf};

/// Most pending jobs.
const MANY: usize = 1_000_000;
/// Pending jobs for each of `--jobs`, so that the usual number gives the most.
const PENDING_PER_JOB: usize = 10;
const DUE: usize = 50_000;
const AT_ROUND: usize = 8;
const TEN_YEARS: Span = Span::from_secs(10 * 365 * 86_400);
/// The schedule of one occurrence that is due while no server runs.
const FIRST: &str = "first";
/// Until it is due.
const UNTIL_DUE: Span = Span::from_secs(3);
/// What a start leaves to do is over by then.
const SETTLE: Span = Span::from_secs(2);
/// A shorter look for a small run.
const SMALL: usize = 10_000;

/// A store with pending jobs, and the memory of a server on it.
struct Store {
    pending: usize,
    folder: PathBuf,
    memory: f64,
}

/// Each size on its own, then drains among the fewest and the most in turns.
pub async fn run(options: &BenchOptions, report: &mut Report<'_>) -> Result<(), String> {
    let most = MANY.min(options.jobs.saturating_mul(PENDING_PER_JOB));
    let few = measure(options, most / 100, report).await?;
    let some = measure(options, most / 10, report).await?;
    remove(&some);
    let many = measure(options, most, report).await?;
    let more = figure(many.pending, "memory-more-than-fewest", many.memory - few.memory, "MiB");
    report.tell([more.against(Target::AtMost(16.0))])?;
    report.tell(compare(options, &few, &many).await?)?;
    remove(&few);
    remove(&many);
    Ok(())
}

fn remove(store: &Store) {
    let _ = std::fs::remove_dir_all(&store.folder);
}

fn figure(pending: usize, name: &'static str, value: f64, unit: &'static str) -> Figure {
    Figure::new(format!("pending-{pending}"), name, value, unit)
}

async fn measure(options: &BenchOptions, pending: usize, report: &mut Report<'_>) -> Result<Store, String> {
    let rig = Rig::start(options).await?;
    store_pending(&rig, pending).await?;
    let due_at = store_first(&rig).await?;
    let folder = rig.close().await;
    let (figures, memory) = observe(options, &folder, pending, due_at).await?;
    report.tell(figures)?;
    let rig = Rig::open(options, folder).await?;
    rig.store()?.compact().map_err(|error| error.to_string())?;
    let disk = rig.store()?.disk_bytes() as f64 / pending as f64;
    report.tell([figure(pending, "disk", disk, "bytes/job").against(Target::AtMost(200.0))])?;
    Ok(Store {
        pending,
        folder: rig.close().await,
        memory,
    })
}

/// Starts a server on the folder, whose journal is as the last process left it.
async fn observe(
    options: &BenchOptions,
    folder: &Path,
    pending: usize,
    due_at: StoreTime,
) -> Result<(Vec<Figure>, f64), String> {
    let clock = SystemClock::new();
    let left = due_at.since(StoreTime(clock.wall())) + Span::from_millis(100);
    clock.sleep(left).await;
    let mut server = ServerProcess::start(folder, options.lanes).await?;
    let fired = server.first_fire(FIRST).await?;
    clock.sleep(SETTLE).await;
    let rest = Span::from_secs(if options.jobs < SMALL { 1 } else { 10 });
    let share = server.share_of_a_core(rest).await?;
    let (memory, most) = server.memory()?;
    let ready = server.until_ready;
    server.stop()?;
    let millis = |span: Span| span.0 as f64 / 1_000.0;
    let figures = vec![
        figure(pending, "start-to-ready", millis(ready), "ms"),
        figure(pending, "start-to-first-fire", millis(fired), "ms").against(Target::AtMost(1_000.0)),
        figure(pending, "processor-at-rest", share * 100.0, "% of a core").against(Target::AtMost(0.5)),
        figure(pending, "memory", memory, "MiB").against(Target::AtMost(64.0)),
        figure(pending, "memory-most", most, "MiB"),
    ];
    Ok((figures, memory))
}

/// Few, many, few, many.
async fn compare(options: &BenchOptions, few: &Store, many: &Store) -> Result<Vec<Figure>, String> {
    let due = DUE.min(options.jobs);
    let first = (
        drain_among(options, few, due).await?,
        drain_among(options, many, due).await?,
    );
    let second = (
        drain_among(options, few, due).await?,
        drain_among(options, many, due).await?,
    );
    let (low, high) = (mean(first.0, second.0), mean(first.1, second.1));
    let name = "drain-among";
    Ok(vec![
        figure(few.pending, name, low, "jobs/s"),
        figure(many.pending, name, high, "jobs/s"),
        figure(many.pending, "drain-ratio", high / low, "of the drain among the fewest").against(Target::AtLeast(0.9)),
    ])
}

async fn drain_among(options: &BenchOptions, store: &Store, due: usize) -> Result<f64, String> {
    let mut rig = Rig::open(options, store.folder.clone()).await?;
    let rate = drain_due(&mut rig, due).await?;
    rig.close().await;
    Ok(rate)
}

async fn store_pending(rig: &Rig, pending: usize) -> Result<(), String> {
    let due_at = Some(rig.node.gateway.now() + TEN_YEARS);
    let mut left = pending;
    while left > 0 {
        let round: Vec<usize> = (0..AT_ROUND)
            .map(|n| left.saturating_sub(n * BATCH_JOBS_MAX).min(BATCH_JOBS_MAX))
            .filter(|count| *count > 0)
            .collect();
        try_join_all(round.iter().map(|count| create_batch(rig, *count, due_at))).await?;
        left -= round.iter().sum::<usize>();
    }
    Ok(())
}

/// Makes the schedule whose one occurrence the next process fires.
async fn store_first(rig: &Rig) -> Result<StoreTime, String> {
    let name = |text| Name::new(text).map_err(|error| error.to_string());
    let (tenant, first) = (name("default")?, name(FIRST)?);
    let due_at = rig.node.gateway.now() + UNTIL_DUE;
    let shard = rig
        .node
        .gateway
        .shard_map()
        .shard_of(Slot::of_schedule(&tenant, &first));
    let create = ScheduleRequest::Create {
        spec: Box::new(every_second(due_at, 1, rig.spec.clone())),
        paused: false,
    };
    let request = ShardRequest::Schedule((tenant, first), create);
    let made = rig.node.gateway.call(shard, request).await;
    made.map(|_| due_at).map_err(|refusal| refusal.to_string())
}
