//! A node on the model store, on a clock that can run fast.

use crate::requests::name;
pub use fencepost::chance::SystemChance;
use fencepost::clock::{Clock, SharedClock, SystemClock};
use fencepost::node::lanes::local_lane;
use fencepost::node::{Node, NodeConfig, NodeParts, run_node};
use fencepost::targets::{HandlerRegistry, TargetRunner, TargetsConfig};
use fencepost_core::time::{Monotonic, Span, StoreTime};
use fencepost_storage::model::ModelStore;
use futures_util::future::BoxFuture;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

pub struct World {
    pub clock: SharedClock,
    pub store: ModelStore,
    slept: Arc<Mutex<BTreeSet<Span>>>,
}

/// The machine's clock, so many times as fast, with a memory of how long it was asked to sleep.
struct FastClock {
    inner: SystemClock,
    factor: u64,
    slept: Arc<Mutex<BTreeSet<Span>>>,
}

impl Clock for FastClock {
    fn wall(&self) -> i64 {
        1_767_614_400_000_000 + i64::try_from(self.mono().0).unwrap()
    }

    fn mono(&self) -> Monotonic {
        Monotonic(self.inner.mono().0 * self.factor)
    }

    fn sleep(&self, span: Span) -> BoxFuture<'static, ()> {
        self.slept.lock().unwrap().insert(span);
        self.inner.sleep(Span(span.0 / self.factor))
    }
}

/// The node's clock as the store wants it.
pub struct StoreClock(SharedClock);

impl fencepost_storage::clock::Clock for StoreClock {
    fn wall(&self) -> StoreTime {
        StoreTime(self.0.wall())
    }

    fn mono(&self) -> fencepost_core::time::Monotonic {
        self.0.mono()
    }
}

impl World {
    pub fn new() -> World {
        World::on(Arc::new(SystemClock::new()), Arc::default())
    }

    /// Where time runs so many times as fast.
    pub fn fast(factor: u64) -> World {
        let slept: Arc<Mutex<BTreeSet<Span>>> = Arc::default();
        let inner = SystemClock::new();
        let clock = FastClock {
            inner,
            factor,
            slept: slept.clone(),
        };
        World::on(Arc::new(clock), slept)
    }

    fn on(clock: SharedClock, slept: Arc<Mutex<BTreeSet<Span>>>) -> World {
        let sleeper = clock.clone();
        let store = ModelStore::new(
            Arc::new(StoreClock(clock.clone())),
            Arc::new(move |span| sleeper.sleep(span)),
        );
        World { clock, store, slept }
    }

    /// Whether anything slept for exactly this long.
    pub fn has_slept(&self, span: Span) -> bool {
        self.slept.lock().unwrap().contains(&span)
    }

    pub async fn start(&self) -> Node {
        let node = self.begin().await;
        node.ready().await;
        node
    }

    /// Started; its shards may not be open yet, or never.
    pub async fn begin(&self) -> Node {
        run_node(self.config(), self.parts()).await.unwrap()
    }

    /// Without a worker.
    pub async fn start_idle(&self) -> Node {
        let config = NodeConfig {
            slots: 0,
            ..self.config()
        };
        let node = run_node(config, self.parts()).await.unwrap();
        node.ready().await;
        node
    }

    pub fn config(&self) -> NodeConfig {
        let mut config = NodeConfig::new(name("local"));
        config.shards = 4;
        config
    }

    pub fn parts(&self) -> NodeParts {
        NodeParts {
            store: Arc::new(self.store.clone()),
            cell: 1,
            clock: self.clock.clone(),
            chance: Arc::new(SystemChance),
            runner: TargetRunner::new(TargetsConfig::for_dev(), HandlerRegistry::default()),
            lanes: vec![local_lane()],
            notes: Vec::new(),
            fatal: Arc::new(|reason| panic!("the store broke: {reason}")),
        }
    }
}
