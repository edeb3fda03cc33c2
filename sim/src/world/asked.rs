//! The workloads of a scenario: jobs, schedules, cancels, looks and edits as its file asks for them.
//!
//! Owns: when each thing is asked for. Must never: decide what befalls it. Next: `clients.rs` and `hands.rs`, which
//! do the asking; `../scenario/plan.rs`.

use super::hands::Hand;
use super::http::{Ask, ask};
use super::planner::{do_work, work_named};
use super::wishes::{Wish, set};
use super::{TARGET_IP, TARGET_PORT, World, clients, looks};
use crate::runtime::Stream;
use crate::scenario::payload;
use crate::scenario::plan::{Between, Jobs, Plan, Schedules, Shape};
use fencepost::net::rt::spawn_local;
use fencepost_core::ids::JobId;
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

/// From the healing until clients look at what became of their jobs, in microseconds.
const AFTER: u64 = 10_000_000;
/// Of so many jobs one is looked at.
const LOOKED_AT: usize = 5;

/// Starts every workload.
pub fn start(world: &World, plan: &Plan) {
    for (number, jobs) in plan.jobs.iter().enumerate() {
        for client in 0..jobs.clients {
            start_client(world, (number, jobs), client);
        }
    }
    for (number, of_file) in (0..).zip(&plan.looks) {
        looks::start(world, number, of_file);
    }
    let node = world.client_node(200);
    let mut number = 0;
    for schedules in &plan.schedules {
        for _ in 0..schedules.count {
            if world.options.without.has_schedule(number) {
                number += 1;
                continue;
            }
            world.begin();
            let (world, schedules) = (world.clone(), schedules.clone());
            node.run(move || async move {
                plan_one(&world, number, &schedules).await;
                world.done();
            });
            number += 1;
        }
    }
}

fn start_client(world: &World, (number, jobs): (usize, &Jobs), client: u64) {
    let third = u8::try_from(3 + number).unwrap_or(u8::MAX);
    let ip = Ipv4Addr::new(10, 0, third, u8::try_from(client + 1).unwrap_or(u8::MAX));
    let node = world.sim.new_node(&format!("client-{number}-{client}"), ip);
    world.begin();
    let (world, jobs) = (world.clone(), jobs.clone());
    node.run(move || async move {
        make_jobs(&world, (number, &jobs), client).await;
        world.done();
    });
}

async fn make_jobs(world: &World, (number, jobs): (usize, &Jobs), client: u64) {
    let mut stream = Stream::new(world.options.seed, &format!("workload {number} client {client}"));
    let count = jobs.count / jobs.clients + u64::from(client < jobs.count % jobs.clients);
    let pace = jobs.over / count.max(1);
    let made: Arc<Mutex<Vec<JobId>>> = Arc::default();
    for job in 0..count {
        let at = job * pace + stream.between(0, pace);
        world.sim.sleep(at.saturating_sub(world.sim.now())).await;
        let wish = wish(world, jobs, &mut stream, format!("w{number}-{client}-{job}"));
        let mut own = Stream::new(stream.draw(), "job");
        if world.options.without.has_job(&wish.intent) {
            continue;
        }
        let (world, made) = (world.clone(), made.clone());
        world.begin();
        spawn_local(async move {
            if let Some(id) = clients::create(&world, &wish, &mut own).await {
                made.lock().unwrap_or_else(PoisonError::into_inner).push(id);
                clients::follow(&world, &wish, id, &mut own).await;
            }
            world.done();
        });
    }
    world.until_healed().await;
    world.sim.sleep(AFTER).await;
    let made = std::mem::take(&mut *made.lock().unwrap_or_else(PoisonError::into_inner));
    for id in made.into_iter().step_by(LOOKED_AT) {
        let request = Ask::new("op:read-job", "GET", format!("/v1/jobs/{id}"));
        let answer = ask(world, &request, &mut stream).await;
        clients::note_end(world, id, &answer);
    }
}

fn wish(world: &World, jobs: &Jobs, stream: &mut Stream, intent: String) -> Wish {
    let mut body = jobs.shape.body(stream, &intent);
    let delay = one(stream, jobs.delay);
    if delay > 0 {
        set(&mut body, "delay", json!(format!("{}ms", delay / 1_000)));
    }
    let none = Vec::new();
    let cancels = world.options.plan.as_ref().map_or(&none, |plan| &plan.cancels);
    let cancel_after = cancels.iter().fold(None, |before, cancels| {
        let (is_hit, after) = (stream.percent(cancels.percent), one(stream, cancels.after));
        before.or(is_hit.then_some(after))
    });
    Wish {
        intent,
        body,
        cancel_after,
        is_awaited: false,
        is_repeated: stream.percent(5),
        is_reused: false,
        may_be_late: false,
    }
}

async fn plan_one(world: &World, number: u64, schedules: &Schedules) {
    let mut hand = Hand::new(world, number);
    hand.paused = 0;
    let first = hand.draw_planned(schedules);
    let mut exists = hand.create(&first).await;
    let edits = world.options.plan.as_ref().map(|plan| plan.edits.clone());
    let edits = edits.unwrap_or_default();
    while !edits.is_empty() && world.sim.now() < world.options.active.0 {
        for edit in &edits {
            let pause = one(&mut hand.stream, edit.every);
            world.sim.sleep(pause.max(10_000)).await;
            let work = hand.stream.pick(&edit.works).copied().unwrap_or_default();
            exists = match exists {
                true => do_work(&mut hand, work_named(work)).await,
                false => {
                    let spec = hand.draw_planned(schedules);
                    hand.create(&spec).await
                }
            };
        }
    }
    world.until_healed().await;
    if !edits.is_empty() {
        // Whatever was sent before has arrived by then, a pause among it.
        world.sim.sleep(15_000_000).await;
        hand.resume().await;
    }
}

fn one(stream: &mut Stream, (low, high): Between) -> u64 {
    stream.between(low, high.max(low))
}

impl Shape {
    /// The request's part that says what a job does.
    pub fn body(&self, stream: &mut Stream, intent: &str) -> Value {
        let effect = stream.pick(&self.effects).copied().unwrap_or("key");
        let delivery = stream.pick(&self.deliveries).copied().unwrap_or("at-least-once");
        let takes = one(stream, self.takes) / 1_000;
        let timeout = one(stream, self.timeout) / 1_000;
        // No draw where there is no choice: the stories of files without handlers stay as they are.
        let handler = match self.handlers.as_slice() {
            [] => None,
            handlers => stream.pick(handlers),
        };
        let target = match handler {
            None if self.is_remote => json!({"type": "remote", "name": "call"}),
            Some(name) => json!({"type": "handler", "name": name}),
            None => json!({"type": "http", "url": format!("http://{TARGET_IP}:{TARGET_PORT}/{effect}")}),
        };
        let mut payload = json!({
            "intent": intent,
            "takes": takes,
            "once": delivery == "at-most-once",
            "kills": self.kills_its_worker,
        });
        if self.is_remote {
            set(&mut payload, "effect", json!(effect));
            set(&mut payload, "works", json!(one(stream, self.works) / 1_000));
        }
        if handler.is_some() {
            set(&mut payload, "payload", self.payload(stream, intent));
        }
        json!({
            "target": target,
            "payload": payload,
            "timeout": format!("{}ms", timeout.max(1)),
            "retry": {"attempts": one(stream, self.attempts), "backoff": "200ms", "cap": "2s"},
            "delivery": delivery,
        })
    }

    /// What the handler of a job gets.
    fn payload(&self, stream: &mut Stream, intent: &str) -> Value {
        let text = stream.pick(&self.payloads);
        let read = text.and_then(|text| payload(text, intent).ok());
        read.unwrap_or_else(|| json!({"id": intent}))
    }
}
