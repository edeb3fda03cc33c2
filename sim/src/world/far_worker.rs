//! A node that only works, on a machine of its own: it runs jobs of every shard and owns none.
//!
//! Owns: its lives. No fire depends on it, so nothing that befalls it excuses one. Must never: do anything that
//! production's worker-only process does not. Next: `second.rs`, `store_node.rs`.

use super::server::targets;
use super::{WORKER_IP, World, store_node};
use crate::runtime::{SharedStream, SimNode, Stream};
use fencepost::node::NodeConfig;
use fencepost::node::lanes::local_lane;
use fencepost::node::only_worker::{OnlyWorkerParts, join_as_worker};
use fencepost::targets::{HandlerRegistry, TargetRunner};
use fencepost_core::name::Name;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Its name, as attempts name it.
pub const NAME: &str = "worker";

/// Its machine.
#[derive(Clone)]
pub struct FarWorker {
    world: World,
    /// Its machine.
    pub node: SimNode,
    /// Which life; even while it is down.
    life: Arc<AtomicU64>,
}

impl FarWorker {
    /// A machine, not started; only where the seed asks for one.
    pub fn new(world: &World) -> Option<FarWorker> {
        world.options.worker.map(|_| FarWorker {
            world: world.clone(),
            node: world.sim.new_node(NAME, WORKER_IP),
            life: Arc::default(),
        })
    }

    fn is_up(&self) -> bool {
        self.life.load(Ordering::SeqCst) % 2 == 1
    }

    /// Ends its process.
    pub fn down(&self) {
        if self.is_up() {
            self.life.fetch_add(1, Ordering::SeqCst);
            self.node.kill();
        }
    }

    /// Starts its process.
    pub fn up(&self) {
        if self.is_up() {
            return;
        }
        let life = self.life.fetch_add(1, Ordering::SeqCst) + 1;
        self.node.restart();
        let worker = self.clone();
        self.node.run(move || worker.run(life));
    }

    async fn run(self, life: u64) {
        let neighbours = store_node::look_on(&self.world, self.node.clock(), (NAME, life));
        let options = &self.world.options;
        let mut config = NodeConfig::new(Name::new(NAME).expect("a legal name"));
        config.slots = options.slots;
        config.lease = options.lease;
        config.heartbeat = options.heartbeat;
        let stream = Stream::new(options.seed, &format!("chance of {NAME} {life}"));
        let dying = self.clone();
        let parts = OnlyWorkerParts {
            clock: self.node.clock(),
            chance: Arc::new(SharedStream::new(stream)),
            runner: TargetRunner::new(targets(), HandlerRegistry::default()),
            lane: local_lane(),
            fatal: Arc::new(move |why| dying.end(life, &why.to_string())),
        };
        match join_as_worker(config, parts, neighbours).await {
            Ok(working) => {
                self.world.sim.record(NAME, "works", "");
                std::future::pending::<()>().await;
                drop(working);
            }
            Err(error) => self.end(life, &error.to_string()),
        }
    }

    /// It ends itself, and is started again.
    fn end(&self, life: u64, why: &str) {
        self.world.sim.record(NAME, "ends", why);
        if self.life.load(Ordering::SeqCst) != life {
            return;
        }
        self.down();
        let worker = self.clone();
        self.world.sim.spawn(async move {
            worker.world.sim.sleep(1_000_000).await;
            worker.up();
        });
    }
}
