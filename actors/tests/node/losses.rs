//! Nodes between which words are lost, and owners that follow each other faster than any lease.
//!
//! Owns: F8 and F16 where the owner of a shard and the worker are on different nodes, over real sockets. Must never:
//! lose an answer to a call, which its caller sees. Next: `claims.rs`, `../process/workers.rs` (with processes).

use super::claims::{Counter, Lengths, Owner, cell, offer, shard_of};
use super::*;
use fencepost::mesh::peer::Peer;
use fencepost::mesh::{LinkNews, NodeFacts, Roles, Service};
use fencepost::shell::messages::{ToShard, WorkerLink};
use fencepost::worker::ToWorker;
use fencepost_core::ids::{Scope, Token, WorkerId};
use fencepost_core::job::{AttemptResult, Delivery, Job};
use fencepost_core::level;
use fencepost_core::row::{LeasedRow, Row, RowKey};
use fencepost_core::target::Target;
use fencepost_core::worker::io::WorkerInput;
use fencepost_storage::codec::decode_row;
use fencepost_storage::keys::key_bytes;
use fencepost_storage::store::Store as _;
use futures_util::future::BoxFuture;

/// Loses about an eighth of what is told to a service.
struct Losing {
    service: Arc<dyn Service>,
    line: AtomicU64,
    lost: Arc<AtomicU64>,
}

impl Service for Losing {
    fn is_open_to(&self, roles: Roles) -> bool {
        self.service.is_open_to(roles)
    }

    fn call(&self, from: &NodeFacts, body: &[u8]) -> BoxFuture<'static, Vec<u8>> {
        self.service.call(from, body)
    }

    fn tell(&self, from: &NodeFacts, back: &Peer, body: &[u8]) {
        let next = |line: u64| line.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let drawn = self
            .line
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |line| Some(next(line)));
        if drawn.unwrap() >> 61 > 0 {
            return self.service.tell(from, back, body);
        }
        self.lost.fetch_add(1, Ordering::SeqCst);
    }

    fn on_link(&self, from: &NodeFacts, news: LinkNews<'_>) {
        self.service.on_link(from, news);
    }
}

/// No lease ends while words are said again.
const PATIENT: Lengths = Lengths {
    lease: Span::from_secs(30),
    heartbeat: Span::from_millis(100),
};
/// Leases that end within a test.
const QUICK: Lengths = Lengths {
    lease: Span::from_secs(3),
    heartbeat: Span::from_millis(100),
};

#[test]
fn f08_an_eighth_of_what_nodes_tell_each_other_is_lost_and_all_is_done_once() {
    run(async {
        let world = cell().await;
        let lost: [Arc<AtomicU64>; 2] = Default::default();
        let losing = |lost: &Arc<AtomicU64>, service| -> Arc<dyn Service> {
            Arc::new(Losing {
                service,
                line: AtomicU64::new(20_261_201),
                lost: lost.clone(),
            })
        };
        let to_owner = |service| losing(&lost[0], service);
        let to_worker = |service| losing(&lost[1], service);
        let owner = Owner::start_over(&world, ("a", level::NEWEST), PATIENT, &to_owner).await;
        owner.host(&world, true).await;
        let counter = Counter::over(&world, PATIENT, &to_worker);
        counter.owners.learn_board(&owner.holds(1));
        let mut made = Vec::new();
        for number in 0..60 {
            let noop = (Target::Handler(name("noop")), Delivery::AtLeastOnce);
            made.push(owner.create_for(number, noop).await);
        }
        let worker = counter.start_worker(&world, 6, HandlerRegistry::default()).await;
        for id in made {
            let mut job = owner.job(&world, id).await;
            while job.state != JobState::Succeeded {
                assert_ne!(job.state, JobState::Dead, "{:?}", job.attempts);
                world.settle().await;
                job = owner.job(&world, id).await;
            }
            // What is lost on its way to a worker goes back by its own word, and costs nothing (F14).
            assert_eq!(job.charged, 1, "{:?}", job.attempts);
        }
        worker.send(ToWorker::Stop).await.unwrap();
        let lost = lost.map(|lost| lost.load(Ordering::SeqCst));
        assert!(lost.iter().all(|lost| *lost > 0), "both ways: {lost:?}");
    });
}

/// No owner is there for as long as a lease is.
const TURN: Span = Span::from_secs(2);

/// Takes one job and is never heard again.
async fn dies_with(world: &World, owner: &Owner, id: JobId) -> Token {
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let link: WorkerLink = Arc::new(move |input| {
        if let WorkerInput::Granted { grants, .. } = input {
            grants.iter().for_each(|grant| tell.send(grant.token).unwrap());
        }
        true
    });
    let dead = WorkerId::of_start(name("dead"), 7 << 40);
    loop {
        let asks = ToShard::Worker(dead.clone(), link.clone(), offer("default"));
        owner.shard_of(id).send(asks).await.unwrap();
        world.settle().await;
        if let Ok(token) = told.try_recv() {
            return token;
        }
    }
}

async fn leased(world: &World, id: JobId) -> Option<LeasedRow> {
    let key = key_bytes(&RowKey::Leased(id));
    let found = world.store.get(vec![key.clone()]).await.unwrap().remove(0)?;
    match decode_row(&key, &found).unwrap() {
        Row::Leased(row) => Some(*row),
        other => panic!("no lease: {other:?}"),
    }
}

/// Lets a turn go by while a worker says that it is alive; whether the dead one's lease was ended in it.
async fn turn(world: &World, counter: &Counter, living: &str, dead: JobId) -> bool {
    let until = world.clock.mono() + TURN;
    while world.clock.mono() < until {
        let beat = counter.desk.beat(&name("py"), &[(living.to_owned(), None)]);
        assert!(beat[0].left.is_some(), "a living worker lost its lease");
        world.clock.sleep(Span::from_millis(50)).await;
        if leased(world, dead).await.is_none() {
            return true;
        }
    }
    false
}

#[test]
fn f16_owners_that_follow_each_other_on_two_nodes_keep_no_dead_worker_alive_and_lose_no_living_one() {
    run(async {
        let world = cell().await;
        let of = |node| Owner::start_over(&world, (node, level::NEWEST), QUICK, &|service| service);
        let owners = [of("a").await, of("b").await];
        owners[0].host(&world, true).await;
        let dead = owners[0].create(1).await;
        dies_with(&world, &owners[0], dead).await;
        let counter = Counter::over(&world, QUICK, &|service| service);
        counter.owners.learn_board(&owners[0].holds(1));
        let living = owners[0].create(2).await;
        let handed = counter.claim_all(1).await.remove(0);
        assert_eq!(handed.context.job, living);
        let mut turns = 1;
        while !turn(&world, &counter, &handed.grant, dead).await {
            turns += 1;
            assert!(turns < 8, "each owner gives the dead one a whole lease");
            let (before, after) = (&owners[turns % 2], &owners[(turns + 1) % 2]);
            before.host(&world, false).await;
            after.host(&world, true).await;
            counter.owners.learn_board(&after.holds(turns as u64));
        }
        let owner = &owners[(turns + 1) % 2];
        let lost: Job = owner.job(&world, dead).await;
        assert_eq!(lost.attempts[0].result, AttemptResult::WorkerLost);
        let epoch = world.store.epoch(Scope::Shard(shard_of(living))).await.unwrap();
        let seen = leased(&world, living).await.unwrap().seen;
        assert_eq!(seen, epoch, "noted by the owner that hears it");
        counter.report(&handed).await;
        let job = owner.job(&world, living).await;
        assert_eq!((job.state, job.charged), (JobState::Succeeded, 1));
        let again = counter.claim_all(1).await.remove(0);
        assert_eq!((again.context.job, again.context.attempt), (dead, 2));
        counter.report(&again).await;
        assert_eq!(owner.job(&world, dead).await.state, JobState::Succeeded);
    });
}
