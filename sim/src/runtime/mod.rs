//! The facade over madsim: the only place that names it.
//!
//! Owns: one run in a fresh thread, the date, nodes, the limits of simulated and of real time, and
//! an end that leaves nothing behind. Must never: know the product beyond its clock and chance.
//! Read `node.rs`, `clock.rs`, `stream.rs`, `watchdog.rs`.

mod clock;
mod node;
mod stream;
mod watchdog;

pub use clock::NodeClock;
pub use node::SimNode;
pub use stream::{SharedStream, Stream};
pub use watchdog::Watchdog;

use crate::trace::Trace;
use madsim::runtime::{Handle, Runtime};
use std::future::Future;
use std::net::Ipv4Addr;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How a simulation is set up.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// Decides the order of everything.
    pub seed: u64,
    /// The date it begins at, in microseconds since the Unix epoch.
    pub starts_at: i64,
    /// Longest simulated time.
    pub limit: Duration,
    /// Latency of packets, in microseconds.
    pub latency: (u64, u64),
}

/// The running simulation. Cheap to clone; lives inside `simulate`.
#[derive(Clone)]
pub struct Sim {
    handle: Handle,
    trace: Trace,
    starts_at: i64,
    nodes: Arc<Mutex<Vec<SimNode>>>,
}

/// Runs `body` to its end in a fresh thread; `Err` is a panic anywhere in it, or a limit.
pub fn simulate<F, B>(config: SimConfig, trace: Trace, body: B) -> Result<F::Output, String>
where
    B: FnOnce(Sim) -> F + Send + 'static,
    F: Future,
    F::Output: Send + 'static,
{
    #[allow(
        clippy::disallowed_methods,
        reason = "a fresh thread per run: hash seeds are per thread"
    )]
    let running = std::thread::Builder::new()
        .name(format!("seed {}", config.seed))
        .stack_size(16 << 20)
        .spawn(move || run_here(&config, trace, body));
    let Ok(running) = running else {
        return Err("no thread for the simulation".to_owned());
    };
    running
        .join()
        .unwrap_or_else(|panic| Err(format!("panic: {}", message(&panic))))
}

fn run_here<F, B>(config: &SimConfig, trace: Trace, body: B) -> Result<F::Output, String>
where
    B: FnOnce(Sim) -> F,
    F: Future,
{
    let mut settings = madsim::Config::default();
    settings.net.send_latency = Duration::from_micros(config.latency.0)..Duration::from_micros(config.latency.1);
    let runtime = Runtime::with_seed_and_config(config.seed, settings);
    let ran = std::panic::catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async {
            set_date(config.starts_at);
            let sim = Sim {
                handle: Handle::current(),
                trace,
                starts_at: config.starts_at,
                nodes: Arc::default(),
            };
            let ended = madsim::time::timeout(config.limit, body(sim.clone())).await;
            sim.end().await;
            ended.map_err(|_| format!("simulated time limit of {:?} exceeded", config.limit))
        })
    }));
    ran.unwrap_or_else(|panic| {
        // The executor is in the middle of a poll: dropping it would run destructors of a broken world.
        std::mem::forget(runtime);
        Err(format!("panic: {}", message(&panic)))
    })
}

/// madsim starts in 2022 at a random second; the date moves by letting time pass before nodes exist.
fn set_date(starts_at: i64) {
    let ahead = starts_at - wall_now();
    madsim::time::advance(Duration::from_micros(u64::try_from(ahead).unwrap_or(0)));
}

/// True wall time of the simulation, in microseconds since the Unix epoch.
#[allow(
    clippy::disallowed_methods,
    reason = "simulated time, read in the one place that names it"
)]
fn wall_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Lets simulated time pass on the current node, in microseconds.
pub async fn sleep_here(micros: u64) {
    madsim::time::sleep(Duration::from_micros(micros)).await;
}

fn message(panic: &Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

impl Sim {
    /// A node with a name, an address of its own and its own clocks.
    pub fn new_node(&self, name: &str, ip: Ipv4Addr) -> SimNode {
        let node = SimNode::new(self.clone(), name, ip);
        self.nodes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(node.clone());
        node
    }

    /// A node by its name.
    pub fn node(&self, name: &str) -> Option<SimNode> {
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.iter().find(|node| node.name() == name).cloned()
    }

    /// The node whose code runs now, if it is one.
    pub fn here(&self) -> Option<SimNode> {
        let id = madsim::plugin::node();
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.iter().find(|node| node.is(id)).cloned()
    }

    /// Microseconds since the run began.
    pub fn now(&self) -> u64 {
        u64::try_from(self.wall() - self.starts_at).unwrap_or(0)
    }

    /// True wall time: what no node's clock need agree with.
    pub fn wall(&self) -> i64 {
        wall_now()
    }

    /// Lets simulated time pass, in microseconds.
    pub async fn sleep(&self, micros: u64) {
        madsim::time::sleep(Duration::from_micros(micros)).await;
    }

    /// Runs a future beside the nodes, outside all of them.
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        madsim::task::spawn_local(future);
    }

    /// `None` when the future has not ended after this many microseconds.
    pub async fn within<T>(&self, micros: u64, future: impl Future<Output = T>) -> Option<T> {
        madsim::time::timeout(Duration::from_micros(micros), future).await.ok()
    }

    /// The trace.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Records an event now.
    pub fn record(&self, node: &str, kind: &str, payload: &str) {
        self.trace.record(self.now(), node, kind, payload);
    }

    /// Kills every node and lets the executor drop their futures: one asleep at the end would leak.
    async fn end(&self) {
        let nodes = std::mem::take(&mut *self.nodes.lock().unwrap_or_else(PoisonError::into_inner));
        for node in &nodes {
            node.kill();
        }
        self.sleep(5_000).await;
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}
