//! The workers that a shard can reach, on this node and on others.
//!
//! Owns: their links. A worker is here while its node is up, one on another node for as long as the connection
//! lasts over which it spoke. A broken way ends no lease: those go on until they end by their own count
//! (F14, F17); only an offer that waits is given up, or work would be granted to nobody. Must never: decide who
//! is alive. Next: `release.rs`, `../cluster/work.rs`.

use crate::shell::messages::{FromWorker, WorkerLink};
use crate::shell::shard_actor::ShardActor;
use actix::Context;
use fencepost_core::ids::WorkerId;
use fencepost_core::lease_manager::io::LeaseInput;
use fencepost_core::limits::LINK_COUNT_MAX;
use fencepost_core::shard::ShardInput;
use fencepost_core::worker::io::WorkerInput;
use std::sync::Arc;

impl ShardActor {
    /// Sends to a worker; a message that is not taken is a lost hint, found again by repeats.
    pub(super) fn tell(&mut self, worker: &WorkerId, input: WorkerInput) {
        let told = self.links.get(worker).is_some_and(|link| link(input));
        if !told {
            tracing::debug!(worker = %worker, "message to worker not taken");
        }
    }

    pub(crate) fn on_worker_here(&mut self, worker: WorkerId, link: WorkerLink) {
        if self.open.is_some() {
            link(WorkerInput::ReadyHint(self.parts.plan.shard));
        }
        self.links.insert(worker, link);
    }

    /// It speaks over the connection that it has now.
    pub(crate) fn on_far_worker(
        &mut self,
        worker: WorkerId,
        link: WorkerLink,
        message: FromWorker,
        ctx: &mut Context<ShardActor>,
    ) {
        if self.links.len() > LINK_COUNT_MAX && !self.links.contains_key(&worker) {
            link(WorkerInput::ShardAway(self.parts.plan.shard));
            return;
        }
        self.links.insert(worker.clone(), link);
        self.on_worker(worker, message, ctx);
    }

    /// Unless it speaks over another connection by now.
    pub(crate) fn on_worker_unreached(&mut self, worker: WorkerId, gone: &WorkerLink, ctx: &mut Context<ShardActor>) {
        if self.links.get(&worker).is_none_or(|link| !Arc::ptr_eq(link, gone)) {
            return;
        }
        self.links.remove(&worker);
        self.early.remove(&worker);
        self.step(ShardInput::Lease(LeaseInput::WorkerUnreached(worker)), ctx);
    }

    pub(crate) fn hint_workers(&mut self) {
        for link in self.links.values() {
            link(WorkerInput::ReadyHint(self.parts.plan.shard));
        }
    }

    /// The shard is open: what its workers have not been answered, they say again.
    pub(super) fn greet_workers(&mut self) {
        for link in self.links.values() {
            link(WorkerInput::ShardHere(self.parts.plan.shard));
        }
        self.hint_workers();
    }
}
