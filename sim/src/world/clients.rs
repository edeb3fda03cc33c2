//! Clients: make jobs under idempotency keys, alone and in batches, ask again when they do not know,
//! cancel some, and at the end look after those that are dead or uncertain.
//!
//! Owns: what users do with jobs. Must never: take an unknown answer for a failure, or use a new key for
//! the same wish. Next: `wishes.rs`, `http.rs`, `planner.rs`.

use super::World;
use super::http::{Answer, Ask, ask, send};
use super::wishes::{Wish, set};
use crate::runtime::Stream;
use fencepost_core::ids::JobId;
use fencepost_history::seen::{Ack, Cancel, End};
use serde_json::{Value, json};

/// From the healing until clients look after their jobs, in microseconds.
const AFTER: u64 = 30_000_000;

/// Starts every client on a machine of its own.
pub fn start(world: &World) {
    for number in (0..world.options.clients).filter(|number| !world.options.without.has_client(*number)) {
        let node = world.client_node(number);
        world.begin();
        let world = world.clone();
        node.run(move || async move {
            run_client(&world, number).await;
            world.done();
        });
    }
}

async fn run_client(world: &World, number: u64) {
    let mut stream = Stream::new(world.options.seed, &format!("client {number}"));
    let pace = world.options.active.0 / world.options.jobs.max(1);
    let mut made = Vec::new();
    for job in 0..world.options.jobs {
        world.sim.sleep(stream.between(1_000, pace.max(1_001))).await;
        let intent = format!("c{number}-{job}");
        if world.options.without.has_job(&intent) {
            continue;
        }
        // A stream of its own: leaving one job out does not change the others.
        let mut stream = Stream::new(world.options.seed, &format!("job {intent}"));
        if stream.percent(12) {
            made.extend(create_batch(world, &intent, &mut stream).await);
            continue;
        }
        let wish = Wish::draw(world, &mut stream, intent);
        if let Some(id) = create(world, &wish, &mut stream).await {
            made.push(id);
            follow(world, &wish, id, &mut stream).await;
        }
    }
    world.until_healed().await;
    world.sim.sleep(AFTER).await;
    for id in made {
        look_after(world, id, &mut stream).await;
    }
}

/// What is done with a job after it was made.
pub(super) async fn follow(world: &World, wish: &Wish, id: JobId, stream: &mut Stream) {
    if let Some(after) = wish.cancel_after {
        world.sim.sleep(after).await;
        cancel(world, id, stream).await;
    }
    if wish.is_awaited && !world.is_healed() {
        look(world, id).await;
    }
    if wish.is_repeated {
        create(world, wish, stream).await;
    }
    if wish.is_reused {
        reuse(world, wish, stream).await;
    }
}

fn creation(op: &'static str, wish: &Wish) -> Ask {
    Ask::new(op, "POST", "/v1/jobs")
        .with("idempotency-key", &wish.intent)
        .of(wish.body.clone())
}

/// `None` when it was refused because it came too late.
pub(super) async fn create(world: &World, wish: &Wish, stream: &mut Stream) -> Option<JobId> {
    let op = if wish.may_be_late {
        "op:create-limited"
    } else {
        "op:create"
    };
    let answer = ask(world, &creation(op, wish), stream).await;
    let job = JobId::parse(answer.text("id")).filter(|_| answer.is_done())?;
    acked(world, &wish.intent, job, answer.status == 200);
    Some(job)
}

fn acked(world: &World, intent: &str, job: JobId, replayed: bool) {
    let text = format!("{intent} {job} {replayed}");
    world.sim.record("client", "acked", &text);
    world.history.lock().acks.push(Ack {
        intent: intent.to_owned(),
        job,
        replayed,
    });
}

/// The key once more for something else: must be refused.
async fn reuse(world: &World, wish: &Wish, stream: &mut Stream) {
    let mut other = wish.clone();
    set(&mut other.body, "payload", json!({"intent": "never"}));
    if ask(world, &creation("op:reuse", &other), stream).await.status == 422 {
        world.feel("seen:key-reused");
    }
}

/// Several jobs in one request, one of them twice; asked again until each item has its answer.
async fn create_batch(world: &World, intent: &str, stream: &mut Stream) -> Vec<JobId> {
    let count = stream.between(2, 12);
    let mut wishes: Vec<Wish> = (0..count)
        .map(|item| Wish::draw(world, stream, format!("{intent}-{item}")))
        .collect();
    wishes.extend(wishes.first().cloned());
    let mut made = Vec::new();
    while !wishes.is_empty() {
        let jobs: Vec<Value> = wishes.iter().map(item).collect();
        let request = Ask::new("op:batch", "POST", "/v1/jobs:batch").of(json!({"jobs": jobs}));
        let answer = ask(world, &request, stream).await;
        let left = take_items(world, &answer, wishes, &mut made);
        if !left.is_empty() {
            world.feel("seen:batch-in-part");
            world.sim.sleep(stream.between(50_000, 1_000_000)).await;
        }
        wishes = left;
    }
    made
}

fn item(wish: &Wish) -> Value {
    let mut body = wish.body.clone();
    set(&mut body, "idempotency_key", json!(wish.intent));
    body
}

/// Notes what each item was told; the wishes that must be asked for again.
fn take_items(world: &World, answer: &Answer, wishes: Vec<Wish>, made: &mut Vec<JobId>) -> Vec<Wish> {
    let none = Vec::new();
    let items = answer.body.get("items").and_then(Value::as_array).unwrap_or(&none);
    let mut left = Vec::new();
    for (at, wish) in wishes.into_iter().enumerate() {
        let told = items.get(at).cloned().unwrap_or_default();
        let text = |field: &str| told.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(job) = JobId::parse(&text("id")) {
            let replayed = told.get("replayed").and_then(Value::as_bool).unwrap_or_default();
            acked(world, &wish.intent, job, replayed);
            made.push(job);
            continue;
        }
        let problem = told.get("problem").cloned().unwrap_or_default();
        let status = problem.get("status").and_then(Value::as_u64).unwrap_or_default();
        if !(wish.may_be_late && status == 400) {
            let code = problem.get("code").and_then(Value::as_str).unwrap_or_default();
            world.history.lock().answers.push(fencepost_history::seen::Answered {
                op: "op:batch-item",
                status: u16::try_from(status).unwrap_or_default(),
                code: code.to_owned(),
            });
            left.push(wish);
        }
    }
    left
}

async fn cancel(world: &World, job: JobId, stream: &mut Stream) {
    let request = Ask::new("op:cancel", "POST", format!("/v1/jobs/{job}/cancel"));
    let answer = ask(world, &request, stream).await;
    let (result, at) = (answer.text("result").to_owned(), world.sim.now());
    world
        .sim
        .record("client", "cancel answered", &format!("{job} {result}"));
    world.history.lock().cancels.push(Cancel { job, result, at });
}

/// Waits once for a job's end and notes what was told.
async fn look(world: &World, job: JobId) {
    let request = Ask::new("op:wait", "GET", format!("/v1/jobs/{job}/wait?timeout=5"));
    let Some(answer) = send(world, &request).await else {
        return;
    };
    note_end(world, job, &answer);
}

pub(super) fn note_end(world: &World, job: JobId, answer: &Answer) {
    let state = answer.text("state").to_owned();
    if answer.status == 200 && ["succeeded", "dead", "cancelled", "expired"].contains(&state.as_str()) {
        world.sim.record("client", "end seen", &format!("{job} {state}"));
        world.history.lock().ends.push(End { job, state });
    }
}

/// After the faults: a dead job is sent back, an uncertain one settled by what the target says.
async fn look_after(world: &World, job: JobId, stream: &mut Stream) {
    let request = Ask::new("op:read-job", "GET", format!("/v1/jobs/{job}"));
    let answer = ask(world, &request, stream).await;
    note_end(world, job, &answer);
    match answer.text("state") {
        "dead" if stream.percent(70) => {
            // Known before it is asked for: the answer may be lost.
            world.history.lock().retried.insert(job);
            let retry = Ask::new("op:retry", "POST", format!("/v1/jobs/{job}/retry"));
            ask(world, &retry, stream).await;
        }
        "uncertain" if stream.percent(80) => {
            let key = job.to_string();
            let is_there = world
                .history
                .lock()
                .calls
                .iter()
                .any(|call| call.key == key && call.applied);
            let verdict = match (is_there, stream.percent(50)) {
                (true, _) => "succeeded",
                (false, true) => "retry",
                (false, false) => "dead",
            };
            let settle = Ask::new("op:settle", "POST", format!("/v1/jobs/{job}/settle"));
            ask(world, &settle.of(json!({"verdict": verdict})), stream).await;
        }
        _ => {}
    }
}
