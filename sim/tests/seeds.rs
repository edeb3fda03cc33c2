//! The simulation as a test: seeds are green, repeat, and find planted bugs.
//!
//! Owns: the sizes of what every commit runs. One process per seed, started by the program itself.
#![allow(clippy::unwrap_used, reason = "a test")]

use fencepost_sim::bugs::PlantedBug;
use std::process::{Command, Output};

fn sim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fencepost-sim"))
        .args(arguments)
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap()
}

/// Standard output and error; of a long run only what says something is wrong, and the total.
fn told(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&all).into_owned();
    let wanted = |line: &&str| {
        [
            "VIOLATION",
            "passed",
            "repeat with",
            "not enough",
            "DETERMINISTIC",
            "found",
            "FOUND",
            "difference",
            "panicked",
        ]
        .iter()
        .any(|word| line.contains(word))
    };
    text.lines().filter(wanted).collect::<Vec<_>>().join("\n")
}

#[test]
fn two_hundred_seeds_are_green_and_nothing_stayed_below_its_floor() {
    let output = sim(&["run", "--seeds", "200"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert!(told(&output).contains("200 seeds passed, 0 failed"));
}

#[test]
fn a_seed_is_the_same_in_two_processes() {
    let output = sim(&["determinism", "--seeds", "24", "--from", "1000"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
}

#[test]
fn a_leak_of_the_real_world_trips_the_determinism_check() {
    let output = sim(&["determinism", "--seeds", "1", "--plant", "leaks-the-real-world"]);
    assert_eq!(output.status.code(), Some(3), "{}", told(&output));
    assert!(told(&output).contains("first difference at event"), "{}", told(&output));
}

#[test]
fn every_planted_bug_is_found_by_its_own_checker() {
    // One hunt for each; `cargo sim mutants` has three.
    let output = sim(&["mutants", "--seeds", "1"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let hunted = PlantedBug::all().filter(|bug| !bug.is_canary()).count();
    assert_eq!(told(&output).lines().count(), hunted, "{}", told(&output));
}

#[test]
fn a_violation_and_a_mistake_have_exit_codes_of_their_own() {
    // Which of these seeds finds it changes with every draw of the world.
    let output = sim(&["run", "--seeds", "20", "--plant", "fires-ahead"]);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    let repeat = told(&output);
    let repeat = repeat.split("repeat with: cargo sim run --seed ").nth(1).unwrap();
    assert!(
        repeat.lines().next().unwrap().ends_with(" --plant fires-ahead"),
        "{repeat}"
    );
    assert_eq!(sim(&["run", "--seed", "many"]).status.code(), Some(2));
}
