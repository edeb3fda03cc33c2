//! One seed in this process: its run, its bundle, its timeline.
//!
//! Owns: what is kept of it, also when it does not end. Must never: lose a failure. Next: `child.rs`, `../run.rs`.

use super::arguments::Seeds;
use super::child::{Left, Ran};
use super::report::{self, complain, say};
use super::{PASS, SEED_MAX, USAGE, VIOLATION, outputs};
use crate::bugs::PlantedBug;
use crate::options::Options;
use crate::report::program::Program;
use crate::report::record::{Record, Story};
use crate::report::{bundle, timeline};
use crate::run::{Found, Report, run_seed};
use crate::runtime::Watchdog;
use crate::scenario::Scenario;
use crate::trace::Trace;
use std::path::Path;
use std::time::Instant;

/// Runs one seed and tells of it.
#[allow(clippy::disallowed_methods, reason = "real time, outside the simulation")]
pub fn run_one(seeds: &Seeds, scenario: Option<&Scenario>) -> u8 {
    let started = Instant::now();
    let options = options_of(seeds, scenario);
    say(&format!("seed {}: {options}", seeds.from));
    let trace = Trace::new(keeps_trace(seeds));
    let watchdog = watch(seeds, &options, &trace);
    let ran = run_seed(options, &trace);
    drop(watchdog);
    if let Some(path) = &seeds.trace {
        let lines: Vec<String> = ran.all.iter().map(ToString::to_string).collect();
        if let Err(error) = std::fs::write(path, lines.join("\n")) {
            complain(&format!("fencepost-sim: the trace could not be written: {error}"));
            return USAGE;
        }
    }
    let wall_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let record = Record::of(&story_of(seeds), &ran, wall_ms);
    say(&report::of_run(seeds, &ran, &record));
    match keep(seeds, record) {
        Ok(left) => tell(seeds, left),
        Err(why) => {
            complain(&format!("fencepost-sim: {why}"));
            USAGE
        }
    }
}

/// What the seed draws, less what is left out.
fn options_of(seeds: &Seeds, scenario: Option<&Scenario>) -> Options {
    let bug = seeds.bug.as_deref().and_then(PlantedBug::named);
    let drawn = match scenario {
        Some(scenario) => scenario.draw(seeds.from, bug),
        None => Options::draw(seeds.from, bug),
    };
    drawn.leaving_out(seeds.without.clone())
}

/// What was asked for.
pub fn story_of(seeds: &Seeds) -> Story {
    Story {
        seed: seeds.from,
        scenario: seeds.paths.first().cloned(),
        plant: seeds.bug.clone(),
        without: seeds.without.to_string(),
    }
}

/// Where bundles go, unless none is wanted.
fn bundles(seeds: &Seeds) -> Option<&str> {
    let folder = seeds.bundles.as_deref().unwrap_or(bundle::FOLDER);
    Some(folder).filter(|folder| *folder != "none")
}

fn keeps_trace(seeds: &Seeds) -> bool {
    seeds.trace.is_some() || seeds.html.is_some() || bundles(seeds).is_some()
}

/// Whether a timeline of a run that passed is wanted: a child draws only failures.
fn draws_all(seeds: &Seeds) -> bool {
    seeds.record.is_none()
}

/// Writes bundle and timeline of a failure; what a parent wants to know.
fn keep(seeds: &Seeds, mut record: Record) -> Result<Left, String> {
    let mut place = None;
    if !record.is_content() {
        if let Some(folder) = bundles(seeds) {
            record.program = Program::this();
            let path = bundle::write_into(Path::new(folder), &record)?;
            place = Some(path.display().to_string());
        }
        let lines = report::of_failure(&record, place.as_deref());
        say(&lines);
    }
    if let Some(folder) = &seeds.html
        && (draws_all(seeds) || !record.is_content())
    {
        let path = timeline::write_into(Path::new(folder), &record)?;
        say(&format!("seed {}: timeline: {}", record.seed, path.display()));
    }
    record.trace = Vec::new();
    record.windows = Vec::new();
    record.intents.clear();
    record.ended = Vec::new();
    Ok(Left { record, bundle: place })
}

/// To the parent, or into the reports that were asked for.
fn tell(seeds: &Seeds, left: Left) -> u8 {
    let code = if left.record.is_content() { PASS } else { VIOLATION };
    if let Some(path) = &seeds.record {
        let text = serde_json::to_string(&left).unwrap_or_default();
        return match std::fs::write(path, text) {
            Ok(()) => code,
            Err(error) => {
                complain(&format!("fencepost-sim: {path} could not be written: {error}"));
                USAGE
            }
        };
    }
    let ran = Ran {
        seed: left.record.seed,
        output: String::new(),
        left,
    };
    outputs::write(seeds, &[ran], &[], code)
}

/// A run that takes too long by the real clock ends with its bundle, as far as it came.
fn watch(seeds: &Seeds, options: &Options, trace: &Trace) -> Watchdog {
    let (seeds, trace) = (seeds.clone(), trace.clone());
    let mut report = Report {
        options: options.to_string(),
        starts_at: options.starts_at,
        ..Report::default()
    };
    Watchdog::start(SEED_MAX, move || {
        let why = format!("no end after {} s of real time", SEED_MAX.as_secs());
        complain(&format!("seed {}: VIOLATION run: {why}", seeds.from));
        report.violations = vec![Found::in_run(why)];
        report.digest = trace.digest();
        report.simulated = trace.ends_at();
        report.all = trace.all();
        let wall_ms = u64::try_from(SEED_MAX.as_millis()).unwrap_or(u64::MAX);
        let record = Record::of(&story_of(&seeds), &report, wall_ms);
        if let Ok(left) = keep(&seeds, record) {
            tell(&seeds, left);
        }
        #[allow(
            clippy::disallowed_methods,
            reason = "the simulation cannot be asked to end any more"
        )]
        std::process::exit(i32::from(VIOLATION));
    })
}
