//! Many seeds: this program once more for each, several at a time.
//!
//! Owns: sets of children and what their ends mean. Must never: run a seed in this process. Next: `child.rs`.

use super::arguments::Seeds;
use super::child::{Ran, run_child};
use super::floors::FLOORS;
use super::report::{complain, say};
use super::{NOT_COVERED, NOT_DETERMINISTIC, PASS, USAGE, VIOLATION, outputs};
use crate::bugs::PlantedBug;
use crate::report::record::Story;
use crate::report::summary;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// A child that leaves nothing but its record.
pub(super) const LEAVES_NOTHING: &[&str] = &["--bundles", "none"];

/// Runs every seed; `done` is called for each as it ends.
#[allow(
    clippy::disallowed_methods,
    reason = "real threads that wait for processes, outside any simulation"
)]
pub(super) fn run_all(
    seeds: &Seeds,
    work: impl Fn(u64) -> Ran + Send + Sync,
    done: impl Fn(&Ran) + Send + Sync,
) -> Vec<Ran> {
    let next = AtomicU64::new(seeds.from);
    let all = Arc::new(Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..seeds.workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= seeds.from + seeds.count {
                        return;
                    }
                    let ran = work(seed);
                    done(&ran);
                    all.lock().unwrap_or_else(PoisonError::into_inner).push(ran);
                }
            });
        }
    });
    let mut all = std::mem::take(&mut *all.lock().unwrap_or_else(PoisonError::into_inner));
    all.sort_by_key(|ran| ran.seed);
    all
}

/// `run` with several seeds.
#[allow(clippy::disallowed_methods, reason = "real time, outside any simulation")]
pub fn run_many(seeds: &Seeds) -> u8 {
    if seeds.trace.is_some() {
        complain("fencepost-sim: --trace goes with one seed");
        return USAGE;
    }
    let started = Instant::now();
    let options = kept(seeds);
    let all = run_all(
        seeds,
        |seed| run_child(&story(seeds, seed), &options),
        |ran| say(ran.output.trim_end()),
    );
    let mut set = outputs::set(&all, &[]);
    let totals = set.felt();
    let below = match seeds.count >= COVERED_FROM && seeds.bug.is_none() && seeds.without.is_empty() {
        true => missing(&totals, seeds.count),
        false => Vec::new(),
    };
    set.below = below.clone();
    say(&summary::text(&set, started.elapsed()));
    let code = match (set.failed().is_empty(), below.is_empty()) {
        (false, _) => VIOLATION,
        (true, true) => PASS,
        (true, false) => {
            let (count, below) = (seeds.count, below.join(", "));
            complain(&format!("not enough felt or seen in {count} seeds: {below}"));
            NOT_COVERED
        }
    };
    outputs::write(seeds, &all, &below, code)
}

/// The words by which a child keeps what this program was asked to keep.
pub(super) fn kept(seeds: &Seeds) -> Vec<&str> {
    let mut options = Vec::new();
    for (word, value) in [("--html", &seeds.html), ("--bundles", &seeds.bundles)] {
        options.extend(value.iter().flat_map(|value| [word, value.as_str()]));
    }
    options
}

/// One of the seeds.
pub(super) fn story(seeds: &Seeds, seed: u64) -> Story {
    Story {
        seed,
        scenario: seeds.paths.first().cloned(),
        plant: seeds.bug.clone(),
        without: seeds.without.to_string(),
    }
}

/// Seeds from which on the floors hold.
const COVERED_FROM: u64 = 100;

/// What stayed below its floor, which is for two hundred seeds.
fn missing(totals: &BTreeMap<String, u64>, seeds: u64) -> Vec<String> {
    let count = |what: &str| totals.get(what).copied().unwrap_or(0);
    let is_low = |(what, floor): &&(&str, u64)| count(what) * 200 < floor * seeds.min(200);
    let low = FLOORS.iter().filter(is_low);
    low.map(|(what, floor)| format!("{what} {} of {floor}", count(what)))
        .collect()
}

/// `determinism`: each seed in two processes.
pub fn compare(seeds: &Seeds) -> u8 {
    let differs = AtomicU64::new(0);
    let twice = |seed| {
        let story = story(seeds, seed);
        let (one, other) = (run_child(&story, LEAVES_NOTHING), run_child(&story, LEAVES_NOTHING));
        let same = one.hash().is_some() && one.hash() == other.hash();
        if !same {
            differs.fetch_add(1, Ordering::SeqCst);
            complain(&format!(
                "seed {seed}: NOT DETERMINISTIC: {:?}, {:?}",
                one.hash(),
                other.hash()
            ));
            complain(&first_difference(&story));
        }
        one
    };
    let all = run_all(seeds, twice, |ran| {
        say(&format!("seed {}: hash={}", ran.seed, ran.hash().unwrap_or("none")));
    });
    let differs = differs.load(Ordering::SeqCst);
    say(&format!(
        "{} seeds are the same in two processes, {differs} are not",
        all.len() as u64 - differs
    ));
    if differs == 0 { PASS } else { NOT_DETERMINISTIC }
}

/// Runs the seed twice more with every event kept, and names the first that differs.
fn first_difference(story: &Story) -> String {
    let kept = |name: &str| {
        let file = format!("fencepost-sim-{}-{}-{name}", std::process::id(), story.seed);
        let path = std::env::temp_dir().join(file);
        let path_text = path.to_string_lossy();
        run_child(story, &[LEAVES_NOTHING, &["--trace", &path_text]].concat());
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let _ = std::fs::remove_file(&path);
        text
    };
    let (one, other) = (kept("a"), kept("b"));
    let mut pairs = one.lines().zip(other.lines()).enumerate();
    match pairs.find(|(_, (one, other))| one != other) {
        Some((at, (one, other))) => format!("first difference at event {at}:\n  {one}\n  {other}"),
        None if one.lines().count() != other.lines().count() => {
            let (least, most) = (one.lines().count(), other.lines().count());
            format!(
                "first difference at event {}: one run ends there, the other has {}",
                least.min(most),
                least.max(most)
            )
        }
        None => "two further runs do not differ event by event".to_owned(),
    }
}

/// `mutants --list`: each bug, the checker that must find it, within how many seeds, and where it is looked for.
pub fn bugs() -> u8 {
    say(&format!(
        "{:<28} {:<18} {:>5}  {}",
        "bug", "checker", "seeds", "scenario"
    ));
    for bug in PlantedBug::all() {
        let (name, checker, most) = (bug.name(), bug.checker(), bug.seeds_max());
        say(&format!(
            "{name:<28} {checker:<18} {most:>5}  {}",
            bug.scenario().unwrap_or("the swarm")
        ));
    }
    PASS
}

/// Hunts for each bug, each from another seed on: the median of what they need is told.
const HUNTS: u64 = 3;
/// Seeds between the beginnings of two hunts.
const APART: u64 = 1_000;

/// `mutants`: plants each bug and runs seeds until its own checker finds it.
pub fn mutants(seeds: &Seeds) -> u8 {
    let mut missed = 0;
    for bug in PlantedBug::all().filter(|bug| !bug.is_canary()) {
        let mut needed: Vec<Option<u64>> = hunts(bug, seeds);
        needed.sort_by_key(|needed| needed.unwrap_or(u64::MAX));
        let told = needed
            .iter()
            .map(|needed| needed.map_or("-".to_owned(), |needed| needed.to_string()));
        let told = told.collect::<Vec<_>>().join(", ");
        let (name, checker) = (bug.name(), bug.checker());
        let place = bug.scenario().unwrap_or("the swarm");
        match needed.get(needed.len() / 2).copied().flatten() {
            Some(median) => say(&format!(
                "{name}: found by {checker} in {median} seeds (median of {told}) of {place}"
            )),
            None => {
                missed += 1;
                say(&format!(
                    "{name}: NOT FOUND by {checker} in {} seeds ({told}) of {place}",
                    bug.seeds_max()
                ));
            }
        }
    }
    if missed == 0 { PASS } else { VIOLATION }
}

/// Seeds that each hunt needed.
fn hunts(bug: PlantedBug, seeds: &Seeds) -> Vec<Option<u64>> {
    let hunts = Seeds {
        from: 0,
        count: if seeds.is_set { seeds.count } else { HUNTS },
        ..seeds.clone()
    };
    let found = Mutex::new(Vec::new());
    let one = |number: u64| {
        let needed = hunt(bug, seeds.from + number * APART);
        found.lock().unwrap_or_else(PoisonError::into_inner).push(needed);
        Ran {
            seed: number,
            ..Ran::default()
        }
    };
    run_all(&hunts, one, |_| {});
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Where the project's own scenarios lie.
const SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios");

/// Seeds needed until the bug's own checker found it.
fn hunt(bug: PlantedBug, from: u64) -> Option<u64> {
    let file = bug.scenario().map(|scenario| format!("{SCENARIOS}/{scenario}"));
    (0..bug.seeds_max()).find_map(|n| {
        let story = Story {
            seed: from + n,
            scenario: file.clone(),
            plant: Some(bug.name().to_owned()),
            without: String::new(),
        };
        let ran = run_child(&story, LEAVES_NOTHING);
        ran.checkers().contains(&bug.checker()).then_some(n + 1)
    })
}
