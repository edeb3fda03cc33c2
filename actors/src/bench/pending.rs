//! What pending jobs cost: memory, disk, processor at rest, start-up, and the drain of others among them.
//!
//! Owns: jobs due in ten years, 10^4 and 10^6 of them (fewer with a smaller `--jobs`). Linux only, as it
//! reads `/proc`. Must never: compare memory of two processes. Next: `drain.rs`.

use crate::bench::create::create_batch;
use crate::bench::drain::drain_due;
use crate::bench::rig::Rig;
use crate::bench::{BenchOptions, Figure};
use crate::gateway::Gateway;
use fencepost_core::limits::BATCH_JOBS_MAX;
use fencepost_core::time::Span;
use futures_util::future::try_join_all;

const FEW: usize = 10_000;
const MANY: usize = 1_000_000;
const DUE: usize = 50_000;
const AT_ROUND: usize = 8;
const TEN_YEARS: Span = Span::from_secs(10 * 365 * 86_400);

/// Both sizes, the small one first: memory that was once used is not given back by every allocator.
pub async fn run(options: &BenchOptions) -> Result<Vec<Figure>, String> {
    let mut figures = Vec::new();
    let many = MANY.min(options.jobs.saturating_mul(10));
    figures.extend(measure(options, "pending-10000", FEW).await?);
    figures.extend(measure(options, "pending-1000000", many).await?);
    Ok(figures)
}

async fn measure(options: &BenchOptions, bench: &'static str, pending: usize) -> Result<Vec<Figure>, String> {
    let figure = |name, value, unit| Figure {
        bench,
        name,
        value,
        unit,
    };
    let rig = Rig::start(options).await?;
    store_pending(&rig, pending).await?;
    let jobs = pending.div_ceil(BATCH_JOBS_MAX * AT_ROUND) * BATCH_JOBS_MAX * AT_ROUND;
    let mut figures = vec![
        figure("jobs", jobs as f64, "jobs"),
        figure("memory", resident_mib(), "MiB"),
    ];
    rig.store()?.compact().map_err(|error| error.to_string())?;
    figures.push(figure(
        "disk",
        rig.store()?.disk_bytes() as f64 / jobs as f64,
        "bytes/job",
    ));
    let mut rig = rig.restart(options).await?;
    rig.node.start_worker(64).await.map_err(|error| error.to_string())?;
    create_batch(&rig, 1, None).await?;
    while rig.ended.count() == 0 {
        rig.clock.sleep(Span::from_millis(1)).await;
    }
    // The new rig's clock counts from its own start: closing the old store is not part of it.
    figures.push(figure("start-to-first-job", rig.mono().0 as f64 / 1_000.0, "ms"));
    figures.push(figure("processor-at-rest", at_rest(&rig).await * 100.0, "% of a core"));
    rig.stop().await;
    let rig = Rig::start(options).await?;
    store_pending(&rig, pending).await?;
    figures.push(Figure {
        bench,
        name: "drain-among",
        ..drain_due(rig, DUE.min(options.jobs)).await?
    });
    Ok(figures)
}

async fn store_pending(rig: &Rig, pending: usize) -> Result<(), String> {
    let due_at = rig.node.gateway.now() + TEN_YEARS;
    for _ in 0..pending.div_ceil(BATCH_JOBS_MAX * AT_ROUND) {
        try_join_all((0..AT_ROUND).map(|_| create_batch(rig, BATCH_JOBS_MAX, Some(due_at)))).await?;
    }
    Ok(())
}

/// Resident memory of this process, the benches' own part included.
fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap_or("0");
    let kib: f64 = line
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(0.0);
    kib / 1_024.0
}

/// Share of a core used over ten idle seconds.
async fn at_rest(rig: &Rig) -> f64 {
    let before = processor_ticks();
    rig.clock.sleep(Span::from_secs(10)).await;
    // The kernel counts in hundredths of a second.
    (processor_ticks() - before) / 100.0 / 10.0
}

fn processor_ticks() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let words: Vec<&str> = after_name.split_whitespace().collect();
    let word = |at: usize| words.get(at).and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0);
    word(11) + word(12)
}
