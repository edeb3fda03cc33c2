//! Chapters about single jobs: what each kind of target does, keys, batches, waiting.

use super::{World, results};
use crate::pace::took;
use serde_json::{Value, json};
use std::time::Duration;

pub fn http_calls_are_judged_and_tried_again(world: &mut World) {
    let mut body = world.calls("/ok");
    body["payload"] = json!({"n": 1});
    let job = world.run(&body);
    assert_eq!(
        (&job["state"], &job["attempt_count"]),
        (&json!("succeeded"), &json!(1)),
        "{job}"
    );
    assert_eq!(world.arrived("/ok")[0].body, json!({"n": 1}));

    let gone = world.run(&world.calls("/gone"));
    assert_eq!(
        (&gone["state"], &gone["attempt_count"]),
        (&json!("dead"), &json!(1)),
        "410 stops: {gone}"
    );

    let busy = world.run(&world.calls("/busy"));
    assert_eq!(
        (&busy["state"], &busy["attempt_count"]),
        (&json!("succeeded"), &json!(2)),
        "{busy}"
    );
    let tries = world.attempts(&busy);
    let at = |n: usize, field: &str| chrono::DateTime::parse_from_rfc3339(tries[n][field].as_str().unwrap()).unwrap();
    let waited = at(1, "granted_at") - at(0, "ended_at");
    assert!(waited.num_milliseconds() >= 1_000, "Retry-After: 1, waited {waited}");

    let flaky = world.run(&world.calls("/flaky"));
    assert_eq!(results(&world.attempts(&flaky)), ["failed", "failed", "succeeded"]);
    let calls = world.arrived("/flaky");
    assert_eq!(calls.iter().map(|call| call.attempt).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(
        calls.iter().all(|call| call.key == calls[0].key),
        "one key for all attempts"
    );
    assert!(
        calls.windows(2).all(|pair| pair[0].token < pair[1].token),
        "tokens grow"
    );

    let mut own = world.calls("/");
    own["target"]["url"] = json!(format!("http://{}/livez", world.server.address()));
    let own = world.api.post("/v1/jobs", &own);
    assert_eq!(
        (own.status, own.code()),
        (400, "url_port_not_allowed"),
        "loopback is allowed here, its own port is not"
    );

    let mut silent = world.calls("/silent");
    silent["timeout"] = json!("150ms");
    silent["retry"]["attempts"] = json!(2);
    let silent = world.run(&silent);
    assert_eq!(
        (
            &silent["state"],
            silent["last_error"].as_str().unwrap().split(':').next()
        ),
        (&json!("dead"), Some("timed_out"))
    );
    assert_eq!(results(&world.attempts(&silent)), ["timed_out", "timed_out"]);
}

pub fn commands_tell_what_they_wrote(world: &mut World) {
    let words = r#"echo "attempt $FENCEPOST_ATTEMPT of $GREETING"; cat; exit 0"#;
    let job = world.run(&json!({
        "target": {"type": "command", "argv": [words], "shell": true, "env": {"GREETING": "all"}},
        "payload": {"fed": "on stdin"},
    }));
    assert_eq!(job["state"], "succeeded", "{job}");
    let logs = world
        .api
        .get(&format!("/v1/jobs/{}/logs", job["id"].as_str().unwrap()))
        .expect(200);
    let output = logs["items"][0]["output"].as_str().unwrap().to_owned();
    assert!(
        output.contains("attempt 1 of all") && output.contains("on stdin"),
        "{output}"
    );

    let job = world.run(&json!({
        "target": {"type": "command", "argv": ["/bin/sh", "-c", "exit 3"]}, "retry": {"attempts": 2, "backoff": "1ms", "cap": "1ms"},
    }));
    assert_eq!(
        (&job["state"], &job["attempt_count"]),
        (&json!("dead"), &json!(2)),
        "{job}"
    );
    assert!(job["last_error"].as_str().unwrap().contains('3'), "{job}");
}

pub fn handlers_run_in_the_server(world: &mut World) {
    let job = world.run(&json!({"target": {"type": "handler", "name": "noop"}}));
    assert_eq!(job["state"], "succeeded", "{job}");
    let job = world.run(&json!({"target": {"type": "handler", "name": "nobody"}, "retry": {"attempts": 1}}));
    assert_eq!(job["state"], "dead", "{job}");
}

pub fn a_key_makes_one_job(world: &mut World) {
    let body = world.calls("/keyed");
    let keyed = [("idempotency-key", "order-17")];
    let first = world.api.must("POST", "/v1/jobs", &keyed, Some(&body)).expect(201);
    let again = world.api.must("POST", "/v1/jobs", &keyed, Some(&body)).expect(200);
    assert_eq!((&again["id"], &again["replayed"]), (&first["id"], &json!(true)));
    let mut other = body.clone();
    other["priority"] = json!(0);
    let refused = world.api.must("POST", "/v1/jobs", &keyed, Some(&other));
    assert_eq!(refused.status, 422, "{}", refused.body);
    assert!(!refused.code().is_empty());
    world.wait(first["id"].as_str().unwrap());
    assert_eq!(world.arrived("/keyed").len(), 1);
}

pub fn a_batch_answers_for_each_of_its_thousand(world: &mut World) {
    let job = |n: usize| match n % 4 {
        0 => {
            json!({"target": {"type": "handler", "name": "noop"}, "tags": ["batch"], "idempotency_key": format!("b-{n}")})
        }
        1 => json!({"target": {"type": "handler", "name": "noop"}, "tags": ["batch"]}),
        2 => json!({"target": {"type": "handler", "name": "noop"}, "no_such_field": 1}),
        _ => json!({"target": {"type": "http", "url": "ftp://example.org/"}}),
    };
    let body = json!({"jobs": (0..1_000).map(job).collect::<Vec<Value>>()});
    let answer = world.api.post("/v1/jobs:batch", &body).expect(200);
    let counts = ["created", "replayed", "refused"].map(|field| answer[field].as_u64().unwrap());
    assert_eq!(counts, [500, 0, 500]);
    let items = answer["items"].as_array().unwrap();
    assert_eq!(items.len(), 1_000);
    for (n, item) in items.iter().enumerate() {
        if n % 4 < 2 {
            assert!(item["id"].is_string(), "{n}: {item}");
        } else {
            let field = item["problem"]["field"].as_str().unwrap();
            assert!(field.starts_with(&format!("jobs[{n}].")), "{n}: {item}");
        }
    }
    let again = world.api.post("/v1/jobs:batch", &body).expect(200);
    let counts = ["created", "replayed", "refused"].map(|field| again[field].as_u64().unwrap());
    assert_eq!(counts, [250, 250, 500], "those with a key are the same jobs");
    crate::pace::until_true("the end of the batch", || {
        let path = "/v1/jobs?tag=batch&state=succeeded&limit=1000";
        world.api.get(path).expect(200)["items"].as_array().unwrap().len() == 750
    });
    let too_many = json!({"jobs": vec![job(0); 1_001]});
    assert_eq!(world.api.post("/v1/jobs:batch", &too_many).status, 400);
}

pub fn waiting_is_a_long_poll(world: &mut World) {
    let later = world.create(&json!({"target": {"type": "handler", "name": "noop"}, "delay": "1h"}));
    let (job, spent) = took(|| world.api.get(&format!("/v1/jobs/{later}/wait?timeout=1")).expect(200));
    assert_eq!(job["state"], "waiting", "{job}");
    assert!(spent >= Duration::from_secs(1), "it was held for {spent:?}");
    let soon = world.create(&json!({"target": {"type": "handler", "name": "noop"}, "delay": "300ms"}));
    assert_eq!(world.wait(&soon)["state"], "succeeded");
    let nobody = world.api.get("/v1/jobs/job_00000000000000000000000000000000");
    assert_eq!((nobody.status, nobody.code()), (404, "job_not_found"));
}
