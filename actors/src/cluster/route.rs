//! The way to an owner on another node, and the owner's side of it.
//!
//! Owns: connections to other nodes by address, and what a caller is told when nothing comes back. Requests and
//! what workers say have connections of their own: a gateway's many calls must not hold up a heartbeat. Must
//! never: send a request twice unless it is known that nothing was done. Next: `request.rs`, `work.rs`,
//! `../node/gateway.rs`.

use crate::cluster::request::{MESSAGE_VERSION, Reply, decode_reply, decode_request, encode_reply, request_body};
use crate::gateway::ShardRequest;
use crate::mesh::dial::dial_for;
use crate::mesh::envelope::{REPORTS, REQUESTS};
use crate::mesh::peer::{CallError, Peer};
use crate::mesh::{MeshParts, NodeFacts, Roles, Service};
use crate::node::gateway::NodeGateway;
use crate::shell::messages::{outcome_unknown, shard_away};
use fencepost_core::ids::ShardId;
use fencepost_core::limits::{BOARD_NODES_MAX, FOLLOW_CONNECT_MS, REQUEST_CALL_MS};
use fencepost_core::refusal::{Refusal, RefusalKind};
use fencepost_core::time::Span;
use fencepost_storage::codec::RowError;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// Connections to other nodes, made when they are first needed.
pub struct Router {
    parts: Arc<MeshParts>,
    peers: Mutex<BTreeMap<(Way, Arc<str>), Peer>>,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Requests,
    Reports,
}

impl Router {
    /// No connection yet.
    pub fn new(parts: Arc<MeshParts>) -> Router {
        Router {
            parts,
            peers: Mutex::default(),
        }
    }

    /// Sends a request to the node that is reached there.
    pub fn call(&self, address: &Arc<str>, shard: ShardId, request: &ShardRequest) -> BoxFuture<'static, Reply> {
        let peer = self.peer(Way::Requests, address);
        // Where there is no connection the owner may be gone, and its shard on its way to another.
        let wait = match peer.facts() {
            Some(_) => Span::from_millis(REQUEST_CALL_MS),
            None => Span::from_millis(FOLLOW_CONNECT_MS),
        };
        let called = peer.call(REQUESTS, request_body(shard, request), wait);
        called
            .map(|answer| match answer {
                // Who answers what cannot be read may have done it.
                Ok(bytes) => decode_reply(&bytes).unwrap_or_else(|_| Err(outcome_unknown())),
                Err(CallError::NotSent(_) | CallError::NoService) => Err(shard_away()),
                Err(CallError::NoAnswer(_)) => Err(outcome_unknown()),
            })
            .boxed()
    }

    /// Sends what a worker says; false where there is no connection, which is made from now on.
    pub fn report(&self, address: &Arc<str>, encode: impl FnOnce(u16) -> Vec<u8>) -> bool {
        let peer = self.peer(Way::Reports, address);
        let protocol = peer.protocol().filter(|_| peer.facts().is_some());
        protocol.is_some_and(|protocol| peer.tell(REPORTS, encode(protocol)))
    }

    /// Sends what a worker says to every node that workers here have spoken to.
    pub fn report_to_all(&self, report: &[u8]) {
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let reached = peers.iter().filter(|((way, _), _)| *way == Way::Reports);
        for (_, peer) in reached.filter(|(_, peer)| peer.facts().is_some()) {
            peer.tell(REPORTS, report.to_vec());
        }
    }

    /// Whether what a worker says is on a connection now.
    pub fn takes_reports(&self, address: &Arc<str>) -> bool {
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let peer = peers.get(&(Way::Reports, address.clone()));
        peer.is_some_and(|peer| peer.facts().is_some())
    }

    /// Closes connections to nodes that are gone: they are reached elsewhere when they come back.
    pub(super) fn keep(&self, is_there: impl Fn(&str) -> bool) {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        peers.retain(|(_, address), peer| {
            let stays = is_there(address);
            if !stays {
                peer.close();
            }
            stays
        });
    }

    /// The connection to an address; when there are too many, the others are closed.
    fn peer(&self, way: Way, address: &Arc<str>) -> Peer {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (way, address.clone());
        if let Some(peer) = peers.get(&key) {
            return peer.clone();
        }
        if peers.len() >= 2 * BOARD_NODES_MAX {
            std::mem::take(&mut *peers).values().for_each(Peer::close);
        }
        let peer = dial_for(self.parts.clone(), address.to_string(), Roles::SCHEDULER);
        peers.insert(key, peer.clone());
        peer
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let peers = self.peers.get_mut().unwrap_or_else(PoisonError::into_inner);
        peers.values().for_each(Peer::close);
    }
}

fn not_understood(why: &RowError) -> Refusal {
    Refusal::new(
        RefusalKind::Unavailable,
        "request_not_understood",
        format!("the node that owns this cannot read the request: {why}"),
        "see that all nodes run versions that belong together; nothing was done",
    )
}

/// Takes requests of other nodes for shards of this one.
#[derive(Default)]
pub struct RequestService {
    gateway: OnceLock<Weak<NodeGateway>>,
}

impl RequestService {
    /// From now on requests go there.
    pub fn serve(&self, gateway: &Arc<NodeGateway>) {
        let _ = self.gateway.set(Arc::downgrade(gateway));
    }
}

impl Service for RequestService {
    fn is_open_to(&self, roles: Roles) -> bool {
        roles.has_any(Roles::GATEWAY)
    }

    /// The request is in the owner's mailbox, or refused, when this returns.
    fn call(&self, _from: &NodeFacts, body: &[u8]) -> BoxFuture<'static, Vec<u8>> {
        let gateway = self.gateway.get().and_then(Weak::upgrade);
        let answering = match (gateway, decode_request(body)) {
            (Some(gateway), Ok((shard, request))) => gateway.call_here(shard, request),
            (None, _) => ready(Err(shard_away())).boxed(),
            (_, Err(error)) => ready(Err(not_understood(&error))).boxed(),
        };
        // In the version of its request, which is one that the caller knows.
        let asked = body.first().copied().unwrap_or(MESSAGE_VERSION);
        answering.map(move |reply| encode_reply(&reply, asked)).boxed()
    }

    fn tell(&self, _from: &NodeFacts, _back: &Peer, _body: &[u8]) {}
}
