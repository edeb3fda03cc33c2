//! The arguments of the program.
//!
//! Owns: their reading. Must never: run anything. Next: `mod.rs`.

use crate::bugs::PlantedBug;
use crate::without::Without;

/// Shown for `--help` and after a mistake.
pub const USAGE_TEXT: &str = "\
usage: fencepost-sim run [PATH…] [--seed N | --seeds N [--from N]] [--workers N] [--plant BUG] [--without LIST]
                         [--trace FILE] [--junit FILE] [--json FILE] [--html DIR] [--annotate github] [--bundles DIR]
       fencepost-sim lint PATH…
       fencepost-sim repro BUNDLE [--html DIR] [--any-commit]
       fencepost-sim shrink BUNDLE [-o FILE] [--runs N] [--any-commit]
       fencepost-sim determinism [PATH…] [--seeds N] [--from N] [--workers N] [--plant BUG]
       fencepost-sim mutants [--list | --seeds N] [--from N]
       fencepost-sim stats
       fencepost-sim new FOLDER [--fencepost SOURCES]

run          runs seeds and judges them; one process per seed. PATH is a scenario file, or a folder of
             them; without one the seed draws the whole story
lint         reads scenario files and names every mistake in them
repro        runs a bundle's seed again and says whether the same came out
shrink       leaves out what a bundle's failure does not need, and writes a smaller bundle
determinism  runs each seed in two processes and compares their hashes
mutants      plants each bug in turn and looks for it in the scenario that must find it; --plant takes one
             of its names, --seeds says how many hunts there are for each (3)
stats        counts what the catalogue holds
new          makes a crate with a handler of your own, its scenario, its simulation and a workflow for GitHub;
             SOURCES is the folder of Fencepost's, or the address of a repository (those of this program)

--bundles    where a failure's bundle is written (target/fencepost-sim); `none` writes none
--html       a timeline for one seed, or for each of many that failed, with an index
--without    what of a seed's story is left out, as a bundle or shrink says it

exit codes: 0 pass, 1 violation, 2 usage, 3 not deterministic, 4 coverage floor missed";

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Show the usage.
    Help,
    /// Run seeds.
    Run(Seeds),
    /// Run a bundle again.
    Repro(OfBundle),
    /// Make a bundle smaller.
    Shrink(OfBundle),
    /// Run seeds twice.
    Determinism(Seeds),
    /// Look for planted bugs.
    Mutants(Seeds),
    /// List them.
    Bugs,
    /// Read scenario files.
    Lint(Vec<String>),
    /// Count the catalogue.
    Stats,
    /// Make a crate.
    New(Starter),
}

/// Which crate to make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Starter {
    /// Its folder, whose last part is its name.
    pub folder: String,
    /// Folder or repository of Fencepost's sources.
    pub fencepost: Option<String>,
}

/// Which seeds, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// What is left out.
    pub without: Without,
    /// Where to write every event.
    pub trace: Option<String>,
    /// Where to write timelines.
    pub html: Option<String>,
    /// Where to write bundles of failures.
    pub bundles: Option<String>,
    /// Where to write the report as JUnit XML.
    pub junit: Option<String>,
    /// Where to write the report as JSON.
    pub json: Option<String>,
    /// Whether to print annotations for GitHub.
    pub annotates: bool,
    /// Where a child writes its record for its parent.
    pub record: Option<String>,
}

/// Which bundle, and what for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfBundle {
    /// Its file.
    pub path: String,
    /// Where to write the smaller one.
    pub output: Option<String>,
    /// Where to write a timeline.
    pub html: Option<String>,
    /// Runs that shrinking may take.
    pub runs_max: u64,
    /// Go on with a bundle of another commit.
    pub any_commit: bool,
}

/// Runs that shrinking takes at most, unless somebody says otherwise.
const RUNS_MAX: u64 = 400;

/// Reads the arguments.
///
/// # Errors
/// What is wrong with them.
pub fn parse(arguments: &[String]) -> Result<Command, String> {
    // `cargo sim -- run` passes the two dashes on.
    let words: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .filter(|word| *word != "--")
        .collect();
    let (command, rest) = words.split_first().unwrap_or((&"--help", &[][..]));
    match *command {
        "run" => Ok(Command::Run(read_seeds(rest)?)),
        "determinism" => Ok(Command::Determinism(read_seeds(rest)?)),
        "mutants" => read_mutants(rest),
        "repro" => Ok(Command::Repro(read_bundle(command, rest)?)),
        "shrink" => Ok(Command::Shrink(read_bundle(command, rest)?)),
        "lint" if rest.is_empty() => Err("lint needs a file or a folder".to_owned()),
        "lint" => Ok(Command::Lint(rest.iter().map(|path| (*path).to_owned()).collect())),
        "stats" => match rest.first() {
            None => Ok(Command::Stats),
            Some(other) => Err(format!("stats takes no {other}")),
        },
        "new" => read_starter(rest),
        "-h" | "--help" | "help" => Ok(Command::Help),
        other => Err(format!("there is no command {other}")),
    }
}

fn read_seeds(words: &[&str]) -> Result<Seeds, String> {
    let mut seeds = Seeds {
        count: 1,
        workers: std::thread::available_parallelism().map_or(1, usize::from),
        ..Seeds::default()
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            seeds.paths.push((*word).to_owned());
            continue;
        }
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        read_option(&mut seeds, word, value)?;
    }
    Ok(seeds)
}

fn read_mutants(words: &[&str]) -> Result<Command, String> {
    if words == ["--list"] {
        return Ok(Command::Bugs);
    }
    let seeds = read_seeds(words)?;
    match seeds.paths.is_empty() {
        true => Ok(Command::Mutants(seeds)),
        false => Err("mutants knows its scenarios, and takes no path".to_owned()),
    }
}

fn read_starter(words: &[&str]) -> Result<Command, String> {
    let (folder, fencepost) = match words {
        [folder] => (*folder, None),
        [folder, "--fencepost", sources] | ["--fencepost", sources, folder] => (*folder, Some((*sources).to_owned())),
        _ => return Err("new needs a folder, and takes --fencepost SOURCES".to_owned()),
    };
    let folder = folder.to_owned();
    Ok(Command::New(Starter { folder, fencepost }))
}

fn number(word: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("{word} needs a number, not {value}"))
}

fn read_option(seeds: &mut Seeds, word: &str, value: &str) -> Result<(), String> {
    let text = || Some(value.to_owned());
    match word {
        "--seed" | "--from" => seeds.from = number(word, value)?,
        "--seeds" => {
            seeds.count = number(word, value)?.max(1);
            seeds.is_set = true;
        }
        "--workers" => seeds.workers = usize::try_from(number(word, value)?).unwrap_or(1).max(1),
        "--trace" => seeds.trace = text(),
        "--html" => seeds.html = text(),
        "--bundles" => seeds.bundles = text(),
        "--junit" => seeds.junit = text(),
        "--json" => seeds.json = text(),
        "--record" => seeds.record = text(),
        "--without" => seeds.without = value.parse()?,
        "--annotate" if value == "github" => seeds.annotates = true,
        "--annotate" => return Err(format!("--annotate knows github, not {value}")),
        "--plant" if PlantedBug::named(value).is_some() => seeds.bug = text(),
        "--plant" => {
            let names: Vec<&str> = PlantedBug::all().map(PlantedBug::name).collect();
            return Err(format!("there is no bug {value}; there are {}", names.join(", ")));
        }
        other => return Err(format!("there is no option {other}")),
    }
    Ok(())
}

fn read_bundle(command: &str, words: &[&str]) -> Result<OfBundle, String> {
    let mut read = OfBundle {
        runs_max: RUNS_MAX,
        ..OfBundle::default()
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if *word == "--any-commit" {
            read.any_commit = true;
        } else if !word.starts_with('-') && read.path.is_empty() {
            read.path = (*word).to_owned();
        } else {
            let value = words.next().map(|value| (*value).to_owned());
            let value = value.ok_or_else(|| format!("{word} needs a value"))?;
            match (*word, command) {
                ("-o" | "--output", "shrink") => read.output = Some(value),
                ("--runs", "shrink") => read.runs_max = number(word, &value)?,
                ("--html", "repro") => read.html = Some(value),
                _ => return Err(format!("{command} has no option {word}")),
            }
        }
    }
    if read.path.is_empty() {
        return Err(format!("{command} needs a bundle"));
    }
    Ok(read)
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
        let Ok(Command::Run(seeds)) = parse_words("-- run --seeds 20 --from 7 --workers 3 --annotate github") else {
            panic!("not a run");
        };
        assert_eq!((seeds.from, seeds.count, seeds.workers), (7, 20, 3));
        assert!(seeds.annotates);
    }

    #[test]
    fn bundles_are_read() {
        let Ok(Command::Shrink(read)) = parse_words("shrink a.json -o b.json --any-commit --runs 9") else {
            panic!("not a bundle");
        };
        assert_eq!((read.path.as_str(), read.output.as_deref()), ("a.json", Some("b.json")));
        assert_eq!((read.any_commit, read.runs_max), (true, 9));
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
            ("run --list", "needs a value"),
            ("mutants a.toml", "takes no path"),
            ("run --annotate gitlab", "knows github"),
            ("run --without cloud:1", "cannot be left out"),
            ("repro", "repro needs a bundle"),
            ("repro a.json -o b", "repro has no option -o"),
            ("shrink a.json --runs", "needs a value"),
            ("stats --all", "takes no --all"),
            ("new", "needs a folder"),
            ("new a --git b", "takes --fencepost"),
        ] {
            let why = parse_words(line).expect_err(line);
            assert!(why.contains(part), "{line}: {why}");
        }
    }
}
