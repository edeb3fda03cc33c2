//! Scenario files on the command line: linted, run seed by seed, and held to what they expect of a set of runs.
//!
//! Owns: that a fault never felt, a state never seen and a checker that never judged fail a set. Must never: run a
//! scenario that has a mistake. Next: `workers.rs`, `../scenario/`.

use super::arguments::Seeds;
use super::report::{complain, say};
use super::workers::{Ran, compare, run_all, run_child, totals};
use super::{NOT_COVERED, PASS, USAGE, VIOLATION};
use crate::scenario::{Plan, Scenario, files};
use std::collections::BTreeMap;

/// Every scenario that these paths name; all mistakes of all files are told.
pub fn load(paths: &[String]) -> Result<Vec<Scenario>, u8> {
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

/// `run` with several seeds, or several files.
pub fn run(seeds: &Seeds, scenarios: &[Scenario]) -> u8 {
    let mut worst = PASS;
    for scenario in scenarios {
        let code = run_scenario(seeds, scenario);
        // A violation says more than what was not covered.
        worst = match (worst, code) {
            (VIOLATION, _) | (_, VIOLATION) => VIOLATION,
            (before, PASS) => before,
            (_, code) => code,
        };
    }
    worst
}

fn run_scenario(seeds: &Seeds, scenario: &Scenario) -> u8 {
    let mut options = vec![scenario.name.as_str()];
    options.extend(seeds.bug.iter().flat_map(|bug| ["--plant", bug.as_str()]));
    let all = run_all(
        seeds,
        |seed| run_child(seed, &options),
        |ran: &Ran| say(ran.output.trim_end()),
    );
    let failed: Vec<u64> = all.iter().filter(|ran| !ran.is_content).map(|ran| ran.seed).collect();
    let totals = totals(&all);
    let name = &scenario.name;
    let told: Vec<String> = totals.iter().map(|(what, count)| format!("{what}={count}")).collect();
    say(&format!("{name}: in all: {}", told.join(" ")));
    let passed = all.len() - failed.len();
    say(&format!(
        "{name}: {passed} seeds passed, {} failed: {failed:?}",
        failed.len()
    ));
    if !failed.is_empty() {
        return VIOLATION;
    }
    let plan = scenario.draw(seeds.from, None).plan;
    let missing = plan.map_or_else(Vec::new, |plan| missing(&totals, &plan));
    if seeds.is_set && !missing.is_empty() {
        complain(&format!(
            "{name}: not covered in {} seeds: {}",
            all.len(),
            missing.join(", ")
        ));
        return NOT_COVERED;
    }
    PASS
}

/// What a set of runs must have felt, seen and judged, and has not.
fn missing(totals: &BTreeMap<&str, u64>, plan: &Plan) -> Vec<String> {
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
    let idle = judging.iter().filter(|name| !has(&format!("judged:{name}")));
    unfelt
        .map(|fault| format!("fault {} ({}) was never felt", fault.number, fault.kind))
        .chain(unseen.map(|state| format!("{state} was never seen")))
        .chain(idle.map(|name| format!("{name} judged nothing")))
        .collect()
}

/// `determinism` of scenarios.
pub fn determinism(seeds: &Seeds, scenarios: &[Scenario]) -> u8 {
    let mut worst = PASS;
    for scenario in scenarios {
        say(&scenario.name);
        let one = Seeds {
            paths: vec![scenario.name.clone()],
            ..seeds.clone()
        };
        worst = worst.max(compare(&one));
    }
    worst
}
