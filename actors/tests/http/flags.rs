//! The real binary against a running node: each flag of a creation or an edit arrives where it belongs.

use crate::commands::{fencepost, fired_out, json, make_schedule};
use crate::{World, run};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Words of `schedule create` behind the name, and the definition that they make but for its job.
fn schedules() -> [(&'static str, Value); 3] {
    [
        (
            "--cron|0 2 * * *|--cron|30 3 * * *|--tz|Europe/Berlin|--gap|skip|--overlap|second\
             |--starts-at|2030-01-01T00:00:00Z|--ends-at|2031-01-01T00:00:00Z|--count|3|--exclude|2030-02-01\
             |--exclude|sun|--jitter|10s|--misfire|all|--catch-up-cap|5|--catch-up-rate|2|--tolerance|5s|--grace|1h",
            json!({
                "cron": ["0 2 * * *", "30 3 * * *"], "tz": "Europe/Berlin", "gap": "skip", "overlap": "second",
                "starts_at": "2030-01-01T00:00:00Z", "ends_at": "2031-01-01T00:00:00Z", "count": 3,
                "exclude": ["2030-02-01", "sun"], "jitter": "10s", "misfire": "all",
                "catch_up": {"cap": 5, "rate": 2}, "tolerance": "5s", "grace": "1h",
            }),
        ),
        (
            "--every|90s|--anchor|2026-01-01T00:00:00Z",
            json!({
                "every": "1m30s", "anchor": "2026-01-01T00:00:00Z", "tz": "UTC", "exclude": [], "jitter": "0s",
                "misfire": "latest", "tolerance": "1m",
            }),
        ),
        (
            "--at-local|2036-03-30T02:30:00|--tz|Europe/Berlin",
            json!({
                "at_local": "2036-03-30T02:30:00", "tz": "Europe/Berlin", "gap": "next-valid", "overlap": "first",
                "exclude": [], "jitter": "0s", "misfire": "latest", "tolerance": "1m",
            }),
        ),
    ]
}

/// Words that a schedule and a job have in common, and the job that they make.
fn jobs() -> [(&'static str, Value); 3] {
    let others = |target: Value| {
        json!({
            "target": target, "queue": "default", "priority": 5, "tags": [], "timeout": "5m",
            "retry": {"attempts": 5, "backoff": "1s", "cap": "1h"}, "delivery": "at-least-once",
        })
    };
    let mut command = others(json!({
        "type": "command", "argv": ["echo hi"], "shell": true, "env": {"A": "b"}, "directory": "/tmp", "grace": "7s",
    }));
    command["payload_base64"] = json!("AP8=");
    [
        (
            "--http|https://example.org/|--method|PUT|--header|x-a: b|--payload|1.0|--queue|q|--priority|3|--tag|x\
             |--tag|y|--attempt-timeout|9s|--attempts|4|--backoff|3s|--backoff-cap|30s|--delivery|at-most-once\
             |--expires-at|2039-01-01T00:00:00Z",
            json!({
                "target": {"type": "http", "method": "PUT", "url": "https://example.org/", "headers": {"x-a": "b"}},
                "payload": 1.0, "queue": "q", "priority": 3, "tags": ["x", "y"], "timeout": "9s",
                "retry": {"attempts": 4, "backoff": "3s", "cap": "30s"}, "delivery": "at-most-once",
                "expires_at": "2039-01-01T00:00:00Z",
            }),
        ),
        (
            "--shell|--env|A=b|--directory|/tmp|--kill-after|7s|--payload-file|FILE|--|echo hi",
            command,
        ),
        ("--remote|far", others(json!({"type": "remote", "name": "far"}))),
    ]
}

/// A file of two bytes that are no text, and the words with its path in the place of FILE.
fn words<'a>(text: &'a str, file: &'a tempfile::NamedTempFile) -> Vec<&'a str> {
    let place = |word| {
        if word == "FILE" {
            file.path().to_str().unwrap()
        } else {
            word
        }
    };
    text.split('|').map(place).collect()
}

fn bytes() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), [0, 255]).unwrap();
    file
}

#[test]
fn every_flag_of_a_new_schedule_arrives_in_its_definition() {
    run(async {
        let world = World::new().await;
        let file = bytes();
        for (at, ((rule, definition), (work, job))) in schedules().into_iter().zip(jobs()).enumerate() {
            let name = format!("s{at}");
            let create = ["schedule", "create", &name, "-o", "json", "--paused"];
            let all = [&create[..], &words(rule, &file), &words(work, &file)].concat();
            let (code, out, err) = fencepost(&world, &all).await;
            assert_eq!(code, 0, "{err}");
            let shown: Value = serde_json::from_str(&out).unwrap();
            let mut want = definition;
            want["job"] = job;
            assert_eq!((&shown["status"], &shown["definition"]), (&json!("paused"), &want));
            // The same from a file.
            want["name"] = json!("f");
            std::fs::write(file.path(), want.to_string()).unwrap();
            let path = file.path().to_str().unwrap();
            let copy = format!("f{at}");
            let from_file = json(&world, &["schedule", "create", &copy, "--file", path]).await;
            assert_eq!(from_file["definition"], shown["definition"]);
            assert_eq!(
                (&from_file["name"], &from_file["status"]),
                (&json!(copy), &json!("active"))
            );
            std::fs::write(file.path(), [0, 255]).unwrap();
        }
    });
}

#[test]
fn every_flag_of_a_new_job_arrives_in_it() {
    run(async {
        let world = World::new().await;
        let file = bytes();
        let whens = [
            "--at|2035-01-01T00:00:00Z|--key|k",
            "--delay|1h",
            "--at|2036-01-01T00:00:00Z",
        ];
        for ((work, want), when) in jobs().into_iter().zip(whens) {
            let all = [&["job", "create"][..], &words(when, &file), &words(work, &file)].concat();
            let (code, out, err) = fencepost(&world, &all).await;
            assert_eq!(code, 0, "{err}");
            let shown = json(&world, &["job", "show", out.trim()]).await;
            for (field, value) in want.as_object().unwrap() {
                assert_eq!(&shown[field], value, "{field}: {shown}");
            }
            let time = |field: &str| chrono::DateTime::parse_from_rfc3339(shown[field].as_str().unwrap()).unwrap();
            match when.split('|').collect::<Vec<_>>()[..] {
                ["--delay", _] => assert_eq!((time("due_at") - time("created_at")).num_seconds(), 3_600),
                ["--at", at, ..] => assert_eq!(shown["due_at"], at),
                _ => unreachable!("{when}"),
            }
            assert_eq!(shown["idempotency_key"] == "k", when.contains("--key"));
            // The same from a file.
            let mut asked = want;
            asked["at"] = shown["due_at"].clone();
            std::fs::write(file.path(), asked.to_string()).unwrap();
            let copy = ["job", "create", "--file", file.path().to_str().unwrap()];
            let (code, out, err) = fencepost(&world, &copy).await;
            assert_eq!(code, 0, "{err}");
            let copied = json(&world, &["job", "show", out.trim()]).await;
            assert_eq!(copied["due_at"], asked["at"]);
            for field in jobs()[0].1.as_object().unwrap().keys() {
                assert_eq!(copied[field], shown[field], "{field}: {copied}");
            }
            std::fs::write(file.path(), [0, 255]).unwrap();
        }
        let late = [
            "job",
            "create",
            "--handler",
            "noop",
            "--at",
            "2020-01-01T00:00:00Z",
            "--grace",
            "1h",
        ];
        let (code, out, err) = fencepost(&world, &late).await;
        assert!(
            (code, out.as_str()) == (8, "") && err.contains("too_late"),
            "{code}: {err}"
        );
    });
}

/// A flag that is made later and tried nowhere is found.
#[test]
fn no_flag_of_a_creation_is_left_out_here() {
    let mut tried: BTreeSet<&str> = ["--handler", "--at", "--delay", "--key", "--grace", "--file", "--paused"].into();
    for (text, _) in schedules().iter().chain(&jobs()) {
        tried.extend(text.split('|').filter(|word| word.len() > 2 && word.starts_with("--")));
    }
    let everywhere = ["--output", "--help", "--server", "--token-file", "--timeout"];
    for path in [["schedule", "create"], ["job", "create"]] {
        let mut command = fencepost::cli::grammar();
        for word in path {
            command = command.find_subcommand(word).unwrap().clone();
        }
        let names = command.get_arguments().filter_map(|flag| flag.get_long());
        for name in names.map(|name| format!("--{name}")) {
            let is_known = tried.contains(name.as_str()) || everywhere.contains(&name.as_str());
            assert!(is_known, "{path:?} {name} is tried in no test here");
        }
    }
}

#[test]
fn an_edit_by_hand_says_what_becomes_of_the_planned_fire_and_fates_are_filtered() {
    run(async {
        let world = World::new().await;
        let create = ["schedule", "create", "s", "--cron", "0 0 1 1 *", "--handler", "noop"];
        assert_eq!(fencepost(&world, &create).await.0, 0);
        for (version, word) in (2..).zip(["keep", "retime", "drop"]) {
            let cron = format!("0 0 {version} 7 *");
            let edit = ["schedule", "edit", "s", "--cron", &cron, "--pending", word];
            assert_eq!(
                json(&world, &[&edit[..], &["--dry-run"]].concat()).await["pending"],
                word
            );
            assert_eq!(json(&world, &edit).await["version"], version);
            let edits = json(&world, &["schedule", "edits", "s"]).await;
            assert_eq!(edits[version - 1]["pending"], word, "{edits}");
        }
        let shown = fired_out(&world, "t", 3).await;
        let (from, to) = (
            shown["history_from"].as_str().unwrap(),
            shown["finished_at"].as_str().unwrap(),
        );
        let life = shown["incarnation"].as_str().unwrap();
        let fired = "fired_on_time,fired_late";
        for (more, count) in [
            (vec![], 3),
            (vec!["--fate", fired, "--from", from, "--incarnation", life], 3),
            (vec!["--fate", "paused,excluded"], 0),
            (vec!["--to", from], 0),
            (vec!["--from", "2099-01-01T00:00:00Z"], 0),
            (vec!["--from", from, "--to", to], 3),
        ] {
            let fates = json(&world, &[&["schedule", "fates", "t"][..], &more].concat()).await;
            let counts = fates
                .as_array()
                .unwrap()
                .iter()
                .map(|fate| fate["count"].as_u64().unwrap());
            assert_eq!(counts.sum::<u64>(), count, "{more:?}: {fates}");
        }
        let other = ["schedule", "fates", "t", "--fate", "gone"];
        assert_eq!(fencepost(&world, &other).await.0, 8);
    });
}

#[test]
fn an_edit_takes_out_what_it_is_told_to_and_refuses_what_is_not_there() {
    run(async {
        let world = World::new().await;
        let create = "schedule|create|s|--cron|0 9 * * *|--tz|Asia/Tokyo|--exclude|sun|--ends-at|2031-01-01T00:00:00Z\
                      |--tag|x|--http|https://example.org/|--header|x-a:b|--method|PUT";
        assert_eq!(fencepost(&world, &create.split('|').collect::<Vec<_>>()).await.0, 0);
        let edit = "schedule|edit|s|--unset|exclude|--unset|ends_at|--unset|job.tags|--unset|job.target.headers\
                    |--http|https://example.org/|--header|x-c:d";
        let edited = json(&world, &edit.split('|').collect::<Vec<_>>()).await;
        let definition = &edited["definition"];
        assert_eq!(definition["exclude"], json!([]), "{edited}");
        assert!(definition["ends_at"].is_null(), "{edited}");
        assert_eq!(definition["job"]["tags"], json!([]), "{edited}");
        let target = &definition["job"]["target"];
        assert_eq!(
            (&target["headers"], &target["method"]),
            (&json!({"x-c": "d"}), &json!("PUT"))
        );
        assert_eq!(definition["tz"], "Asia/Tokyo");
        for wrong in ["exclud", "job.target.header", "job.target.headers.x-a.b", "cron.0", ""] {
            let (code, out, err) = fencepost(&world, &["schedule", "edit", "s", "--unset", wrong]).await;
            assert_eq!((code, out.as_str()), (8, ""), "{wrong}: {err}");
            assert!(err.contains("unset_absent") && err.contains(wrong), "{err}");
        }
        let (code, _, err) = fencepost(&world, &["schedule", "edit", "s", "--unset", "cron"]).await;
        assert_eq!(code, 8, "a schedule without a rule is none: {err}");
        assert_eq!(json(&world, &["schedule", "show", "s"]).await["version"], 2);
    });
}

#[test]
fn an_edit_names_single_parts_of_the_target_that_is_there() {
    run(async {
        let world = World::new().await;
        let call =
            "schedule|create|call|--every|1h|--http|https://example.org/|--header|x-a:1|--header|x-b:2|--header|x-c:3";
        let run = "schedule|create|run|--every|1h|--env|B=1|--env|C=2|--shell|--|echo hi";
        for create in [call, run] {
            let (code, _, err) = fencepost(&world, &create.split('|').collect::<Vec<_>>()).await;
            assert_eq!(code, 0, "{err}");
        }
        let edited = json(
            &world,
            &"schedule|edit|call|--header|x-b:3|--method|PUT|--unset|job.target.headers.x-c"
                .split('|')
                .collect::<Vec<_>>(),
        )
        .await;
        let target = &edited["definition"]["job"]["target"];
        assert_eq!(
            (&target["headers"], &target["method"], &target["url"]),
            (
                &json!({"x-a": "1", "x-b": "3"}),
                &json!("PUT"),
                &json!("https://example.org/")
            )
        );
        let edit = "schedule|edit|run|--unset|job.target.env.B|--env|D=4|--kill-after|3s|--directory|/tmp";
        let edited = json(&world, &edit.split('|').collect::<Vec<_>>()).await;
        let target = &edited["definition"]["job"]["target"];
        assert_eq!(
            (&target["env"], &target["grace"], &target["directory"]),
            (&json!({"C": "2", "D": "4"}), &json!("3s"), &json!("/tmp"))
        );
        assert_eq!(
            (&target["argv"], &target["shell"]),
            (&json!(["echo hi"]), &json!(true)),
            "the words stay a shell's"
        );
        for (words, flag) in [
            ("schedule|edit|call|--env|A=1", "--env"),
            ("schedule|edit|run|--header|x-a:1", "--header"),
            ("schedule|create|new|--every|1h|--kill-after|1s", "--kill-after"),
            ("job|create|--remote|w|--directory|/tmp", "--directory"),
        ] {
            let (code, out, err) = fencepost(&world, &words.split('|').collect::<Vec<_>>()).await;
            assert_eq!((code, out.as_str()), (2, ""), "{words}: {err}");
            assert!(err.contains("target_part_alone") && err.contains(flag), "{err}");
        }
        assert_eq!(json(&world, &["schedule", "show", "call"]).await["version"], 2);
    });
}

#[test]
fn a_schedule_as_it_is_shown_is_a_definition_of_its_version() {
    run(async {
        let world = World::new().await;
        make_schedule(&world, "s", "--cron|0 9 * * *|--tz|Asia/Tokyo").await;
        let shown = json(&world, &["schedule", "show", "s"]).await;
        let file = bytes();
        std::fs::write(file.path(), shown.to_string()).unwrap();
        let path = file.path().to_str().unwrap();
        let edit = ["schedule", "edit", "s", "-f", path, "--count", "9"];
        let edited = json(&world, &edit).await;
        assert_eq!(
            (&edited["version"], &edited["definition"]["count"]),
            (&json!(2), &json!(9))
        );
        let (code, _, err) = fencepost(&world, &edit).await;
        assert_eq!(code, 5, "the file is of version 1: {err}");
        assert_eq!(
            json(&world, &[&edit[..], &["--if-version", "2"]].concat()).await["version"],
            3
        );
        let copy = json(&world, &["schedule", "create", "copy", "-f", path]).await;
        assert_eq!(
            (&copy["name"], &copy["definition"]),
            (&json!("copy"), &shown["definition"])
        );
        let edit = ["schedule", "edit", "copy", "-f", path, "--count", "8"];
        assert_eq!(
            json(&world, &edit).await["version"],
            2,
            "the version is another schedule's"
        );
        assert_eq!(fencepost(&world, &["schedule", "delete", "s"]).await.0, 0);
        make_schedule(&world, "s", "--every|1h").await;
        let (code, _, err) = fencepost(&world, &["schedule", "edit", "s", "-f", path]).await;
        assert!(
            code == 5 && err.contains("deleted"),
            "of a life before this one: {code} {err}"
        );
        let (code, _, err) = fencepost(&world, &["schedule", "edit", "copy", "-f", path, "--dry-run"]).await;
        assert!(code == 0 && err.contains("holds the schedule 's'"), "{code} {err}");
        for (wrong, field) in [
            (r#"{"definition":{},"name":"copy","incarnation":7}"#, "incarnation"),
            (r#"{"definition":5}"#, "definition"),
            (r#"{"definition":null}"#, "definition"),
            (r#"{"definition":{},"name":"copy","version":"x"}"#, "version"),
        ] {
            std::fs::write(file.path(), wrong).unwrap();
            let (code, out, err) = fencepost(&world, &edit).await;
            assert_eq!((code, out.as_str()), (8, ""), "{wrong}: {err}");
            assert!(err.contains(&format!("[file_malformed, {field}]")), "{err}");
        }
        // The file that made it, with its name.
        let mut made = shown["definition"].clone();
        made["name"] = json!("copy");
        std::fs::write(file.path(), made.to_string()).unwrap();
        assert_eq!(json(&world, &edit).await["version"], 3);
    });
}

#[test]
fn fires_before_and_after_are_shown_in_the_zone_of_the_new_definition() {
    run(async {
        let world = World::new().await;
        make_schedule(&world, "s", "--cron|0 9 * * *|--tz|Asia/Tokyo").await;
        let edit = ["schedule", "edit", "s", "--exclude", "sun", "--dry-run"];
        let (code, out, err) = fencepost(&world, &edit).await;
        assert_eq!(code, 0, "{err}");
        assert!(out.lines().all(|line| line.contains("T09:00:00+09:00")), "{out}");
        let (_, out, _) = fencepost(&world, &[&edit[..], &["--tz", "Europe/Kyiv"]].concat()).await;
        assert!(out.lines().any(|line| line.contains("T09:00:00+0")), "{out}");
        assert!(!out.contains("+09:00"), "{out}");
    });
}
