//! The store's own machine: the store role of production, in a process that can die and start again.
//!
//! Owns: its lives over one disk. Must never: do anything that production's store role does not. Next:
//! `server.rs` (the node that calls it), `faults.rs`.

use super::life::Life;
use super::store::WatchedStore;
use super::{STORE_IP, STORE_PORT, World};
use crate::runtime::{SharedStream, SimNode, Stream};
use fencepost::clock::SharedClock;
use fencepost::cluster::board::{BoardService, board_over};
use fencepost::cluster::route::Router;
use fencepost::cluster::services::NodeServices;
use fencepost::mesh::counts::MeshCounts;
use fencepost::mesh::dial::dial_for;
use fencepost::mesh::envelope::{BOARD, STORE};
use fencepost::mesh::listen::MeshListener;
use fencepost::mesh::store_link::{MeshStoreLink, StoreService};
use fencepost::mesh::{MeshParts, MeshSecret, NodeFacts, Roles, Service, Versions};
use fencepost::node::Neighbours;
use fencepost_core::limits::SHARD_LEASE_MS;
use fencepost_core::name::Name;
use fencepost_core::time::Span;
use fencepost_storage::model::Crash;
use fencepost_storage::remote::RemoteStore;
use fencepost_storage::store::Store;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, OnceLock};

/// Number of the cell that a new cell in the store gets.
const CELL: u128 = 1;

/// The store's machine.
#[derive(Clone)]
pub struct StoreNode {
    world: World,
    /// Its machine.
    pub node: SimNode,
    /// Which life; even while it is down.
    life: Life,
}

impl StoreNode {
    /// A machine, not started.
    pub fn new(world: &World) -> StoreNode {
        StoreNode {
            world: world.clone(),
            node: world.sim.new_node("store", STORE_IP),
            life: Life::default(),
        }
    }

    /// Whether its process runs.
    pub fn is_up(&self) -> bool {
        self.life.is_on()
    }

    /// Ends its process. What the disk keeps is `how`'s.
    pub fn down(&self, store: &WatchedStore, how: Crash) {
        if !self.life.end() {
            return;
        }
        self.world.history.disturb("store-down", self.world.sim.now());
        store.forget_time();
        self.node.kill();
        store.crash(how);
    }

    /// Starts its process.
    pub fn up(&self, store: &WatchedStore) {
        let Some(life) = self.life.begin() else { return };
        self.node.restart();
        let (world, node, store) = (self.world.clone(), self.node.clone(), store.clone());
        self.node.run(move || async move {
            let service: Arc<dyn Service> = Arc::new(StoreService::new(Arc::new(store), CELL));
            let length = Span::from_millis(SHARD_LEASE_MS);
            let board: Arc<dyn Service> = Arc::new(BoardService::new(life, length, node.clock()));
            let services = BTreeMap::from([(STORE, service), (BOARD, board)]);
            let parts = mesh_parts(&world, node.clock(), ("store", life), Roles::STORE, services);
            let (_stop, stopped) = tokio::sync::watch::channel(false);
            match MeshListener::bind((STORE_IP, STORE_PORT).into()).await {
                Ok(listener) => listener.serve(Arc::new(parts), stopped).await,
                Err(error) => world.sim.record("store", "no listener", &error.to_string()),
            }
        });
        let this = self.clone();
        self.world.sim.spawn(async move {
            // Nodes find it again within their longest pause, and shards ask again.
            this.world.sim.sleep(4_000_000).await;
            if this.life.number() == life {
                this.world.history.calm("store-down", this.world.sim.now());
            }
        });
    }
}

/// The store and the board as a node on another machine has them, once the store has answered.
pub async fn reach(
    world: &World,
    clock: SharedClock,
    (node, ip, life): (&str, Ipv4Addr, u64),
) -> (Arc<dyn Store>, Neighbours) {
    let owner = Roles::SCHEDULER.with(Roles::GATEWAY).with(Roles::COORDINATOR);
    let roles = match world.options.owners_work {
        false => owner,
        true => owner.with(Roles::WORKER),
    };
    let services = NodeServices::default();
    let parts = Arc::new(mesh_parts(world, clock.clone(), (node, life), roles, services.all()));
    let peer = dial_for(parts.clone(), format!("{STORE_IP}:{STORE_PORT}"), Roles::STORE);
    let store = RemoteStore::new(Arc::new(MeshStoreLink(peer.clone())));
    while store.ask_facts().await.is_err() {
        clock.sleep(Span::from_millis(200)).await;
    }
    match MeshListener::bind((ip, STORE_PORT).into()).await {
        Ok(listener) => {
            let (going_on, stopped) = tokio::sync::watch::channel(false);
            let listening = listener.serve(parts.clone(), stopped);
            fencepost::net::rt::spawn(async move {
                listening.await;
                drop(going_on);
            });
        }
        Err(error) => world.sim.record(node, "no listener", &error.to_string()),
    }
    let neighbours = Neighbours {
        boot: life,
        address: format!("{ip}:{STORE_PORT}").into(),
        board: board_over(peer),
        router: Arc::new(Router::new(parts)),
        services,
    };
    (Arc::new(store), neighbours)
}

/// The board as a node that only works has it, which needs no more.
pub fn look_on(world: &World, clock: SharedClock, (node, life): (&str, u64)) -> Neighbours {
    let services = NodeServices::default();
    let parts = mesh_parts(world, clock, (node, life), Roles::WORKER, services.of_worker());
    let parts = Arc::new(parts);
    Neighbours {
        boot: life,
        address: "".into(),
        board: board_over(dial_for(
            parts.clone(),
            format!("{STORE_IP}:{STORE_PORT}"),
            Roles::STORE,
        )),
        router: Arc::new(Router::new(parts)),
        services,
    }
}

fn mesh_parts(
    world: &World,
    clock: SharedClock,
    (node, life): (&str, u64),
    roles: Roles,
    services: BTreeMap<fencepost::mesh::envelope::ServiceId, Arc<dyn Service>>,
) -> MeshParts {
    let stream = Stream::new(world.options.seed, &format!("links of {node} {life}"));
    MeshParts {
        cell: OnceLock::new(),
        secret: MeshSecret::of("simulated"),
        lone: Roles::default(),
        facts: NodeFacts {
            node: Name::new(node).expect("a legal name"),
            boot: life,
            roles,
        },
        clock,
        chance: Arc::new(SharedStream::new(stream)),
        versions: Versions::default(),
        services,
        counts: MeshCounts::default(),
    }
}
