//! A cell of processes under certificates: the store, the nodes around it, and a guarded target.
//!
//! Owns: starting them, and making jobs until they are acknowledged. Must never: ask the product whether it did
//! right. Next: `effects.rs` (what the target saw), `load.rs` (clients), `net.rs` (what lies between the processes),
//! `record.rs` (what the simulator's checkers judge), `verdict.rs`.

mod effects;
mod load;
mod net;
mod record;
mod verdict;

use effects::TICK;

pub use effects::Effects;
pub use load::{Asked, Load};
pub use net::{Net, Way};

use crate::api::Api;
use crate::certs::secured;
use crate::pace::{took, until, until_true, wall_micros};
use crate::server::{Place, Server};
use crate::sink::{Say, Sink};
use crate::split::store_on;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Roles of a node that owns shards and runs nothing.
pub const OWNER: &str = "scheduler,gateway,coordinator";
/// Length of a node's session, and of an attempt's lease where a test sets it.
pub const LEASE: Duration = Duration::from_secs(1);

/// When a schedule that is to end ends: late enough for the edit to come before.
const SOON_MICROS: i64 = 3_000_000;

/// The number in a variable, or the usual one.
pub fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |text| text.parse().unwrap())
}

/// A line of chance that repeats with its seed.
pub struct Chance(u64);

impl Chance {
    /// Of `FENCEPOST_CELL_SEED`, and of one test alone.
    pub fn of_run(test: u64) -> Chance {
        let seed = number("FENCEPOST_CELL_SEED", 20_261_130);
        println!("figure: seed {seed}");
        Chance(seed.wrapping_add(test))
    }

    pub fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    pub fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below((to - from) as usize) as u64)
    }
}

/// The store, and the target.
pub struct Cell {
    folder: tempfile::TempDir,
    store: Option<Server>,
    at: SocketAddr,
    pub sink: Sink,
    pub effects: Arc<Effects>,
}

impl Cell {
    /// Its target answers at once.
    pub fn start() -> Cell {
        Cell::with(Effects::open())
    }

    /// Its target answers nobody before its gate is opened.
    pub fn shut() -> Cell {
        Cell::with(Effects::shut())
    }

    pub fn with(effects: Effects) -> Cell {
        let folder = tempfile::tempdir().unwrap();
        let (store, at) = store_on(folder.path(), "127.0.0.1:0".parse().unwrap(), true);
        let effects = Arc::new(effects);
        let taking = effects.clone();
        let sink = Sink::start(move |arrival| {
            taking.take(arrival);
            Say::Status(200, "")
        });
        Cell {
            folder,
            store: Some(store),
            at,
            sink,
            effects,
        }
    }

    /// Where a node of this name is started, with more words.
    pub fn place(&self, node: &str, roles: &str, more: &[&str]) -> Place {
        self.place_over(self.at, (node, roles), more)
    }

    /// The same, for a node that reaches the store over another address.
    pub fn place_over(&self, store: SocketAddr, (node, roles): (&str, &str), more: &[&str]) -> Place {
        let (shown, at) = (secured(self.folder.path(), node, roles), store.to_string());
        let mut words = vec!["--roles", roles, "--store-at", &at];
        words.extend(shown.iter().map(String::as_str));
        words.extend(more);
        Place::new(&words).telling("info")
    }

    /// Where the store listens.
    pub fn at(&self) -> SocketAddr {
        self.at
    }

    pub fn store(&self) -> &Server {
        self.store.as_ref().unwrap()
    }

    pub fn kill_store(&mut self) {
        self.store.take().unwrap().kill();
    }

    pub fn start_store(&mut self) {
        self.store = Some(store_on(self.folder.path(), self.at, true).0);
    }

    /// A job with an effect at this path of the target.
    pub fn job(&self, path: &str) -> Value {
        let retry = json!({"attempts": 100, "backoff": "100ms"});
        json!({"target": {"type": "http", "url": self.sink.url(path)}, "retry": retry})
    }

    /// Makes a job under a key at one node.
    pub fn create(&self, api: &mut Api, key: &str) -> String {
        create(&self.effects, std::slice::from_mut(api), key, &self.job("/effect"))
    }

    /// Makes a job under each of so many keys.
    pub fn create_all(&self, api: &mut Api, what: &str, count: usize) -> Vec<String> {
        let keys = (0..count).map(|number| format!("{what}{number}"));
        keys.map(|key| self.create(api, &key)).collect()
    }

    /// A schedule of this name for every second; its jobs have their effect at the path of its name.
    pub fn tick(&self, api: &mut Api, name: &str) {
        let record = &self.effects.record;
        let mut body = record.asks_for(name, 0, None, &self.job(&format!("{TICK}{name}")));
        body["name"] = json!(name);
        until_true("a schedule", || {
            let answer = api.post("/v1/schedules", &body);
            assert!(matches!(answer.status, 200 | 201 | 503), "{}", answer.body);
            answer.status < 300
        });
        record.made(name, 0);
    }

    /// That schedule ends soon, by an edit; the schedule once it has.
    pub fn end(&self, api: &mut Api, name: &str) -> Value {
        let (record, path) = (&self.effects.record, format!("/v1/schedules/{name}"));
        let ends_at = wall_micros() + SOON_MICROS;
        let body = record.asks_for(name, 1, Some(ends_at), &self.job(&format!("{TICK}{name}")));
        let first = until("its first version", || {
            let read = api.get(&path);
            let life = read.body["incarnation"].as_str().map(|life| format!("\"1-{life}\""));
            life.filter(|_| read.status == 200)
        });
        until_true("an edit", || {
            // Whoever made the first version; one that was made and not answered is the second.
            let answer = api.must("PUT", &path, &[("If-Match", &first)], Some(&body));
            assert!(matches!(answer.status, 200 | 412 | 503), "{}", answer.body);
            answer.status != 503
        });
        record.made(name, 1);
        until(&format!("the end of {name}"), || {
            let answer = api.get(&path);
            (answer.status == 200 && answer.body["status"] == "finished").then_some(answer.body)
        })
    }

    /// Where the store keeps its rows.
    pub fn store_folder(&self) -> PathBuf {
        self.folder.path().join("store")
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        self.effects.open_gate();
    }
}

/// Asks one node after the other until the job is acknowledged; the key makes that safe.
pub fn create(effects: &Effects, apis: &mut [Api], key: &str, body: &Value) -> String {
    create_told(effects, apis, key, body, &mut |_, _, _| {})
}

/// The same; `tell` hears which node was asked, its answer's status (0 for none), and how long that took.
pub fn create_told(
    effects: &Effects,
    apis: &mut [Api],
    key: &str,
    body: &Value,
    tell: &mut dyn FnMut(usize, u16, Duration),
) -> String {
    let (record, mut body, mut turn) = (&effects.record, body.clone(), 0);
    body["payload"] = json!({"intent": key});
    until(&format!("{key} to be taken"), || {
        turn = (turn + 1) % apis.len();
        let ask = || apis[turn].call("POST", "/v1/jobs", &[("Idempotency-Key", key)], Some(&body));
        let (answer, took) = took(ask);
        tell(turn, answer.as_ref().map_or(0, |answer| answer.status), took);
        let answer = answer.ok()?;
        record.answered(answer.status, answer.code());
        let is_taken = matches!(answer.status, 200 | 201);
        assert!(
            is_taken || matches!(answer.status, 429 | 503),
            "{}: {}",
            answer.status,
            answer.body
        );
        let id = is_taken.then(|| answer.body["id"].as_str().unwrap().to_owned())?;
        record.acknowledged(key, &id);
        Some(id)
    })
}

/// The job once it has succeeded, by whichever node tells.
pub fn succeeded(apis: &mut [Api], id: &str) -> Value {
    let mut turn = 0;
    until(&format!("job {id} to succeed"), || {
        turn = (turn + 1) % apis.len();
        let answer = apis[turn].call("GET", &format!("/v1/jobs/{id}"), &[], None).ok()?;
        let job = (answer.status == 200).then(|| answer.expect(200))?;
        (job["state"] == "succeeded").then_some(job)
    })
}

/// The nodes of the workers that tried it, and what came out.
pub fn tries(api: &mut Api, id: &str) -> Vec<(String, String)> {
    let page = api.get(&format!("/v1/jobs/{id}/attempts")).expect(200);
    let tries = page["items"].as_array().unwrap().iter().map(|attempt| {
        let worker = attempt["worker"].as_str().unwrap();
        let node = worker.split('/').next().unwrap();
        (node.to_owned(), attempt["result"].as_str().unwrap_or("none").to_owned())
    });
    tries.collect()
}

/// What `tries` gives for a job that one node ran well.
pub fn once(node: &str) -> Vec<(String, String)> {
    vec![(node.to_owned(), "succeeded".to_owned())]
}

/// Shards that a node says it has.
pub fn owns(server: &Server) -> usize {
    let said = server.said();
    let count = |what: &str| said.lines().filter(|line| line.contains(what)).count();
    count("this node owns the shard") - count("releases the shard")
}

/// A process of the cell beside the store, with its name, which a test ends and starts again.
pub struct Process {
    pub name: String,
    place: Place,
    server: Option<Server>,
    only_works: bool,
}

impl Process {
    /// Starts it and waits until it serves.
    pub fn start(cell: &Cell, name: &str, roles: &str, more: &[&str]) -> Process {
        Process::start_at(cell.place(name, roles, more), name, roles)
    }

    pub fn start_at(place: Place, name: &str, roles: &str) -> Process {
        let mut process = Process {
            name: name.to_owned(),
            place,
            server: None,
            only_works: roles == "worker",
        };
        process.start_again();
        process
    }

    /// The same, in two steps: started, and not waited for.
    pub fn spawn_at(mut place: Place, name: &str, roles: &str) -> Process {
        let server = Some(place.spawn());
        Process {
            name: name.to_owned(),
            place,
            server,
            only_works: roles == "worker",
        }
    }

    pub fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    /// A client, where it has an API.
    pub fn api(&self) -> Option<Api> {
        (!self.only_works).then(|| self.server().api())
    }

    pub fn kill(&mut self) {
        self.server.take().unwrap().kill();
    }

    /// Started, and not waited for.
    pub fn spawn_again(&mut self) {
        self.server = Some(self.place.spawn());
    }

    /// Started, and it serves.
    pub fn start_again(&mut self) {
        if !self.only_works {
            self.server = Some(self.place.start());
            return;
        }
        self.spawn_again();
        self.wait();
    }

    /// Waits until a spawned one serves.
    pub fn wait(&mut self) {
        let server = self.server.as_mut().unwrap();
        match self.only_works {
            true => {
                let what = format!(" worker {} for the cell", self.name);
                until_true("the worker to work", || server.said().contains(&what));
            }
            false => server.wait_until_ready(),
        }
    }

    /// Told to end, and waited for: its exit code, and what it said.
    pub fn stop(&mut self) -> (Option<i32>, String) {
        self.server().terminate();
        self.stopped()
    }

    /// The end of one that was told to: its exit code, and what it said.
    pub fn stopped(&mut self) -> (Option<i32>, String) {
        let mut server = self.server.take().unwrap();
        (server.exit_code(), server.said())
    }

    /// Whether it is the process that was started, all along.
    pub fn is_there(&mut self) -> bool {
        !self.server.as_mut().unwrap().has_ended()
    }
}

/// Clients of all that have an API.
pub fn apis(processes: &[Process]) -> Vec<Api> {
    processes.iter().filter_map(Process::api).collect()
}
