//! The real binary against a running node: what a person does by hand to jobs and schedules that are there.

use crate::commands::{fencepost, fired_out, json};
use crate::{World, run};
use serde_json::Value;

/// The id of a job made with these words once it is as it stays.
async fn made(world: &World, words: &[&str]) -> String {
    let (code, out, err) = fencepost(world, &[&["job", "create"][..], words].concat()).await;
    assert_eq!(code, 0, "{err}");
    out.trim().to_owned()
}

#[test]
fn a_waiting_job_is_cancelled_once_and_its_answer_says_so() {
    run(async {
        let world = World::new().await;
        let id = made(&world, &["--handler", "noop", "--delay", "1h"]).await;
        let cancel = ["job", "cancel", &id];
        assert_eq!(json(&world, &cancel).await["result"], "cancelled");
        let again = json(&world, &cancel).await;
        assert_eq!(
            (&again["result"], &again["state"]),
            (&"finished".into(), &"cancelled".into())
        );
        assert_eq!(json(&world, &["job", "show", &id]).await["state"], "cancelled");
        let (code, out, _) = fencepost(&world, &cancel).await;
        assert_eq!(
            (code, out),
            (0, format!("{id}  nothing to cancel: it is cancelled already\n"))
        );
    });
}

#[test]
fn cancelling_a_running_job_says_that_its_attempt_still_runs() {
    run(async {
        let world = World::new().await;
        let id = made(&world, &["--handler", "hang"]).await;
        while json(&world, &["job", "show", &id]).await["state"] != "running" {}
        let (code, out, err) = fencepost(&world, &["job", "cancel", &id]).await;
        assert_eq!(
            (code, out),
            (0, format!("{id}  cancel requested; attempt 1 still runs\n")),
            "{err}"
        );
    });
}

#[test]
fn a_dead_job_is_sent_back_and_another_is_not() {
    run(async {
        let world = World::new().await;
        let id = made(&world, &["--handler", "fail", "--attempts", "1"]).await;
        assert_eq!(fencepost(&world, &["job", "wait", &id]).await.0, 1);
        assert_eq!(json(&world, &["job", "retry", &id]).await["id"], *id);
        assert_eq!(fencepost(&world, &["job", "wait", &id]).await.0, 1);
        let attempts = json(&world, &["job", "attempts", &id]).await;
        assert_eq!(attempts.as_array().unwrap().len(), 2, "{attempts}");
        let good = made(&world, &["--handler", "noop"]).await;
        assert_eq!(fencepost(&world, &["job", "wait", &good]).await.0, 0);
        let (code, out, err) = fencepost(&world, &["job", "retry", &good]).await;
        assert_eq!((code, out.as_str()), (5, ""), "{err}");
    });
}

#[test]
fn an_uncertain_job_is_settled_with_each_verdict_and_another_is_not() {
    run(async {
        let world = World::new().await;
        for (verdict, state) in [("succeeded", "succeeded"), ("dead", "dead"), ("retry", "uncertain")] {
            let id = made(&world, &["--handler", "fail", "--delivery", "at-most-once"]).await;
            assert_eq!(fencepost(&world, &["job", "wait", &id]).await.0, 1);
            assert_eq!(json(&world, &["job", "show", &id]).await["state"], "uncertain");
            let settle = ["job", "settle", &id, "--as", verdict];
            assert_eq!(json(&world, &settle).await["id"], *id);
            fencepost(&world, &["job", "wait", &id]).await;
            let job = json(&world, &["job", "show", &id]).await;
            assert_eq!(job["state"], state, "{job}");
            let attempts = json(&world, &["job", "attempts", &id]).await;
            let rounds = if verdict == "retry" { 2 } else { 1 };
            assert_eq!(attempts.as_array().unwrap().len(), rounds, "{attempts}");
            if state != "uncertain" {
                assert_eq!(fencepost(&world, &settle).await.0, 5);
            }
        }
    });
}

#[test]
fn a_backfill_takes_its_cap_a_look_first_what_fired_already_and_a_key() {
    run(async {
        let world = World::new().await;
        let shown = fired_out(&world, "s", 20).await;
        let text = |key: &str| shown[key].as_str().unwrap().to_owned();
        let (from, to) = (text("history_from"), text("finished_at"));
        let range = ["schedule", "backfill", "s", "--from", &from, "--to", &to];
        let ask = async |more: &[&str]| json(&world, &[&range[..], more].concat()).await;
        let jobs = async || {
            let list = json(&world, &["job", "list", "--schedule", "s"]).await;
            list.as_array().unwrap().len()
        };
        let plain = ask(&[]).await;
        assert_eq!(
            (&plain["count"], &plain["already_fired"]),
            (&0.into(), &20.into()),
            "{plain}"
        );
        let look = ask(&["--rerun", "--dry-run", "--cap", "3"]).await;
        assert_eq!(
            (&look["dry_run"], &look["count"], &look["over_cap"]),
            (&true.into(), &3.into(), &17.into()),
            "{look}"
        );
        assert_eq!(jobs().await, 20, "a look makes nothing");
        let made = ask(&["--rerun", "--cap", "3", "--key", "k"]).await;
        assert_eq!((&made["dry_run"], &made["count"]), (&false.into(), &3.into()));
        assert_eq!(ask(&["--rerun", "--cap", "3", "--key", "k"]).await, made);
        while jobs().await < 23 {}
        let (code, _, err) = fencepost(&world, &[&range[..], &["--rerun", "--cap", "4", "--key", "k"]].concat()).await;
        assert!(code == 5 && err.contains("idempotency_key_reused"), "{code}: {err}");
        for cap in ["0", "10001"] {
            let (code, _, err) = fencepost(&world, &[&range[..], &["--cap", cap]].concat()).await;
            assert!(code == 8 && err.contains("cap"), "{cap}: {code}: {err}");
        }
        assert_eq!(jobs().await, 23);
    });
}

#[test]
fn a_look_at_an_edit_shows_the_fires_before_and_after() {
    run(async {
        let world = World::new().await;
        let create = ["schedule", "create", "s", "--cron", "0 2 * * *", "--handler", "noop"];
        assert_eq!(fencepost(&world, &create).await.0, 0);
        let edit = ["schedule", "edit", "s", "--cron", "30 3 * * *", "--dry-run"];
        let look = json(&world, &edit).await;
        for (side, time) in [("before", "T02:00:00Z"), ("after", "T03:30:00Z")] {
            let fires = look[side].as_array().unwrap();
            assert!(!fires.is_empty(), "{look}");
            assert!(
                fires.iter().all(|at| at.as_str().unwrap().ends_with(time)),
                "{side}: {look}"
            );
        }
        let (code, out, err) = fencepost(&world, &edit).await;
        let is_pair = |line: &str| line.contains("T02:00:00Z\t") && line.ends_with("T03:30:00Z");
        assert!(code == 0 && !out.is_empty() && out.lines().all(is_pair), "{out}{err}");
        let kept: Value = json(&world, &["schedule", "show", "s"]).await;
        assert_eq!(
            (&kept["version"], &kept["definition"]["cron"]),
            (&1.into(), &serde_json::json!(["0 2 * * *"])),
            "{kept}"
        );
    });
}
