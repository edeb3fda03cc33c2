//! A cell of four processes under load, of which one at random is killed or frozen, again and again.
//!
//! Owns: the cycles. `FENCEPOST_CELL_CYCLES` sets their number (30 kills and 30 freezes), `FENCEPOST_CELL_SEED` repeats the
//! choices of a run. Must never: ask the product whether it did right: acknowledged jobs are the clients' notes, effects
//! the sink's. Next: `cluster.rs`, `kill/` for one server.

use crate::api::Api;
use crate::certs::secured;
use crate::pace::{self, until};
use crate::server::{Place, Server};
use crate::sink::{Guarded, Say, Sink};
use crate::split::{ROLES, store_on};
use fencepost::guard::Answer;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

const CYCLES: u64 = 30;
const SEED: u64 = 20_261_130;
const NODES: usize = 3;
const CLIENTS: usize = 3;
/// Length of a node's session and of an attempt's lease.
const LEASE: Duration = Duration::from_secs(1);

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// A line of chance that repeats with its seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }
}

/// Effects by key, and instants that a schedule was fired for.
#[derive(Default)]
struct Effects {
    applied: Mutex<BTreeMap<String, u32>>,
    fired_for: Mutex<BTreeMap<String, u32>>,
}

struct Cell {
    folder: tempfile::TempDir,
    at: SocketAddr,
    store: Option<Server>,
    places: Vec<Place>,
    nodes: Vec<Option<Server>>,
    sink: Sink,
    effects: Arc<Effects>,
}

impl Cell {
    fn start() -> Cell {
        let folder = tempfile::tempdir().unwrap();
        let (store, at) = store_on(folder.path(), "127.0.0.1:0".parse().unwrap(), true);
        let effects = Arc::new(Effects::default());
        let (guarded, noted) = (Guarded::new(), effects.clone());
        let sink = Sink::start(move |arrival| {
            if matches!(guarded.apply(arrival), Answer::Applied(_)) {
                let list = match arrival.path.as_str() {
                    "/tick" => &noted.fired_for,
                    _ => &noted.applied,
                };
                let key = match arrival.path.as_str() {
                    "/tick" => arrival.scheduled_for.clone(),
                    _ => arrival.key.clone(),
                };
                *list.lock().unwrap().entry(key).or_default() += 1;
            }
            Say::Status(200, "")
        });
        let mut cell = Cell {
            folder,
            at,
            store: Some(store),
            places: Vec::new(),
            nodes: Vec::new(),
            sink,
            effects,
        };
        for number in 0..NODES {
            let mut place = cell.place(number);
            cell.nodes.push(Some(place.start()));
            cell.places.push(place);
        }
        cell
    }

    fn place(&self, number: usize) -> Place {
        let at = self.at.to_string();
        let shown = secured(self.folder.path(), &format!("node-{number}"), ROLES);
        let words = ["--roles", ROLES, "--store-at", &at, "--lease", "1s"].into_iter();
        Place::new(&words.chain(shown.iter().map(String::as_str)).collect::<Vec<_>>())
    }

    fn kill(&mut self, victim: usize) {
        let slot = self.nodes.get_mut(victim).unwrap_or(&mut self.store);
        slot.take().unwrap().kill();
    }

    fn start_again(&mut self, victim: usize) {
        match self.places.get_mut(victim) {
            Some(place) => self.nodes[victim] = Some(place.spawn()),
            None => self.store = Some(store_on(self.folder.path(), self.at, true).0),
        }
    }

    fn freeze(&self, victim: usize, is_frozen: bool) {
        let slot = self.nodes.get(victim).unwrap_or(&self.store);
        slot.as_ref().unwrap().freeze(is_frozen);
    }

    fn apis(&self) -> Vec<Api> {
        let nodes = self.nodes.iter().map(|node| node.as_ref().unwrap().api());
        nodes.collect()
    }
}

/// Clients that make jobs, each under a key, at whichever node takes them.
struct Load {
    stopping: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Vec<String>>>,
    longest: Arc<Mutex<Vec<Duration>>>,
}

impl Load {
    fn start(cell: &Cell) -> Load {
        let (stopping, longest) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let client = |number: usize| {
            let (stopping, longest, url) = (stopping.clone(), longest.clone(), cell.sink.url("/effect"));
            let mut apis = cell.apis();
            std::thread::spawn(move || {
                let mut made = Vec::new();
                while !stopping.load(Ordering::SeqCst) {
                    let key = format!("{number}-{}", made.len());
                    let (id, took) = pace::took(|| create(&mut apis, &key, &url));
                    longest.lock().unwrap().push(took);
                    made.push(id);
                    pace::reach(pace::from_now(Duration::from_millis(10)));
                }
                made
            })
        };
        Load {
            clients: (0..CLIENTS).map(client).collect(),
            stopping,
            longest,
        }
    }

    /// The acknowledged jobs, and how long the slowest acknowledgements took.
    fn stop(self) -> (Vec<String>, Vec<Duration>) {
        self.stopping.store(true, Ordering::SeqCst);
        let made = self
            .clients
            .into_iter()
            .flat_map(|client| client.join().unwrap())
            .collect();
        let mut longest = std::mem::take(&mut *self.longest.lock().unwrap());
        longest.sort();
        (made, longest)
    }
}

/// Asks one node after the other until the job is acknowledged; the key makes that safe.
fn create(apis: &mut [Api], key: &str, url: &str) -> String {
    let body = json!({"target": {"type": "http", "url": url}, "retry": {"attempts": 100, "backoff": "100ms"}});
    let mut turn = 0;
    until(&format!("{key} to be taken"), || {
        turn = (turn + 1) % apis.len();
        let answer = apis[turn]
            .call("POST", "/v1/jobs", &[("Idempotency-Key", key)], Some(&body))
            .ok()?;
        let is_taken = matches!(answer.status, 200 | 201);
        assert!(
            is_taken || matches!(answer.status, 429 | 503),
            "{}: {}",
            answer.status,
            answer.body
        );
        is_taken.then(|| answer.body["id"].as_str().unwrap().to_owned())
    })
}

fn make_schedule(cell: &Cell) {
    let body = json!({
        "name": "tick", "every": "1s", "misfire": "all",
        "job": {"target": {"type": "http", "url": cell.sink.url("/tick")}, "retry": {"attempts": 100, "backoff": "100ms"}},
    });
    let mut apis = cell.apis();
    apis[0].post("/v1/schedules", &body).expect(201);
}

/// Every acknowledged job has its effect, and none has two; every second was fired for, and once.
fn judge(cell: &Cell, made: &[String]) {
    let mut apis = cell.apis();
    for id in made {
        let mut turn = 0;
        until(&format!("job {id} to succeed"), || {
            turn = (turn + 1) % apis.len();
            let answer = apis[turn].call("GET", &format!("/v1/jobs/{id}"), &[], None).ok()?;
            (answer.status == 200 && answer.body["state"] == "succeeded").then_some(())
        });
    }
    let applied = cell.effects.applied.lock().unwrap();
    let lost: Vec<_> = made.iter().filter(|id| !applied.contains_key(*id)).collect();
    assert!(lost.is_empty(), "acknowledged, and without effect: {lost:?}");
    let twice: Vec<_> = applied.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "applied twice: {twice:?}");
    assert_eq!(apis[0].post("/v1/schedules/tick/pause", &json!({})).status, 200);
    let counts = apis[0].get("/v1/schedules/tick").expect(200);
    let fired = usize::try_from(counts["fired"].as_u64().unwrap()).unwrap();
    until("every fire to have its effect", || {
        (cell.effects.fired_for.lock().unwrap().len() == fired).then_some(())
    });
    let fired_for = cell.effects.fired_for.lock().unwrap();
    assert!(
        fired_for.values().all(|times| *times == 1),
        "an occurrence had two effects"
    );
    println!(
        "figure: {} jobs, {fired} occurrences, none lost, none twice",
        made.len()
    );
}

/// The slowest acknowledgements tell how long a part of the cell was nobody's.
fn tell(what: &str, longest: &[Duration]) {
    let at = |part: usize| longest[longest.len() - 1 - longest.len() / part].as_millis();
    let (p50, p99, most) = (at(2), at(100), longest[longest.len() - 1].as_millis());
    println!("figure: {what}: acknowledgements p50 {p50} ms, p99 {p99} ms, longest {most} ms; lease {LEASE:?}");
}

#[test]
fn processes_that_are_killed_at_random_lose_nothing_and_repeat_nothing() {
    let seed = number("FENCEPOST_CELL_SEED", SEED);
    let mut chance = Chance(seed);
    let mut cell = Cell::start();
    make_schedule(&cell);
    let load = Load::start(&cell);
    for _ in 0..number("FENCEPOST_CELL_CYCLES", CYCLES) {
        pace::reach(pace::from_now(chance.millis(50, 800)));
        // The last one is the store.
        let victim = usize::try_from(chance.below(NODES as u64 + 1)).unwrap();
        cell.kill(victim);
        pace::reach(pace::from_now(chance.millis(0, 1_500)));
        cell.start_again(victim);
    }
    let (made, longest) = load.stop();
    tell(&format!("seed {seed}, kills"), &longest);
    judge(&cell, &made);
}

#[test]
fn processes_that_are_frozen_at_random_lose_nothing_and_repeat_nothing() {
    let seed = number("FENCEPOST_CELL_SEED", SEED) + 1;
    let mut chance = Chance(seed);
    let cell = Cell::start();
    make_schedule(&cell);
    let load = Load::start(&cell);
    for _ in 0..number("FENCEPOST_CELL_CYCLES", CYCLES) {
        pace::reach(pace::from_now(chance.millis(50, 500)));
        let victim = usize::try_from(chance.below(NODES as u64)).unwrap();
        cell.freeze(victim, true);
        let millis = u64::try_from(LEASE.as_millis()).unwrap();
        pace::reach(pace::from_now(chance.millis(millis / 2, millis * 4)));
        cell.freeze(victim, false);
    }
    let (made, longest) = load.stop();
    tell(&format!("seed {seed}, freezes"), &longest);
    judge(&cell, &made);
}
