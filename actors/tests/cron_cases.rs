//! Every shared cron case, and thousands of random ones, against the answers of `cases/oracle.py`.
//!
//! The cases of `cases/cron-*.json` and all of `cases/cron-random.jsonl` go through the real binary; the
//! random ones go through the library too, forward and back. `cases/generate.py` says how they were made.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test that starts many processes"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use fencepost_core::cron::{CronErrorKind, CronPlan, HashSeed};
use fencepost_core::schedule::{GapPolicy, OverlapPolicy};
use fencepost_core::time::StoreTime;
use fencepost_core::zone::{LocalSeconds, Zone};
use serde_json::Value;

fn cases_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

fn text<'a>(case: &'a Value, key: &str) -> &'a str {
    case[key].as_str().unwrap_or_else(|| panic!("{key} missing in {case}"))
}

/// The expected instants; `None` if the expression must be refused.
fn expected(case: &Value) -> Option<Vec<&str>> {
    let list = case.get("expect")?.as_array().unwrap();
    Some(list.iter().map(|at| at.as_str().unwrap()).collect())
}

/// How many to ask for: one more than expected where the schedule ends.
fn wanted(case: &Value) -> usize {
    let listed = expected(case).map_or(1, |list| list.len());
    (listed + usize::from(case["ends"] == true)).max(1)
}

fn preview(case: &Value, gap: &str, overlap: &str) -> Output {
    let count = wanted(case).to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    command.args([
        "schedule",
        "preview",
        "--tz",
        text(case, "tz"),
        "--after",
        text(case, "after"),
    ]);
    command.args([
        "-n",
        &count,
        "--gap",
        gap,
        "--overlap",
        overlap,
        "-o",
        "json",
        "--",
        text(case, "expr"),
    ]);
    command.output().unwrap()
}

/// Runs a case through the binary and says what is wrong.
fn check_binary(case: &Value, gap: &str, overlap: &str) -> Result<(), String> {
    let output = preview(case, gap, overlap);
    let (stdout, stderr) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    let Some(expected) = expected(case) else {
        let problem: Value = serde_json::from_str(&stderr).map_err(|e| format!("{e}: {stderr}"))?;
        let named = ["type", "code", "field", "detail", "hint"]
            .iter()
            .all(|key| problem[key].is_string());
        let refused = output.status.code() == Some(8) && stdout.is_empty() && named;
        return if refused {
            Ok(())
        } else {
            Err(format!("{:?} {stdout} {stderr}", output.status))
        };
    };
    let answer: Value = serde_json::from_str(&stdout).map_err(|e| format!("{e}: {stdout}{stderr}"))?;
    let got: Vec<&str> = answer.as_array().unwrap().iter().map(|item| text(item, "at")).collect();
    if output.status.success() && stderr.is_empty() && got == expected {
        Ok(())
    } else {
        Err(format!("{got:?}"))
    }
}

/// Runs every case of one vendored file and returns how many there were.
fn check_file(name: &str) -> usize {
    let bytes = std::fs::read(cases_folder().join(name)).unwrap();
    let cases: Vec<Value> = serde_json::from_slice(&bytes).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        if let Err(what) = check_binary(case, text(case, "gap_policy"), text(case, "overlap_policy")) {
            wrong.push(format!("{}: want {:?}, got {what}", text(case, "id"), expected(case)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    cases.len()
}

#[test]
fn cron_days_cases() {
    assert_eq!(check_file("cron-days.json"), 16);
}

#[test]
fn cron_gap_cases() {
    assert_eq!(check_file("cron-gap.json"), 26);
}

#[test]
fn cron_never_cases() {
    assert_eq!(check_file("cron-never.json"), 4);
}

#[test]
fn cron_overlap_cases() {
    assert_eq!(check_file("cron-overlap.json"), 17);
}

#[test]
fn cron_syntax_cases() {
    assert_eq!(check_file("cron-syntax.json"), 34);
}

#[test]
fn cron_zone_data_cases() {
    assert_eq!(check_file("cron-zone-data.json"), 4);
}

/// The shared cases name the field in front of the reason; so do we.
#[test]
fn cron_refusals_name_the_field_of_the_cases() {
    let mut seen = 0;
    for name in ["cron-syntax.json", "cron-never.json"] {
        let bytes = std::fs::read(cases_folder().join(name)).unwrap();
        for case in serde_json::from_slice::<Vec<Value>>(&bytes).unwrap() {
            let Some((field, _)) = case["expect_error"].as_str().and_then(|e| e.split_once(':')) else {
                continue;
            };
            let field = field.split(' ').next().unwrap();
            let output = preview(&case, "skip", "first");
            let problem: Value = serde_json::from_slice(&output.stderr).unwrap();
            assert_eq!(problem["field"], format!("cron[0].{field}"), "{case}");
            seen += 1;
        }
    }
    assert!(seen >= 15, "only {seen}");
}

/// The random cases, without the line that says how they were made.
fn random_cases() -> Vec<Value> {
    let all = std::fs::read_to_string(cases_folder().join("cron-random.jsonl")).unwrap();
    let mut lines = all.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let head = lines.next().unwrap();
    assert!(text(&head, "generated").starts_with("generate.py --seed "));
    lines.collect()
}

fn policies(case: &Value) -> (GapPolicy, OverlapPolicy) {
    let gap = match text(case, "gap") {
        "skip" => GapPolicy::Skip,
        _ => GapPolicy::NextValid,
    };
    let overlap = match text(case, "overlap") {
        "second" => OverlapPolicy::Second,
        "both" => OverlapPolicy::Both,
        _ => OverlapPolicy::First,
    };
    (gap, overlap)
}

fn instant(text: &str) -> StoreTime {
    let at = chrono::DateTime::parse_from_rfc3339(text).unwrap();
    StoreTime(at.timestamp_micros())
}

fn rfc3339(at: StoreTime) -> String {
    format!("{}Z", LocalSeconds(at.secs()).to_text())
}

/// Runs a case through the library and says what is wrong.
fn check_library(case: &Value) -> Result<(), String> {
    let zone = Zone::get(text(case, "tz")).map_err(|error| error.to_string())?;
    let (gap, overlap) = policies(case);
    let plan = CronPlan::parse(&[text(case, "expr")], HashSeed(0), Arc::clone(&zone), gap, overlap);
    let plan = match (plan, expected(case)) {
        (Ok(plan), Some(_)) => plan,
        (Err((0, error)), None) if case["never"] == true && error.kind == CronErrorKind::Never => return Ok(()),
        (Err((0, error)), None) if case.get("field").is_some() => {
            let field = error.field.name().replace("expression", "");
            return if field == text(case, "field") {
                Ok(())
            } else {
                Err(error.to_string())
            };
        }
        (other, _) => return Err(format!("{other:?}")),
    };
    let expected = expected(case).unwrap();
    let first = plan.next_after(instant(text(case, "after")));
    let all = std::iter::successors(first, |at| plan.next_after(*at));
    let got: Vec<StoreTime> = all.take(wanted(case)).collect();
    let texts: Vec<String> = got.iter().map(|at| rfc3339(*at)).collect();
    if texts != expected {
        return Err(format!("{texts:?}"));
    }
    let after = instant(text(case, "after"));
    let Some(last) = got.last() else { return Ok(()) };
    let back = std::iter::successors(Some(*last), |at| plan.prev_before(*at)).take(got.len());
    let count = plan.count_between(after, *last, u64::MAX);
    if !back.eq(got.iter().rev().copied()) || count != got.len() as u64 {
        return Err("backward search or count differs from the forward search".to_owned());
    }
    Ok(())
}

fn assert_none_wrong(wrong: Vec<(&Value, String)>) {
    let lines: Vec<String> = wrong.iter().map(|(case, what)| format!("{case}: got {what}")).collect();
    assert!(lines.is_empty(), "{} wrong\n{}", lines.len(), lines.join("\n"));
}

#[test]
fn cron_random_cases_through_the_library() {
    let cases = random_cases();
    assert!(cases.len() >= 2_000, "only {}", cases.len());
    let check = |case| check_library(case).err().map(|what| (case, what));
    assert_none_wrong(cases.iter().filter_map(check).collect());
}

/// Processes at once: as many as a small machine has processors.
const LINES: usize = 2;

#[test]
fn cron_random_cases_through_the_binary() {
    let cases = random_cases();
    assert!(cases.len() >= 2_000, "only {}", cases.len());
    let wrong = std::thread::scope(|scope| {
        let lines: Vec<_> = cases
            .chunks(cases.len().div_ceil(LINES))
            .map(|part| scope.spawn(|| check_line(part)))
            .collect();
        lines.into_iter().flat_map(|line| line.join().unwrap()).collect()
    });
    assert_none_wrong(wrong);
}

fn check_line(cases: &[Value]) -> Vec<(&Value, String)> {
    let check = |case| check_binary(case, text(case, "gap"), text(case, "overlap")).err();
    cases.iter().filter_map(|case| Some((case, check(case)?))).collect()
}
