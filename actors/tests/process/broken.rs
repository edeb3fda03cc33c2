//! A store that breaks while the server runs: it acknowledges nothing more and the process says so and ends.
//!
//! Owns: the exit code, and that nothing acknowledged is lost. Files may suddenly not grow any more, by a limit
//! that is put on the running process, which needs no rights. Next: `../../src/process/exit.rs`.

use crate::pace::until_true;
use crate::server::Place;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;

/// Above what the log and the mark need, below a journal with work in it.
const FILE_BYTES_MAX: u64 = 640 << 10;

#[test]
fn a_store_that_breaks_ends_the_process_with_70_and_keeps_what_it_acknowledged() {
    // A write beyond the limit fails instead of ending the process by a signal.
    let without_signal = ["sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh"];
    let mut place = Place::new(&[]).started_by(&without_signal);
    let mut server = place.start();
    let mut api = server.api();
    let body = json!({"target": {"type": "handler", "name": "noop"}, "delay": "1h", "payload": "x".repeat(20_000)});
    let limit = Rlimit {
        current: Some(FILE_BYTES_MAX),
        maximum: Some(FILE_BYTES_MAX),
    };
    let pid = i32::try_from(server.pid()).ok().and_then(Pid::from_raw);
    prlimit(pid, Resource::Fsize, limit).unwrap();
    let mut acknowledged = Vec::new();
    until_true("the end of the process", || {
        match api.call("POST", "/v1/jobs", &[], Some(&body)) {
            Ok(answer) if answer.status == 201 => acknowledged.push(answer.body["id"].as_str().unwrap().to_owned()),
            Ok(answer) => assert_eq!(answer.status, 503, "{}", answer.body),
            Err(_) => {}
        }
        server.has_ended()
    });
    assert_eq!(server.exit_code(), Some(70), "{}", server.said());
    let said = server.said();
    for word in ["the store is broken", "nothing more is acknowledged", "(exit code 70)"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(!acknowledged.is_empty(), "it broke at once: {said}");
    let server = place.start();
    let mut api = server.api();
    for id in &acknowledged {
        assert_eq!(api.get(&format!("/v1/jobs/{id}")).expect(200)["state"], "waiting");
    }
}
