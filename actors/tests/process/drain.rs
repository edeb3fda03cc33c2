//! Stopping on purpose under load: ready no more, nothing new begins, what runs ends or is handed back.
//!
//! Owns: SIGTERM, once and twice. Next: `../../src/process/signals.rs`.

use crate::api::{Api, NoAnswer};
use crate::pace::{self, until_true};
use crate::server::Place;
use crate::sink::{Say, Sink};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// A sink whose calls wait at a gate.
struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
    waiting: AtomicUsize,
}

impl Gate {
    fn new() -> Arc<Gate> {
        Arc::new(Gate {
            open: Mutex::new(false),
            changed: Condvar::new(),
            waiting: AtomicUsize::new(0),
        })
    }

    fn pass(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let shut = self.open.lock().unwrap();
        drop(self.changed.wait_while(shut, |open| !*open).unwrap());
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    fn set(&self, open: bool) {
        *self.open.lock().unwrap() = open;
        self.changed.notify_all();
    }
}

fn call(url: &str) -> Value {
    json!({"target": {"type": "http", "url": url}, "retry": {"attempts": 1}})
}

/// What `/readyz` says, while there is somebody to ask.
fn ready(api: &mut Api) -> Option<u16> {
    api.call("GET", "/readyz", &[], None).ok().map(|answer| answer.status)
}

#[test]
fn a_drain_under_load_finishes_what_runs_begins_nothing_and_loses_nothing() {
    let gate = Gate::new();
    let inside = gate.clone();
    let sink = Sink::start(move |_| {
        inside.pass();
        Say::Status(200, "")
    });
    let mut place = Place::new(&["--slots", "8"]);
    for round in 0..3 {
        gate.set(false);
        let mut server = place.start();
        let mut api = server.api();
        let made: Vec<Value> = (0..30)
            .map(|_| api.post("/v1/jobs", &call(&sink.url("/"))).expect(201))
            .collect();
        until_true("eight attempts in flight", || gate.waiting.load(Ordering::SeqCst) == 8);
        server.terminate();
        until_true("not ready", || ready(&mut api) == Some(503));
        let health = api.get("/readyz");
        assert_eq!(health.body["draining"], true, "{}", health.body);
        let refused = api.post("/v1/jobs", &call(&sink.url("/")));
        assert_eq!(refused.status, 503, "{}", refused.body);
        assert!(!server.has_ended(), "it waits for what runs");
        gate.set(true);
        assert_eq!(server.exit_code(), Some(0), "round {round}: {}", server.said());
        let mut next = place.start();
        for job in &made {
            let id = job["id"].as_str().unwrap();
            let job = next.api().get(&format!("/v1/jobs/{id}/wait?timeout=60")).expect(200);
            assert_eq!(
                (&job["state"], &job["attempt_count"]),
                (&json!("succeeded"), &json!(1)),
                "{job}"
            );
        }
        next.terminate();
        assert_eq!(next.exit_code(), Some(0));
    }
}

#[test]
fn nothing_is_granted_once_a_drain_began() {
    let (gate, begun) = (Gate::new(), Arc::new(AtomicUsize::new(0)));
    let (inside, count) = (gate.clone(), begun.clone());
    let sink = Sink::start(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        inside.pass();
        Say::Status(200, "")
    });
    let mut place = Place::new(&["--slots", "4"]);
    let mut server = place.start();
    let mut api = server.api();
    for _ in 0..40 {
        api.post("/v1/jobs", &call(&sink.url("/"))).expect(201);
    }
    until_true("four attempts in flight", || gate.waiting.load(Ordering::SeqCst) == 4);
    server.terminate();
    until_true("not ready", || ready(&mut api) == Some(503));
    gate.set(true);
    assert_eq!(server.exit_code(), Some(0), "{}", server.said());
    assert_eq!(begun.load(Ordering::SeqCst), 4, "36 were ready and none of them began");
}

#[test]
fn what_does_not_end_within_the_limit_is_stopped_and_runs_again_after_the_start() {
    let held = Arc::new(AtomicBool::new(true));
    let hold = held.clone();
    let sink = Sink::start(move |_| {
        if hold.load(Ordering::SeqCst) {
            Say::Silence
        } else {
            Say::Status(200, "")
        }
    });
    let mut place = Place::new(&["--drain", "300ms"]);
    let mut server = place.start();
    let mut api = server.api();
    let body = json!({"target": {"type": "http", "url": sink.url("/")}, "retry": {"attempts": 3, "backoff": "1ms"}});
    let id = api.post("/v1/jobs", &body).expect(201)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    until_true("it runs", || {
        api.get(&format!("/v1/jobs/{id}")).expect(200)["state"] == "running"
    });
    server.terminate();
    let (code, took) = pace::took(|| server.exit_code());
    assert_eq!(code, Some(0), "{}", server.said());
    assert!(took < Duration::from_secs(20), "the limit was 300 ms, it took {took:?}");
    held.store(false, Ordering::SeqCst);
    let job = place
        .start()
        .api()
        .get(&format!("/v1/jobs/{id}/wait?timeout=60"))
        .expect(200);
    assert_eq!(job["state"], "succeeded", "{job}");
}

#[test]
fn a_second_signal_ends_a_drain_at_once_and_loses_nothing_acknowledged() {
    let held = Arc::new(AtomicBool::new(true));
    let hold = held.clone();
    let sink = Sink::start(move |_| {
        if hold.load(Ordering::SeqCst) {
            Say::Silence
        } else {
            Say::Status(200, "")
        }
    });
    let mut place = Place::new(&[]);
    let mut server = place.start();
    let mut api = server.api();
    let body = json!({"target": {"type": "http", "url": sink.url("/")}, "retry": {"attempts": 3, "backoff": "1ms"}});
    let id = api.post("/v1/jobs", &body).expect(201)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    until_true("it runs", || {
        api.get(&format!("/v1/jobs/{id}")).expect(200)["state"] == "running"
    });
    server.terminate();
    until_true("not ready", || ready(&mut api) == Some(503));
    server.terminate();
    assert_eq!(server.exit_code(), Some(130), "{}", server.said());
    let gone = api.call("GET", "/livez", &[], None);
    assert!(matches!(gone, Err(NoAnswer::NotSent | NoAnswer::Unknown)));
    held.store(false, Ordering::SeqCst);
    let job = place
        .start()
        .api()
        .get(&format!("/v1/jobs/{id}/wait?timeout=60"))
        .expect(200);
    assert_eq!(job["state"], "succeeded", "{job}");
}
