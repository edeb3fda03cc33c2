//! What the program prints.
//!
//! Owns: the lines of a seed's report, read back by `workers.rs`. Must never: hide a seed.

use super::arguments::Seeds;
use crate::run::Report;
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

/// The report of one seed.
pub fn of_seed(seeds: &Seeds, ran: &Report) -> String {
    let seed = seeds.from;
    let mut lines = Vec::new();
    let felt: Vec<String> = ran.felt.iter().map(|(kind, count)| format!("{kind}={count}")).collect();
    let judged: u64 = ran.evaluations.values().sum();
    lines.push(format!(
        "seed {seed}: simulated={}s events={} judged={judged} felt={}",
        ran.simulated / 1_000_000,
        ran.digest.events,
        felt.join("+")
    ));
    lines.push(format!("seed {seed}: hash={}", ran.digest.hash));
    for (number, hash) in ran.digest.checkpoints.iter().enumerate() {
        if seeds.trace.is_some() {
            lines.push(format!("seed {seed}: checkpoint {number} {hash}"));
        }
    }
    if !ran.violations.is_empty() {
        lines.extend(ran.last.iter().map(|event| format!("  {event}")));
    }
    let mut shown = std::collections::BTreeMap::new();
    for (checker, what) in &ran.violations {
        let count: &mut usize = shown.entry(checker.clone()).or_default();
        *count += 1;
        if *count <= SHOWN_MAX {
            lines.push(format!("seed {seed}: VIOLATION {checker}: {what}"));
        }
    }
    if !ran.violations.is_empty() {
        let plant = seeds
            .bug
            .as_ref()
            .map(|bug| format!(" --plant {bug}"))
            .unwrap_or_default();
        let files: String = seeds.paths.iter().map(|path| format!(" {path}")).collect();
        lines.push(format!(
            "seed {seed}: repeat with: cargo sim run{files} --seed {seed}{plant}"
        ));
    }
    lines.join("\n")
}
