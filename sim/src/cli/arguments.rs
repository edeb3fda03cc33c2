//! The arguments of the program.
//!
//! Owns: their reading. Must never: run anything. Next: `mod.rs`.

use crate::bugs::PlantedBug;

/// Shown for `--help` and after a mistake.
pub const USAGE_TEXT: &str = "\
usage: fencepost-sim run [PATH…] [--seed N | --seeds N [--from N]] [--workers N] [--plant BUG] [--trace FILE]
       fencepost-sim determinism [PATH…] [--seeds N] [--from N] [--workers N] [--plant BUG]
       fencepost-sim mutants [--list | --seeds N] [--from N]
       fencepost-sim lint PATH…

run          runs seeds and judges them; one process per seed. PATH is a scenario file, or a folder of
             them; without one the seed draws the whole story
determinism  runs each seed in two processes and compares their hashes
mutants      plants each bug in turn and looks for it in the scenario that must find it; --plant takes one
             of its names, --seeds says how many hunts there are for each (3)
lint         reads scenario files and names every mistake in them

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
    /// List them.
    Bugs,
    /// Read scenario files.
    Lint(Vec<String>),
}

/// Which seeds, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// Scenario files and folders; none is the swarm.
    pub paths: Vec<String>,
    /// Several were asked for: together they must cover what a scenario expects.
    pub is_set: bool,
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
        paths: Vec::new(),
        is_set: false,
        from: 0,
        count: 1,
        workers: std::thread::available_parallelism().map_or(1, usize::from),
        bug: None,
        trace: None,
    };
    let mut is_list = false;
    while let Some(word) = words.next() {
        if !word.starts_with("--") {
            seeds.paths.push(word.to_owned());
            continue;
        }
        if word == "--list" {
            is_list = true;
            continue;
        }
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        read_option(&mut seeds, word, value)?;
    }
    if is_list && command != "mutants" {
        return Err("--list goes with mutants".to_owned());
    }
    match command {
        "lint" if seeds.paths.is_empty() => Err("lint needs a file or a folder".to_owned()),
        "lint" => Ok(Command::Lint(seeds.paths)),
        "mutants" if !seeds.paths.is_empty() => Err("mutants knows its scenarios, and takes no path".to_owned()),
        "mutants" if is_list => Ok(Command::Bugs),
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
        "--seeds" => {
            seeds.count = number()?.max(1);
            seeds.is_set = true;
        }
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
    fn paths_stand_anywhere() {
        let Ok(Command::Run(seeds)) = parse_words("run a.toml --seeds 5 b") else {
            panic!("not a run");
        };
        assert_eq!(
            (seeds.paths, seeds.count),
            (vec!["a.toml".to_owned(), "b".to_owned()], 5)
        );
        assert_eq!(parse_words("lint x"), Ok(Command::Lint(vec!["x".to_owned()])));
        assert_eq!(parse_words("mutants --list"), Ok(Command::Bugs));
    }

    #[test]
    fn mistakes_are_named() {
        for (line, part) in [
            ("jump", "no command jump"),
            ("run --seed", "needs a value"),
            ("run --seed x", "needs a number"),
            ("run --plant nothing", "no bug nothing"),
            ("run --fast 1", "no option --fast"),
            ("lint", "needs a file"),
            ("run --list", "goes with mutants"),
            ("mutants a.toml", "takes no path"),
        ] {
            let why = parse_words(line).expect_err(line);
            assert!(why.contains(part), "{line}: {why}");
        }
    }
}
