//! `shrink`: what a failure does not need is left out, thing by thing.
//!
//! Owns: the order in which things are tried, and that only the same checker's failure counts. Must never: write a
//! bundle whose run does not fail. Next: `repro.rs`, `../without.rs`.

use super::arguments::OfBundle;
use super::child::{Ran, run_child};
use super::report::{complain, say};
use super::repro::{open, verdict};
use super::{PASS, USAGE, VIOLATION};
use crate::report::bundle;
use crate::report::record::{Record, Story};
use crate::without::{FAMILIES, Item, Without};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The search so far.
struct Search {
    bundle: Record,
    checker: String,
    without: Vec<Item>,
    runs: u64,
    runs_max: u64,
}

/// Makes a bundle smaller; 0 when a smaller or equal one that fails was written.
pub fn shrink(asked: &OfBundle) -> u8 {
    match search(asked) {
        Ok(code) => code,
        Err(why) => {
            complain(&format!("fencepost-sim: {why}"));
            USAGE
        }
    }
}

fn search(asked: &OfBundle) -> Result<u8, String> {
    let (bundle, _) = open(asked)?;
    let Some(checker) = bundle.checkers().first().map(|checker| (*checker).to_owned()) else {
        return Err(format!(
            "{} holds a run that passed: there is nothing to shrink",
            asked.path
        ));
    };
    let already: Without = bundle.without.parse()?;
    let mut search = Search {
        without: already.items().cloned().collect(),
        bundle,
        checker,
        runs: 0,
        runs_max: asked.runs_max,
    };
    if !search.fails(&search.without.clone()) {
        let checker = &search.checker;
        complain(&format!(
            "the bundle's run does not fail {checker} here: nothing was written"
        ));
        return Ok(VIOLATION);
    }
    for (what, mut items) in parts(&search.bundle) {
        items.retain(|item| !search.is_gone(item));
        let (before, left) = (items.len(), search.reduce(&items));
        say(&format!(
            "{what}: {before} before, {left} needed ({} runs so far)",
            search.runs
        ));
    }
    write(asked, &search)
}

impl Search {
    fn story(&self, without: &[Item]) -> Story {
        Story {
            without: Without::of(without.iter().cloned()).to_string(),
            ..self.bundle.story()
        }
    }

    /// Whether something went with what is left out already.
    fn is_gone(&self, item: &Item) -> bool {
        let Item::Job(intent) = item else {
            return false;
        };
        client_of(intent).is_some_and(|client| self.without.contains(&client))
    }

    fn run(&mut self, without: &[Item]) -> Ran {
        self.runs += 1;
        run_child(&self.story(without), &["--bundles", "none"])
    }

    /// Whether the same checker still fails.
    fn fails(&mut self, without: &[Item]) -> bool {
        self.run(without).checkers().contains(&self.checker.as_str())
    }

    /// Leaves out what it can of these, all at once, then in halves; how many are needed.
    fn reduce(&mut self, items: &[Item]) -> usize {
        let (mut needed, mut chunk) = (items.to_vec(), items.len());
        while chunk > 0 && !needed.is_empty() {
            let mut at = 0;
            while at < needed.len() && self.runs < self.runs_max {
                let end = (at + chunk).min(needed.len());
                let tried: Vec<Item> = needed.get(at..end).unwrap_or_default().to_vec();
                let without = [self.without.clone(), tried].concat();
                if self.fails(&without) {
                    self.without = without;
                    needed.drain(at..end);
                } else {
                    at = end;
                }
            }
            chunk /= 2;
        }
        needed.len()
    }
}

/// What can be left out, the largest first. A scenario has neither families nor numbered clients.
fn parts(record: &Record) -> Vec<(&'static str, Vec<Item>)> {
    let already: Without = record.without.parse().unwrap_or_default();
    let is_there = |item: &Item| !already.items().any(|out| out == item);
    let families = FAMILIES
        .iter()
        .filter(|name| has_family(record, name))
        .map(|name| Item::Family(name));
    let mut clients = BTreeSet::new();
    let mut jobs = BTreeSet::new();
    for intent in record.intents.values() {
        // An item of a batch is named by the batch and its own number.
        let length = match intent.chars().next() {
            Some('c') => 2,
            Some('w') => 3,
            _ => continue,
        };
        let parts: Vec<&str> = intent.split('-').take(length).collect();
        clients.extend(client_of(intent));
        jobs.insert(Item::Job(parts.join("-")));
    }
    let schedules: BTreeSet<Item> = record
        .windows
        .iter()
        .filter_map(|window| schedule(&window.schedule))
        .collect();
    let faults = record.faults.iter().filter(|fault| !fault.left_out);
    let faults = faults.map(|fault| Item::Fault(fault.number, fault.to - fault.from));
    let kept = |items: Vec<Item>| items.into_iter().filter(&is_there).collect();
    vec![
        ("clients", kept(clients.into_iter().collect())),
        ("schedules", kept(schedules.into_iter().collect())),
        ("families", kept(families.collect())),
        ("faults", kept(faults.collect())),
        ("jobs", kept(jobs.into_iter().collect())),
    ]
}

/// The client of a job, by the job's name.
fn client_of(intent: &str) -> Option<Item> {
    let (client, _) = intent.split_once('-')?;
    client.strip_prefix('c')?.parse().ok().map(Item::Client)
}

fn schedule(name: &str) -> Option<Item> {
    name.strip_prefix('s')?.parse().ok().map(Item::Schedule)
}

/// Whether a family was on that can be left out: the options name those that were.
fn has_family(record: &Record, family: &str) -> bool {
    if record.scenario.is_some() {
        return false;
    }
    let drawn = record.options.split(' ').find_map(|word| word.strip_prefix("faults="));
    drawn.is_some_and(|names| names.split('+').any(|name| name == family))
}

/// Runs what is left once more, with its bundle.
fn write(asked: &OfBundle, search: &Search) -> Result<u8, String> {
    let folder = std::env::temp_dir().join(format!("fencepost-shrunk-{}", std::process::id()));
    let place = folder.display().to_string();
    let ran = run_child(&search.story(&search.without), &["--bundles", &place]);
    let found = ran.left.bundle.as_deref().ok_or("the smaller run left no bundle")?;
    let record = bundle::read(Path::new(found))?;
    let path = output(asked);
    bundle::write(&path, &record)?;
    let _ = std::fs::remove_dir_all(&folder);
    let faults = |record: &Record| record.faults.iter().filter(|fault| !fault.left_out).count();
    let (before, after) = (&search.bundle, &record);
    say(&verdict(after));
    say(&format!(
        "{} faults and {} jobs before, {} faults and {} jobs now, after {} runs",
        faults(before),
        before.intents.len(),
        faults(after),
        after.intents.len(),
        search.runs
    ));
    say(&format!("repeat with: {}", after.story().command()));
    say(&format!("bundle: {}", path.display()));
    Ok(PASS)
}

fn output(asked: &OfBundle) -> PathBuf {
    match &asked.output {
        Some(path) => path.into(),
        None => Path::new(&asked.path).with_extension("shrunk.json"),
    }
}
