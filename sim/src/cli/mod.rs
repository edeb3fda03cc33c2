//! The program `fencepost-sim`: arguments, exit codes, and what is printed.
//!
//! Owns: the words of the command line. One seed runs in one process: `workers.rs` starts this very
//! program again for each. Exit codes: 0 pass, 1 violation, 2 usage, 3 not deterministic,
//! 4 coverage floor missed. Next: `arguments.rs`, `single.rs` (one seed), `workers.rs` (many), `repro.rs`, `shrink.rs`.

mod arguments;
mod child;
mod floors;
mod new;
mod outputs;
mod report;
mod repro;
mod shrink;
mod single;
mod stats;
mod stories;
mod workers;

use arguments::Command;
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
        Ok(Command::Lint(paths)) => stories::lint(&paths),
        Ok(Command::Run(seeds)) if !seeds.paths.is_empty() => stories::run(&seeds),
        Ok(Command::Determinism(seeds)) if !seeds.paths.is_empty() => stories::determinism(&seeds),
        Ok(Command::Run(seeds)) if seeds.count == 1 => single::run_one(&seeds, None),
        Ok(Command::Run(seeds)) => workers::run_many(&seeds),
        Ok(Command::Repro(bundle)) => repro::repro(&bundle),
        Ok(Command::Shrink(bundle)) => shrink::shrink(&bundle),
        Ok(Command::Determinism(seeds)) => workers::compare(&seeds),
        Ok(Command::Mutants(seeds)) => workers::mutants(&seeds),
        Ok(Command::Bugs) => workers::bugs(),
        Ok(Command::Stats) => stats::stats(),
        Ok(Command::New(starter)) => new::new(&starter),
        Err(why) => {
            report::complain(&format!("fencepost-sim: {why}\n\n{}", arguments::USAGE_TEXT));
            USAGE
        }
    };
    ExitCode::from(code)
}
