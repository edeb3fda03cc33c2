//! Clients that look: they list every job again and again, and remember what they were shown.
//!
//! Owns: that record. What a list shows is durable, or a power loss would make it untrue (PROTOCOL F5). Must never:
//! take a list that broke off for a whole one. Next: `asked.rs`, `fencepost_history::checkers` (`acked_survives`).

use super::World;
use super::http::{Ask, send};
use crate::runtime::Stream;
use crate::scenario::plan::Looks;
use fencepost_core::ids::JobId;
use serde_json::Value;

/// The first of their machines.
const FIRST: u64 = 210;

/// Starts those of one workload; `number` is its place among them.
pub fn start(world: &World, number: u64, looks: &Looks) {
    for client in 0..looks.clients {
        let node = world.client_node(FIRST + number * 8 + client);
        let (world, looks) = (world.clone(), *looks);
        world.begin();
        node.run(move || async move {
            let mut stream = Stream::new(world.options.seed, &format!("looks {number} {client}"));
            while world.sim.now() < looks.over {
                world.sim.sleep(stream.between(looks.every.0, looks.every.1)).await;
                look(&world).await;
            }
            world.done();
        });
    }
}

async fn look(world: &World) {
    let mut cursor = String::new();
    loop {
        let path = format!("/v1/jobs?limit=1000{cursor}");
        let Some(page) = send(world, &Ask::new("op:list", "GET", path)).await else {
            return;
        };
        let none = Vec::new();
        let items = page.body.get("items").and_then(Value::as_array).unwrap_or(&none);
        for item in items {
            let text = |field: &str| item.get(field).and_then(Value::as_str).unwrap_or_default();
            if let Some(job) = JobId::parse(text("id")) {
                let is_end = ["succeeded", "dead", "cancelled", "expired"].contains(&text("state"));
                let end = is_end.then(|| text("state").to_owned());
                let mut seen = world.history.lock();
                let shown = seen.shown.entry(job).or_default();
                *shown = end.or(shown.take());
            }
        }
        match page.text("next") {
            "" => return,
            next => cursor = format!("&cursor={next}"),
        }
    }
}
