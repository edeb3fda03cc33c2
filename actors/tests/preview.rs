//! `fencepost schedule preview` as scripts and people use it: forms of output, exit codes, refusals.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::process::{Command, Output};

use serde_json::{Value, json};

const AFTER: &[&str] = &["--after", "2026-03-28T12:00:00Z"];

fn preview(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    command.args(["schedule", "preview"]).args(args).args(AFTER);
    command.output().unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

#[test]
fn json_is_an_array_of_at_and_local_over_all_expressions() {
    let output = preview(&[
        "30 2 * * *",
        "0 3 29 3 *",
        "--tz",
        "Europe/Berlin",
        "-n",
        "2",
        "-o",
        "json",
    ]);
    let want = json!([
        { "at": "2026-03-29T01:00:00Z", "local": "2026-03-29T03:00:00+02:00" },
        { "at": "2026-03-30T00:30:00Z", "local": "2026-03-30T02:30:00+02:00" },
    ]);
    assert_eq!(serde_json::from_str::<Value>(stdout(&output)).unwrap(), want);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn jsonl_is_one_object_a_line() {
    let output = preview(&["@daily", "-n", "3", "-o", "jsonl"]);
    let ats: Vec<Value> = stdout(&output)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(ats.len(), 3);
    assert_eq!(ats[2]["at"], "2026-03-31T00:00:00Z");
}

#[test]
fn text_explains_clock_changes_and_what_h_became() {
    let gap = preview(&["30 2 * * *", "--tz", "Europe/Berlin", "-n", "2"]);
    assert!(
        stdout(&gap).contains("2026-03-29T03:00:00+02:00  clocks go forward to here"),
        "{}",
        stdout(&gap)
    );
    let skipped = preview(&["30 2 * * *", "--tz", "Europe/Berlin", "-n", "1", "--gap", "skip"]);
    assert!(
        stdout(&skipped).contains("offset was +01:00 before"),
        "{}",
        stdout(&skipped)
    );
    let twice = ["30 2 25 10 *", "--tz", "Europe/Berlin", "-n", "2", "--overlap", "both"];
    let twice = preview(&twice);
    assert!(
        stdout(&twice).contains("first pass") && stdout(&twice).contains("second pass"),
        "{}",
        stdout(&twice)
    );
    let hashed = preview(&["H H * * *", "--name", "nightly", "-n", "1"]);
    assert!(
        stdout(&hashed).starts_with("H H * * * = 5 18 * * * (fixed-time)\n"),
        "{}",
        stdout(&hashed)
    );
    let ended = preview(&["0 0 0 1 1 * 2027", "-n", "5"]);
    assert!(stdout(&ended).ends_with("the schedule is finished\n") && ended.status.success());
}

#[test]
fn h_without_a_name_says_that_creation_draws_other_times() {
    for (expression, more, is_told) in [
        ("H H * * *", &[][..], true),
        ("0,H * * * *", &["-o", "json"], true),
        ("H(0-9)/2 4 * * *", &["-o", "jsonl"], true),
        ("H H * * *", &["--name", "nightly"], false),
        ("0 4 * * THU", &[], false),
        ("@hourly", &["-o", "json"], false),
    ] {
        let output = preview(&[&[expression, "-n", "1"], more].concat());
        let told = std::str::from_utf8(&output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{expression}: {told}");
        assert_eq!(told.contains("--name NAME"), is_told, "{expression}: {told}");
        assert!(!stdout(&output).contains("--name"), "{}", stdout(&output));
        assert!(is_told || told.is_empty(), "{told}");
    }
}

#[test]
fn a_wrong_zone_or_expression_exits_8_with_a_problem_and_nothing_else() {
    let cases = [
        (["0 0 * * *", "--tz", "Mars/Base"], "zone_unknown", "tz"),
        (["0 0 30 2 *", "--tz", "UTC"], "cron_never", "cron[0].day-of-month"),
        (["", "--tz", "UTC"], "cron_field_count", "cron[0]"),
        (["* * * * *\n", "--tz", "UTC"], "cron_character", "cron[0]"),
    ];
    for (args, code, field) in cases {
        let output = preview(&[&args[..], &["-o", "json"]].concat());
        assert_eq!(output.status.code(), Some(8), "{args:?}");
        assert_eq!(stdout(&output), "");
        let problem: Value = serde_json::from_slice(&output.stderr).unwrap();
        assert_eq!(
            (&problem["code"], &problem["field"], &problem["status"]),
            (&json!(code), &json!(field), &json!(400))
        );
        let people = preview(&args);
        let text = String::from_utf8(people.stderr).unwrap();
        assert!(
            people.status.code() == Some(8) && text.starts_with("error: ") && text.contains("\nhint: "),
            "{text}"
        );
    }
}

#[test]
fn a_wrong_command_line_exits_2() {
    let cases: [&[&str]; 6] = [
        &["* * * * *", "-n", "0"],
        &["* * * * *", "-n", "1001"],
        &["* * * * *", "-n", "-1"],
        &["* * * * *", "--gap", "sometimes"],
        &["* * * * *", "--overlap", "third"],
        &[],
    ];
    for args in cases {
        let output = preview(args);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""), "{args:?}");
    }
}

#[test]
fn the_largest_previews_are_answered_whole() {
    for expression in ["* * * * * *", "0 0 29 2 *", "@hourly"] {
        let output = preview(&[expression, "-n", "1000", "-o", "jsonl", "--tz", "Africa/Casablanca"]);
        assert_eq!(stdout(&output).lines().count(), 1000, "{expression}");
    }
}

#[test]
fn an_expression_that_looks_like_an_option_is_an_expression() {
    for text in ["-5 * * * *", "--x * * * *", "-n 5 * * *", "-"] {
        let output = preview(&[text, "--tz", "UTC", "-n", "3", "-o", "json"]);
        assert_eq!(output.status.code(), Some(8), "{text}");
        assert_eq!(stdout(&output), "");
        let problem: Value = serde_json::from_slice(&output.stderr).unwrap();
        assert!(problem["code"].as_str().unwrap().starts_with("cron_"), "{problem}");
    }
}

#[test]
fn an_expression_that_is_no_text_is_a_problem() {
    use std::os::unix::ffi::OsStrExt as _;
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    command.args(["schedule", "preview"]);
    command.arg(std::ffi::OsStr::from_bytes(b"0 0 * * *\xff"));
    let output = command.args(["-o", "json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(8));
    assert_eq!(stdout(&output), "");
    let problem: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(problem["code"], "argument_not_utf8");
}

#[test]
fn a_script_reads_a_wrong_command_line_as_a_problem() {
    let output = preview(&["@daily", "-n", "0", "-o", "json"]);
    assert_eq!(output.status.code(), Some(2));
    let problem: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(problem["code"], "usage");
    assert!(problem["detail"].as_str().unwrap().contains("-n"), "{problem}");
}

#[test]
fn excluded_days_are_left_out_as_creation_leaves_them_out() {
    let daily = ["0 12 * * *", "--tz", "Asia/Tokyo", "-n", "3", "-o", "json"];
    let exclude = ["--exclude", "sun", "--exclude", "2026-03-30..2026-04-01"];
    let output = preview(&[&daily[..], &exclude].concat());
    let want = json!([
        { "at": "2026-04-02T03:00:00Z", "local": "2026-04-02T12:00:00+09:00" },
        { "at": "2026-04-03T03:00:00Z", "local": "2026-04-03T12:00:00+09:00" },
        { "at": "2026-04-04T03:00:00Z", "local": "2026-04-04T12:00:00+09:00" },
    ]);
    assert_eq!(serde_json::from_str::<Value>(stdout(&output)).unwrap(), want);
    for (args, code, field) in [
        (["@daily", "--exclude", "someday"], "exclusion_form", "exclude[0]"),
        (["0 0 * * mon", "--exclude", "mon"], "schedule_never_fires", "exclude"),
    ] {
        let output = preview(&[&args[..], &["-o", "json"]].concat());
        assert_eq!((output.status.code(), stdout(&output)), (Some(8), ""), "{args:?}");
        let problem: Value = serde_json::from_slice(&output.stderr).unwrap();
        assert_eq!((&problem["code"], &problem["field"]), (&json!(code), &json!(field)));
    }
}
