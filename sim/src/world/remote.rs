//! Workers over HTTP on machines of their own: as a worker in another language, they know nothing but the API.
//!
//! Owns: their lives. No fire depends on them, so nothing that befalls one excuses one. Must never: share code with the
//! product's own worker. Next: `remote_work.rs` (what a process does), `far_worker.rs` (the product's).

use super::World;
use super::life::Life;
use super::remote_work::Process;
use crate::runtime::SimNode;
use std::net::Ipv4Addr;

/// Where their addresses begin.
const FIRST: u64 = 60;

/// Its machine.
#[derive(Clone)]
pub struct Remote {
    world: World,
    /// Its machine.
    pub node: SimNode,
    /// Which life; even while it is down.
    life: Life,
}

impl Remote {
    /// Machines, not started: as many as the run asks for.
    pub fn all(world: &World) -> Vec<Remote> {
        let machine = |number: u64| {
            let last = u8::try_from(FIRST + number).unwrap_or(u8::MAX);
            let name = format!("remote-{}", number + 1);
            Remote {
                world: world.clone(),
                node: world.sim.new_node(&name, Ipv4Addr::new(10, 0, 0, last)),
                life: Life::default(),
            }
        };
        (0..world.options.remotes).map(machine).collect()
    }

    /// Whether its process runs.
    pub fn is_up(&self) -> bool {
        self.life.is_on()
    }

    /// Ends its process: what it had is not given back, and nobody hears of its end.
    pub fn down(&self) {
        if self.life.end() {
            self.node.kill();
        }
    }

    /// Starts its process, which has a name of its own.
    pub fn up(&self) {
        let Some(life) = self.life.begin() else { return };
        self.node.restart();
        let (world, node) = (self.world.clone(), self.node.clone());
        self.node.run(move || async move {
            world.sim.record(node.name(), "works", "");
            Process::new(&world, &node, life).live().await;
        });
    }
}
