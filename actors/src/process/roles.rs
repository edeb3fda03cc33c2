//! A process of a part of the roles: the one that holds the store, those that reach it, and those that only work.
//!
//! Owns: serving the store to other nodes, and finding it from one that has none. Must never: write
//! anything before the store has answered. Next: `serve.rs`, `../mesh/`.

use crate::api::token::{Kept, read_kept, read_or_make};
use crate::chance::{Chance, SharedChance, draw_holder, draw_u64};
use crate::clock::SharedClock;
use crate::cluster::board::{BoardService, board_over};
use crate::cluster::route::Router;
use crate::cluster::services::NodeServices;
use crate::mesh::counts::MeshCounts;
use crate::mesh::dial::dial_for;
use crate::mesh::envelope::{BOARD, STORE, ServiceId};
use crate::mesh::listen::MeshListener;
use crate::mesh::store_link::{MeshStoreLink, StoreService};
use crate::mesh::tls::MeshTls;
use crate::mesh::{MeshParts, MeshSecret, NodeFacts, Roles, Service, Versions};
use crate::net::rt;
use crate::node::only_worker::{OnlyWorkerParts, join_as_worker};
use crate::node::{Neighbours, NodeConfig, lane_gone};
use crate::process::notify::{Manager, waits_for};
use crate::process::say::say;
use crate::process::serve::{Refused, node_ends};
use crate::process::signals::Signals;
use crate::process::{exit, threads};
use crate::shell::fetch::SharedStore;
use crate::shell::shard_actor::Ending;
use crate::targets::TargetRunner;
use fencepost_core::limits::STORE_START_PAUSE_MS;
use fencepost_core::name::Name;
use fencepost_core::time::Span;
use fencepost_storage::remote::RemoteStore;
use futures_util::future::{Either, select};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;

/// Pause before a store that does not answer yet is asked again.
const ASK_PAUSE: Span = Span::from_millis(STORE_START_PAUSE_MS);

/// What a node needs for connections.
pub(super) struct Connections {
    pub(super) node: Name,
    pub(super) secret: MeshSecret,
    pub(super) tls: Option<Arc<MeshTls>>,
    pub(super) clock: SharedClock,
    pub(super) chance: SharedChance,
}

impl Connections {
    fn parts(&self, cell: Option<u128>, roles: Roles, services: BTreeMap<ServiceId, Arc<dyn Service>>) -> MeshParts {
        let named = || self.tls.as_ref().map(|tls| tls.kit().identity().cell);
        MeshParts {
            cell: cell.or_else(named).map_or_else(OnceLock::new, OnceLock::from),
            secret: self.secret.clone(),
            tls: self.tls.clone(),
            lone: Roles::default(),
            facts: NodeFacts {
                node: self.node.clone(),
                boot: draw_u64(&*self.chance),
                roles,
            },
            clock: self.clock.clone(),
            chance: self.chance.clone(),
            versions: Versions::default(),
            services,
            counts: MeshCounts::default(),
        }
    }
}

/// What a process does that has neither store nor worker.
pub(super) const WITHOUT_WORK: Roles = Roles::SCHEDULER.with(Roles::GATEWAY).with(Roles::COORDINATOR);
/// What a process does that has no store.
pub(super) const WITHOUT_STORE: Roles = WITHOUT_WORK.with(Roles::WORKER);

/// Under certificates nobody is asked for a secret: one that nobody knows.
pub(crate) fn no_secret(chance: &dyn Chance) -> MeshSecret {
    MeshSecret::of(&format!("{:x} {:x}", draw_holder(chance).0, draw_holder(chance).0))
}

/// The file in the store's folder that holds what the nodes of the cell share.
pub const SECRET_FILE: &str = "mesh-secret";

/// The secret of a store's folder, made at the first start.
pub(super) fn make_secret(folder: &Path, chance: &dyn Chance) -> Result<MeshSecret, Refused> {
    let drawn = [draw_holder(chance).0, draw_holder(chance).0];
    let read = read_or_make(&Kept::MESH_SECRET, &folder.join(SECRET_FILE), drawn);
    let text = read.map_err(|refusal| Refused::of(exit::STORE_REFUSED, &refusal))?;
    Ok(MeshSecret::of(&text))
}

/// The secret that a node without a store was given.
pub(super) fn read_secret(file: &Path) -> Result<MeshSecret, Refused> {
    let read = read_kept(&Kept::MESH_SECRET, file);
    let text = read.map_err(|refusal| Refused::of(exit::STORE_REFUSED, &refusal))?;
    Ok(MeshSecret::of(&text))
}

/// Where this node listens for others.
pub(super) async fn bind_mesh(tls: Option<&Arc<MeshTls>>, listen: SocketAddr) -> Result<MeshListener, Refused> {
    let bound = MeshListener::bind_for(tls, listen).await;
    bound.map_err(|error| Refused::of(exit::LISTEN_REFUSED, &error.refusal()))
}

/// Serves a store to other nodes until a signal comes.
pub(super) async fn serve_store(
    connections: &Connections,
    (store, cell): (SharedStore, u128),
    (listener, lease): (MeshListener, Span),
    signals: &mut Signals,
) -> Result<(), Refused> {
    let service: Arc<dyn Service> = Arc::new(StoreService::new(store.clone(), cell));
    let boot = draw_u64(&*connections.chance);
    let beside = BoardService::beside(boot, lease, connections.clock.clone(), Some(store.clone()));
    let board: Arc<dyn Service> = Arc::new(beside);
    let services = BTreeMap::from([(STORE, service), (BOARD, board)]);
    let parts = connections.parts(Some(cell), Roles::STORE, services);
    let parts = Arc::new(MeshParts {
        versions: Versions::default().at_least(move || store.level().0),
        ..parts
    });
    let (tell_stop, stop) = watch::channel(false);
    say(&format!(
        "fencepost {} store for other nodes on {}",
        env!("CARGO_PKG_VERSION"),
        listener.address()
    ));
    rt::spawn(listener.serve(parts, stop));
    let manager = Manager::of_environment();
    if let Some(manager) = &manager {
        // The store ends the process itself when it is broken; a runtime that hangs feeds nobody.
        manager.feed(connections.clock.clone(), || true);
        manager.ready();
    }
    signals.next().await;
    if let Some(manager) = &manager {
        manager.stopping();
    }
    // What a node sent is durable or not, and it will ask: there is nothing to drain.
    let _ = tell_stop.send(true);
    tracing::info!("stopped");
    Ok(())
}

/// What another node has: the store, the number for a new cell, and the board.
pub(super) struct Reached {
    pub(super) store: SharedStore,
    pub(super) cell: u128,
    pub(super) neighbours: Neighbours,
    /// Requests of other nodes are taken until this is dropped.
    pub(super) listening: watch::Sender<bool>,
}

/// The store on another node, once it answers; `None` if a signal came first.
pub(super) async fn reach_store(
    connections: &Connections,
    (address, (listener, advertise), is_worker): (&str, (MeshListener, Option<String>), bool),
    signals: &mut Signals,
) -> Result<Option<Reached>, Refused> {
    let services = NodeServices::default();
    let roles = if is_worker { WITHOUT_STORE } else { WITHOUT_WORK };
    let parts = Arc::new(connections.parts(None, roles, services.all()));
    let peer = dial_for(parts.clone(), address.to_owned(), Roles::STORE);
    let store = RemoteStore::new(Arc::new(MeshStoreLink(peer.clone())));
    let told = advertise.unwrap_or_else(|| listener.address().to_string());
    tracing::info!(address = %listener.address(), told, "listens for other nodes");
    let mut is_told = false;
    let _waiting = waits_for(&connections.clock, || format!("waiting for the store at {address}"));
    loop {
        let asked = match select(Box::pin(store.ask_facts()), Box::pin(signals.next())).await {
            Either::Left((asked, _)) => asked,
            Either::Right(((), _)) => return Ok(None),
        };
        match asked {
            Ok(cell) => {
                let neighbours = Neighbours {
                    boot: parts.facts.boot,
                    address: told.into(),
                    board: board_over(peer),
                    router: Arc::new(Router::new(parts.clone())),
                    services,
                };
                let (listening, stop) = watch::channel(false);
                rt::spawn(listener.serve(parts, stop));
                return Ok(Some(Reached {
                    store: Arc::new(store),
                    cell,
                    neighbours,
                    listening,
                }));
            }
            Err(error) => {
                if !std::mem::replace(&mut is_told, true) {
                    say(&format!("waiting for the store at {address}: {error}"));
                }
                connections.clock.sleep(ASK_PAUSE).await;
            }
        }
    }
}

/// Runs a node that only works, until a signal comes.
pub(super) async fn serve_worker(
    connections: &Connections,
    address: &str,
    (config, runner): (NodeConfig, TargetRunner),
    signals: &mut Signals,
) -> Result<(), Refused> {
    let services = NodeServices::default();
    let parts = Arc::new(connections.parts(None, Roles::WORKER, services.of_worker()));
    let neighbours = Neighbours {
        boot: parts.facts.boot,
        address: "".into(),
        board: board_over(dial_for(parts.clone(), address.to_owned(), Roles::STORE)),
        router: Arc::new(Router::new(parts)),
        services,
    };
    let lanes = threads::make_lanes(1);
    let lane = lanes.into_iter().next();
    let lane = lane.ok_or_else(|| Refused::of(exit::STORE_REFUSED, &lane_gone().refusal()))?;
    let node = config.name.clone();
    let working = OnlyWorkerParts {
        clock: connections.clock.clone(),
        chance: connections.chance.clone(),
        runner,
        lane,
        fatal: Arc::new(|why: Ending| node_ends(&why)),
    };
    say(&format!("waiting for the cell whose store is at {address}"));
    let waiting = waits_for(&connections.clock, || {
        format!("waiting for the cell whose store is at {address}")
    });
    let joining = Box::pin(join_as_worker(config, working, neighbours));
    let worker = match select(joining, Box::pin(signals.next())).await {
        Either::Left((joined, _)) => joined.map_err(|error| Refused::of(exit::STORE_REFUSED, &error.refusal()))?,
        Either::Right(((), _)) => return Ok(()),
    };
    drop(waiting);
    say(&format!(
        "fencepost {} worker {node} for the cell whose store is at {address}",
        env!("CARGO_PKG_VERSION")
    ));
    let manager = Manager::of_environment();
    if let Some(manager) = &manager {
        manager.ready();
        manager.feed(connections.clock.clone(), worker.is_alive());
    }
    signals.next().await;
    if let Some(manager) = &manager {
        manager.stopping();
    }
    tracing::info!("draining");
    if let Either::Right(_) = select(Box::pin(worker.drain()), Box::pin(signals.next())).await {
        exit::end_now(exit::SECOND_SIGNAL, "told to stop a second time");
    }
    tracing::info!("stopped");
    Ok(())
}
