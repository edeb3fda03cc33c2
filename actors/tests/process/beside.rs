//! A command that outlives its server for the grace that it was promised: its next attempt does not run beside it.
//!
//! Owns: the command that hears no TERM. Next: `worker_killer.rs`.

use crate::pace::until;
use crate::server::Place;
use serde_json::{Value, json};
use std::path::Path;

/// What it wrote of itself, in order: its attempt and what it did.
fn told(log: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let words = text.lines().filter_map(|line| line.split_once(' '));
    words
        .map(|(attempt, what)| (attempt.to_owned(), what.to_owned()))
        .collect()
}

#[test]
fn a_command_that_hears_no_term_is_not_run_beside_itself_after_a_kill() {
    let mut place = Place::new(&[]);
    let log = place.path().join("log");
    // The first attempt goes on until it is killed, each later one ends.
    let script = format!(
        "trap '' TERM; a=$FENCEPOST_ATTEMPT; echo \"$a starts\" >> {0}
         while [ $a = 1 ]; do echo \"$a lives\" >> {0}; sleep 0.02; done",
        log.display()
    );
    let body = json!({
        "target": {"type": "command", "argv": [script], "shell": true, "grace": "2s"},
        "retry": {"attempts": 3, "backoff": "1ms", "cap": "1ms"},
    });
    let server = place.start();
    let made = server.api().post("/v1/jobs", &body).expect(201);
    until("signs of life", || told(&log).get(5).cloned());
    server.kill();
    let before = told(&log).len();
    let mut server = place.start();
    let id = made["id"].as_str().unwrap();
    let job: Value = server.api().get(&format!("/v1/jobs/{id}/wait?timeout=60")).expect(200);
    assert_eq!(
        (&job["state"], &job["attempt_count"]),
        (&json!("succeeded"), &json!(2)),
        "{job}"
    );
    let told = told(&log);
    let second = told.iter().position(|(attempt, _)| attempt == "2").unwrap();
    assert!(
        told[second..].iter().all(|(attempt, _)| attempt == "2"),
        "both lived: {told:?}"
    );
    assert!(second > before, "the first outlived its server for its grace");
    assert_eq!(server.stop(), Some(0));
}
