//! Handlers of a user: the classic bug is found within seconds, the right handler passes, and both by the same command
//! line.
//!
//! Owns: the sizes of what every commit runs of `examples/payments`. Must never: run a handler by another way than a
//! user does.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::{Folder, first_bundle, sim, told};

const SCENARIOS: &str = "examples/payments/scenarios";

/// The example's program, which `cargo test` builds beside this one.
fn program() -> PathBuf {
    let built = Path::new(env!("CARGO_BIN_EXE_fencepost-sim")).parent().unwrap();
    built.join("examples/payments")
}

fn payments(arguments: &[&str]) -> Output {
    Command::new(program())
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap()
}

fn run(scenario: &str, more: &[&str]) -> Output {
    let path = format!("{SCENARIOS}/{scenario}.toml");
    payments(&[&["run", &path], more].concat())
}

#[test]
fn the_right_handler_passes_and_its_scenario_is_covered() {
    let output = run("charge", &["--seeds", "12", "--bundles", "none"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
}

#[test]
fn a_handler_that_ignores_its_key_is_found_with_a_bundle_that_repeats_and_shrinks() {
    let folder = Folder::new("blind");
    let output = run("charge-blindly", &["--seeds", "4", "--bundles", folder.name()]);
    let text = told(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("VIOLATION no_double_effect: w0-"), "{text}");
    assert!(text.contains("/charge was applied 2 times"), "{text}");
    let bundle = first_bundle(&text);
    let again = payments(&["repro", bundle]);
    assert_eq!(again.status.code(), Some(1), "{}", told(&again));
    assert!(
        told(&again).contains("the same verdict and the same hash came out"),
        "{}",
        told(&again)
    );
    let smaller = payments(&["shrink", bundle, "--runs", "6"]);
    assert!(told(&smaller).contains("no_double_effect"), "{}", told(&smaller));
}

#[test]
fn a_handler_that_notes_a_job_as_done_before_its_effect_is_found() {
    let output = run("charge-once-noted", &["--seeds", "4", "--bundles", "none"]);
    let text = told(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("VIOLATION books_balance"), "{text}");
    assert!(text.contains("is Succeeded with 0 effects"), "{text}");
}

#[test]
fn a_handler_is_as_deterministic_as_the_rest() {
    let path = format!("{SCENARIOS}/charge.toml");
    let output = payments(&["determinism", &path, "--seeds", "2", "--from", "30"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
}

fn lint(name: &str, from: &str, to: &str, with: impl Fn(&[&str]) -> Output) -> Output {
    let folder = Folder::new(name);
    let text = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(SCENARIOS)
            .join("charge.toml"),
    );
    let text = text.unwrap();
    assert!(text.contains(from), "{from}");
    let file = folder.join("changed.toml");
    std::fs::write(&file, text.replace(from, to)).unwrap();
    with(&["lint", file.to_str().unwrap()])
}

#[test]
fn mistakes_about_handlers_are_told_with_what_was_meant() {
    for (name, from, to, part) in [
        ("misspelled", "\"charge\"", "\"chrage\"", "did you mean \"charge\"?"),
        ("json", "1250}'", "1250'", "this is no JSON"),
        (
            "both",
            "handler =",
            "effect = \"key\"\nhandler =",
            "handler or effect, not both",
        ),
        ("alone", "handler = \"charge\"\n", "", "payload needs a handler"),
    ] {
        let output = lint(name, from, to, payments);
        assert_eq!(output.status.code(), Some(2), "{name}: {}", told(&output));
        assert!(told(&output).contains(part), "{name}: {}", told(&output));
    }
    let strange = lint("strange", "\"charge\"", "\"charge\"", sim);
    assert!(told(&strange).contains("no handlers of its own"), "{}", told(&strange));
}

#[test]
fn the_index_of_a_set_leads_to_the_timelines_of_what_failed() {
    let folder = Folder::new("index");
    let pages = folder.join("pages");
    let pages = pages.to_str().unwrap();
    let output = run(
        "charge-blindly",
        &["--seeds", "2", "--from", "0", "--bundles", "none", "--html", pages],
    );
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    let index = folder.text("pages/index.html");
    let mut linked = 0;
    for link in index.split("href=\"").skip(1) {
        let file = link.split('"').next().unwrap();
        assert!(folder.join(&format!("pages/{file}")).exists(), "{file}");
        linked += 1;
    }
    assert!(linked > 0, "{index}");
}

#[test]
fn the_catalogue_of_a_program_with_handlers_is_its_own() {
    let output = payments(&["stats"]);
    assert!(
        told(&output).contains("handlers: charge, charge-blindly, charge-once-noted"),
        "{}",
        told(&output)
    );
}
