//! Faults switched on inside a running server: an actor that panics, a disk that is full.
//!
//! Owns: what the process does then. Only with the feature `test-switches`. Next:
//! `../../src/process/switches.rs`.

use crate::api::Api;
use crate::closed_shard::quarantine_rows;
use crate::pace::{self, until_true};
use crate::server::Place;
use crate::sink::{Say, Sink};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn noop() -> Value {
    json!({"target": {"type": "handler", "name": "noop"}})
}

fn create(api: &mut Api, body: &Value) -> String {
    let made = api.post("/v1/jobs", body).expect(201);
    made["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_panic_in_an_actor_ends_the_process_with_its_own_code_and_loses_nothing() {
    for part in ["shard", "worker"] {
        let mut place = Place::new(&[]).with_switches();
        let mut server = place.start();
        let mut api = server.api();
        let mut later = noop();
        later["delay"] = json!("1h");
        let kept = create(&mut api, &later);
        let switch = place.switches().join(format!("panic-{part}"));
        std::fs::write(&switch, "").unwrap();
        let _ = api.call("POST", "/v1/jobs", &[], Some(&noop()));
        assert_eq!(server.exit_code(), Some(71), "{part}: {}", server.said());
        let said = server.said();
        assert!(
            said.contains("it stops rather than go on half (exit code 71)"),
            "{part}: {said}"
        );
        std::fs::remove_file(&switch).unwrap();
        let server = place.start();
        let job = server.api().get(&format!("/v1/jobs/{kept}")).expect(200);
        assert_eq!(job["state"], "waiting", "{job}");
    }
}

/// A disk with this much room.
fn room(place: &Place, bytes: u64) {
    let (fresh, file) = (place.switches().join("fresh"), place.switches().join("free-bytes"));
    std::fs::write(&fresh, bytes.to_string()).unwrap();
    std::fs::rename(fresh, file).unwrap();
}

#[test]
fn a_full_disk_refuses_new_work_and_lets_what_is_there_end() {
    let held = Arc::new(AtomicBool::new(true));
    let hold = held.clone();
    let sink = Sink::start(move |_| {
        until_true("the gate", || !hold.load(Ordering::SeqCst));
        Say::Status(200, "")
    });
    let mut place = Place::new(&[]).with_switches();
    let mut server = place.start();
    let mut api = server.api();
    let running = create(&mut api, &json!({"target": {"type": "http", "url": sink.url("/")}}));
    let mut later = noop();
    later["delay"] = json!("1h");
    let waiting = create(&mut api, &later);
    let schedule = json!({"name": "tick", "every": "100ms", "job": noop()});
    api.post("/v1/schedules", &schedule).expect(201);
    let gone = json!({"name": "gone", "every": "1h", "job": noop()});
    api.post("/v1/schedules", &gone).expect(201);
    until_true("it runs", || {
        api.get(&format!("/v1/jobs/{running}")).expect(200)["state"] == "running"
    });

    room(&place, 1_000);
    refuses_new_work(&mut api);
    let cancel = api.act(&format!("/v1/jobs/{waiting}/cancel")).expect(200);
    assert_eq!(cancel["result"], "cancelled", "{cancel}");
    held.store(false, Ordering::SeqCst);
    let done = api.get(&format!("/v1/jobs/{running}/wait?timeout=60")).expect(200);
    assert_eq!(done["state"], "succeeded", "{done}");
    api.act("/v1/schedules/tick/pause").expect(200);
    let deleted = api.must("DELETE", "/v1/schedules/gone", &[], None);
    assert!(deleted.status == 200 || deleted.status == 204, "{}", deleted.body);

    room(&place, u64::MAX);
    let id = create(&mut api, &noop());
    assert_eq!(
        api.get(&format!("/v1/jobs/{id}/wait?timeout=60")).expect(200)["state"],
        "succeeded"
    );
    api.act("/v1/schedules/tick/resume").expect(200);
    let fired = |api: &mut Api| api.get("/v1/schedules/tick").expect(200)["fired"].as_u64().unwrap();
    let before = fired(&mut api);
    until_true("fires with room again", || fired(&mut api) > before);

    room(&place, 1_000);
    refuses_new_work(&mut api);
    server.terminate();
    assert_eq!(server.exit_code(), Some(0), "a drain needs no room: {}", server.said());
}

fn refuses_new_work(api: &mut Api) {
    let refused = api.post("/v1/jobs", &noop());
    assert_eq!(
        (refused.status, refused.code()),
        (507, "storage_full"),
        "{}",
        refused.body
    );
    let other = json!({"name": "other", "every": "1s", "job": noop()});
    assert_eq!(api.post("/v1/schedules", &other).status, 507);
    let batch = api
        .post("/v1/jobs:batch", &json!({"jobs": [noop(), noop()]}))
        .expect(200);
    assert_eq!(
        (&batch["created"], &batch["refused"]),
        (&json!(0), &json!(2)),
        "{batch}"
    );
}

#[test]
fn f9_a_stop_while_a_full_disk_holds_up_what_is_due_is_no_young_death() {
    let mut place = Place::new(&[]).with_switches();
    let server = place.start();
    let schedule = json!({"name": "tick", "every": "100ms", "job": noop()});
    server.api().post("/v1/schedules", &schedule).expect(201);
    room(&place, 1_000);
    // Or nothing is due yet when the next owner looks, and it is proven at once.
    pace::reach(pace::from_now(Duration::from_millis(500)));
    server.kill();
    for is_told in [false, true] {
        let mut server = place.start();
        refuses_new_work(&mut server.api());
        let left: &[&str] = match is_told {
            true => {
                assert_eq!(server.stop(), Some(0), "{}", server.said());
                &[]
            }
            false => {
                server.kill();
                &["owner"]
            }
        };
        assert_eq!(quarantine_rows(&place.data()), left, "told to stop: {is_told}");
    }
}
