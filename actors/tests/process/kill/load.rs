//! The load: clients that create jobs until they are acknowledged, schedules, and the guarded sink.
//!
//! Owns: what is asked for. A request without an answer is sent again under the same key until it has one.
//! Must never: keep anything to itself that the verdict needs. Next: `logs.rs`.

use super::logs::{Logged, Logs};
use crate::api::{Api, NoAnswer};
use crate::pace;
use crate::sink::{Guarded, Say, Sink};
use fencepost::guard::Answer;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Clients that create jobs at once.
pub const CLIENTS: usize = 8;
/// Jobs acknowledged and without effect, above which clients wait for the sink.
const OPEN_MAX: i64 = 2_000;
/// The schedules: name and rule.
pub const SCHEDULES: &[(&str, &str)] = &[
    ("each-second", r#"{"cron": ["* * * * * *"]}"#),
    ("each-fifth", r#"{"every": "200ms", "anchor": "2026-01-01T00:00:00Z"}"#),
    (
        "newest-only",
        r#"{"every": "200ms", "anchor": "2026-01-01T00:00:00Z", "tolerance": "50ms"}"#,
    ),
    (
        "late-is-skipped",
        r#"{"every": "250ms", "anchor": "2026-01-01T00:00:00Z", "misfire": "skip", "tolerance": "50ms"}"#,
    ),
    (
        "all-are-made-up",
        r#"{"every": "250ms", "anchor": "2026-01-01T00:00:00Z", "misfire": "all", "tolerance": "50ms"}"#,
    ),
];

/// A small generator, so that a seed repeats the choices of a run.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    /// Up to and without `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % bound
    }
}

/// What clients, sink and test share.
pub struct Shared {
    pub logs: Arc<Logs>,
    /// Creations acknowledged so far.
    pub acknowledged: AtomicU64,
    stopping: AtomicBool,
    open: AtomicI64,
}

impl Shared {
    /// Logs lie in this folder.
    pub fn new(folder: &Path) -> Shared {
        Shared {
            logs: Arc::new(Logs::new(folder)),
            acknowledged: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            open: AtomicI64::new(0),
        }
    }

    /// A client that logs.
    pub fn logged(&self, api: Api, client: usize) -> Logged {
        Logged::new(api, client, self.logs.clone())
    }
}

/// The sink: slow now and then, busy now and then, and one in twenty answers is lost after the effect.
pub fn start_sink(shared: &Arc<Shared>, seed: u64) -> Sink {
    let (shared, guarded, calls) = (shared.clone(), Guarded::new(), AtomicU64::new(0));
    Sink::start(move |arrival| {
        let mut chance = Chance::new(seed ^ calls.fetch_add(1, Ordering::SeqCst));
        let call = shared.logs.call(json!({
            "path": arrival.path, "token": arrival.token, "scheduled_for": arrival.scheduled_for, "body": arrival.body,
        }));
        if chance.below(20) == 0 {
            return Say::Status(503, "");
        }
        pace::reach(pace::from_now(Duration::from_millis(chance.below(8))));
        let said = match guarded.apply(arrival) {
            Answer::Applied(_) => {
                shared.open.fetch_sub(1, Ordering::SeqCst);
                "applied"
            }
            Answer::Already(_) => "already",
            Answer::InProgress | Answer::Stale => "stale",
        };
        shared.logs.guard(call, said);
        if chance.below(20) == 0 {
            return Say::HangUp;
        }
        Say::Status(200, "")
    })
}

fn never_gives_up() -> Value {
    json!({"attempts": 1000, "backoff": "20ms", "cap": "200ms"})
}

/// Makes the schedules on a server that is there.
pub fn make_schedules(api: &mut Logged, sink: &Sink) {
    for (name, rule) in SCHEDULES {
        let mut body: Value = serde_json::from_str(rule).unwrap();
        body["name"] = json!(name);
        let url = sink.url(&format!("/fired/{name}"));
        body["job"] = json!({"target": {"type": "http", "url": url}, "retry": never_gives_up()});
        api.must("POST", "/v1/schedules", Some(&body), 201);
    }
}

/// The clients; stopped and joined by `stop`.
pub struct Clients(Vec<JoinHandle<()>>);

impl Clients {
    pub fn start(shared: &Arc<Shared>, address: SocketAddr, token: &str, sink: &Sink) -> Clients {
        let start = |number| {
            let client = Client {
                number,
                api: shared.logged(Api::new(address, token), number),
                url: sink.url("/effect"),
                shared: shared.clone(),
                made: Vec::new(),
            };
            std::thread::spawn(move || client.run())
        };
        Clients((0..CLIENTS).map(start).collect())
    }

    /// Lets each settle its last request, which needs a server that is there.
    pub fn stop(self, shared: &Shared) {
        shared.stopping.store(true, Ordering::SeqCst);
        for client in self.0 {
            client.join().unwrap();
        }
    }
}

struct Client {
    number: usize,
    api: Logged,
    url: String,
    shared: Arc<Shared>,
    /// Keys and ids of its jobs.
    made: Vec<(String, String)>,
}

impl Client {
    fn run(mut self) {
        for n in 0_u64.. {
            if self.shared.stopping.load(Ordering::SeqCst) {
                return;
            }
            let key = format!("c{}-{n}", self.number);
            let id = self.settle(&key);
            self.made.push((key, id));
            self.shared.acknowledged.fetch_add(1, Ordering::SeqCst);
            self.shared.open.fetch_add(1, Ordering::SeqCst);
            if n.is_multiple_of(3) {
                self.look_back(n);
            }
            if self.shared.open.load(Ordering::SeqCst) > OPEN_MAX {
                self.repeat_until_there_is_room();
            }
        }
    }

    /// Sends a creation until it is answered with the job.
    fn settle(&mut self, key: &str) -> String {
        pace::until("an acknowledgement", || self.create(key))
    }

    fn create(&mut self, key: &str) -> Option<String> {
        let body = json!({
            "target": {"type": "http", "url": self.url}, "payload": {"key": key}, "retry": never_gives_up(),
        });
        let answer = match self.api.call("POST", "/v1/jobs", Some(key), Some(&body)) {
            Ok(answer) => answer,
            Err(why) => {
                if matches!(why, NoAnswer::NotSent) {
                    // Nobody is there: asking all the time takes the time in which a server starts.
                    pace::reach(pace::from_now(Duration::from_millis(20)));
                }
                return None;
            }
        };
        if answer.status == 200 || answer.status == 201 {
            return Some(answer.body["id"].as_str().unwrap().to_owned());
        }
        assert!(answer.status == 503 || answer.status == 429, "{key}: {}", answer.body);
        None
    }

    /// Reads one of the jobs before.
    fn look_back(&mut self, n: u64) {
        let at = self.made.len() - 1 - (Chance::new(n).below(40) as usize).min(self.made.len() - 1);
        let (_, id) = &self.made[at];
        let _ = self.api.call("GET", &format!("/v1/jobs/{id}"), None, None);
    }

    /// The sink is behind: asks again for jobs that are there, which makes no new ones.
    fn repeat_until_there_is_room(&mut self) {
        for (key, _) in self.made.clone().iter().rev() {
            let done = self.shared.stopping.load(Ordering::SeqCst);
            if done || self.shared.open.load(Ordering::SeqCst) <= OPEN_MAX {
                return;
            }
            self.settle(key);
        }
    }
}
