//! What the process of a worker over HTTP does: it claims, keeps alive, has effects at the target, and reports.
//!
//! Owns: the rules of docs/guides/workers.md, kept by the process's own monotonic clock. Must never: begin an effect
//! once its lease is over as far as it knows, or take a report for recorded that was not answered so. What it was
//! handed and told is noted for the checkers. Next: `remote.rs`, `http.rs`; in the product `desk/`.

use super::World;
use super::http::{Answer, Ask, call_target, send_within};
use crate::runtime::{NodeClock, SimNode, Stream};
use fencepost::clock::Clock;
use fencepost::net::rt::spawn_local;
use fencepost_core::ids::JobId;
use fencepost_core::time::{Monotonic, Span};
use fencepost_history::seen::{Handed, Moment, Reported};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// First and longest pause before a request is sent again.
const PAUSES: (Span, Span) = (Span::from_millis(50), Span::from_millis(2_000));
/// Longest wait for an answer, in microseconds.
const ANSWER_MAX: u64 = 8_000_000;

/// A process.
pub(super) struct Process {
    world: World,
    clock: Arc<NodeClock>,
    ip: std::net::Ipv4Addr,
    name: String,
    stream: Mutex<Stream>,
    held: Mutex<BTreeMap<String, Arc<Attempt>>>,
}

/// What it was handed.
struct Attempt {
    grant: String,
    claimed: Value,
    timeout_at: Monotonic,
    state: Mutex<State>,
}

#[derive(Clone, Copy)]
struct State {
    mine_until: Monotonic,
    is_cancelled: bool,
}

/// What a process says of an attempt in the end: its result, and what went wrong.
type Report = (&'static str, Option<String>);

impl Attempt {
    fn text(&self, field: &str) -> &str {
        self.claimed.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    fn payload(&self, field: &str) -> &Value {
        self.claimed
            .get("payload")
            .and_then(|payload| payload.get(field))
            .unwrap_or(&Value::Null)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn is_mine(&self, now: Monotonic) -> bool {
        now < self.state().mine_until.min(self.timeout_at)
    }
}

impl Process {
    pub(super) fn new(world: &World, node: &SimNode, life: u64) -> Arc<Process> {
        let name = format!("{}-{life}", node.name());
        Arc::new(Process {
            world: world.clone(),
            clock: node.clock(),
            ip: node.ip(),
            stream: Mutex::new(Stream::new(world.options.seed, &name)),
            name,
            held: Mutex::default(),
        })
    }

    /// Claims and keeps alive, for as long as the process lives.
    pub(super) async fn live(self: Arc<Self>) {
        spawn_local(self.clone().keep_alive());
        loop {
            let room = u64::from(self.world.options.slots).saturating_sub(lock(&self.held).len() as u64);
            match room {
                0 => self.sleep(Span::from_millis(100)).await,
                room => self.claim(room).await,
            }
        }
    }

    async fn sleep(&self, span: Span) {
        Clock::sleep(&*self.clock, span).await;
    }

    fn now(&self) -> Monotonic {
        Clock::mono(&*self.clock)
    }

    fn draw(&self, low: u64, high: u64) -> u64 {
        lock(&self.stream).between(low, high)
    }

    /// One claim under one number, until it is answered. Now and then it is broken off, and sent again.
    async fn claim(self: &Arc<Self>, room: u64) {
        let (number, count, wait) = (self.draw(0, u64::MAX - 1), self.draw(1, room), self.draw(0, 3));
        let body = json!({
            "worker": self.name,
            "claim": format!("{number:016x}"),
            "queues": ["default"],
            "count": count,
            "wait": wait,
        });
        let impatient = self.draw(0, 99) < 15;
        let first = if impatient {
            self.draw(20_000, 1_000_000)
        } else {
            ANSWER_MAX
        };
        let (asked_at, answer) = self.ask("op:claim", "claim", &body, first).await;
        if !answer.is_done() {
            // The answer is noted; nothing is asked in a circle without time.
            return self.sleep(PAUSES.1).await;
        }
        let none = Vec::new();
        let claimed = answer.body.get("attempts").and_then(Value::as_array);
        for claimed in claimed.unwrap_or(&none) {
            let attempt = self.take(claimed, asked_at);
            spawn_local(self.clone().work(attempt));
        }
    }

    fn take(&self, claimed: &Value, asked_at: Monotonic) -> Arc<Attempt> {
        let number = |field: &str| claimed.get(field).and_then(Value::as_u64).unwrap_or_default();
        self.check_lease(number("lease_ms"));
        let attempt = Arc::new(Attempt {
            grant: claimed
                .get("grant")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            claimed: claimed.clone(),
            timeout_at: asked_at + Span::from_millis(number("timeout_ms")),
            state: Mutex::new(State {
                mine_until: asked_at + Span::from_millis(number("lease_ms")),
                is_cancelled: false,
            }),
        });
        let text = format!("{} {}", attempt.text("job"), attempt.text("token"));
        self.world.sim.record(&self.name, "was handed", &text);
        self.world.history.lock().handed.push(Handed {
            at: self.world.sim.now(),
            job: attempt.text("job").to_owned(),
            token: attempt.text("token").to_owned(),
            to: self.name.clone(),
        });
        lock(&self.held).insert(attempt.grant.clone(), attempt.clone());
        attempt
    }

    fn check_lease(&self, lease_ms: u64) {
        let longest = self.world.options.lease.as_millis();
        if lease_ms > longest {
            let what = format!(
                "{} was told a lease of {lease_ms} ms, longer than {longest} ms",
                self.name
            );
            self.world.history.lock().odd.push(what);
        }
    }

    /// Sends a request until it is answered for good; when the last was sent, and the answer.
    async fn ask(&self, op: &'static str, call: &str, body: &Value, first: u64) -> (Monotonic, Answer) {
        let (mut pause, mut patience) = (PAUSES.0, first);
        let ask = Ask::new(op, "POST", format!("/v1/worker/{call}")).of(body.clone());
        loop {
            let asked_at = self.now();
            let answer = send_within(&self.world, &ask, patience).await;
            if let Some(answer) = answer.filter(|answer| !answer.is_not_now()) {
                let text = format!("{op} {} {}", answer.status, answer.text("code"));
                self.world.sim.record(&self.name, "answered", &text);
                return (asked_at, answer);
            }
            self.sleep(pause).await;
            (pause, patience) = ((pause + pause).min(PAUSES.1), ANSWER_MAX);
        }
    }

    async fn keep_alive(self: Arc<Self>) {
        loop {
            let (soonest, _) = self.mine();
            let third = Span(soonest.0 / 3);
            self.sleep(third.clamp(Span::from_millis(50), Span::from_secs(5))).await;
            let (soonest, mine) = self.mine();
            if mine.is_empty() {
                continue;
            }
            let items: Vec<Value> = mine.iter().map(|attempt| json!({"grant": attempt.grant})).collect();
            let body = json!({"worker": self.name, "attempts": items});
            let ask = Ask::new("op:heartbeat", "POST", "/v1/worker/heartbeat").of(body);
            let asked_at = self.now();
            if let Some(answer) = send_within(&self.world, &ask, (soonest.0 / 3).max(200_000)).await {
                self.hear(&mine, &answer, asked_at);
            }
        }
    }

    fn hear(&self, mine: &[Arc<Attempt>], answer: &Answer, asked_at: Monotonic) {
        let none = Vec::new();
        let states = answer.body.get("attempts").and_then(Value::as_array);
        for (attempt, told) in mine.iter().zip(states.unwrap_or(&none)) {
            let lease_ms = told.get("lease_ms").and_then(Value::as_u64).unwrap_or_default();
            self.check_lease(lease_ms);
            let mut state = attempt.state();
            match told.get("state").and_then(Value::as_str) {
                Some("lost") => state.mine_until = Monotonic(0),
                told => {
                    state.is_cancelled |= told == Some("cancel");
                    state.mine_until = state.mine_until.max(asked_at + Span::from_millis(lease_ms));
                }
            }
        }
    }

    /// How long until the first lease ends, and what is this process's own.
    fn mine(&self) -> (Span, Vec<Arc<Attempt>>) {
        let now = self.now();
        let held = lock(&self.held);
        let mine: Vec<Arc<Attempt>> = held.values().filter(|attempt| attempt.is_mine(now)).cloned().collect();
        let ends = mine.iter().map(|attempt| attempt.state().mine_until.since(now));
        (ends.min().unwrap_or(Span::from_secs(1)), mine)
    }

    async fn work(self: Arc<Self>, attempt: Arc<Attempt>) {
        let at_work = self.world.work.begin(self.ip);
        match self.draw(0, 99) < 5 {
            true => self.give_back(&attempt).await,
            false => {
                if let Some(report) = self.carry_out(&attempt).await {
                    self.report(&attempt, report).await;
                }
            }
        }
        lock(&self.held).remove(&attempt.grant);
        drop(at_work);
    }

    async fn give_back(&self, attempt: &Attempt) {
        let body = json!({"worker": self.name, "grant": attempt.grant});
        let (_, answer) = self.ask("op:release", "release", &body, ANSWER_MAX).await;
        if answer.is_done() {
            self.world.feel("seen:given-back");
        }
    }

    /// Nothing if it must stop: the lease is over, or was lost, before the effect began.
    async fn carry_out(&self, attempt: &Attempt) -> Option<Report> {
        let works = attempt.payload("works").as_u64().unwrap_or_default();
        self.sleep(Span::from_millis(works)).await;
        if !attempt.is_mine(self.now()) {
            self.world.feel("seen:stopped-in-time");
            return None;
        }
        if attempt.state().is_cancelled {
            return Some(("cancelled", None));
        }
        self.world.history.lock().begun.push(Moment {
            at: self.world.sim.now(),
            job: attempt.text("job").to_owned(),
            token: attempt.text("token").to_owned(),
        });
        let effect = attempt.payload("effect").as_str().unwrap_or("key").to_owned();
        let ask = Ask::new("op:effect", "POST", format!("/{effect}"))
            .with("idempotency-key", attempt.text("idempotency_key"))
            .with("fencepost-token", attempt.text("token"))
            .with(
                "fencepost-attempt",
                attempt.claimed.get("attempt").map(Value::to_string).unwrap_or_default(),
            )
            .with("fencepost-scheduled-for", attempt.text("scheduled_for"))
            .of(attempt.claimed.get("payload").cloned().unwrap_or_default());
        let left = attempt.timeout_at.since(self.now());
        let status = call_target(&self.world, &ask, left.0).await;
        Some(match status {
            Some(status) if (200..300).contains(&status) => ("succeeded", None),
            Some(status) => ("failed", Some(format!("the target said {status}"))),
            None => ("failed", Some("the target did not answer".to_owned())),
        })
    }

    /// Says how it ended until that is answered for good, also when the lease is over by then.
    async fn report(&self, attempt: &Attempt, (result, error): Report) {
        let mut body = json!({"worker": self.name, "grant": attempt.grant, "result": result});
        if let Some(error) = error {
            super::wishes::set(&mut body, "error", json!(error));
        }
        if !attempt.is_mine(self.now()) {
            self.world.feel("seen:reported-late");
        }
        let (_, answer) = self.ask("op:finish", "finish", &body, ANSWER_MAX).await;
        let Some(job) = JobId::parse(attempt.text("job")).filter(|_| answer.is_done()) else {
            return;
        };
        self.world.history.lock().reported.push(Reported {
            at: self.world.sim.now(),
            job,
            token: attempt.text("token").to_owned(),
            result,
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
