//! Drain: due no-op jobs, each durably granted, run and durably completed.
//!
//! Owns: the loop. The jobs are stored before the worker starts. Next: `beside.rs`.

use crate::bench::BenchOptions;
use crate::bench::beside::beside_floor;
use crate::bench::create::create_batch;
use crate::bench::figure::{Figure, per_second};
use crate::bench::floor::Kind;
use crate::bench::rig::Rig;
use fencepost_core::limits::{BATCH_JOBS_MAX, WORKER_SLOTS_MAX};
use fencepost_core::time::Span;

/// Jobs that the worker runs at once.
pub const SLOTS: u32 = WORKER_SLOTS_MAX / 8;
/// Longest drain that is waited for.
pub const PATIENCE: Span = Span::from_secs(120);

/// In a new store.
pub async fn run(options: &BenchOptions) -> Result<Vec<Figure>, String> {
    let measure = drain_fresh(options, options.jobs);
    beside_floor(options, ("drain", Kind::Drain, 0.6), measure).await
}

/// Jobs per second in a new store.
pub async fn drain_fresh(options: &BenchOptions, jobs: usize) -> Result<f64, String> {
    let mut rig = Rig::start(options).await?;
    let rate = drain_due(&mut rig, jobs).await?;
    rig.stop().await;
    Ok(rate)
}

/// Stores `jobs` due jobs, starts the rig's worker, measures until all have ended: jobs per second.
pub async fn drain_due(rig: &mut Rig, jobs: usize) -> Result<f64, String> {
    let mut left = jobs;
    while left > 0 {
        let count = left.min(BATCH_JOBS_MAX);
        create_batch(rig, count, None).await?;
        left -= count;
    }
    let began = rig.mono();
    rig.start_worker(SLOTS).await?;
    rig.await_ended(jobs, PATIENCE).await?;
    Ok(per_second(jobs, rig.mono().since(began).to_std()))
}
