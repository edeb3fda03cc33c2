//! The owner's end: what workers of other nodes say to shards of this one, and the ways back to them.
//!
//! Owns: the links of each connection, one for each worker that spoke over it: the node's own, and one for each claim
//! beside it. They last as long as the connection, or until the worker says that it is gone; of too many, the one that
//! was silent for longest goes. Must never: take the end of a connection for a death. Next: `report.rs`,
//! `near_workers.rs` (the other end), `../shell/links.rs`.

use crate::cluster::order::encode_order;
use crate::cluster::report::decode_report;
use crate::cluster::work::WorkCounts;
use crate::mesh::envelope::ORDERS;
use crate::mesh::peer::Peer;
use crate::mesh::{LinkNews, NodeFacts, Roles, Service};
use crate::net::rt;
use crate::shell::messages::{FromWorker, ToShard, WorkerLink};
use crate::shell::shard_actor::ShardActor;
use actix::{Addr, WeakAddr};
use fencepost_core::ids::{ShardId, WorkerId};
use fencepost_core::limits::LINK_WORKERS_MAX;
use fencepost_core::worker::io::WorkerInput;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Takes what workers of other nodes say to shards of this one.
#[derive(Default)]
pub struct ReportService {
    shards: OnceLock<Vec<WeakAddr<ShardActor>>>,
    lines: Mutex<Vec<Line>>,
    /// Of what was not taken.
    pub counts: WorkCounts,
}

/// A connection and the workers that spoke over it, all of one start of one node.
struct Line {
    peer: Peer,
    start: WorkerId,
    links: BTreeMap<WorkerId, Heard>,
    heard: u64,
}

struct Heard {
    link: WorkerLink,
    /// When, in messages of this connection.
    at: u64,
}

/// Workers whose way back is gone.
type Gone = Vec<(WorkerId, WorkerLink)>;

impl Line {
    fn new(peer: &Peer, worker: &WorkerId) -> Line {
        Line {
            peer: peer.clone(),
            start: worker.clone(),
            links: BTreeMap::new(),
            heard: 0,
        }
    }

    /// The worker's link, and whose went to make room for it.
    fn link(&mut self, worker: &WorkerId) -> Option<(WorkerLink, Gone)> {
        if !worker.is_of_start(self.start.boot) {
            return None;
        }
        self.heard += 1;
        let at = self.heard;
        if let Some(known) = self.links.get_mut(worker) {
            known.at = at;
            return Some((known.link.clone(), Gone::new()));
        }
        let gone = self.make_room();
        let link = link_over(self.peer.clone(), worker.clone());
        self.links.insert(worker.clone(), Heard { link: link.clone(), at });
        Some((link, gone))
    }

    /// Whoever has anything is heard with every heartbeat; a worker that goes without a word is not.
    fn make_room(&mut self) -> Gone {
        if self.links.len() < LINK_WORKERS_MAX {
            return Gone::new();
        }
        let oldest = self.links.iter().min_by_key(|(_, heard)| heard.at);
        let oldest = oldest.map(|(worker, _)| worker.clone());
        let gone = oldest.and_then(|worker| self.links.remove_entry(&worker));
        gone.map(|(worker, heard)| (worker, heard.link)).into_iter().collect()
    }
}

impl ReportService {
    /// From now on reports go there.
    pub fn serve(&self, shards: &[Addr<ShardActor>]) {
        let _ = self.shards.set(shards.iter().map(Addr::downgrade).collect());
    }

    /// Links that are kept.
    pub fn link_count(&self) -> usize {
        self.lines().iter().map(|line| line.links.len()).sum()
    }

    /// The worker's link over this connection.
    fn link(&self, from: &NodeFacts, back: &Peer, worker: &WorkerId) -> Option<WorkerLink> {
        if worker.node != from.node {
            return None;
        }
        let (link, gone) = {
            let mut lines = self.lines();
            match lines.iter_mut().find(|line| line.peer.is(back)) {
                Some(line) => line.link(worker)?,
                None => {
                    let mut line = Line::new(back, worker);
                    let link = line.link(worker)?;
                    lines.push(line);
                    link
                }
            }
        };
        self.tell_unreached(gone);
        Some(link)
    }

    fn lines(&self) -> MutexGuard<'_, Vec<Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn on_report(&self, shard: ShardId, worker: WorkerId, link: WorkerLink, report: FromWorker) {
        let shards = self.shards.get().map_or(&[][..], Vec::as_slice);
        let here = shards.get(usize::from(shard.0)).and_then(WeakAddr::upgrade);
        let message = ToShard::Worker(worker, link.clone(), report);
        if here.is_none_or(|here| here.try_send(message).is_err()) {
            self.counts.dropped.add();
            link(WorkerInput::ShardAway(shard));
        }
    }

    fn on_gone(&self, back: &Peer, worker: &WorkerId) {
        let known = {
            let mut lines = self.lines();
            let line = lines.iter_mut().find(|line| line.peer.is(back));
            line.and_then(|line| line.links.remove(worker))
        };
        if let Some(known) = known {
            self.tell_unreached(vec![(worker.clone(), known.link)]);
        }
    }

    fn forget(&self, gone: &Peer) {
        let line = {
            let mut lines = self.lines();
            let at = lines.iter().position(|line| line.peer.is(gone));
            at.map(|at| lines.remove(at))
        };
        let links = line.into_iter().flat_map(|line| line.links);
        self.tell_unreached(links.map(|(worker, heard)| (worker, heard.link)).collect());
    }

    /// It must be heard, or work is granted to nobody.
    fn tell_unreached(&self, gone: Gone) {
        if gone.is_empty() {
            return;
        }
        let gone = Arc::new(gone);
        for shard in self.shards.get().into_iter().flatten().filter_map(WeakAddr::upgrade) {
            let gone = gone.clone();
            rt::spawn(async move {
                for (worker, link) in gone.iter() {
                    let _ = shard.send(ToShard::WorkerUnreached(worker.clone(), link.clone())).await;
                }
            });
        }
    }
}

/// False once the connection is gone, or where there is no room: it is a hint then.
fn link_over(peer: Peer, worker: WorkerId) -> WorkerLink {
    Arc::new(move |order| encode_order(&worker, &order).is_some_and(|order| peer.tell(ORDERS, order)))
}

impl Service for ReportService {
    /// Workers', and those of gateways: these answer claims.
    fn is_open_to(&self, roles: Roles) -> bool {
        roles.has_any(Roles::WORKER.with(Roles::GATEWAY))
    }

    fn call(&self, _from: &NodeFacts, _body: &[u8]) -> BoxFuture<'static, Vec<u8>> {
        self.counts.unreadable.add();
        ready(Vec::new()).boxed()
    }

    fn tell(&self, from: &NodeFacts, back: &Peer, body: &[u8]) {
        let Ok((shard, worker, report)) = decode_report(body) else {
            return self.counts.unreadable.add();
        };
        let Some(report) = report else {
            return self.on_gone(back, &worker);
        };
        match self.link(from, back, &worker) {
            Some(link) => self.on_report(shard, worker, link, report),
            None => self.counts.foreign.add(),
        }
    }

    fn on_link(&self, _from: &NodeFacts, news: LinkNews<'_>) {
        match news {
            LinkNews::Went(gone) => self.forget(gone),
            LinkNews::Came(_) | LinkNews::Reached | LinkNews::Cut => {}
        }
    }
}
