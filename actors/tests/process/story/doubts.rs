//! Chapters about jobs that do not go straight: cancelled, uncertain, dead.

use super::{World, results};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

fn cancel(world: &mut World, id: &str) -> Value {
    world.api.act(&format!("/v1/jobs/{id}/cancel")).expect(200)
}

pub fn cancels_are_honest(world: &mut World) {
    let later = world.create(&json!({"target": {"type": "handler", "name": "noop"}, "delay": "1h"}));
    assert_eq!(cancel(world, &later)["result"], "cancelled");
    assert_eq!(world.job(&later)["state"], "cancelled");

    let running = world.create(&world.calls("/silent"));
    world.until_state(&running, "running");
    let answer = cancel(world, &running);
    assert_eq!(
        (&answer["result"], &answer["attempt"]),
        (&json!("running"), &json!(1)),
        "{answer}"
    );
    let ended = world.wait(&running);
    assert_eq!(ended["state"], "cancelled", "{ended}");
    assert_eq!(ended["attempt_count"], 1, "no attempt after a cancel: {ended}");

    let done = world.run(&world.calls("/ok"));
    let answer = cancel(world, done["id"].as_str().unwrap());
    assert_eq!(
        (&answer["result"], &answer["state"]),
        (&json!("finished"), &json!("succeeded"))
    );
}

fn settle(world: &mut World, id: &str, verdict: &str) -> Value {
    let path = format!("/v1/jobs/{id}/settle");
    world.api.post(&path, &json!({"verdict": verdict})).expect(200)
}

pub fn at_most_once_stops_in_doubt_until_a_person_settles_it(world: &mut World) {
    let mut body = world.calls("/hangs-up");
    body["delivery"] = json!("at-most-once");
    let jobs: Vec<String> = (0..3).map(|_| world.create(&body)).collect();
    for id in &jobs {
        let job = world.wait(id);
        assert_eq!(job["state"], "uncertain", "{job}");
    }
    let listed = world.api.get("/v1/uncertain").expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 3);
    assert_eq!(world.arrived("/hangs-up").len(), 3, "none was tried again by itself");
    assert_eq!(settle(world, &jobs[0], "succeeded")["state"], "succeeded");
    assert_eq!(settle(world, &jobs[1], "dead")["state"], "dead");
    settle(world, &jobs[2], "retry");
    let job = world.wait(&jobs[2]);
    assert_eq!(job["state"], "succeeded", "{job}");
    assert_eq!(world.arrived("/hangs-up").len(), 4);
    let again = world
        .api
        .post(&format!("/v1/jobs/{}/settle", jobs[0]), &json!({"verdict": "retry"}));
    assert_eq!(again.status, 409, "{}", again.body);

    let mut proven = world.calls("/busy");
    proven["delivery"] = json!("at-most-once");
    let job = world.run(&proven);
    assert_eq!(job["state"], "succeeded", "429 proves that nothing happened: {job}");

    let target = json!({"type": "command", "argv": ["kill -9 $PPID; sleep 60"], "shell": true});
    let job = world.run(&json!({"target": target, "delivery": "at-most-once"}));
    assert_eq!(
        job["state"], "uncertain",
        "it had begun when its supervisor was lost: {job}"
    );
    let attempts = world.attempts(&job);
    let error = attempts[0]["error"].as_str().unwrap();
    assert!(error.starts_with("command_supervisor_lost: "), "{error}");
    settle(world, job["id"].as_str().unwrap(), "dead");
}

pub fn what_died_is_sent_back_one_by_one(world: &mut World) {
    let dead = world.run(&world.calls("/mended"));
    assert_eq!(
        (&dead["state"], &dead["attempt_count"]),
        (&json!("dead"), &json!(3)),
        "{dead}"
    );
    let id = dead["id"].as_str().unwrap().to_owned();
    let listed = world.api.get("/v1/dead?limit=1000").expect(200);
    let found = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .any(|job| job["id"] == dead["id"]);
    assert!(found, "{listed}");
    world.mended.store(true, Ordering::SeqCst);
    world.api.act(&format!("/v1/jobs/{id}/retry")).expect(200);
    let job = world.wait(&id);
    assert_eq!(job["state"], "succeeded", "{job}");
    assert_eq!(
        results(&world.attempts(&job)),
        ["failed", "failed", "failed", "succeeded"],
        "its history is kept"
    );
    assert_eq!(world.api.act(&format!("/v1/jobs/{id}/retry")).status, 409);
}
