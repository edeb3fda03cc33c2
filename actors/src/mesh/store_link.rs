//! The store over the mesh: the caller's link and the store's service.
//!
//! Owns: how long a store call may take, and who may make one. Must never: send a call twice; only
//! the Store trait's callers know what may be repeated. Next: `fencepost_storage::remote`.

use crate::mesh::envelope::STORE;
use crate::mesh::peer::{CallError, Peer};
use crate::mesh::{NodeFacts, Roles, Service};
use fencepost_core::level::{self, Level};
use fencepost_core::limits::STORE_CALL_MS;
use fencepost_core::time::Span;
use fencepost_storage::remote::serve::Serving;
use fencepost_storage::remote::{LinkError, StoreLink};
use fencepost_storage::store::Store;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// Store calls over a peer.
pub struct MeshStoreLink(pub Peer);

impl StoreLink for MeshStoreLink {
    fn call(&self, call: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, LinkError>> {
        let called = self.0.call(STORE, call, Span::from_millis(STORE_CALL_MS));
        called
            .map(|answer| {
                answer.map_err(|error| match error {
                    CallError::NotSent(why) => LinkError::NotSent(why.to_owned()),
                    CallError::NoService => LinkError::NotSent(error.to_string()),
                    CallError::NoAnswer(why) => LinkError::NoAnswer(why.to_owned()),
                })
            })
            .boxed()
    }

    /// One number for both: the version that is spoken. The oldest while there is no connection.
    fn level(&self) -> Level {
        self.0.protocol().map_or(level::OLDEST, Level)
    }
}

/// Serves a store to other nodes.
pub struct StoreService(Serving);

impl StoreService {
    /// Serves this store. `cell` is the number that a new cell in it gets.
    pub fn new(store: Arc<dyn Store>, cell: u128) -> StoreService {
        StoreService(Serving::new(store, cell))
    }
}

impl Service for StoreService {
    /// Workers and clients of workers write nothing.
    fn is_open_to(&self, roles: Roles) -> bool {
        roles.has_any(Roles::SCHEDULER.with(Roles::GATEWAY).with(Roles::COORDINATOR))
    }

    fn call(&self, _from: &NodeFacts, body: &[u8]) -> BoxFuture<'static, Vec<u8>> {
        self.0.answer(body)
    }

    fn tell(&self, _from: &NodeFacts, _back: &Peer, _body: &[u8]) {}
}
