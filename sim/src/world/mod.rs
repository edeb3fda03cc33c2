//! The world of a run: one node with every role, its store, clients, a target, and what befalls them.
//!
//! Owns: who exists at which address. Must never: judge (see `../checkers/`). Read `server.rs` (the
//! node), `store.rs`, `store_node.rs`, `clients.rs`, `planner.rs`, `target.rs`, `faults.rs`; in a scenario
//! `asked.rs`, `director.rs`, `machine.rs`, `links.rs` and `weather.rs` stand for the drawn ones. What makes
//! a fault felt is in `work.rs` and `links.rs`.

pub mod asked;
pub mod canary;
pub mod clients;
pub mod director;
pub mod far_worker;
pub mod faults;
pub mod hands;
pub mod http;
mod life;
pub mod links;
pub mod looks;
pub mod machine;
pub mod next_day;
pub mod planner;
pub mod remote;
mod remote_work;
mod rough;
pub mod second;
pub mod server;
pub mod services;
pub mod specs;
pub mod store;
pub mod store_node;
pub mod target;
pub mod weather;
pub mod wishes;
pub mod work;

use crate::options::Options;
use crate::runtime::{Sim, SimNode};
use fencepost_history::seen::History;
use links::Links;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use weather::Weather;
use work::Work;

/// The node's address.
pub const SERVER_IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Where its API listens.
pub const API_PORT: u16 = 4480;
/// The address of the store's machine, where it has one of its own.
pub const STORE_IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Where the store listens for nodes.
pub const STORE_PORT: u16 = 4481;
/// The target's address.
pub const TARGET_IP: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
/// Where the target listens.
pub const TARGET_PORT: u16 = 8080;
/// What clients send as their token.
pub const API_TOKEN: &str = "fp_simulated";

/// Faults that were felt and states that were seen, counted.
pub type Felt = BTreeMap<Cow<'static, str>, u64>;

/// What every part of the world shares.
#[derive(Clone)]
pub struct World {
    /// The simulation.
    pub sim: Sim,
    /// What the seed drew.
    pub options: Arc<Options>,
    /// What was seen.
    pub history: History,
    /// Faults that were felt and states that were seen, by name.
    pub felt: Arc<Mutex<Felt>>,
    /// Work that clients have not finished.
    pub open: Arc<AtomicU64>,
    /// Set once faults are over.
    pub healed: Arc<AtomicBool>,
    /// What befalls calls of the store and of the target, in a scenario.
    pub weather: Weather,
    /// The connections between nodes, and what befalls them.
    pub links: Links,
    /// What is in work at each machine.
    pub work: Work,
    /// Machines whose process a job has killed, by address, until somebody starts them again.
    pub struck: Arc<Mutex<Vec<Ipv4Addr>>>,
    /// Calls that handlers have sent to services.
    pub sent: services::Sent,
}

impl World {
    /// An empty world.
    pub fn new(sim: Sim, options: Options) -> World {
        World {
            sim,
            options: Arc::new(options),
            history: History::default(),
            felt: Arc::default(),
            open: Arc::default(),
            healed: Arc::default(),
            weather: Weather::default(),
            links: Links::default(),
            work: Work::default(),
            struck: Arc::default(),
            sent: services::Sent::default(),
        }
    }

    /// The machine of a client.
    pub fn client_node(&self, number: u64) -> SimNode {
        let last = u8::try_from(number + 1).unwrap_or(u8::MAX);
        self.sim
            .new_node(&format!("client-{number}"), Ipv4Addr::new(10, 0, 2, last))
    }

    /// A fault had its effect, or a state was seen.
    pub fn feel(&self, what: impl Into<Cow<'static, str>>) {
        let what = what.into();
        if !what.contains(':') {
            self.sim.record("world", "felt", &what);
        }
        let mut felt = self.felt.lock().unwrap_or_else(PoisonError::into_inner);
        *felt.entry(what).or_default() += 1;
    }

    /// Whether faults are over.
    pub fn is_healed(&self) -> bool {
        self.healed.load(Ordering::SeqCst)
    }

    /// Last instant that schedules may ask for, in microseconds since the Unix epoch.
    pub fn ends_at(&self) -> i64 {
        self.options.starts_at + self.options.active.0.cast_signed()
    }

    /// Waits until faults are over.
    pub async fn until_healed(&self) {
        while !self.is_healed() {
            self.sim.sleep(500_000).await;
        }
    }

    /// A piece of client work begins.
    pub fn begin(&self) {
        self.open.fetch_add(1, Ordering::SeqCst);
    }

    /// It is done.
    pub fn done(&self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}
