//! The faults of a scenario: each entry of the file strikes by itself, as its plan says.
//!
//! Owns: that a fault counts only when it was felt, and that what was begun is ended. What felt means is said for each
//! kind in `scenarios/README.md`. Must never: strike after the active time, or draw what the plan has drawn. Next:
//! `machine.rs`, `weather.rs`, `links.rs`, `work.rs`, `../scenario/plan.rs`.

use super::World;
use super::faults::{calm_soon, power_loss};
use super::links::Way;
use super::machine::{Machine, Machines};
use super::server::Server;
use super::work::is_at_work;
use crate::runtime::{SimNode, Stream};
use crate::scenario::keys::LINKS;
use crate::scenario::plan::{Fault, Plan, Stroke};
use fencepost_storage::model::Crash;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often machines that a job has killed are looked for, in microseconds.
const LOOKS: u64 = 200_000;

/// What strikes.
#[derive(Clone)]
struct Director {
    world: World,
    server: Server,
    machines: Machines,
}

/// Lets every fault strike until the active time is over and the last has ended.
pub async fn direct(world: &World, server: &Server, machines: Machines, plan: &Plan) {
    let director = Director {
        world: world.clone(),
        server: server.clone(),
        machines,
    };
    let running = Arc::new(AtomicU64::new(plan.faults.len() as u64));
    for fault in plan.faults.clone() {
        let (director, running) = (director.clone(), running.clone());
        world.sim.spawn(async move {
            director.strike(&fault).await;
            running.fetch_sub(1, Ordering::SeqCst);
        });
    }
    let minding = director.clone();
    world.sim.spawn(async move { minding.mind_struck().await });
    while world.sim.now() < world.options.active.0 || running.load(Ordering::SeqCst) > 0 {
        world.sim.sleep(100_000).await;
    }
}

fn way(node: &SimNode, peers: &[SimNode]) -> Way {
    Way {
        at: node.ip(),
        peers: peers.iter().map(SimNode::ip).collect(),
    }
}

impl Director {
    async fn strike(&self, fault: &Fault) {
        for (stroke, number) in fault.strokes.iter().zip(1_u64..) {
            self.world.sim.sleep(stroke.waits).await;
            if self.is_over() {
                return;
            }
            // By these numbers a bundle says what is left out.
            let number = fault.number as u64 * 1_000 + number;
            let text = format!("{number} {}", fault.kind);
            if let Some(lasts) = self.world.options.without.fault(number) {
                self.world.sim.record("world", "fault left out", &text);
                self.world.sim.sleep(lasts).await;
                continue;
            }
            self.world.sim.record("world", "fault begins", &text);
            self.strike_once(fault, stroke).await;
            self.world.sim.record("world", "fault ends", &text);
        }
    }

    fn is_over(&self) -> bool {
        self.world.sim.now() >= self.world.options.active.0
    }

    fn feel(&self, fault: &Fault) {
        self.world.feel(fault.kind);
        self.world.feel(fault.counted());
    }

    async fn strike_once(&self, fault: &Fault, stroke: &Stroke) {
        match fault.kind {
            "rolling-restart" => self.roll(fault, stroke).await,
            "store-away" | "store-full" => self.shut(fault, stroke).await,
            "drift" => {
                if let Some(machine) = self.pick(fault, stroke) {
                    self.set_pace(fault, stroke, &machine).await;
                }
            }
            kind if ["crash", "power", "pause", "cut", "clock"].contains(&kind) || LINKS.contains(&kind) => {
                let Some(machine) = self.pick(fault, stroke) else {
                    return;
                };
                let busy = machine.busy.clone();
                let _befalls = busy.lock().await;
                if !self.is_over() && machine.is_up() {
                    self.befall(fault, stroke, &machine).await;
                }
            }
            _ => {
                self.world.weather.begin(fault);
                self.world.sim.record("world", fault.kind, "begins");
                self.world.sim.sleep(stroke.lasts).await;
                self.world.weather.end(fault.number);
                self.world.sim.record("world", fault.kind, "ends");
            }
        }
    }

    fn pick(&self, fault: &Fault, stroke: &Stroke) -> Option<Machine> {
        let machines = self.machines.role(fault.role);
        Stream::new(stroke.chance, "machine").pick(&machines).cloned()
    }

    async fn befall(&self, fault: &Fault, stroke: &Stroke, machine: &Machine) {
        match fault.kind {
            "pause" => self.freeze(fault, stroke, machine).await,
            "cut" => self.cut(fault, stroke, machine).await,
            "clock" => self.set_clock(fault, stroke, machine).await,
            kind if LINKS.contains(&kind) => self.trouble(fault, stroke, machine).await,
            _ => self.kill(fault, stroke, machine).await,
        }
    }

    async fn kill(&self, fault: &Fault, stroke: &Stroke, machine: &Machine) {
        if machine
            .node()
            .is_some_and(|node| is_at_work(&self.world, &self.server, &node))
        {
            self.feel(fault);
        }
        let how = match fault.kind {
            "power" => power_loss(&mut Stream::new(stroke.chance, "power"), &self.server),
            _ => Crash::Process,
        };
        machine.down(how);
        self.world.sim.sleep(stroke.lasts).await;
        machine.up();
    }

    /// Each machine of a role in turn.
    async fn roll(&self, fault: &Fault, stroke: &Stroke) {
        for machine in self.machines.role(fault.role) {
            let busy = machine.busy.clone();
            {
                let _befalls = busy.lock().await;
                if machine.is_up() {
                    self.kill(fault, stroke, &machine).await;
                }
            }
            self.world.sim.sleep(stroke.lasts + 2_000_000).await;
        }
    }

    async fn freeze(&self, fault: &Fault, stroke: &Stroke, machine: &Machine) {
        let Some(node) = machine.node() else { return };
        let disturbed = self.disturb(machine, "pause");
        let since = self.world.sim.wall();
        node.pause();
        self.world.sim.sleep(stroke.lasts).await;
        if node.clock().is_overdue(since) {
            self.feel(fault);
        }
        // Harmless when the process has died and started again since.
        node.resume();
        self.calm(disturbed);
    }

    async fn cut(&self, fault: &Fault, stroke: &Stroke, machine: &Machine) {
        let Some(node) = machine.node() else { return };
        let (peers, from_all) = (self.peers(fault, &node), fault.from.is_empty());
        if peers.is_empty() && !from_all {
            return;
        }
        let disturbed = self.disturb(machine, "away");
        let (is_in, is_out) = (fault.ways != "out", fault.ways != "in");
        if from_all {
            node.cut_ways(is_in, is_out);
        }
        peers.iter().for_each(|peer| node.cut_from(peer, is_in, is_out));
        let cut = self.world.links.cut(way(&node, &peers), (is_in, is_out));
        self.world.sim.sleep(stroke.lasts).await;
        if self.world.links.mend(cut) > 0 {
            self.feel(fault);
        }
        if from_all {
            node.mend();
        }
        peers.iter().for_each(|peer| node.mend_with(peer));
        self.calm(disturbed);
    }

    /// Machines of the role from which a machine is cut off, or on the way to which something befalls it.
    fn peers(&self, fault: &Fault, node: &SimNode) -> Vec<SimNode> {
        let of_role = self.machines.role(fault.from);
        let others = of_role.iter().filter_map(Machine::node);
        others.filter(|peer| peer.ip() != node.ip()).collect()
    }

    /// Something befalls the connections of a machine with others.
    async fn trouble(&self, fault: &Fault, stroke: &Stroke, machine: &Machine) {
        let Some(node) = machine.node() else { return };
        let peers = self.peers(fault, &node);
        if peers.is_empty() && !fault.from.is_empty() {
            return;
        }
        let (way, links) = (way(&node, &peers), &self.world.links);
        let disturbed = self.disturb(machine, "away");
        match fault.kind {
            "reset" | "half-open" => {
                let broken = links.reset(&way, fault.kind == "reset");
                self.world
                    .sim
                    .record(node.name(), fault.kind, &format!("{broken} connections"));
                if broken > 0 {
                    self.feel(fault);
                }
            }
            _ => links.begin(fault, way),
        }
        self.world.sim.sleep(stroke.lasts).await;
        links.end(fault.number);
        self.calm(disturbed);
    }

    async fn set_clock(&self, fault: &Fault, stroke: &Stroke, machine: &Machine) {
        let Some(node) = machine.node() else { return };
        let lies = node.clock().lies();
        if machine.has_the_clock() {
            self.world.history.disturb("clock", self.world.sim.now());
        }
        node.set_clock(stroke.by);
        self.world.sim.sleep(stroke.lasts).await;
        if node.clock().lies() > lies {
            self.feel(fault);
        }
        node.set_clock(0);
    }

    /// Whatever else befalls the machine goes on beside it.
    async fn set_pace(&self, fault: &Fault, stroke: &Stroke, machine: &Machine) {
        let Some(node) = machine.node() else { return };
        let drifts = node.clock().drifts();
        node.set_pace(stroke.by);
        self.world.sim.sleep(stroke.lasts).await;
        if node.clock().drifts() > drifts {
            self.feel(fault);
        }
        node.set_pace(0);
    }

    /// The store refuses every call, or every write that needs room; felt by the calls that it refuses.
    async fn shut(&self, fault: &Fault, stroke: &Stroke) {
        let (model, sim) = (&self.server.store.model, &self.world.sim);
        let is_full = fault.kind == "store-full";
        let kind = if is_full { "full" } else { "away" };
        let disturbed = self.world.history.disturb(kind, sim.now());
        let set = |is_on: bool| match is_full {
            true => model.set_full(is_on),
            false => model.set_away(is_on),
        };
        sim.record("store", kind, "");
        self.world.weather.begin(fault);
        set(true);
        sim.sleep(stroke.lasts).await;
        self.world.weather.end(fault.number);
        set(false);
        sim.record("store", "serves again", "");
        self.calm(Some(disturbed));
    }

    fn disturb(&self, machine: &Machine, kind: &'static str) -> Option<usize> {
        let excuses = machine.excuses();
        excuses.then(|| self.world.history.disturb(kind, self.world.sim.now()))
    }

    fn calm(&self, disturbed: Option<usize>) {
        if let Some(disturbed) = disturbed {
            calm_soon(&self.world, disturbed);
        }
    }

    /// Starts again what a job has killed, for as long as the run lasts.
    async fn mind_struck(&self) {
        let mut stream = Stream::new(self.world.options.seed, "struck");
        loop {
            self.world.sim.sleep(LOOKS).await;
            let struck = std::mem::take(&mut *self.world.struck.lock().unwrap_or_else(PoisonError::into_inner));
            for machine in struck.into_iter().filter_map(|ip| self.machines.at(ip)) {
                let (sim, wait) = (self.world.sim.clone(), stream.between(300_000, 2_000_000));
                self.world.sim.spawn(async move {
                    let _befalls = machine.busy.lock().await;
                    machine.down(Crash::Process);
                    sim.sleep(wait).await;
                    machine.up();
                });
            }
        }
    }
}
