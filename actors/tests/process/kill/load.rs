//! The load: clients that create jobs until they are acknowledged, schedules, and the guarded sink.
//!
//! Owns: what is asked for. A request without an answer is sent again under the same key until it has one.
//! Must never: keep anything to itself that the verdict needs. Next: `history.rs`.

use super::history::{Event, History};
use crate::api::{Api, NoAnswer};
use crate::pace;
use crate::sink::{Arrival, Guarded, Say, Sink};
use fencepost::guard::Answer;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// Clients that create jobs at once.
pub const CLIENTS: usize = 8;
/// Jobs acknowledged and without effect, above which clients wait for the sink.
const OPEN_MAX: i64 = 2_000;
/// The schedules: name, rule, spacing in microseconds.
pub const SCHEDULES: &[(&str, &str, i64)] = &[
    ("each-second", r#"{"cron": ["* * * * * *"]}"#, 1_000_000),
    (
        "each-fifth",
        r#"{"every": "200ms", "anchor": "2026-01-01T00:00:00Z"}"#,
        200_000,
    ),
    (
        "newest-only",
        r#"{"every": "200ms", "anchor": "2026-01-01T00:00:00Z", "tolerance": "50ms"}"#,
        200_000,
    ),
    (
        "late-is-skipped",
        r#"{"every": "250ms", "anchor": "2026-01-01T00:00:00Z", "misfire": "skip", "tolerance": "50ms"}"#,
        250_000,
    ),
    (
        "all-are-made-up",
        r#"{"every": "250ms", "anchor": "2026-01-01T00:00:00Z", "misfire": "all", "tolerance": "50ms"}"#,
        250_000,
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
#[derive(Default)]
pub struct Shared {
    pub history: History,
    /// Creations acknowledged so far.
    pub acknowledged: AtomicU64,
    stopping: AtomicBool,
    open: AtomicI64,
}

/// An instant as microseconds since 1970.
pub fn micros(text: &str) -> i64 {
    let parsed = chrono::DateTime::parse_from_rfc3339(text);
    parsed
        .unwrap_or_else(|error| panic!("{text:?}: {error}"))
        .timestamp_micros()
}

/// The sink: slow now and then, busy now and then, and one in twenty answers is lost after the effect.
pub fn start_sink(shared: &Arc<Shared>, seed: u64) -> Sink {
    let (shared, guarded, calls) = (shared.clone(), Guarded::new(), AtomicU64::new(0));
    Sink::start(move |arrival| {
        let mut chance = Chance::new(seed ^ calls.fetch_add(1, Ordering::SeqCst));
        let effect = effect_of(arrival);
        shared.history.push(Event::Arrived {
            effect: effect.clone(),
            token: arrival.token.clone(),
        });
        if chance.below(20) == 0 {
            return Say::Status(503, "");
        }
        pace::reach(pace::from_now(std::time::Duration::from_millis(chance.below(8))));
        let event = match guarded.apply(arrival) {
            Answer::Applied(_) => {
                shared.open.fetch_sub(1, Ordering::SeqCst);
                Event::Applied { effect }
            }
            Answer::Already(_) => Event::Already { effect },
            Answer::InProgress | Answer::Stale => Event::Stale { effect },
        };
        shared.history.push(event);
        if chance.below(20) == 0 {
            return Say::HangUp;
        }
        Say::Status(200, "")
    })
}

/// The effect is named by what the caller wanted, not by the server's own key: a job made twice is two
/// effects of one name.
fn effect_of(arrival: &Arrival) -> String {
    match arrival.path.strip_prefix("/fired/") {
        Some(schedule) => super::checker::effect_of(schedule, micros(&arrival.scheduled_for)),
        None => arrival.body["key"].as_str().unwrap_or_default().to_owned(),
    }
}

fn never_gives_up() -> Value {
    json!({"attempts": 1000, "backoff": "20ms", "cap": "200ms"})
}

/// Makes the schedules on a server that is there.
pub fn make_schedules(api: &mut Api, sink: &Sink) {
    for (name, rule, _) in SCHEDULES {
        let mut body: Value = serde_json::from_str(rule).unwrap();
        body["name"] = json!(name);
        let url = sink.url(&format!("/fired/{name}"));
        body["job"] = json!({"target": {"type": "http", "url": url}, "retry": never_gives_up()});
        api.post("/v1/schedules", &body).expect(201);
    }
}

/// The clients; stopped and joined by `stop`.
pub struct Clients(Vec<JoinHandle<()>>);

impl Clients {
    pub fn start(shared: &Arc<Shared>, address: SocketAddr, token: &str, sink: &Sink) -> Clients {
        let start = |number| {
            let client = Client {
                number,
                api: Api::new(address, token),
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
    api: Api,
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
        let client = self.number;
        let body = json!({
            "target": {"type": "http", "url": self.url}, "payload": {"key": key}, "retry": never_gives_up(),
        });
        let own = || key.to_owned();
        self.shared.history.push(Event::Sent { client, key: own() });
        match self
            .api
            .call("POST", "/v1/jobs", &[("idempotency-key", key)], Some(&body))
        {
            Ok(answer) if answer.status == 200 || answer.status == 201 => {
                let id = answer.body["id"].as_str().unwrap().to_owned();
                self.shared.history.push(Event::Acknowledged {
                    client,
                    key: own(),
                    id: id.clone(),
                });
                Some(id)
            }
            Ok(answer) => {
                assert!(answer.status == 503 || answer.status == 429, "{key}: {}", answer.body);
                self.shared.history.push(Event::Refused { client, key: own() });
                None
            }
            Err(NoAnswer::NotSent) => {
                self.shared.history.push(Event::Refused { client, key: own() });
                None
            }
            Err(NoAnswer::Unknown) => {
                self.shared.history.push(Event::Unanswered { client, key: own() });
                None
            }
        }
    }

    /// Reads one of the jobs before.
    fn look_back(&mut self, n: u64) {
        let at = self.made.len() - 1 - (Chance::new(n).below(40) as usize).min(self.made.len() - 1);
        let (key, id) = &self.made[at];
        let Ok(answer) = self.api.call("GET", &format!("/v1/jobs/{id}"), &[], None) else {
            return;
        };
        let state = match answer.status {
            200 => answer.body["state"].as_str().unwrap(),
            404 => "missing",
            _ => return,
        };
        self.shared.history.push(Event::Seen {
            key: key.clone(),
            state: state.into(),
        });
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
