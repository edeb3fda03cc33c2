//! A cell whose store was restored from a backup, and a node that outlived the store before it.
//!
//! Owns: PROTOCOL F11 where somebody remembers what the backup does not know. Next: `half_restored.rs` (a restore
//! that ends half-way), `workers.rs`.

use crate::api::Api;
use crate::certs::secured;
use crate::pace::{until, until_true};
use crate::server::{Place, Server};
use crate::split::store_on;
use serde_json::json;
use std::path::Path;
use std::process::Command;

const OWNER: &str = "scheduler,gateway,coordinator";

fn place(folder: &Path, node: &str, roles: &str, at: &str) -> Place {
    let shown = secured(folder, node, roles);
    let words = ["--roles", roles, "--store-at", at].into_iter();
    Place::new(&words.chain(shown.iter().map(String::as_str)).collect::<Vec<_>>()).telling("info")
}

fn owns(server: &Server) -> usize {
    let said = server.said();
    let count = |what: &str| said.lines().filter(|line| line.contains(what)).count();
    count("this node owns the shard") - count("releases the shard")
}

/// Runs a job on every shard, or nearly.
fn works(api: &mut Api) {
    let body = json!({"target": {"type": "handler", "name": "noop"}});
    let made: Vec<String> = (0..32)
        .map(|_| {
            until("a job to be taken", || {
                let answer = api.call("POST", "/v1/jobs", &[], Some(&body)).ok()?;
                (answer.status == 201).then(|| answer.body["id"].as_str().unwrap().to_owned())
            })
        })
        .collect();
    for id in made {
        until_true(&format!("job {id} to succeed"), || {
            let answer = api.call("GET", &format!("/v1/jobs/{id}"), &[], None);
            answer.is_ok_and(|answer| answer.body["state"] == "succeeded")
        });
    }
}

fn copy(what: &str, from: &Path, to: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    let done = command.args(["store", what]).args([from, to]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn f11_a_node_that_only_works_follows_the_owners_of_a_restored_cell() {
    let folder = tempfile::tempdir().unwrap();
    let (data, backup) = (folder.path().join("store"), folder.path().join("backup"));
    let (mut store, at) = store_on(folder.path(), "127.0.0.1:0".parse().unwrap(), true);
    let named = at.to_string();
    let mut first = place(folder.path(), "s1", OWNER, &named);
    let mut owner = first.start();
    let mut workers = place(folder.path(), "w", "worker", &named);
    let mut worker = workers.spawn();
    works(&mut owner.api());
    assert_eq!((owner.stop(), store.stop()), (Some(0), Some(0)));
    copy("backup", &data, &backup);

    // What the backup does not know: every shard has moved, and the worker has seen it.
    let (store, _) = store_on(folder.path(), at, true);
    let mut second = place(folder.path(), "s2", OWNER, &named);
    let (mut owner, other) = (first.start(), second.start());
    until_true("shards to move", || owns(&other) == 8);
    assert_eq!(owner.stop(), Some(0));
    until_true("the others to move", || owns(&other) == 16);
    works(&mut other.api());
    other.kill();
    store.kill();
    std::fs::rename(&data, folder.path().join("lost")).unwrap();
    copy("restore", &backup, &data);

    let (_store, _) = store_on(folder.path(), at, true);
    let owner = first.start();
    works(&mut owner.api());
    assert!(!worker.has_ended(), "{}", worker.said());
    assert_eq!(worker.stop(), Some(0), "{}", worker.said());
}
