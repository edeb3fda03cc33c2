//! Stopping on purpose under load: ready no more, nothing new begins, what runs ends or is handed back.
//!
//! Owns: SIGTERM and Ctrl-C, once and twice. Next: `../../src/process/signals.rs`.

use crate::api::{Api, NoAnswer};
use crate::pace::{self, until_true};
use crate::server::{Place, Server};
use crate::sink::{Say, Sink};
use chrono::{DateTime, Utc};
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
    let mut place = Place::new(&["--slots", "8"]).telling("info");
    for (round, ask) in [Server::terminate, Server::interrupt, Server::terminate]
        .iter()
        .enumerate()
    {
        gate.set(false);
        let mut server = place.start();
        let mut api = server.api();
        let made: Vec<Value> = (0..30)
            .map(|_| api.post("/v1/jobs", &call(&sink.url("/"))).expect(201))
            .collect();
        until_true("eight attempts in flight", || gate.waiting.load(Ordering::SeqCst) == 8);
        ask(&server);
        until_true("not ready", || {
            let was_told = server.said().contains("draining");
            let is_ready = ready(&mut api) != Some(503);
            assert!(
                !(was_told && is_ready),
                "it said that it drains, and was ready after that"
            );
            !is_ready
        });
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
        assert_eq!(next.stop(), Some(0));
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

/// When a line of the log was written.
fn told_at(said: &str, word: &str) -> DateTime<Utc> {
    let line = said.lines().find(|line| line.contains(word)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn what_falls_due_during_a_drain_is_not_granted_to_free_slots() {
    let mut held = Held::new(&["--slots", "64"]);
    let ids: Vec<String> = (1..=40)
        .map(|n| {
            let delay = format!("{}ms", n * 20);
            create(
                &mut held.api,
                &json!({"target": {"type": "handler", "name": "noop"}, "delay": delay}),
            )
        })
        .collect();
    let due = pace::from_now(Duration::from_secs(1));
    held.server.terminate();
    pace::reach(due);
    let ended = DateTime::from_timestamp_micros(pace::wall_micros()).unwrap();
    held.held.store(false, Ordering::SeqCst);
    held.server.terminate();
    held.server.exit_code();
    // Its worker is told a moment later.
    let since = told_at(&held.server.said(), "draining") + chrono::TimeDelta::milliseconds(100);
    let next = held.place.start();
    let mut held_back = 0;
    for id in &ids {
        let job = next.api().get(&format!("/v1/jobs/{id}/wait?timeout=60")).expect(200);
        assert_eq!(
            (&job["state"], &job["attempt_count"]),
            (&json!("succeeded"), &json!(1)),
            "{job}"
        );
        let list = next.api().get(&format!("/v1/jobs/{id}/attempts")).expect(200);
        let at: DateTime<Utc> = list["items"][0]["granted_at"].as_str().unwrap().parse().unwrap();
        assert!(
            at <= since || at >= ended,
            "granted at {at}, while it drained from {since} to {ended}"
        );
        held_back += usize::from(at >= ended);
    }
    assert!(held_back > 0, "none of them fell due while it drained");
}

/// A server on which one job's call has arrived and is held until it is let go.
struct Held {
    held: Arc<AtomicBool>,
    _sink: Sink,
    place: Place,
    server: Server,
    api: Api,
    id: String,
}

impl Held {
    fn new(words: &[&str]) -> Held {
        let held = Arc::new(AtomicBool::new(true));
        let arrived = Arc::new(AtomicBool::new(false));
        let (hold, arrives) = (held.clone(), arrived.clone());
        let sink = Sink::start(move |_| {
            arrives.store(true, Ordering::SeqCst);
            if hold.load(Ordering::SeqCst) {
                Say::Silence
            } else {
                Say::Status(200, "")
            }
        });
        let mut place = Place::new(words).telling("info");
        let server = place.start();
        let mut api = server.api();
        let target = json!({"type": "http", "url": sink.url("/")});
        let body = json!({"target": target, "retry": {"attempts": 3, "backoff": "1ms"}});
        let id = create(&mut api, &body);
        until_running(&mut api, &id);
        until_true("its call has arrived", || arrived.load(Ordering::SeqCst));
        Held {
            held,
            _sink: sink,
            place,
            server,
            api,
            id,
        }
    }

    /// The job ends well on the next server; its attempts.
    fn ends_on_the_next_server(mut self) -> Vec<Value> {
        self.held.store(false, Ordering::SeqCst);
        let next = self.place.start();
        let job = next
            .api()
            .get(&format!("/v1/jobs/{}/wait?timeout=60", self.id))
            .expect(200);
        assert_eq!(job["state"], "succeeded", "{job}");
        let list = next.api().get(&format!("/v1/jobs/{}/attempts", self.id)).expect(200);
        list["items"].as_array().unwrap().clone()
    }
}

fn create(api: &mut Api, body: &Value) -> String {
    let made = api.post("/v1/jobs", body).expect(201);
    made["id"].as_str().unwrap().to_owned()
}

fn until_running(api: &mut Api, id: &str) {
    until_true("it runs", || {
        api.get(&format!("/v1/jobs/{id}")).expect(200)["state"] == "running"
    });
}

#[test]
fn what_does_not_end_within_the_limit_is_stopped_and_runs_again_after_the_start() {
    let mut held = Held::new(&["--drain", "300ms"]);
    held.server.terminate();
    // The call is held for as long as this test may take: only the limit ends it.
    assert_eq!(held.server.exit_code(), Some(0), "{}", held.server.said());
    let attempts = held.ends_on_the_next_server();
    let results: Vec<&Value> = attempts.iter().map(|attempt| &attempt["result"]).collect();
    assert_eq!(results.len(), 2, "{attempts:?}");
    // It began, so it may have had its effect: it counts, and says why it ended.
    assert_eq!(results, ["failed", "succeeded"], "{attempts:?}");
    let error = attempts[0]["error"].as_str().unwrap();
    assert!(error.starts_with("drained: "), "{error}");
}

#[test]
fn a_second_signal_ends_a_drain_at_once_and_loses_nothing_acknowledged() {
    type Signal = fn(&Server);
    let pairs: [[Signal; 2]; 3] = [
        [Server::terminate, Server::terminate],
        [Server::interrupt, Server::interrupt],
        [Server::terminate, Server::interrupt],
    ];
    for [first, second] in pairs {
        let mut held = Held::new(&[]);
        first(&held.server);
        until_true("not ready", || ready(&mut held.api) == Some(503));
        second(&held.server);
        let (code, took) = pace::took(|| held.server.exit_code());
        assert_eq!(code, Some(130), "{}", held.server.said());
        assert!(
            took < Duration::from_secs(15),
            "half of what the drain alone may take: {took:?}"
        );
        let gone = held.api.call("GET", "/livez", &[], None);
        assert!(matches!(gone, Err(NoAnswer::NotSent | NoAnswer::Unknown)));
        held.ends_on_the_next_server();
    }
}

#[test]
fn ctrl_c_reaches_the_server_and_leaves_its_commands_to_the_drain() {
    let mut place = Place::new(&[]);
    let mut server = place.start();
    let mut api = server.api();
    let (began, go) = (place.path().join("began"), place.path().join("go"));
    let wait = format!(
        "touch {}; until [ -e {} ]; do sleep 0.02; done; echo done",
        began.display(),
        go.display()
    );
    let target = json!({"type": "command", "argv": [wait], "shell": true});
    let id = create(&mut api, &json!({"target": target, "retry": {"attempts": 1}}));
    // Until its supervisor has left the terminal's group, an interrupt reaches that too.
    until_true("the command began", || began.exists());
    server.interrupt();
    until_true("not ready", || ready(&mut api) == Some(503));
    std::fs::write(go, "").unwrap();
    assert_eq!(server.exit_code(), Some(0), "{}", server.said());
    let next = place.start();
    let job = next.api().get(&format!("/v1/jobs/{id}")).expect(200);
    assert_eq!(job["state"], "succeeded", "{job}");
}
