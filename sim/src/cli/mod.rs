//! The program `fencepost-sim`: arguments, exit codes, and what is printed.
//!
//! Owns: the words of the command line. One seed runs in one process: `workers.rs` starts this very
//! program again for each. Exit codes: 0 pass, 1 violation, 2 usage, 3 not deterministic,
//! 4 coverage floor missed. Next:
//! `arguments.rs`, `workers.rs`, `report.rs`.

mod arguments;
mod floors;
mod report;
mod stories;
mod workers;

use crate::bugs::PlantedBug;
use crate::options::Options;
use crate::run::run_options;
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
    let command = arguments::parse(&arguments);
    let code = match command.clone() {
        Ok(Command::Help) => {
            report::say(arguments::USAGE_TEXT);
            PASS
        }
        Ok(Command::Lint(paths)) => stories::lint(&paths),
        Ok(Command::Run(seeds) | Command::Determinism(seeds)) if !seeds.paths.is_empty() => {
            with_scenarios(&seeds, matches!(command, Ok(Command::Determinism(_))))
        }
        Ok(Command::Run(seeds)) if seeds.count == 1 => run_one(&seeds, Options::draw(seeds.from, planted(&seeds))),
        Ok(Command::Run(seeds)) => workers::run_many(&seeds),
        Ok(Command::Determinism(seeds)) => workers::compare(&seeds),
        Ok(Command::Mutants(seeds)) => workers::mutants(&seeds),
        Ok(Command::Bugs) => workers::bugs(),
        Err(why) => {
            report::complain(&format!("fencepost-sim: {why}\n\n{}", arguments::USAGE_TEXT));
            USAGE
        }
    };
    ExitCode::from(code)
}

fn planted(seeds: &Seeds) -> Option<PlantedBug> {
    seeds.bug.as_deref().and_then(PlantedBug::named)
}

/// Runs scenario files; one seed of one file in this process.
fn with_scenarios(seeds: &Seeds, is_twice: bool) -> u8 {
    match stories::load(&seeds.paths).as_deref() {
        Err(code) => *code,
        Ok(scenarios) if is_twice => stories::determinism(seeds, scenarios),
        Ok([scenario]) if !seeds.is_set => run_one(seeds, scenario.draw(seeds.from, planted(seeds))),
        Ok(_) if seeds.trace.is_some() => {
            report::complain("fencepost-sim: --trace goes with one seed of one scenario");
            USAGE
        }
        Ok(scenarios) => stories::run(seeds, scenarios),
    }
}

/// Runs one seed in this process.
fn run_one(seeds: &Seeds, options: Options) -> u8 {
    let seed = seeds.from;
    report::say(&format!("seed {seed}: {options}"));
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
    let ran = run_options(options, seeds.trace.is_some());
    if let Some(path) = &seeds.trace
        && let Err(error) = std::fs::write(path, ran.all.join("\n"))
    {
        report::complain(&format!("fencepost-sim: the trace could not be written: {error}"));
        return USAGE;
    }
    report::say(&report::of_seed(seeds, &ran));
    if ran.violations.is_empty() { PASS } else { VIOLATION }
}
