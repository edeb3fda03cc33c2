//! A cell of many processes: the store, owners of shards, and workers on nodes of their own.
//!
//! Owns: that work flows between nodes, and what the death of a worker or of an owner may not do. Next:
//! `../../src/cluster/work.rs`, `cluster.rs` for owners that work themselves.

use crate::api::Api;
use crate::certs::secured;
use crate::pace::{self, until, until_true};
use crate::server::{Place, Server};
use crate::sink::{Guarded, Say, Sink};
use crate::split::{ROLES, store_on};
use fencepost::guard::Answer;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const OWNER: &str = "scheduler,gateway,coordinator";

/// What reached the target, and what it did.
#[derive(Default)]
struct Seen {
    held: BTreeSet<String>,
    applied: BTreeMap<String, u32>,
}

/// The store, and a guarded target that answers nobody while its gate is shut.
struct Cell {
    folder: tempfile::TempDir,
    _store: Server,
    at: String,
    sink: Sink,
    seen: Arc<Mutex<Seen>>,
    is_open: Arc<AtomicBool>,
}

impl Cell {
    fn start(is_open: bool) -> Cell {
        let folder = tempfile::tempdir().unwrap();
        let (store, at) = store_on(folder.path(), "127.0.0.1:0".parse().unwrap(), true);
        let is_open = Arc::new(AtomicBool::new(is_open));
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let (guarded, effects, gate) = (Guarded::new(), seen.clone(), is_open.clone());
        let sink = Sink::start(move |arrival| {
            effects.lock().unwrap().held.insert(arrival.key.clone());
            // Whoever waits here at the end of a test is let through.
            let _ = pace::within(pace::LONG, || gate.load(Ordering::SeqCst).then_some(()));
            if matches!(guarded.apply(arrival), Answer::Applied(_)) {
                *effects.lock().unwrap().applied.entry(arrival.key.clone()).or_default() += 1;
            }
            Say::Status(200, "")
        });
        Cell {
            folder,
            _store: store,
            at: at.to_string(),
            sink,
            seen,
            is_open,
        }
    }

    fn place(&self, node: &str, roles: &str, more: &[&str]) -> Place {
        let shown = secured(self.folder.path(), node, roles);
        let mut words = vec!["--roles", roles, "--store-at", &self.at];
        words.extend(shown.iter().map(String::as_str));
        words.extend(more);
        Place::new(&words).telling("info")
    }

    /// Makes jobs until they are acknowledged.
    fn create(&self, api: &mut Api, keys: impl Iterator<Item = String>) -> Vec<String> {
        let retry = json!({"attempts": 50, "backoff": "100ms"});
        let body = json!({"target": {"type": "http", "url": self.sink.url("/")}, "retry": retry});
        keys.map(|key| {
            until(&format!("{key} to be taken"), || {
                let answer = api
                    .call("POST", "/v1/jobs", &[("Idempotency-Key", &key)], Some(&body))
                    .ok()?;
                let is_taken = matches!(answer.status, 200 | 201);
                assert!(is_taken || matches!(answer.status, 429 | 503), "{}", answer.body);
                is_taken.then(|| answer.body["id"].as_str().unwrap().to_owned())
            })
        })
        .collect()
    }

    fn held(&self) -> usize {
        self.seen.lock().unwrap().held.len()
    }

    fn open(&self) {
        self.is_open.store(true, Ordering::SeqCst);
    }

    /// Ends only when every job has its effect, and each once; the jobs.
    fn all_done(&self, api: &mut Api, made: &[String]) -> Vec<Value> {
        let jobs: Vec<Value> = made.iter().map(|id| succeeded(api, id)).collect();
        let seen = self.seen.lock().unwrap();
        assert_eq!(seen.applied.len(), made.len(), "nothing acknowledged is lost");
        assert!(
            seen.applied.values().all(|times| *times == 1),
            "and nothing is done twice"
        );
        jobs
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        self.open();
    }
}

fn keys(what: &str, count: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |number| format!("{what}{number}"))
}

fn succeeded(api: &mut Api, id: &str) -> Value {
    until(&format!("job {id} to succeed"), || {
        let answer = api.call("GET", &format!("/v1/jobs/{id}"), &[], None).ok()?;
        let job = (answer.status == 200).then(|| answer.expect(200))?;
        (job["state"] == "succeeded").then_some(job)
    })
}

/// The nodes of the workers that tried it, and what came out.
fn tries(api: &mut Api, job: &Value) -> Vec<(String, String)> {
    let id = job["id"].as_str().unwrap();
    let page = api.get(&format!("/v1/jobs/{id}/attempts")).expect(200);
    let tries = page["items"].as_array().unwrap().iter().map(|attempt| {
        let worker = attempt["worker"].as_str().unwrap();
        let node = worker.split('/').next().unwrap();
        (node.to_owned(), attempt["result"].as_str().unwrap().to_owned())
    });
    tries.collect()
}

fn once(node: &str) -> Vec<(String, String)> {
    vec![(node.to_owned(), "succeeded".to_owned())]
}

fn owns(server: &Server) -> usize {
    let said = server.said();
    let count = |what: &str| said.lines().filter(|line| line.contains(what)).count();
    count("this node owns the shard") - count("releases the shard")
}

#[test]
fn f14_workers_on_nodes_of_their_own_share_the_work_of_a_cell() {
    let cell = Cell::start(false);
    let mut owner = cell.place("s", OWNER, &[]);
    let (mut one, mut two) = (
        cell.place("w1", "worker", &["--slots", "4"]),
        cell.place("w2", "worker", &["--slots", "4"]),
    );
    let mut workers = [one.spawn(), two.spawn()];
    let server = owner.start();
    let mut api = server.api();
    let made = cell.create(&mut api, keys("a", 100));
    // More than either of them has room for, and no more than both have.
    until_true("both work", || cell.held() == 8);
    cell.open();
    let jobs = cell.all_done(&mut api, &made);
    let by: BTreeSet<_> = jobs.iter().map(|job| tries(&mut api, job)).collect();
    assert_eq!(
        by.into_iter().collect::<Vec<_>>(),
        [once("w1"), once("w2")],
        "no lease was lost"
    );
    for worker in &mut workers {
        assert_eq!(worker.stop(), Some(0), "{}", worker.said());
    }
}

#[test]
fn f15_what_a_killed_worker_ran_runs_elsewhere_after_its_lease() {
    let cell = Cell::start(false);
    let mut owner = cell.place("s", OWNER, &["--lease", "3s"]);
    let server = owner.start();
    let mut api = server.api();
    let mut place = cell.place("w1", "worker", &["--slots", "2", "--lease", "3s"]);
    let killed = place.spawn();
    let mut made = cell.create(&mut api, keys("a", 2));
    until_true("its runs", || cell.held() == 2);
    let mut other = cell.place("w2", "worker", &["--lease", "3s"]);
    let _other = other.spawn();
    killed.kill();
    made.extend(cell.create(&mut api, keys("b", 10)));
    until_true("the other works", || cell.held() == 12);
    cell.open();
    let jobs = cell.all_done(&mut api, &made);
    for job in &jobs[..2] {
        let lost = ("w1".to_owned(), "worker_lost".to_owned());
        let expected: BTreeSet<_> = once("w2").into_iter().chain([lost]).collect();
        assert_eq!(tries(&mut api, job).into_iter().collect::<BTreeSet<_>>(), expected);
    }
    for job in &jobs[2..] {
        assert_eq!(tries(&mut api, job), once("w2"), "none was granted to the dead");
    }
}

#[test]
fn f18_outcomes_follow_a_shard_to_its_new_owner_and_a_drain_does_not_wait() {
    let cell = Cell::start(false);
    let (mut place_a, mut place_b) = (cell.place("a", OWNER, &[]), cell.place("b", OWNER, &[]));
    let (server_a, server_b) = (place_a.start(), place_b.start());
    until_true("both own shards", || owns(&server_a) == 8 && owns(&server_b) == 8);
    // As good as for ever: it ends when nothing is left to tell.
    let mut working = cell.place("w", "worker", &["--slots", "64", "--drain", "1h"]);
    let mut worker = working.spawn();
    let mut api = server_b.api();
    let made = cell.create(&mut api, keys("a", 20));
    until_true("all of them run", || cell.held() == 20);
    server_a.kill();
    worker.terminate();
    cell.open();
    assert_eq!(worker.exit_code(), Some(0), "{}", worker.said());
    let jobs = cell.all_done(&mut api, &made);
    assert!(
        jobs.iter().all(|job| tries(&mut api, job) == once("w")),
        "no lease was lost"
    );
    assert_eq!(owns(&server_b), 16);
}

#[test]
fn a_node_of_every_role_works_for_the_shards_of_another() {
    let cell = Cell::start(true);
    let (mut place_a, mut place_b) = (cell.place("a", OWNER, &[]), cell.place("b", ROLES, &[]));
    let (server_a, mut server_b) = (place_a.start(), place_b.start());
    until_true("both own shards", || owns(&server_a) == 8 && owns(&server_b) == 8);
    let mut api = server_a.api();
    let made = cell.create(&mut api, keys("a", 60));
    let jobs = cell.all_done(&mut api, &made);
    assert!(jobs.iter().all(|job| tries(&mut api, job) == once("b")));
    assert_eq!(server_b.stop(), Some(0), "{}", server_b.said());
    assert_eq!(
        owns(&server_a),
        16,
        "a node without a worker takes shards like any other"
    );
}

const REMOTE: usize = 40;

/// Jobs for workers over HTTP.
fn remote(api: &mut Api) -> Vec<String> {
    let body = json!({"target": {"type": "remote", "name": "x"}});
    let made = (0..REMOTE).map(|_| {
        api.post("/v1/jobs", &body).expect(201)["id"]
            .as_str()
            .unwrap()
            .to_owned()
    });
    made.collect()
}

/// Claims through one node until it has them all.
fn claim_all(api: &mut Api) -> Vec<Value> {
    let mut held = Vec::new();
    while held.len() < REMOTE {
        let number = held.len().to_string();
        let ask = json!({"worker": "w", "claim": number, "queues": ["default"], "count": 100, "wait": 5});
        let answer = api.post("/v1/worker/claim", &ask).expect(200);
        held.extend(answer["attempts"].as_array().unwrap().clone());
    }
    held
}

/// Reports all of them through the node that answered the claim; each is recorded, once.
fn finish_all(api: &mut Api, held: &[Value], made: &[String], node: &str) {
    for attempt in held {
        let body = json!({"worker": "w", "grant": attempt["grant"], "result": "succeeded"});
        until_true("a report to be recorded", || {
            let answer = api.post("/v1/worker/finish", &body);
            assert!(matches!(answer.status, 200 | 503), "{}", answer.body);
            answer.status == 200
        });
    }
    for id in made {
        let job = succeeded(api, id);
        assert_eq!(tries(api, &job), once(node), "{job}");
    }
}

#[test]
fn f18_claims_over_http_reach_the_whole_cell_and_outlive_an_owner() {
    let cell = Cell::start(true);
    let (mut place_a, mut place_b) = (cell.place("a", ROLES, &[]), cell.place("b", ROLES, &[]));
    let (server_a, server_b) = (place_a.start(), place_b.start());
    until_true("both own shards", || owns(&server_a) == 8 && owns(&server_b) == 8);
    let mut api = server_a.api();
    let made = remote(&mut api);
    let held = claim_all(&mut api);
    server_b.kill();
    finish_all(&mut api, &held, &made, "a");
}

#[test]
fn f18_claims_over_http_follow_their_shards_to_a_node_that_comes() {
    let cell = Cell::start(true);
    let more = ["--drain", "300s"];
    let mut place_a = cell.place("a", ROLES, &more);
    let mut server_a = place_a.start();
    let mut api = server_a.api();
    let made = remote(&mut api);
    let held = claim_all(&mut api);
    let mut place_b = cell.place("b", ROLES, &more);
    let server_b = place_b.start();
    until_true("both own shards", || owns(&server_b) == 8);
    finish_all(&mut api, &held, &made, "a");
    server_a.terminate();
    assert_eq!(server_a.exit_code(), Some(0), "long before its drain's limit");
}
