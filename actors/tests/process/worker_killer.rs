//! A job that kills its worker each time (BEH-R02): it dies at its cap, and others are hardly charged for it.
//!
//! Owns: the command that kills the server it runs under. Next: `kill/` for kills from outside.

use crate::pace;
use crate::server::{Place, Server};
use crate::sink::{Say, Sink};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Kills the server by the id that the test wrote down when it started it; at once the first time, then when
/// the others are through.
pub fn killer(place: &Place) -> Value {
    killer_with(place, "1ms")
}

fn killer_with(place: &Place, grace: &str) -> Value {
    let (pid, go) = (place.path().join("pid"), place.path().join("go"));
    let wait = format!(
        "[ $FENCEPOST_ATTEMPT = 1 ] || until [ -e {} ]; do sleep 0.05; done",
        go.display()
    );
    let script = format!("{wait}; kill -KILL $(cat {})", pid.display());
    json!({
        "target": {"type": "command", "argv": [script], "shell": true, "grace": grace},
        "retry": {"attempts": 3, "backoff": "1ms", "cap": "1ms"},
    })
}

/// Starts it again whenever it was killed, until the job is finished; gives the server and the kills.
fn serve_until_finished(place: &mut Place, mut server: Server, id: &str) -> (Server, usize) {
    let mut kills = 0;
    let finished = |server: &mut Server| {
        let path = format!("/v1/jobs/{id}");
        let answer = server.api().call("GET", &path, &[], None).ok()?;
        Some(answer.body["ended_at"].is_string())
    };
    pace::until_true("the end of the killer", || {
        if server.has_ended() {
            kills += 1;
            assert!(kills <= 2, "it was started a fourth time");
            // Not `start`: it may be killed before anybody sees it ready.
            server = place.spawn();
        }
        finished(&mut server) == Some(true)
    });
    (server, kills)
}

fn attempts(server: &Server, id: &str) -> Vec<Value> {
    let list = server.api().get(&format!("/v1/jobs/{id}/attempts")).expect(200);
    list["items"].as_array().unwrap().clone()
}

/// It succeeds, and no more than one of its attempts was charged to the killer.
fn paid_once_at_most(server: &Server, id: &str) {
    let job = server.api().get(&format!("/v1/jobs/{id}/wait?timeout=30")).expect(200);
    assert_eq!(job["state"], "succeeded", "{job}");
    let lost = attempts(server, id)
        .iter()
        .filter(|a| a["result"] == "worker_lost")
        .count();
    assert!(lost <= 1, "{id} was charged {lost} times");
}

#[test]
fn beh_r02_innocents_that_run_again_beside_a_killer_are_charged_once() {
    innocents_are_charged_once("1ms", Duration::from_millis(150));
}

/// It comes back after them, when they are in flight again.
#[test]
fn beh_r02_innocents_are_charged_once_also_by_a_killer_with_a_grace() {
    innocents_are_charged_once("1s", Duration::from_secs(3));
}

/// `call` is long enough for the killer to strike while they are in flight, were they run beside it.
fn innocents_are_charged_once(grace: &str, call: Duration) {
    let sink = Sink::start(move |_| {
        pace::reach(pace::from_now(call));
        Say::Status(200, "")
    });
    let mut place = Place::new(&[]);
    let server = place.start();
    let mut api = server.api();
    let innocent = json!({
        "target": {"type": "http", "url": sink.url("/innocent")}, "retry": {"attempts": 3, "backoff": "1ms", "cap": "1ms"},
    });
    let bodies: Vec<Value> = (0..6).map(|_| innocent.clone()).collect();
    let made = api.post("/v1/jobs:batch", &json!({"jobs": bodies})).expect(200);
    let ids: Vec<String> = made["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["id"].as_str().unwrap().to_owned())
        .collect();
    std::fs::write(place.path().join("go"), "").unwrap();
    let killer = api.post("/v1/jobs", &killer_with(&place, grace)).expect(201);
    let id = killer["id"].as_str().unwrap().to_owned();
    let mut first = server;
    first.exit_code();
    let second = place.spawn();
    let (server, kills) = serve_until_finished(&mut place, second, &id);
    assert_eq!(kills, 2, "after the first");
    let dead = server.api().get(&format!("/v1/jobs/{id}")).expect(200);
    assert_eq!(dead["reason"], "worker lost", "{dead}");
    for id in &ids {
        paid_once_at_most(&server, id);
    }
}

#[test]
fn beh_r02_a_job_that_kills_its_worker_is_dead_after_three_and_others_pay_once() {
    let killed_once = Arc::new(AtomicBool::new(false));
    let seen = killed_once.clone();
    // Holds every call until the first kill; afterwards all succeed.
    let sink = Sink::start(move |_| {
        if seen.load(Ordering::SeqCst) {
            Say::Status(200, "")
        } else {
            Say::Silence
        }
    });
    let mut place = Place::new(&[]);
    let server = place.start();
    let mut api = server.api();
    let make = |api: &mut crate::api::Api, body: &Value| {
        let made = api.post("/v1/jobs", body).expect(201);
        made["id"].as_str().unwrap().to_owned()
    };
    let innocent = json!({
        "target": {"type": "http", "url": sink.url("/innocent")}, "retry": {"attempts": 5, "backoff": "1ms", "cap": "1ms"},
    });
    let innocents: Vec<String> = (0..20).map(|_| make(&mut api, &innocent)).collect();
    let later = json!({"target": {"type": "handler", "name": "noop"}, "delay": "1s"});
    let later = make(&mut api, &later);
    pace::until_true("all innocents running", || {
        innocents
            .iter()
            .all(|id| api.get(&format!("/v1/jobs/{id}")).expect(200)["state"] == "running")
    });
    let id = make(&mut api, &killer(&place));
    let mut first = server;
    first.exit_code();
    killed_once.store(true, Ordering::SeqCst);
    let mut second = place.start();
    for id in &innocents {
        let job = second.api().get(&format!("/v1/jobs/{id}/wait?timeout=30")).expect(200);
        assert_eq!(job["state"], "succeeded", "{job}");
    }
    std::fs::write(place.path().join("go"), "").unwrap();
    second.exit_code();
    let (server, kills) = serve_until_finished(&mut place, second, &id);
    assert_eq!(kills, 2, "after the first");
    let dead = server.api().get(&format!("/v1/jobs/{id}")).expect(200);
    assert_eq!(
        (&dead["state"], &dead["reason"]),
        (&json!("dead"), &json!("worker lost")),
        "{dead}"
    );
    let lost: Vec<_> = attempts(&server, &id).iter().map(|a| a["result"].clone()).collect();
    assert_eq!(lost, ["worker_lost"; 3]);
    let listed = server.api().get("/v1/dead").expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
    for id in innocents.iter().chain([&later]) {
        paid_once_at_most(&server, id);
    }
}
