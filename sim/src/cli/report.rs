//! What the program prints of one seed.
//!
//! Owns: these lines. Must never: hide a seed. Next: `../report/summary.rs` for many.

use super::arguments::Seeds;
use crate::own;
use crate::report::promises::promise;
use crate::report::record::Record;
use crate::run::Report;
use std::collections::BTreeMap;
use std::io::Write as _;

/// Violations of one checker that are printed.
const SHOWN_MAX: usize = 5;

/// To standard output; a closed pipe is no reason to fail.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// To standard error.
pub fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// What a run did.
pub fn of_run(seeds: &Seeds, ran: &Report, record: &Record) -> String {
    let seed = record.seed;
    let mut lines = Vec::new();
    let felt: Vec<String> = ran.felt.iter().map(|(kind, count)| format!("{kind}={count}")).collect();
    let judged: u64 = ran.evaluations.values().sum();
    lines.push(format!(
        "seed {seed}: simulated={}s in {} ms, events={} judged={judged} felt={}",
        ran.simulated / 1_000_000,
        record.wall_ms,
        ran.digest.events,
        felt.join("+")
    ));
    lines.push(format!("seed {seed}: hash={}", ran.digest.hash));
    for (number, hash) in ran.digest.checkpoints.iter().enumerate() {
        if seeds.trace.is_some() {
            lines.push(format!("seed {seed}: checkpoint {number} {hash}"));
        }
    }
    if !record.is_content() {
        lines.extend(ran.last.iter().map(|event| format!("  {event}")));
    }
    lines.join("\n")
}

/// What is wrong, where to look, and how to see it again.
pub fn of_failure(record: &Record, bundle: Option<&str>) -> String {
    let seed = record.seed;
    let mut lines = Vec::new();
    let mut shown = BTreeMap::new();
    for violation in &record.violations {
        let count: &mut usize = shown.entry(violation.checker.as_str()).or_default();
        *count += 1;
        if *count == 1 {
            lines.push(format!(
                "seed {seed}: {} promises: {}",
                violation.checker,
                promise(&violation.checker)
            ));
        }
        if *count <= SHOWN_MAX {
            lines.push(format!(
                "seed {seed}: VIOLATION {}: {}",
                violation.checker, violation.what
            ));
            let about = [
                ("job", violation.job.clone()),
                ("token", violation.token.clone()),
                ("schedule", violation.schedule.clone()),
                ("at", violation.at.map(seconds)),
            ];
            let about = about
                .into_iter()
                .filter_map(|(what, text)| Some(format!("{what} {}", text?)));
            let about: Vec<String> = about.collect();
            if !about.is_empty() {
                lines.push(format!("seed {seed}:   {}", about.join(" · ")));
            }
        }
    }
    if !record.program.commit.is_empty() {
        lines.push(format!("seed {seed}: commit {}", record.program.commit));
    }
    lines.push(format!("seed {seed}: repeat with: {}", record.story().command()));
    if let Some(place) = bundle {
        let command = own::command();
        lines.push(format!(
            "seed {seed}: bundle: {place}  ({command} repro {place}; {command} shrink {place})"
        ));
    }
    lines.join("\n")
}

/// Simulated time as people read it.
pub fn seconds(at: u64) -> String {
    format!("{}.{:03} s", at / 1_000_000, at / 1_000 % 1_000)
}
