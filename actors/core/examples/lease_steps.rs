//! How many steps a second the lease manager takes: `cargo run --release -p fencepost-core --example
//! lease_steps`. Prints one line per kind of step; decides nothing.

use fencepost_core::ids::{
    BeatId, Epoch, Generation, Holder, JobId, OfferId, ShardId, ShardMap, Slot, Token, WorkerId,
};
use fencepost_core::job::{Delivery, JobSpec, Outcome, RetryPolicy, Verdict};
use fencepost_core::lease_manager::LeaseManager;
use fencepost_core::lease_manager::io::{AttemptOutcome, CreateItem, LeaseEffect, LeaseInput, LeaseOpened};
use fencepost_core::machine::{Out, ReplyTo};
use fencepost_core::name::Name;
use fencepost_core::shard::ShardFacts;
use fencepost_core::target::{Payload, Target};
use fencepost_core::time::{Monotonic, Now, Span, StoreTime};
use std::sync::Arc;
use std::time::Duration;

type Orders = Out<LeaseEffect>;

const ROUNDS: u64 = 2_000;
const BATCH: u64 = 256;

fn name(text: &str) -> Name {
    Name::new(text).expect("a name of the alphabet")
}

fn main() {
    let mut bench = Bench::new();
    let mut spent = [Duration::ZERO; 5];
    for round in 0..ROUNDS {
        let items = bench.items(round);
        spent[0] += bench.timed(LeaseInput::CreateJobs {
            reply: ReplyTo(round),
            items,
        });
        let (worker, offer) = (bench.worker.clone(), OfferId(round + 1));
        spent[1] += bench.timed(LeaseInput::Offer {
            worker,
            offer,
            slots: BATCH as u32,
            queues: Vec::new(),
        });
        let held = bench.granted();
        let worker = bench.worker.clone();
        spent[2] += bench.timed(LeaseInput::Heartbeat {
            worker,
            beat: BeatId(round),
            held: held.clone(),
        });
        let (worker, items) = (bench.worker.clone(), outcomes(&held));
        spent[3] += bench.timed(LeaseInput::Outcomes { worker, items });
        for _ in 0..BATCH {
            spent[4] += bench.timed(LeaseInput::Tick);
        }
    }
    for (what, spent) in ["create", "grant", "renew", "outcome", "tick"].iter().zip(spent) {
        let rate = (ROUNDS * BATCH) as f64 / spent.as_secs_f64();
        println!("{what:8} {rate:>12.0}/s");
    }
}

struct Bench {
    machine: LeaseManager,
    now: Now,
    worker: WorkerId,
    spec: Arc<JobSpec>,
    out: Orders,
}

impl Bench {
    fn new() -> Bench {
        let facts = ShardFacts {
            shard: ShardId(0),
            map: ShardMap::new(1).expect("one shard"),
            generation: Generation(1),
            epoch: Epoch(1),
            holder: Holder(1),
            lease: Span::from_secs(30),
            heartbeat: Span::from_secs(8),
        };
        let now = Now {
            store: StoreTime::from_secs(1_780_000_000),
            mono: Monotonic(1),
            doubt: false,
        };
        let machine = LeaseManager::open(facts, LeaseOpened::default(), now, &mut Out::default());
        let worker = WorkerId {
            node: name("bench"),
            boot: 1,
        };
        Bench {
            machine,
            now,
            worker,
            spec: Arc::new(spec()),
            out: Out::default(),
        }
    }

    fn items(&self, round: u64) -> Vec<CreateItem> {
        let item = |number: u64| {
            let mut chance = [0; 14];
            chance[6..].copy_from_slice(&number.to_be_bytes());
            CreateItem {
                id: JobId::fresh(Slot::new(7).expect("a slot"), chance),
                spec: self.spec.clone(),
                due_at: None,
                grace: None,
                key: None,
                key_row: None,
                existing: None,
            }
        };
        (round * BATCH..(round + 1) * BATCH).map(item).collect()
    }

    fn timed(&mut self, input: LeaseInput) -> Duration {
        self.now.mono = self.now.mono + Span(10);
        self.now.store = self.now.store + Span(10);
        self.out.writes.clear();
        self.out.effects.clear();
        let start = clock();
        self.machine.step(self.now, input, &mut self.out);
        clock() - start
    }

    fn granted(&self) -> Vec<(JobId, Token)> {
        let grants = self.out.effects.iter().find_map(|effect| match effect {
            LeaseEffect::SendGrants { grants, .. } => Some(grants),
            _ => None,
        });
        grants.map_or_else(Vec::new, |grants| grants.iter().map(|g| (g.job.id, g.token)).collect())
    }
}

fn outcomes(held: &[(JobId, Token)]) -> Vec<AttemptOutcome> {
    let outcome = Outcome {
        verdict: Verdict::Succeeded,
        error: None,
        output: Arc::from([]),
    };
    let one = |(id, token): &(JobId, Token)| AttemptOutcome {
        id: *id,
        token: *token,
        outcome: outcome.clone(),
        job: None,
    };
    held.iter().map(one).collect()
}

fn spec() -> JobSpec {
    JobSpec {
        tenant: name("default"),
        queue: name("default"),
        target: Target::Handler(name("noop")),
        payload: Payload::empty(),
        priority: 5,
        tags: Vec::new(),
        timeout: Span::from_secs(300),
        retry: RetryPolicy {
            attempt_count_max: 3,
            backoff_first: Span::from_secs(1),
            backoff_cap: Span::from_secs(60),
        },
        delivery: Delivery::AtLeastOnce,
        expires_at: None,
    }
}

/// The one reading of a clock here; the machine is only told.
#[allow(clippy::disallowed_methods, reason = "measures the machine from outside")]
fn clock() -> std::time::Instant {
    std::time::Instant::now()
}
