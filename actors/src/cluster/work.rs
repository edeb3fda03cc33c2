//! Workers and owners of shards on different nodes: the way there and the way back.
//!
//! Owns: which way a worker's message takes, and the owner's link to a worker elsewhere, which lasts as long as
//! the connection over which the worker speaks. Nothing here is proof: what is lost is said again by the
//! worker's timers, at once when an owner is reached again, and a connection that ends no lease ends (F14, F18).
//! Must never: decide who owns what, or who is alive. Next: `report.rs`, `order.rs`, `owners.rs`.

use crate::cluster::order::{decode_order, encode_order};
use crate::cluster::owners::{Owner, Owners};
use crate::cluster::report::{decode_report, encode_report};
use crate::cluster::route::Router;
use crate::mesh::counts::Count;
use crate::mesh::envelope::ORDERS;
use crate::mesh::peer::Peer;
use crate::mesh::{LinkNews, NodeFacts, Roles, Service};
use crate::net::rt;
use crate::shell::messages::{FromWorker, ToShard, WorkerLink};
use crate::shell::shard_actor::ShardActor;
use crate::worker::{ToWorker, WorkerActor};
use actix::{Addr, WeakAddr};
use fencepost_core::ids::{ShardId, WorkerId};
use fencepost_core::name::Name;
use fencepost_core::worker::io::WorkerInput;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// The ways from a worker to the owners of shards.
pub struct Ways {
    /// Every shard's actor on this node, by number; none on a node that owns nothing.
    here: Vec<Addr<ShardActor>>,
    there: Option<(Arc<Owners>, Arc<Router>)>,
}

impl Ways {
    /// Of a node without others.
    pub fn alone(here: Vec<Addr<ShardActor>>) -> Ways {
        Ways { here, there: None }
    }

    /// Of a node among others.
    pub fn among(here: Vec<Addr<ShardActor>>, owners: Arc<Owners>, router: Arc<Router>) -> Ways {
        Ways {
            here,
            there: Some((owners, router)),
        }
    }

    /// Shards on this node, theirs or not.
    pub fn here(&self) -> &[Addr<ShardActor>] {
        &self.here
    }

    /// Sends to whoever owns the shard; false if it did not leave. Where nobody is known to, the shard on this
    /// node is told, in case it comes here.
    pub fn send(&self, shard: ShardId, worker: &WorkerId, report: FromWorker) -> bool {
        if let Some((owners, router)) = &self.there
            && let Owner::There(address) = owners.owner(shard)
        {
            return router.report(&address, encode_report(shard, worker, &report));
        }
        let message = ToShard::Worker(worker.clone(), report);
        let here = self.here.get(usize::from(shard.0));
        here.is_some_and(|here| here.try_send(message).is_ok())
    }
}

/// What came over these services and was not taken.
#[derive(Debug, Default)]
pub struct WorkCounts {
    /// Messages that cannot be read, or are of a kind that this build does not know.
    pub unreadable: Count,
    /// Messages in the name of a worker of another node, or of a second one.
    pub foreign: Count,
    /// Messages that found no room here; they are said again.
    pub dropped: Count,
}

/// Takes what workers of other nodes say to shards of this one.
#[derive(Default)]
pub struct ReportService {
    shards: OnceLock<Vec<WeakAddr<ShardActor>>>,
    /// By node and start.
    links: Mutex<BTreeMap<(Name, u64), FarWorker>>,
    /// Of what was not taken.
    pub counts: WorkCounts,
}

/// A worker on another node, and the way back to it.
#[derive(Clone)]
struct FarWorker {
    peer: Peer,
    worker: WorkerId,
    link: WorkerLink,
}

impl ReportService {
    /// From now on reports go there.
    pub fn serve(&self, shards: &[Addr<ShardActor>]) {
        let _ = self.shards.set(shards.iter().map(Addr::downgrade).collect());
    }

    /// The link of the connection; one that is gone has none, and a connection speaks for one worker.
    fn link(&self, from: &NodeFacts, back: &Peer, worker: &WorkerId) -> Option<WorkerLink> {
        if worker.node != from.node {
            return None;
        }
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (from.node.clone(), from.boot);
        match links.get(&key) {
            Some(known) if known.peer.is(back) => (known.worker == *worker).then(|| known.link.clone()),
            Some(_) | None => {
                let link = link_over(back.clone());
                let known = FarWorker {
                    peer: back.clone(),
                    worker: worker.clone(),
                    link: link.clone(),
                };
                links.insert(key, known);
                Some(link)
            }
        }
    }

    fn forget(&self, from: &NodeFacts, gone: &Peer) {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (from.node.clone(), from.boot);
        if links.get(&key).is_none_or(|known| !known.peer.is(gone)) {
            return;
        }
        let Some(known) = links.remove(&key) else { return };
        drop(links);
        for shard in self.shards.get().into_iter().flatten().filter_map(WeakAddr::upgrade) {
            let message = ToShard::WorkerUnreached(known.worker.clone(), known.link.clone());
            // It must be heard, or work is granted to nobody.
            rt::spawn(async move {
                let _ = shard.send(message).await;
            });
        }
    }
}

/// False once the connection is gone, or where there is no room: it is a hint then.
fn link_over(peer: Peer) -> WorkerLink {
    Arc::new(move |order| encode_order(&order).is_some_and(|order| peer.tell(ORDERS, order)))
}

impl Service for ReportService {
    fn is_open_to(&self, roles: Roles) -> bool {
        roles.has_any(Roles::WORKER)
    }

    fn call(&self, _from: &NodeFacts, _body: &[u8]) -> BoxFuture<'static, Vec<u8>> {
        self.counts.unreadable.add();
        ready(Vec::new()).boxed()
    }

    fn tell(&self, from: &NodeFacts, back: &Peer, body: &[u8]) {
        let Ok((shard, worker, report)) = decode_report(body) else {
            return self.counts.unreadable.add();
        };
        let Some(link) = self.link(from, back, &worker) else {
            return self.counts.foreign.add();
        };
        let shards = self.shards.get().map_or(&[][..], Vec::as_slice);
        let here = shards.get(usize::from(shard.0)).and_then(WeakAddr::upgrade);
        let message = ToShard::FarWorker(worker, link.clone(), report);
        if here.is_none_or(|here| here.try_send(message).is_err()) {
            self.counts.dropped.add();
            link(WorkerInput::ShardAway(shard));
        }
    }

    fn on_link(&self, from: &NodeFacts, news: LinkNews<'_>) {
        match news {
            LinkNews::Went(gone) => self.forget(from, gone),
            LinkNews::Came(_) | LinkNews::Reached | LinkNews::Cut => {}
        }
    }
}

/// Takes what owners of shards on other nodes say to the worker of this one.
#[derive(Default)]
pub struct OrderService {
    at: OnceLock<(WeakAddr<WorkerActor>, Arc<Owners>, Weak<Router>)>,
    /// Of what was not taken.
    pub counts: WorkCounts,
}

impl OrderService {
    /// From now on orders go to this worker, which is told of moves too.
    pub fn serve(self: &Arc<Self>, worker: &Addr<WorkerActor>, owners: &Arc<Owners>, router: &Arc<Router>) {
        let _ = self
            .at
            .set((worker.downgrade(), owners.clone(), Arc::downgrade(router)));
        let orders = Arc::downgrade(self);
        owners.follow(Box::new(move |shard| {
            if let Some(orders) = orders.upgrade() {
                orders.pass(WorkerInput::ShardHere(shard));
            }
        }));
    }

    fn pass(&self, order: WorkerInput) {
        let worker = self.at.get().and_then(|(worker, ..)| worker.upgrade());
        if worker.is_none_or(|worker| worker.try_send(ToWorker::Input(order)).is_err()) {
            self.counts.dropped.add();
        }
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

    fn tell(&self, _from: &NodeFacts, _back: &Peer, body: &[u8]) {
        match decode_order(body) {
            Ok(order) => self.pass(order),
            Err(_) => self.counts.unreadable.add(),
        }
    }

    /// What the other node owns can be reached, or not: slots that are kept for it are free for others then.
    fn on_link(&self, from: &NodeFacts, news: LinkNews<'_>) {
        let Some((_, owners, router)) = self.at.get() else {
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
                (true, true) => self.pass(WorkerInput::ShardHere(shard)),
                (false, false) => self.pass(WorkerInput::ShardAway(shard)),
                // The other connection to that node.
                (true, false) | (false, true) => {}
            }
        }
    }
}
