//! The arguments of the program.
//!
//! Owns: their reading. Must never: run anything. Next: `mod.rs`.

use crate::bugs::PlantedBug;

/// Shown for `--help` and after a mistake.
pub const USAGE_TEXT: &str = "\
usage: fencepost-sim run [--seed N | --seeds N [--from N]] [--workers N] [--plant BUG] [--trace FILE]
       fencepost-sim determinism [--seeds N] [--from N] [--workers N] [--plant BUG]
       fencepost-sim mutants [--from N]

run          runs seeds and judges them; one process per seed
determinism  runs each seed in two processes and compares their hashes
mutants      plants each bug in turn and looks for it; --plant takes one of its names

exit codes: 0 pass, 1 violation, 2 usage, 3 not deterministic, 4 coverage floor missed";

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Show the usage.
    Help,
    /// Run seeds.
    Run(Seeds),
    /// Run seeds twice.
    Determinism(Seeds),
    /// Look for planted bugs.
    Mutants(Seeds),
}

/// Which seeds, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// First.
    pub from: u64,
    /// How many.
    pub count: u64,
    /// Processes at once.
    pub workers: usize,
    /// A planted bug.
    pub bug: Option<String>,
    /// Where to write every event.
    pub trace: Option<String>,
}

/// Reads the arguments.
///
/// # Errors
/// What is wrong with them.
pub fn parse(arguments: &[String]) -> Result<Command, String> {
    // `cargo sim -- run` passes the two dashes on.
    let mut words = arguments.iter().map(String::as_str).filter(|word| *word != "--");
    let command = words.next().unwrap_or("--help");
    let mut seeds = Seeds {
        from: 0,
        count: 1,
        workers: std::thread::available_parallelism().map_or(1, usize::from),
        bug: None,
        trace: None,
    };
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        read_option(&mut seeds, word, value)?;
    }
    match command {
        "run" => Ok(Command::Run(seeds)),
        "determinism" => Ok(Command::Determinism(seeds)),
        "mutants" => Ok(Command::Mutants(seeds)),
        "-h" | "--help" | "help" => Ok(Command::Help),
        other => Err(format!("there is no command {other}")),
    }
}

fn read_option(seeds: &mut Seeds, word: &str, value: &str) -> Result<(), String> {
    let number = || {
        value
            .parse::<u64>()
            .map_err(|_| format!("{word} needs a number, not {value}"))
    };
    match word {
        "--seed" | "--from" => seeds.from = number()?,
        "--seeds" => seeds.count = number()?.max(1),
        "--workers" => seeds.workers = usize::try_from(number()?).unwrap_or(1).max(1),
        "--trace" => seeds.trace = Some(value.to_owned()),
        "--plant" if PlantedBug::named(value).is_some() => seeds.bug = Some(value.to_owned()),
        "--plant" => {
            let names: Vec<&str> = PlantedBug::all().map(PlantedBug::name).collect();
            return Err(format!("there is no bug {value}; there are {}", names.join(", ")));
        }
        other => return Err(format!("there is no option {other}")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(line: &str) -> Result<Command, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words)
    }

    #[test]
    fn seeds_are_read() {
        let Ok(Command::Run(seeds)) = parse_words("-- run --seeds 20 --from 7 --workers 3") else {
            panic!("not a run");
        };
        assert_eq!((seeds.from, seeds.count, seeds.workers), (7, 20, 3));
    }

    #[test]
    fn mistakes_are_named() {
        for (line, part) in [
            ("jump", "no command jump"),
            ("run --seed", "needs a value"),
            ("run --seed x", "needs a number"),
            ("run --plant nothing", "no bug nothing"),
            ("run --fast 1", "no option --fast"),
        ] {
            let why = parse_words(line).expect_err(line);
            assert!(why.contains(part), "{line}: {why}");
        }
    }
}
