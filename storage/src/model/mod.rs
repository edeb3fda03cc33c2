//! The model store: all in memory, deterministic, with a disk that forgets on demand.
//!
//! Owns: the same contract as the real store, over a modelled disk (`disk.rs`) and faults that a plan
//! hands out call by call (`faults.rs`). Shared by several simulated nodes; also the store of
//! `--ephemeral`. A commit is applied to the disk's unsynced part in order of arrival; its sync,
//! after the planned delay, covers all before it. Must never: draw chance, read a clock or depend
//! on which waiting call runs first for anything but order. Next: `disk.rs`, `faults.rs`.

mod disk;
mod faults;
#[cfg(test)]
mod tests;

pub use faults::{CallFate, Crash, Fault, FaultPlan, NoFaults};
#[cfg(any(test, feature = "planted"))]
pub use faults::{PLANTED, Planted};

use crate::clock::{Clock, TimeKeeper};
use crate::store::{
    Bytes, Commit, Committed, KeyValue, Open, OpenError, Opened, Scan, Stated, Store, StoreError, StoreFacts,
};
use disk::Disk;
use fencepost_core::ids::{Epoch, Holder, Scope};
use fencepost_core::time::{Span, StoreTime};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What this store calls its engine.
pub const MODEL_ENGINE: &str = "model";

/// Waits for a span, by whatever clock the caller lives under.
pub type Sleep = Arc<dyn Fn(Span) -> BoxFuture<'static, ()> + Send + Sync>;

/// The model store; clones share one disk.
#[derive(Clone)]
pub struct ModelStore {
    shared: Arc<Shared>,
}

struct Shared {
    disk: Mutex<Disk>,
    plan: Mutex<Box<dyn FaultPlan>>,
    time: Mutex<Arc<TimeKeeper>>,
    clock: Arc<dyn Clock>,
    sleep: Sleep,
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ModelStore {
    /// An empty store without faults.
    pub fn new(clock: Arc<dyn Clock>, sleep: Sleep) -> ModelStore {
        ModelStore {
            shared: Arc::new(Shared {
                disk: Mutex::new(Disk::default()),
                plan: Mutex::new(Box::new(NoFaults)),
                time: Mutex::new(Arc::new(TimeKeeper::new(clock.clone(), StoreTime(0)))),
                clock,
                sleep,
            }),
        }
    }

    /// What befalls the calls from now on.
    pub fn set_plan(&self, plan: Box<dyn FaultPlan>) {
        *lock(&self.shared.plan) = plan;
    }

    /// The store's process or its machine dies and is back at once: what waits gets `Unknown`, and
    /// time goes on above the highest that was ever committed.
    pub fn crash(&self, how: Crash) {
        let floor = {
            let mut disk = lock(&self.shared.disk);
            disk.crash(how);
            disk.floor()
        };
        *lock(&self.shared.time) = Arc::new(TimeKeeper::new(self.shared.clock.clone(), floor));
    }

    /// While away, every call is answered `Unavailable` and nothing is synced.
    pub fn set_away(&self, away: bool) {
        lock(&self.shared.disk).away = away;
    }

    /// While full, batches that create work are refused.
    pub fn set_full(&self, full: bool) {
        lock(&self.shared.disk).full = full;
    }

    /// Rows that a power loss would keep.
    pub fn durable_rows(&self) -> Vec<KeyValue> {
        lock(&self.shared.disk).durable_rows()
    }

    /// Whether a batch is durable, by the record of its scope: it, or a later one of the same owner.
    pub fn keeps(&self, request: &Commit) -> bool {
        lock(&self.shared.disk).keeps(request)
    }

    /// Commits applied and not synced.
    pub fn unsynced(&self) -> usize {
        lock(&self.shared.disk).unsynced()
    }

    /// Plants a bug, for tests of the tests.
    #[cfg(any(test, feature = "planted"))]
    pub fn plant(&self, bug: Planted) {
        lock(&self.shared.disk).planted = Some(bug);
    }

    fn stated(&self) -> Stated {
        let time = lock(&self.shared.time).clone();
        time.state()
    }

    fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Disk) -> T + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let store = self.clone();
        async move {
            let fate = lock(&store.shared.plan).on_read();
            store.wait(fate.delay).await;
            if !matches!(fate.fault, None | Some(Fault::AnswerLost)) {
                return Err(StoreError::Unavailable("planned fault".into()));
            }
            let disk = lock(&store.shared.disk);
            disk.readable()?;
            Ok(read(&disk))
        }
        .boxed()
    }

    async fn wait(&self, delay: Span) {
        if delay > Span::ZERO {
            (self.shared.sleep)(delay).await;
        }
    }

    async fn run_commit(self, request: Commit) -> Committed {
        let fate = lock(&self.shared.plan).on_commit(&request);
        self.wait(fate.delay).await;
        if let Some(answer) = refused(fate.fault) {
            return answer;
        }
        let stated = self.stated();
        let applied = lock(&self.shared.disk).commit(&request, stated);
        let (answer, ticket) = match applied {
            Ok(done) => done,
            Err(StoreError::Unavailable(why)) => return Committed::Unavailable(why),
            Err(StoreError::Broken(why)) => return Committed::Unknown(why),
        };
        if !self.synced(ticket, fate.sync_delay, fate.fault).await {
            return Committed::Unknown("the store went away before its sync".into());
        }
        if fate.fault == Some(Fault::AnswerLost) {
            return Committed::Unknown("planned fault: the answer was lost".into());
        }
        answer
    }

    async fn run_open(self, request: Open) -> Result<Opened, OpenError> {
        let fate = lock(&self.shared.plan).on_open(&request);
        self.wait(fate.delay).await;
        if refused(fate.fault).is_some() {
            return Err(StoreError::Unavailable("planned fault".into()).into());
        }
        let stated = self.stated();
        let (answer, ticket) = lock(&self.shared.disk).open(&request, stated)?;
        if !self.synced(ticket, fate.sync_delay, fate.fault).await || fate.fault == Some(Fault::AnswerLost) {
            return Err(StoreError::Unavailable("the answer was lost".into()).into());
        }
        answer
    }

    /// Waits out the sync and makes everything up to the ticket durable; false if the disk died.
    async fn synced(&self, ticket: disk::Ticket, delay: Span, fault: Option<Fault>) -> bool {
        #[cfg(any(test, feature = "planted"))]
        if lock(&self.shared.disk).planted == Some(Planted::AckBeforeSync) {
            return true;
        }
        self.wait(delay).await;
        let mut disk = lock(&self.shared.disk);
        if fault == Some(Fault::SyncError) {
            disk.broken = true;
        }
        disk.sync(ticket)
    }
}

/// Faults that keep the call from being applied.
fn refused(fault: Option<Fault>) -> Option<Committed> {
    match fault {
        None | Some(Fault::AnswerLost | Fault::SyncError) => None,
        Some(Fault::Unavailable) => Some(Committed::Unavailable("planned fault".into())),
        Some(Fault::RequestLost) => Some(Committed::Unknown("planned fault: the request was lost".into())),
    }
}

impl Store for ModelStore {
    fn open(&self, request: Open) -> BoxFuture<'static, Result<Opened, OpenError>> {
        self.clone().run_open(request).boxed()
    }

    fn epoch(&self, scope: Scope) -> BoxFuture<'static, Result<Epoch, StoreError>> {
        self.read(move |disk| disk.scope(scope).map_or(Epoch(0), |row| row.epoch))
    }

    fn commit(&self, request: Commit) -> BoxFuture<'static, Committed> {
        self.clone().run_commit(request).boxed()
    }

    fn check(&self, scope: Scope, holder: Holder, epoch: Epoch) -> BoxFuture<'static, Result<bool, StoreError>> {
        self.read(move |disk| {
            disk.scope(scope)
                .is_some_and(|row| row.holder == holder && row.epoch == epoch)
        })
    }

    fn get(&self, keys: Vec<Vec<u8>>) -> BoxFuture<'static, Result<Vec<Option<Bytes>>, StoreError>> {
        self.read(move |disk| keys.iter().map(|key| disk.get(key)).collect())
    }

    fn get_within(
        &self,
        keys: Vec<Vec<u8>>,
        most: usize,
    ) -> BoxFuture<'static, Result<Vec<Option<Bytes>>, StoreError>> {
        self.read(move |disk| disk.get_within(&keys, most))
    }

    fn scan(&self, scan: Scan) -> BoxFuture<'static, Result<Vec<KeyValue>, StoreError>> {
        self.read(move |disk| disk.scan(&scan))
    }

    fn now(&self, _scope: Scope) -> BoxFuture<'static, Result<Stated, StoreError>> {
        let answer = lock(&self.shared.disk).readable().map(|()| self.stated());
        futures_util::future::ready(answer).boxed()
    }

    fn confirm_clock(&self) -> BoxFuture<'static, Result<bool, StoreError>> {
        let was_in_doubt = lock(&self.shared.time).confirm();
        Box::pin(async move { Ok(was_in_doubt) })
    }

    fn is_full(&self) -> bool {
        lock(&self.shared.disk).full
    }

    fn describe(&self) -> StoreFacts {
        StoreFacts {
            engine: MODEL_ENGINE.to_owned(),
            folder: None,
            high_water: lock(&self.shared.disk).high_water(),
            chain: String::new(),
        }
    }
}
