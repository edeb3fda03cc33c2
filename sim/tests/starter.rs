//! The starter: `new` makes a crate that builds with the locked versions, lints, and runs as its workflow says.
//!
//! Owns: one build in the simulator's own target folder, which has everything but the new crate itself and the
//! simulator as its dependency. Must never: reach for the network.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};
use support::{Folder, sim, told};

/// Seeds of each run instead of the workflow's hundred.
const SEEDS: &str = "--seeds 3";

fn sources() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A line typed in the new crate's folder, with what this simulator was built into.
fn typed(folder: &Path, line: &str) -> Output {
    let mut shell = Command::new("/bin/sh");
    // What cargo said to this test: a build script that watches it would be run anew, here and by the next build.
    let is_told = |name: &str| {
        let told = [
            "CARGO_PKG_",
            "CARGO_MANIFEST_",
            "CARGO_BIN_",
            "CARGO_CRATE_",
            "CARGO_PRIMARY_",
        ];
        told.iter().any(|start| name.starts_with(start)) || matches!(name, "CARGO" | "OUT_DIR")
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_told)) {
        shell.env_remove(name);
    }
    shell
        .args(["-c", line])
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", sources().join("target"))
        .env("CARGO_NET_OFFLINE", "true")
        .env("RUST_BACKTRACE", "0")
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .unwrap()
}

/// Names and versions in a lock.
fn versions(lock: &Path) -> BTreeSet<(String, String)> {
    let text = std::fs::read_to_string(lock).unwrap();
    let packages = text.split("[[package]]\nname = \"").skip(1);
    let named = packages.filter_map(|package| package.split_once("\"\nversion = \""));
    named
        .map(|(name, rest)| (name.to_owned(), rest.split('"').next().unwrap().to_owned()))
        .collect()
}

fn workflow(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join(".github/workflows/simulation.yml")).unwrap();
    let lines = text.lines().filter_map(|line| line.split_once("run: cargo sim "));
    lines.map(|(_, words)| format!("cargo sim {words}")).collect()
}

#[test]
fn the_starter_builds_and_passes_what_its_workflow_runs() {
    let room = Folder::new("starter");
    let folder = room.join("pay-roll");
    let root = sources().parent().unwrap().to_str().unwrap();
    let made = sim(&["new", folder.to_str().unwrap(), "--fencepost", root]);
    assert_eq!(made.status.code(), Some(0), "{}", told(&made));
    assert!(!told(&made).contains("failed"), "{}", told(&made));
    let (ours, theirs) = (
        versions(&sources().join("Cargo.lock")),
        versions(&folder.join("sim/Cargo.lock")),
    );
    let others: Vec<_> = theirs.difference(&ours).map(|(name, _)| name.as_str()).collect();
    assert_eq!(others, ["pay-roll", "pay-roll-sim"]);
    let commands = workflow(&folder);
    assert_eq!(commands.len(), 2, "{commands:?}");
    for command in commands {
        let output = typed(&folder, &command.replace("--seeds 100", SEEDS));
        assert_eq!(output.status.code(), Some(0), "{command}: {}", told(&output));
    }
    let report = room.text("pay-roll/reports/simulation.xml");
    assert!(
        report.contains("failures=\"0\"") && report.contains("scenarios/charge.toml"),
        "{report}"
    );
    // What is there already is not written over.
    let again = sim(&["new", folder.to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(2), "{}", told(&again));
    assert!(told(&again).contains("is there already"), "{}", told(&again));
}

#[test]
fn the_guide_shows_the_starters_own_files() {
    let guide = sources().join("../docs/guides/scenarios-in-your-ci.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    for file in [
        "starter/workflow.yml",
        "examples/payments/scenarios/charge.toml",
        "examples/payments/bank.rs",
    ] {
        let text = std::fs::read_to_string(sources().join(file)).unwrap();
        let text = text.replace("crate::charge::", "pay::");
        let shown = guide
            .split("```")
            .any(|block| block.split_once('\n').is_some_and(|(_, body)| body == text));
        assert!(shown, "{file} is not shown as it is");
    }
}
