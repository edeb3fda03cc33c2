//! Scenario files on the command line: linted, run seed by seed, and held to what they expect of a set of runs.
//!
//! Owns: that a fault never felt, a state never seen and a checker that never judged fail a set. Must never: run a
//! scenario that has a mistake. Next: `workers.rs`, `../scenario/`.

use super::arguments::Seeds;
use super::child::{Ran, run_child};
use super::report::{complain, say};
use super::workers::{compare, kept, run_all, story};
use super::{NOT_COVERED, PASS, USAGE, VIOLATION, outputs, single};
use crate::report::summary::{self, Set};
use crate::scenario::{Plan, Scenario, files};
use std::time::Instant;

/// Every scenario that these paths name; all mistakes of all files are told.
fn load(paths: &[String]) -> Result<Vec<Scenario>, u8> {
    let found = files::find(paths).map_err(|why| {
        complain(&format!("fencepost-sim: {why}"));
        USAGE
    })?;
    let mut scenarios = Vec::new();
    let mut mistakes = 0;
    for path in &found {
        match files::read(path) {
            Ok(scenario) => scenarios.push(scenario),
            Err(wrong) => {
                mistakes += wrong.count;
                complain(&format!("{wrong}\n"));
            }
        }
    }
    if mistakes > 0 {
        let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        complain(&format!(
            "{} in {}",
            plural(mistakes, "mistake"),
            plural(found.len(), "file")
        ));
        return Err(USAGE);
    }
    Ok(scenarios)
}

/// `lint`.
pub fn lint(paths: &[String]) -> u8 {
    match load(paths) {
        Ok(scenarios) => {
            say(&format!("{} scenarios, no mistake", scenarios.len()));
            PASS
        }
        Err(code) => code,
    }
}

/// `run` of scenario files: one seed of one file in this process.
pub fn run(seeds: &Seeds) -> u8 {
    if let Some(item) = seeds.without.items().find(|item| item.is_of_the_swarm()) {
        complain(&format!(
            "fencepost-sim: {item} is of the swarm: a scenario has none to leave out"
        ));
        return USAGE;
    }
    match load(&seeds.paths).as_deref() {
        Err(code) => *code,
        Ok([scenario]) if !seeds.is_set => single::run_one(&of_file(seeds, scenario), Some(scenario)),
        Ok(_) if seeds.trace.is_some() => {
            complain("fencepost-sim: --trace goes with one seed of one scenario");
            USAGE
        }
        Ok(scenarios) => run_set(seeds, scenarios),
    }
}

/// What was asked for, of one file.
fn of_file(seeds: &Seeds, scenario: &Scenario) -> Seeds {
    Seeds {
        paths: vec![scenario.name.clone()],
        ..seeds.clone()
    }
}

#[allow(clippy::disallowed_methods, reason = "real time, outside any simulation")]
fn run_set(seeds: &Seeds, scenarios: &[Scenario]) -> u8 {
    let started = Instant::now();
    let (mut all, mut below) = (Vec::new(), Vec::new());
    for scenario in scenarios {
        let ran = run_scenario(&of_file(seeds, scenario));
        let set = outputs::set(&ran, &[]);
        let (name, failed) = (&scenario.name, set.failed());
        let passed = ran.len() - failed.len();
        say(&format!(
            "{name}: {passed} seeds passed, {} failed: {failed:?}",
            failed.len()
        ));
        if seeds.is_set && seeds.bug.is_none() && seeds.without.is_empty() && failed.is_empty() {
            let plan = scenario.draw(seeds.from, None).plan;
            let missing = plan.map_or_else(Vec::new, |plan| missing(&set, &plan));
            below.extend(missing.into_iter().map(|what| format!("{name}: {what}")));
        }
        all.extend(ran);
    }
    let set = outputs::set(&all, &below);
    say(&summary::text(&set, started.elapsed()));
    let code = match (set.failed().is_empty(), below.is_empty()) {
        // A violation says more than what was not covered.
        (false, _) => VIOLATION,
        (true, true) => PASS,
        (true, false) => NOT_COVERED,
    };
    for what in &below {
        complain(&format!("not covered in {} seeds: {what}", seeds.count));
    }
    outputs::write(seeds, &all, &below, code)
}

fn run_scenario(seeds: &Seeds) -> Vec<Ran> {
    let options = kept(seeds);
    run_all(
        seeds,
        |seed| run_child(&story(seeds, seed), &options),
        |ran: &Ran| say(ran.output.trim_end()),
    )
}

/// What a set of runs must have felt, seen and judged, and has not.
fn missing(set: &Set, plan: &Plan) -> Vec<String> {
    let (totals, judged) = (set.felt(), set.evaluations());
    let has = |what: &str| totals.get(what).is_some_and(|count| *count > 0);
    let is_felt = |number: usize| {
        let start = format!("fault:{number}-");
        totals
            .iter()
            .any(|(what, count)| what.starts_with(&start) && *count > 0)
    };
    let unfelt = plan.faults.iter().filter(|fault| !is_felt(fault.number));
    let unseen = plan
        .sometimes
        .iter()
        .filter(|state| !has(&crate::scenario::states::counted(state)));
    let judging = plan.judging();
    let idle = judging
        .iter()
        .filter(|name| judged.get(**name).is_none_or(|count| *count == 0));
    unfelt
        .map(|fault| format!("fault {} ({}) was never felt", fault.number, fault.kind))
        .chain(unseen.map(|state| format!("{state} was never seen")))
        .chain(idle.map(|name| format!("{name} judged nothing")))
        .collect()
}

/// `determinism` of scenarios.
pub fn determinism(seeds: &Seeds) -> u8 {
    let scenarios = match load(&seeds.paths) {
        Ok(scenarios) => scenarios,
        Err(code) => return code,
    };
    let mut worst = PASS;
    for scenario in &scenarios {
        say(&scenario.name);
        worst = worst.max(compare(&of_file(seeds, scenario)));
    }
    worst
}
