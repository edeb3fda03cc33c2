//! Drain in a cell: nodes that own a part of the shards each and reach one store over loopback TCP.
//!
//! Owns: the store's side, the nodes and the turns. All live in this process, each with threads of its own, and no
//! certificate: what the machine allows to a cell, on processors that all of it shares. Next: `drain.rs` for one node
//! with the store in its own process, `../process/roles.rs` for the real start.

use crate::bench::BenchOptions;
use crate::bench::create::create_items;
use crate::bench::drain::{PATIENCE, SLOTS, drain_fresh};
use crate::bench::figure::{Figure, Target, mean, per_second};
use crate::bench::rig::{Ended, item_of, noop_spec};
use crate::chance::{SharedChance, SystemChance, draw_holder, draw_u64};
use crate::clock::{SharedClock, SystemClock};
use crate::cluster::board::{BoardService, board_over};
use crate::cluster::route::Router;
use crate::cluster::services::NodeServices;
use crate::gateway::Gateway;
use crate::mesh::counts::MeshCounts;
use crate::mesh::dial::dial_for;
use crate::mesh::envelope::{BOARD, STORE, ServiceId};
use crate::mesh::listen::MeshListener;
use crate::mesh::store_link::{MeshStoreLink, StoreService};
use crate::mesh::{MeshParts, MeshSecret, NodeFacts, Roles, Service, Versions};
use crate::net::rt::{spawn, spawn_local};
use crate::node::lanes::Lane;
use crate::node::{Neighbours, Node, NodeConfig, NodeParts, join_node};
use crate::process::serve::StoreTicks;
use crate::process::{roles, threads};
use crate::shell::shard_actor::Ending;
use crate::targets::{HandlerRegistry, TargetRunner, TargetsConfig};
use fencepost_core::limits::{BATCH_JOBS_MAX, SHARD_LEASE_MS};
use fencepost_core::name::Name;
use fencepost_core::time::Span;
use fencepost_storage::fjall_store::{FjallStore, NewStore, Options};
use fencepost_storage::remote::RemoteStore;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use tokio::sync::{oneshot, watch};

/// Nodes of the cell.
const NODES: usize = 3;
/// How often it is looked whether shards are spread.
const LOOK: Span = Span::from_millis(20);

/// A node with its own store, a cell of one node and one of three, and the first again.
pub async fn run(options: &BenchOptions) -> Result<Vec<Figure>, String> {
    let before = drain_fresh(options, options.jobs).await?;
    let one = drain_over(options, 1).await?;
    let all = drain_over(options, NODES).await?;
    let single = mean(before, drain_fresh(options, options.jobs).await?);
    let figure = |name, rate| Figure::new("drain-cluster", name, rate, "jobs/s");
    Ok(vec![
        figure("rate", all),
        figure("one-node-remote", one),
        figure("one-node", single),
        Figure::new("drain-cluster", "ratio", all / single, "of one node").against(Target::AtLeast(0.5)),
    ])
}

/// Jobs per second in a cell of so many nodes: stored first, then every node's worker starts.
async fn drain_over(options: &BenchOptions, count: usize) -> Result<f64, String> {
    let cell = Cell::start(options).await?;
    let mut members = Vec::new();
    for number in 0..count {
        members.push(Member::start(&cell, number, options.lanes).await?);
    }
    until_spread(&cell, &members).await?;
    let spec = Arc::new(noop_spec(&name("default")?, name("noop")?));
    let mut left = options.jobs;
    for member in members.iter().cycle() {
        let some = left.min(BATCH_JOBS_MAX);
        let items = (0..some).map(|_| item_of(&*cell.chance, &spec, None)).collect();
        create_items(&member.node.gateway, items).await?;
        left -= some;
        if left == 0 {
            break;
        }
    }
    let began = cell.clock.mono();
    for member in &mut members {
        member
            .node
            .start_worker(SLOTS)
            .await
            .map_err(|error| error.to_string())?;
    }
    while cell.ended.count() < options.jobs {
        cell.clock.sleep(Span::from_millis(1)).await;
        if cell.clock.mono().since(began) > PATIENCE {
            return Err(format!(
                "only {} of {} jobs ended in time",
                cell.ended.count(),
                options.jobs
            ));
        }
    }
    let rate = per_second(options.jobs, cell.clock.mono().since(began).to_std());
    for member in members {
        member.node.drain().await;
    }
    cell.stop().await;
    Ok(rate)
}

fn name(text: &str) -> Result<Name, String> {
    Name::new(text).map_err(|error| error.to_string())
}

/// Waits until each node owns its part of the shards.
async fn until_spread(cell: &Cell, members: &[Member]) -> Result<(), String> {
    let began = cell.clock.mono();
    for member in members {
        member.node.ready().await;
    }
    loop {
        let owned = |member: &Member| {
            let gateway = &member.node.gateway;
            let map = gateway.shard_map();
            (
                map.shards().filter(|shard| gateway.is_here(*shard)).count(),
                usize::from(map.count()),
            )
        };
        let is_spread = |(owned, all): (usize, usize)| owned >= all / members.len();
        if members.iter().map(owned).all(is_spread) {
            return Ok(());
        }
        if cell.clock.mono().since(began) > PATIENCE {
            return Err("the shards were not spread over the nodes in time".to_owned());
        }
        cell.clock.sleep(LOOK).await;
    }
}

/// What the nodes of a cell share, and its store.
struct Cell {
    clock: SharedClock,
    chance: SharedChance,
    secret: MeshSecret,
    ended: Arc<Ended>,
    /// Where the store is served.
    at: SocketAddr,
    folder: PathBuf,
    /// It is served until this is dropped.
    serving: watch::Sender<bool>,
    store: std::sync::Weak<FjallStore>,
}

impl Cell {
    /// A new store, served by a thread of its own.
    async fn start(options: &BenchOptions) -> Result<Cell, String> {
        let chance: SharedChance = Arc::new(SystemChance);
        let clock: SharedClock = Arc::new(SystemClock::with_fine_timer());
        let folder = options.folder.join(format!("bench-{:016x}", draw_u64(&*chance)));
        let fresh = NewStore {
            store: draw_holder(&*chance).0,
            cell: draw_holder(&*chance).0,
        };
        let ticks = Arc::new(StoreTicks(clock.clone()));
        let store = FjallStore::start(&folder, Options::new(fresh, ticks)).map_err(|error| error.to_string())?;
        let (store, secret) = (Arc::new(store), roles::no_secret(&*chance));
        let held = Arc::downgrade(&store);
        let cell = store.identity().cell;
        let board = BoardService::new(draw_u64(&*chance), Span::from_millis(SHARD_LEASE_MS), clock.clone());
        let service: Arc<dyn Service> = Arc::new(StoreService::new(store, cell));
        let services = BTreeMap::from([(STORE, service), (BOARD, Arc::new(board) as Arc<dyn Service>)]);
        let parts = parts_of(
            (name("store")?, Roles::STORE),
            (&clock, &chance, &secret),
            Some(cell),
            services,
        );
        let (serving, stop) = watch::channel(false);
        let lane = threads::make_lanes(1).pop().ok_or("no lane")?;
        let at = listen(&lane, parts, stop).await?;
        Ok(Cell {
            clock,
            chance,
            secret,
            ended: Arc::default(),
            at,
            folder,
            serving,
            store: held,
        })
    }

    async fn stop(self) {
        drop(self.serving);
        // Connections let go of it one by one.
        for _ in 0..500 {
            if self.store.strong_count() == 0 {
                break;
            }
            self.clock.sleep(Span::from_millis(10)).await;
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn parts_of(
    (node, roles): (Name, Roles),
    (clock, chance, secret): (&SharedClock, &SharedChance, &MeshSecret),
    cell: Option<u128>,
    services: BTreeMap<ServiceId, Arc<dyn Service>>,
) -> Arc<MeshParts> {
    Arc::new(MeshParts {
        cell: cell.map_or_else(OnceLock::new, OnceLock::from),
        secret: secret.clone(),
        tls: None,
        lone: Roles::default(),
        facts: NodeFacts {
            node,
            boot: draw_u64(&**chance),
            roles,
        },
        clock: clock.clone(),
        chance: chance.clone(),
        versions: Versions::default(),
        services,
        counts: MeshCounts::default(),
    })
}

/// Serves on a thread of its own until it is told to stop; where.
async fn listen(lane: &Lane, parts: Arc<MeshParts>, stop: watch::Receiver<bool>) -> Result<SocketAddr, String> {
    let bound = on(lane, move || async move {
        let listener = MeshListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await;
        listener.map_err(|error| error.to_string()).map(|listener| {
            let address = listener.address();
            spawn(listener.serve(parts, stop));
            address
        })
    });
    bound.await?
}

/// Runs something on a thread and waits for what it gives.
async fn on<T: Send + 'static, F: Future<Output = T> + 'static>(
    lane: &Lane,
    work: impl FnOnce() -> F + Send + 'static,
) -> Result<T, String> {
    let (tell, told) = oneshot::channel();
    lane(Box::new(move || {
        spawn_local(async move {
            let _ = tell.send(work().await);
        });
    }));
    told.await.map_err(|_| "a thread ended".to_owned())
}

/// A node, and the thread of its connections.
struct Member {
    node: Node,
    _listening: watch::Sender<bool>,
}

impl Member {
    /// Without a worker yet.
    async fn start(cell: &Cell, number: usize, shard_lanes: usize) -> Result<Member, String> {
        let node_name = name(&format!("bench-{number}"))?;
        let all = Roles::SCHEDULER
            .with(Roles::GATEWAY)
            .with(Roles::COORDINATOR)
            .with(Roles::WORKER);
        let services = NodeServices::default();
        let parts = parts_of(
            (node_name.clone(), all),
            (&cell.clock, &cell.chance, &cell.secret),
            None,
            services.all(),
        );
        let lane = threads::make_lanes(1).pop().ok_or("no lane")?;
        let (listening, stop) = watch::channel(false);
        let address = listen(&lane, parts.clone(), stop).await?;
        let (dialing, store_at) = (parts.clone(), cell.at.to_string());
        let peer = on(&lane, move || async move { dial_for(dialing, store_at, Roles::STORE) }).await?;
        let store = RemoteStore::new(Arc::new(MeshStoreLink(peer.clone())));
        let facts = loop {
            match store.ask_facts().await {
                Ok(facts) => break facts,
                Err(_) => cell.clock.sleep(LOOK).await,
            }
        };
        let neighbours = Neighbours {
            boot: parts.facts.boot,
            address: address.to_string().into(),
            board: board_over(peer),
            router: Arc::new(Router::new(parts)),
            services,
        };
        let node_parts = NodeParts {
            cell: facts,
            store: Arc::new(store),
            clock: cell.clock.clone(),
            chance: cell.chance.clone(),
            runner: TargetRunner::new(TargetsConfig::for_dev(), HandlerRegistry::default()),
            lanes: threads::node_lanes(shard_lanes),
            notes: vec![cell.ended.clone()],
            fatal: Arc::new(|why: Ending| crate::process::say::say(&why.to_string())),
        };
        let mut config = NodeConfig::new(node_name);
        config.slots = 0;
        let node = join_node(config, node_parts, neighbours).await;
        Ok(Member {
            node: node.map_err(|error| error.to_string())?,
            _listening: listening,
        })
    }
}
