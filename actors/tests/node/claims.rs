//! Claims over HTTP and the shards of other nodes: owners and a desk in one process, over real sockets.
//!
//! Owns: that a claim takes jobs of every shard wherever it is, that its attempts follow a shard to its next owner,
//! that no grant goes to nobody, and what an owner that follows another knows. Next: `../../src/desk/`,
//! `../../src/cluster/`, `../process/workers.rs`.

use super::pair::{CELL, Listening, facts, listen, parts};
use super::*;
use actix::Addr;
use fencepost::cluster::far_workers::ReportService;
use fencepost::cluster::near_workers::OrderService;
use fencepost::cluster::owners::Owners;
use fencepost::cluster::route::Router;
use fencepost::cluster::work::{Far, Ways};
use fencepost::desk::{Ask, Desk, DeskParts, GrantKey, Handed, Report};
use fencepost::mesh::envelope::{ORDERS, REPORTS};
use fencepost::mesh::{Roles, Service};
use fencepost::node::lanes::start_on;
use fencepost::node::level::CellLevel;
use fencepost::node::notes::Notes;
use fencepost::node::trust::ClockWatch;
use fencepost::shell::load::OpenPlan;
use fencepost::shell::messages::{FromWorker, ToShard, WorkerLink};
use fencepost::shell::shard_actor::{ShardActor, ShardParts};
use fencepost::worker::{WorkerActor, WorkerParts};
use fencepost_core::coordinator::board::{BoardView, Hold, Session, ShardReport};
use fencepost_core::ids::{Generation, OfferId, ShardId, ShardMap, WorkerId};
use fencepost_core::job::{AttemptResult, Delivery, EffectProof, Job, Outcome, Verdict};
use fencepost_core::lease_manager::io::Grant;
use fencepost_core::level::{self, Level};
use fencepost_core::limits::WORKER_LINKS_MAX;
use fencepost_core::row::{Row, RowKey};
use fencepost_core::scheduler_shard::io::FireNote;
use fencepost_core::target::Target;
use fencepost_core::worker::WorkerConfig;
use fencepost_core::worker::io::WorkerInput;
use fencepost_storage::codec::decode_row;
use fencepost_storage::keys::key_bytes;
use fencepost_storage::store::Store as _;
use std::sync::Mutex;
use tokio::sync::{Semaphore, oneshot};

const SHARDS: u16 = 4;
static COUNTERS: AtomicU64 = AtomicU64::new(2);

struct Nobody;

impl Notes for Nobody {
    fn job_changed(&self, _: &Job) {}

    fn attempt_ended(&self, _: &Job) {}

    fn job_purged(&self, _: JobId, _: JobState) {}

    fn fired(&self, _: &FireNote) {}
}

/// What lies between two nodes: takes a node's service, and is what the other one reaches.
pub(super) type Between<'a> = &'a dyn Fn(Arc<dyn Service>) -> Arc<dyn Service>;

/// How long leases and heartbeats are.
#[derive(Clone, Copy)]
pub(super) struct Lengths {
    pub(super) lease: Span,
    pub(super) heartbeat: Span,
}

const USUAL: Lengths = Lengths {
    lease: Span::from_secs(30),
    heartbeat: Span::from_secs(1),
};

/// A node that may own shards: each opens once it is hosted.
pub(super) struct Owner {
    node: &'static str,
    shards: Vec<Addr<ShardActor>>,
    reports: Arc<ReportService>,
    listening: Listening,
}

impl Owner {
    pub(super) async fn start(world: &World, node: &'static str) -> Owner {
        Owner::start_in(world, node, level::NEWEST).await
    }

    /// When it started the cell was at this level; nobody looks at the cell's row after that.
    async fn start_in(world: &World, node: &'static str, level: Level) -> Owner {
        Owner::start_over(world, (node, level), USUAL, &|service| service).await
    }

    pub(super) async fn start_over(
        world: &World,
        (node, level): (&'static str, Level),
        lengths: Lengths,
        between: Between<'_>,
    ) -> Owner {
        let map = ShardMap::new(SHARDS).unwrap();
        let level = CellLevel::new(level);
        let mut shards = Vec::new();
        for shard in map.shards() {
            let parts = ShardParts {
                store: Arc::new(world.store.clone()),
                clock: world.clock.clone(),
                chance: Arc::new(SystemChance),
                fatal: Arc::new(|reason| panic!("the store broke: {reason}")),
                notes: Arc::new(Nobody),
                plan: OpenPlan {
                    shard,
                    map,
                    generation: Generation(1),
                    // All of them are assigned to it by their rows.
                    node: name("local"),
                    local: None,
                },
                lease: lengths.lease,
                heartbeat: lengths.heartbeat,
                key_kept: Span::from_secs(3_600),
                trust: ClockWatch::new(world.clock.clone(), Span::from_secs(60)),
                level: level.clone(),
                trial_turn: Arc::new(Semaphore::new(1)),
                hosted: false,
            };
            shards.push(start_on(&local_lane(), move || ShardActor::new(parts)).await.unwrap());
        }
        let reports = Arc::new(ReportService::default());
        reports.serve(&shards);
        let here = facts(node, 1, Roles::SCHEDULER);
        Owner {
            node,
            shards,
            listening: listen(parts(Some(CELL), here, &[(REPORTS, between(reports.clone()))])).await,
            reports,
        }
    }

    pub(super) async fn host(&self, world: &World, hosted: bool) {
        for shard in &self.shards {
            shard.send(ToShard::Host(hosted)).await.unwrap();
            while hosted && !self.is_open(shard).await {
                world.settle().await;
            }
        }
    }

    async fn is_open(&self, shard: &Addr<ShardActor>) -> bool {
        let (tell, told) = oneshot::channel();
        shard.send(ToShard::Probe(tell)).await.unwrap();
        told.await.unwrap().open
    }

    /// Says on a board that it holds all shards, as of this version.
    pub(super) fn holds(&self, version: u64) -> BoardView {
        let report = ShardReport {
            version,
            hold: Hold::Held,
            progress: 0,
        };
        BoardView {
            board: 1,
            number: version,
            is_young: false,
            length: Span::from_secs(1),
            sessions: vec![Session {
                node: name(self.node),
                boot: 1,
                beat: version,
                takes: true,
                coordinates: None,
                decided: 0,
                shards: vec![report; usize::from(SHARDS)],
                address: self.listening.address.to_string().into(),
                level: level::NEWEST,
            }],
        }
    }

    /// Asks about the schedule `tick`.
    async fn ask(&self, request: ScheduleRequest) -> ScheduleReply {
        let schedule = (name("default"), name("tick"));
        let slot = Slot::of_schedule(&schedule.0, &schedule.1);
        let shard = ShardMap::new(SHARDS).unwrap().shard_of(slot);
        let (tell, told) = oneshot::channel();
        let asked = ToShard::Client(Box::new(ShardRequest::Schedule(schedule, request)), tell);
        self.shards[usize::from(shard.0)].send(asked).await.unwrap();
        match told.await.unwrap() {
            Ok(ShardReply::Schedule(reply)) => reply,
            other => panic!("no answer about a schedule: {other:?}"),
        }
    }

    async fn run_now(&self, request: u64) -> JobId {
        match self.ask(ScheduleRequest::RunNow { request }).await {
            ScheduleReply::Ran { job, .. } => job,
            other => panic!("not run: {other:?}"),
        }
    }

    pub(super) async fn create(&self, number: u8) -> JobId {
        self.create_as(number, Delivery::AtLeastOnce).await
    }

    async fn create_as(&self, number: u8, delivery: Delivery) -> JobId {
        self.create_for(number, (Target::Remote(name("resize")), delivery))
            .await
    }

    pub(super) async fn create_for(&self, number: u8, (target, delivery): (Target, Delivery)) -> JobId {
        let id = JobId::fresh(Slot::of(&[&[number]]), [number; 14]);
        let mut made = item(id, "noop");
        let spec = Arc::make_mut(&mut made.spec);
        (spec.target, spec.delivery) = (target, delivery);
        let (tell, told) = oneshot::channel();
        let asked = ShardRequest::CreateJobs(vec![made]);
        let shard = self.shard_of(id);
        shard.send(ToShard::Client(Box::new(asked), tell)).await.unwrap();
        told.await.unwrap().unwrap();
        id
    }

    pub(super) fn shard_of(&self, id: JobId) -> &Addr<ShardActor> {
        &self.shards[usize::from(shard_of(id).0)]
    }

    /// As it is stored.
    pub(super) async fn job(&self, world: &World, id: JobId) -> Job {
        let key = key_bytes(&RowKey::Job(id));
        let found = world.store.get(vec![key.clone()]).await.unwrap().remove(0);
        match decode_row(&key, &found.unwrap()).unwrap() {
            Row::Job(job) => *job,
            other => panic!("no job: {other:?}"),
        }
    }
}

pub(super) fn shard_of(id: JobId) -> ShardId {
    ShardMap::new(SHARDS).unwrap().shard_of(id.slot())
}

/// A desk on a node that owns nothing.
pub(super) struct Counter {
    pub(super) desk: Arc<Desk>,
    pub(super) owners: Arc<Owners>,
    router: Arc<Router>,
    ways: Ways,
    lengths: Lengths,
    claims_made: AtomicU64,
}

impl Counter {
    pub(super) fn new(world: &World) -> Counter {
        Counter::over(world, USUAL, &|service| service)
    }

    pub(super) fn over(world: &World, lengths: Lengths, between: Between<'_>) -> Counter {
        let orders = Arc::new(OrderService::default());
        // Each is a start of its own.
        let boot = COUNTERS.fetch_add(1, Ordering::SeqCst);
        let here = facts("w", boot, Roles::GATEWAY);
        let mesh = parts(None, here, &[(ORDERS, between(orders.clone()))]);
        let (owners, router) = (Arc::new(Owners::new(name("w"))), Arc::new(Router::new(Arc::new(mesh))));
        orders.follow(&owners, &router);
        let far = Far {
            owners: owners.clone(),
            router: router.clone(),
            orders: orders.clone(),
        };
        let (node, ways) = (world.parts(), Ways::new(Vec::new(), Some(far)));
        let desk = Arc::new(Desk::new(DeskParts {
            trust: ClockWatch::new(world.clock.clone(), Span::from_secs(60)),
            level: CellLevel::new(fencepost_core::level::NEWEST),
            clock: node.clock,
            chance: node.chance,
            runner: node.runner,
            worker: WorkerId::of_start(name("w"), 5 << 40),
            cell: CELL,
            grant_key: GrantKey::of("a secret of this node's"),
            map: ShardMap::new(SHARDS).unwrap(),
            ways: ways.clone(),
            lane: local_lane(),
            lease: lengths.lease,
            heartbeat: lengths.heartbeat,
        }));
        orders.give_back_by(desk.for_the_gone());
        Counter {
            desk,
            owners,
            router,
            ways,
            lengths,
            claims_made: AtomicU64::new(0),
        }
    }

    /// The node's own worker, of this start.
    pub(super) async fn start_worker(&self, world: &World, start: u64, handlers: HandlerRegistry) -> Addr<WorkerActor> {
        let mut config = WorkerConfig::new(64, ShardMap::new(SHARDS).unwrap());
        config.heartbeat = self.lengths.heartbeat;
        let parts = WorkerParts {
            clock: world.clock.clone(),
            runner: TargetRunner::new(TargetsConfig::for_dev(), handlers),
            id: WorkerId::of_start(name("w"), start << 40),
            config,
            trust: ClockWatch::new(world.clock.clone(), Span::from_secs(60)),
            lease: self.lengths.lease,
            ways: self.ways.clone(),
        };
        start_on(&local_lane(), move || WorkerActor::new(parts)).await.unwrap()
    }

    async fn claim(&self) -> Vec<Handed> {
        let number = self.claims_made.fetch_add(1, Ordering::SeqCst);
        let ask = Ask {
            worker: name("py"),
            claim: number.to_string().into(),
            queues: vec![name("default")],
            count: 100,
            wait: Span::from_secs(10),
        };
        self.desk.claim(ask).await.unwrap()
    }

    pub(super) async fn claim_all(&self, count: usize) -> Vec<Handed> {
        let mut held = Vec::new();
        while held.len() < count {
            held.extend(self.claim().await);
        }
        held
    }

    pub(super) async fn report(&self, handed: &Handed) {
        let report = Report {
            verdict: Verdict::Succeeded,
            error: None,
            output: Vec::new(),
        };
        while let Err(refusal) = self.desk.report(&name("py"), &handed.grant, report.clone()).await {
            assert_eq!(refusal.code, "outcome_unknown", "{refusal:?}");
        }
    }
}

/// A world whose cell is made, with all shards assigned to `local`.
pub(super) async fn cell() -> World {
    let world = World::new();
    world.start().await.drain().await;
    world
}

#[test]
fn f18_a_claim_takes_jobs_of_another_nodes_shards_and_its_attempts_follow_them() {
    run(async {
        let world = cell().await;
        let (first, second) = (Owner::start(&world, "a").await, Owner::start(&world, "b").await);
        first.host(&world, true).await;
        let counter = Counter::new(&world);
        counter.owners.learn_board(&first.holds(1));
        let mut made = Vec::new();
        for number in 0..20 {
            made.push(first.create(number).await);
        }
        let held = counter.claim_all(made.len()).await;
        // Nothing is ended and nothing is told: the next owner reads what is held, and hears the rest.
        first.host(&world, false).await;
        second.host(&world, true).await;
        counter.owners.learn_board(&second.holds(2));
        for handed in &held {
            counter.report(handed).await;
        }
        while counter.desk.open_claims() > 0 || second.reports.link_count() > 0 {
            world.settle().await;
        }
        assert!(!counter.router.takes_reports(&"nowhere".into()));
        second.host(&world, false).await;
        let node = world.start().await;
        for id in made {
            let job = node.gateway.job(id).await.unwrap().unwrap().job;
            assert_eq!((job.state, job.charged, job.refunded), (JobState::Succeeded, 1, 0));
            assert_eq!(job.attempts.len(), 1, "the one attempt of the claim");
        }
    });
}

/// The owner ends an attempt that its worker is still at.
#[test]
fn f18_nothing_is_said_for_a_worker_whose_lease_is_lost_and_its_own_word_still_settles() {
    run(async {
        let world = cell().await;
        let owner = Owner::start(&world, "a").await;
        owner.host(&world, true).await;
        let counter = Counter::new(&world);
        counter.owners.learn_board(&owner.holds(1));
        let id = owner.create_as(1, Delivery::AtMostOnce).await;
        let handed = counter.claim_all(1).await.remove(0);
        let unproven = Outcome {
            verdict: Verdict::TimedOut {
                effect: EffectProof::Unproven,
            },
            error: Some("ended by its owner".into()),
            output: Arc::from([]),
        };
        let items = vec![(id, handed.context.token, unproven)];
        let stranger = WorkerId::of_start(name("x"), 9 << 40);
        let said = ToShard::Worker(stranger, Arc::new(|_| true), FromWorker::Outcomes { items });
        owner.shard_of(id).send(said).await.unwrap();
        // Until its heartbeat is answered.
        let grant = [(handed.grant.clone(), None)];
        while counter.desk.beat(&name("py"), &grant)[0].left.is_some() || counter.desk.open_claims() > 0 {
            world.settle().await;
        }
        let job = owner.job(&world, id).await;
        assert_eq!(job.state, JobState::Uncertain);
        assert_eq!(job.attempts[0].error.as_deref(), Some("ended by its owner"));
        counter.report(&handed).await;
        assert_eq!(owner.job(&world, id).await.state, JobState::Succeeded);
    });
}

/// The first hand-back finds the shard shut.
#[test]
fn f14_what_nobody_began_of_a_claim_that_is_gone_goes_back_until_its_owner_has_heard_it() {
    run(async {
        let world = cell().await;
        let owner = Owner::start(&world, "a").await;
        owner.host(&world, true).await;
        let id = owner.create(1).await;
        let (link, told) = listening();
        let granted = || -> Vec<_> {
            let grants = grants_of(&told).into_iter();
            grants.map(|grant| (grant.job.id, grant.token)).collect()
        };
        let gone = WorkerId::of_start(name("w"), 5 << 40).beside(77);
        let asks = ToShard::Worker(gone, link, offer("default"));
        owner.shard_of(id).send(asks).await.unwrap();
        while granted().is_empty() {
            world.settle().await;
        }
        owner.host(&world, false).await;
        let counter = Counter::new(&world);
        counter.owners.learn_board(&owner.holds(1));
        assert!(counter.desk.give_back(granted()));
        while owner.reports.link_count() == 0 {
            world.settle().await;
        }
        owner.host(&world, true).await;
        let handed = counter.claim_all(1).await.remove(0);
        assert_eq!((handed.context.job, handed.context.attempt), (id, 2));
        let is_begun = vec![(id, handed.context.token)];
        assert!(!counter.desk.give_back(is_begun), "what was handed out never is");
        counter.report(&handed).await;
        let job = owner.job(&world, id).await;
        assert_eq!((job.state, job.charged, job.refunded), (JobState::Succeeded, 1, 1));
    });
}

/// The cell was raised while its node was away from it.
#[test]
fn f26_an_owner_hears_of_a_raise_by_opening_and_answers_what_the_one_before_carried_out() {
    run(async {
        let world = cell().await;
        let first = Owner::start(&world, "a").await;
        let second = Owner::start_in(&world, "b", level::FIRST).await;
        first.host(&world, true).await;
        let spec = Box::new(every(3_600_000, StoreTime(0)));
        first.ask(ScheduleRequest::Create { spec, paused: true }).await;
        let ran = [first.run_now(7).await, first.run_now(8).await];
        first.host(&world, false).await;
        second.host(&world, true).await;
        assert_eq!([second.run_now(7).await, second.run_now(8).await], ran);
        assert!(!ran.contains(&second.run_now(9).await));
    });
}

/// What a way to a worker was told.
type Told = Arc<Mutex<Vec<WorkerInput>>>;

/// A way to a worker, and what comes over it.
fn listening() -> (WorkerLink, Told) {
    let told = Told::default();
    let heard = told.clone();
    let link: WorkerLink = Arc::new(move |input| {
        heard.lock().unwrap().push(input);
        true
    });
    (link, told)
}

/// The grants among it.
fn grants_of(told: &Told) -> Vec<Grant> {
    let told = told.lock().unwrap();
    let granted = told.iter().filter_map(|input| match input {
        WorkerInput::Granted { grants, .. } => Some(grants.clone()),
        _ => None,
    });
    granted.flatten().collect()
}

/// One slot for the remote jobs of a queue.
pub(super) fn offer(queue: &str) -> FromWorker {
    FromWorker::Offer {
        offer: OfferId(1),
        slots: 1,
        queues: vec![name(queue).remote_line()],
        waits: false,
        apart: 0,
        commands: true,
    }
}

#[test]
fn f14_a_grant_that_finds_no_way_to_its_worker_costs_its_job_nothing() {
    run(async {
        let world = cell().await;
        let owner = Owner::start(&world, "a").await;
        owner.host(&world, true).await;
        let id = owner.create(1).await;
        let shard = &owner.shards[usize::from(ShardMap::new(SHARDS).unwrap().shard_of(id.slot()).0)];
        let deaf: WorkerLink = Arc::new(|_| false);
        let (link, told) = listening();
        let own = WorkerId::of_start(name("w"), 5 << 40);
        let message = ToShard::Worker(own.beside(1), deaf, offer("default"));
        shard.send(message).await.unwrap();
        let mut number = 1;
        let grant = loop {
            number += 1;
            let message = ToShard::Worker(own.beside(number), link.clone(), offer("default"));
            shard.send(message).await.unwrap();
            world.settle().await;
            if let Some(grant) = grants_of(&told).first().cloned() {
                break grant;
            }
        };
        assert_eq!(grant.attempt, 2, "the first went to nobody, and came back");
        owner.host(&world, false).await;
        let node = world.start().await;
        let job = node.gateway.job(id).await.unwrap().unwrap().job;
        assert_eq!((job.charged, job.refunded), (0, 1));
        assert_eq!(job.attempts[0].result, AttemptResult::HandedBack);
    });
}

#[test]
fn p7_a_shard_reaches_so_many_claims_and_every_nodes_own_worker() {
    run(async {
        let world = cell().await;
        let owner = Owner::start(&world, "a").await;
        owner.host(&world, true).await;
        let shard = &owner.shards[0];
        let (link, told) = listening();
        let own = |start: u64| WorkerId::of_start(name("w"), start << 40);
        let say = |worker: WorkerId| {
            let items = Vec::new();
            shard.send(ToShard::Worker(worker, link.clone(), FromWorker::HandBack { items }))
        };
        let turned_away = || {
            let told = std::mem::take(&mut *told.lock().unwrap());
            told.iter().any(|input| matches!(input, WorkerInput::ShardAway(_)))
        };
        for number in 1..=WORKER_LINKS_MAX as u64 {
            say(own(1).beside(number)).await.unwrap();
        }
        assert!(!turned_away());
        say(own(2).beside(1)).await.unwrap();
        assert!(turned_away(), "it asks elsewhere");
        say(own(2)).await.unwrap();
        say(own(1).beside(1)).await.unwrap();
        assert!(!turned_away(), "there is room for a node, and for who is known");
        let gone = [own(1).beside(1), own(2)];
        for worker in gone {
            shard.send(ToShard::WorkerGone(worker)).await.unwrap();
        }
        say(own(2).beside(1)).await.unwrap();
        assert!(!turned_away(), "and room again when one is gone");
    });
}
