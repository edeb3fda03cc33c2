//! Many seeds: this program once more for each, several at a time.
//!
//! Owns: child processes and what their ends mean. Must never: run a seed in this process. Next: `mod.rs`.

use super::arguments::Seeds;
use super::floors::FLOORS;
use super::report::{complain, say};
use super::{NOT_COVERED, NOT_DETERMINISTIC, PASS, USAGE, VIOLATION};
use crate::bugs::PlantedBug;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What a child said, and how it ended.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Which seed.
    pub seed: u64,
    /// Its standard output, then its standard error.
    pub output: String,
    /// Whether every checker was content.
    pub is_content: bool,
}

impl Ran {
    /// The hash that it printed.
    pub fn hash(&self) -> Option<&str> {
        let mut lines = self.output.lines();
        lines.find_map(|line| line.split_once(" hash=").map(|(_, hash)| hash))
    }

    /// What it felt and saw: `name=count` with plus signs between.
    fn felt(&self) -> Option<&str> {
        let mut lines = self.output.lines();
        lines.find_map(|line| line.split_once(" felt=").map(|(_, felt)| felt))
    }

    /// Checkers that were not content.
    pub fn checkers(&self) -> Vec<&str> {
        let violations = self.output.lines().filter_map(|line| line.split_once("VIOLATION "));
        let named = violations.filter_map(|(_, rest)| rest.split_once(':'));
        named.map(|(checker, _)| checker).collect()
    }
}

/// Runs one seed in a process of its own.
pub(super) fn run_child(seed: u64, options: &[&str]) -> Ran {
    let program = std::env::current_exe().unwrap_or_else(|_| "fencepost-sim".into());
    let ended = Command::new(program)
        .args(["run", "--seed", &seed.to_string()])
        .args(options)
        .stdin(Stdio::null())
        .output();
    match ended {
        Ok(ended) => Ran {
            seed,
            output: format!(
                "{}{}",
                String::from_utf8_lossy(&ended.stdout),
                String::from_utf8_lossy(&ended.stderr)
            ),
            is_content: ended.status.success(),
        },
        Err(error) => Ran {
            seed,
            output: format!("seed {seed}: VIOLATION run: no process: {error}"),
            is_content: false,
        },
    }
}

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
pub fn run_many(seeds: &Seeds) -> u8 {
    if seeds.trace.is_some() {
        complain("fencepost-sim: --trace goes with one seed");
        return USAGE;
    }
    let options: Vec<&str> = seeds.bug.iter().flat_map(|bug| ["--plant", bug.as_str()]).collect();
    let all = run_all(
        seeds,
        |seed| run_child(seed, &options),
        |ran| say(ran.output.trim_end()),
    );
    let failed: Vec<u64> = all.iter().filter(|ran| !ran.is_content).map(|ran| ran.seed).collect();
    say(&format!(
        "{} seeds passed, {} failed: {failed:?}",
        all.len() - failed.len(),
        failed.len()
    ));
    let totals = totals(&all);
    let told: Vec<String> = totals.iter().map(|(what, count)| format!("{what}={count}")).collect();
    say(&format!("in all: {}", told.join(" ")));
    if !failed.is_empty() {
        return VIOLATION;
    }
    let missing = missing(&totals, seeds.count);
    if seeds.count >= COVERED_FROM && !missing.is_empty() {
        complain(&format!(
            "not enough felt or seen in {} seeds: {}",
            seeds.count,
            missing.join(", ")
        ));
        return NOT_COVERED;
    }
    PASS
}

/// Seeds from which on the floors hold.
const COVERED_FROM: u64 = 100;

pub(super) fn totals(all: &[Ran]) -> BTreeMap<&str, u64> {
    let mut totals = BTreeMap::new();
    let items = all.iter().filter_map(Ran::felt).flat_map(|felt| felt.split('+'));
    for (what, count) in items.filter_map(|item| item.split_once('=')) {
        *totals.entry(what).or_default() += count.parse::<u64>().unwrap_or(0);
    }
    totals
}

/// What stayed below its floor, which is for two hundred seeds.
fn missing(totals: &BTreeMap<&str, u64>, seeds: u64) -> Vec<String> {
    let count = |what: &str| totals.get(what).copied().unwrap_or(0);
    let is_low = |(what, floor): &&(&str, u64)| count(what) * 200 < floor * seeds.min(200);
    let low = FLOORS.iter().filter(is_low);
    low.map(|(what, floor)| format!("{what} {} of {floor}", count(what)))
        .collect()
}

/// `determinism`: each seed in two processes.
pub fn compare(seeds: &Seeds) -> u8 {
    let differs = AtomicU64::new(0);
    let mut options: Vec<&str> = seeds.paths.iter().map(String::as_str).collect();
    options.extend(seeds.bug.iter().flat_map(|bug| ["--plant", bug.as_str()]));
    let twice = |seed| {
        let (one, other) = (run_child(seed, &options), run_child(seed, &options));
        let same = one.hash().is_some() && one.hash() == other.hash();
        if !same {
            differs.fetch_add(1, Ordering::SeqCst);
            complain(&format!(
                "seed {seed}: NOT DETERMINISTIC: {:?}, {:?}",
                one.hash(),
                other.hash()
            ));
            complain(&first_difference(seed, &options));
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
fn first_difference(seed: u64, options: &[&str]) -> String {
    let kept = |name: &str| {
        let path = std::env::temp_dir().join(format!("fencepost-sim-{}-{seed}-{name}", std::process::id()));
        let path_text = path.to_string_lossy();
        run_child(seed, &[options, &["--trace", &path_text]].concat());
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let _ = std::fs::remove_file(&path);
        text
    };
    let (one, other) = (kept("a"), kept("b"));
    let mut pairs = one.lines().zip(other.lines()).enumerate();
    match pairs.find(|(_, (one, other))| one != other) {
        Some((at, (one, other))) => format!("first difference at event {at}:\n  {one}\n  {other}"),
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
            output: String::new(),
            is_content: needed.is_some(),
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
    let mut options = vec!["--plant", bug.name()];
    options.extend(file.as_deref());
    (0..bug.seeds_max()).find_map(|n| {
        let ran = run_child(from + n, &options);
        ran.checkers().contains(&bug.checker()).then_some(n + 1)
    })
}
