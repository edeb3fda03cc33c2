//! A used store: the drain after many jobs have passed through, beside the drain of a new store.
//!
//! Owns: passing jobs through (made, run, ended, kept as finished) and the turns of the two drains. Both
//! begin with a start, so that neither store has an advantage in memory; whether a running process slows
//! down shows in the rates of its first and its last tenth. Next: `drain.rs`.

use crate::bench::create::{BATCH_CLIENTS, create_batch};
use crate::bench::drain::{SLOTS, drain_due, drain_fresh};
use crate::bench::figure::{Figure, Target, mean, per_second};
use crate::bench::rig::Rig;
use crate::bench::{BenchOptions, Report};
use fencepost_core::limits::BATCH_JOBS_MAX;
use fencepost_core::time::{Monotonic, Span};
use futures_util::future::try_join_all;
use std::cell::Cell;
use std::path::Path;

/// Jobs of one drain.
const DUE: usize = 50_000;
/// Jobs made and not yet ended, at most.
const OPEN_MAX: usize = 40_000;
/// Time to pass jobs through: five minutes and 100 µs a job. What passed until then is what counts.
const PATIENCE: Span = Span::from_secs(300);
const PATIENCE_PER_JOB: Span = Span(100);

/// New, used, new, used.
pub async fn run(options: &BenchOptions, report: &mut Report<'_>) -> Result<(), String> {
    let figure = |name, value, unit| Figure::new("passed", name, value, unit);
    let rig = Rig::start(options).await?;
    let passage = pass_through(rig, options.passed).await?;
    report.tell([figure("jobs", passage.jobs as f64, "jobs")])?;
    for (name, rate) in ["pass-rate-first-tenth", "pass-rate-last-tenth"]
        .into_iter()
        .zip(passage.rates)
    {
        report.tell(rate.map(|rate| figure(name, rate, "jobs/s")))?;
    }
    let due = DUE.min(options.jobs);
    let mut rates = [(0.0, 0.0); 2];
    for turn in &mut rates {
        turn.0 = drain_fresh(options, due).await?;
        turn.1 = drain_used(options, &passage.folder, due).await?;
    }
    let _ = std::fs::remove_dir_all(&passage.folder);
    let [first, second] = rates;
    let (fresh, used) = (mean(first.0, second.0), mean(first.1, second.1));
    report.tell([
        figure("drain-new", fresh, "jobs/s"),
        figure("drain-used", used, "jobs/s"),
        figure("ratio", used / fresh, "of a new store's").against(Target::AtLeast(0.9)),
    ])
}

async fn drain_used(options: &BenchOptions, folder: &Path, due: usize) -> Result<f64, String> {
    let mut rig = Rig::open(options, folder.to_path_buf()).await?;
    let rate = drain_due(&mut rig, due).await?;
    rig.close().await;
    Ok(rate)
}

/// What passed through.
struct Passage {
    folder: std::path::PathBuf,
    jobs: usize,
    /// Of the first and of the last tenth, where they were seen.
    rates: [Option<f64>; 2],
}

async fn pass_through(mut rig: Rig, count: usize) -> Result<Passage, String> {
    rig.start_worker(SLOTS).await?;
    let patience = PATIENCE + Span(PATIENCE_PER_JOB.0 * count as u64);
    let until = rig.mono() + patience;
    let made = Cell::new(0);
    let clients = try_join_all((0..BATCH_CLIENTS).map(|_| feed(&rig, &made, count, until)));
    let (fed, rates) = futures_util::future::join(clients, tenths(&rig, count, until)).await;
    fed?;
    rig.await_ended(made.get(), patience).await?;
    Ok(Passage {
        folder: rig.close().await,
        jobs: made.get(),
        rates,
    })
}

/// Makes batches while there is room, until enough were made or the time is over.
async fn feed(rig: &Rig, made: &Cell<usize>, count: usize, until: Monotonic) -> Result<(), String> {
    while made.get() < count && rig.mono() < until {
        if made.get() >= rig.ended.count() + OPEN_MAX {
            rig.clock.sleep(Span::from_millis(1)).await;
            continue;
        }
        let batch = BATCH_JOBS_MAX.min(count - made.get());
        made.set(made.get() + batch);
        create_batch(rig, batch, None).await?;
    }
    Ok(())
}

/// Watches how fast jobs end in the first and in the last tenth.
async fn tenths(rig: &Rig, count: usize, until: Monotonic) -> [Option<f64>; 2] {
    let tenth = (count / 10).max(1);
    let began = (rig.mono(), rig.ended.count());
    let first = reach(rig, tenth, until).await;
    let before = reach(rig, count - tenth, until).await;
    let last = reach(rig, count, until).await;
    [rate(tenth, began, first), rate(tenth, before, last)]
}

/// When somebody looked, and how many had ended by then.
type Look = (Monotonic, usize);

/// How fast jobs ended between two looks; nothing where most of the tenth lies outside of them, as with few jobs.
fn rate(tenth: usize, from: Look, to: Look) -> Option<f64> {
    let ended = to.1.saturating_sub(from.1);
    (ended > tenth / 2).then(|| per_second(ended, to.0.since(from.0).to_std()))
}

/// The instant at which so many have ended (or the time is over), and how many had.
async fn reach(rig: &Rig, count: usize, until: Monotonic) -> Look {
    while rig.ended.count() < count && rig.mono() < until {
        rig.clock.sleep(Span::from_millis(1)).await;
    }
    (rig.mono(), rig.ended.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_that_passed_between_two_looks_has_no_rate() {
        let at = |millis: u64, ended: usize| (Monotonic(millis * 1_000), ended);
        assert_eq!(
            rate(100, at(5, 1_000), at(5, 1_000)),
            None,
            "all ended at the first look"
        );
        assert_eq!(
            rate(100, at(5, 960), at(6, 1_000)),
            None,
            "the better part was not seen"
        );
        assert_eq!(rate(100, at(0, 900), at(100, 1_000)), Some(1_000.0));
        assert_eq!(rate(1, at(0, 0), at(1_000, 1)), Some(1.0));
    }
}
