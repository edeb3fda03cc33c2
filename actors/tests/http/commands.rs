//! The real binary against a running node: what it prints and how it exits.

use crate::{TOKEN, World, run};
use serde_json::Value;
use std::process::Stdio;

/// Exit code, standard output, standard error.
pub(crate) async fn fencepost(world: &World, words: &[&str]) -> (i32, String, String) {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_fencepost"));
    command.args(words).stdin(Stdio::null());
    command
        .env("FENCEPOST_SERVER", format!("http://{}", world.address))
        .env("FENCEPOST_TOKEN", TOKEN);
    command.env_remove("FENCEPOST_TZ");
    let output = command.output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// The same, which must succeed and print JSON.
pub(crate) async fn json(world: &World, words: &[&str]) -> Value {
    let words: Vec<_> = words.iter().copied().chain(["-o", "json"]).collect();
    let (code, out, err) = fencepost(world, &words).await;
    assert_eq!(code, 0, "{words:?}: {err}");
    serde_json::from_str(&out).unwrap()
}

/// Makes a schedule of no-ops; the words of its rule have a bar between them.
pub(crate) async fn make_schedule(world: &World, name: &str, rule: &str) {
    let create = ["schedule", "create", name, "--handler", "noop"];
    let words: Vec<&str> = create.into_iter().chain(rule.split('|')).collect();
    let (code, _, err) = fencepost(world, &words).await;
    assert_eq!(code, 0, "{err}");
}

/// A schedule that fired so often, a millisecond apart, and is over.
pub(crate) async fn fired_out(world: &World, name: &str, count: u32) -> Value {
    make_schedule(world, name, &format!("--every|1ms|--count|{count}")).await;
    loop {
        let shown = json(world, &["schedule", "show", name]).await;
        if shown["status"] == "finished" {
            return shown;
        }
    }
}

#[test]
fn a_job_from_creation_to_its_logs() {
    run(async {
        let world = World::new().await;
        let words = [
            "job",
            "create",
            "--handler",
            "echo",
            "--payload",
            "[1.00, 2]",
            "--key",
            "k",
        ];
        let (code, out, err) = fencepost(&world, &words).await;
        assert_eq!(code, 0, "{err}");
        let id = out.trim();
        assert_eq!(fencepost(&world, &words).await.1.trim(), id);
        let (code, out, _) = fencepost(&world, &["job", "wait", id, "-o", "json"]).await;
        assert_eq!(code, 0);
        assert!(out.contains(r#""payload":[1.00, 2]"#), "{out}");
        assert_eq!(fencepost(&world, &["job", "logs", id]).await.1, "[1.00, 2]\n");
        let list = json(&world, &["job", "list", "--state", "succeeded"]).await;
        assert_eq!(list[0]["id"], id);
        let (_, out, _) = fencepost(&world, &["job", "list"]).await;
        assert!(
            out.starts_with(&format!("{id}\tsucceeded\tdefault\thandler echo\t")),
            "{out}"
        );
        let attempts = json(&world, &["job", "attempts", id]).await;
        assert_eq!(attempts[0]["result"], "succeeded");
    });
}

#[test]
fn what_the_id_or_an_empty_list_alone_does_not_say_is_told_beside_it() {
    run(async {
        let world = World::new().await;
        let past = ["job", "create", "--handler", "noop", "--at", "2020-01-01T00:00:00Z"];
        let (code, id, err) = fencepost(&world, &past).await;
        assert!(
            code == 0 && id.starts_with("job_") && id.lines().count() == 1,
            "{id}{err}"
        );
        assert!(err.contains("due at once"), "{err}");
        let (_, _, err) = fencepost(&world, &["job", "create", "--handler", "noop", "--delay", "1h"]).await;
        assert_eq!(err, "");
        let one_word = ["job", "create", "--delay", "1h", "--", "echo hi"];
        assert!(fencepost(&world, &one_word).await.2.contains("one word with blanks"));
        let with_key = ["job", "create", "--handler", "noop", "--delay", "1h", "--key", "k"];
        let (_, id, err) = fencepost(&world, &with_key).await;
        assert_eq!(err, "");
        let (code, again, err) = fencepost(&world, &with_key).await;
        assert_eq!((code, again), (0, id));
        assert!(err.contains("nothing new was made"), "{err}");
        let create = ["schedule", "create", "s", "--every", "1h", "--handler", "noop"];
        assert_eq!(fencepost(&world, &create).await.2, "");
        let once = [
            "schedule",
            "create",
            "o",
            "--at",
            "2020-01-01T00:00:00Z",
            "--handler",
            "noop",
        ];
        let (code, _, err) = fencepost(&world, &once).await;
        assert!(code == 0 && err.contains("due at once"), "{err}");
        let (code, out, err) = fencepost(&world, &["schedule", "fates", "s"]).await;
        assert_eq!((code, out.as_str()), (0, ""), "{err}");
        assert!(
            err.contains("no occurrence has come yet") && err.contains("schedule show s"),
            "{err}"
        );
        let moved = ["schedule", "edit", "s", "--at", "2020-01-01T00:00:00Z"];
        let (code, _, err) = fencepost(&world, &moved).await;
        assert!(code == 0 && err.contains("due at once, unless"), "{err}");
        let back = ["schedule", "edit", "s", "--every", "1h"];
        assert_eq!(fencepost(&world, &back).await.2, "");
        let (code, _, err) = fencepost(&world, &["schedule", "show", ""]).await;
        assert!(code == 8 && err.contains("[name_invalid, name]"), "{err}");
        let (code, _, err) = fencepost(&world, &["job", "cancel", ""]).await;
        assert!(code == 8 && err.contains("[id_missing, id]"), "{err}");
    });
}

#[test]
fn a_batch_of_which_jobs_were_refused_exits_with_8_and_takes_no_flags_of_a_job() {
    run(async {
        let world = World::new().await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("batch.json");
        let words = ["job", "create", "-f", file.to_str().unwrap()];
        let good = r#"{"target":{"type":"handler","name":"noop"}}"#;
        let bad = r#"{"target":{"type":"handler","name":"noop"},"priority":10}"#;
        std::fs::write(&file, format!("{{\"jobs\":[{good},{bad}]}}")).unwrap();
        let flags: [(&[&str], &str); 6] = [
            (&["--key", "k"], "idempotency_key"),
            (&["--queue", "q"], "queue"),
            (&["--at", "2030-01-01T00:00:00Z"], "at"),
            (&["--delay", "1h"], "delay"),
            (&["--handler", "echo"], "target"),
            (&["--attempts", "2"], "retry"),
        ];
        for (flag, field) in flags {
            let (code, out, err) = fencepost(&world, &[&words[..], flag].concat()).await;
            assert_eq!((code, out.as_str()), (2, ""), "{flag:?}: {err}");
            assert!(
                err.contains(&format!("[flag_beside_batch, {field}]")),
                "{flag:?}: {err}"
            );
        }
        assert_eq!(json(&world, &["job", "list"]).await.as_array().unwrap().len(), 0);
        let (code, out, err) = fencepost(&world, &[&words[..], &["-o", "json"]].concat()).await;
        let answer: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&answer["created"], &answer["refused"]), (&1.into(), &1.into()));
        assert!(code == 8 && err.contains("1 of the jobs was refused"), "{code}: {err}");
        std::fs::write(&file, format!("{{\"jobs\":[{good},{good}]}}")).unwrap();
        assert_eq!(json(&world, &words).await["created"], 2);
    });
}

#[test]
fn exit_codes_follow_the_answer() {
    run(async {
        let world = World::new().await;
        let code = async |words: &[&str]| fencepost(&world, words).await.0;
        let zero = format!("job_{}", "0".repeat(32));
        assert_eq!(code(&["job", "show", &zero]).await, 3);
        assert_eq!(code(&["schedule", "show", "none"]).await, 3);
        assert_eq!(
            code(&["schedule", "create", "s", "--cron", "61 * * * *", "--handler", "noop"]).await,
            8
        );
        assert_eq!(code(&["schedule", "create", "s", "--every", "1h"]).await, 8);
        assert_eq!(
            code(&["schedule", "create", "s", "--every", "1h", "--handler", "noop"]).await,
            0
        );
        assert_eq!(
            code(&["schedule", "create", "s", "--every", "1h", "--handler", "noop"]).await,
            5
        );
        assert_eq!(
            code(&["schedule", "edit", "s", "--every", "2h", "--if-version", "9"]).await,
            5
        );
        let (_, id, _) = fencepost(&world, &["job", "create", "--handler", "fail", "--attempts", "1"]).await;
        assert_eq!(code(&["job", "wait", id.trim()]).await, 1);
        let (_, id, _) = fencepost(&world, &["job", "create", "--handler", "noop", "--delay", "1h"]).await;
        assert_eq!(code(&["job", "wait", id.trim(), "--for", "0s"]).await, 7);
        let (bounded, _, err) = fencepost(&world, &["job", "wait", id.trim(), "--timeout", "1s"]).await;
        assert!(bounded == 7 && err.contains("the job is waiting"), "{bounded}: {err}");
        let both = ["job", "wait", id.trim(), "--timeout", "1s", "--for", "1s"];
        assert_eq!(code(&both).await, 2, "one of the two");
        let mut wrong = tokio::process::Command::new(env!("CARGO_BIN_EXE_fencepost"));
        let wrong = wrong
            .args(["job", "list"])
            .env("FENCEPOST_TOKEN", "fp_another_one_altogether");
        let wrong = wrong
            .env("FENCEPOST_SERVER", format!("http://{}", world.address))
            .output()
            .await
            .unwrap();
        assert_eq!(wrong.status.code(), Some(4));
    });
}

#[test]
fn an_edit_changes_what_was_named_and_keeps_the_rest() {
    run(async {
        let world = World::new().await;
        let create = [
            "schedule",
            "create",
            "s",
            "--cron",
            "0 2 * * *",
            "--tz",
            "Europe/Berlin",
            "--handler",
            "echo",
            "--payload",
            "1.000",
            "--priority",
            "3",
            "--misfire",
            "all",
            "--catch-up-cap",
            "7",
        ];
        let (code, out, err) = fencepost(&world, &create).await;
        assert_eq!(code, 0, "{err}");
        assert!(out.starts_with("s  next ") && out.contains("T02:00:00+0"), "{out}");
        let edited = json(&world, &["schedule", "edit", "s", "--every", "90m", "--attempts", "2"]).await;
        let definition = &edited["definition"];
        assert_eq!(
            (definition["every"].as_str(), definition.get("cron")),
            (Some("1h30m"), None)
        );
        assert_eq!(
            (
                definition["catch_up"]["cap"].as_u64(),
                definition["job"]["priority"].as_u64()
            ),
            (Some(7), Some(3))
        );
        assert_eq!(definition["job"]["retry"]["attempts"], 2);
        let (_, shown, _) = fencepost(&world, &["schedule", "show", "s", "-o", "json"]).await;
        assert!(shown.contains(r#""payload":1.000"#), "{shown}");
        let preview = json(&world, &["schedule", "edit", "s", "--every", "5m", "--dry-run"]).await;
        assert_eq!(
            (preview["dry_run"].as_bool(), edited["version"].as_u64()),
            (Some(true), Some(2))
        );
        held_and_gone(&world).await;
    });
}

/// A schedule that was made and edited once is paused, resumed, paused and deleted.
async fn held_and_gone(world: &World) {
    let (_, out, _) = fencepost(world, &["schedule", "pause", "s"]).await;
    assert_eq!(out, "s  paused\n");
    let (_, out, _) = fencepost(world, &["schedule", "resume", "s", "--tz", "Asia/Tokyo"]).await;
    assert!(
        out.starts_with("s  active  next ") && out.ends_with("+09:00\n"),
        "{out}"
    );
    assert_eq!(out.lines().count(), 1);
    assert_eq!(json(world, &["schedule", "pause", "s"]).await["status"], "paused");
    assert_eq!(json(world, &["schedule", "list"]).await[0]["status"], "paused");
    assert_eq!(
        json(world, &["schedule", "edits", "s"]).await.as_array().unwrap().len(),
        5
    );
    assert_eq!(json(world, &["schedule", "delete", "s"]).await["deleted"], true);
}

#[test]
fn an_edit_of_a_part_of_a_target_keeps_its_other_parts() {
    run(async {
        let world = World::new().await;
        let url = "http://a.example/";
        let create = "schedule|create|h|--every|1h|--http|URL|--method|PUT|--header|x-plain: v".replace("URL", url);
        let words: Vec<&str> = create.split('|').collect();
        let (code, _, err) = fencepost(&world, &words).await;
        assert_eq!(code, 0, "{err}");
        let other = "http://b.example/";
        let target =
            json(&world, &["schedule", "edit", "h", "--http", other]).await["definition"]["job"]["target"].clone();
        let kept = (&target["url"], &target["method"], &target["headers"]["x-plain"]);
        assert_eq!(kept, (&other.into(), &"PUT".into(), &"v".into()), "{target}");
        let edit = [
            "schedule", "edit", "h", "--http", other, "--method", "POST", "--header", "x-new: w",
        ];
        let target = json(&world, &edit).await["definition"]["job"]["target"].clone();
        assert_eq!(target["method"], "POST");
        assert_eq!(target["headers"], serde_json::json!({ "x-new": "w", "x-plain": "v" }));
        let create = "schedule|create|c|--every|1h|--shell|--directory|/tmp|--env|A=b|--|true";
        let words: Vec<&str> = create.split('|').collect();
        assert_eq!(fencepost(&world, &words).await.0, 0);
        let edit = ["schedule", "edit", "c", "-o", "json", "--", "id"];
        let edited: Value = serde_json::from_str(&fencepost(&world, &edit).await.1).unwrap();
        let target = &edited["definition"]["job"]["target"];
        let kept = (&target["argv"][0], &target["directory"], &target["env"]["A"]);
        assert_eq!(kept, (&"id".into(), &"/tmp".into(), &"b".into()), "{target}");
        // Another kind of target takes nothing of the one before.
        let edit = ["schedule", "edit", "h", "--handler", "noop"];
        let target = json(&world, &edit).await["definition"]["job"]["target"].clone();
        assert_eq!(target, serde_json::json!({ "type": "handler", "name": "noop" }));
    });
}

#[test]
fn an_edit_of_the_rule_alone_keeps_the_secrets_of_the_target() {
    run(async {
        let world = World::new().await;
        let create = [
            "schedule",
            "create",
            "s",
            "--cron",
            "0 2 * * *",
            "--http",
            "http://a.example/",
        ];
        let header = ["--header", "x-api-key: s3cr3t"];
        let (code, _, err) = fencepost(&world, &[&create[..], &header].concat()).await;
        assert_eq!(code, 0, "{err}");
        let (code, out, err) = fencepost(&world, &["schedule", "edit", "s", "--cron", "30 2 * * *"]).await;
        assert!(
            code == 0 && out.starts_with("s  version 2  changed cron  next "),
            "{out}{err}"
        );
        assert_eq!(out.lines().count(), 1);
        let (_, out, _) = fencepost(&world, &["schedule", "edit", "s", "--priority", "4"]).await;
        assert!(out.starts_with("s  version 3  changed job.priority  next "), "{out}");
        let elsewhere = [
            "schedule",
            "edit",
            "s",
            "--http",
            "http://b.example/",
            "--header",
            "x-api-key: ********",
        ];
        let (code, _, err) = fencepost(&world, &elsewhere).await;
        assert!(code == 8 && err.contains("[secret_masked"), "{code}: {err}");
    });
}

#[test]
fn times_are_shown_in_the_zone_asked_for() {
    run(async {
        let world = World::new().await;
        let create = ["schedule", "create", "s", "--cron", "0 0 1 1 *", "--handler", "noop"];
        assert_eq!(fencepost(&world, &create).await.0, 0);
        let (_, out, _) = fencepost(&world, &["schedule", "list", "--tz", "Asia/Tokyo"]).await;
        assert!(out.contains("-01-01T09:00:00+09:00"), "{out}");
        assert_eq!(fencepost(&world, &["schedule", "list", "--tz", "Mars/Base"]).await.0, 8);
        let (_, out, _) = fencepost(&world, &["schedule", "list", "--tz", "Asia/Tokyo", "-o", "jsonl"]).await;
        assert!(out.contains("-01-01T00:00:00Z") && out.lines().count() == 1, "{out}");
    });
}

#[test]
fn a_crontab_is_imported_once() {
    run(async {
        let world = World::new().await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tab");
        std::fs::write(
            &file,
            "PATH=/usr/bin:/bin\n0 4 * * * /usr/bin/true\n*/5 * * * * cat%stdin line%\n",
        )
        .unwrap();
        let words = ["import", "crontab", file.to_str().unwrap()];
        let first = json(&world, &words).await;
        let results: Vec<_> = first
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line["result"].as_str().unwrap())
            .collect();
        assert_eq!(results, ["setting", "created", "created"], "{first}");
        let again = json(&world, &words).await;
        assert_eq!(again[1]["result"], "exists", "{again}");
        let dry = json(&world, &[&words[..], &["--dry-run"]].concat()).await;
        assert_eq!(dry, again, "a dry run sees what is there");
        let list = json(&world, &["schedule", "list"]).await;
        assert_eq!(list.as_array().unwrap().len(), 2);
        let commands = json(
            &world,
            &["schedule", "list", "--target", "command", "--status", "active"],
        )
        .await;
        assert_eq!(commands, list);
        let prefixed = json(&world, &["schedule", "list", "--prefix", "no-such-"]).await;
        assert_eq!(prefixed.as_array().unwrap().len(), 0);
        let name = first[2]["name"].as_str().unwrap();
        let (_, out, err) = fencepost(&world, &["schedule", "run-now", name, "-o", "json"]).await;
        let ran: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{err}"));
        let id = ran["id"].as_str().unwrap();
        let job = world.get(&format!("/v1/jobs/{id}")).await.json();
        assert_eq!(job["target"]["type"], "command", "{job}");
        assert!(job["payload_base64"].is_string(), "{job}");
    });
}

#[test]
fn an_import_shows_a_stored_schedule_as_it_is_and_says_what_differs() {
    run(async {
        let world = World::new().await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tab");
        std::fs::write(&file, "0 4 * * * /usr/bin/true\n").unwrap();
        let import = ["import", "crontab", file.to_str().unwrap(), "--tz"];
        let with = |more: &[&'static str]| [&import[..], more].concat();
        let (code, out, err) = fencepost(&world, &with(&["Europe/Berlin"])).await;
        assert_eq!(code, 0, "{err}");
        let name = out.split('\t').nth(2).unwrap();
        let job = json(&world, &["schedule", "show", name]).await["definition"]["job"].clone();
        assert_eq!(
            (&job["timeout"], &job["retry"]["attempts"]),
            (&"1d".into(), &5.into()),
            "no five minutes"
        );
        for more in [&["Asia/Tokyo"][..], &["Asia/Tokyo", "--dry-run"]] {
            let (code, out, err) = fencepost(&world, &with(more)).await;
            assert_eq!(code, 5, "{out}{err}");
            assert!(out.contains("\tdiffers\t") && out.contains("T04:00:00+0"), "{out}");
            assert!(!out.contains("+09:00"), "the stored zone is shown: {out}");
            assert!(err.contains("tz is Europe/Berlin there, Asia/Tokyo here"), "{err}");
            assert!(err.contains("1 differs"), "{err}");
            assert!(
                err.contains("fencepost schedule edit ") && err.contains(" --tz 'Asia/Tokyo'\n"),
                "{err}"
            );
            let (_, out, _) = fencepost(&world, &[&with(more)[..], &["-o", "json"]].concat()).await;
            let line = &serde_json::from_str::<Value>(&out).unwrap()[0];
            let difference = serde_json::json!([{"field": "tz", "stored": "Europe/Berlin", "line": "Asia/Tokyo"}]);
            assert_eq!((&line["differs"], &line["tz"]), (&difference, &"Europe/Berlin".into()));
        }
        let (code, out, err) = fencepost(&world, &with(&["Europe/Berlin", "--dry-run"])).await;
        assert!(code == 0 && out.contains("\texists\t"), "{out}{err}");
    });
}

#[test]
fn an_import_names_what_fires_next_and_takes_limits_for_its_runs() {
    run(async {
        let world = World::new().await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tab");
        let years = (1..=6).map(|day| format!("0 0 {day} 1 * /bin/y{day}\n"));
        let text: String = years.chain(["* * * * * /bin/soon\n".to_owned()]).collect();
        std::fs::write(&file, text).unwrap();
        let limits = ["--attempts", "1", "--attempt-timeout", "3h"];
        let import = [&["import", "crontab", file.to_str().unwrap()], &limits[..]].concat();
        let (code, out, err) = fencepost(&world, &import).await;
        assert_eq!(code, 0, "{err}");
        let next: Vec<&str> = err.lines().skip_while(|line| *line != "7 created").skip(1).collect();
        assert_eq!(next.len(), 6, "{err}");
        assert!(next[0].starts_with("next: ") && next[0].contains("  soon-"), "{err}");
        assert!(
            next[1].contains("01-01T00:00:00Z  y1-") && next[4].contains("  y4-"),
            "{err}"
        );
        assert_eq!(next[5], "next: and 2 later");
        let name = out.split('\t').nth(2).unwrap();
        let job = json(&world, &["schedule", "show", name]).await["definition"]["job"].clone();
        assert_eq!((&job["timeout"], &job["retry"]["attempts"]), (&"3h".into(), &1.into()));
        // Of what is there already, limits are compared if somebody named them.
        for (more, code, edit) in [
            (&[][..], 0, ""),
            (&["--attempts", "1", "--attempt-timeout", "180m"][..], 0, ""),
            (
                &["--attempts", "2", "--attempt-timeout", "1h"],
                5,
                " --attempt-timeout '1h' --attempts '2'\n",
            ),
        ] {
            let (seen, _, err) = fencepost(&world, &[&import[..3], more].concat()).await;
            assert!(seen == code && err.contains(edit), "{more:?}: {seen} {err}");
        }
    });
}

#[test]
fn the_newest_jobs_are_listed_first() {
    run(async {
        let world = World::new().await;
        let mut ids = Vec::new();
        for _ in 0..6 {
            ids.push(world.make(r#"{"target":{"type":"handler","name":"noop"}}"#).await);
        }
        ids.reverse();
        let (code, out, err) = fencepost(&world, &["job", "list", "--newest", "--limit", "4"]).await;
        assert_eq!(code, 0, "{err}");
        let listed: Vec<_> = out.lines().map(|line| line.split('\t').next().unwrap()).collect();
        assert_eq!(listed, ids[..4]);
    });
}

#[test]
fn a_backfill_before_the_schedule_was_made_says_why_it_makes_nothing() {
    run(async {
        let world = World::new().await;
        let create = ["schedule", "create", "s", "--every", "1h", "--handler", "noop"];
        assert_eq!(fencepost(&world, &create).await.0, 0);
        let made = json(&world, &["schedule", "show", "s"]).await["history_from"].clone();
        let past = ["--from", "2020-01-01T00:00:00Z", "--to", "2020-01-02T00:00:00Z"];
        let words = [&["schedule", "backfill", "s"], &past[..]].concat();
        let (code, out, err) = fencepost(&world, &words).await;
        assert!(code == 0 && out.contains("count\t0"), "{out}{err}");
        let begins = made.as_str().unwrap();
        assert!(
            err.contains(&format!("nothing before {begins} can be made up")),
            "{err}"
        );
        assert_eq!(json(&world, &words).await["begins_at"], made);
    });
}
