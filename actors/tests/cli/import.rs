//! `fencepost import crontab --dry-run`: every line is accounted for, without a server.

use crate::run;
use serde_json::Value;

const CRONTAB: &str = "MAILTO=ops@example.org\n\
# a comment\n\
*/5 * * * * /usr/bin/true\n\
@reboot /usr/bin/start\n\
0  4\t* * sun  printf '%s' a%b%c\n\
61 * * * * broken\n";

fn dry_run(text: &str, more: &[&str]) -> (i32, Vec<Value>, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tab"), text).unwrap();
    let words: Vec<_> = ["import", "crontab", "tab", "--dry-run", "-o", "jsonl"]
        .iter()
        .chain(more)
        .copied()
        .collect();
    let (code, out, err) = run(folder.path(), &words);
    let items = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (code, items, err)
}

#[test]
fn every_line_is_reported_and_bad_ones_make_the_exit_code_8() {
    let (code, items, err) = dry_run(CRONTAB, &[]);
    assert_eq!(code, 8, "{err}");
    let results: Vec<_> = items
        .iter()
        .map(|item| (item["line"].as_u64().unwrap(), item["result"].as_str().unwrap()))
        .collect();
    let expected = [
        (1, "setting"),
        (3, "would create"),
        (4, "unsupported"),
        (5, "would create"),
        (6, "unsupported"),
    ];
    assert_eq!(results, expected);
    for item in items.iter().filter(|item| item["result"] == "unsupported") {
        assert!(!item["notes"][0].as_str().unwrap().is_empty(), "{item}");
    }
    for item in items.iter().filter(|item| item["result"] == "would create") {
        assert!(item["next"].as_str().unwrap().ends_with('Z'), "{item}");
        assert!(!item["name"].as_str().unwrap().is_empty(), "{item}");
    }
}

#[test]
fn a_clean_crontab_exits_with_0_and_an_empty_one_too() {
    let (code, items, err) = dry_run("0 4 * * * /usr/bin/true\n", &["--tz", "Europe/Berlin"]);
    assert_eq!((code, items.len()), (0, 1), "{err}");
    let next = items[0]["next"].as_str().unwrap();
    assert!(next.contains("T04:00:00+0"), "{next}");
    assert_eq!(dry_run("", &[]).0, 0);
}

#[test]
fn a_system_crontab_names_a_user_and_a_bad_zone_or_file_is_refused() {
    let (code, items, _) = dry_run("0 4 * * * root /usr/bin/true\n", &["--system"]);
    assert_eq!((code, items.len()), (0, 1));
    assert!(items[0]["notes"].to_string().contains("root"), "{}", items[0]);
    assert_eq!(dry_run("", &["--tz", "Mars/Base"]).0, 8);
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), &["import", "crontab", "missing", "--dry-run"]).0, 1);
}

#[test]
fn the_zone_that_times_are_shown_in_is_not_that_of_an_imported_crontab() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tab"), "0 4 * * * /usr/bin/true\n").unwrap();
    let words = ["import", "crontab", "tab", "--dry-run", "-o", "jsonl"];
    let mut command = crate::fencepost(folder.path(), &words);
    let (code, out, err) = crate::ended(command.env("FENCEPOST_TZ", "Asia/Tokyo").output().unwrap());
    let line: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, line["tz"].as_str()), (0, Some("UTC")), "{err}");
}

#[test]
fn an_interval_of_go_says_what_to_do_instead() {
    let (code, items, _) = dry_run("@every 5m /usr/bin/true\n", &[]);
    let note = items[0]["notes"][0].as_str().unwrap();
    assert!(
        code == 8 && note.contains("--every 5m") && note.contains("@every is a fixed interval"),
        "{note}"
    );
}

#[test]
fn limits_of_what_lines_run_are_checked_in_a_dry_run_too() {
    for wrong in [
        ["--attempts", "0"],
        ["--attempts", "1001"],
        ["--attempt-timeout", "0s"],
        ["--attempt-timeout", "8d"],
        ["--attempt-timeout", "1y"],
    ] {
        let (code, items, err) = dry_run("0 4 * * * /usr/bin/true\n", &wrong);
        assert_eq!((code, items.len()), (2, 0), "{wrong:?}: {err}");
        assert!(err.contains(wrong[0]), "{err}");
    }
    assert_eq!(
        dry_run(
            "0 4 * * * /usr/bin/true\n",
            &["--attempts", "1000", "--attempt-timeout", "7d"]
        )
        .0,
        0
    );
}
