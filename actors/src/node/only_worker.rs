//! A node that only works: a worker, and nothing of the cell but its board.
//!
//! Owns: starting in order (board, shards of the cell, worker) and the drain. It reaches owners of shards over
//! the mesh and has no way to the store. Must never: make threads or read the environment. Next:
//! `../cluster/onlooker.rs`, `../cluster/work.rs`, `mod.rs` (a node with every role).

use crate::chance::{SharedChance, draw_u64};
use crate::clock::SharedClock;
use crate::cluster::onlooker::{Onlooker, OnlookerParts};
use crate::cluster::owners::Owners;
use crate::cluster::work::{Far, Ways};
use crate::node::lanes::{Lane, start_on};
use crate::node::trust::ClockWatch;
use crate::node::{Neighbours, NodeConfig, SETTLE_MAX, StartError, cell, lane_gone};
use crate::shell::shard_actor::Fatal;
use crate::targets::TargetRunner;
use crate::worker::{ToWorker, WorkerActor, WorkerParts};
use actix::Addr;
use fencepost_core::ids::WorkerId;
use futures_util::future::select;
use std::sync::Arc;
use tokio::sync::oneshot;

/// What such a node works with.
pub struct OnlyWorkerParts {
    /// Its clocks.
    pub clock: SharedClock,
    /// Its chance.
    pub chance: SharedChance,
    /// Carries out targets.
    pub runner: TargetRunner,
    /// Where its worker lives.
    pub lane: Lane,
    /// Ends the process.
    pub fatal: Fatal,
}

/// A running one.
pub struct OnlyWorker {
    worker: Addr<WorkerActor>,
    onlooker: Onlooker,
    clock: SharedClock,
    config: NodeConfig,
}

/// Waits until the board has taken it and an owner has named the cell's shards, then starts the worker.
pub async fn join_as_worker(
    config: NodeConfig,
    parts: OnlyWorkerParts,
    neighbours: Neighbours,
) -> Result<OnlyWorker, StartError> {
    let owners = Arc::new(Owners::new(config.name.clone()));
    let router = neighbours.router;
    let trust = ClockWatch::new(parts.clock.clone(), config.clock_offset_max);
    let (onlooker, mut map) = Onlooker::start(OnlookerParts {
        node: config.name.clone(),
        boot: neighbours.boot,
        board: neighbours.board,
        clock: parts.clock.clone(),
        owners: owners.clone(),
        router: router.clone(),
        trust: trust.clone(),
        fatal: parts.fatal,
    });
    let named = map.wait_for(Option::is_some).await.ok().and_then(|map| *map);
    let map = named.ok_or_else(|| cell::refused("cell_refused", "the board was given up before an owner was there"))?;
    let orders = neighbours.services.orders.clone();
    orders.follow(&owners, &router);
    let worker = WorkerParts {
        clock: parts.clock.clone(),
        config: config.worker(config.slots, map, &parts.runner),
        runner: parts.runner,
        id: WorkerId::of_start(config.name.clone(), draw_u64(&*parts.chance)),
        trust,
        lease: config.lease,
        ways: Ways::new(Vec::new(), Some(Far { owners, router, orders })),
    };
    let started = start_on(&parts.lane, move || WorkerActor::new(worker)).await;
    let worker = started.ok_or_else(lane_gone)?;
    Ok(OnlyWorker {
        worker,
        onlooker,
        clock: parts.clock,
        config,
    })
}

impl OnlyWorker {
    /// Tells whether its worker's actor is there.
    pub fn is_alive(&self) -> impl Fn() -> bool + use<> {
        let worker = self.worker.clone();
        move || worker.connected()
    }

    /// No new work; what is in flight finishes or is handed back within the limit. Then the node leaves the
    /// board.
    pub async fn drain(self) {
        let (tell, drained) = oneshot::channel();
        if self.worker.send(ToWorker::Drain(self.config.drain, tell)).await.is_ok() {
            select(drained, self.clock.sleep(self.config.drain + SETTLE_MAX)).await;
        }
        select(Box::pin(self.onlooker.leave()), self.clock.sleep(SETTLE_MAX)).await;
        let _ = self.worker.send(ToWorker::Stop).await;
    }
}
