//! The node's side of the API: calls to shard owners, health, facts.
//!
//! Owns: routing by shard and the readiness flags. Must never: write rows or answer from memory what
//! rows say. Next: `reads.rs` (reads of synced rows), `../gateway.rs` (the trait).

use crate::chance::{SharedChance, draw_u64};
use crate::clock::SharedClock;
use crate::gateway::{Answer, ShardReply, ShardRequest};
use crate::node::NodeParts;
use crate::node::notes::Waiters;
use crate::shell::fetch::SharedStore;
use crate::shell::messages::{ShardProbe, ToShard, outcome_unknown, shard_away};
use crate::shell::patient::patient;
use crate::shell::shard_actor::ShardActor;
use actix::Addr;
use actix::prelude::SendError;
use fencepost_core::ids::{Generation, Scope, ShardId, ShardMap};
use fencepost_core::refusal::{Refusal, RefusalKind};
use fencepost_core::row::CellRow;
use fencepost_core::time::{Monotonic, Span};
use fencepost_storage::store::{Stated, StoreError};
use futures_util::FutureExt;
use futures_util::future::{Either, select};
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
    shards: Vec<Addr<ShardActor>>,
    probes: Mutex<Vec<ShardProbe>>,
    ready: AtomicBool,
    draining: AtomicBool,
    last: Mutex<LastStated>,
    /// The store answers only after a while: its time is asked for now and then, and guessed between.
    is_far: bool,
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
        parts: &NodeParts,
        map: ShardMap,
        cell: &CellRow,
        shards: Vec<Addr<ShardActor>>,
        waiters: Arc<Waiters>,
    ) -> Result<NodeGateway, StoreError> {
        let store = patient(parts.store.clone(), parts.clock.clone());
        let mut asked = store.now(Scope::Coordinator);
        let at_once = (&mut asked).now_or_never();
        let is_far = at_once.is_none();
        let stated = match at_once {
            Some(stated) => stated?,
            None => asked.await?,
        };
        let at = parts.clock.mono();
        Ok(NodeGateway {
            store: parts.store.clone(),
            clock: parts.clock.clone(),
            chance: parts.chance.clone(),
            map,
            cell: cell.cell,
            generation: cell.generation,
            waiters,
            probes: Mutex::new(vec![ShardProbe::default(); shards.len()]),
            shards,
            ready: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            last: Mutex::new(LastStated { stated, at }),
            is_far,
        })
    }

    /// Whether somebody must ask for the store's time now and then.
    pub(crate) fn is_far(&self) -> bool {
        self.is_far
    }

    /// Asks for the store's time.
    pub(crate) async fn ask_time(&self) {
        let asked = self.store.now(Scope::Coordinator).await;
        let at = self.clock.mono();
        if let Ok(stated) = asked {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = LastStated { stated, at };
        }
    }

    pub(crate) fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::SeqCst);
    }

    pub(crate) fn set_draining(&self) {
        self.draining.store(true, Ordering::SeqCst);
        self.set_ready(false);
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::SeqCst)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Asks every shard how it is; true when all are open.
    pub async fn probe_shards(&self) -> bool {
        let mut probes = Vec::with_capacity(self.shards.len());
        for shard in &self.shards {
            let (tell, told) = oneshot::channel();
            let asked = shard.try_send(ToShard::Probe(tell)).is_ok();
            probes.push(if asked {
                told.await.unwrap_or_default()
            } else {
                ShardProbe::default()
            });
        }
        let open = probes.iter().all(|probe| probe.open);
        *self.probes.lock().unwrap_or_else(PoisonError::into_inner) = probes;
        open
    }

    pub(crate) fn last_probes(&self) -> Vec<ShardProbe> {
        self.probes.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
        let Some(owner) = self.shards.get(usize::from(shard.0)) else {
            return Box::pin(async { Err(shard_away()) });
        };
        if self.is_draining() {
            return Box::pin(async { Err(shard_away()) });
        }
        let (answering, answered) = oneshot::channel();
        match owner.try_send(ToShard::Client(Box::new(request), answering)) {
            Ok(()) => Box::pin(async move { answered.await.unwrap_or_else(|_| Err(outcome_unknown())) }),
            Err(SendError::Full(_)) => Box::pin(async { Err(shard_busy()) }),
            Err(SendError::Closed(_)) => Box::pin(async { Err(shard_away()) }),
        }
    }

    pub(crate) fn draw_128(&self) -> u128 {
        (u128::from(draw_u64(&*self.chance)) << 64) | u128::from(draw_u64(&*self.chance))
    }
}

fn shard_busy() -> Refusal {
    Refusal::new(
        RefusalKind::Limited,
        "shard_busy",
        "the part of the cell that owns this has as many requests waiting as it may hold",
        "send the same request again in a moment; nothing was done",
    )
}
