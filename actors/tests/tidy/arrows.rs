//! Which package may know which.
//!
//! Owns: the arrows storage → core, actors → core and storage, sim → all three, what judges a
//! history → core alone; the purity of the core; production free of the simulator. Must never: look at how code is
//! written. Next: docs/ARCHITECTURE.md, invariants 1 and 11.

use std::process::Command;

use crate::source::{SourceFile, idents};
use crate::{Violation, sample};

/// Manifest, and what must not stand among its dependencies of any kind.
const FORBIDDEN: &[(&str, &[&str])] = &[
    (
        "actors/core/Cargo.toml",
        &[
            "fencepost",
            "fencepost-storage",
            "fencepost-sim",
            "fencepost-history",
            "tokio",
            "actix",
            "actix-rt",
            "madsim",
            "fjall",
            "bincode",
            "serde",
            "tracing",
            "metrics",
            "getrandom",
            "rand",
        ],
    ),
    (
        "storage/Cargo.toml",
        &[
            "fencepost",
            "fencepost-sim",
            "fencepost-history",
            "actix",
            "actix-rt",
            "madsim",
            "axum",
            "hyper",
        ],
    ),
    ("actors/Cargo.toml", &["fencepost-sim", "madsim", "bincode"]),
    (
        "sim/history/Cargo.toml",
        &[
            "fencepost",
            "fencepost-storage",
            "fencepost-sim",
            "tokio",
            "madsim",
            "actix",
        ],
    ),
];

/// May appear in a package's manifest although forbidden above, with the reason.
const EXEMPT: &[(&str, &str, &str)] = &[];

/// Names that the core's code may not say: it has no clock, randomness, IO, threads or futures.
const IMPURE: &[&str] = &[
    "tokio",
    "actix",
    "madsim",
    "fjall",
    "bincode",
    "SystemTime",
    "Instant",
    "getrandom",
    "rand",
    "async",
    "await",
    "thread",
    "println",
    "eprintln",
    "tracing",
];

pub fn check_manifests(files: &[SourceFile]) -> Vec<Violation> {
    let mut found = Vec::new();
    for (manifest, forbidden) in FORBIDDEN {
        let Some(file) = files.iter().find(|f| f.path == *manifest) else {
            continue;
        };
        for (line, name) in dependencies(&file.text) {
            let exempt = EXEMPT.iter().any(|(m, n, _)| m == manifest && *n == name);
            if forbidden.contains(&name.as_str()) && !exempt {
                let what = format!("{manifest} must not depend on {name}");
                found.push(Violation::new(&file.path, line, what));
            }
        }
    }
    found
}

/// Names in every `[…dependencies]` section, with their line.
fn dependencies(manifest: &str) -> Vec<(usize, String)> {
    let mut inside = false;
    let mut names = Vec::new();
    for (index, line) in manifest.lines().enumerate() {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            inside = section.ends_with("dependencies");
            if let Some((_, name)) = section.split_once("dependencies.") {
                names.push((index + 1, name.to_owned()));
            }
        } else if inside {
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            if !name.is_empty() && !name.starts_with('#') {
                names.push((index + 1, name.to_owned()));
            }
        }
    }
    names
}

pub fn check_core(files: &[SourceFile]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files.iter().filter(|f| f.path.starts_with("actors/core/src/")) {
        // What the simulator plants in the machines is compiled for it alone.
        let lines = file
            .code
            .lines()
            .enumerate()
            .filter(|(_, line)| !(line.trim().starts_with("#[cfg(") && line.ends_with(")]")));
        for (index, line) in lines {
            let io = ["std::fs", "std::net", "std::env", "std::io", "std::process"];
            let said = idents(line).map(|(_, word)| word).find(|word| IMPURE.contains(word));
            if let Some(name) = said.or(io.into_iter().find(|path| line.contains(path))) {
                let what = format!("the core is pure: it must not name `{name}`");
                found.push(Violation::new(&file.path, index + 1, what));
            }
        }
    }
    found
}

/// Asks cargo for the normal dependencies of the shipped package.
pub fn check_production_tree() -> Vec<Violation> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--offline",
            "-e",
            "normal",
            "-p",
            "fencepost",
            "--prefix",
            "none",
        ])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.lines().count() > 20,
        "cargo tree must list the packages: {problem}"
    );
    forbidden_in_tree(&text)
}

fn forbidden_in_tree(tree: &str) -> Vec<Violation> {
    let simulator = ["madsim v", "fencepost-sim v", "fencepost-history v", "madsim-macros v"];
    tree.lines()
        .filter(|line| simulator.iter().any(|name| line.starts_with(name)))
        .map(|line| Violation::new("Cargo.lock", 1, format!("production would ship {line}")))
        .collect()
}

#[test]
fn a_wrong_arrow_is_found() {
    let text = "[package]\nname = \"x\"\n\n[dependencies]\nchrono.workspace = true\n\
                [dev-dependencies]\ntokio = \"1\"\n[target.'cfg(unix)'.dependencies.fjall]\n";
    let found = check_manifests(&sample("actors/core/Cargo.toml", text));
    assert_eq!(found.iter().map(|v| v.line).collect::<Vec<_>>(), [7, 8]);
}

#[test]
fn a_clock_in_the_core_is_found() {
    let text = "//! A header.\n// Instant is fine in a comment\nlet a = Instant::now();\nuse std::fs;\n";
    let found = check_core(&sample("actors/core/src/x.rs", text));
    assert_eq!(found.iter().map(|v| v.line).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(check_core(&sample("actors/src/x.rs", text)).len(), 0);
}

#[test]
fn the_simulator_in_production_is_found() {
    assert_eq!(forbidden_in_tree("fencepost v0.1.0\nmadsim-tokio v0.2.30\n").len(), 0);
    assert_eq!(forbidden_in_tree("fencepost v0.1.0\nmadsim v0.2.34\n").len(), 1);
}
