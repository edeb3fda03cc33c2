//! A cell of many processes: the store, owners of shards, and workers on nodes of their own.
//!
//! Owns: that work flows between nodes, and what the death of a worker or of an owner may not do. Next:
//! `../../src/cluster/work.rs`, `cluster.rs` for owners that work themselves.

use crate::api::Api;
use crate::cell::{Cell, OWNER, once, owns, succeeded, tries};
use crate::pace::{from_now, reach, until_true};
use crate::server::Place;
use crate::split::ROLES;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

fn all_done(cell: &Cell, api: &mut Api, made: &[String]) {
    cell.all_done(std::slice::from_mut(api), made);
}

#[test]
fn f14_workers_on_nodes_of_their_own_share_the_work_of_a_cell() {
    let cell = Cell::shut();
    let mut owner = cell.place("s", OWNER, &[]);
    let (mut one, mut two) = (
        cell.place("w1", "worker", &["--slots", "4"]),
        cell.place("w2", "worker", &["--slots", "4"]),
    );
    let mut workers = [one.spawn(), two.spawn()];
    let server = owner.start();
    let mut api = server.api();
    let made = cell.create_all(&mut api, "a", 100);
    // More than either of them has room for, and no more than both have.
    until_true("both work", || cell.effects.held() == 8);
    cell.effects.open_gate();
    all_done(&cell, &mut api, &made);
    let by: BTreeSet<_> = made.iter().map(|id| tries(&mut api, id)).collect();
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
fn f18_outcomes_follow_a_shard_to_its_new_owner_and_a_drain_does_not_wait() {
    let cell = Cell::shut();
    let (mut place_a, mut place_b) = (cell.place("a", OWNER, &[]), cell.place("b", OWNER, &[]));
    let (server_a, server_b) = (place_a.start(), place_b.start());
    until_true("both own shards", || owns(&server_a) == 8 && owns(&server_b) == 8);
    // As good as for ever: it ends when nothing is left to tell.
    let mut working = cell.place("w", "worker", &["--slots", "64", "--drain", "1h"]);
    let mut worker = working.spawn();
    let mut api = server_b.api();
    let made = cell.create_all(&mut api, "a", 20);
    until_true("all of them run", || cell.effects.held() == 20);
    server_a.kill();
    worker.terminate();
    cell.effects.open_gate();
    assert_eq!(worker.exit_code(), Some(0), "{}", worker.said());
    all_done(&cell, &mut api, &made);
    assert!(
        made.iter().all(|id| tries(&mut api, id) == once("w")),
        "no lease was lost"
    );
    assert_eq!(owns(&server_b), 16);
}

/// All its timers have run out when it wakes, and what workers said meanwhile is still unread.
#[test]
fn an_owner_that_lost_its_shards_while_it_was_frozen_takes_no_job_from_a_worker_when_it_wakes() {
    let lease = Duration::from_secs(5);
    let cell = Cell::shut();
    let (mut place_a, mut place_b) = (
        cell.place("a", OWNER, &["--lease", "5s"]),
        cell.place("b", OWNER, &["--lease", "5s"]),
    );
    let (server_a, server_b) = (place_a.start(), place_b.start());
    until_true("both own shards", || owns(&server_a) == 8 && owns(&server_b) == 8);
    let mut working = cell.place("w", "worker", &["--slots", "64", "--lease", "5s"]);
    let _worker = working.spawn();
    let (mut api_a, mut api_b) = (server_a.api(), server_b.api());
    let made = cell.create_all(&mut api_b, "a", 20);
    until_true("all of them run", || cell.effects.held() == 20);
    server_a.freeze(true);
    let past = from_now(lease + Duration::from_secs(1));
    until_true("the other one owns all", || owns(&server_b) == 16);
    reach(past);
    server_a.freeze(false);
    // It is at work again, with whatever it did on waking behind it.
    let more = cell.create_all(&mut api_a, "b", 20);
    cell.effects.open_gate();
    all_done(&cell, &mut api_b, &[made.clone(), more].concat());
    for id in &made {
        assert_eq!(tries(&mut api_b, id), once("w"), "no lease was lost");
    }
}

#[test]
fn a_node_of_every_role_works_for_the_shards_of_another() {
    let cell = Cell::start();
    let (mut place_a, mut place_b) = (cell.place("a", OWNER, &[]), cell.place("b", ROLES, &[]));
    let (server_a, mut server_b) = (place_a.start(), place_b.start());
    until_true("both own shards", || owns(&server_a) == 8 && owns(&server_b) == 8);
    let mut api = server_a.api();
    let made = cell.create_all(&mut api, "a", 60);
    all_done(&cell, &mut api, &made);
    assert!(made.iter().all(|id| tries(&mut api, id) == once("b")));
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
        let job = succeeded(std::slice::from_mut(api), id);
        let mut tries = tries(api, id);
        // A grant that meets a move of its shard goes back, and costs no attempt.
        tries.retain(|(_, result)| result != "handed_back");
        assert_eq!(tries, once(node), "{job}");
    }
}

#[test]
fn f18_claims_over_http_reach_the_whole_cell_and_outlive_an_owner() {
    let cell = Cell::start();
    let (mut place_a, mut place_b) = (cell.place("a", ROLES, &[]), cell.place("b", ROLES, &[]));
    let (server_a, server_b) = (place_a.start(), place_b.start());
    until_true("both own shards", || owns(&server_a) == 8 && owns(&server_b) == 8);
    let mut api = server_a.api();
    let made = remote(&mut api);
    let held = claim_all(&mut api);
    server_b.kill();
    finish_all(&mut api, &held, &made, "a");
}

/// The key of grants outlives the process.
#[test]
fn f18_what_an_http_worker_reports_to_a_server_that_was_started_anew_settles_its_job() {
    let mut place = Place::new(&[]);
    let server = place.start();
    let mut api = server.api();
    let body = json!({"target": {"type": "remote", "name": "x"}, "delivery": "at-most-once"});
    let made = api.post("/v1/jobs", &body).expect(201)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let ask = json!({"worker": "w", "claim": "1", "queues": ["default"], "count": 1, "wait": 30});
    let held = api.post("/v1/worker/claim", &ask).expect(200)["attempts"][0].clone();
    server.kill();
    let server = place.start();
    let mut api = server.api();
    until_true("nobody knows how it ended", || {
        api.get(&format!("/v1/jobs/{made}")).expect(200)["state"] == "uncertain"
    });
    let report = |worker: &str| json!({"worker": worker, "grant": held["grant"], "result": "succeeded"});
    let stranger = api.post("/v1/worker/finish", &report("other"));
    assert_eq!((stranger.status, stranger.code()), (403, "grant_invalid"));
    let beat = json!({"worker": "w", "attempts": [{"grant": held["grant"]}]});
    let told = api.post("/v1/worker/heartbeat", &beat).expect(200);
    assert_eq!(told["attempts"][0]["state"], "lost", "it is to stop");
    for _ in 0..2 {
        until_true("its report to be recorded, also when it comes again", || {
            let answer = api.post("/v1/worker/finish", &report("w"));
            assert!(matches!(answer.status, 200 | 503), "{}", answer.body);
            answer.status == 200
        });
        let job = api.get(&format!("/v1/jobs/{made}")).expect(200);
        assert_eq!(
            (&job["state"], &job["attempt_count"]),
            (&json!("succeeded"), &json!(1)),
            "{job}"
        );
    }
}

#[test]
fn f18_claims_over_http_follow_their_shards_to_a_node_that_comes() {
    let cell = Cell::start();
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
