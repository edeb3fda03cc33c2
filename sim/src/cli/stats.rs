//! `stats`: what the catalogue holds.
//!
//! Owns: counting it from the lists themselves. Must never: count what nothing runs. Next: `../bugs.rs`, `floors.rs`.

use super::PASS;
use super::floors::FLOORS;
use super::report::say;
use crate::bugs::PlantedBug;
use crate::own;
use crate::report::promises::promise;
use crate::without::FAMILIES;
use std::collections::BTreeMap;
use std::path::Path;

/// Prints the counts.
pub fn stats() -> u8 {
    let folder = match own::names() {
        [] => concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios"),
        _ => "scenarios",
    };
    say(&text(&scenarios(Path::new(folder))));
    PASS
}

fn text(scenarios: &BTreeMap<String, usize>) -> String {
    let mut lines = Vec::new();
    let bugs: Vec<PlantedBug> = PlantedBug::all().filter(|bug| !bug.is_canary()).collect();
    let checkers: Vec<&str> = fencepost_history::checkers::names().collect();
    lines.push(format!("checkers: {}", checkers.len()));
    for checker in checkers {
        let proved = bugs.iter().filter(|bug| bug.checker() == checker).count();
        lines.push(format!("  {checker:<18} {proved} planted bugs   {}", promise(checker)));
    }
    lines.push(format!("planted bugs: {}", bugs.len()));
    for bug in &bugs {
        let (name, place, checker) = (bug.name(), bug.place(), bug.checker());
        lines.push(format!(
            "  {name:<28} in the {place}, found by {checker} within {} seeds",
            bug.seeds_max()
        ));
    }
    let canaries: Vec<&str> = PlantedBug::all()
        .filter(|bug| bug.is_canary())
        .map(PlantedBug::name)
        .collect();
    lines.push(format!("canaries: {} ({})", canaries.len(), canaries.join(", ")));
    let count = |is: fn(&str) -> bool| FLOORS.iter().filter(|(what, _)| is(what)).count();
    lines.push(format!(
        "floors of coverage: {} faults, {} operations, {} states",
        count(|what| !what.contains(':')),
        count(|what| what.starts_with("op:")),
        count(|what| what.starts_with("seen:"))
    ));
    lines.push(format!(
        "families that can be left out as a whole: {}",
        FAMILIES.join(", ")
    ));
    if !own::names().is_empty() {
        lines.push(format!("handlers: {}", own::names().join(", ")));
    }
    let told: Vec<String> = scenarios
        .iter()
        .map(|(family, count)| format!("{family} {count}"))
        .collect();
    let all: usize = scenarios.values().sum();
    lines.push(match all {
        0 => "scenario files: none; stories are drawn from seeds".to_owned(),
        _ => format!("scenario files: {all} ({})", told.join(", ")),
    });
    lines.join("\n")
}

/// Files by family.
fn scenarios(root: &Path) -> BTreeMap<String, usize> {
    let entries = |path: &Path| {
        std::fs::read_dir(path)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
    };
    let mut counts = BTreeMap::new();
    let is_scenario = |path: &std::path::PathBuf| path.extension().is_some_and(|ext| ext == "toml");
    let alone = entries(root).filter(is_scenario).count();
    if alone > 0 {
        counts.insert("without a family".to_owned(), alone);
    }
    for family in entries(root).filter(|path| path.is_dir()) {
        let count = entries(&family).filter(is_scenario).count();
        let name = family.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if count > 0 {
            counts.insert(name, count);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_checker_and_every_bug_is_counted() {
        let told = text(&BTreeMap::from([("faults".to_owned(), 3)]));
        for bug in PlantedBug::all() {
            assert!(told.contains(bug.name()), "{told}");
        }
        assert!(told.contains("scenario files: 3 (faults 3)"), "{told}");
    }
}
