//! Workers and owners of shards on different nodes: which way a worker's message takes.
//!
//! Owns: the choice of the way, and the counts of what was not taken at its end. Nothing here is proof: what is lost
//! is said again by the worker's timers, at once when an owner is reached again, and a connection that ends no lease
//! ends (F14, F18). Must never: decide who owns what, or who is alive. Next: `far_workers.rs` (the owner's end),
//! `near_workers.rs` (the worker's end), `report.rs`, `order.rs`, `owners.rs`.

use crate::cluster::near_workers::OrderService;
use crate::cluster::owners::{Owner, Owners};
use crate::cluster::report::{encode_gone, encode_report_in};
use crate::cluster::route::Router;
use crate::mesh::counts::Count;
use crate::shell::messages::{FromWorker, ToShard, WorkerLink};
use crate::shell::shard_actor::ShardActor;
use crate::worker::WorkerActor;
use actix::Addr;
use fencepost_core::ids::{ShardId, WorkerId};
use std::sync::Arc;

/// The ways from the workers of a node to the owners of shards, and back.
#[derive(Clone)]
pub struct Ways {
    /// Every shard's actor on this node, by number; none on a node that owns nothing.
    here: Vec<Addr<ShardActor>>,
    there: Option<Far>,
}

/// Other nodes, where there are any.
#[derive(Clone)]
pub struct Far {
    /// Who owns what.
    pub owners: Arc<Owners>,
    /// The way there.
    pub router: Arc<Router>,
    /// The way back.
    pub orders: Arc<OrderService>,
}

impl Ways {
    /// Of a node with these shards, its neighbours' or not.
    pub fn new(here: Vec<Addr<ShardActor>>, there: Option<Far>) -> Ways {
        Ways { here, there }
    }

    /// A worker is there: whoever answers it finds it, so this comes before its first word.
    pub fn join(&self, worker: &WorkerId, link: &WorkerLink, address: &Addr<WorkerActor>) {
        if let Some(far) = &self.there {
            far.orders.serve(worker, address);
        }
        for shard in &self.here {
            let _ = shard.try_send(ToShard::WorkerHere(worker.clone(), link.clone()));
        }
    }

    /// Sends to whoever owns the shard, with the way back; false if it did not leave. Where nobody is known to, the
    /// shard on this node is told, in case it comes here.
    pub fn send(&self, shard: ShardId, (worker, link): (&WorkerId, &WorkerLink), report: FromWorker) -> bool {
        if let Some(far) = &self.there
            && let Owner::There(address) = far.owners.owner(shard)
        {
            return far
                .router
                .report(&address, |protocol| encode_report_in(protocol, shard, worker, &report));
        }
        let message = ToShard::Worker(worker.clone(), link.clone(), report);
        let here = self.here.get(usize::from(shard.0));
        here.is_some_and(|here| here.try_send(message).is_ok())
    }

    /// Tells every owner that a worker beside the node's own is gone for good: nothing more is granted to it. To
    /// other nodes it is a hint; what they grant to it all the same goes back.
    pub async fn part(&self, worker: &WorkerId) {
        if let Some(far) = &self.there {
            far.orders.part(worker);
            far.router.report_to_all(&encode_gone(worker));
        }
        self.part_here(worker).await;
    }

    /// The shards on this node have heard it when this returns.
    pub async fn part_here(&self, worker: &WorkerId) {
        for shard in &self.here {
            let _ = shard.send(ToShard::WorkerGone(worker.clone())).await;
        }
    }
}

/// What came over these services and was not taken.
#[derive(Debug)]
pub struct WorkCounts {
    /// Messages that cannot be read, or are of a kind that this build does not know.
    pub unreadable: Count,
    /// Messages in the name of a worker of another node, or of another start of it.
    pub foreign: Count,
    /// Messages that found no room here; they are said again.
    pub dropped: Count,
    /// Messages for a worker that is not here any more.
    pub gone: Count,
}

impl Default for WorkCounts {
    fn default() -> WorkCounts {
        WorkCounts {
            unreadable: Count::of_work("unreadable"),
            foreign: Count::of_work("foreign"),
            dropped: Count::of_work("no_room"),
            gone: Count::of_work("gone"),
        }
    }
}

impl WorkCounts {
    /// All of them.
    pub fn all(&self) -> [&Count; 4] {
        [&self.unreadable, &self.foreign, &self.dropped, &self.gone]
    }
}
