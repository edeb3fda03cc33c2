//! The store's rules, over real sockets between two nodes.

use crate::pair::{CELL, facts, listen, parts};
use crate::proxy::Proxy;
use fencepost::clock::{SharedClock, SystemClock};
use fencepost::mesh::Roles;
use fencepost::mesh::dial::dial;
use fencepost::mesh::envelope::STORE;
use fencepost::mesh::store_link::{MeshStoreLink, StoreService};
use fencepost::process::serve::StoreTicks;
use fencepost_core::ids::Scope;
use fencepost_core::time::Span;
use fencepost_storage::conformance::RULES;
use fencepost_storage::model::ModelStore;
use fencepost_storage::remote::RemoteStore;
use fencepost_storage::store::{Store, StoreError};
use std::sync::Arc;

struct Cluster {
    remote: RemoteStore,
    proxy: Proxy,
    _listening: crate::pair::Listening,
}

async fn cluster(roles: Roles) -> Cluster {
    let clock: SharedClock = Arc::new(SystemClock::new());
    let sleeper = clock.clone();
    let sleep = Arc::new(move |span: Span| sleeper.sleep(span));
    let store: Arc<dyn Store> = Arc::new(ModelStore::new(Arc::new(StoreTicks(clock)), sleep));
    let service = Arc::new(StoreService::new(store, CELL));
    let listening = listen(parts(Some(CELL), facts("store", 1, Roles::STORE), &[(STORE, service)])).await;
    let proxy = Proxy::to(listening.address).await;
    let dialer = Arc::new(parts(None, facts("a", 2, roles), &[]));
    let peer = dial(dialer, proxy.address.to_string());
    Cluster {
        remote: RemoteStore::new(Arc::new(MeshStoreLink(peer))),
        proxy,
        _listening: listening,
    }
}

#[tokio::test]
async fn the_store_keeps_every_rule_over_the_mesh() {
    for rule in RULES {
        let cluster = cluster(Roles::SCHEDULER).await;
        let verdict = (rule.run)(Arc::new(cluster.remote.clone())).await;
        assert!(verdict.is_ok(), "{}: {verdict:?}", rule.name);
    }
}

#[tokio::test]
async fn the_cell_is_learned_from_the_store() {
    let cluster = cluster(Roles::GATEWAY).await;
    assert_eq!(cluster.remote.ask_facts().await, Ok(CELL));
    assert_eq!(cluster.remote.describe().engine, "remote model");
}

#[tokio::test]
async fn a_worker_cannot_call_the_store() {
    let cluster = cluster(Roles::WORKER).await;
    let asked = cluster.remote.epoch(Scope::Coordinator).await;
    assert!(matches!(asked, Err(StoreError::Unavailable(_))), "{asked:?}");
}

#[tokio::test]
async fn a_store_that_is_away_is_unavailable_and_comes_back_by_itself() {
    let cluster = cluster(Roles::SCHEDULER).await;
    cluster.remote.epoch(Scope::Coordinator).await.unwrap();
    cluster.proxy.cut();
    let asked = cluster.remote.epoch(Scope::Coordinator).await;
    assert!(matches!(asked, Err(StoreError::Unavailable(_))), "{asked:?}");
    cluster.proxy.heal();
    while cluster.remote.epoch(Scope::Coordinator).await.is_err() {}
}
