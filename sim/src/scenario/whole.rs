//! What must fit together in a scenario file beyond each key by itself.
//!
//! Owns: roles that have no machine, faults after the end, workloads that need another. Must never: read text.
//! Next: `plan.rs`.

use super::Scenario;
use super::keys::{LINKS, OVER_MAX};
use super::reader::{Fields, Reader};
use fencepost_history::zones::{change_of, changes_clocks};

/// Says all that does not fit.
pub fn check(scenario: &Scenario, reader: &mut Reader) {
    nodes(scenario, reader);
    workloads(scenario, reader);
    for fault in &scenario.faults {
        role(scenario, fault, reader);
        time(scenario, fault, reader);
    }
}

/// How many machines of a role there are at most.
fn most(scenario: &Scenario, role: &str) -> u64 {
    let nodes = scenario.topology.section("nodes");
    let count = nodes.and_then(|nodes| nodes.count(role));
    count.map_or(0, |(_, most)| most)
}

fn nodes(scenario: &Scenario, reader: &mut Reader) {
    let Some(nodes) = scenario.topology.section("nodes") else {
        return;
    };
    let has_store = nodes.count("store").is_some_and(|(least, _)| least > 0);
    let is_alone = most(scenario, "scheduler") == 1 && most(scenario, "worker") == 0;
    if !has_store && !is_alone {
        let hint = "write store = 1; without it one scheduler has the store on its own machine".to_owned();
        let what = "several machines need a store that all of them reach";
        reader.wrong_with(scenario.topology.span_of("nodes"), what, "here", Some(hint));
    }
    let works = scenario.topology.switch("schedulers_work");
    if works == Some(false) && nodes.count("worker").is_none_or(|(least, _)| least == 0) {
        let what = "nobody works: no worker, and schedulers_work is false";
        let hint = "write worker = 1 in nodes".to_owned();
        reader.wrong_with(scenario.topology.span_of("schedulers_work"), what, "here", Some(hint));
    }
}

fn workloads(scenario: &Scenario, reader: &mut Reader) {
    let has = |kind: &str| scenario.workloads.iter().any(|workload| workload.kind == kind);
    if scenario.workloads.is_empty() {
        let hint = "write [[workload]] with kind = \"one-shot-jobs\", count = 20, over = \"30s\"".to_owned();
        reader.wrong_with(0..0, "there is no workload", "in this file", Some(hint));
    }
    for workload in &scenario.workloads {
        let needs = match workload.kind {
            "cancels" => Some("one-shot-jobs"),
            "edits" => Some("schedules"),
            _ => None,
        };
        if let Some(needed) = needs.filter(|needed| !has(needed)) {
            let what = format!("{} need a workload of kind {needed}", workload.kind);
            reader.wrong(workload.span.clone(), what, "here");
        }
        if workload.has("cron") && workload.has("every") {
            let what = "a schedule has cron or every, not both";
            reader.wrong(workload.span_of("every"), what, "here");
        }
        handler(workload, reader);
        remote(scenario, workload, reader);
        zone(scenario, workload, reader);
    }
}

/// What jobs do: a handler's work, or a call of the target.
fn handler(workload: &Fields, reader: &mut Reader) {
    match (workload.has("handler"), workload.has("effect"), workload.has("payload")) {
        (true, true, _) => {
            let hint = "what a handler does is its own; leave effect out".to_owned();
            let what = "jobs have handler or effect, not both";
            reader.wrong_with(workload.span_of("effect"), what, "here", Some(hint));
        }
        (false, _, true) => {
            let hint = "name the handler that reads it".to_owned();
            let what = "payload needs a handler";
            reader.wrong_with(workload.span_of("payload"), what, "here", Some(hint));
        }
        _ => {}
    }
}

/// Who does remote jobs.
fn remote(scenario: &Scenario, workload: &Fields, reader: &mut Reader) {
    if workload.switch("remote") != Some(true) {
        if workload.has("works") {
            let what = "only workers over HTTP work before they call the target";
            let hint = "write remote = true, or takes for how long the target works".to_owned();
            reader.wrong_with(workload.span_of("works"), what, "here", Some(hint));
        }
        return;
    }
    if most(scenario, "remote") == 0 {
        let hint = "write remote = 2 in nodes".to_owned();
        let what = "no node does remote jobs itself, and there is no worker over HTTP";
        reader.wrong_with(workload.span_of("remote"), what, "here", Some(hint));
    }
    if workload.has("handler") {
        let hint = "handlers run in the product's own workers; leave one of the two out".to_owned();
        let what = "jobs have handler or are remote, not both";
        reader.wrong_with(workload.span_of("remote"), what, "here", Some(hint));
    }
}

/// The checkers know a zone's clocks only around the change that a run begins before.
fn zone(scenario: &Scenario, workload: &Fields, reader: &mut Reader) {
    let starts = scenario.topology.words("starts");
    for zone in workload.words("tz").iter().filter(|zone| changes_clocks(zone)) {
        let fits = |start: &&str| change_of(start).is_some_and(|change| change.name == *zone);
        if starts.is_empty() || !starts.iter().all(fits) {
            let what = format!("clocks change in {zone}, and the run does not begin just before that");
            let hint = "name a change of this zone with starts in [topology], or leave tz out".to_owned();
            reader.wrong_with(workload.span_of("tz"), what, "here", Some(hint));
        }
    }
}

fn role(scenario: &Scenario, fault: &Fields, reader: &mut Reader) {
    for key in ["role", "from"] {
        for role in fault.words(key).iter().filter(|role| **role != "target") {
            if most(scenario, role) == 0 {
                let hint = format!("write {role} = 1 in nodes, or name another role");
                let what = format!("there is no machine of role {role}");
                reader.wrong_with(fault.span_of(key), what, "here", Some(hint));
            }
        }
    }
    let is_apart = most(scenario, "store") > 0;
    if LINKS.contains(&fault.kind) && !is_apart {
        let what = "one machine has no connections with others";
        let hint = "write store = 1 in nodes".to_owned();
        reader.wrong_with(fault.span_of("kind"), what, "here", Some(hint));
    }
    if fault.kind == "drift" && !is_apart && fault.words("role").contains(&"scheduler") {
        let what = "the store's machine measures time for all, and the scheduler is it";
        let hint = "write store = 1 in nodes".to_owned();
        reader.wrong_with(fault.span_of("role"), what, "here", Some(hint));
    }
    if fault.kind == "power" && fault.words("role").iter().any(|role| is_apart != (*role == "store")) {
        let what = "a machine without a disk of the store loses nothing by its power";
        let hint = "name role = \"store\", or write kind = \"crash\"".to_owned();
        reader.wrong_with(fault.span_of("role"), what, "here", Some(hint));
    }
}

fn time(scenario: &Scenario, fault: &Fields, reader: &mut Reader) {
    let ends = |workload: &Fields| workload.length("over").and_then(|over| over.micros());
    let over = scenario.workloads.iter().filter_map(ends).map(|(low, _)| low).max();
    let over = over.unwrap_or(OVER_MAX);
    let begins = fault.length("after").and_then(|after| after.micros());
    if let Some((low, _)) = begins.filter(|(low, _)| *low >= over) {
        let what = format!(
            "the fault begins after {} s, when the workloads are over ({} s)",
            low / 1_000_000,
            over / 1_000_000
        );
        let hint = "let it begin earlier, or let a workload go on for longer with over".to_owned();
        reader.wrong_with(fault.span_of("after"), what, "here", Some(hint));
    }
}
