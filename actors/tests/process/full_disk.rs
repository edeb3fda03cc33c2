//! A real file system that is full: new work is refused, what is there ends, and room brings all back.
//!
//! Owns: what a person sees. Where no file system can be made the tests say so and end; `switched.rs` has the
//! same on a disk that only says it is full, and runs everywhere. Next: `storage/src/fjall_store/disk_space.rs`.

use crate::api::Api;
use crate::pace::until_true;
use crate::sink::{Say, Sink};
use crate::small_disk::{FULL, MIB, SIZE_MIB, SmallDisk, WAYS};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn later() -> Value {
    json!({"target": {"type": "handler", "name": "noop"}, "delay": "1h", "payload": "x".repeat(4_000)})
}

fn create(api: &mut Api, body: &Value) -> String {
    let made = api.post("/v1/jobs", body).expect(201);
    made["id"].as_str().unwrap().to_owned()
}

fn state(api: &mut Api, id: &str) -> Value {
    api.get(&format!("/v1/jobs/{id}")).expect(200)["state"].clone()
}

/// The tests below take the first way that there is: the others are seen to give the same.
#[test]
fn a_server_is_at_home_on_a_small_disk_in_every_way_that_there_is_here() {
    for way in WAYS {
        let (mut place, disk) = match SmallDisk::make_so(way) {
            Ok(made) => made,
            Err(why) => {
                println!("one way of a small disk not run: {why}");
                continue;
            }
        };
        let server = place.start();
        create(&mut server.api(), &later());
        let free = disk.free();
        assert!(free < SIZE_MIB * MIB, "{way:?}: the server's data lie elsewhere");
        disk.fill(FULL);
        assert!(disk.free() <= FULL, "{way:?}: it is full");
        refuses_new_work(&mut server.api());
        disk.empty();
        assert!(disk.free() > FULL, "{way:?}");
    }
}

fn refuses_new_work(api: &mut Api) {
    until_true("new work is refused", || {
        let answer = api.post("/v1/jobs", &later());
        (answer.status, answer.code()) == (507, "storage_full")
    });
}

#[test]
fn a_full_file_system_refuses_new_work_lets_work_end_and_recovers_with_room() {
    let (mut place, disk) = match SmallDisk::make() {
        Ok(made) => made,
        Err(why) => return println!("not run, 1 of 2: {why}"),
    };
    let held = Arc::new(AtomicBool::new(true));
    let hold = held.clone();
    let sink = Sink::start(move |_| {
        until_true("the gate", || !hold.load(Ordering::SeqCst));
        Say::Status(200, "")
    });
    let mut server = place.start();
    let mut api = server.api();
    let running = create(&mut api, &json!({"target": {"type": "http", "url": sink.url("/")}}));
    let (waiting, kept) = (create(&mut api, &later()), create(&mut api, &later()));
    until_true("it runs", || state(&mut api, &running) == "running");

    disk.fill(FULL);
    refuses_new_work(&mut api);
    let cancel = api.act(&format!("/v1/jobs/{waiting}/cancel")).expect(200);
    assert_eq!(cancel["result"], "cancelled", "{cancel}");
    held.store(false, Ordering::SeqCst);
    let done = api.get(&format!("/v1/jobs/{running}/wait?timeout=60")).expect(200);
    assert_eq!(done["state"], "succeeded", "{done}");
    assert_eq!(server.stop(), Some(0), "a drain needs no room: {}", server.said());

    let server = place.start();
    let mut api = server.api();
    refuses_new_work(&mut api);
    disk.empty();
    let noop = json!({"target": {"type": "handler", "name": "noop"}});
    let id = create(&mut api, &noop);
    let done = api.get(&format!("/v1/jobs/{id}/wait?timeout=60")).expect(200);
    assert_eq!(done["state"], "succeeded", "{done}");
    let states = [&running, &waiting, &kept].map(|id| state(&mut api, id));
    assert_eq!(states, ["succeeded", "cancelled", "waiting"]);
}

#[test]
fn a_file_system_without_a_byte_left_ends_the_process_and_loses_nothing_acknowledged() {
    let (mut place, disk) = match SmallDisk::make() {
        Ok(made) => made,
        Err(why) => return println!("not run, 2 of 2: {why}"),
    };
    let mut server = place.start();
    let mut api = server.api();
    let jobs: Vec<String> = (0..60).map(|_| create(&mut api, &later())).collect();
    disk.fill(FULL);
    refuses_new_work(&mut api);
    let mut cancelled = 0;
    until_true("the end of the process", || {
        // The reserve, which the server gave up meanwhile, is taken away too.
        disk.fill(0);
        let Some(id) = jobs.get(cancelled) else {
            return server.has_ended();
        };
        let answer = api.call("POST", &format!("/v1/jobs/{id}/cancel"), &[], None);
        cancelled += usize::from(answer.is_ok_and(|answer| answer.status == 200));
        server.has_ended()
    });
    assert_eq!(server.exit_code(), Some(70), "{}", server.said());
    assert!(server.said().contains("the store is broken"), "{}", server.said());
    assert!(cancelled < jobs.len(), "it never broke");

    disk.empty();
    let server = place.start();
    let mut api = server.api();
    for (at, id) in jobs.iter().enumerate() {
        let state = state(&mut api, id);
        let fits = match at {
            at if at < cancelled => state == "cancelled",
            // The last one asked for may have been done.
            at if at == cancelled => state == "cancelled" || state == "waiting",
            _ => state == "waiting",
        };
        assert!(fits, "job {at} of {cancelled} cancelled: {state}");
    }
}
