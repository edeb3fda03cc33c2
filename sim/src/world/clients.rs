//! Clients: make jobs under idempotency keys, ask again when they do not know, cancel some.
//!
//! Owns: what users do. Must never: take an unknown answer for a failure, or use a new key for the
//! same wish. Next: `http.rs`, `timetable.rs`.

use super::http::send;
use super::{TARGET_IP, TARGET_PORT, World};
use crate::history::{Ack, Cancel, End};
use crate::runtime::Stream;
use fencepost_core::ids::JobId;
use serde_json::{Value, json};

/// Starts every client on a machine of its own.
pub fn start(world: &World) {
    for number in 0..world.options.clients {
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
    for job in 0..world.options.jobs {
        world.sim.sleep(stream.between(1_000, pace.max(1_001))).await;
        let wish = Wish::draw(&mut stream, format!("c{number}-{job}"));
        let id = create(world, &wish, &mut stream).await;
        if wish.cancels {
            world.sim.sleep(stream.between(1_000, 3_000_000)).await;
            cancel(world, id, &mut stream).await;
        }
        if wish.waits {
            look(world, id).await;
        }
    }
}

/// A job that a client wants.
struct Wish {
    intent: String,
    body: Value,
    cancels: bool,
    waits: bool,
}

impl Wish {
    fn draw(stream: &mut Stream, intent: String) -> Wish {
        let mut body = job_body(stream, &intent);
        if stream.percent(30) {
            let delay = format!("{}ms", stream.between(1, 15_000));
            set(&mut body, "delay", json!(delay));
        }
        if stream.percent(15) {
            set(&mut body, "delivery", json!("at-most-once"));
        }
        Wish {
            intent,
            body,
            cancels: stream.percent(20),
            waits: stream.percent(40),
        }
    }
}

/// What a job of this world does: one effect at the target.
pub fn job_body(stream: &mut Stream, intent: &str) -> Value {
    let mode = if stream.percent(50) { "key" } else { "token" };
    json!({
        "target": {"type": "http", "url": format!("http://{TARGET_IP}:{TARGET_PORT}/{mode}")},
        "payload": {"intent": intent},
        "timeout": "3s",
        "retry": {"attempts": stream.between(20, 60), "backoff": "200ms", "cap": "2s"},
        "priority": stream.between(0, 9),
    })
}

/// Sets a field of an object.
pub fn set(body: &mut Value, field: &str, value: Value) {
    if let Some(object) = body.as_object_mut() {
        object.insert(field.to_owned(), value);
    }
}

async fn create(world: &World, wish: &Wish, stream: &mut Stream) -> JobId {
    loop {
        let answer = send(world, "POST", "/v1/jobs", Some(&wish.intent), Some(&wish.body)).await;
        if let Some(answer) = answer
            && matches!(answer.status, 200 | 201)
            && let Some(job) = JobId::parse(answer.text("id"))
        {
            let replayed = answer.status == 200;
            let intent = wish.intent.clone();
            world
                .sim
                .record("client", "acked", &format!("{intent} {job} {replayed}"));
            world.history.lock().acks.push(Ack { intent, job, replayed });
            return job;
        }
        pause(world, stream).await;
    }
}

async fn cancel(world: &World, job: JobId, stream: &mut Stream) {
    loop {
        let answer = send(world, "POST", &format!("/v1/jobs/{job}/cancel"), None, None).await;
        if let Some(answer) = answer
            && answer.status == 200
        {
            let (result, at) = (answer.text("result").to_owned(), world.sim.now());
            world
                .sim
                .record("client", "cancel answered", &format!("{job} {result}"));
            world.history.lock().cancels.push(Cancel { job, result, at });
            return;
        }
        pause(world, stream).await;
    }
}

/// Waits once for a job's end and notes what was told.
async fn look(world: &World, job: JobId) {
    let path = format!("/v1/jobs/{job}/wait?timeout=5");
    let Some(answer) = send(world, "GET", &path, None, None).await else {
        return;
    };
    let state = answer.text("state").to_owned();
    if answer.status == 200 && ["succeeded", "dead", "cancelled", "expired"].contains(&state.as_str()) {
        world.sim.record("client", "end seen", &format!("{job} {state}"));
        world.history.lock().ends.push(End { job, state });
    }
}

/// Before asking again.
pub async fn pause(world: &World, stream: &mut Stream) {
    world.sim.sleep(stream.between(50_000, 1_000_000)).await;
}
