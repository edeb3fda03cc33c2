//! A cell of two versions: the one before is the same binary, told to speak the protocol and to know the rows of
//! that version only (`older` in `../../src/process/switches.rs`).
//!
//! Owns: a rolling upgrade node by node, the way back while it is not finished, and who is refused afterwards. Only
//! with the feature `test-switches`. Next: `../../src/node/level.rs`, docs/guides/upgrade.md.

use crate::api::Api;
use crate::pace::{until, until_true};
use crate::server::{Place, Server};
use crate::sink::{Guarded, Say, Sink};
use crate::split::{ROLES, store_command};
use fencepost::guard::Answer;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

fn store_of(folder: &Path, listen: SocketAddr, is_older: bool) -> Command {
    let switches = folder.join(format!("switches-{is_older}"));
    std::fs::create_dir_all(&switches).unwrap();
    if is_older {
        std::fs::write(switches.join("older"), "").unwrap();
    }
    let mut command = store_command(folder, listen);
    command.env("FENCEPOST_TEST_SWITCHES", switches);
    command
}

/// The store, nodes beside it, and a guarded target.
struct Cell {
    folder: tempfile::TempDir,
    store: Option<Server>,
    at: SocketAddr,
    sink: Sink,
    applied: Arc<Mutex<BTreeMap<String, u32>>>,
    made: Vec<String>,
}

impl Cell {
    fn start(is_older: bool) -> Cell {
        let folder = tempfile::tempdir().unwrap();
        let command = store_of(folder.path(), "127.0.0.1:0".parse().unwrap(), is_older);
        let (store, at) = Server::start_store(command, folder.path().join("store-said"));
        let applied: Arc<Mutex<BTreeMap<String, u32>>> = Arc::default();
        let (guarded, effects) = (Guarded::new(), applied.clone());
        let sink = Sink::start(move |arrival| {
            if matches!(guarded.apply(arrival), Answer::Applied(_)) {
                *effects.lock().unwrap().entry(arrival.key.clone()).or_default() += 1;
            }
            Say::Status(200, "")
        });
        Cell {
            folder,
            store: Some(store),
            at,
            sink,
            applied,
            made: Vec::new(),
        }
    }

    /// The store's folder goes to a process of this version, at the same address.
    fn hand_store_to(&mut self, is_older: bool) {
        let mut store = self.store.take().unwrap();
        assert_eq!(store.stop(), Some(0), "{}", store.said());
        let command = store_of(self.folder.path(), self.at, is_older);
        let (store, _) = Server::start_store(command, self.folder.path().join("store-said"));
        self.store = Some(store);
    }

    /// It keeps keys for an hour, which rows of the version before have no place for.
    fn place(&self, node: &str, is_older: bool) -> Place {
        let secret = self.folder.path().join("store/mesh-secret").display().to_string();
        let at = self.at.to_string();
        let words = ["--roles", ROLES, "--store-at", &at, "--mesh-secret", &secret];
        let kept = ["--node", node, "--key-retention", "1h"];
        let place = Place::new(&[&words[..], &kept].concat())
            .telling("info")
            .with_switches();
        if is_older {
            std::fs::write(place.switches().join("older"), "").unwrap();
        }
        place
    }

    /// Makes jobs and sees them done; the nodes that did them.
    fn work(&mut self, api: &mut Api) -> BTreeSet<String> {
        let body = json!({"target": {"type": "http", "url": self.sink.url("/")}, "retry": {"attempts": 50}});
        let mut nodes = BTreeSet::new();
        for _ in 0..12 {
            let key = format!("k{}", self.made.len());
            let id = until(&format!("{key} to be taken"), || {
                let headers = [("Idempotency-Key", key.as_str())];
                let answer = api.call("POST", "/v1/jobs", &headers, Some(&body)).ok()?;
                let is_taken = matches!(answer.status, 200 | 201);
                assert!(is_taken || matches!(answer.status, 429 | 503), "{}", answer.body);
                is_taken.then(|| answer.body["id"].as_str().unwrap().to_owned())
            });
            self.made.push(id);
        }
        for id in self.made.iter().rev().take(12) {
            nodes.insert(done(api, id));
        }
        nodes
    }

    /// Everything that was ever made is there, readable, and was done once.
    fn check(&self, api: &mut Api) {
        for id in &self.made {
            done(api, id);
        }
        let applied = self.applied.lock().unwrap();
        assert_eq!(applied.len(), self.made.len(), "nothing acknowledged is lost");
        assert!(applied.values().all(|times| *times == 1), "and nothing is done twice");
        let aside = until("the list", || {
            let answer = api.get("/v1/quarantine");
            (answer.status == 200).then_some(answer.body)
        });
        assert_eq!(aside["items"], json!([]), "every version reads every row");
    }
}

/// Waits until it has succeeded; the node that did it.
fn done(api: &mut Api, id: &str) -> String {
    until_true(&format!("job {id} to succeed"), || {
        let answer = api.get(&format!("/v1/jobs/{id}"));
        answer.status == 200 && answer.body["state"] == "succeeded"
    });
    let page = until("its attempts", || {
        let answer = api.get(&format!("/v1/jobs/{id}/attempts"));
        (answer.status == 200).then_some(answer.body)
    });
    let worker = page["items"][0]["worker"].as_str().unwrap();
    worker.split('/').next().unwrap().to_owned()
}

fn owns(server: &Server) -> usize {
    let said = server.said();
    let count = |what: &str| said.lines().filter(|line| line.contains(what)).count();
    count("this node owns the shard") - count("releases the shard")
}

fn levels(api: &mut Api) -> Value {
    until("the levels", || {
        let answer = api.get("/v1/upgrade");
        (answer.status == 200).then_some(answer.body)
    })
}

fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => {
                found.insert(path.clone(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn nodes_of_two_versions_share_a_cell_and_each_can_go_back_until_the_upgrade_is_finished() {
    let mut cell = Cell::start(true);
    let (mut place_a, mut place_b) = (cell.place("a", true), cell.place("b", false));
    let mut server_a = place_a.start();
    let mut api_a = server_a.api();
    assert_eq!(cell.work(&mut api_a), BTreeSet::from(["a".to_owned()]));

    // A node of the new version joins; both own shards and both do jobs.
    let server_b = place_b.start();
    let mut api_b = server_b.api();
    until_true("both own shards", || owns(&server_a) == 8 && owns(&server_b) == 8);
    let mut nodes = cell.work(&mut api_a);
    nodes.extend(cell.work(&mut api_b));
    assert_eq!(nodes.len(), 2, "done by both: {nodes:?}");

    // The store goes to the new version, and back, with both nodes at work.
    cell.hand_store_to(false);
    cell.work(&mut api_a);
    cell.work(&mut api_b);
    cell.hand_store_to(true);
    cell.work(&mut api_a);
    cell.check(&mut api_b);
    cell.hand_store_to(false);
    cell.work(&mut api_b);

    // While one node is of the version before, the upgrade cannot be finished.
    let of = |node: &str, level: u16| json!({"node": node, "level_known": level});
    until_true("the store's node is seen to be new", || {
        let said = levels(&mut api_b);
        said["level_of_store"] == 2 && said["nodes"] == json!([of("a", 1), of("b", 2)])
    });
    let refused = api_b.post("/v1/upgrade/finish", &json!({}));
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert!(
        refused.body["detail"].as_str().unwrap().contains("a;"),
        "{}",
        refused.body
    );
    assert_eq!(levels(&mut api_b)["level"], 1);
    let said = |api: &mut Api| {
        let facts = api.get("/v1/facts").body;
        (facts["level"].as_u64(), facts["level_known"].as_u64())
    };
    assert_eq!(
        (said(&mut api_a), said(&mut api_b)),
        ((Some(1), Some(1)), (Some(1), Some(2)))
    );

    assert_eq!(server_a.stop(), Some(0), "{}", server_a.said());
    std::fs::remove_file(place_a.switches().join("older")).unwrap();
    let server_a = place_a.start();
    until_true("both own shards again", || owns(&server_a) == 8 && owns(&server_b) == 8);
    let mut api_a = server_a.api();
    cell.work(&mut api_a);
    let raised = until("the upgrade to be finished", || {
        let answer = api_a.post("/v1/upgrade/finish", &json!({}));
        (answer.status == 200).then_some(answer.body)
    });
    assert_eq!(raised["level"], 2, "{raised}");
    cell.work(&mut api_a);
    cell.work(&mut api_b);
    cell.check(&mut api_a);
    assert_eq!(levels(&mut api_b)["level"], 2);
    until_true("both know it", || {
        said(&mut api_a) == (Some(2), Some(2)) && said(&mut api_b) == (Some(2), Some(2))
    });

    the_version_before_is_refused(cell, (place_a, server_a));
}

/// By name: at the store's door, and with the store's folder.
fn the_version_before_is_refused(mut cell: Cell, (mut place_a, mut server_a): (Place, Server)) {
    assert_eq!(server_a.stop(), Some(0), "{}", server_a.said());
    std::fs::write(place_a.switches().join("older"), "").unwrap();
    let server_a = place_a.spawn();
    until_true("the older node is refused", || {
        server_a.said().contains("upgrade one version at a time")
    });
    assert_eq!(owns(&server_a), 0);
    server_a.kill();
    let mut store = cell.store.take().unwrap();
    assert_eq!(store.stop(), Some(0), "{}", store.said());
    let folder = cell.folder.path();
    let before = files(&folder.join("store"));
    let refused = store_of(folder, cell.at, true).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("[store_newer]"), "{said}");
    assert_eq!(files(&folder.join("store")), before, "nothing was written");
}
