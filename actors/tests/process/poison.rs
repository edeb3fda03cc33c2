//! A rule whose evaluation ends the process (PROTOCOL F9): the server comes back without a human, with
//! that schedule aside and all others firing.
//!
//! Owns: the demonstration on the real binary. Only with the feature `test-switches`.

use crate::api::Api;
use crate::pace::until;
use crate::server::{Place, Server};
use serde_json::{Value, json};

fn create(api: &mut Api, name: &str) {
    let job = json!({"target": {"type": "handler", "name": "noop"}});
    let body = json!({"name": name, "every": "200ms", "job": job});
    api.post("/v1/schedules", &body).expect(201);
}

fn show(server: &Server, name: &str) -> Value {
    server.api().get(&format!("/v1/schedules/{name}")).expect(200)
}

fn fires(server: &Server, name: &str) {
    let fired = || show(server, name)["fired"].as_u64().unwrap();
    let before = fired();
    until(name, || (fired() > before).then_some(()));
}

/// Started again and again, as a supervisor does, until it is ready.
fn start_until_ready(place: &mut Place) -> (Server, usize) {
    for deaths in 0..10 {
        let mut server = place.spawn();
        let is_ready = until("a server that is ready or dead", || {
            if server.has_ended() {
                return Some(false);
            }
            let answer = server.try_api()?.call("GET", "/readyz", &[], None).ok()?;
            (answer.status == 200).then_some(true)
        });
        if is_ready {
            return (server, deaths);
        }
        assert_eq!(server.exit_code(), Some(71), "{}", server.said());
    }
    panic!("it never lived");
}

#[test]
fn f9_a_rule_that_panics_is_put_aside_after_a_few_starts_and_the_others_fire() {
    let mut place = Place::new(&[]).with_switches();
    let mut server = place.start();
    let names = ["bad", "good", "other", "fourth"];
    for name in names {
        create(&mut server.api(), name);
        fires(&server, name);
    }
    let switch = place.switches().join("panic-schedule-bad");
    std::fs::write(&switch, "").unwrap();
    assert_eq!(server.exit_code(), Some(71), "{}", server.said());

    let (mut server, deaths) = start_until_ready(&mut place);
    assert_eq!(deaths, 3, "once among all, twice alone");
    for name in ["good", "other", "fourth"] {
        fires(&server, name);
        assert_eq!(show(&server, name)["status"], "active");
    }
    let bad = show(&server, "bad");
    assert_eq!(bad["status"], "quarantined", "{bad}");
    let why = "the process ended 2 times while it evaluated this schedule alone";
    assert_eq!(bad["quarantined"], why);
    let fates = server.api().get("/v1/schedules/bad/fates").expect(200);
    let last = fates["items"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["fate"], "quarantined", "{fates}");
    let aside = server.api().get("/v1/quarantine").expect(200);
    assert_eq!(aside["items"][0]["schedule"], "bad", "{aside}");
    assert_eq!(
        aside["items"].as_array().unwrap().len(),
        1,
        "nobody else is held: {aside}"
    );
    let metrics = server.api().get("/metrics").expect(200).to_string();
    assert!(metrics.contains("fencepost_schedules_quarantined"), "{metrics}");

    server.kill();
    let (again, deaths) = start_until_ready(&mut place);
    server = again;
    assert_eq!(deaths, 0, "it stays aside");
    std::fs::remove_file(&switch).unwrap();
    server.api().act("/v1/schedules/bad/resume").expect(200);
    fires(&server, "bad");
    assert!(
        server.api().get("/v1/quarantine").expect(200)["items"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}
