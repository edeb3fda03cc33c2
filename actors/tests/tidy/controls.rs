//! Every planted fault has a negative control that is run.
//!
//! Owns: the match between `planted-…` features and the controls of `scripts/test`. Must never: run
//! one. Next: `scripts/test`, the list `controls`.

use crate::source::SourceFile;
use crate::{Violation, sample};

pub fn check(files: &[SourceFile]) -> Vec<Violation> {
    let script = files
        .iter()
        .find(|f| f.path == "scripts/test")
        .map_or("", |f| f.text.as_str());
    let mut found = Vec::new();
    for file in files.iter().filter(|f| f.path.ends_with("Cargo.toml")) {
        for (line, feature) in planted(&file.text) {
            let listed = script.lines().any(|l| l.contains(" | ") && has_word(l, feature));
            if !listed {
                let what = format!("`{feature}` has no negative control in scripts/test");
                found.push(Violation::new(&file.path, line, what));
            }
        }
        let default = file
            .text
            .lines()
            .position(|l| l.starts_with("default") && l.contains("planted-"));
        found.extend(default.map(|l| Violation::new(&file.path, l + 1, "a planted fault is on by default")));
    }
    found
}

/// Features of a manifest that plant a fault, with their line.
fn planted(manifest: &str) -> Vec<(usize, &str)> {
    let lines = manifest.lines().enumerate();
    lines
        .filter(|(_, line)| line.starts_with("planted-"))
        .filter_map(|(index, line)| Some((index + 1, line.split([' ', '=']).next()?)))
        .collect()
}

fn has_word(line: &str, word: &str) -> bool {
    line.split([' ', ',', '"', '/']).any(|part| part == word)
}

#[test]
fn a_planted_fault_without_control_is_found() {
    let manifest = "[features]\ndefault = [\"planted-a\"]\nplanted-a = []\nplanted-ab = []\n";
    let mut files = sample("storage/Cargo.toml", manifest);
    let script = "controls=(\n    \"ab | -p x --features planted-ab --test y\"\n)\n";
    files.push(SourceFile::new("scripts/test", script));
    let found = check(&files);
    assert_eq!(found.iter().map(|v| v.line).collect::<Vec<_>>(), [3, 2]);
}
