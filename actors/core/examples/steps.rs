//! How fast the pure machines are, alone on one core: no store, no network, no codec.
//!
//! `cargo run --release --locked -p fencepost-core --example steps`
//!
//! Prints a JSON line for each measurement; rates count time on the processor where the system tells
//! it, so that a busy machine does not spoil them. A step is one call of a machine's `step`; an item is one
//! job, attempt or occurrence that it decided on. Nothing here is a test and nothing is asserted
//! about time.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
#![allow(
    clippy::disallowed_methods,
    reason = "a measurement needs a clock; no decision sees it"
)]

#[path = "../tests/support/make.rs"]
#[allow(dead_code)]
mod make;

use fencepost_core::ids::{BeatId, Generation, JobId, OfferId, ShardId, ShardMap, ShardOwner, Token};
use fencepost_core::lease_manager::LeaseManager;
use fencepost_core::lease_manager::io::{
    AttemptOutcome, Grant, LeaseEffect, LeaseInput, LeaseOpened, Recorded, Renewal,
};
use fencepost_core::machine::{Out, ReplyTo};
use fencepost_core::schedule::{MisfirePolicy, Rule, ScheduleSpec};
use fencepost_core::scheduler_shard::SchedulerShard;
use fencepost_core::scheduler_shard::io::{ScheduleInput, ScheduleOpened};
use fencepost_core::time::{Monotonic, Now, Span, StoreTime};
use fencepost_core::worker::io::{WorkerEffect, WorkerInput};
use fencepost_core::worker::{WorkerConfig, WorkerMachine};
use std::sync::Arc;
use std::time::{Duration, Instant};

const START: i64 = 1_700_000_000;

fn main() {
    scheduler("scheduler, 1,000 per-second schedules", 1_000, 120);
    scheduler("scheduler, 10,000 per-second schedules", 10_000, 20);
    leases("lease manager, one job a message", 1, 200_000);
    leases("lease manager, 512 jobs a message", 512, 500_000);
    heartbeats("lease manager, heartbeats of 512", 2_000);
    worker("worker, one attempt a message", 1, 300_000);
    worker("worker, 512 attempts a message", 512, 1_000_000);
}

/// A begun measurement.
struct Watch {
    begun: Instant,
    on_processor: Option<Duration>,
}

impl Watch {
    fn begin() -> Watch {
        Watch {
            begun: Instant::now(),
            on_processor: on_processor(),
        }
    }

    fn report(self, what: &str, steps: u64, items: u64) {
        let wall = self.begun.elapsed();
        let busy = on_processor().zip(self.on_processor).map(|(now, then)| now - then);
        let rate = |count: u64| (count as f64 / busy.unwrap_or(wall).as_secs_f64()) as u64;
        println!(
            "{{\"what\":\"{what}\",\"steps\":{steps},\"items\":{items},\"wall_ms\":{},\"processor_ms\":{},\"steps_per_second\":{},\"items_per_second\":{}}}",
            wall.as_millis(),
            busy.map_or("null".to_owned(), |busy| busy.as_millis().to_string()),
            rate(steps),
            rate(items)
        );
    }
}

/// Time that this thread has had a processor (Linux).
fn on_processor() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

fn at(seconds: u64) -> Now {
    Now {
        store: StoreTime::from_secs(START + seconds as i64),
        mono: Monotonic(seconds * 1_000_000),
        doubt: false,
    }
}

/// Interval schedules that all fire each second: one tick a second.
fn scheduler(what: &str, schedules: u64, seconds: u64) {
    let (mut out, mut fires) = (Out::default(), Vec::new());
    let opened = ScheduleOpened::default();
    let mut machine = SchedulerShard::open(make::facts(1), opened, at(0), &mut out).unwrap();
    for number in 0..schedules {
        let create = ScheduleInput::Create {
            reply: ReplyTo(number),
            name: (make::name("default"), make::name(&format!("s{number}"))),
            spec: Box::new(every_second()),
            paused: false,
        };
        machine.step(at(0), create, &mut out, &mut fires);
    }
    let (watch, mut steps, mut items) = (Watch::begin(), 0, 0);
    for second in 1..=seconds {
        loop {
            let (mut out, mut fires) = (Out::default(), Vec::new());
            machine.step(at(second), ScheduleInput::Tick, &mut out, &mut fires);
            steps += 1;
            items += fires.len() as u64;
            if fires.is_empty() {
                break;
            }
        }
    }
    assert!(items >= schedules * seconds, "each schedule fires each second");
    watch.report(what, steps, items);
}

fn every_second() -> ScheduleSpec {
    ScheduleSpec {
        rule: Rule::Interval {
            every: Span::from_secs(1),
            anchor: StoreTime::from_secs(START),
            zone: Arc::from("UTC"),
        },
        starts_at: None,
        ends_at: None,
        count_max: None,
        exclusions: Vec::new(),
        jitter: Span::ZERO,
        misfire: MisfirePolicy::Latest,
        tolerance: Span::from_secs(60),
        grace: None,
        job: Arc::new(make::spec()),
    }
}

/// A lease manager, and the grants of its last offer.
struct Leases {
    machine: LeaseManager,
    offers: u64,
    steps: u64,
}

impl Leases {
    fn new() -> Leases {
        let mut out = Out::default();
        let machine = LeaseManager::open(make::facts(1), LeaseOpened::default(), at(0), &mut out);
        let mut leases = Leases {
            machine,
            offers: 0,
            steps: 0,
        };
        // The shard is empty: every page is the end of its range.
        let waits = LeaseInput::WaitLoaded {
            rows: Vec::new(),
            end: true,
            horizon: None,
        };
        leases.step(waits);
        leases
    }

    fn step(&mut self, input: LeaseInput) -> Vec<Grant> {
        let mut out = Out::default();
        self.machine.step(at(1), input, &mut out);
        self.steps += 1;
        let grants = out.effects.into_iter().find_map(|effect| match effect {
            LeaseEffect::SendGrants { grants, .. } => Some(grants),
            _ => None,
        });
        grants.unwrap_or_default()
    }

    fn create(&mut self, from: u64, count: u64) {
        let spec = Arc::new(make::spec());
        let item = |number| {
            let mut item = make::item(number, make::spec());
            item.spec = spec.clone();
            item
        };
        let items = (from..from + count).map(item).collect();
        let reply = ReplyTo(from);
        self.step(LeaseInput::CreateJobs { reply, items });
    }

    fn offer(&mut self, slots: u64) -> Vec<Grant> {
        self.offers += 1;
        let offer = OfferId(self.offers);
        let worker = make::worker("a", 1);
        let grants = self.step(LeaseInput::Offer {
            worker: worker.clone(),
            offer,
            slots: slots as u32,
            queues: Vec::new(),
            commands: true,
            waits: false,
            apart: u32::MAX,
        });
        self.step(LeaseInput::GrantsReleased { worker, offer });
        grants
    }
}

/// Create, grant, complete: the whole life of jobs, so many a message.
fn leases(what: &str, batch: u64, jobs: u64) {
    let mut leases = Leases::new();
    let (watch, mut done) = (Watch::begin(), 0);
    while done < jobs {
        leases.create(done, batch);
        let grants = leases.offer(batch);
        assert_eq!(grants.len() as u64, batch);
        let outcome = |grant: Grant| AttemptOutcome {
            id: grant.job.id,
            token: grant.token,
            outcome: make::succeeded(),
            job: None,
        };
        let items = grants.into_iter().map(outcome).collect();
        let worker = make::worker("a", 1);
        leases.step(LeaseInput::Outcomes { worker, items });
        done += batch;
    }
    watch.report(what, leases.steps, done);
}

fn heartbeats(what: &str, rounds: u64) {
    let mut leases = Leases::new();
    leases.create(0, 512);
    let held: Vec<(JobId, Token)> = leases.offer(512).iter().map(|g| (g.job.id, g.token)).collect();
    let (watch, before) = (Watch::begin(), leases.steps);
    for round in 0..rounds {
        leases.step(LeaseInput::Heartbeat {
            worker: make::worker("a", 1),
            beat: BeatId(round),
            held: held.clone(),
        });
    }
    watch.report(what, leases.steps - before, rounds * held.len() as u64);
}

/// A worker whose owner answers at once: offer, grant, start, end, record.
fn worker(what: &str, batch: u64, attempts: u64) {
    let spec = Arc::new(grant_of(0, Arc::new(job())));
    let mut machine = WorkerMachine::new(WorkerConfig::new(batch as u32, ShardMap::new(1).unwrap()));
    let (mut effects, mut steps, mut done) = (Vec::new(), 0, 0);
    let watch = Watch::begin();
    let mut inputs = vec![WorkerInput::ReadyHint(ShardId(0))];
    while done < attempts {
        for input in inputs.drain(..) {
            machine.step(Monotonic(done), input, &mut effects);
            steps += 1;
        }
        for effect in effects.drain(..) {
            match effect {
                WorkerEffect::SendOffer { offer, slots, .. } => {
                    let grants = (1..=u64::from(slots)).map(|n| grant_of(done + n, spec.job.clone()));
                    inputs.push(WorkerInput::Granted {
                        from: owner(),
                        offer,
                        grants: grants.collect(),
                        waited: Span::ZERO,
                        more: true,
                        apart: None,
                    });
                    done += u64::from(slots);
                }
                WorkerEffect::StartAttempt { grant, .. } => inputs.push(WorkerInput::AttemptsFinished {
                    items: vec![(grant.job.id, grant.token, make::succeeded())],
                }),
                WorkerEffect::SendOutcomes { items, .. } => {
                    let recorded = |(id, token, _)| (id, token, Recorded::Recorded);
                    inputs.push(WorkerInput::Recorded {
                        from: owner(),
                        items: items.into_iter().map(recorded).collect(),
                    });
                }
                WorkerEffect::SendHeartbeat { beat, held, .. } => {
                    let length = Span::from_secs(30);
                    let renewal = |(id, token)| Renewal { id, token, length };
                    let held = held.into_iter().map(renewal).collect();
                    let from = owner();
                    inputs.push(WorkerInput::Renewed { from, beat, held });
                }
                _ => {}
            }
        }
    }
    watch.report(what, steps, done);
}

fn owner() -> ShardOwner {
    ShardOwner {
        shard: ShardId(0),
        generation: Generation(1),
        epoch: make::facts(1).epoch,
    }
}

fn job() -> fencepost_core::job::Job {
    let mut leases = Leases::new();
    leases.create(1, 1);
    leases.offer(1)[0].job.as_ref().clone()
}

/// Grants of one job over and over: the worker tells attempts apart by token.
fn grant_of(sequence: u64, job: Arc<fencepost_core::job::Job>) -> Grant {
    Grant {
        job,
        attempt: 1,
        token: Token {
            generation: Generation(1),
            epoch: owner().epoch,
            sequence,
        },
        length: Span::from_secs(30),
        granted_at: StoreTime::from_secs(START),
    }
}
