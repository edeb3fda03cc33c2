//! One server's day, told through its API: targets, retries, cancels, doubts, batches and a schedule's life.
//!
//! Owns: the order of the chapters and what they share. Next: `jobs.rs`, `doubts.rs`, `schedule.rs`.

mod doubts;
mod jobs;
mod schedule;

use crate::api::Api;
use crate::pace::until_true;
use crate::server::{Place, Server};
use crate::sink::{Arrival, Say, Sink};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A server, the service that its jobs call, and what that service saw.
struct World {
    api: Api,
    sink: Sink,
    seen: Arc<Mutex<Vec<Arrival>>>,
    /// Whether `/mended` works by now.
    mended: Arc<AtomicBool>,
    server: Server,
    _place: Place,
}

impl World {
    fn new() -> World {
        let (seen, mended) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (record, works) = (seen.clone(), mended.clone());
        let sink = Sink::start(move |arrival: &Arrival| {
            record.lock().unwrap().push(arrival.clone());
            answer(arrival, works.load(Ordering::SeqCst))
        });
        let mut place = Place::new(&[]);
        let server = place.start();
        World {
            api: server.api(),
            sink,
            seen,
            mended,
            server,
            _place: place,
        }
    }

    /// A job that calls this path of the service.
    fn calls(&self, path: &str) -> Value {
        json!({
            "target": {"type": "http", "url": self.sink.url(path)},
            "retry": {"attempts": 3, "backoff": "5ms", "cap": "10ms"},
        })
    }

    /// Creates and gives the id.
    fn create(&mut self, body: &Value) -> String {
        let made = self.api.post("/v1/jobs", body).expect(201);
        made["id"].as_str().unwrap().to_owned()
    }

    /// Creates and waits by long poll.
    fn run(&mut self, body: &Value) -> Value {
        let id = self.create(body);
        self.wait(&id)
    }

    fn wait(&mut self, id: &str) -> Value {
        self.api.get(&format!("/v1/jobs/{id}/wait?timeout=60")).expect(200)
    }

    fn job(&mut self, id: &str) -> Value {
        self.api.get(&format!("/v1/jobs/{id}")).expect(200)
    }

    fn until_state(&mut self, id: &str, state: &str) {
        until_true(state, || self.job(id)["state"] == state);
    }

    /// The ended attempts of a job.
    fn attempts(&mut self, job: &Value) -> Vec<Value> {
        let id = job["id"].as_str().unwrap();
        let list = self.api.get(&format!("/v1/jobs/{id}/attempts")).expect(200);
        list["items"].as_array().unwrap().clone()
    }

    /// What arrived at this path of the service.
    fn arrived(&self, path: &str) -> Vec<Arrival> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|arrival| arrival.path == path).cloned().collect()
    }
}

/// The service: each path has its ways.
fn answer(arrival: &Arrival, mended: bool) -> Say {
    let first = arrival.attempt == 1;
    match arrival.path.as_str() {
        "/gone" => Say::Status(410, ""),
        "/busy" if first => Say::Status(429, "retry-after: 1\r\n"),
        "/flaky" if arrival.attempt < 3 => Say::Status(500, ""),
        "/silent" => Say::Silence,
        "/hangs-up" if first => Say::HangUp,
        "/broken" => Say::Status(500, ""),
        "/mended" if !mended => Say::Status(500, ""),
        _ => Say::Status(200, ""),
    }
}

fn results(attempts: &[Value]) -> Vec<&str> {
    attempts
        .iter()
        .map(|attempt| attempt["result"].as_str().unwrap())
        .collect()
}

#[test]
fn a_servers_day() {
    let mut world = World::new();
    jobs::http_calls_are_judged_and_tried_again(&mut world);
    jobs::commands_tell_what_they_wrote(&mut world);
    jobs::handlers_run_in_the_server(&mut world);
    jobs::a_key_makes_one_job(&mut world);
    jobs::a_batch_answers_for_each_of_its_thousand(&mut world);
    jobs::waiting_is_a_long_poll(&mut world);
    doubts::cancels_are_honest(&mut world);
    doubts::at_most_once_stops_in_doubt_until_a_person_settles_it(&mut world);
    doubts::what_died_is_sent_back_one_by_one(&mut world);
    schedule::a_schedule_lives(&mut world);
    schedule::a_pause_is_made_up(&mut world);
    schedule::a_schedule_is_edited(&mut world);
    schedule::a_schedule_is_run_by_hand(&mut world);
    schedule::a_schedule_is_deleted_and_made_anew(&mut world);
    world.server.terminate();
    assert_eq!(world.server.exit_code(), Some(0), "{}", world.server.said());
}
