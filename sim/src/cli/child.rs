//! This program once more, for one seed: its process, what it said and what it left.
//!
//! Owns: starting it and reading its record. Must never: take a process that left no record for one that passed. Next:
//! `workers.rs`, `single.rs`.

use crate::report::record::{Record, Scenario, Story, Violation};
use serde::{Deserialize, Serialize};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

/// What a child leaves for its parent: the record without its events, and where the bundle lies.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Left {
    /// The record.
    pub record: Record,
    /// The bundle's file.
    pub bundle: Option<String>,
}

/// What a child said, and how it ended.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    /// Which seed.
    pub seed: u64,
    /// Its standard output, then its standard error.
    pub output: String,
    /// What it left.
    pub left: Left,
}

impl Ran {
    /// The hash that it printed.
    pub fn hash(&self) -> Option<&str> {
        let mut lines = self.output.lines();
        lines.find_map(|line| line.split_once(" hash=").map(|(_, hash)| hash))
    }

    /// Checkers that were not content.
    pub fn checkers(&self) -> Vec<&str> {
        self.left.record.checkers()
    }
}

/// Runs one story in a process of its own.
pub fn run_child(story: &Story, options: &[&str]) -> Ran {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::SeqCst);
    let file = std::env::temp_dir().join(format!("fencepost-sim-{}-{number}.json", std::process::id()));
    let program = std::env::current_exe().unwrap_or_else(|_| "fencepost-sim".into());
    let mut command = Command::new(program);
    command
        .arg("run")
        .args(story.words())
        .args(options)
        .arg("--record")
        .arg(&file);
    let ended = command.stdin(Stdio::null()).output();
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let _ = std::fs::remove_file(&file);
    let left = serde_json::from_str::<Left>(&text).ok();
    match ended {
        Ok(ended) => {
            let (out, err) = (
                String::from_utf8_lossy(&ended.stdout),
                String::from_utf8_lossy(&ended.stderr),
            );
            // One that passed by its record and failed by its code has not done what it was asked for.
            let fits = |left: &Left| left.record.is_content() == ended.status.success();
            let lost = || lost(story, &format!("no record was left: {}", ended.status));
            Ran {
                seed: story.seed,
                left: left.filter(fits).unwrap_or_else(lost),
                output: format!("{out}{err}"),
            }
        }
        Err(error) => Ran {
            seed: story.seed,
            output: format!("seed {}: VIOLATION run: no process: {error}", story.seed),
            left: lost(story, &format!("no process: {error}")),
        },
    }
}

/// The record of a run that left none.
fn lost(story: &Story, why: &str) -> Left {
    let violation = Violation {
        checker: "run".to_owned(),
        what: why.to_owned(),
        ..Violation::default()
    };
    let record = Record {
        seed: story.seed,
        scenario: story.scenario.as_deref().map(Scenario::at),
        plant: story.plant.clone(),
        without: story.without.clone(),
        violations: vec![violation],
        ..Record::default()
    };
    Left { record, bundle: None }
}
