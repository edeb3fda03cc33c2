//! Scenario files: bad ones are told all their mistakes, good ones pass a few seeds and cover what they expect.
//!
//! Owns: the sizes of what every commit runs. `BLESS=1` writes what is told of the bad files anew. Must never: run
//! a scenario by another way than a person does.
#![allow(clippy::unwrap_used, reason = "a test")]

use fencepost_sim::runtime::Stream;
use fencepost_sim::scenario::{Scenario, files, states};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Seeds of each file of a family that every commit runs: enough for all that its files expect to be seen.
const SEEDS: &[(&str, &str)] = &[("smoke", "2"), ("faults", "4"), ("clock-changes", "4")];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn sim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fencepost-sim"))
        .args(arguments)
        .current_dir(root())
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// What says that something is wrong.
fn told(output: &Output) -> String {
    let words = ["VIOLATION", "passed", "repeat with", "not covered", "error", "panicked"];
    let all = text(output);
    let lines = all.lines().filter(|line| words.iter().any(|word| line.contains(word)));
    lines.collect::<Vec<_>>().join("\n")
}

fn bad_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    files::find(&[folder.display().to_string()]).unwrap()
}

#[test]
fn a_bad_file_is_told_every_mistake_with_its_place_and_what_to_write() {
    let bad = bad_files();
    assert!(bad.len() >= 40, "{}", bad.len());
    let mut differ = Vec::new();
    for path in bad {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let told = format!("{}\n", Scenario::parse(&name, &text).expect_err(&name));
        let golden = path.with_extension("txt");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&golden, &told).unwrap();
        }
        if std::fs::read_to_string(&golden).unwrap_or_default() != told {
            differ.push(format!("{name}:\n{told}"));
        }
    }
    assert!(differ.is_empty(), "BLESS=1 writes them anew:\n{}", differ.join("\n"));
}

#[test]
fn a_misspelled_key_a_strange_unit_and_a_missing_machine_are_all_told_at_once() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad/everything-at-once.toml");
    let output = sim(&["lint", &path.display().to_string()]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    for part in [
        "did you mean `story`?",
        "did you mean `lease`?",
        "did you mean `over`?",
        "did you mean `role`?",
        "no unit \"seconds\"",
        "lower end",
        "did you mean \"stale_token_rejected\"?",
        "settles_within = 60",
        "16 mistakes",
    ] {
        assert!(text(&output).contains(part), "{part}: {}", text(&output));
    }
}

#[test]
fn the_projects_own_files_have_no_mistake_and_stories_of_their_own() {
    let output = sim(&["lint", "scenarios"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let folder = root().join("scenarios").display().to_string();
    let mut stories = std::collections::BTreeSet::new();
    for path in files::find(&[folder]).unwrap() {
        let scenario = files::read(&path).unwrap();
        let plan = scenario.draw(0, None).plan.unwrap();
        assert!(stories.insert(plan.story.clone()), "{}: told elsewhere", path.display());
    }
    assert!(stories.len() >= 25, "{}", stories.len());
}

#[test]
fn no_change_of_a_good_file_makes_its_reader_panic() {
    let folder = root().join("scenarios").display().to_string();
    let good: Vec<String> = files::find(&[folder])
        .unwrap()
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    let mut stream = Stream::new(7, "mutations");
    let (mut read, mut refused) = (0, 0);
    for _ in 0..6_000 {
        let text = mutate(&good, &mut stream);
        match Scenario::parse("mutated.toml", &text) {
            Ok(scenario) => {
                let seed = stream.draw();
                assert!(!scenario.draw(seed, None).to_string().is_empty());
                read += 1;
            }
            Err(mistakes) => {
                assert!(mistakes.count > 0 && !mistakes.to_string().is_empty(), "{text}");
                refused += 1;
            }
        }
    }
    assert!(read > 100 && refused > 1_000, "{read} were read, {refused} refused");
}

/// A good file with bytes changed, lines moved, doubled, cut or taken from another file.
fn mutate(good: &[String], stream: &mut Stream) -> String {
    const BITS: &[&str] = &[
        "\"",
        "[",
        "]",
        "{",
        "}",
        "=",
        "..",
        "-",
        "9",
        "99999999999999999999",
        "ä",
        "\u{0}",
        "\u{feff}",
        "\n",
        "'''",
        "#",
        "1e9",
        "lease",
        "[[fault]]",
        "nan",
        "\\u0000",
        "\t",
        "\r",
        "2026-01-01",
        "true",
    ];
    let mut text = stream.pick(good).unwrap().clone();
    for _ in 0..stream.between(1, 4) {
        let letters: Vec<char> = text.chars().collect();
        let at = usize::try_from(stream.between(0, letters.len() as u64)).unwrap();
        let long = usize::try_from(stream.between(0, 12)).unwrap();
        let (head, tail) = letters.split_at(at.min(letters.len()));
        let (head, tail): (String, String) = (head.iter().collect(), tail.iter().collect());
        let less: String = tail.chars().skip(long).collect();
        text = match stream.between(0, 5) {
            0 => head + less.as_str(),
            1 => head + stream.pick(BITS).unwrap() + tail.as_str(),
            2 => head + stream.pick(BITS).unwrap() + less.as_str(),
            3 => {
                let mut lines: Vec<&str> = text.lines().collect();
                let line = usize::try_from(stream.between(0, lines.len().max(1) as u64 - 1)).unwrap();
                let taken = lines.get(line).copied().unwrap_or_default();
                let to = usize::try_from(stream.between(0, lines.len() as u64)).unwrap();
                lines.insert(to, taken);
                lines.join("\n")
            }
            4 => {
                let other = stream.pick(good).unwrap();
                let lines: Vec<&str> = other.lines().collect();
                format!("{text}\n{}", stream.pick(&lines).copied().unwrap_or_default())
            }
            _ => tail + head.as_str(),
        };
    }
    text
}

#[test]
fn what_is_taken_out_of_a_file_reshuffles_nothing_else() {
    let path = root().join("scenarios/faults/zombie-worker.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let with = Scenario::parse("a", &text).unwrap();
    let (before, rest) = text.split_once("[[fault]]").unwrap();
    let without = format!("{before}[[fault]]{}", rest.split_once("[[fault]]").unwrap().1);
    let without = Scenario::parse("b", &without).unwrap();
    for seed in 0..20 {
        let (with, without) = (with.draw(seed, None), without.draw(seed, None));
        let strokes = |options: &fencepost_sim::options::Options| {
            let plan = options.plan.as_ref().unwrap();
            format!("{:?}", plan.faults.last().unwrap().strokes)
        };
        assert_eq!(strokes(&with), strokes(&without));
        assert_eq!(
            (with.lease, with.shards, with.starts_at),
            (without.lease, without.shards, without.starts_at)
        );
    }
}

#[test]
fn every_scenario_passes_its_seeds_and_covers_what_it_expects() {
    for (family, seeds) in SEEDS {
        let output = sim(&["run", &format!("scenarios/{family}"), "--seeds", seeds]);
        assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    }
}

#[test]
fn a_scenario_is_the_same_in_two_processes() {
    let output = sim(&[
        "determinism",
        "scenarios/faults/two-owners.toml",
        "--seeds",
        "2",
        "--from",
        "50",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}

fn run_text(name: &str, text: &str) -> Output {
    let path = std::env::temp_dir().join(format!("fencepost-{}-{name}.toml", std::process::id()));
    std::fs::write(&path, text).unwrap();
    let output = sim(&["run", &path.display().to_string(), "--seeds", "2"]);
    std::fs::remove_file(&path).unwrap();
    output
}

const QUIET: &str = "story = \"Nothing befalls it.\"\n[topology]\nnodes = { scheduler = 1 }\n[[workload]]\n\
    kind = \"one-shot-jobs\"\ncount = 5\nover = \"10s\"\n";

#[test]
fn a_set_that_never_saw_what_it_expects_or_never_felt_a_fault_is_not_green() {
    let output = run_text("quiet", QUIET);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let unseen = format!("{QUIET}[expect]\nsometimes = [\"worker_lost\"]\n");
    let output = run_text("unseen", &unseen);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output));
    assert!(
        text(&output).contains("worker_lost was never seen"),
        "{}",
        text(&output)
    );
    // A millisecond in which nobody calls the store.
    let unfelt = format!("{QUIET}[[fault]]\nkind = \"store-full\"\nafter = \"9999ms\"\nlasts = \"1us\"\n");
    let output = run_text("unfelt", &unfelt);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output));
    assert!(
        text(&output).contains("fault 1 (store-full) was never felt"),
        "{}",
        text(&output)
    );
    // Nothing is in work, no timer goes off, nothing is sent and no clock is read in a microsecond.
    let mut idle = QUIET.replace("count = 5", "count = 1");
    for (at, kind) in [(9_991, "pause"), (9_993, "cut"), (9_995, "clock"), (9_997, "crash")] {
        let by = if kind == "clock" { "by = \"1s\"\n" } else { "" };
        idle +=
            &format!("[[fault]]\nkind = \"{kind}\"\nrole = \"scheduler\"\nafter = \"{at}ms\"\nlasts = \"1us\"\n{by}");
    }
    let output = run_text("idle-machine", &idle);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output));
    for kind in ["1 (pause)", "2 (cut)", "3 (clock)", "4 (crash)"] {
        let unfelt = format!("fault {kind} was never felt");
        assert!(text(&output).contains(&unfelt), "{unfelt}: {}", text(&output));
    }
    let idle = format!("{QUIET}[expect]\ninvariants = [\"no_missed_fire\"]\n");
    let output = run_text("idle", &idle);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output));
    assert!(
        text(&output).contains("no_missed_fire judged nothing"),
        "{}",
        text(&output)
    );
}

#[test]
fn every_state_that_a_file_may_expect_is_one_that_runs_count() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = String::new();
    for file in [
        "run.rs",
        "world/target.rs",
        "world/store.rs",
        "world/hands.rs",
        "world/remote_work.rs",
    ] {
        all += &std::fs::read_to_string(source.join(file)).unwrap();
    }
    for state in states::STATES {
        assert!(all.contains(&format!("\"{}\"", states::counted(state))), "{state}");
    }
}
