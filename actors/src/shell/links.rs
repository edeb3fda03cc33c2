//! The workers that a shard can reach, on this node and on others.
//!
//! Owns: their links. A worker is here while its node is up, one on another node for as long as the connection
//! lasts over which it spoke; each of its messages brings the way back. A broken way ends no lease: those go on until
//! they end by their own count (F14, F17); only an offer that waits is given up, or work would be granted to nobody,
//! and what was granted and has never left is taken back. Must never: decide who is alive. Next: `release.rs`,
//! `../cluster/work.rs`.

use crate::shell::messages::{FromWorker, WorkerLink};
use crate::shell::shard_actor::ShardActor;
use actix::Context;
use fencepost_core::ids::{JobId, OfferId, Token, WorkerId};
use fencepost_core::lease_manager::io::{Grant, LeaseInput};
use fencepost_core::limits::WORKER_LINKS_MAX;
use fencepost_core::shard::ShardInput;
use fencepost_core::worker::io::WorkerInput;
use std::sync::Arc;

impl ShardActor {
    /// Sends to a worker; a message that is not taken is a lost hint, found again by repeats.
    pub(super) fn tell(&mut self, worker: &WorkerId, input: WorkerInput) {
        self.is_told(worker, input);
    }

    /// As `tell`; false if nobody has it.
    pub(super) fn is_told(&mut self, worker: &WorkerId, input: WorkerInput) -> bool {
        let told = self.links.get(worker).is_some_and(|link| link(input));
        if !told {
            tracing::debug!(worker = %worker, "message to worker not taken");
        }
        told
    }

    /// Of these grants, those that may leave: what was taken back before, or found no way once, is forsworn.
    pub(super) fn may_leave(&mut self, mut grants: Vec<Grant>) -> Vec<Grant> {
        let Some(open) = self.open.as_mut() else {
            return Vec::new();
        };
        let leases = open.machine.leases();
        open.forsworn.retain(|(id, token)| leases.holds(*id, *token));
        grants.retain(|Grant { job, token, .. }| {
            leases.holds(job.id, *token) && !open.forsworn.contains(&(job.id, *token))
        });
        grants
    }

    /// The grants of an offer were told, or it is proven that nobody has them.
    pub(super) fn on_grants_told(
        &mut self,
        (worker, offer): (WorkerId, OfferId),
        mut granted: Vec<(JobId, Token)>,
        told: bool,
        ctx: &mut Context<ShardActor>,
    ) {
        let Some(open) = self.open.as_mut().filter(|_| !granted.is_empty()) else {
            return;
        };
        if told {
            return self.step(ShardInput::Lease(LeaseInput::GrantsReleased { worker, offer }), ctx);
        }
        granted.retain(|(id, _)| !open.machine.leases().has_left(*id));
        open.forsworn.extend(granted.iter().copied());
        self.step(ShardInput::Lease(LeaseInput::GrantsUnsent(granted)), ctx);
    }

    pub(crate) fn on_worker_here(&mut self, worker: WorkerId, link: WorkerLink) {
        if self.open.is_some() {
            link(WorkerInput::ReadyHint(self.parts.plan.shard));
        }
        self.links.insert(worker, link);
    }

    /// It speaks over the way that it has now. Nodes have connections, which are few; claims beside their workers
    /// find no room where there are too many.
    pub(crate) fn on_worker_said(
        &mut self,
        worker: WorkerId,
        link: WorkerLink,
        message: FromWorker,
        ctx: &mut Context<ShardActor>,
    ) {
        let is_known = self.links.contains_key(&worker);
        if !is_known && worker.is_beside() && self.links.len() >= WORKER_LINKS_MAX {
            link(WorkerInput::ShardAway(self.parts.plan.shard));
            return;
        }
        self.links.insert(worker.clone(), link);
        self.on_worker(worker, message, ctx);
    }

    /// Unless it speaks over another connection by now.
    pub(crate) fn on_worker_unreached(&mut self, worker: WorkerId, gone: &WorkerLink, ctx: &mut Context<ShardActor>) {
        if self.links.get(&worker).is_some_and(|link| Arc::ptr_eq(link, gone)) {
            self.on_worker_gone(worker, ctx);
        }
    }

    /// Nothing is kept for it but its leases.
    pub(crate) fn on_worker_gone(&mut self, worker: WorkerId, ctx: &mut Context<ShardActor>) {
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
