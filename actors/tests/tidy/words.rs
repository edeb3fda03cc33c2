//! Words that are not used here, because each thing has exactly one name.
//!
//! Owns: the list of refused words and their exemptions. Must never: judge style.
//! Next: docs/GLOSSARY.md has the words to use instead.

use crate::source::SourceFile;
use crate::{Violation, sample};
use std::collections::BTreeSet;

/// The refused word, and the one to use.
const REFUSED: &[(&str, &str)] = &[
    ("trigger", "say fire, or occurrence"),
    ("execution", "say attempt"),
    ("task", "say job; the word is left to tokio's tasks"),
    ("DST", "say clock change, or simulation"),
];

/// Files that may use a refused word, with the reason.
const EXEMPT_FILES: &[(&str, &str)] = &[
    ("actors/tests/tidy/", "names the words in order to refuse them"),
    ("docs/GLOSSARY.md", "lists them as not used"),
    ("LICENSE", "not our text"),
    ("Cargo.lock", "other people's package names"),
    ("sim/Cargo.lock", "other people's package names"),
    ("clippy.toml", "names tokio's paths"),
];

/// What makes a line talk about the runtime's tasks (or the kernel's, in `/proc`), where the word is right.
const RUNTIME_TASK: &[&str] = &["tokio", "task::", "task_local", "JoinHandle", "/proc/"];

pub fn check(files: &[SourceFile]) -> Vec<Violation> {
    let exempt = |path: &str| EXEMPT_FILES.iter().any(|(start, _)| path.starts_with(start));
    let mut found = Vec::new();
    for file in files.iter().filter(|f| !exempt(&f.path) && !f.path.ends_with(".txt")) {
        for (index, line) in file.text.lines().enumerate() {
            for (word, instead) in refused_in(line) {
                let what = format!("`{word}` is not used here: {instead}");
                found.push(Violation::new(&file.path, index + 1, what));
            }
        }
    }
    found
}

/// Words of the glossary's table that stand in it twice.
pub fn check_glossary(files: &[SourceFile]) -> Vec<Violation> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    let glossary = files.iter().filter(|file| file.path == "docs/GLOSSARY.md");
    for (index, line) in glossary.flat_map(|file| file.text.lines().enumerate()) {
        let Some((word, _)) = line.strip_prefix("| ").and_then(|rest| rest.split_once(" |")) else {
            continue;
        };
        if !seen.insert(word) {
            let what = format!("`{word}` has a meaning already");
            found.push(Violation::new("docs/GLOSSARY.md", index + 1, what));
        }
    }
    found
}

#[test]
fn a_word_with_two_meanings_is_found() {
    let rows = "| word | meaning |\n|---|---|\n| job | one |\n| jobs | two |\n";
    assert_eq!(check_glossary(&sample("docs/GLOSSARY.md", rows)), []);
    let twice = format!("{rows}| job | three |\n");
    assert_eq!(check_glossary(&sample("docs/GLOSSARY.md", &twice)).len(), 1);
}

fn refused_in(line: &str) -> Vec<(&'static str, &'static str)> {
    let words = words_of(line);
    let runtime = RUNTIME_TASK.iter().any(|mark| line.contains(mark));
    REFUSED
        .iter()
        .filter(|(refused, _)| !(*refused == "task" && runtime))
        .filter(|(refused, _)| words.iter().any(|word| is_form_of(word, refused)))
        .copied()
        .collect()
}

fn is_form_of(word: &str, refused: &str) -> bool {
    if refused.chars().all(char::is_uppercase) {
        return word == refused;
    }
    let word = word.to_lowercase();
    let ending = word.strip_prefix(refused);
    ending.is_some_and(|rest| ["", "s", "ed", "ing"].contains(&rest))
}

/// Letters in a row, cut where a small letter meets a capital: `onTriggerFired` has three words.
fn words_of(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut small = false;
    for c in line.chars() {
        if !c.is_alphabetic() || (small && c.is_uppercase()) {
            words.push(String::new());
        }
        if c.is_alphabetic() {
            words.last_mut().unwrap().push(c);
        }
        small = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn refused_words_are_found_in_every_form() {
    for line in [
        "fn on_trigger_fired()",
        "// two executions",
        "TaskId(1)",
        "a DST change",
        "TRIGGERED",
    ] {
        let found = check(&sample("actors/src/x.rs", line));
        assert_eq!(found.len(), 1, "{line}: {found:?}");
    }
}

#[test]
fn right_words_pass() {
    for line in [
        "tokio::task::spawn_local(f)",
        "std::task::Poll",
        "execute",
        "multitasking",
        "dst",
    ] {
        assert_eq!(check(&sample("actors/src/x.rs", line)), [], "{line}");
    }
}
