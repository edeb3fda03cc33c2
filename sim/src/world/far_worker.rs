//! Nodes that only work, on machines of their own: they run jobs of every shard and own none.
//!
//! Owns: their lives. No fire depends on it, so nothing that befalls it excuses one. Must never: do anything that
//! production's worker-only process does not. Next: `second.rs`, `store_node.rs`.

use super::life::Life;
use super::server::targets;
use super::{World, store_node};
use crate::own;
use crate::runtime::{SharedStream, SimNode, Stream};
use fencepost::node::NodeConfig;
use fencepost::node::lanes::local_lane;
use fencepost::node::only_worker::{OnlyWorkerParts, join_as_worker};
use fencepost::targets::TargetRunner;
use fencepost_core::name::Name;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// What their names begin with, as attempts name them.
pub const NAME: &str = "worker";

/// Its machine.
#[derive(Clone)]
pub struct FarWorker {
    world: World,
    /// Its machine.
    pub node: SimNode,
    /// Which life; even while it is down.
    life: Life,
}

impl FarWorker {
    /// Machines, not started: as many as the run asks for.
    pub fn all(world: &World) -> Vec<FarWorker> {
        let machine = |number: u64| {
            let (name, last) = match number {
                0 => (NAME.to_owned(), 4),
                more => (
                    format!("{NAME}-{}", more + 1),
                    u8::try_from(40 + more).unwrap_or(u8::MAX),
                ),
            };
            FarWorker {
                world: world.clone(),
                node: world.sim.new_node(&name, Ipv4Addr::new(10, 0, 0, last)),
                life: Life::default(),
            }
        };
        (0..world.options.far_workers).map(machine).collect()
    }

    /// Whether its process runs.
    pub fn is_up(&self) -> bool {
        self.life.is_on()
    }

    /// Ends its process.
    pub fn down(&self) {
        if self.life.end() {
            self.node.kill();
        }
    }

    /// Starts its process.
    pub fn up(&self) {
        let Some(life) = self.life.begin() else { return };
        self.node.restart();
        let worker = self.clone();
        self.node.run(move || worker.run(life));
    }

    async fn run(self, life: u64) {
        let name = self.node.name().to_owned();
        let neighbours = store_node::look_on(&self.world, self.node.clock(), (&name, life));
        let options = &self.world.options;
        let mut config = NodeConfig::new(Name::new(&name).expect("a legal name"));
        config.slots = options.slots;
        config.lease = options.lease;
        config.heartbeat = options.heartbeat;
        let stream = Stream::new(options.seed, &format!("chance of {name} {life}"));
        let dying = self.clone();
        let parts = OnlyWorkerParts {
            clock: self.node.clock(),
            chance: Arc::new(SharedStream::new(stream)),
            runner: TargetRunner::new(targets(), own::handlers(&self.world)),
            lane: local_lane(),
            fatal: Arc::new(move |why| dying.end(life, &why.to_string())),
        };
        match join_as_worker(config, parts, neighbours).await {
            Ok(working) => {
                self.world.sim.record(&name, "works", "");
                std::future::pending::<()>().await;
                drop(working);
            }
            Err(error) => self.end(life, &error.to_string()),
        }
    }

    /// It ends itself, and is started again.
    fn end(&self, life: u64, why: &str) {
        self.world.sim.record(self.node.name(), "ends", why);
        if self.life.number() != life {
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
