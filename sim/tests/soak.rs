//! `scripts/soak`: runs seeds that were not run before, and ends at the first violation with its bundle.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

mod support;

use std::path::Path;
use std::process::{Command, Output};
use support::{CANARY, Folder, first_bundle, told};

fn soak(folder: &Folder, words: &[&str]) -> Output {
    Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/soak"))
        .args(words)
        .env("FENCEPOST_SIM", env!("CARGO_BIN_EXE_fencepost-sim"))
        .env("FENCEPOST_SOAK", folder.name())
        .output()
        .unwrap()
}

fn last(folder: &Folder) -> u64 {
    folder.text("soak-last").trim().parse().unwrap()
}

#[test]
fn a_soak_runs_each_seed_once_whatever_the_clock_says() {
    let folder = Folder::new("soak");
    // As if the clock had been far ahead when the last one ran.
    let ahead = 9_000_000_000_000_000;
    std::fs::write(folder.join("soak-last"), ahead.to_string()).unwrap();
    let output = soak(&folder, &["1s"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let first = format!("seeds {} to ", ahead + 1);
    assert!(told(&output).contains(&first), "{}", told(&output));
    assert!(last(&folder) >= ahead + 20, "{}", told(&output));
}

#[test]
fn a_soak_ends_at_the_first_violation_and_names_its_bundle() {
    let folder = Folder::new("soak-fails");
    let output = soak(&folder, &["1h", "--plant", CANARY]);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    let text = told(&output);
    let bundle = first_bundle(&text);
    assert!(
        bundle.starts_with(folder.name()) && Path::new(bundle).exists(),
        "{text}"
    );
    assert!(last(&folder) > 1_000_000_000, "{text}");
}

#[test]
fn a_length_of_time_that_is_none_is_refused() {
    let folder = Folder::new("soak-usage");
    for word in ["10", "m", "1w", "-5m", "1h2m", "ten"] {
        assert_eq!(soak(&folder, &[word]).status.code(), Some(2), "{word}");
    }
}
