//! The node's side of the API: calls to shard owners, health, facts.
//!
//! Owns: routing by shard and the readiness flags. Must never: write rows or answer from memory what
//! rows say. Next: `reads.rs` (reads of synced rows), `../gateway.rs` (the trait).

use crate::chance::{SharedChance, draw_u64};
use crate::clock::SharedClock;
use crate::cluster::owners::{Owner, Owners};
use crate::cluster::route::Router;
use crate::desk::Desk;
use crate::gateway::{Answer, ShardReply, ShardRequest};
use crate::node::NodeParts;
use crate::node::level::CellLevel;
use crate::node::notes::Waiters;
use crate::node::resend::{call_after, send, send_until_known};
use crate::node::trust::ClockWatch;
use crate::shell::fetch::SharedStore;
use crate::shell::messages::{ShardProbe, ToShard, shard_away};
use crate::shell::patient::patient;
use crate::shell::shard_actor::ShardActor;
use crate::targets::running::Running;
use actix::Addr;
use actix::prelude::SendError;
use fencepost_core::clock_trust::Reading;
use fencepost_core::ids::{Generation, Scope, ShardId, ShardMap};
use fencepost_core::limits::{SHARD_PROBE_MS, STORE_PROBE_MS};
use fencepost_core::name::Name;
use fencepost_core::row::CellRow;
use fencepost_core::time::{Monotonic, Span};
use fencepost_storage::store::{Stated, StoreError};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, OptionFuture, select};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// The node as the API sees it.
pub struct NodeGateway {
    pub(crate) store: SharedStore,
    pub(crate) clock: SharedClock,
    pub(crate) chance: SharedChance,
    pub(crate) map: ShardMap,
    pub(crate) cell: u128,
    pub(crate) generation: Generation,
    pub(crate) waiters: Arc<Waiters>,
    pub(super) node: Name,
    /// What runs here.
    pub(super) running: Running,
    /// The cell's, as last seen.
    pub(super) level: Arc<CellLevel>,
    /// What is known of this node's clock.
    pub(crate) trust: Arc<ClockWatch>,
    shards: Vec<Addr<ShardActor>>,
    /// Who owns what, where there are other nodes.
    pub(super) owners: Option<Arc<Owners>>,
    /// Where workers over HTTP claim jobs.
    pub(super) desk: Option<Arc<Desk>>,
    /// The way to them.
    router: Option<Arc<Router>>,
    probes: Mutex<Vec<ShardProbe>>,
    /// Every shard was open once.
    started: AtomicBool,
    draining: AtomicBool,
    store_answers: AtomicBool,
    last: Arc<Mutex<LastStated>>,
    /// The store answers only after a while: its time is asked for now and then, and guessed between.
    is_far: bool,
}

/// A shard that has not answered a probe by then is not well.
const PROBE_MAX: Span = Span::from_millis(SHARD_PROBE_MS);
/// The store is away when it has not said its time by then.
const STORE_MAX: Span = Span::from_millis(STORE_PROBE_MS);

/// What a look at the store and the shards saw.
pub(crate) struct Seen {
    /// And the clocks of this node before and after the question.
    last: Option<(LastStated, Reading, Reading)>,
    /// Nothing where the look began before the start was over, which probes by itself.
    probes: Option<Vec<ShardProbe>>,
}

/// What the store stated last, and when by this node's monotonic clock.
#[derive(Clone, Copy)]
struct LastStated {
    stated: Stated,
    at: Monotonic,
}

impl NodeGateway {
    /// Waits for the store to state its time once.
    pub(crate) async fn new(
        (parts, node): (&NodeParts, &Name),
        (map, cell): (ShardMap, &CellRow),
        shards: Vec<Addr<ShardActor>>,
        waiters: Arc<Waiters>,
        (trust, level): (Arc<ClockWatch>, Arc<CellLevel>),
    ) -> Result<NodeGateway, StoreError> {
        let asked_at = trust.reading();
        let store = patient(parts.store.clone(), parts.clock.clone());
        let mut asked = store.now(Scope::Coordinator);
        let at_once = (&mut asked).now_or_never();
        let is_far = at_once.is_none();
        let stated = match at_once {
            Some(stated) => stated?,
            None => asked.await?,
        };
        let at = parts.clock.mono();
        if is_far {
            trust.enforce();
        }
        trust.measure(asked_at, trust.reading(), stated.time);
        Ok(NodeGateway {
            node: node.clone(),
            running: parts.runner.running(),
            level,
            trust,
            store: parts.store.clone(),
            clock: parts.clock.clone(),
            chance: parts.chance.clone(),
            map,
            cell: cell.cell,
            generation: cell.generation,
            waiters,
            probes: Mutex::new(vec![ShardProbe::default(); shards.len()]),
            shards,
            owners: None,
            desk: None,
            router: None,
            started: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            store_answers: AtomicBool::new(true),
            last: Arc::new(Mutex::new(LastStated { stated, at })),
            is_far,
        })
    }

    /// With a table of who owns what, and a way to them.
    pub(crate) fn among(self, owners: Option<Arc<Owners>>, router: Option<Arc<Router>>) -> NodeGateway {
        NodeGateway { owners, router, ..self }
    }

    /// With a place for workers over HTTP.
    pub(crate) fn with_desk(self, desk: Arc<Desk>) -> NodeGateway {
        let desk = Some(desk);
        NodeGateway { desk, ..self }
    }

    /// Whether a shard is this node's.
    pub(crate) fn is_here(&self, shard: ShardId) -> bool {
        self.owners
            .as_ref()
            .is_none_or(|owners| owners.owner(shard) == Owner::Here)
    }

    /// Asks the store for its time and every shard how it is. What waits holds on to nothing of the node,
    /// so that a node that ended is gone at once.
    pub(crate) fn look(&self) -> BoxFuture<'static, Seen> {
        let (asked, limit) = (self.store.now(Scope::Coordinator), self.clock.sleep(STORE_MAX));
        let (clock, trust) = (self.clock.clone(), self.trust.clone());
        let asked_at = trust.reading();
        let levels = Box::pin(self.level.clone().look(self.store.clone()));
        let levels = select(levels, self.clock.sleep(STORE_MAX));
        let probing = self.is_started().then(|| self.ask_shards());
        async move {
            let last = match select(asked, limit).await {
                Either::Left((Ok(stated), _)) => {
                    let at = clock.mono();
                    Some((LastStated { stated, at }, asked_at, trust.reading()))
                }
                Either::Left((Err(_), _)) | Either::Right(_) => None,
            };
            levels.await;
            let probes = OptionFuture::from(probing).await;
            Seen { last, probes }
        }
        .boxed()
    }

    /// From now on this is how the node is.
    pub(crate) fn learn(&self, seen: Seen) {
        self.store_answers.store(seen.last.is_some(), Ordering::SeqCst);
        match &seen.last {
            Some((last, asked, answered)) => self.trust.measure(*asked, *answered, last.stated.time),
            None => self.trust.judge(),
        }
        if let Some((last, ..)) = seen.last.filter(|_| self.is_far) {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = last;
        }
        if let Some(probes) = seen.probes {
            *self.probes.lock().unwrap_or_else(PoisonError::into_inner) = probes;
        }
    }

    /// Once polled, asks a store that is far for its time now: what was heard last may be a second old.
    pub(crate) fn look_at_clock(&self) -> BoxFuture<'static, ()> {
        let (store, clock) = (self.store.clone(), self.clock.clone());
        let (last, is_far) = (self.last.clone(), self.is_far);
        async move {
            if !is_far {
                return;
            }
            if let Ok(stated) = store.now(Scope::Coordinator).await {
                let at = clock.mono();
                *last.lock().unwrap_or_else(PoisonError::into_inner) = LastStated { stated, at };
            }
        }
        .boxed()
    }

    pub(crate) fn set_started(&self) {
        self.started.store(true, Ordering::SeqCst);
    }

    pub(crate) fn set_draining(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_started(&self) -> bool {
        self.started.load(Ordering::SeqCst)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Whether the store answered when it was asked last.
    pub(crate) fn hears_store(&self) -> bool {
        self.store_answers.load(Ordering::SeqCst)
    }

    /// Asks every shard how it is; true when all of this node are open, and all others have an owner.
    pub async fn probe_shards(&self) -> bool {
        self.probe_for(|probe| probe.open).await
    }

    /// The same, where a shard that is kept shut counts too.
    pub(crate) async fn probe_settled(&self) -> bool {
        self.probe_for(|probe| probe.open || probe.is_kept_shut()).await
    }

    async fn probe_for(&self, is_fine: impl Fn(&ShardProbe) -> bool) -> bool {
        let probes = self.ask_shards().await;
        let is_fine = |number: usize| probes.get(number).is_some_and(&is_fine);
        let open = match &self.owners {
            None => (0..probes.len()).all(is_fine),
            Some(owners) => owners.is_settled(is_fine),
        };
        *self.probes.lock().unwrap_or_else(PoisonError::into_inner) = probes;
        open
    }

    fn ask_shards(&self) -> BoxFuture<'static, Vec<ShardProbe>> {
        let limit = self.clock.sleep(PROBE_MAX).shared();
        let before = self.last_probes();
        let asked = self.shards.iter().zip(before).map(|(shard, before)| {
            let (tell, told) = oneshot::channel();
            match shard.try_send(ToShard::Probe(tell)) {
                Ok(()) => Ok(told),
                // Busy is not ill.
                Err(SendError::Full(_)) => Err(before),
                Err(SendError::Closed(_)) => Err(ShardProbe::default()),
            }
        });
        let asked: Vec<_> = asked.collect();
        async move {
            let mut probes = Vec::with_capacity(asked.len());
            for asked in asked {
                probes.push(match asked {
                    Ok(told) => match select(told, limit.clone()).await {
                        Either::Left((told, _)) => told.unwrap_or_default(),
                        Either::Right(_) => ShardProbe::silent(),
                    },
                    Err(known) => known,
                });
            }
            probes
        }
        .boxed()
    }

    pub(crate) fn last_probes(&self) -> Vec<ShardProbe> {
        self.probes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether every shard's actor answered when it was last looked at, which is every second.
    #[cfg(not(madsim))]
    pub(crate) fn shards_answer(&self) -> bool {
        self.last_probes().iter().all(|probe| !probe.is_silent())
    }

    pub(crate) async fn pause(&self) {
        self.clock.sleep(Span::from_millis(5)).await;
    }

    /// Waits for an answer, at most this long.
    pub(crate) async fn within(&self, limit: Span, told: oneshot::Receiver<()>) -> bool {
        match select(told, self.clock.sleep(limit)).await {
            Either::Left((told, _)) => told.is_ok(),
            Either::Right(_) => false,
        }
    }

    /// Store time, as fresh as the store gives it without waiting; guessed from the last statement
    /// where the store is far, which decides nothing: it is for delays that count from now.
    pub(crate) fn stated(&self) -> Stated {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let at = self.clock.mono();
        if self.is_far {
            let time = last.stated.time + at.since(last.at);
            return Stated { time, ..last.stated };
        }
        // As it is: it comes down in the audited step of F20.
        if let Some(Ok(stated)) = self.store.now(Scope::Coordinator).now_or_never() {
            *last = LastStated { stated, at };
        }
        last.stated
    }

    pub(crate) fn call_shard(&self, shard: ShardId, request: ShardRequest) -> Answer<ShardReply> {
        if self.is_draining() {
            return Box::pin(async { Err(shard_away()) });
        }
        match self.owners.clone().zip(self.router.clone()) {
            None => self.call_here(shard, request),
            Some(way) => self.follow(way, shard, request),
        }
    }

    /// Calls the owner on this node.
    pub(crate) fn call_here(&self, shard: ShardId, request: ShardRequest) -> Answer<ShardReply> {
        match self.shards.get(usize::from(shard.0)) {
            None => Box::pin(async { Err(shard_away()) }),
            Some(owner) => match request {
                ShardRequest::CreateJobs(items) => send_until_known(owner, &self.clock, items),
                other @ (ShardRequest::CancelJob(_)
                | ShardRequest::RetryDead(_)
                | ShardRequest::SettleUncertain(..)
                | ShardRequest::Schedule(..)) => send(owner, other),
            },
        }
    }

    fn follow(
        &self,
        (owners, router): (Arc<Owners>, Arc<Router>),
        shard: ShardId,
        request: ShardRequest,
    ) -> Answer<ShardReply> {
        let here = self.shards.get(usize::from(shard.0)).cloned();
        let clock = self.clock.clone();
        let call = move |request: &ShardRequest| match (owners.owner(shard), &here) {
            (Owner::Here, Some(owner)) => send(owner, request.clone()),
            (Owner::There(address), _) => router.call(&address, shard, request),
            (Owner::Here, None) | (Owner::Nobody, _) => Box::pin(async { Err(shard_away()) }),
        };
        Box::pin(async move { call_after(call, &clock, request).await })
    }

    pub(crate) fn draw_128(&self) -> u128 {
        (u128::from(draw_u64(&*self.chance)) << 64) | u128::from(draw_u64(&*self.chance))
    }
}
