//! `fencepost bench`: every bench runs, however little it measures, and says what it measured.
//!
//! Owns: the form of the output. Must never: judge a figure; that a rate is low is no failure of a test.
//! Next: `docs/performance.md`.

use crate::run;
use std::collections::BTreeSet;

/// Each group in a process of its own, side by side.
const GROUPS: [&[&str]; 5] = [
    &[
        "floor",
        "create-batch",
        "create-single",
        "create-batch-http",
        "create-single-http",
        "drain",
    ],
    &["lateness", "lateness-live", "schedules-1000", "schedules-10000"],
    &["pending"],
    &["passed"],
    &["drain-cluster"],
];

/// What a group printed, as (bench, figure, whether it has a target).
fn figures_of(group: usize) -> BTreeSet<(String, String, bool)> {
    let folder = tempfile::tempdir().unwrap();
    let words = ["bench", "--folder", "over/here", "--jobs", "100", "--lanes", "2"];
    let words: Vec<_> = words.iter().chain(GROUPS[group]).copied().collect();
    let (code, out, err) = run(folder.path(), &words);
    assert_eq!(code, 0, "{out}{err}");
    assert!(
        err.starts_with("note: targets are for") && err.lines().count() == 1,
        "{err}"
    );
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 0, "stores are removed again, with the folders made for them");
    out.lines().map(read_line).collect()
}

fn read_line(line: &str) -> (String, String, bool) {
    let figure: serde_json::Value = serde_json::from_str(line).unwrap();
    let text = |field: &str| figure[field].as_str().unwrap_or_else(|| panic!("{line}")).to_owned();
    assert!(figure["value"].as_f64().is_some_and(f64::is_finite), "{line}");
    assert!(!text("unit").is_empty(), "{line}");
    let is_idle = text("figure").starts_with("pass-rate") && figure["value"] == 0.0;
    assert!(!is_idle, "what was not seen is left out: {line}");
    let has_target = figure.get("target").is_some();
    if has_target {
        assert!(text("target").starts_with(['<', '>']), "{line}");
    }
    assert_eq!(figure["met"].is_boolean(), has_target, "{line}");
    (text("bench"), text("figure"), has_target)
}

fn has(figures: &BTreeSet<(String, String, bool)>, bench: &str, figure: &str, has_target: bool) -> bool {
    figures.contains(&(bench.to_owned(), figure.to_owned(), has_target))
}

#[test]
fn every_bench_is_in_a_group() {
    let grouped: BTreeSet<&str> = GROUPS.concat().into_iter().collect();
    assert_eq!(grouped, fencepost::bench::NAMES.iter().copied().collect());
}

#[test]
fn rates_stand_beside_the_floor_of_the_same_run() {
    let figures = figures_of(0);
    for bench in &GROUPS[0][1..] {
        for (figure, has_target) in [("rate", false), ("floor", false), ("ratio", true), ("sync", false)] {
            assert!(
                has(&figures, bench, figure, has_target),
                "{bench} {figure}: {figures:?}"
            );
        }
    }
    assert!(has(&figures, "create-single-http", "answered-without-store", false));
    for figure in ["sync", "drain-lean", "mark-cost-batch", "mark-cost-single"] {
        assert!(has(&figures, "floor", figure, false), "{figure}: {figures:?}");
    }
}

#[test]
fn a_cell_stands_beside_one_node() {
    let figures = figures_of(4);
    for (figure, has_target) in [
        ("rate", false),
        ("one-node-remote", false),
        ("one-node", false),
        ("ratio", true),
    ] {
        assert!(has(&figures, "drain-cluster", figure, has_target), "{figures:?}");
    }
}

#[test]
fn lateness_is_told_in_percentiles() {
    let figures = figures_of(1);
    for bench in GROUPS[1] {
        assert!(has(&figures, bench, "p99", true), "{bench}: {figures:?}");
    }
    assert!(has(&figures, "lateness", "p50", true), "{figures:?}");
    assert!(has(&figures, "schedules-10000", "max", true), "{figures:?}");
}

#[test]
fn pending_jobs_are_observed_in_a_server_process() {
    let figures = figures_of(2);
    for pending in [10, 100, 1_000] {
        let bench = format!("pending-{pending}");
        for figure in ["start-to-first-fire", "processor-at-rest", "memory", "disk"] {
            assert!(has(&figures, &bench, figure, true), "{bench} {figure}: {figures:?}");
        }
    }
    for figure in ["drain-ratio", "memory-more-than-fewest"] {
        assert!(has(&figures, "pending-1000", figure, true), "{figure}: {figures:?}");
    }
}

#[test]
fn a_used_store_is_compared_with_a_new_one() {
    let figures = figures_of(3);
    assert!(has(&figures, "passed", "ratio", true), "{figures:?}");
    assert!(has(&figures, "passed", "jobs", false), "{figures:?}");
}

#[test]
fn rows_for_people_say_what_the_json_lines_say() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("here")).unwrap();
    let words = [
        "bench",
        "--folder",
        "here",
        "--jobs",
        "100",
        "--lanes",
        "2",
        "-o",
        "text",
        "create-batch",
    ];
    let (code, out, err) = run(folder.path(), &words);
    assert!(code == 0 && err.lines().count() == 1, "{out}{err}");
    let left = std::fs::read_dir(folder.path().join("here")).unwrap().count();
    assert_eq!(left, 0, "a folder that was there before stays, empty");
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["BENCH", "FIGURE", "VALUE", "UNIT", "TARGET"]);
    let ratio = rows.iter().find(|row| row.get(1) == Some(&"ratio")).unwrap();
    assert!(ratio[0] == "create-batch" && ratio.contains(&">="), "{out}");
    assert!(["met", "missed"].contains(ratio.last().unwrap()), "{out}");
}
