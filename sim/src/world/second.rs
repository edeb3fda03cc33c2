//! A second node that owns shards and runs jobs beside the server: the same process without an API.
//!
//! Owns: its lives. Must never: do anything that production's node without a store does not. Next: `server.rs`,
//! `store_node.rs`.

use super::server::Server;
use super::{SECOND_IP, World, store_node};
use crate::runtime::SimNode;
use fencepost::node::join_node;
use fencepost_core::name::Name;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Its machine.
#[derive(Clone)]
pub struct Second {
    world: World,
    server: Server,
    /// Its machine.
    pub node: SimNode,
    /// Which life; even while it is down.
    life: Arc<AtomicU64>,
}

impl Second {
    /// A machine, not started; only where the seed asks for one.
    pub fn new(world: &World, server: &Server) -> Option<Second> {
        world.options.second.then(|| Second {
            world: world.clone(),
            server: server.clone(),
            node: world.sim.new_node("second", SECOND_IP),
            life: Arc::default(),
        })
    }

    /// Which life it is in.
    pub fn life(&self) -> u64 {
        self.life.load(Ordering::SeqCst)
    }

    fn is_up(&self) -> bool {
        self.life.load(Ordering::SeqCst) % 2 == 1
    }

    /// Ends its process.
    pub fn down(&self) {
        if self.is_up() {
            self.life.fetch_add(1, Ordering::SeqCst);
            self.world.history.disturb("second-down", self.world.sim.now());
            self.node.kill();
            self.world.feel("seen:second-killed");
        }
    }

    /// Starts its process.
    pub fn up(&self) {
        if self.is_up() {
            return;
        }
        let life = self.life.fetch_add(1, Ordering::SeqCst) + 1;
        self.node.restart();
        let second = self.clone();
        self.node.run(move || second.run(life));
    }

    async fn run(self, life: u64) {
        let at = ("second", SECOND_IP, life);
        let (store, neighbours) = store_node::reach(&self.world, self.node.clock(), at).await;
        let mut config = self.server.config();
        config.name = Name::new("second").expect("a legal name");
        let dying = self.clone();
        let parts = self.server.parts(store, ("second", life), &self.node);
        let parts = fencepost::node::NodeParts {
            fatal: Arc::new(move |why| dying.end(life, &why.to_string())),
            ..parts
        };
        match join_node(config, parts, neighbours).await {
            Ok(node) => {
                node.ready().await;
                self.world.history.calm("second-down", self.world.sim.now());
                std::future::pending::<()>().await;
            }
            Err(error) => self.end(life, &error.to_string()),
        }
    }

    /// It ends itself, and is started again.
    fn end(&self, life: u64, why: &str) {
        self.world.sim.record("second", "ends", why);
        if self.life.load(Ordering::SeqCst) != life {
            return;
        }
        self.down();
        let second = self.clone();
        self.world.sim.spawn(async move {
            second.world.sim.sleep(1_000_000).await;
            second.up();
        });
    }
}
