//! Further nodes that own shards and run jobs beside the server: the same process without an API.
//!
//! Owns: their lives. Must never: do anything that production's node without a store does not. Next: `server.rs`,
//! `store_node.rs`.

use super::life::Life;
use super::server::Server;
use super::{World, store_node};
use crate::runtime::SimNode;
use fencepost::node::join_node;
use fencepost_core::name::Name;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

/// Its machine.
#[derive(Clone)]
pub struct Second {
    world: World,
    server: Server,
    /// Its machine.
    pub node: SimNode,
    /// Which life; even while it is down.
    life: Life,
    /// Disturbances that its next readiness ends.
    absent: Arc<Mutex<Vec<usize>>>,
}

/// Names of those that a cell may have beside the server, with their addresses.
const NAMES: [(&str, Ipv4Addr); 2] = [
    ("second", Ipv4Addr::new(10, 0, 0, 3)),
    ("third", Ipv4Addr::new(10, 0, 0, 5)),
];

impl Second {
    /// Machines, not started: as many as the run asks for.
    pub fn all(world: &World, server: &Server) -> Vec<Second> {
        let count = usize::try_from(world.options.others).unwrap_or(usize::MAX);
        let named = NAMES.iter().take(count);
        named
            .map(|(name, ip)| Second {
                world: world.clone(),
                server: server.clone(),
                node: world.sim.new_node(name, *ip),
                life: Life::default(),
                absent: Arc::default(),
            })
            .collect()
    }

    /// Which life it is in.
    pub fn life(&self) -> u64 {
        self.life.number()
    }

    /// Whether its process runs.
    pub fn is_up(&self) -> bool {
        self.life.is_on()
    }

    /// Ends its process.
    pub fn down(&self) {
        if self.life.end() {
            let absence = self.world.history.disturb("second-down", self.world.sim.now());
            self.absent.lock().unwrap_or_else(PoisonError::into_inner).push(absence);
            self.node.kill();
            self.world.feel("seen:second-killed");
        }
    }

    /// Starts its process.
    pub fn up(&self) {
        let Some(life) = self.life.begin() else { return };
        self.node.restart();
        let second = self.clone();
        self.node.run(move || second.run(life));
    }

    async fn run(self, life: u64) {
        let name = self.node.name().to_owned();
        let at = (name.as_str(), self.node.ip(), life);
        let (store, neighbours) = store_node::reach(&self.world, self.node.clock(), at).await;
        let mut config = self.server.config();
        config.name = Name::new(&name).expect("a legal name");
        let dying = self.clone();
        let parts = self.server.parts(store, (&name, life), &self.node);
        let parts = fencepost::node::NodeParts {
            fatal: Arc::new(move |why| dying.end(life, &why.to_string())),
            ..parts
        };
        match join_node(config, parts, neighbours).await {
            Ok(node) => {
                node.ready().await;
                self.is_back();
                std::future::pending::<()>().await;
            }
            Err(error) => self.end(life, &error.to_string()),
        }
    }

    fn is_back(&self) {
        let absences = std::mem::take(&mut *self.absent.lock().unwrap_or_else(PoisonError::into_inner));
        for absence in absences {
            self.world.history.calm_one(absence, self.world.sim.now());
        }
    }

    /// It ends itself, and is started again.
    fn end(&self, life: u64, why: &str) {
        self.world.sim.record(self.node.name(), "ends", why);
        if self.life.number() != life {
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
