//! A cell of three processes: one holds the store, two own shards and run jobs.
//!
//! Owns: what the death of an owner may not do, and that a request finds its owner. Next:
//! `../../src/cluster/`, `split.rs` for a cell of two.

use crate::api::Api;
use crate::cell::{Cell, LEASE, owns};
use crate::pace::{until, until_true};
use crate::server::Place;
use crate::split::ROLES;
use serde_json::{Value, json};
use std::time::Duration;

fn place(cell: &Cell, node: &str) -> Place {
    cell.place(node, ROLES, &[])
}

#[test]
fn f32_when_an_owner_is_killed_its_shards_take_jobs_elsewhere() {
    let cell = Cell::start();
    let (mut place_a, mut place_b) = (place(&cell, "a"), place(&cell, "b"));
    let (server_a, server_b) = (place_a.start(), place_b.start());
    until_true("both own shards", || owns(&server_a) == 8 && owns(&server_b) == 8);
    let (mut api_a, mut api_b) = (server_a.api(), server_b.api());
    let mut made = Vec::new();
    for number in 0..40 {
        made.push(cell.create(&mut api_a, &format!("a{number}")));
        made.push(cell.create(&mut api_b, &format!("b{number}")));
    }
    server_a.kill();
    let (_, took) = crate::pace::took(|| {
        for number in 0..40 {
            made.push(cell.create(&mut api_b, &format!("c{number}")));
        }
    });
    let bound = LEASE + Duration::from_secs(2);
    println!("figure: owner killed, every shard took a job after {took:?}; the product's bound is {bound:?}");
    assert!(took < crate::pace::LONG, "every shard took a job after {took:?}");
    all_done(&cell, &mut api_b, &made);
}

/// Ends only when every job has its effect, and each once.
fn all_done(cell: &Cell, api: &mut Api, made: &[String]) {
    cell.all_done(std::slice::from_mut(api), made);
}

#[test]
fn an_owner_that_was_frozen_for_longer_than_its_lease_goes_on_as_one_of_many() {
    let cell = Cell::start();
    let (mut place_a, mut place_b) = (place(&cell, "a"), place(&cell, "b"));
    let (server_a, server_b) = (place_a.start(), place_b.start());
    until_true("both own shards", || owns(&server_a) == 8 && owns(&server_b) == 8);
    let (mut api_a, mut api_b) = (server_a.api(), server_b.api());
    let mut made: Vec<String> = (0..20)
        .map(|number| cell.create(&mut api_a, &format!("a{number}")))
        .collect();
    server_a.freeze(true);
    made.extend((0..20).map(|number| cell.create(&mut api_b, &format!("b{number}"))));
    server_a.freeze(false);
    made.extend((0..20).map(|number| cell.create(&mut api_a, &format!("c{number}"))));
    all_done(&cell, &mut api_b, &made);
}

#[test]
fn a_node_that_is_stopped_hands_its_shards_over_first() {
    let cell = Cell::start();
    let (mut place_a, mut place_b) = (place(&cell, "a"), place(&cell, "b"));
    let (mut server_a, server_b) = (place_a.start(), place_b.start());
    until_true("both own shards", || owns(&server_a) == 8 && owns(&server_b) == 8);
    let mut api = server_b.api();
    assert_eq!(server_a.stop(), Some(0), "{}", server_a.said());
    assert_eq!(owns(&server_b), 16, "they were open elsewhere before it ended");
    let made: Vec<String> = (0..20)
        .map(|number| cell.create(&mut api, &format!("a{number}")))
        .collect();
    all_done(&cell, &mut api, &made);
}

#[test]
fn what_a_client_made_it_reads_at_once_at_any_node() {
    let cell = Cell::start();
    let (mut place_a, mut place_b) = (place(&cell, "a"), place(&cell, "b"));
    let (server_a, server_b) = (place_a.start(), place_b.start());
    until_true("both own shards", || owns(&server_a) == 8 && owns(&server_b) == 8);
    let (mut api_a, mut api_b) = (server_a.api(), server_b.api());
    for number in 0..32 {
        let id = cell.create(&mut api_a, &format!("a{number}"));
        let read = api_b.get(&format!("/v1/jobs/{id}"));
        assert_eq!(read.status, 200, "{number}: {}", read.body);
        let job = json!({"target": {"type": "handler", "name": "noop"}});
        let body = json!({"name": format!("s{number}"), "cron": "0 0 1 1 *", "job": job});
        let made = until("a schedule", || {
            let answer = api_b.call("POST", "/v1/schedules", &[], Some(&body)).ok()?;
            (answer.status == 201).then_some(answer)
        });
        let path = format!("/v1/schedules/s{number}");
        let (there, here) = (api_a.get(&path).expect(200), api_b.get(&path).expect(200));
        assert_eq!(
            (&there["name"], &here["name"]),
            (&made.body["name"], &made.body["name"])
        );
        until_true("its pause", || acts(&mut api_a, &format!("s{number}"), "pause"));
        assert_eq!(api_b.get(&path).expect(200)["status"], "paused");
    }
}

#[test]
fn f32_an_owner_that_was_frozen_acknowledges_nothing_by_what_it_remembers() {
    let cell = Cell::start();
    let (mut place_a, mut place_b) = (place(&cell, "a"), place(&cell, "b"));
    let (server_a, server_b) = (place_a.start(), place_b.start());
    until_true("both own shards", || owns(&server_a) == 8 && owns(&server_b) == 8);
    let (mut api_a, mut api_b) = (server_a.api(), server_b.api());
    let names: Vec<String> = (0..32).map(|number| format!("s{number}")).collect();
    for name in &names {
        let job = json!({"target": {"type": "http", "url": cell.sink.url("/")}});
        let body = json!({"name": name, "cron": "0 0 1 1 *", "job": job});
        until_true("a schedule", || {
            let answer = api_a.call("POST", "/v1/schedules", &[], Some(&body));
            answer.is_ok_and(|answer| {
                assert!(matches!(answer.status, 200 | 201 | 503), "{}", answer.body);
                answer.status < 300
            })
        });
        until_true("its pause", || acts(&mut api_a, name, "pause"));
    }
    server_a.freeze(true);
    for name in &names {
        until_true("its resumption", || acts(&mut api_b, name, "resume"));
    }
    let late: Vec<_> = names
        .iter()
        .map(|name| {
            let (mut api, name) = (server_a.api(), name.clone());
            std::thread::spawn(move || acts(&mut api, &name, "pause").then_some(name))
        })
        .collect();
    crate::pace::reach(crate::pace::from_now(Duration::from_millis(300)));
    server_a.freeze(false);
    let said: Vec<String> = late.into_iter().filter_map(|one| one.join().unwrap()).collect();
    let mut broken = Vec::new();
    for name in &said {
        let answer = api_b.get(&format!("/v1/schedules/{name}")).expect(200);
        if answer["status"] != "paused" {
            broken.push((name.clone(), answer["status"].clone()));
        }
    }
    assert!(
        broken.is_empty(),
        "{} of {} pauses that were acknowledged are not there: {broken:?}",
        broken.len(),
        said.len()
    );
}

fn acts(api: &mut Api, name: &str, what: &str) -> bool {
    let answer = api.call("POST", &format!("/v1/schedules/{name}/{what}"), &[], None);
    answer.is_ok_and(|answer| answer.status == 200)
}

#[test]
fn doctor_knows_that_an_owners_store_is_on_another_node() {
    let cell = Cell::start();
    let mut place = place(&cell, "a");
    let server = place.start();
    let mut doctor = std::process::Command::new(env!("CARGO_BIN_EXE_fencepost"));
    doctor
        .args(["doctor", "-o", "json", "--server", &server.url(), "--data"])
        .arg(place.data());
    let said = doctor.env_remove("FENCEPOST_TOKEN").output().unwrap().stdout;
    let lines: Value = serde_json::from_slice(&said).unwrap();
    let store = lines
        .as_array()
        .unwrap()
        .iter()
        .find(|line| line["check"] == "store files");
    assert_eq!(store.unwrap()["level"], "ok", "{lines}");
    assert!(
        lines.as_array().unwrap().iter().all(|line| line["level"] != "fail"),
        "{lines}"
    );
}

#[test]
fn f06_a_process_that_finds_another_one_under_its_name_ends_and_takes_nothing_back() {
    let cell = Cell::start();
    let (mut place_1, mut place_2) = (place(&cell, "a"), place(&cell, "a"));
    let mut first = place_1.start();
    until_true("the first owns all", || owns(&first) == 16);
    first.freeze(true);
    let second = place_2.start();
    until_true("the second owns all", || owns(&second) == 16);
    let mut api = second.api();
    let mut made = vec![cell.create(&mut api, "before")];
    first.freeze(false);
    until_true("the first knows it", || first.said().contains("this node's name"));
    made.extend((0..40).map(|number| cell.create(&mut api, &format!("a{number}"))));
    all_done(&cell, &mut api, &made);
    assert!(!second.said().contains("shard closed"), "{}", second.said());
    assert_eq!(first.exit_code(), Some(70), "{}", first.said());
    assert!(!first.said().contains("the store is broken"), "{}", first.said());
}
