//! A job that kills its process, beside long jobs, over two shards of one process (BEH-R02): both lease managers
//! and the worker, in virtual time.
//!
//! Owns: the cell that dies and comes back. Next: `beh.rs` for one shard alone.

use crate::support::lease_harness::Leases;
use crate::support::make::{item, spec, succeeded, worker};
use fencepost_core::ids::{JobId, ShardId, ShardMap, ShardOwner, Slot, Token, WorkerId};
use fencepost_core::job::{Job, JobState};
use fencepost_core::lease_manager::io::{CreateItem, LeaseEffect, LeaseInput};
use fencepost_core::time::{Monotonic, Span};
use fencepost_core::worker::io::{WorkerEffect, WorkerInput};
use fencepost_core::worker::{WorkerConfig, WorkerMachine};
use std::collections::{BTreeMap, VecDeque};

const STEP: Span = Span::from_millis(50);
const GAP: Span = Span::from_secs(8);
/// They outlive what the killer does before it is dead, or a bound after which they count as harmless.
const LONG: [Span; 3] = [Span::from_secs(25), Span::from_secs(100), Span::from_secs(1_800)];

/// One process with two shards and a worker.
struct Cell {
    shards: Vec<Leases>,
    worker: WorkerMachine,
    id: WorkerId,
    orders: VecDeque<WorkerEffect>,
    running: BTreeMap<(JobId, Token), Monotonic>,
    killer: JobId,
    kills_after: Span,
    long: Span,
}

fn map() -> ShardMap {
    ShardMap::new(2).unwrap()
}

fn in_shard(shard: u16, number: u8) -> JobId {
    let first = map().slots_of(ShardId(shard)).0;
    JobId::fresh(Slot::new(first as u16).unwrap(), [number; 14])
}

impl Cell {
    fn new(killer: JobId, kills_after: Span, long: Span) -> Cell {
        let shards = [0, 1].map(|shard| {
            let mut leases = Leases::new();
            (leases.facts.shard, leases.facts.map) = (ShardId(shard), map());
            leases.restart();
            leases
        });
        Cell {
            shards: shards.into(),
            worker: WorkerMachine::new(WorkerConfig::new(16, map())),
            id: worker("a", 1),
            orders: VecDeque::new(),
            running: BTreeMap::new(),
            killer,
            kills_after,
            long,
        }
    }

    fn shard_of(&mut self, id: JobId) -> &mut Leases {
        &mut self.shards[usize::from(map().shard_of(id.slot()).0)]
    }

    fn create(&mut self, id: JobId) {
        let item = CreateItem { id, ..item(1, spec()) };
        self.shard_of(id).create(item).unwrap();
    }

    fn job(&self, id: JobId) -> Job {
        let shard = &self.shards[usize::from(map().shard_of(id.slot()).0)];
        shard.rows.job(id).unwrap()
    }

    fn now(&self) -> Monotonic {
        self.shards[0].now.mono
    }

    /// What the shards say goes to the worker and what it says to them, until nobody has anything to say.
    fn talk(&mut self) {
        loop {
            let mut inputs = Vec::new();
            for shard in &mut self.shards {
                inputs.extend(heard(shard, &self.id));
            }
            for input in inputs {
                self.put(input);
            }
            let Some(order) = self.orders.pop_front() else { return };
            self.deliver(order);
        }
    }

    fn put(&mut self, input: WorkerInput) {
        let mut effects = Vec::new();
        self.worker.step(self.now(), input, &mut effects);
        self.worker.check();
        self.orders.extend(effects);
    }

    fn deliver(&mut self, order: WorkerEffect) {
        let worker = self.id.clone();
        match order {
            WorkerEffect::SendOffer {
                shard,
                offer,
                slots,
                queues,
                commands,
                waits,
                apart,
            } => {
                let input = LeaseInput::Offer {
                    worker,
                    offer,
                    slots,
                    queues,
                    commands,
                    waits,
                    apart,
                };
                self.shards[usize::from(shard.0)].step(input);
            }
            WorkerEffect::SendHeartbeat { shard, beat, held } => {
                self.shards[usize::from(shard.0)].step(LeaseInput::Heartbeat { worker, beat, held });
            }
            WorkerEffect::SendOutcomes { shard, items } => {
                let leases = &mut self.shards[usize::from(shard.0)];
                let report = |(id, token, outcome)| (id, token, leases.report(&worker, id, token, outcome));
                let items = items.into_iter().map(report).collect();
                let from = owner(leases);
                self.put(WorkerInput::Recorded { from, items });
            }
            WorkerEffect::StartAttempt { grant, .. } => {
                self.running.insert((grant.job.id, grant.token), self.now());
            }
            WorkerEffect::ExtendAttempt { .. } | WorkerEffect::TellRecorded { .. } => {}
            other => panic!("{other:?}"),
        }
    }

    /// Time passes; what has run for long enough ends, or ends the process.
    fn pass(&mut self) {
        for shard in &mut self.shards {
            shard.pass(STEP);
        }
        self.put(WorkerInput::Tick);
        self.talk();
        let now = self.now();
        let ended = |(key, since): (&(JobId, Token), &Monotonic)| {
            let span = if key.0 == self.killer {
                self.kills_after
            } else {
                self.long
            };
            (now.since(*since) >= span).then_some(*key)
        };
        let ended: Vec<_> = self.running.iter().filter_map(ended).collect();
        if ended.iter().any(|(id, _)| *id == self.killer) {
            return self.crash();
        }
        for key in ended {
            self.running.remove(&key);
            let items = vec![(key.0, key.1, succeeded())];
            self.put(WorkerInput::AttemptsFinished { items });
        }
        self.talk();
    }

    fn crash(&mut self) {
        self.id.boot += 1 << 24;
        self.running.clear();
        self.orders.clear();
        self.worker = WorkerMachine::new(WorkerConfig::new(16, map()));
        for shard in &mut self.shards {
            shard.effects.clear();
            shard.dead_node = Some((self.id.node.clone(), self.id.boot));
            shard.restart();
        }
        self.talk();
    }
}

fn owner(leases: &Leases) -> ShardOwner {
    let facts = &leases.facts;
    ShardOwner {
        shard: facts.shard,
        generation: facts.generation,
        epoch: facts.epoch,
    }
}

/// What a shard has to say to the worker since it was last asked.
fn heard(shard: &mut Leases, id: &WorkerId) -> Vec<WorkerInput> {
    let from = owner(shard);
    let mut inputs = Vec::new();
    for effect in shard.take_effects() {
        match effect {
            LeaseEffect::HintReady => inputs.push(WorkerInput::ReadyHint(from.shard)),
            LeaseEffect::SendGrants {
                worker,
                offer,
                received_at,
                grants,
                more,
                apart,
            } if worker == *id => {
                let waited = shard.now.mono.since(received_at);
                inputs.push(WorkerInput::Granted {
                    from,
                    offer,
                    grants,
                    waited,
                    more,
                    apart,
                });
                shard.step(LeaseInput::GrantsReleased { worker, offer });
            }
            LeaseEffect::SendRenewed { worker, beat, held } if worker == *id => {
                inputs.push(WorkerInput::Renewed { from, beat, held });
            }
            LeaseEffect::SendLost { worker, lost } if worker == *id => inputs.push(WorkerInput::Lost { from, lost }),
            _ => {}
        }
    }
    inputs
}

/// The killer comes at this place among three long jobs, one after the other with this gap; until all of them are
/// finished. Most workers that one of the three lost.
fn innocents_lost(long: Span, kills_after: Span, (place, gap): (usize, Span)) -> u32 {
    let killer = in_shard(0, 9);
    let innocents = [in_shard(0, 1), in_shard(1, 2), in_shard(1, 3)];
    let mut order = innocents.to_vec();
    order.insert(place, killer);
    let mut cell = Cell::new(killer, kills_after, long);
    for id in &order {
        cell.create(*id);
        let began = cell.now();
        while cell.now() < began + gap {
            cell.pass();
        }
    }
    let end = cell.now() + Span::from_secs(7_200);
    while order.iter().any(|id| !cell.job(*id).state.is_finished()) {
        cell.pass();
        assert!(cell.now() < end, "it comes to an end");
    }
    let dead = cell.job(killer);
    assert_eq!((dead.state, dead.charged), (JobState::Dead, 3), "the killer");
    cell.shards.iter().for_each(Leases::check);
    let lost = innocents.map(|id| {
        let job = cell.job(id);
        let history = (kills_after, place, gap, &job.attempts);
        assert_eq!(job.state, JobState::Succeeded, "{history:?}");
        job.workers_lost()
    });
    lost.into_iter().max().unwrap()
}

#[test]
fn beh_r02_long_jobs_in_two_shards_beside_a_killer_are_charged_once_if_it_came_last() {
    for long in LONG {
        for millis in [100, 3_000] {
            let lost = innocents_lost(long, Span::from_millis(millis), (3, STEP));
            assert_eq!(lost, 1, "it kills after {millis} ms");
        }
    }
}

/// The killer may be the first of all: then it is the last that is tried, beside those that ran for long enough.
#[test]
fn beh_r02_long_jobs_in_two_shards_beside_a_killer_outlive_it_in_any_order() {
    for long in LONG {
        for millis in [200, 3_000, 7_000, 20_000, 50_000] {
            for came in (0..4).flat_map(|place| [(place, STEP), (place, GAP)]) {
                let lost = innocents_lost(long, Span::from_millis(millis), came);
                assert!(lost <= 2, "{lost} beside one at {came:?} that kills after {millis} ms");
            }
        }
    }
}
