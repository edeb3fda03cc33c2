//! The worker's end: what owners of shards on other nodes say to the workers of this one.
//!
//! Owns: which of them is meant, and what is done for one that is gone: its owners are told so once more, and a grant
//! that nothing was begun of goes back (F14). Must never: hand back what was begun, or drop a grant in silence. Next:
//! `order.rs`, `far_workers.rs` (the other end), `../desk/` (workers beside the node's own).

use crate::cluster::order::decode_order;
use crate::cluster::owners::{Owner, Owners};
use crate::cluster::report::encode_gone;
use crate::cluster::route::Router;
use crate::cluster::work::WorkCounts;
use crate::mesh::envelope::REPORTS;
use crate::mesh::peer::Peer;
use crate::mesh::{LinkNews, NodeFacts, Roles, Service};
use crate::worker::{ToWorker, WorkerActor};
use actix::{Addr, WeakAddr};
use fencepost_core::ids::{JobId, Token, WorkerId};
use fencepost_core::worker::io::WorkerInput;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// Gives attempts back that were granted to workers that are gone, until their owner has answered; but for those that
/// one of them has begun.
pub type GiveBack = Box<dyn Fn(Vec<(JobId, Token)>) + Send + Sync>;

/// Takes what owners of shards on other nodes say to the workers of this one.
#[derive(Default)]
pub struct OrderService {
    at: OnceLock<(Arc<Owners>, Weak<Router>)>,
    workers: Mutex<Workers>,
    give_back: OnceLock<GiveBack>,
    /// Of what was not taken.
    pub counts: WorkCounts,
}

#[derive(Default)]
struct Workers {
    own: Option<WeakAddr<WorkerActor>>,
    beside: BTreeMap<WorkerId, WeakAddr<WorkerActor>>,
}

impl OrderService {
    /// From now on workers are told of moves, and of owners that are reached or not.
    pub fn follow(self: &Arc<Self>, owners: &Arc<Owners>, router: &Arc<Router>) {
        let _ = self.at.set((owners.clone(), Arc::downgrade(router)));
        let orders = Arc::downgrade(self);
        owners.follow(Box::new(move |shard| {
            if let Some(orders) = orders.upgrade() {
                orders.pass_all(&WorkerInput::ShardHere(shard));
            }
        }));
    }

    /// Who gives back what was granted to workers that are gone; the first one stays.
    pub fn give_back_by(&self, give_back: GiveBack) {
        let _ = self.give_back.set(give_back);
    }

    /// From now on orders for this worker go there.
    pub fn serve(&self, id: &WorkerId, worker: &Addr<WorkerActor>) {
        let worker = worker.downgrade();
        let mut workers = self.workers();
        match id.is_beside() {
            false => workers.own = Some(worker),
            true => {
                workers.beside.insert(id.clone(), worker);
            }
        }
    }

    /// One beside the node's own is gone for good.
    pub fn part(&self, id: &WorkerId) {
        self.workers().beside.remove(id);
    }

    fn workers(&self) -> MutexGuard<'_, Workers> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass(&self, worker: Option<&Addr<WorkerActor>>, order: WorkerInput) {
        if worker.is_none_or(|worker| worker.try_send(ToWorker::Input(order)).is_err()) {
            self.counts.dropped.add();
        }
    }

    fn pass_all(&self, order: &WorkerInput) {
        let workers: Vec<Addr<WorkerActor>> = {
            let workers = self.workers();
            let all = workers.own.iter().chain(workers.beside.values());
            all.filter_map(WeakAddr::upgrade).collect()
        };
        workers.iter().for_each(|worker| self.pass(Some(worker), order.clone()));
    }

    fn on_order(&self, back: &Peer, worker: Option<WorkerId>, order: WorkerInput) {
        let Some(id) = worker else {
            let own = self.workers().own.as_ref().and_then(WeakAddr::upgrade);
            return self.pass(own.as_ref(), order);
        };
        let known = self.workers().beside.get(&id).and_then(WeakAddr::upgrade);
        match known {
            Some(worker) => self.pass(Some(&worker), order),
            None => self.answer_for(&id, order, back),
        }
    }

    /// What is said to one that is gone. It took everything back that it had begun, or reported it.
    fn answer_for(&self, gone: &WorkerId, order: WorkerInput, back: &Peer) {
        self.counts.gone.add();
        back.tell(REPORTS, encode_gone(gone));
        if let (Some(items), Some(give_back)) = (owed(order), self.give_back.get()) {
            give_back(items);
        }
    }
}

/// Attempts that an owner believes to be at the worker, and that an answer is owed for.
fn owed(order: WorkerInput) -> Option<Vec<(JobId, Token)>> {
    match order {
        WorkerInput::Granted { grants, .. } => Some(grants.iter().map(|grant| (grant.job.id, grant.token)).collect()),
        WorkerInput::Reconcile { items, .. } => Some(items),
        WorkerInput::ReadyHint(_)
        | WorkerInput::Renewed { .. }
        | WorkerInput::Lost { .. }
        | WorkerInput::CancelRequested { .. }
        | WorkerInput::Begun { .. }
        | WorkerInput::AttemptsFinished { .. }
        | WorkerInput::NotStarted { .. }
        | WorkerInput::CameLate { .. }
        | WorkerInput::NeverBegun { .. }
        | WorkerInput::Recorded { .. }
        | WorkerInput::ShardAway(_)
        | WorkerInput::ShardHere(_)
        | WorkerInput::Drain
        | WorkerInput::DrainExpired
        | WorkerInput::HoldBack(_)
        | WorkerInput::Tick => None,
    }
}

impl Service for OrderService {
    fn is_open_to(&self, roles: Roles) -> bool {
        roles.has_any(Roles::SCHEDULER)
    }

    fn call(&self, _from: &NodeFacts, _body: &[u8]) -> BoxFuture<'static, Vec<u8>> {
        self.counts.unreadable.add();
        ready(Vec::new()).boxed()
    }

    fn tell(&self, _from: &NodeFacts, back: &Peer, body: &[u8]) {
        match decode_order(body) {
            Ok((worker, order)) => self.on_order(back, worker, order),
            Err(_) => self.counts.unreadable.add(),
        }
    }

    /// What the other node owns can be reached, or not: slots that are kept for it are free for others then.
    fn on_link(&self, from: &NodeFacts, news: LinkNews<'_>) {
        let Some((owners, router)) = self.at.get() else {
            return;
        };
        let Some(router) = router.upgrade() else { return };
        let is_reached = match news {
            LinkNews::Reached => true,
            LinkNews::Cut => false,
            LinkNews::Came(_) | LinkNews::Went(_) => return,
        };
        for shard in owners.owned_by(&from.node) {
            let Owner::There(address) = owners.owner(shard) else {
                continue;
            };
            match (is_reached, router.takes_reports(&address)) {
                (true, true) => self.pass_all(&WorkerInput::ShardHere(shard)),
                (false, false) => self.pass_all(&WorkerInput::ShardAway(shard)),
                // The other connection to that node.
                (true, false) | (false, true) => {}
            }
        }
    }
}
