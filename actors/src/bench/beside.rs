//! A rate beside its floor: the floor is measured right before and right after, and the ratio is to the mean.
//!
//! Owns: the turns. Must never: compare figures of two runs. Next: `floor.rs`, `disk.rs`.

use crate::bench::BenchOptions;
use crate::bench::disk::{SYNC_UNIT, sync_rate};
use crate::bench::figure::{Figure, Target, mean};
use crate::bench::floor::{Kind, rate_of};

/// Measures floor, bench, floor.
pub async fn beside_floor(
    options: &BenchOptions,
    (bench, kind, target): (&'static str, Kind, f64),
    measure: impl Future<Output = Result<f64, String>>,
) -> Result<Vec<Figure>, String> {
    let before = (sync_rate(options)?, rate_of(options, kind)?);
    let rate = measure.await?;
    let after = (sync_rate(options)?, rate_of(options, kind)?);
    let (sync, floor) = (mean(before.0, after.0), mean(before.1, after.1));
    Ok(vec![
        Figure::new(bench, "rate", rate, "jobs/s"),
        Figure::new(bench, "floor", floor, "jobs/s"),
        Figure::new(bench, "ratio", rate / floor, "of the floor").against(Target::AtLeast(target)),
        Figure::new(bench, "sync", sync, SYNC_UNIT),
    ])
}
