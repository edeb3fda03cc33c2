//! Drain: due no-op jobs, each durably granted, run and durably completed.
//!
//! Owns: the loop. The jobs are stored before the worker starts. Next: `floor.rs`.

use crate::bench::create::create_batch;
use crate::bench::rig::Rig;
use crate::bench::{BenchOptions, Figure, rate};
use fencepost_core::limits::{BATCH_JOBS_MAX, WORKER_SLOTS_MAX};
use fencepost_core::time::Span;

pub async fn run(options: &BenchOptions) -> Result<Vec<Figure>, String> {
    let rig = Rig::start(options).await?;
    Ok(vec![drain_due(rig, options.jobs).await?])
}

/// Stores `jobs` due jobs, starts the worker, measures until all have ended.
pub async fn drain_due(mut rig: Rig, jobs: usize) -> Result<Figure, String> {
    let rounds = jobs.div_ceil(BATCH_JOBS_MAX);
    for _ in 0..rounds {
        create_batch(&rig, BATCH_JOBS_MAX, None).await?;
    }
    let jobs = rounds * BATCH_JOBS_MAX;
    let began = rig.mono();
    rig.node
        .start_worker(WORKER_SLOTS_MAX / 8)
        .await
        .map_err(|error| error.to_string())?;
    while rig.ended.count() < jobs {
        rig.clock.sleep(Span::from_millis(1)).await;
        if rig.mono().since(began) > Span::from_secs(120) {
            return Err(format!(
                "only {} of {jobs} jobs ended within two minutes",
                rig.ended.count()
            ));
        }
    }
    let took = rig.mono().since(began).to_std();
    rig.stop().await;
    Ok(rate("drain", jobs, took))
}
