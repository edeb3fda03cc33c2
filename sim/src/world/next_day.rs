//! After everything has settled: the node stays down for longer than keys are kept, and keys come back.
//!
//! Owns: that epilogue. A key that comes back with another body makes a new job with an effect of its
//! own (PROTOCOL F26). Must never: run while faults last. Next: `clients.rs`.

use super::World;
use super::faults::Beside;
use super::http::{Ask, ask};
use super::server::Server;
use super::wishes::{job_body, set};
use crate::runtime::Stream;
use fencepost_core::ids::JobId;
use fencepost_history::seen::Ack;
use fencepost_storage::model::Crash;
use serde_json::json;
use std::collections::BTreeMap;

/// Longer than a key is kept after its job's end, in microseconds.
pub const DAY: u64 = 25 * 3_600_000_000;
/// Keys that come back.
const KEYS: usize = 5;

/// Lets a day pass with every node down, then uses old keys anew. A node that is up for a day beats, looks and
/// reads all day long: minutes of a run for nothing that the hour before did not show.
pub async fn pass(world: &World, server: &Server, beside: &Beside) {
    server.down(Crash::Process);
    beside.down();
    world.sim.sleep(DAY).await;
    server.up();
    beside.up();
    world.begin();
    let node = world.client_node(201);
    let world = world.clone();
    node.run(move || async move {
        let mut stream = Stream::new(world.options.seed, "next day");
        let old: BTreeMap<String, Ack> = {
            let seen = world.history.lock();
            seen.acks.iter().map(|ack| (ack.intent.clone(), ack.clone())).collect()
        };
        for ack in old.into_values().take(KEYS) {
            let request = Ask::new("op:read-job", "GET", format!("/v1/jobs/{}", ack.job));
            // One that has not ended keeps its key.
            if ask(&world, &request, &mut stream).await.text("state") != "uncertain" {
                use_again(&world, &ack.intent, &mut stream).await;
            }
        }
        world.done();
    });
}

async fn use_again(world: &World, key: &str, stream: &mut Stream) {
    let intent = format!("{key}-next-day");
    let mut body = job_body(stream, &intent);
    set(&mut body, "delivery", json!("at-least-once"));
    let request = Ask::new("op:create-next-day", "POST", "/v1/jobs").with("idempotency-key", key);
    let answer = ask(world, &request.of(body), stream).await;
    let Some(job) = JobId::parse(answer.text("id")) else {
        return;
    };
    let replayed = answer.status == 200;
    world.history.lock().acks.push(Ack { intent, job, replayed });
}
