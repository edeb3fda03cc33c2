//! Jobs over HTTP: keys, batches, waiting, cancelling, sending back, settling.

use crate::{World, run};
use fencepost::api::server::HttpLimits;
use fencepost::node::NodeConfig;
use fencepost_core::limits::LEASE_MS_MIN;
use fencepost_core::time::Span;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const NOOP: &str = r#"{"target":{"type":"handler","name":"noop"}}"#;

fn handler(name: &str, more: &Value) -> String {
    let mut body = json!({ "target": { "type": "handler", "name": name } });
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    body.to_string()
}

#[test]
fn a_job_is_made_runs_and_is_read_back() {
    run(async {
        let world = World::new().await;
        let reply = world
            .post(
                "/v1/jobs",
                &handler("echo", &json!({ "payload": { "a": 1 }, "tags": ["x"], "priority": 2 })),
            )
            .await;
        assert_eq!((reply.status, reply.json()["replayed"].as_bool()), (201, Some(false)));
        let id = reply.json()["id"].as_str().unwrap().to_owned();
        assert_eq!(reply.headers["location"], format!("/v1/jobs/{id}").as_str());
        let job = world.wait(&id).await;
        assert_eq!(
            (job["state"].as_str(), job["attempt_count"].as_u64()),
            (Some("succeeded"), Some(1)),
            "{job}"
        );
        assert_eq!(
            (job["payload"].clone(), job["priority"].as_u64()),
            (json!({ "a": 1 }), Some(2))
        );
        assert!(job["ended_at"].is_string() && job.get("current").is_none(), "{job}");
        let attempts = world.get(&format!("/v1/jobs/{id}/attempts")).await.json();
        let attempt = &attempts["items"][0];
        assert_eq!(
            (attempt["attempt"].as_u64(), attempt["result"].as_str()),
            (Some(1), Some("succeeded"))
        );
        assert_eq!(attempt["token"].as_str().unwrap().len(), 40);
        let logs = world.get(&format!("/v1/jobs/{id}/logs")).await.json();
        assert_eq!(logs["items"][0]["output"], r#"{"a":1}"#);
    });
}

#[test]
fn an_attempt_is_recorded_with_its_worker_times_error_and_output() {
    run(async {
        let world = World::new().await;
        let retry = json!({ "retry": { "attempts": 2, "backoff": "20ms", "cap": "20ms" } });
        let id = world.make(&handler("fail", &retry)).await;
        assert_eq!(world.wait(&id).await["state"], "dead");
        let good = world.make(&handler("echo", &json!({ "payload": "said" }))).await;
        world.wait(&good).await;
        let attempts = async |id: &str| {
            let list = world.get(&format!("/v1/jobs/{id}/attempts")).await.json();
            list["items"].as_array().unwrap().clone()
        };
        let (failed, done) = (attempts(&id).await, attempts(&good).await);
        assert_eq!((failed.len(), done.len()), (2, 1));
        let time = |attempt: &Value, field: &str| {
            chrono::DateTime::parse_from_rfc3339(attempt[field].as_str().unwrap()).unwrap()
        };
        for (at, attempt) in failed.iter().chain(&done).enumerate() {
            assert!(attempt["worker"].as_str().unwrap().starts_with("local"), "{attempt}");
            assert!(time(attempt, "granted_at") <= time(attempt, "ended_at"), "{attempt}");
            let result = if at < 2 { "failed" } else { "succeeded" };
            assert_eq!(attempt["result"], result, "{attempt}");
            assert_eq!(
                attempt["error"]
                    .as_str()
                    .map(|error| error.contains("it does not work")),
                (at < 2).then_some(true),
                "{attempt}"
            );
        }
        assert_eq!((&failed[0]["attempt"], &failed[1]["attempt"]), (&json!(1), &json!(2)));
        assert!(failed[0]["token"].as_str() < failed[1]["token"].as_str());
        assert!(
            time(&failed[1], "granted_at") - time(&failed[0], "ended_at") >= chrono::TimeDelta::milliseconds(10),
            "half a backoff at least"
        );
        assert_eq!(done[0]["output_bytes"], "\"said\"".len());
    });
}

#[test]
fn a_handler_that_runs_for_longer_than_its_lease_keeps_it_without_a_word() {
    run(async {
        let short = |config: &mut NodeConfig| {
            config.lease = Span::from_millis(3 * LEASE_MS_MIN);
            config.heartbeat = Span::from_millis(LEASE_MS_MIN / 2);
        };
        let world = World::with(HttpLimits::default(), short).await;
        let id = world.make(&handler("hang", &json!({}))).await;
        let shown = loop {
            let shown = world.get(&format!("/v1/jobs/{id}")).await.json();
            if shown["state"] == "running" {
                break shown["current"].clone();
            }
        };
        let later = world.get(&format!("/v1/jobs/{id}/wait?timeout=8")).await.json();
        assert_eq!(
            (&later["state"], &later["current"]),
            (&json!("running"), &shown),
            "{later}"
        );
        let ended = world.get(&format!("/v1/jobs/{id}/attempts")).await.json();
        assert_eq!(ended["items"], json!([]), "{ended}");
    });
}

#[test]
fn a_job_that_nobody_took_before_its_expiry_is_expired() {
    run(async {
        let world = World::new().await;
        let earlier = world.make(NOOP).await;
        let now = world.wait(&earlier).await["ended_at"].as_str().unwrap().to_owned();
        let now = chrono::DateTime::parse_from_rfc3339(&now).unwrap();
        let at = |ms: i64| (now + chrono::TimeDelta::milliseconds(ms)).to_rfc3339();
        // No worker asks for remote jobs here.
        let body = |expiry: &str| json!({ "target": { "type": "remote", "name": "far" }, "expires_at": expiry });
        let id = world.make(&body(&at(5_000)).to_string()).await;
        let job = world.wait(&id).await;
        assert_eq!(
            (job["state"].as_str(), &job["attempt_count"]),
            (Some("expired"), &json!(0)),
            "{job}"
        );
        let past = world.post("/v1/jobs", &body(&at(-1)).to_string()).await;
        assert_eq!(
            (past.problem(), past.field().as_str()),
            ((400, "already_expired".into()), "expires_at")
        );
    });
}

#[test]
fn beh_p04_idem_key_over_http() {
    run(async {
        let world = World::new().await;
        let send = async |key: &str, body: &str| {
            world
                .send("POST", "/v1/jobs", &[("idempotency-key", key)], Some(body.as_bytes()))
                .await
        };
        let first = send("k", NOOP).await;
        assert_eq!(first.status, 201);
        // The same request, written in another way.
        let again = send("k", r#" { "target" : { "name":"noop", "type":"handler" } } "#).await;
        assert_eq!((again.status, again.json()["replayed"].as_bool()), (200, Some(true)));
        assert_eq!(again.json()["id"], first.json()["id"]);
        let field = world
            .post("/v1/jobs", &handler("noop", &json!({ "idempotency_key": "k" })))
            .await;
        assert_eq!(
            (field.status, field.json()["id"].clone()),
            (200, first.json()["id"].clone())
        );
        let other = send("k", &handler("noop", &json!({ "priority": 1 }))).await;
        assert_eq!(other.problem(), (422, "idempotency_key_reused".into()));
        let default = send("k", &handler("noop", &json!({ "priority": 5 }))).await;
        assert_eq!(
            default.problem().0,
            422,
            "the digest is over the request before defaults"
        );
        let fifty = (0..50).map(|_| send("new", NOOP));
        let replies = futures_util::future::join_all(fifty).await;
        let ids: BTreeSet<_> = replies.iter().map(|reply| reply.json()["id"].to_string()).collect();
        let made = replies.iter().filter(|reply| reply.status == 201).count();
        assert_eq!((ids.len(), made, replies.len()), (1, 1, 50));
        let twice = [("idempotency-key", "a"), ("idempotency-key", "b")];
        let reply = world.send("POST", "/v1/jobs", &twice, Some(NOOP.as_bytes())).await;
        assert_eq!(reply.problem(), (400, "idempotency_key_invalid".into()));
    });
}

#[test]
fn a_batch_answers_for_each_item_and_makes_the_good_ones() {
    run(async {
        let world = World::new().await;
        let mut jobs: Vec<Value> = (0..998)
            .map(|n| json!({ "target": { "type": "handler", "name": "noop" }, "payload": n }))
            .collect();
        jobs.insert(
            3,
            json!({ "target": { "type": "handler", "name": "noop" }, "priority": 77 }),
        );
        jobs.insert(
            500,
            json!({ "target": { "type": "handler", "name": "noop" }, "idempotency_key": "same" }),
        );
        jobs[501]["idempotency_key"] = json!("same");
        let reply = world.post("/v1/jobs:batch", &json!({ "jobs": jobs }).to_string()).await;
        let answer = reply.json();
        assert_eq!(reply.status, 200);
        assert_eq!(answer["items"].as_array().unwrap().len(), 1_000);
        assert_eq!(
            (answer["created"].as_u64(), answer["refused"].as_u64()),
            (Some(998), Some(2)),
            "{}",
            answer["items"][501]
        );
        assert_eq!(answer["items"][3]["problem"]["field"], "jobs[3].priority");
        assert_eq!(answer["items"][501]["problem"]["code"], "idempotency_key_reused");
        let ids: BTreeSet<_> = answer["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|item| item["id"].as_str())
            .collect();
        assert_eq!(ids.len(), 998);
        jobs.push(json!({}));
        let reply = world.post("/v1/jobs:batch", &json!({ "jobs": jobs }).to_string()).await;
        assert_eq!(
            (reply.problem(), reply.field().as_str()),
            ((400, "field_count".into()), "jobs")
        );
        assert_eq!(
            world.post("/v1/jobs:batch", r#"{"jobs":[]}"#).await.problem().1,
            "field_count"
        );
    });
}

#[test]
fn a_batch_refuses_a_key_for_all_of_it_and_makes_nothing() {
    run(async {
        let world = World::new().await;
        let body = r#"{"jobs":[{"target":{"type":"handler","name":"noop"}}]}"#;
        let headers = [("idempotency-key", "k")];
        let reply = world
            .send("POST", "/v1/jobs:batch", &headers, Some(body.as_bytes()))
            .await;
        assert_eq!(
            (reply.problem(), reply.field().as_str()),
            ((400, "header_unexpected".into()), "Idempotency-Key")
        );
        let list = world.get("/v1/jobs").await.json();
        assert_eq!(list["items"], json!([]), "{list}");
    });
}

#[test]
fn a_wait_ends_when_the_job_does_or_the_time_is_up() {
    run(async {
        let world = World::new().await;
        let id = world.make(&handler("noop", &json!({ "delay": "1h" }))).await;
        let waiting = world.get(&format!("/v1/jobs/{id}/wait?timeout=0")).await.json();
        assert_eq!(waiting["state"], "waiting");
        assert!(waiting["next_attempt_at"].is_string(), "{waiting}");
        let wait = async { world.wait(&id).await };
        let cancel = async { world.send("POST", &format!("/v1/jobs/{id}/cancel"), &[], None).await };
        let (job, cancelled) = tokio::join!(wait, cancel);
        assert_eq!(
            (job["state"].as_str(), cancelled.json()["result"].as_str()),
            (Some("cancelled"), Some("cancelled"))
        );
        let id = world.make(NOOP).await;
        let reply = world
            .send(
                "GET",
                &format!("/v1/jobs/{id}"),
                &[("prefer", "respond-async, wait=999")],
                None,
            )
            .await;
        assert_eq!(reply.headers["preference-applied"], "wait=60");
        assert_eq!(reply.json()["state"], "succeeded");
    });
}

#[test]
fn a_cancel_says_honestly_how_far_it_went() {
    run(async {
        let world = World::new().await;
        let cancel = async |id: &str| {
            world
                .send("POST", &format!("/v1/jobs/{id}/cancel"), &[], None)
                .await
                .json()
        };
        let done = world.make(NOOP).await;
        world.wait(&done).await;
        let answer = cancel(&done).await;
        assert_eq!(
            (answer["result"].as_str(), answer["state"].as_str()),
            (Some("finished"), Some("succeeded"))
        );
        let running = world.make(&handler("hang", &json!({}))).await;
        while world.get(&format!("/v1/jobs/{running}")).await.json()["state"] != "running" {}
        let shown = world.get(&format!("/v1/jobs/{running}")).await.json();
        assert_eq!(shown["current"]["attempt"], 1, "{shown}");
        let answer = cancel(&running).await;
        assert_eq!(
            (answer["result"].as_str(), answer["attempt"].as_u64()),
            (Some("running"), Some(1))
        );
        let shown = world.get(&format!("/v1/jobs/{running}")).await.json();
        assert!(shown["cancel_requested_at"].is_string(), "{shown}");
        let ended = world.wait(&running).await;
        assert_eq!(ended["state"], "cancelled", "{ended}");
        let attempts = world.get(&format!("/v1/jobs/{running}/attempts")).await.json();
        assert_eq!(attempts["items"][0]["result"], "cancelled", "{attempts}");
        let answer = cancel(&running).await;
        assert_eq!(
            (&answer["result"], &answer["state"]),
            (&json!("finished"), &json!("cancelled"))
        );
    });
}

#[test]
fn a_dead_job_is_listed_and_sent_back() {
    run(async {
        let world = World::new().await;
        let retry = json!({ "retry": { "attempts": 2, "backoff": "1ms", "cap": "1ms" }, "queue": "bad" });
        let id = world.make(&handler("fail", &retry)).await;
        let job = world.wait(&id).await;
        assert_eq!(
            (job["state"].as_str(), job["attempt_count"].as_u64()),
            (Some("dead"), Some(2)),
            "{job}"
        );
        assert!(
            job["last_error"].as_str().unwrap().contains("it does not work"),
            "{job}"
        );
        let dead = world.get("/v1/dead?queue=bad").await.json();
        assert_eq!(dead["items"][0]["id"], id.as_str());
        assert_eq!(world.get("/v1/dead?queue=good").await.json()["items"], json!([]));
        let reply = world.send("POST", &format!("/v1/jobs/{id}/retry"), &[], None).await;
        assert_eq!(reply.status, 200, "{:?}", reply.body);
        assert_eq!(world.wait(&id).await["state"], "dead");
        let good = world.make(NOOP).await;
        world.wait(&good).await;
        let reply = world.send("POST", &format!("/v1/jobs/{good}/retry"), &[], None).await;
        assert_eq!(reply.problem().0, 409);
    });
}

#[test]
fn an_uncertain_job_is_listed_and_settled_by_a_person() {
    run(async {
        let world = World::new().await;
        for (verdict, state) in [("succeeded", "succeeded"), ("dead", "dead")] {
            let id = world
                .make(&handler("fail", &json!({ "delivery": "at-most-once" })))
                .await;
            let job = world.wait(&id).await;
            assert_eq!(job["state"], "uncertain", "{job}");
            let list = world.get("/v1/uncertain").await.json();
            assert_eq!(list["items"][0]["id"], id.as_str());
            let path = format!("/v1/jobs/{id}/settle");
            assert_eq!(
                world.post(&path, r#"{"verdict":"maybe"}"#).await.problem(),
                (400, "field_word".into())
            );
            let settled = world.post(&path, &json!({ "verdict": verdict }).to_string()).await;
            assert_eq!(
                (settled.status, settled.json()["state"].as_str()),
                (200, Some(state)),
                "{:?}",
                settled.body
            );
            assert_eq!(world.post(&path, r#"{"verdict":"dead"}"#).await.problem().0, 409);
        }
    });
}
