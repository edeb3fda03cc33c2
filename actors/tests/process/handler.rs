//! A program of a user's own that serves with a Rust handler: the example of the guide on targets.
//!
//! Owns: the way in for handlers. Next: `../../examples/handler.rs`, `../../src/targets/handler.rs`.

use crate::pace::until;
use crate::server::Server;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Built by a plain `cargo test`, beside the binary.
fn example() -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_fencepost"));
    let built = binary.with_file_name("examples").join("handler");
    assert!(built.exists(), "run first: cargo build -p fencepost --example handler");
    built
}

#[test]
fn a_program_of_a_users_own_serves_its_handler_and_supervises_commands() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut command = Command::new(example());
    command.args([
        "serve",
        "--allow-commands",
        "--log-level",
        "warn",
        "--listen",
        "127.0.0.1:0",
        "--data",
    ]);
    command.arg(&data);
    let mut server = Server::start(command, folder.path().join("said"), data.join("token"));
    let mut api = server.api();
    let lasting = json!({"target": {"type": "handler", "name": "shout"}, "payload": "a".repeat(38)});
    let id = api.post("/v1/jobs", &lasting).expect(201)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut told = Vec::new();
    until("the job to end", || {
        let job = api.get(&format!("/v1/jobs/{id}")).expect(200);
        told.extend(job["current"]["progress"].as_str().map(str::to_owned));
        job["ended_at"].is_string().then_some(())
    });
    told.dedup();
    let letters = |text: &String| text.strip_suffix(" letters of 40").unwrap().parse::<u32>().unwrap();
    let told: Vec<u32> = told.iter().map(letters).collect();
    assert!(!told.is_empty() && told.is_sorted(), "{told:?}");
    let mut outcome = |body: Value| {
        let made = api.post("/v1/jobs", &body).expect(201);
        let id = made["id"].as_str().unwrap().to_owned();
        until("the job to end", || {
            let job = api.call("GET", &format!("/v1/jobs/{id}"), &[], None).ok()?.expect(200);
            job["ended_at"].is_string().then_some(job)
        })
    };
    let shouted = outcome(json!({"target": {"type": "handler", "name": "shout"}, "payload": "hello"}));
    assert_eq!(shouted["state"], "succeeded", "{shouted}");
    let ran = outcome(json!({"target": {"type": "command", "argv": ["true"]}, "retry": {"attempts": 1}}));
    assert_eq!(ran["state"], "succeeded", "its supervisor is this program: {ran}");
    assert_eq!(server.stop(), Some(0), "{}", server.said());
}
