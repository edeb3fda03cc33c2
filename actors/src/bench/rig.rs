//! The node under measure: a real store in a folder of its own, every role, no HTTP.
//!
//! Owns: starting and cleaning up. Must never: measure. Next: `create.rs`, `drain.rs`, `child.rs` for a whole server.

use crate::bench::BenchOptions;
use crate::chance::{Chance, SharedChance, SystemChance, draw_job_id, draw_u64};
use crate::clock::{SharedClock, SystemClock};
use crate::node::notes::Notes;
use crate::node::{Node, NodeConfig, NodeParts, run_node};
use crate::process::serve::StoreTicks;
use crate::process::threads;
use crate::shell::shard_actor::Ending;
use crate::targets::{HandlerContext, HandlerRegistry, TargetRunner, TargetsConfig};
use fencepost_core::ids::JobId;
use fencepost_core::job::{Delivery, Job, JobSpec, JobState, RetryPolicy};
use fencepost_core::lease_manager::io::CreateItem;
use fencepost_core::limits;
use fencepost_core::name::Name;
use fencepost_core::scheduler_shard::io::FireNote;
use fencepost_core::target::{Payload, Target};
use fencepost_core::time::{Monotonic, Span, StoreTime};
use fencepost_storage::fjall_store::{FjallStore, NewStore, Options};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A node on a store of its own.
pub struct Rig {
    pub node: Node,
    pub clock: SharedClock,
    pub chance: SharedChance,
    pub ended: Arc<Ended>,
    pub spec: Arc<JobSpec>,
    pub late: Arc<Late>,
    folder: PathBuf,
    store: Weak<FjallStore>,
}

/// How late each attempt of the handler `stamp` began, in microseconds.
#[derive(Debug, Default)]
pub struct Late(Mutex<Vec<u64>>);

impl Late {
    /// Takes what was gathered so far.
    pub fn take(&self) -> Vec<u64> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many attempts began.
    pub fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn add(&self, late: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(late);
    }
}

/// Name of the node; a store stays with one.
pub const NODE: &str = "bench";
/// How often the end of a store is looked for, every 10 ms.
const CLOSE_POLLS: usize = 500;

/// Counts ended jobs.
#[derive(Debug, Default)]
pub struct Ended(AtomicUsize);

impl Ended {
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Notes for Ended {
    fn job_changed(&self, _: &Job) {}

    fn attempt_ended(&self, job: &Job) {
        if job.state.is_finished() {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn job_purged(&self, _: JobId, _: JobState) {}

    fn fired(&self, _: &FireNote) {}
}

impl Rig {
    /// Starts a node without a worker on a new store.
    pub async fn start(options: &BenchOptions) -> Result<Rig, String> {
        let folder = options.folder.join(format!("bench-{:016x}", draw_u64(&SystemChance)));
        Rig::open(options, folder).await
    }

    /// Starts one without a worker on a store that may be there already.
    pub async fn open(options: &BenchOptions, folder: PathBuf) -> Result<Rig, String> {
        let chance: SharedChance = Arc::new(SystemChance);
        let clock: SharedClock = Arc::new(SystemClock::with_fine_timer());
        let draw = || u128::from(draw_u64(&*chance));
        let fresh = NewStore {
            store: draw(),
            cell: draw(),
        };
        let ticks = Arc::new(StoreTicks(clock.clone()));
        let store = FjallStore::start(&folder, Options::new(fresh, ticks)).map_err(|error| error.to_string())?;
        let store = Arc::new(store);
        let held = Arc::downgrade(&store);
        let ended = Arc::new(Ended::default());
        let late = Arc::new(Late::default());
        let parts = NodeParts {
            cell: store.identity().cell,
            store,
            clock: clock.clone(),
            chance: chance.clone(),
            runner: TargetRunner::new(TargetsConfig::for_dev(), handlers(&clock, &late)?),
            lanes: threads::node_lanes(options.lanes),
            notes: vec![ended.clone()],
            fatal: Arc::new(|why: Ending| crate::process::say::say(&why.to_string())),
        };
        let name = |text| Name::new(text).map_err(|error| error.to_string());
        let mut config = NodeConfig::new(name(NODE)?);
        config.slots = 0;
        let node = run_node(config, parts).await.map_err(|error| error.to_string())?;
        node.ready().await;
        let spec = Arc::new(noop_spec(&name("default")?, name("noop")?));
        Ok(Rig {
            node,
            clock,
            chance,
            ended,
            spec,
            late,
            folder,
            store: held,
        })
    }

    /// One job to be made, due at `due_at`.
    pub fn item(&self, due_at: Option<StoreTime>) -> CreateItem {
        item_of(&*self.chance, &self.spec, due_at)
    }

    /// Now, for measuring.
    pub fn mono(&self) -> Monotonic {
        self.clock.mono()
    }

    /// The store under it, while it is open.
    pub fn store(&self) -> Result<Arc<FjallStore>, String> {
        self.store.upgrade().ok_or_else(|| "the store is closed".to_owned())
    }

    /// Starts the node's worker.
    pub async fn start_worker(&mut self, slots: u32) -> Result<(), String> {
        self.node.start_worker(slots).await.map_err(|error| error.to_string())
    }

    /// Waits until `count` jobs have ended since this rig was opened.
    pub async fn await_ended(&self, count: usize, patience: Span) -> Result<(), String> {
        let began = self.mono();
        while self.ended.count() < count {
            self.clock.sleep(Span::from_millis(1)).await;
            if self.mono().since(began) > patience {
                let (ended, seconds) = (self.ended.count(), patience.to_std().as_secs());
                return Err(format!("only {ended} of {count} jobs ended within {seconds} s"));
            }
        }
        Ok(())
    }

    /// Drains, waits until the store is let go of, removes the folder.
    pub async fn stop(self) {
        let folder = self.close().await;
        let _ = std::fs::remove_dir_all(folder);
    }

    /// The same, but keeps the folder.
    pub async fn close(self) -> PathBuf {
        self.node.drain().await;
        drop(self.node);
        for _ in 0..CLOSE_POLLS {
            if self.store.strong_count() == 0 {
                break;
            }
            self.clock.sleep(Span::from_millis(10)).await;
        }
        // The last holder is gone; its threads end and release the folder's lock.
        self.clock.sleep(Span::from_secs(1)).await;
        self.folder
    }
}

/// One job to be made, due at `due_at`.
pub fn item_of(chance: &dyn Chance, spec: &Arc<JobSpec>, due_at: Option<StoreTime>) -> CreateItem {
    CreateItem {
        id: draw_job_id(chance, None),
        spec: spec.clone(),
        due_at,
        delay: None,
        grace: None,
        key: None,
        resent: false,
        key_row: None,
        existing: None,
    }
}

/// The handler `stamp`: notes how late it began by the wall clock that the store uses, then succeeds.
fn handlers(clock: &SharedClock, late: &Arc<Late>) -> Result<HandlerRegistry, String> {
    let mut handlers = HandlerRegistry::default();
    let (clock, late) = (clock.clone(), late.clone());
    let stamp = move |context: HandlerContext| {
        let since = clock.wall().saturating_sub(context.scheduled_for.0);
        late.add(u64::try_from(since).unwrap_or(0));
        std::future::ready(Ok(Vec::new()))
    };
    handlers.register(Name::new("stamp").map_err(|error| error.to_string())?, stamp);
    Ok(handlers)
}

pub fn noop_spec(default: &Name, handler: Name) -> JobSpec {
    JobSpec {
        tenant: default.clone(),
        queue: default.clone(),
        target: Target::Handler(handler),
        payload: Payload::empty(),
        priority: limits::PRIORITY_DEFAULT,
        tags: Vec::new(),
        timeout: Span::from_millis(limits::ATTEMPT_TIMEOUT_MS),
        retry: RetryPolicy {
            attempt_count_max: limits::ATTEMPT_COUNT_DEFAULT,
            backoff_first: Span::from_millis(limits::BACKOFF_FIRST_MS),
            backoff_cap: Span::from_millis(limits::BACKOFF_CAP_MS),
        },
        delivery: Delivery::AtLeastOnce,
        expires_at: None,
    }
}
