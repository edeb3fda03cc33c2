//! `docs/problems.md` has a row for every problem code of the program; `BLESS=1` adds the rows that are missing.
//!
//! Owns: the comparison. What answers and commands really say is compared with the page where it is read:
//! `../http/main.rs`, `ended` in `main.rs`. Next: `codes.rs`, which finds the codes.

use crate::codes::{Found, find, sources};
use crate::problem_page::{EXIT, HTTP, Row, names, rows};
use fencepost::problem::{EXITS, Exit, OUTCOME_UNKNOWN, Problem, exit_of_status};
use fencepost_core::refusal::{Refusal, RefusalKind};
use std::collections::BTreeSet;
use std::path::Path;

/// Codes that no call, function or field names: a node says so in the place of another's code.
const ELSEWHERE: [&str; 1] = ["refused_elsewhere"];
const OPEN: &str = "…";

fn found() -> Vec<Found> {
    let found = find(&sources());
    assert!(found.len() > 250, "only {} places with a code", found.len());
    found
}

#[test]
fn every_problem_code_has_a_row_on_the_page_and_every_row_a_code() {
    let mut named: BTreeSet<String> = found().into_iter().map(|found| found.code).collect();
    named.extend(ELSEWHERE.map(str::to_owned));
    let rows = rows();
    let told: BTreeSet<String> = rows.iter().map(|row| row[0].clone()).collect();
    let missing: Vec<&String> = named.difference(&told).collect();
    if std::env::var_os("BLESS").is_some() && !missing.is_empty() {
        add(&missing);
    }
    assert!(missing.is_empty(), "docs/problems.md has no row for {missing:?}");
    let gone: Vec<&String> = told.difference(&named).collect();
    assert!(
        gone.is_empty(),
        "nothing says {gone:?}, docs/problems.md has rows of it"
    );
    let order: Vec<&String> = rows.iter().map(|row| &row[0]).collect();
    assert!(
        order.is_sorted() && order.len() == told.len(),
        "rows go by their codes, each once"
    );
    for row in &rows {
        assert!(row.iter().all(|cell| !cell.is_empty() && cell != OPEN), "{row:?}");
    }
}

/// Rows to be filled, each at its place.
fn add(missing: &[&String]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/problems.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
    for code in missing {
        let row = format!("| `{code}` | {OPEN} | {OPEN} | {OPEN} | {OPEN} |");
        let at = lines.iter().position(|line| line.starts_with("| `") && *line > row);
        lines.insert(at.unwrap_or(lines.len()), row);
    }
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
}

/// The status and the exit code that a code has where it is made, as far as that is said there.
fn said(found: &Found) -> (Option<u16>, Option<u8>) {
    let kind = RefusalKind::ALL
        .into_iter()
        .find(|kind| found.before == format!("RefusalKind::{kind:?}"));
    let status = kind.map(|kind| Problem::of(&Refusal::new(kind, "any", "", "")).status);
    let exit = EXITS.iter().find(|(exit, _)| found.before == format!("Exit::{exit:?}"));
    (status.or(found.before.parse().ok()), exit.map(|(exit, _)| *exit as u8))
}

fn row_of<'a>(rows: &'a [Row], code: &str) -> &'a Row {
    rows.iter()
        .find(|row| row[0] == code)
        .unwrap_or_else(|| panic!("no row for {code}"))
}

#[test]
fn a_row_has_the_status_and_the_exit_code_that_its_code_is_made_with() {
    let rows = rows();
    let (mut statuses, mut exits) = (0, 0);
    for found in found() {
        let row = row_of(&rows, &found.code);
        let (status, exit) = said(&found);
        // What no request is answered with has the exit code of its kind, or the one that a server ends with.
        if let Some(status) = status.filter(|status| *status > 0 && row[HTTP] != "–") {
            assert!(names(&row[HTTP], status.into()), "{status}: {row:?}, {}", found.file);
            statuses += 1;
        }
        if let Some(exit) = exit {
            assert!(names(&row[EXIT], exit.into()), "exit {exit}: {row:?}, {}", found.file);
            exits += 1;
        }
    }
    assert!(statuses > 50 && exits > 12, "{statuses} {exits}");
}

#[test]
fn a_row_has_the_exit_code_of_its_status() {
    for row in rows() {
        for status in row[HTTP].split(", ").filter_map(|status| status.parse().ok()) {
            let exit = match row[0] == OUTCOME_UNKNOWN {
                true => Exit::Unknown,
                false => exit_of_status(status),
            } as u8;
            assert!(names(&row[EXIT], exit.into()), "{status} ends with {exit}: {row:?}");
        }
    }
}
