//! The simulator must test the versions that ship.
//!
//! Owns: the comparison of the two lock files and of the two lint tables. Must never: resolve
//! versions itself. Next: `sim/Cargo.toml`, which is a workspace of its own.

use std::collections::{BTreeMap, BTreeSet};

use crate::Violation;
use crate::source::SourceFile;

/// Versions that only production's lock holds, with the reason.
const EXEMPT: &[(&str, &str, &str)] = &[
    ("rand", "0.10.4", "of proptest: tests only"),
    ("rand_core", "0.10.1", "of proptest: tests only"),
];

pub fn check(files: &[SourceFile]) -> Vec<Violation> {
    let root = versions(text_of(files, "Cargo.lock"));
    let sim = versions(text_of(files, "sim/Cargo.lock"));
    assert!(root.len() > 20 && sim.len() > 20, "both lock files must be there");
    compare(&root, &sim)
}

/// Of a package that both locks know they must hold the same versions.
fn compare(root: &BTreeMap<String, BTreeSet<String>>, sim: &BTreeMap<String, BTreeSet<String>>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (name, all) in root {
        let Some(have) = sim.get(name) else { continue };
        let is_exempt = |version: &&String| EXEMPT.iter().any(|(e, v, _)| e == name && v == version);
        let wanted: BTreeSet<String> = all.iter().filter(|version| !is_exempt(version)).cloned().collect();
        if *have != wanted {
            let what = format!("{name}: simulated {have:?}, shipped {wanted:?}");
            found.push(Violation::new("sim/Cargo.lock", 1, what));
        }
    }
    found
}

fn versions(lock: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut name = "";
    for line in lock.lines() {
        let value = |key: &str| line.strip_prefix(key).map(|v| v.trim_matches('"'));
        if let Some(found) = value("name = ") {
            name = found;
        } else if let Some(version) = value("version = ").filter(|_| !name.is_empty()) {
            all.entry(name.to_owned()).or_default().insert(version.to_owned());
            name = "";
        }
    }
    all
}

const PACKAGES: [&str; 5] = [
    "actors/Cargo.toml",
    "actors/core/Cargo.toml",
    "storage/Cargo.toml",
    "sim/Cargo.toml",
    "sim/history/Cargo.toml",
];

/// Lints are the root's in every package; the simulator repeats them, as its workspace cannot share.
pub fn check_lints(files: &[SourceFile]) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = text_of(files, "Cargo.toml");
    let sim = text_of(files, "sim/Cargo.toml");
    for kind in ["rust", "clippy"] {
        let ours = section(root, &format!("[workspace.lints.{kind}]"));
        if ours.is_empty() || ours != section(sim, &format!("[workspace.lints.{kind}]")) {
            let what = format!("[workspace.lints.{kind}] must equal the root's");
            found.push(Violation::new("sim/Cargo.toml", 1, what));
        }
    }
    for manifest in PACKAGES {
        if section(text_of(files, manifest), "[lints]") != ["workspace = true"] {
            found.push(Violation::new(manifest, 1, "must take the workspace's lints"));
        }
    }
    found
}

fn text_of<'a>(files: &'a [SourceFile], path: &str) -> &'a str {
    files.iter().find(|f| f.path == path).map_or("", |f| f.text.as_str())
}

fn section<'a>(manifest: &'a str, head: &str) -> Vec<&'a str> {
    let lines = manifest.lines().skip_while(|line| *line != head).skip(1);
    lines
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .collect()
}

#[test]
fn a_version_that_does_not_ship_is_found() {
    let lock = |version: &str| format!("[[package]]\nname = \"a\"\nversion = \"{version}\"\n");
    assert_eq!(compare(&versions(&lock("1.0.0")), &versions(&lock("1.0.0"))), []);
    assert_eq!(compare(&versions(&lock("1.0.0")), &versions(&lock("1.0.1"))).len(), 1);
    let both = format!("{}{}", lock("1.0.0"), lock("2.0.0"));
    assert_eq!(compare(&versions(&both), &versions(&both)), []);
    assert_eq!(
        compare(&versions(&both), &versions(&lock("2.0.0"))).len(),
        1,
        "one is not simulated"
    );
}

#[test]
fn a_package_without_the_lints_is_found() {
    let files = [
        SourceFile::new(
            "Cargo.toml",
            "[workspace.lints.rust]\na = \"deny\"\n[workspace.lints.clippy]\nb = 1\n",
        ),
        SourceFile::new(
            "sim/Cargo.toml",
            "[lints]\nworkspace = true\n\n[workspace.lints.rust]\na = \"deny\"\n\n[workspace.lints.clippy]\n",
        ),
        SourceFile::new("sim/history/Cargo.toml", "[lints]\nworkspace = true\n"),
        SourceFile::new("actors/Cargo.toml", "[lints]\nworkspace = true\n"),
        SourceFile::new("storage/Cargo.toml", "[package]\n"),
    ];
    let found: Vec<String> = check_lints(&files).into_iter().map(|v| v.path).collect();
    assert_eq!(
        found,
        ["sim/Cargo.toml", "actors/core/Cargo.toml", "storage/Cargo.toml"]
    );
}
