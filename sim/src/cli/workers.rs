//! Many seeds: this program once more for each, several at a time.
//!
//! Owns: child processes and what their ends mean. Must never: run a seed in this process. Next: `mod.rs`.

use super::arguments::Seeds;
use super::report::{complain, say};
use super::{NOT_COVERED, NOT_DETERMINISTIC, PASS, USAGE, VIOLATION};
use crate::bugs::PlantedBug;
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
fn run_child(seed: u64, options: &[&str]) -> Ran {
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
fn run_all(seeds: &Seeds, work: impl Fn(u64) -> Ran + Send + Sync, done: impl Fn(&Ran) + Send + Sync) -> Vec<Ran> {
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
    if !failed.is_empty() {
        return VIOLATION;
    }
    let missing = missing(&all);
    if seeds.count >= COVERED_FROM && !missing.is_empty() {
        complain(&format!(
            "never felt or seen in {} seeds: {}",
            seeds.count,
            missing.join(", ")
        ));
        return NOT_COVERED;
    }
    PASS
}

/// Seeds from which on every fault must have been felt and every state seen.
const COVERED_FROM: u64 = 100;

/// Faults and states that a set of runs must meet.
const MUST_MEET: &[&str] = &[
    "crash",
    "power",
    "pause",
    "clock",
    "away",
    "slow",
    "unknown",
    "sick",
    "target",
    "full",
    "net",
    "seen:paused",
    "seen:unsynced-lost",
    "seen:key-replayed",
    "seen:later-attempt",
    "seen:effect-already-there",
    "seen:cancelled",
    "seen:fired-late",
    "seen:skipped",
    "seen:coalesced",
    "seen:beyond-cap",
];

fn missing(all: &[Ran]) -> Vec<&'static str> {
    let met = |what: &&str| {
        let counted = format!("{what}=");
        let mut felt = all.iter().filter_map(Ran::felt).flat_map(|felt| felt.split('+'));
        felt.any(|item| item.starts_with(&counted))
    };
    MUST_MEET.iter().copied().filter(|what| !met(what)).collect()
}

/// `determinism`: each seed in two processes.
pub fn compare(seeds: &Seeds) -> u8 {
    let differs = AtomicU64::new(0);
    let options: Vec<&str> = seeds.bug.iter().flat_map(|bug| ["--plant", bug.as_str()]).collect();
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

/// `mutants`: plants each bug and runs seeds until its own checker finds it.
pub fn mutants(seeds: &Seeds) -> u8 {
    let mut missed = 0;
    for bug in PlantedBug::all().filter(|bug| !bug.is_canary()) {
        match hunt(bug, seeds.from) {
            Some(needed) => say(&format!("{}: found by {} in {needed} seeds", bug.name(), bug.checker())),
            None => {
                missed += 1;
                say(&format!(
                    "{}: NOT FOUND by {} in {} seeds",
                    bug.name(),
                    bug.checker(),
                    bug.seeds_max()
                ));
            }
        }
    }
    if missed == 0 { PASS } else { VIOLATION }
}

/// Seeds needed until the bug's own checker found it.
fn hunt(bug: PlantedBug, from: u64) -> Option<u64> {
    (0..bug.seeds_max()).find_map(|n| {
        let ran = run_child(from + n, &["--plant", bug.name()]);
        ran.checkers().contains(&bug.checker()).then_some(n + 1)
    })
}
