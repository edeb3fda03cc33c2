//! Workers over HTTP: claims, heartbeats, reports, and what becomes of jobs whose workers fall silent.

use crate::{Reply, TOKEN, World, run};
use fencepost::api::server::HttpLimits;
use fencepost::gateway::Gateway as _;
use fencepost_core::time::Span;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

/// Short enough for a worker to fall silent within a test.
const LEASE: Span = Span::from_millis(1_200);

async fn world() -> World {
    World::with(HttpLimits::default(), |config| {
        config.lease = LEASE;
        config.heartbeat = Span::from_millis(200);
    })
    .await
}

impl World {
    async fn remote(&self, more: &Value) -> String {
        let mut body = json!({ "target": { "type": "remote", "name": "resize" }, "queue": "images" });
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        self.make(&body.to_string()).await
    }

    async fn claim(&self, worker: &str, claim: &str, more: &Value) -> Reply {
        let mut body = json!({ "worker": worker, "claim": claim, "queues": ["images"] });
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        self.post("/v1/worker/claim", &body.to_string()).await
    }

    async fn claim_one(&self, worker: &str, claim: &str) -> Value {
        let reply = self.claim(worker, claim, &json!({})).await.json();
        assert_eq!(reply["attempts"].as_array().unwrap().len(), 1, "{reply}");
        reply["attempts"][0].clone()
    }

    async fn beat(&self, worker: &str, attempt: &Value) -> Value {
        let body = json!({ "worker": worker, "attempts": [{ "grant": attempt["grant"], "progress": "half" }] });
        let reply = self.post("/v1/worker/heartbeat", &body.to_string()).await.json();
        reply["attempts"][0].clone()
    }

    async fn finish(&self, worker: &str, attempt: &Value, more: &Value) -> Reply {
        let mut body = json!({ "worker": worker, "grant": attempt["grant"], "result": "succeeded" });
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        self.post("/v1/worker/finish", &body.to_string()).await
    }

    async fn job(&self, id: &str) -> Value {
        self.get(&format!("/v1/jobs/{id}")).await.json()
    }
}

#[test]
fn a_remote_job_is_claimed_kept_alive_and_recorded() {
    run(async {
        let world = world().await;
        let id = world.remote(&json!({ "payload": { "width": 90 } })).await;
        let attempt = world.claim_one("w1", "c1").await;
        assert_eq!(
            (&attempt["job"], &attempt["name"]),
            (&json!(id), &json!("resize")),
            "{attempt}"
        );
        assert_eq!(
            (&attempt["payload"], &attempt["queue"]),
            (&json!({ "width": 90 }), &json!("images"))
        );
        assert_eq!(
            (&attempt["attempt"], &attempt["idempotency_key"]),
            (&json!(1), &json!(id))
        );
        let lease = attempt["lease_ms"].as_u64().unwrap();
        assert!(lease > 0 && lease <= LEASE.as_millis(), "{attempt}");
        let end = world.node.gateway.now() + LEASE + LEASE;
        while world.node.gateway.now() < end {
            assert_eq!(world.beat("w1", &attempt).await["state"], "held");
        }
        let listed = world.get("/v1/jobs?state=running").await.json()["items"][0].clone();
        for job in [world.job(&id).await, listed] {
            assert_eq!(job["current"]["progress"], "half", "{job}");
        }
        let reply = world.finish("w1", &attempt, &json!({ "output": "done" })).await;
        assert_eq!((reply.status, &reply.json()["state"]), (200, &json!("recorded")));
        let job = world.job(&id).await;
        assert!(job["current"].is_null(), "{job}");
        assert_eq!(
            (&job["state"], &job["attempt_count"]),
            (&json!("succeeded"), &json!(1)),
            "{job}"
        );
        let logs = world.get(&format!("/v1/jobs/{id}/logs")).await.json();
        assert_eq!(logs["items"][0]["output"], "done");
        // The same report again, and a contradicting one: the first stands.
        for more in [json!({}), json!({ "result": "failed" })] {
            assert_eq!(world.finish("w1", &attempt, &more).await.status, 200);
        }
        assert_eq!(world.job(&id).await["state"], "succeeded");
        assert_eq!(world.beat("w1", &attempt).await["state"], "lost");
    });
}

#[test]
fn f13_what_a_worker_is_told_ends_before_its_lease_and_its_time() {
    run(async {
        let lease = Span::from_secs(30);
        let world = World::with(HttpLimits::default(), |config| config.lease = lease).await;
        for (timeout, bound) in [("60s", lease.as_millis()), ("9s", 9_000)] {
            world.remote(&json!({ "timeout": timeout })).await;
            let attempt = world.claim_one("w1", timeout).await;
            // A tenth, a second at most, is left for a clock that is slower than the server's.
            let told = attempt["lease_ms"].as_u64().unwrap();
            assert!(told > 0 && told <= bound - (bound / 10).min(1_000), "{attempt}");
            assert_eq!(world.finish("w1", &attempt, &json!({})).await.status, 200);
        }
    });
}

#[test]
fn f14_a_claim_sent_again_gets_the_same_attempts_with_the_time_left() {
    run(async {
        let world = world().await;
        let id = world.remote(&json!({})).await;
        let first = world.claim_one("w1", "c1").await;
        let again = world.claim_one("w1", "c1").await;
        assert_eq!(first["grant"], again["grant"]);
        assert!(again["lease_ms"].as_u64() <= first["lease_ms"].as_u64());
        // Another number is another claim, and another worker's claim of that number too.
        for (worker, claim) in [("w1", "c2"), ("w2", "c1")] {
            let reply = world.claim(worker, claim, &json!({ "wait": 0 })).await.json();
            assert_eq!(reply["attempts"], json!([]));
        }
        assert_eq!(world.finish("w1", &again, &json!({})).await.status, 200);
        assert_eq!(world.job(&id).await["attempt_count"], 1);
    });
}

#[test]
fn a_claim_waits_for_a_job_and_takes_several() {
    run(async {
        let world = world().await;
        let three = json!({ "count": 3, "wait": 20 });
        let claim = world.claim("w1", "c1", &three);
        let make = async {
            for _ in 0..5 {
                world.remote(&json!({})).await;
            }
        };
        let (claimed, ()) = futures_util::future::join(claim, make).await;
        let mut ids: Vec<Value> = Vec::new();
        let count = claimed.json()["attempts"].as_array().unwrap().len();
        assert!((1..=3).contains(&count), "{count}");
        for attempt in claimed.json()["attempts"].as_array().unwrap() {
            assert_eq!(world.finish("w1", attempt, &json!({})).await.status, 200);
            ids.push(attempt["job"].clone());
        }
        let mut next = 2;
        while ids.len() < 5 {
            let more = world
                .claim("w1", &format!("c{next}"), &json!({ "count": 100 }))
                .await
                .json();
            for attempt in more["attempts"].as_array().unwrap() {
                assert!(!ids.contains(&attempt["job"]), "no attempt is handed to two claims");
                ids.push(attempt["job"].clone());
                assert_eq!(attempt["attempt"], 1);
            }
            next += 1;
        }
    });
}

#[test]
fn remote_jobs_stand_apart_from_what_nodes_run() {
    run(async {
        let world = world().await;
        let remote = world.remote(&json!({})).await;
        let own = world
            .make(r#"{"target":{"type":"handler","name":"noop"},"queue":"images"}"#)
            .await;
        assert_eq!(world.wait(&own).await["state"], "succeeded");
        let job = world.job(&remote).await;
        assert_eq!(
            (&job["state"], &job["attempt_count"]),
            (&json!("ready"), &json!(0)),
            "{job}"
        );
        // Another queue's worker does not get it either.
        let reply = world
            .claim("w1", "c1", &json!({ "queues": ["default"], "wait": 0 }))
            .await
            .json();
        assert_eq!(reply["attempts"], json!([]));
        assert_eq!(world.claim_one("w1", "c2").await["job"], json!(remote));
    });
}

#[test]
fn f14_what_was_not_begun_goes_back_and_costs_no_attempt() {
    run(async {
        let world = world().await;
        let id = world.remote(&json!({ "retry": { "attempts": 1 } })).await;
        let first = world.claim_one("w1", "c1").await;
        let body = json!({ "worker": "w1", "grant": first["grant"] }).to_string();
        let reply = world.post("/v1/worker/release", &body).await;
        assert_eq!((reply.status, &reply.json()["state"]), (200, &json!("released")));
        assert_eq!(world.beat("w1", &first).await["state"], "lost");
        let (status, code) = world.finish("w1", &first, &json!({})).await.problem();
        assert_eq!((status, code.as_str()), (409, "attempt_lost"));
        let second = world.claim_one("w2", "c1").await;
        assert!(second["token"].as_str() > first["token"].as_str());
        assert_eq!(world.finish("w2", &second, &json!({})).await.status, 200);
        let job = world.job(&id).await;
        assert_eq!(
            (&job["state"], &job["attempt_count"]),
            (&json!("succeeded"), &json!(1)),
            "{job}"
        );
    });
}

#[test]
fn f14_a_claim_whose_caller_is_gone_gives_back_what_it_got() {
    run(async {
        let world = world().await;
        let body = json!({ "worker": "w1", "claim": "c1", "queues": ["images"], "wait": 60 }).to_string();
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        let head = format!(
            "POST /v1/worker/claim HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            world.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        while world.node.gateway.desk().unwrap().open_claims() == 0 {
            world.get("/livez").await;
        }
        drop(stream);
        while world.node.gateway.desk().unwrap().open_claims() > 0 {
            world.get("/livez").await;
        }
        let id = world.remote(&json!({ "retry": { "attempts": 1 } })).await;
        let attempt = world.claim_one("w2", "c1").await;
        assert_eq!((&attempt["job"], &attempt["attempt"]), (&json!(id), &json!(1)));
    });
}

#[test]
fn a_silent_worker_loses_its_attempt_and_its_late_report_changes_nothing() {
    run(async {
        let world = world().await;
        let retry = json!({ "attempts": 5, "backoff": "1ms" });
        let id = world.remote(&json!({ "retry": retry })).await;
        let first = world.claim_one("w1", "c1").await;
        let second = world.claim_one("w2", "c1").await;
        assert_eq!(
            (&second["job"], &second["attempt"]),
            (&json!(id), &json!(2)),
            "{second}"
        );
        assert_eq!(second["idempotency_key"], first["idempotency_key"]);
        assert!(second["token"].as_str() > first["token"].as_str());
        assert_eq!(world.beat("w1", &first).await["state"], "lost");
        // The first of these reports stands, as for a worker of a node: evidence, no more.
        for more in [json!({}), json!({ "result": "failed" })] {
            let (status, code) = world.finish("w1", &first, &more).await.problem();
            assert_eq!((status, code.as_str()), (409, "attempt_lost"));
        }
        let attempts = world.get(&format!("/v1/jobs/{id}/attempts")).await.json();
        let error = attempts["items"][0]["error"].as_str().unwrap();
        assert!(error.ends_with("it came back later and reported success"), "{error}");
        assert_eq!(world.finish("w2", &second, &json!({})).await.status, 200);
        assert_eq!(world.job(&id).await["state"], "succeeded");
    });
}

#[test]
fn f15_an_at_most_once_job_of_a_silent_worker_is_uncertain() {
    run(async {
        let world = world().await;
        let id = world.remote(&json!({ "delivery": "at-most-once" })).await;
        world.claim_one("w1", "c1").await;
        let job = world.wait(&id).await;
        assert_eq!(job["state"], "uncertain", "{job}");
    });
}

#[test]
fn f18_a_late_report_settles_an_uncertain_job() {
    run(async {
        let world = world().await;
        let retried = json!({ "result": "failed", "no_effect": true });
        let given_up = json!({ "result": "failed", "no_effect": true, "permanent": true });
        let ends = [(json!({}), "succeeded"), (given_up, "dead")];
        for (at, (more, state)) in ends.iter().enumerate() {
            let id = world.remote(&json!({ "delivery": "at-most-once" })).await;
            let attempt = world.claim_one("w1", &format!("c{at}")).await;
            assert_eq!(world.wait(&id).await["state"], "uncertain");
            // Once it is recorded it is known: said again, in other words too, it is answered alike.
            for more in [more, more, &json!({})] {
                let reply = world.finish("w1", &attempt, more).await;
                assert_eq!((reply.status, &reply.json()["state"]), (200, &json!("recorded")));
                assert_eq!(&world.job(&id).await["state"], state);
            }
        }
        let id = world.remote(&json!({ "delivery": "at-most-once" })).await;
        let attempt = world.claim_one("w1", "again").await;
        assert_eq!(world.wait(&id).await["state"], "uncertain");
        assert_eq!(world.finish("w1", &attempt, &retried).await.status, 200);
        let second = world.claim_one("w2", "again").await;
        assert_eq!((&second["job"], &second["attempt"]), (&json!(id), &json!(2)));
    });
}

#[test]
fn f18_a_late_report_that_settles_nothing_is_evidence() {
    run(async {
        let world = world().await;
        let id = world.remote(&json!({ "delivery": "at-most-once" })).await;
        let attempt = world.claim_one("w1", "c1").await;
        assert_eq!(world.wait(&id).await["state"], "uncertain");
        for _ in 0..2 {
            let reply = world.finish("w1", &attempt, &json!({ "result": "failed" })).await;
            assert_eq!(reply.problem(), (409, "attempt_lost".to_owned()));
        }
        let attempts = world.get(&format!("/v1/jobs/{id}/attempts")).await.json();
        let error = attempts["items"][0]["error"].as_str().unwrap();
        assert!(
            error.ends_with("; it came back later and reported a failure"),
            "{error}"
        );
        assert_eq!(world.job(&id).await["state"], "uncertain");
    });
}

#[test]
fn failures_are_reported_as_they_are() {
    run(async {
        let world = world().await;
        let retry = json!({ "attempts": 2, "backoff": "1ms" });
        let id = world.remote(&json!({ "retry": retry })).await;
        let first = world.claim_one("w1", "c1").await;
        let failed = json!({ "result": "failed", "error": "no such image", "output": "trace" });
        assert_eq!(world.finish("w1", &first, &failed).await.status, 200);
        let second = world.claim_one("w1", "c2").await;
        assert_eq!(second["attempt"], 2);
        assert_eq!(world.finish("w1", &second, &failed).await.status, 200);
        let job = world.job(&id).await;
        assert_eq!(job["state"], "dead", "{job}");
        let attempts = world.get(&format!("/v1/jobs/{id}/attempts")).await.json();
        assert_eq!(
            attempts["items"][0]["error"], "worker_error: no such image",
            "{attempts}"
        );
        let id = world.remote(&json!({})).await;
        let only = world.claim_one("w1", "c3").await;
        let permanent = json!({ "result": "failed", "permanent": true });
        assert_eq!(world.finish("w1", &only, &permanent).await.status, 200);
        assert_eq!(world.job(&id).await["state"], "dead");
    });
}

#[test]
fn a_cancelled_job_is_told_to_its_worker() {
    run(async {
        let world = world().await;
        let id = world.remote(&json!({})).await;
        let attempt = world.claim_one("w1", "c1").await;
        let reply = world.post(&format!("/v1/jobs/{id}/cancel"), "{}").await.json();
        assert_eq!(reply["result"], "running");
        while world.beat("w1", &attempt).await["state"] != "cancel" {}
        let cancelled = json!({ "result": "cancelled" });
        assert_eq!(world.finish("w1", &attempt, &cancelled).await.status, 200);
        assert_eq!(world.job(&id).await["state"], "cancelled");
    });
}

#[test]
fn a_grant_counts_only_from_its_worker() {
    run(async {
        let world = world().await;
        world.remote(&json!({})).await;
        let attempt = world.claim_one("w1", "c1").await;
        let mut changed = attempt["grant"].as_str().unwrap().to_owned();
        let last = changed.pop().unwrap();
        changed.push(if last == '0' { '1' } else { '0' });
        for (worker, grant) in [
            ("w2", attempt["grant"].clone()),
            ("w1", json!(changed)),
            ("w1", json!("fpg1_00")),
        ] {
            let forged = json!({ "grant": grant });
            let (status, code) = world.finish(worker, &forged, &json!({})).await.problem();
            assert_eq!((status, code.as_str()), (403, "grant_invalid"), "{worker}");
            let body = json!({ "worker": worker, "attempts": [{ "grant": grant }] }).to_string();
            let reply = world.post("/v1/worker/heartbeat", &body).await.json();
            assert_eq!(
                reply["attempts"][0]["state"], "lost",
                "the others of a heartbeat still count"
            );
        }
        assert_eq!(world.finish("w1", &attempt, &json!({})).await.status, 200);
    });
}

/// Path, body, and the code and field of the problem.
fn wrong() -> Vec<(&'static str, Value, &'static str, &'static str)> {
    vec![
        ("claim", json!({}), "field_missing", "worker"),
        ("claim", json!({ "worker": "a/b" }), "name_invalid", "worker"),
        ("claim", json!({ "worker": "w" }), "field_missing", "claim"),
        (
            "claim",
            json!({ "worker": "w", "claim": "x".repeat(65) }),
            "field_length",
            "claim",
        ),
        (
            "claim",
            json!({ "worker": "w", "claim": "c" }),
            "field_missing",
            "queues",
        ),
        (
            "claim",
            json!({ "worker": "w", "claim": "c", "queues": ["~images"] }),
            "name_invalid",
            "queues[0]",
        ),
        (
            "claim",
            json!({ "worker": "w", "claim": "c", "queues": ["a"], "count": 101 }),
            "field_range",
            "count",
        ),
        (
            "claim",
            json!({ "worker": "w", "claim": "c", "queues": ["a"], "wait": 61 }),
            "field_range",
            "wait",
        ),
        (
            "claim",
            json!({ "worker": "w", "claim": "c", "queues": ["a"], "more": 1 }),
            "field_unknown",
            "more",
        ),
        ("heartbeat", json!({ "worker": "w" }), "field_missing", "attempts"),
        (
            "heartbeat",
            json!({ "worker": "w", "attempts": [{}] }),
            "field_missing",
            "attempts[0].grant",
        ),
        ("finish", json!({ "worker": "w" }), "field_missing", "grant"),
        (
            "finish",
            json!({ "worker": "w", "grant": "g" }),
            "field_missing",
            "result",
        ),
        (
            "finish",
            json!({ "worker": "w", "grant": "g", "result": "ok" }),
            "field_word",
            "result",
        ),
        (
            "release",
            json!({ "worker": "w", "grant": "g".repeat(9_999) }),
            "field_length",
            "grant",
        ),
    ]
}

#[test]
fn wrong_requests_name_their_field() {
    run(async {
        let world = world().await;
        for (path, body, code, field) in wrong() {
            let reply = world.post(&format!("/v1/worker/{path}"), &body.to_string()).await;
            assert_eq!(reply.problem().1, code, "{body}");
            assert_eq!(reply.field(), field, "{body}");
        }
        let nameless = json!({ "target": { "type": "remote" } }).to_string();
        assert_eq!(world.post("/v1/jobs", &nameless).await.field(), "target.name");
    });
}

#[test]
fn a_drain_waits_for_attempts_and_refuses_claims() {
    run(async {
        let world = world().await;
        let id = world.remote(&json!({})).await;
        let attempt = world.claim_one("w1", "c1").await;
        let drain = world.node.drain();
        let work = async {
            while world.claim("w2", "c1", &json!({ "wait": 0 })).await.status != 503 {}
            assert_eq!(world.beat("w1", &attempt).await["state"], "held");
            assert_eq!(world.finish("w1", &attempt, &json!({})).await.status, 200);
            assert_eq!(world.job(&id).await["state"], "succeeded");
        };
        futures_util::future::join(drain, work).await;
    });
}
