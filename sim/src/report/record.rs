//! The record of one run: what went in, what was seen, what was judged.
//!
//! Owns: the shape that a bundle stores and that every report is made of. Must never: hold what a page needs only
//! for its looks (see `timeline/`). A change of a field's meaning raises `bundle::VERSION`. Next: `bundle.rs`.

use super::program::Program;
use super::subject;
use crate::own;
use crate::run::Report;
use crate::trace::{Digest, Event};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The record of one run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// The program that ran.
    pub program: Program,
    /// The seed.
    pub seed: u64,
    /// The scenario's file, where the run had one.
    pub scenario: Option<Scenario>,
    /// The planted bug.
    pub plant: Option<String>,
    /// What was left out.
    pub without: String,
    /// What the seed drew, as printed first.
    pub options: String,
    /// True wall time at the beginning, in microseconds since the Unix epoch.
    pub starts_at: i64,
    /// Simulated microseconds.
    pub simulated_us: u64,
    /// Of these, how many every node slept through.
    pub asleep_us: u64,
    /// Real milliseconds.
    pub wall_ms: u64,
    /// Events in the trace.
    pub events: u64,
    /// Over all events and the final state.
    pub hash: String,
    /// Faults felt and states seen, by name.
    pub felt: BTreeMap<String, u64>,
    /// Things judged, by checker.
    pub evaluations: BTreeMap<String, u64>,
    /// What is wrong, by checker and in the order of time.
    pub violations: Vec<Violation>,
    /// Faults that were injected one by one.
    pub faults: Vec<Fault>,
    /// What was asked for, by job id.
    pub intents: BTreeMap<String, String>,
    /// Attempts that have ended, by the rows that were left.
    pub ended: Vec<Ended>,
    /// Occurrences that schedules asked for.
    pub windows: Vec<Window>,
    /// Every event; empty where they were not kept.
    pub trace: Vec<Event>,
}

/// A scenario's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scenario {
    /// Where it lay.
    pub path: String,
    /// Its text.
    pub text: String,
}

impl Scenario {
    /// The file at this path, as it reads now.
    pub fn at(path: &str) -> Scenario {
        Scenario {
            path: path.to_owned(),
            text: std::fs::read_to_string(path).unwrap_or_default(),
        }
    }
}

/// Something that is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// Whose promise.
    pub checker: String,
    /// What is wrong.
    pub what: String,
    /// The job.
    pub job: Option<String>,
    /// The token of the attempt that did it, or of the job's last.
    pub token: Option<String>,
    /// When, in simulated microseconds since the run began.
    pub at: Option<u64>,
    /// The schedule.
    pub schedule: Option<String>,
    /// Its nominal instant, in microseconds since the Unix epoch.
    pub nominal: Option<i64>,
}

/// A fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Its number, by which it can be left out.
    pub number: u64,
    /// What.
    pub kind: String,
    /// When it began, in simulated microseconds since the run began.
    pub from: u64,
    /// When it was over.
    pub to: u64,
    /// It was left out: nothing happened.
    pub left_out: bool,
}

/// An attempt that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Job.
    pub job: String,
    /// Token.
    pub token: String,
    /// How.
    pub result: String,
    /// Store time of the end, in simulated microseconds since the run began: as true as the store's clock.
    pub at: i64,
}

/// An occurrence that a schedule asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Schedule.
    pub schedule: String,
    /// Nominal instant, in simulated microseconds since the run began (negative: before it).
    pub at: i64,
    /// Up to when a start is on time.
    pub until: i64,
    /// Its fate; none where none was given.
    pub fate: Option<String>,
    /// Its jobs.
    pub jobs: Vec<String>,
}

/// What a run was made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Story {
    /// The seed.
    pub seed: u64,
    /// The scenario's file; none in the swarm.
    pub scenario: Option<String>,
    /// The planted bug.
    pub plant: Option<String>,
    /// What was left out.
    pub without: String,
}

impl Record {
    /// The record of a run that has ended.
    pub fn of(story: &Story, report: &Report, wall_ms: u64) -> Record {
        let mut record = Record {
            seed: story.seed,
            scenario: story.scenario.as_deref().map(Scenario::at),
            plant: story.plant.clone(),
            without: story.without.clone(),
            options: report.options.clone(),
            starts_at: report.starts_at,
            simulated_us: report.simulated,
            asleep_us: report.asleep,
            wall_ms,
            felt: report
                .felt
                .iter()
                .map(|(what, count)| (what.to_string(), *count))
                .collect(),
            evaluations: report.evaluations.clone(),
            intents: report.intents.clone(),
            ended: ended(report),
            windows: windows(report),
            ..Record::default()
        };
        record.take_trace(&report.digest, report.all.clone());
        let found = report.violations.iter();
        let mut violations: Vec<Violation> = found.map(|found| subject::complete(found, &record)).collect();
        violations.sort_by_key(|found| (rank(&found.checker), found.at));
        record.violations = violations;
        record
    }

    /// With these events, and the faults among them.
    pub fn take_trace(&mut self, digest: &Digest, trace: Vec<Event>) {
        self.events = digest.events;
        self.hash = digest.hash.clone();
        self.faults = faults(&trace);
        self.trace = trace;
    }

    /// The story that makes this run again.
    pub fn story(&self) -> Story {
        Story {
            seed: self.seed,
            scenario: self.scenario_path().map(str::to_owned),
            plant: self.plant.clone(),
            without: self.without.clone(),
        }
    }

    /// The scenario's file, where the run had one.
    pub fn scenario_path(&self) -> Option<&str> {
        self.scenario.as_ref().map(|scenario| scenario.path.as_str())
    }

    /// Whether every checker was content.
    pub fn is_content(&self) -> bool {
        self.violations.is_empty()
    }

    /// Checkers that were not, each once, in the order of their violations.
    pub fn checkers(&self) -> Vec<&str> {
        let mut checkers: Vec<&str> = Vec::new();
        for violation in &self.violations {
            if !checkers.contains(&violation.checker.as_str()) {
                checkers.push(&violation.checker);
            }
        }
        checkers
    }
}

impl Story {
    /// The words of `run` that make it.
    pub fn words(&self) -> Vec<String> {
        let mut words: Vec<String> = self.scenario.iter().cloned().collect();
        words.extend(["--seed".to_owned(), self.seed.to_string()]);
        if let Some(bug) = &self.plant {
            words.extend(["--plant".to_owned(), bug.clone()]);
        }
        if !self.without.is_empty() {
            words.extend(["--without".to_owned(), self.without.clone()]);
        }
        words
    }

    /// The command that makes it.
    pub fn command(&self) -> String {
        format!("{} run {}", own::command(), self.words().join(" "))
    }
}

/// The order of checkers.
fn rank(checker: &str) -> usize {
    let known = fencepost_history::checkers::names().position(|name| name == checker);
    known.unwrap_or(0)
}

fn ended(report: &Report) -> Vec<Ended> {
    let ended = report.ended.iter();
    ended
        .map(|(job, token, result, at)| Ended {
            job: job.clone(),
            token: token.clone(),
            result: result.clone(),
            at: at - report.starts_at,
        })
        .collect()
}

fn windows(report: &Report) -> Vec<Window> {
    let since = |at: i64| at - report.starts_at;
    let windows = report.windows.iter();
    windows
        .map(|window| Window {
            schedule: window.schedule.clone(),
            at: since(window.nominal),
            until: since(window.until),
            fate: window.fate.clone(),
            jobs: window.jobs.iter().map(ToString::to_string).collect(),
        })
        .collect()
}

fn faults(trace: &[Event]) -> Vec<Fault> {
    let mut faults: Vec<Fault> = Vec::new();
    for event in trace {
        let (number, kind) = event.payload.split_once(' ').unwrap_or_default();
        let left_out = match event.kind.as_str() {
            "fault begins" => false,
            "fault left out" => true,
            "fault ends" => {
                let same = |fault: &&mut Fault| fault.number.to_string() == number;
                if let Some(fault) = faults.iter_mut().rfind(same) {
                    fault.to = event.at;
                }
                continue;
            }
            _ => continue,
        };
        faults.push(Fault {
            number: number.parse().unwrap_or(0),
            kind: kind.to_owned(),
            from: event.at,
            to: event.at,
            left_out,
        });
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: u64, kind: &str, payload: &str) -> Event {
        (at, "world".to_owned(), kind.to_owned(), payload.to_owned()).into()
    }

    #[test]
    fn faults_are_read_from_the_trace() {
        let trace = [
            event(5, "fault begins", "1 crash"),
            event(6, "felt", "crash"),
            event(9, "fault ends", "1 crash"),
            event(12, "fault left out", "2 store-crash"),
        ];
        let found = faults(&trace);
        let told: Vec<(u64, &str, u64, u64, bool)> = found
            .iter()
            .map(|f| (f.number, f.kind.as_str(), f.from, f.to, f.left_out))
            .collect();
        assert_eq!(told, [(1, "crash", 5, 9, false), (2, "store-crash", 12, 12, true)]);
    }

    #[test]
    fn a_story_is_the_command_that_makes_it() {
        let story = Story {
            seed: 7,
            scenario: None,
            plant: Some("fires-ahead".to_owned()),
            without: "fault:1:9".to_owned(),
        };
        assert_eq!(
            story.command(),
            "cargo sim run --seed 7 --plant fires-ahead --without fault:1:9"
        );
        let scenario = Some("faults/a.toml".to_owned());
        let told = Story { scenario, ..story }.command();
        assert!(told.starts_with("cargo sim run faults/a.toml --seed 7 "), "{told}");
    }
}
