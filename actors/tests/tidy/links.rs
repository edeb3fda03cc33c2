//! Links between documents lead somewhere.
//!
//! Owns: relative links and heading anchors in Markdown. Must never: reach for the network.
//! Next: docs/ARCHITECTURE.md, where most links start.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::Violation;
use crate::source::{SourceFile, Tree};

pub fn check(tree: &Tree) -> Vec<Violation> {
    check_files(&tree.files, &|path| tree.root.join(path).exists())
}

fn check_files(files: &[SourceFile], exists: &dyn Fn(&Path) -> bool) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files.iter().filter(|f| f.path.ends_with(".md")) {
        for (line, link) in links(&file.text) {
            if let Some(what) = problem(file, &link, files, exists) {
                found.push(Violation::new(&file.path, line, format!("`{link}`: {what}")));
            }
        }
    }
    found
}

/// Every decision has a number of its own and a line in the list.
pub fn check_decisions(files: &[SourceFile]) -> Vec<Violation> {
    let list = files
        .iter()
        .find(|f| f.path == "docs/decisions/README.md")
        .map_or("", |f| f.text.as_str());
    let mut found = Vec::new();
    let mut numbers = BTreeSet::new();
    for file in files {
        let name = file
            .path
            .strip_prefix("docs/decisions/")
            .filter(|name| *name != "README.md");
        let Some(name) = name else { continue };
        let number: String = name.chars().take_while(char::is_ascii_digit).collect();
        if number.len() != 4 || !numbers.insert(number.clone()) {
            found.push(Violation::new(
                &file.path,
                1,
                format!("`{number}` is no number of its own"),
            ));
        }
        if !list.contains(&format!("]({name})")) {
            found.push(Violation::new(&file.path, 1, "is not in docs/decisions/README.md"));
        }
    }
    found.extend(check_replacements(files));
    found
}

/// A decision that replaces another, in part or whole, says so, and the other one's status names it.
fn check_replacements(files: &[SourceFile]) -> Vec<Violation> {
    let status = |file: &SourceFile| {
        let paragraph = file.text.split("\n\n").find(|part| part.starts_with("Status:"));
        paragraph.unwrap_or_default().to_owned()
    };
    let decision = |file: &&SourceFile| file.path.starts_with("docs/decisions/");
    let mut found = Vec::new();
    for file in files.iter().filter(decision) {
        for (_, link) in links(&status(file)) {
            let other = files
                .iter()
                .filter(decision)
                .find(|other| other.path.ends_with(&format!("/{link}")));
            let is_named = other.is_some_and(|other| {
                links(&status(other))
                    .iter()
                    .any(|(_, back)| file.path.ends_with(&format!("/{back}")))
            });
            if !is_named {
                found.push(Violation::new(
                    &file.path,
                    3,
                    format!("the status of `{link}` does not name it"),
                ));
            }
        }
    }
    found
}

fn problem(from: &SourceFile, link: &str, files: &[SourceFile], exists: &dyn Fn(&Path) -> bool) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() {
        PathBuf::from(&from.path)
    } else {
        resolve(&from.path, path)
    };
    if !exists(&target) {
        return Some(format!("{} does not exist", target.display()));
    }
    let target = target.to_string_lossy();
    let file = files.iter().find(|f| f.path == target && target.ends_with(".md"))?;
    let missing = !anchor.is_empty() && !headings(&file.text).iter().any(|h| h == anchor);
    missing.then(|| format!("{target} has no heading #{anchor}"))
}

fn resolve(from: &str, link: &str) -> PathBuf {
    let mut path = Path::new(from).parent().map(Path::to_owned).unwrap_or_default();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path
}

/// Lines outside fenced blocks, numbered.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((index + 1, line))
    })
}

fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        for (at, _) in line.match_indices("](") {
            let rest = &line[at + 2..];
            if let Some(end) = rest.find([')', ' ']) {
                found.push((number, rest[..end].to_owned()));
            }
        }
    }
    found
}

/// The anchors of a document: headings in small letters, spaces as dashes, other signs dropped.
fn headings(text: &str) -> Vec<String> {
    prose(text)
        .filter(|(_, line)| line.starts_with('#'))
        .map(|(_, line)| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

#[test]
fn a_dead_link_and_a_dead_anchor_are_found() {
    let files = [
        SourceFile::new(
            "docs/a.md",
            "# One\n[b](b.md#two) [c](../c.md) [d](b.md#none)\n```\n[x](y)\n```\n",
        ),
        SourceFile::new("docs/b.md", "## Two\n[up](../README.md) [web](https://example.org)\n"),
    ];
    let there = ["docs/a.md", "docs/b.md", "README.md"];
    let found = check_files(&files, &|path| there.iter().any(|t| Path::new(t) == path));
    let what: Vec<&str> = found.iter().map(|v| v.what.split(':').next().unwrap()).collect();
    assert_eq!(what, ["`../c.md`", "`b.md#none`"]);
}

#[test]
fn a_decision_without_number_or_line_is_found() {
    let files = |name: &str| {
        [
            SourceFile::new("docs/decisions/README.md", "[1](0001-a.md) [2](0002-b.md)"),
            SourceFile::new("docs/decisions/0001-a.md", ""),
            SourceFile::new(&format!("docs/decisions/{name}"), ""),
        ]
    };
    assert_eq!(check_decisions(&files("0002-b.md")), []);
    assert_eq!(check_decisions(&files("0001-b.md")).len(), 2);
    assert_eq!(check_decisions(&files("b.md")).len(), 2);
}

#[test]
fn a_decision_that_is_replaced_and_does_not_say_so_is_found() {
    let files = |status: &str| {
        [
            SourceFile::new("docs/decisions/README.md", "[1](0001-a.md) [2](0002-b.md)"),
            SourceFile::new(
                "docs/decisions/0001-a.md",
                &format!("# 1\n\nStatus: {status}\n\nText\n"),
            ),
            SourceFile::new(
                "docs/decisions/0002-b.md",
                "# 2\n\nStatus: accepted, replaces [1](0001-a.md)\n",
            ),
        ]
    };
    assert_eq!(check_decisions(&files("replaced by [2](0002-b.md)")), []);
    assert_eq!(check_decisions(&files("accepted")).len(), 1);
}
