//! A node: every role in one process, the same in production and under simulation.
//!
//! Owns: starting in order (cell, shards, worker), readiness and the drain. Must never: make threads
//! or read the environment; `main` and the simulator hand everything in. Next: `gateway.rs`,
//! `cell.rs`, `../shell/`, `../worker/`.

pub mod cell;
pub mod gateway;
pub mod lanes;
pub mod level;
pub mod notes;
pub mod only_worker;
mod reads;
mod resend;
pub mod trust;
mod watch;

use crate::chance::{SharedChance, draw_u64};
use crate::clock::SharedClock;
use crate::cluster::decider::Decider;
use crate::cluster::member::{BoardLink, Member, MemberParts};
use crate::cluster::owners::Owners;
use crate::cluster::route::Router;
use crate::cluster::services::NodeServices;
use crate::cluster::work::{Far, Ways};
use crate::desk::{Desk, DeskParts, GrantKey};
use crate::node::gateway::NodeGateway;
use crate::node::lanes::{Lane, start_on};
use crate::node::level::CellLevel;
use crate::node::notes::{Notes, Waiters};
use crate::node::trust::ClockWatch;
use crate::shell::fetch::SharedStore;
use crate::shell::load::OpenPlan;
use crate::shell::messages::ToShard;
use crate::shell::patient::patient;
use crate::shell::shard_actor::{Fatal, ShardActor, ShardParts};
use crate::targets::TargetRunner;
use crate::worker::{ToWorker, WorkerActor, WorkerParts};
use actix::Addr;
use fencepost_core::ids::{JobId, ShardId, ShardMap, WorkerId};
use fencepost_core::job::{Job, JobState, KEY_KEPT};
use fencepost_core::limits;
use fencepost_core::name::Name;
use fencepost_core::refusal::{Refusal, RefusalKind, storage_full};
use fencepost_core::row::CellRow;
use fencepost_core::scheduler_shard::audit::AuditFault;
use fencepost_core::scheduler_shard::io::FireNote;
use fencepost_core::time::Span;
use fencepost_core::worker::WorkerConfig;
use fencepost_storage::store::{OpenError, StoreError};
use futures_util::future::{join, join_all, select};
use std::sync::Arc;
use tokio::sync::{Semaphore, oneshot};

const SETTLE_MAX: Span = Span::from_millis(limits::DRAIN_SETTLE_MS);

/// Settings of a node.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Its name; assignments and leases name it.
    pub name: Name,
    /// Shards of a new cell; an existing cell keeps its own.
    pub shards: u16,
    /// True if that number was asked for: then an existing cell of another number is refused.
    pub shards_asked: bool,
    /// Attempts that its worker runs at once; zero starts no worker.
    pub slots: u32,
    /// Only these queues; empty means all.
    pub queues: Vec<Name>,
    /// Length of an attempt's lease.
    pub lease: Span,
    /// Interval of heartbeats.
    pub heartbeat: Span,
    /// How long idempotency keys are kept after the end of jobs that end here.
    pub key_kept: Span,
    /// How long a drain waits for attempts in flight.
    pub drain: Span,
    /// How far its clock may be from a store on another node before it takes and gives no work.
    pub clock_offset_max: Span,
    /// What grants of workers over HTTP are sealed with; drawn at the start if it is not kept.
    pub grant_key: Option<GrantKey>,
}

/// What a node works with.
pub struct NodeParts {
    /// The store.
    pub store: SharedStore,
    /// Id of the cell if it is made now; the store's own identity names it.
    pub cell: u128,
    /// Its clocks.
    pub clock: SharedClock,
    /// Its chance.
    pub chance: SharedChance,
    /// Carries out targets.
    pub runner: TargetRunner,
    /// Where its actors live, at least one.
    pub lanes: Vec<Lane>,
    /// Who is told of news.
    pub notes: Vec<Arc<dyn Notes>>,
    /// Ends the process.
    pub fatal: Fatal,
}

/// The way to the other nodes of the cell.
pub struct Neighbours {
    /// This start of the node, as its connections name it.
    pub boot: u64,
    /// Where others reach it; empty if they do not.
    pub address: Arc<str>,
    /// The cell's board.
    pub board: BoardLink,
    /// The way to owners on other nodes.
    pub router: Arc<Router>,
    /// What this node offers to them.
    pub services: NodeServices,
}

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store does not answer or is broken.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A scope could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The cell's facts are not as they must be.
    #[error("{0}")]
    Cell(Refusal),
    /// There is no room for them.
    #[error("the disk is full")]
    Full,
}

impl StartError {
    /// What a person is told.
    pub fn refusal(&self) -> Refusal {
        let again = "start it again once the store answers; its log says more";
        match self {
            StartError::Store(error) => {
                Refusal::new(RefusalKind::Unavailable, "store_failed", error.to_string(), again)
            }
            StartError::Open(error) => Refusal::new(RefusalKind::Conflict, "scope_refused", error.to_string(), again),
            StartError::Cell(refusal) => refusal.clone(),
            StartError::Full => storage_full(),
        }
    }
}

/// A running node.
pub struct Node {
    /// For the API.
    pub gateway: Arc<NodeGateway>,
    /// The cell's facts.
    pub cell: CellRow,
    shards: Vec<Addr<ShardActor>>,
    worker: Option<Addr<WorkerActor>>,
    worker_id: WorkerId,
    /// Only among other nodes; a node alone owns every shard.
    member: Option<Member>,
    ways: Ways,
    config: NodeConfig,
    parts: NodeParts,
}

impl NodeConfig {
    /// Defaults under this name.
    pub fn new(name: Name) -> NodeConfig {
        NodeConfig {
            name,
            shards: limits::SHARD_COUNT_DEFAULT,
            shards_asked: false,
            slots: limits::WORKER_SLOTS_DEFAULT,
            queues: Vec::new(),
            lease: Span::from_millis(limits::LEASE_MS),
            heartbeat: Span::from_millis(limits::HEARTBEAT_MS),
            key_kept: KEY_KEPT,
            drain: Span::from_millis(limits::DRAIN_MS),
            clock_offset_max: Span::from_millis(limits::CLOCK_OFFSET_MS),
            grant_key: None,
        }
    }

    /// Settings of its worker.
    fn worker(&self, slots: u32, map: ShardMap, runner: &TargetRunner) -> WorkerConfig {
        let mut settings = WorkerConfig::new(slots, map);
        settings.commands = runner.runs_commands();
        settings.queues = self.queues.clone();
        settings.heartbeat = self.heartbeat;
        settings.lease_margin = margin_of(self.lease);
        settings
    }
}

/// How much earlier than its owner a worker ends a lease of this length: clocks run at different paces. A short lease
/// leaves room for a short margin only.
pub(crate) fn margin_of(lease: Span) -> Span {
    #[cfg(madsim)]
    if crate::planted::is_planted(crate::planted::Bug::FenceWithoutMargin) {
        return Span::ZERO;
    }
    Span::from_millis(limits::LEASE_MARGIN_MS).min(Span(lease.0 / 10))
}

/// Starts a node: settles the cell, then starts every shard and, with slots, the worker. Shards open
/// by themselves; `Node::ready` waits for them.
pub async fn run_node(config: NodeConfig, parts: NodeParts) -> Result<Node, StartError> {
    start_node(config, parts, None).await
}

/// Starts a node of a cell that may have others: it owns what the coordinator assigns to it.
pub async fn join_node(config: NodeConfig, parts: NodeParts, neighbours: Neighbours) -> Result<Node, StartError> {
    start_node(config, parts, Some(neighbours)).await
}

/// What the shards of a node share.
struct OfShards<'a> {
    cell: &'a CellRow,
    map: ShardMap,
    worker: &'a WorkerId,
    notes: Arc<dyn Notes>,
    trust: &'a Arc<ClockWatch>,
    level: &'a Arc<CellLevel>,
    hosted: bool,
}

async fn start_shards(
    config: &NodeConfig,
    parts: &NodeParts,
    shared: OfShards<'_>,
) -> Result<Vec<Addr<ShardActor>>, StartError> {
    let trial_turn = Arc::new(Semaphore::new(1));
    let mut shards = Vec::with_capacity(usize::from(shared.map.count()));
    let lanes = shard_lanes(&parts.lanes).iter().cycle();
    for (shard, lane) in shared.map.shards().zip(lanes) {
        let plan = OpenPlan {
            shard,
            map: shared.map,
            generation: shared.cell.generation,
            node: config.name.clone(),
            local: Some(shared.worker.clone()),
        };
        let parts = ShardParts {
            store: patient(parts.store.clone(), parts.clock.clone()),
            clock: parts.clock.clone(),
            chance: parts.chance.clone(),
            fatal: parts.fatal.clone(),
            notes: shared.notes.clone(),
            plan,
            lease: config.lease,
            heartbeat: config.heartbeat,
            key_kept: config.key_kept,
            trust: shared.trust.clone(),
            level: shared.level.clone(),
            trial_turn: trial_turn.clone(),
            hosted: shared.hosted,
        };
        let started = start_on(lane, move || ShardActor::new(parts)).await;
        shards.push(started.ok_or_else(lane_gone)?);
    }
    Ok(shards)
}

async fn start_node(config: NodeConfig, parts: NodeParts, neighbours: Option<Neighbours>) -> Result<Node, StartError> {
    let cell = match neighbours {
        None => cell::settle_cell(&parts, &config).await?,
        Some(_) => cell::join_cell(&parts, &config).await?,
    };
    let map = ShardMap::new(cell.shards).ok_or_else(|| cell::no_shards(cell.shards))?;
    let waiters = Arc::new(Waiters::default());
    let worker_id = WorkerId::of_start(config.name.clone(), draw_u64(&*parts.chance));
    let mut sinks = parts.notes.clone();
    sinks.push(Arc::new(WaitersNotes(waiters.clone())));
    let notes: Arc<dyn Notes> = Arc::new(AllNotes(sinks));
    let watched = notes.clone();
    let trust = ClockWatch::new(parts.clock.clone(), config.clock_offset_max);
    let level = CellLevel::new(cell.level);
    let of_shards = OfShards {
        cell: &cell,
        map,
        worker: &worker_id,
        notes,
        trust: &trust,
        level: &level,
        hosted: neighbours.is_none(),
    };
    let shards = start_shards(&config, &parts, of_shards).await?;
    let owners = neighbours.as_ref().map(|_| Arc::new(Owners::new(config.name.clone())));
    let of_node = (&parts, &config.name);
    let gateway = NodeGateway::new(of_node, (map, &cell), shards.clone(), waiters, (trust, level)).await?;
    let far = owners.clone().zip(neighbours.as_ref()).map(|(owners, neighbours)| Far {
        owners,
        router: neighbours.router.clone(),
        orders: neighbours.services.orders.clone(),
    });
    let ways = Ways::new(shards.clone(), far.clone());
    let of_worker = (&worker_id, &gateway);
    let desk = start_desk((&config, &parts), (map, &cell, ways.clone()), of_worker)?;
    let router = far.as_ref().map(|far| far.router.clone());
    let gateway = Arc::new(gateway.among(owners.clone(), router).with_desk(desk.clone()));
    if let Some(far) = far {
        far.orders.follow(&far.owners, &far.router);
        far.orders.give_back_by(desk.for_the_gone());
    }
    if let Some(neighbours) = &neighbours {
        neighbours.services.requests.serve(&gateway);
        neighbours.services.reports.serve(&shards);
    }
    watch::watch(&gateway, watched);
    let joining = neighbours.zip(owners);
    let member = joining.map(|joining| start_member(&config, &parts, (map, &cell, shards.clone()), joining));
    let mut node = Node {
        gateway,
        cell,
        shards,
        worker: None,
        worker_id,
        member,
        ways,
        config,
        parts,
    };
    if node.config.slots > 0 {
        node.start_worker(node.config.slots).await?;
    }
    Ok(node)
}

fn start_desk(
    (config, parts): (&NodeConfig, &NodeParts),
    (map, cell, ways): (ShardMap, &CellRow, Ways),
    (worker, gateway): (&WorkerId, &NodeGateway),
) -> Result<Arc<Desk>, StartError> {
    let kept = config.grant_key.clone();
    Ok(Arc::new(Desk::new(DeskParts {
        grant_key: kept.unwrap_or_else(|| GrantKey::draw(&*parts.chance)),
        clock: parts.clock.clone(),
        chance: parts.chance.clone(),
        runner: parts.runner.clone(),
        worker: worker.clone(),
        cell: cell.cell,
        map,
        trust: gateway.trust.clone(),
        level: gateway.level.clone(),
        ways,
        lane: parts.lanes.last().cloned().ok_or_else(lane_gone)?,
        lease: config.lease,
        heartbeat: config.heartbeat,
    })))
}

fn start_member(
    config: &NodeConfig,
    parts: &NodeParts,
    (map, cell, shards): (ShardMap, &CellRow, Vec<Addr<ShardActor>>),
    (neighbours, owners): (Neighbours, Arc<Owners>),
) -> Member {
    Member::start(MemberParts {
        boot: neighbours.boot,
        address: neighbours.address,
        board: neighbours.board,
        decider: Decider {
            store: parts.store.clone(),
            clock: parts.clock.clone(),
            node: config.name.clone(),
            map,
            generation: cell.generation,
        },
        clock: parts.clock.clone(),
        chance: parts.chance.clone(),
        shards,
        owners,
        router: neighbours.router,
        fatal: parts.fatal.clone(),
    })
}

/// All lanes but the last, which is the worker's; the only one, if there is one.
fn shard_lanes(lanes: &[Lane]) -> &[Lane] {
    match lanes.split_last() {
        Some((_, others)) if !others.is_empty() => others,
        _ => lanes,
    }
}

/// A thread for actors is not there.
pub(crate) fn lane_gone() -> StartError {
    cell::refused("lane_gone", "a thread of this process ended before its actors started")
}

impl Node {
    /// Starts the node's worker, once.
    pub async fn start_worker(&mut self, slots: u32) -> Result<(), StartError> {
        let parts = WorkerParts {
            clock: self.parts.clock.clone(),
            runner: self.parts.runner.clone(),
            id: self.worker_id.clone(),
            config: self.config.worker(slots, self.gateway.map, &self.parts.runner),
            trust: self.gateway.trust.clone(),
            lease: self.config.lease,
            ways: self.ways.clone(),
        };
        let lane = self.parts.lanes.last().ok_or_else(lane_gone)?;
        let started = start_on(lane, move || WorkerActor::new(parts)).await;
        let worker = started.ok_or_else(lane_gone)?;
        self.worker = Some(worker);
        Ok(())
    }

    /// Waits until every shard is open, replayed and audited, and steps.
    pub async fn ready(&self) {
        while !self.gateway.probe_shards().await {
            self.gateway.pause().await;
        }
        self.gateway.set_started();
    }

    /// Waits until the start is over: every shard is open, or is kept shut for a reason that `/readyz` names; at the
    /// latest after `most`, if the store answers then. A shard that stays shut is no reason to start the node anew.
    pub async fn started(&self, most: Span) {
        let by = self.parts.clock.mono() + most;
        while !self.gateway.probe_settled().await {
            if self.parts.clock.mono() >= by && self.gateway.hears_store() {
                break;
            }
            self.gateway.pause().await;
        }
        self.gateway.set_started();
    }

    /// Not ready at once, no new grants; what is in flight finishes or is handed back within the
    /// limit; everything stamped becomes durable; then the actors end.
    pub async fn drain(&self) {
        self.gateway.set_draining();
        let desk = async {
            if let Some(desk) = &self.gateway.desk {
                desk.drain(self.config.drain).await;
            }
        };
        join(self.drain_worker(), desk).await;
        if let Some(member) = &self.member {
            let limit = Span::from_millis(limits::DRAIN_HAND_OVER_MS);
            member.leave(&self.parts.clock, limit).await;
        }
        // All at once: where the store is away, none of them settles.
        let settling = join_all(self.shards.iter().map(|shard| self.settle(shard)));
        select(settling, self.parts.clock.sleep(SETTLE_MAX)).await;
        for shard in &self.shards {
            let _ = shard.send(ToShard::Stop).await;
        }
        if let Some(worker) = &self.worker {
            let _ = worker.send(ToWorker::Stop).await;
        }
    }

    async fn drain_worker(&self) {
        let Some(worker) = &self.worker else { return };
        let (tell, drained) = oneshot::channel();
        if worker.send(ToWorker::Drain(self.config.drain, tell)).await.is_ok() {
            let limit = self.config.drain + SETTLE_MAX;
            self.gateway.within(limit, drained).await;
        }
    }

    /// Waits until nothing of this shard is stamped and not durable.
    async fn settle(&self, shard: &Addr<ShardActor>) {
        let (tell, settled) = oneshot::channel();
        let _ = shard.send(ToShard::Drain).await;
        let _ = shard.send(ToShard::WorkerGone(self.worker_id.clone())).await;
        if shard.send(ToShard::Settled(tell)).await.is_ok() {
            let _ = settled.await;
        }
    }
}

/// Tells every sink.
struct AllNotes(Vec<Arc<dyn Notes>>);

impl Notes for AllNotes {
    fn job_changed(&self, job: &Job) {
        self.0.iter().for_each(|notes| notes.job_changed(job));
    }

    fn attempt_ended(&self, job: &Job) {
        self.0.iter().for_each(|notes| notes.attempt_ended(job));
    }

    fn job_purged(&self, id: JobId, state: JobState) {
        self.0.iter().for_each(|notes| notes.job_purged(id, state));
    }

    fn fired(&self, note: &FireNote) {
        self.0.iter().for_each(|notes| notes.fired(note));
    }

    fn quarantined(&self, shard: ShardId, schedules: u64) {
        self.0.iter().for_each(|notes| notes.quarantined(shard, schedules));
    }

    fn row_quarantined(&self, shard: ShardId) {
        self.0.iter().for_each(|notes| notes.row_quarantined(shard));
    }

    fn clock_doubt(&self, doubt: bool) {
        self.0.iter().for_each(|notes| notes.clock_doubt(doubt));
    }

    fn audit_fault(&self, schedule: &Name, fault: &AuditFault) {
        self.0.iter().for_each(|notes| notes.audit_fault(schedule, fault));
    }
}

struct WaitersNotes(Arc<Waiters>);

impl Notes for WaitersNotes {
    fn job_changed(&self, job: &Job) {
        self.0.job_changed(job);
    }

    fn attempt_ended(&self, job: &Job) {
        self.0.job_changed(job);
    }

    fn job_purged(&self, _: JobId, _: JobState) {}

    fn fired(&self, _: &FireNote) {}
}
