//! A simulated machine: starts, dies, freezes, and has clocks of its own.
//!
//! Owns: kill (always before a restart, or old sockets stay), pause and spawning. Must never: know
//! what runs on it. A kill runs destructors, as madsim does; nothing may depend on them. Next: `clock.rs`.

use super::{NodeClock, Sim};
use madsim::net::NetSim;
use madsim::runtime::NodeHandle;
use madsim::task::NodeId;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// A simulated machine. Cheap to clone.
#[derive(Clone)]
pub struct SimNode {
    sim: Sim,
    id: NodeId,
    name: Arc<str>,
    ip: Ipv4Addr,
    clock: Arc<NodeClock>,
}

impl SimNode {
    pub(super) fn new(sim: Sim, name: &str, ip: Ipv4Addr) -> SimNode {
        let built = sim.handle().create_node().name(name).ip(IpAddr::V4(ip)).build();
        SimNode {
            sim,
            id: built.id(),
            name: name.into(),
            ip,
            clock: Arc::new(NodeClock::new()),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn is(&self, id: NodeId) -> bool {
        self.id == id
    }

    /// Its address.
    pub fn ip(&self) -> Ipv4Addr {
        self.ip
    }

    /// Its clocks.
    pub fn clock(&self) -> Arc<NodeClock> {
        self.clock.clone()
    }

    /// Runs a future on it; `make` is called there.
    pub fn run<F>(&self, make: impl FnOnce() -> F + Send + 'static)
    where
        F: Future<Output = ()> + 'static,
    {
        self.handle().spawn(async move {
            madsim::task::spawn_local(make());
        });
    }

    /// Ends everything on it, now. Nothing more of it runs but destructors.
    pub fn kill(&self) {
        self.sim.record(&self.name, "killed", "");
        self.sim.handle().kill(self.id);
    }

    /// After a kill: an empty machine whose monotonic clock starts anew.
    pub fn restart(&self) {
        self.sim.record(&self.name, "restarted", "");
        self.sim.handle().restart(self.id);
        self.clock.reboot();
    }

    /// Freezes it at the next await of each future; timers and packets queue up.
    pub fn pause(&self) {
        self.sim.record(&self.name, "paused", "");
        self.sim.handle().pause(self.id);
    }

    /// Thaws it.
    pub fn resume(&self) {
        self.sim.record(&self.name, "resumed", "");
        self.sim.handle().resume(self.id);
    }

    /// Cuts it off: what it sends and what is sent to it waits.
    pub fn cut(&self) {
        self.sim.record(&self.name, "cut off", "");
        NetSim::current().clog_node(self.id);
    }

    /// Cuts it off one way or both: what comes in, what goes out.
    pub fn cut_ways(&self, is_in: bool, is_out: bool) {
        self.sim
            .record(&self.name, "cut off", &format!("in {is_in} out {is_out}"));
        let net = NetSim::current();
        if is_in {
            net.clog_node_in(self.id);
        }
        if is_out {
            net.clog_node_out(self.id);
        }
    }

    /// Cuts it off from one other machine, one way or both.
    pub fn cut_from(&self, other: &SimNode, is_in: bool, is_out: bool) {
        if self.id == other.id {
            return;
        }
        let text = format!("{} in {is_in} out {is_out}", other.name);
        self.sim.record(&self.name, "cut off from", &text);
        let net = NetSim::current();
        if is_in {
            net.clog_link(other.id, self.id);
        }
        if is_out {
            net.clog_link(self.id, other.id);
        }
    }

    /// Ends the cut from one other machine.
    pub fn mend_with(&self, other: &SimNode) {
        self.sim.record(&self.name, "reaches", &other.name);
        let net = NetSim::current();
        net.unclog_link(other.id, self.id);
        net.unclog_link(self.id, other.id);
    }

    /// Ends the cut; what waited arrives.
    pub fn mend(&self) {
        self.sim.record(&self.name, "reachable", "");
        NetSim::current().unclog_node(self.id);
    }

    /// From now on its wall clock is this many microseconds ahead of the truth.
    pub fn set_clock(&self, ahead: i64) {
        self.sim.record(&self.name, "clock set", &ahead.to_string());
        self.clock.set_offset(ahead);
    }

    /// From now on its monotonic clock is so many millionths fast.
    pub fn set_pace(&self, ppm: i64) {
        self.sim.record(&self.name, "clock drifts", &ppm.to_string());
        self.clock.set_pace(ppm);
    }

    fn handle(&self) -> NodeHandle {
        let found = self.sim.handle().get_node(self.id);
        found.expect("nodes are never removed")
    }
}
