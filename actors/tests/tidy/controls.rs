//! What a test build leaves out is caught, and what a release leaves out is compiled all the same.
//!
//! Owns: the match between `is_planted("…")` in sources and the controls of `scripts/test`; that no code is there
//! in one profile only, so that a build with debug assertions vouches for the release. Must never: run a control.
//! Next: `scripts/test`, the list `controls`.

use crate::source::SourceFile;
use crate::{Violation, sample};

pub fn check(files: &[SourceFile]) -> Vec<Violation> {
    let script = files
        .iter()
        .find(|f| f.path == "scripts/test")
        .map_or("", |f| f.text.as_str());
    let mut found = Vec::new();
    for file in files {
        let is_product = file.path.contains("/src/") && file.path.ends_with(".rs");
        for (line, fault) in planted(&file.text).filter(|_| is_product) {
            let asked = format!("FENCEPOST_TEST_PLANTED={fault}");
            if !script.lines().any(|l| l.contains(" | ") && has_word(l, &asked)) {
                let what = format!("`{fault}` has no negative control in scripts/test");
                found.push(Violation::new(&file.path, line, what));
            }
        }
        let by_default = |line: &str| {
            file.path.ends_with("Cargo.toml") && line.starts_with("default") && line.contains("test-switches")
        };
        let default = file.text.lines().position(by_default);
        found.extend(default.map(|l| Violation::new(&file.path, l + 1, "planted faults are there by default")));
    }
    found
}

/// Lines that exist with or without debug assertions only; `cfg!(debug_assertions)` is compiled in both.
pub fn check_profiles(files: &[SourceFile]) -> Vec<Violation> {
    let of_one = |line: &str| line.contains("debug_assertions") && !line.contains("cfg!(debug_assertions)");
    let sources = files
        .iter()
        .filter(|f| f.path.contains("/src/") && f.path.ends_with(".rs"));
    let lines = sources.flat_map(|f| f.text.lines().enumerate().map(move |(index, line)| (f, index, line)));
    lines
        .filter(|(_, _, line)| of_one(line))
        .map(|(f, index, _)| Violation::new(&f.path, index + 1, "compiled in one profile only: use `cfg!`"))
        .collect()
}

/// Checks that a source leaves out when asked to, with their line.
fn planted(source: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = source.lines().enumerate();
    lines.filter_map(|(index, line)| {
        let (_, after) = line.split_once("is_planted(\"")?;
        Some((index + 1, after.split('"').next()?))
    })
}

fn has_word(line: &str, word: &str) -> bool {
    line.split([' ', '"']).any(|part| part == word)
}

#[test]
fn a_planted_fault_without_control_is_found() {
    let mut files = sample("storage/Cargo.toml", "[features]\ndefault = [\"test-switches\"]\n");
    let source = "if is_planted(\"a\") {\nif is_planted(\"ab\") {\n";
    files.push(SourceFile::new("actors/src/guard/decide.rs", source));
    let script = "controls=(\n    \"ab | FENCEPOST_TEST_PLANTED=ab cargo test --test y\"\n)\n";
    files.push(SourceFile::new("scripts/test", script));
    let mut lines: Vec<_> = check(&files).iter().map(|v| (v.path.clone(), v.line)).collect();
    lines.sort();
    assert_eq!(
        lines,
        [
            ("actors/src/guard/decide.rs".to_owned(), 1),
            ("storage/Cargo.toml".to_owned(), 2)
        ]
    );
}

#[test]
fn code_of_one_profile_is_found() {
    let source = "if cfg!(debug_assertions) {\n#[cfg(not(debug_assertions))]\n";
    let found = check_profiles(&sample("actors/src/a.rs", source));
    assert_eq!(found.iter().map(|v| v.line).collect::<Vec<_>>(), [2]);
}
