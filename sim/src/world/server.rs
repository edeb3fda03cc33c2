//! The node: the product's own `run_node` and API, in a process that can die and start again.
//!
//! Owns: one life after another over one store. Must never: do anything that production's `serve`
//! does not. Next: `store.rs`, `faults.rs`.

use super::life::Life;
use super::store::WatchedStore;
use super::store_node::{self, StoreNode};
use super::{API_PORT, API_TOKEN, SERVER_IP, World};
use crate::own;
use crate::runtime::{SharedStream, SimNode, Stream};
use fencepost::api::server::{ApiConfig, ApiServer, HttpLimits};
use fencepost::api::token::TokenDigest;
use fencepost::desk::GrantKey;
use fencepost::net::rt::spawn_local;
use fencepost::node::lanes::local_lane;
use fencepost::node::notes::Notes;
use fencepost::node::{Node, NodeConfig, NodeParts, join_node, run_node};
use fencepost::targets::{TargetRunner, TargetsConfig};
use fencepost_core::ids::JobId;
use fencepost_core::job::{Job, JobState};
use fencepost_core::name::Name;
use fencepost_core::scheduler_shard::io::FireNote;
use fencepost_history::seen::Moment;
use fencepost_storage::model::Crash;
use fencepost_storage::store::Store;
use std::sync::Arc;
use std::time::Duration;

/// Said in place of a life: the store on its own machine has broken.
pub const STORE_SICK: u64 = u64::MAX;

/// The node and its store.
#[derive(Clone)]
pub struct Server {
    world: World,
    /// Its machine.
    pub node: SimNode,
    /// Its store.
    pub store: WatchedStore,
    /// The store's own machine, where it has one.
    pub apart: Option<StoreNode>,
    /// Which life; even while it is down.
    life: Life,
    tell_ended: tokio::sync::mpsc::UnboundedSender<u64>,
}

impl Server {
    /// A machine with an empty store, not started. The receiver hears of lives that ended
    /// themselves: the store broke, or the start was refused.
    pub fn new(world: &World) -> (Server, tokio::sync::mpsc::UnboundedReceiver<u64>) {
        let node = world.sim.new_node("server", SERVER_IP);
        let (tell_ended, ended) = tokio::sync::mpsc::unbounded_channel();
        let apart = world.options.apart.then(|| StoreNode::new(world));
        let clock = apart.as_ref().map_or(&node, |apart| &apart.node).clock();
        let (is_apart, tell_sick) = (apart.is_some(), tell_ended.clone());
        let on_sick = move || {
            if is_apart {
                let _ = tell_sick.send(STORE_SICK);
            }
        };
        let store = WatchedStore::new(world, clock, Box::new(on_sick));
        let server = Server {
            world: world.clone(),
            node,
            store,
            apart,
            life: Life::default(),
            tell_ended,
        };
        (server, ended)
    }

    /// The current life; odd while its process runs.
    pub fn life(&self) -> u64 {
        self.life.number()
    }

    /// Whether its process runs.
    pub fn is_up(&self) -> bool {
        self.life.is_on()
    }

    /// Ends its process. What the disk keeps is `how`'s.
    pub fn down(&self, how: Crash) {
        if !self.life.end() {
            return;
        }
        self.world.history.disturb("down", self.world.sim.now());
        self.node.kill();
        match self.apart {
            None => self.store.crash(how),
            Some(_) => self.world.sim.record("server", "crash", "the store goes on"),
        }
    }

    /// Ends the process of the store's own machine.
    pub fn store_down(&self, how: Crash) {
        if let Some(apart) = &self.apart {
            apart.down(&self.store, how);
        }
    }

    /// Starts it.
    pub fn store_up(&self) {
        if let Some(apart) = &self.apart {
            apart.up(&self.store);
        }
    }

    /// Starts its process.
    pub fn up(&self) {
        let Some(life) = self.life.begin() else { return };
        self.node.restart();
        let server = self.clone();
        self.node.run(move || server.run(life));
    }

    async fn run(self, life: u64) {
        let started = match &self.apart {
            None => {
                let parts = self.parts(Arc::new(self.store.clone()), ("life", life), &self.node);
                run_node(self.config(), parts).await
            }
            Some(_) => {
                let at = ("server", SERVER_IP, life);
                let (store, neighbours) = store_node::reach(&self.world, self.node.clock(), at).await;
                join_node(self.config(), self.parts(store, ("life", life), &self.node), neighbours).await
            }
        };
        let node = match started {
            Ok(node) => node,
            // The process ends; whoever minds it starts it again.
            Err(error) => {
                self.world.sim.record("server", "start refused", &error.to_string());
                let _ = self.tell_ended.send(life);
                return;
            }
        };
        let (_stop, stopped) = tokio::sync::watch::channel(false);
        match ApiServer::bind(api_config(), node.gateway.clone()).await {
            Ok(api) => spawn_local(api.serve(stopped, Duration::from_secs(1))),
            Err(refusal) => self.world.sim.record("server", "no listener", refusal.code),
        }
        self.go_on(&node).await;
    }

    async fn go_on(&self, node: &Node) {
        node.ready().await;
        self.world.sim.record("server", "ready", "");
        self.world.history.calm("down", self.world.sim.now());
        std::future::pending::<()>().await;
    }

    pub(super) fn config(&self) -> NodeConfig {
        let options = &self.world.options;
        let mut config = NodeConfig::new(Name::new("server").expect("a legal name"));
        config.shards = options.shards;
        config.slots = if options.owners_work { options.slots } else { 0 };
        config.lease = options.lease;
        config.heartbeat = options.heartbeat;
        config.clock_offset_max = options.clock_bound();
        config.grant_key = Some(GrantKey::of("server"));
        config
    }

    pub(super) fn parts(&self, store: Arc<dyn Store>, (what, life): (&str, u64), node: &SimNode) -> NodeParts {
        let stream = Stream::new(self.world.options.seed, &format!("chance of {what} {life}"));
        let (dying, sim_node) = (self.tell_ended.clone(), node.clone());
        NodeParts {
            store,
            cell: 1,
            clock: node.clock(),
            chance: Arc::new(SharedStream::new(stream)),
            runner: TargetRunner::new(targets(), own::handlers(&self.world)),
            lanes: vec![local_lane()],
            notes: vec![Arc::new(Told(self.world.clone()))],
            fatal: Arc::new(move |_why| {
                sim_node.kill();
                let _ = dying.send(life);
            }),
        }
    }
}

pub(super) fn targets() -> TargetsConfig {
    TargetsConfig::default().allowing(["10.0.1.0/24".parse().expect("a range")])
}

fn api_config() -> ApiConfig {
    ApiConfig {
        listen: (SERVER_IP, API_PORT).into(),
        host_names: vec![SERVER_IP.to_string()],
        token: TokenDigest::of(API_TOKEN),
        targets: targets(),
        limits: HttpLimits::default(),
        metrics: None,
    }
}

/// News, kept for the checkers.
struct Told(World);

impl Told {
    fn keep(&self, job: &Job, what: &str) {
        let text = format!("{} v{} {:?} {what}", job.id, job.version, job.state);
        self.0.sim.record("server", "job", &text);
        self.0.history.lock().moves.push(job.clone());
    }
}

impl Notes for Told {
    fn job_changed(&self, job: &Job) {
        self.keep(job, "changed");
    }

    fn attempt_ended(&self, job: &Job) {
        self.keep(job, "attempt ended");
        if let Some(last) = job.attempts.last() {
            self.0.history.lock().over.push(Moment {
                at: self.0.sim.now(),
                job: job.id.to_string(),
                token: last.token.to_string(),
            });
        }
    }

    fn job_purged(&self, id: JobId, state: JobState) {
        self.0.sim.record("server", "purged", &format!("{id} {state:?}"));
    }

    fn fired(&self, note: &FireNote) {
        let text = format!("{} {:?} {} {:?}", note.name.1, note.kind, note.nominal.0, note.job);
        self.0.sim.record("server", "fired", &text);
    }
}
