//! The machines of a scenario by their role: each can die, start, freeze, be cut off and have its clock set.
//!
//! Owns: which machines a role has, and that one fault at a time befalls each. Must never: draw. Next:
//! `director.rs`, `server.rs`, `second.rs`, `far_worker.rs`, `remote.rs`, `store_node.rs`.

use super::World;
use super::far_worker::FarWorker;
use super::faults::Beside;
use super::remote::Remote;
use super::second::Second;
use super::server::Server;
use crate::runtime::SimNode;
use fencepost_storage::model::Crash;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// A machine.
#[derive(Clone)]
pub struct Machine {
    what: What,
    /// Held while something befalls it.
    pub busy: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Clone)]
enum What {
    Server(Box<Server>),
    Owner(Box<Second>),
    Worker(Box<FarWorker>),
    Remote(Box<Remote>),
    Store(Box<Server>),
    Target(SimNode),
}

/// All of a world.
#[derive(Clone)]
pub struct Machines(Arc<Vec<(&'static str, Machine)>>);

impl Machines {
    /// Those of this world.
    pub fn of(world: &World, server: &Server, beside: &Beside) -> Machines {
        let mut all = vec![("scheduler", What::Server(server.clone().into()))];
        all.extend(
            beside
                .owners
                .iter()
                .map(|owner| ("scheduler", What::Owner(owner.clone().into()))),
        );
        all.extend(
            beside
                .workers
                .iter()
                .map(|worker| ("worker", What::Worker(worker.clone().into()))),
        );
        let remotes = beside.remotes.iter();
        all.extend(remotes.map(|remote| ("remote", What::Remote(remote.clone().into()))));
        if server.apart.is_some() {
            all.push(("store", What::Store(server.clone().into())));
        }
        all.extend(world.sim.node("target").map(|target| ("target", What::Target(target))));
        let held = all.into_iter().map(|(role, what)| {
            let busy = Arc::default();
            (role, Machine { what, busy })
        });
        Machines(Arc::new(held.collect()))
    }

    /// Those of a role.
    pub fn role(&self, role: &str) -> Vec<Machine> {
        let found = self.0.iter().filter(|(of, _)| *of == role);
        found.map(|(_, machine)| machine.clone()).collect()
    }

    /// The one at an address.
    pub fn at(&self, ip: Ipv4Addr) -> Option<Machine> {
        let mut found = self.0.iter().map(|(_, machine)| machine);
        found
            .find(|machine| machine.node().is_some_and(|node| node.ip() == ip))
            .cloned()
    }
}

impl Machine {
    /// Its machine in the simulation; none while the store has none.
    pub fn node(&self) -> Option<SimNode> {
        match &self.what {
            What::Server(server) => Some(server.node.clone()),
            What::Owner(owner) => Some(owner.node.clone()),
            What::Worker(worker) => Some(worker.node.clone()),
            What::Remote(remote) => Some(remote.node.clone()),
            What::Store(server) => server.apart.as_ref().map(|apart| apart.node.clone()),
            What::Target(node) => Some(node.clone()),
        }
    }

    /// Whether its process runs.
    pub fn is_up(&self) -> bool {
        match &self.what {
            What::Server(server) => server.is_up(),
            What::Owner(owner) => owner.is_up(),
            What::Worker(worker) => worker.is_up(),
            What::Remote(remote) => remote.is_up(),
            What::Store(server) => server.apart.as_ref().is_some_and(|apart| apart.is_up()),
            What::Target(_) => true,
        }
    }

    /// Ends its process. `how` says what the disk of the store keeps.
    pub fn down(&self, how: Crash) {
        match &self.what {
            What::Server(server) => server.down(how),
            What::Owner(owner) => owner.down(),
            What::Worker(worker) => worker.down(),
            What::Remote(remote) => remote.down(),
            What::Store(server) => server.store_down(how),
            What::Target(_) => {}
        }
    }

    /// Starts its process.
    pub fn up(&self) {
        match &self.what {
            What::Server(server) => server.up(),
            What::Owner(owner) => owner.up(),
            What::Worker(worker) => worker.up(),
            What::Remote(remote) => remote.up(),
            What::Store(server) => server.store_up(),
            What::Target(_) => {}
        }
    }

    /// Whether nothing can be asked of the cell while it is frozen or cut off: what excuses a late fire.
    pub fn excuses(&self) -> bool {
        match self.what {
            What::Server(_) | What::Owner(_) | What::Store(_) => true,
            What::Worker(_) | What::Remote(_) | What::Target(_) => false,
        }
    }

    /// Whether its clock is the one that store time follows.
    pub fn has_the_clock(&self) -> bool {
        match &self.what {
            What::Server(server) => server.apart.is_none(),
            What::Store(_) => true,
            What::Owner(_) | What::Worker(_) | What::Remote(_) | What::Target(_) => false,
        }
    }
}
