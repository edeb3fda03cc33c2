//! The program `fencepost-sim`: arguments, exit codes, and what is printed.
//!
//! Owns: the words of the command line. One seed runs in one process: `workers.rs` starts this very
//! program again for each. Exit codes: 0 pass, 1 violation, 2 usage, 3 not deterministic,
//! 4 coverage floor missed. Next:
//! `arguments.rs`, `workers.rs`, `report.rs`.

mod arguments;
mod floors;
mod report;
mod workers;

use crate::bugs::PlantedBug;
use crate::options::Options;
use crate::run::run_seed;
use crate::runtime::Watchdog;
use arguments::{Command, Seeds};
use std::process::ExitCode;
use std::time::Duration;

/// Every checker was content.
pub const PASS: u8 = 0;
/// A checker was not.
pub const VIOLATION: u8 = 1;
/// The arguments make no sense.
pub const USAGE: u8 = 2;
/// Two runs of one seed differ.
pub const NOT_DETERMINISTIC: u8 = 3;
/// A fault was never felt, or a state never seen, in a set of runs.
pub const NOT_COVERED: u8 = 4;

/// Longest real time of one seed.
const SEED_MAX: Duration = Duration::from_secs(120);

/// Runs the program.
pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let code = match arguments::parse(&arguments) {
        Ok(Command::Help) => {
            report::say(arguments::USAGE_TEXT);
            PASS
        }
        Ok(Command::Run(seeds)) if seeds.count == 1 => run_one(&seeds),
        Ok(Command::Run(seeds)) => workers::run_many(&seeds),
        Ok(Command::Determinism(seeds)) => workers::compare(&seeds),
        Ok(Command::Mutants(seeds)) => workers::mutants(&seeds),
        Err(why) => {
            report::complain(&format!("fencepost-sim: {why}\n\n{}", arguments::USAGE_TEXT));
            USAGE
        }
    };
    ExitCode::from(code)
}

/// Runs one seed in this process.
fn run_one(seeds: &Seeds) -> u8 {
    let seed = seeds.from;
    let bug = seeds.bug.as_deref().and_then(PlantedBug::named);
    report::say(&format!("seed {seed}: {}", Options::draw(seed, bug)));
    let _watchdog = Watchdog::start(SEED_MAX, move || {
        report::complain(&format!(
            "seed {seed}: VIOLATION run: no end after {} s of real time",
            SEED_MAX.as_secs()
        ));
        #[allow(
            clippy::disallowed_methods,
            reason = "the simulation cannot be asked to end any more"
        )]
        std::process::exit(i32::from(VIOLATION));
    });
    let ran = run_seed(seed, bug, seeds.trace.is_some());
    if let Some(path) = &seeds.trace
        && let Err(error) = std::fs::write(path, ran.all.join("\n"))
    {
        report::complain(&format!("fencepost-sim: the trace could not be written: {error}"));
        return USAGE;
    }
    report::say(&report::of_seed(seeds, &ran));
    if ran.violations.is_empty() { PASS } else { VIOLATION }
}
