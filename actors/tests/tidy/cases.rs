//! `docs/cases.md` names a test, or a reason to wait, for every known case.
//!
//! Owns: the comparison of that page with the vendored lists of ids and with the tests in the tree.
//! Must never: judge whether a test is good. Next: `actors/tests/cases`, where the lists stand.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::SourceFile;
use crate::{Violation, sample};

const PAGE: &str = "docs/cases.md";
const LISTS: &[&str] = &[
    "actors/tests/cases/behaviour-ids.txt",
    "actors/tests/cases/cron-ids.txt",
    "actors/tests/cases/history-ids.txt",
];

pub fn check(files: &[SourceFile]) -> Vec<Violation> {
    let text = |path: &str| files.iter().find(|f| f.path == path).map_or("", |f| f.text.as_str());
    let ids: BTreeSet<&str> = LISTS.iter().flat_map(|path| text(path).lines()).collect();
    assert!(ids.len() > 100, "the vendored lists of ids must be there");
    compare(&ids, text(PAGE), &test_names(files))
}

/// Every id has exactly one row; every row names an id, and a test of the tree or a reason.
fn compare(ids: &BTreeSet<&str>, page: &str, tests: &BTreeSet<String>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, line) in page.lines().enumerate() {
        let Some((id, place)) = row(line) else { continue };
        if rows.insert(id, index + 1).is_some() || !ids.contains(id) {
            found.push(Violation::new(
                PAGE,
                index + 1,
                format!("{id} is unknown or named twice"),
            ));
        }
        if let Some(what) = problem(place, tests) {
            found.push(Violation::new(PAGE, index + 1, format!("{id}: {what}")));
        }
    }
    let missing = ids.iter().filter(|id| !rows.contains_key(*id));
    found.extend(missing.map(|id| Violation::new(PAGE, 1, format!("{id} has no row"))));
    found
}

/// Id and place of a table row `| ID | place |`.
fn row(line: &str) -> Option<(&str, &str)> {
    let mut cells = line.strip_prefix("| ")?.split(" | ");
    let id = cells.next().filter(|id| is_id(id))?;
    Some((id, cells.next()?.trim_end_matches(" |")))
}

/// `BEH-…`, `CRON-…` or a history, `F` and its number.
fn is_id(cell: &str) -> bool {
    let history = cell
        .strip_prefix('F')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    history || cell.starts_with("BEH-") || cell.starts_with("CRON-")
}

fn problem(place: &str, tests: &BTreeSet<String>) -> Option<String> {
    if let Some(reason) = place.strip_prefix("later: ") {
        return reason.is_empty().then(|| "waits without a reason".to_owned());
    }
    let names: Vec<&str> = place.split('`').skip(1).step_by(2).collect();
    if names.is_empty() {
        return Some("names neither a test nor `later: reason`".to_owned());
    }
    let lost = names.into_iter().find(|name| !tests.contains(*name))?;
    Some(format!("there is no test `{lost}` in the tree"))
}

/// Names of functions under a test attribute, also those that a macro such as proptest writes.
fn test_names(files: &[SourceFile]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in files.iter().filter(|f| f.is_rust()) {
        let mut marked = false;
        for line in file.code.lines().map(str::trim) {
            if line.starts_with("#[") {
                marked |= line.contains("test");
            } else if let Some(at) = line.find("fn ") {
                let rest = &line[at + 3..];
                let end = rest.find(['(', '<']).unwrap_or(rest.len());
                if std::mem::take(&mut marked) {
                    names.insert(rest[..end].to_owned());
                }
            } else if !line.is_empty() && !line.ends_with(',') && !line.ends_with(')') && !line.ends_with(']') {
                marked = false;
            }
        }
    }
    names
}

#[test]
fn a_case_without_a_true_row_is_found() {
    let ids = BTreeSet::from(["BEH-A01-x", "BEH-A02-y", "CRON-A03-z", "BEH-A04-w"]);
    let tests = test_names(&sample(
        "actors/tests/x.rs",
        "#[test]\nfn one_holds() {}\nfn helper() {}\n#[tokio::test]\nasync fn two_holds() {}\n",
    ));
    let good = "| BEH-A01-x | `one_holds` |\n| BEH-A02-y | `two_holds`, `one_holds` |\n\
                | CRON-A03-z | later: regions |\n| BEH-A04-w | later: soon |\n";
    assert_eq!(compare(&ids, good, &tests), []);
    for (from, to) in [
        ("`one_holds` |", "`helper` |"),
        ("later: regions", "later: "),
        ("CRON-A03-z", "CRON-A99-q"),
        ("`one_holds` |", "somewhere |"),
        ("later: soon", "open: soon"),
        ("| BEH-A04-w | later: soon |\n", ""),
    ] {
        assert!(
            !compare(&ids, &good.replacen(from, to, 1), &tests).is_empty(),
            "{from} → {to}"
        );
    }
}
