//! The store of the world: the model store, its fault plan, and a record of what it accepted.
//!
//! Owns: slow syncs, unknown outcomes, sync errors, drawn call by call; and what was asked of it and answered, with the
//! moments of both. Must never: change an answer. Next: `faults.rs` (crashes, outages),
//! `../history/src/checkers/one_authority.rs`.

use super::work::InWork;
use super::{STORE_IP, World};
use crate::runtime::{NodeClock, Stream};
use fencepost_core::ids::{Epoch, Holder, Scope};
use fencepost_core::row::Row;
use fencepost_core::time::Span;
use fencepost_history::seen::{Accepted, BatchTold, Named, Opening, Word};
use fencepost_storage::batch::RawWrite;
use fencepost_storage::codec::decode_row;
use fencepost_storage::model::{CallFate, Crash, Fault, FaultPlan, ModelStore};
use fencepost_storage::store::{
    Bytes, Commit, Committed, KeyValue, Open, OpenError, Opened, Scan, Stated, Store, StoreError, StoreFacts,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Called when a sync fails: a store on a machine of its own ends its process then.
pub type OnSick = Box<dyn Fn() + Send>;

/// The model store under watch. Clones share it; it outlives the node's process.
#[derive(Clone)]
pub struct WatchedStore {
    world: World,
    /// The store itself.
    pub model: ModelStore,
    reads: Arc<AtomicU64>,
    /// Machines of those who opened a scope.
    owners: Arc<Mutex<BTreeMap<Holder, Ipv4Addr>>>,
    /// What it stated last.
    stated: Arc<AtomicI64>,
    /// The highest that it ever stated, in answers to commits too.
    highest: Arc<AtomicI64>,
}

/// Store time never falls by more than this but in the audited step; a start may lose less.
const LOWERED: i64 = 30_000_000;

impl WatchedStore {
    /// An empty store on this clock, with the run's plan and bug; `on_sick` hears that it has broken.
    pub fn new(world: &World, clock: Arc<NodeClock>, on_sick: OnSick) -> WatchedStore {
        let sleeper = clock.clone();
        let model = ModelStore::new(
            clock,
            Arc::new(move |span| fencepost::clock::Clock::sleep(&*sleeper, span)),
        );
        model.set_plan(Box::new(Plan {
            world: world.clone(),
            stream: Stream::new(world.options.seed, "store"),
            on_sick,
        }));
        if let Some(bug) = world.options.bug.and_then(crate::bugs::PlantedBug::in_store) {
            model.plant(bug);
        }
        WatchedStore {
            world: world.clone(),
            model,
            reads: Arc::default(),
            owners: Arc::default(),
            stated: Arc::default(),
            highest: Arc::default(),
        }
    }

    /// Store time was lowered to the wall clock, which had stayed below it for too long (F20).
    fn mind_lowering(&self, stated: Stated) {
        let before = self.stated.swap(stated.time.0, Ordering::SeqCst);
        if self.world.is_healed() && stated.time.0 < before - LOWERED {
            let told_at = self.world.sim.now();
            self.world.feel("seen:store-time-lowered");
            self.world.sim.record("store", "lowered", &stated.time.0.to_string());
            self.world.history.lock().lowered = Some((told_at, stated.time));
            self.forget_time();
        }
        self.mind_stated(stated);
    }

    fn mind_stated(&self, stated: Stated) {
        self.highest.fetch_max(stated.time.0, Ordering::SeqCst);
        self.world.history.stated(stated.time.0, self.world.sim.now());
    }

    /// What it stated may come again: its machine died, or its time was lowered.
    pub fn forget_time(&self) {
        self.world.history.forget_time(self.highest.load(Ordering::SeqCst));
    }

    /// The process or the machine of the store dies. What the disk keeps is `how`'s.
    pub fn crash(&self, how: Crash) {
        let unsynced = self.model.unsynced();
        let kept = match how {
            Crash::Process => unsynced,
            Crash::Power { kept } => kept,
        };
        if kept < unsynced {
            self.world.feel("seen:unsynced-lost");
        }
        let text = format!("{how:?} of {unsynced} unsynced");
        self.world.sim.record("store", "crash", &text);
        self.model.crash(how);
    }

    /// While a call is open: at the store, where it has a machine, and at the owner whose write it is.
    fn in_work(&self, holder: Option<Holder>) -> Vec<InWork> {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = holder.and_then(|holder| owners.get(&holder).copied());
        let store = self.world.options.apart.then_some(STORE_IP);
        let at = owner.into_iter().chain(store);
        at.map(|at| self.world.work.begin(at)).collect()
    }

    fn serve<T: Send + 'static>(&self, call: BoxFuture<'static, T>) -> BoxFuture<'static, T> {
        let open = self.in_work(None);
        async move {
            let answer = call.await;
            drop(open);
            answer
        }
        .boxed()
    }

    fn note_open(&self, request: &Open, asked_at: u64, answer: &Result<Opened, OpenError>) {
        let Ok(opened) = answer else { return };
        self.world.history.lock().openings.push(Opening {
            scope: request.scope,
            holder: request.holder,
            node: request.node.clone(),
            expected: request.expected,
            epoch: opened.epoch,
            asked_at,
            told_at: self.world.sim.now(),
        });
    }

    /// Numbers of what a coordinator's batch says of nodes, as it arrives.
    fn note_names(&self, request: &Commit) -> Vec<u64> {
        if request.scope != Scope::Coordinator {
            return Vec::new();
        }
        let rows = request.batch.writes.iter().filter_map(|write| match write {
            RawWrite::Put { key, value, .. } => decode_row(key, value).ok(),
            RawWrite::Delete { .. } => None,
        });
        let mut seen = self.world.history.lock();
        let mut numbers = Vec::new();
        for row in rows.filter_map(Row::into_assignment) {
            numbers.push(seen.names(Named {
                scope: row.scope,
                node: row.node,
                by: (request.epoch, request.number),
                asked_at: self.world.sim.now(),
                told_at: None,
            }));
        }
        numbers
    }

    fn note_word(&self, request: &Commit, (asked_at, named): (u64, Vec<u64>), answer: &Committed) {
        let mut seen = self.world.history.lock();
        let told_at = self.world.sim.now();
        let word = match answer {
            Committed::Committed(_) => Some(Word::Committed),
            Committed::Already(_) => Some(Word::Already),
            Committed::Conflict(_) => Some(Word::Conflict),
            Committed::Unknown(_) => self.model.keeps(request).then_some(Word::Lost),
            Committed::Unavailable(_) | Committed::Stale | Committed::Full => None,
        };
        let is_unknown = matches!(answer, Committed::Unknown(_));
        for number in named {
            match (word, is_unknown) {
                (_, true) => {}
                (Some(Word::Committed | Word::Already), _) => {
                    seen.named
                        .entry(number)
                        .and_modify(|named| named.told_at = Some(told_at));
                }
                (Some(Word::Lost | Word::Conflict) | None, _) => {
                    seen.named.remove(&number);
                }
            }
        }
        let digest = digest_of(request);
        seen.batches.extend(word.map(|word| BatchTold {
            scope: request.scope,
            epoch: request.epoch,
            holder: request.holder,
            number: request.number,
            digest,
            word,
            asked_at,
            told_at,
        }));
    }

    fn note(&self, request: &Commit, answer: &Committed) {
        let digest = digest_of(request);
        let what = match answer {
            Committed::Committed(stated) => format!("committed {}", stated.time.0),
            Committed::Already(_) => "already".to_owned(),
            Committed::Conflict(why) => format!("conflict {why}"),
            other => format!("{other:?}"),
        };
        match answer {
            Committed::Unavailable(_) => self.world.weather.is_felt(&self.world, "store-away"),
            Committed::Full => self.world.weather.is_felt(&self.world, "store-full"),
            _ => {}
        }
        let text = format!(
            "{:?} {} {} {digest:016x} {what}",
            request.scope, request.epoch.0, request.number.0
        );
        self.world.sim.record("store", "commit", &text);
        if let Committed::Committed(_) | Committed::Already(_) = answer {
            crate::report::leases::note(&self.world.sim, &request.batch);
        }
        if let Committed::Committed(stated) = answer {
            self.mind_stated(*stated);
            self.world.history.lock().commits.push(Accepted {
                scope: request.scope,
                epoch: request.epoch,
                holder: request.holder,
                number: request.number,
                at: stated.time,
                told_at: self.world.sim.now(),
            });
        }
    }
}

fn digest_of(request: &Commit) -> u64 {
    let digest = request.batch.digest.first_chunk::<8>();
    digest.map_or(0, |digest| u64::from_be_bytes(*digest))
}

impl Store for WatchedStore {
    fn open(&self, request: Open) -> BoxFuture<'static, Result<Opened, OpenError>> {
        let store = self.clone();
        async move {
            let (scope, asked_at) = (request.scope, store.world.sim.now());
            if let Some(node) = store.world.sim.node(request.node.as_str()) {
                let mut owners = store.owners.lock().unwrap_or_else(PoisonError::into_inner);
                owners.insert(request.holder, node.ip());
            }
            let _open = store.in_work(Some(request.holder));
            let answer = store.model.open(request.clone()).await;
            store.note_open(&request, asked_at, &answer);
            store
                .world
                .sim
                .record("store", "open", &format!("{scope:?} {answer:?}"));
            answer
        }
        .boxed()
    }

    fn epoch(&self, scope: Scope) -> BoxFuture<'static, Result<Epoch, StoreError>> {
        self.serve(self.model.epoch(scope))
    }

    fn commit(&self, request: Commit) -> BoxFuture<'static, Committed> {
        let store = self.clone();
        async move {
            let asked = (store.world.sim.now(), store.note_names(&request));
            let _open = store.in_work(Some(request.holder));
            let answer = store.model.commit(request.clone()).await;
            store.note(&request, &answer);
            store.note_word(&request, asked, &answer);
            answer
        }
        .boxed()
    }

    fn check(&self, scope: Scope, holder: Holder, epoch: Epoch) -> BoxFuture<'static, Result<bool, StoreError>> {
        self.serve(self.model.check(scope, holder, epoch))
    }

    fn get(&self, keys: Vec<Vec<u8>>) -> BoxFuture<'static, Result<Vec<Option<Bytes>>, StoreError>> {
        self.serve(self.model.get(keys))
    }

    /// Every third answer is shorter than it could be, as those of a far store are.
    fn get_within(
        &self,
        mut keys: Vec<Vec<u8>>,
        bytes: usize,
    ) -> BoxFuture<'static, Result<Vec<Option<Bytes>>, StoreError>> {
        if self.reads.fetch_add(1, Ordering::Relaxed).is_multiple_of(3) {
            keys.truncate((keys.len() / 2).max(2));
        }
        self.serve(self.model.get_within(keys, bytes))
    }

    fn scan(&self, scan: Scan) -> BoxFuture<'static, Result<Vec<KeyValue>, StoreError>> {
        self.serve(self.model.scan(scan))
    }

    fn now(&self, scope: Scope) -> BoxFuture<'static, Result<Stated, StoreError>> {
        let store = self.clone();
        let stated = self.model.now(scope);
        let minding = move |stated: Result<Stated, StoreError>| {
            match &stated {
                Ok(stated) => store.mind_lowering(*stated),
                Err(_) => store.world.weather.is_felt(&store.world, "store-away"),
            }
            stated
        };
        stated.map(minding).boxed()
    }

    fn confirm_clock(&self) -> BoxFuture<'static, Result<bool, StoreError>> {
        self.model.confirm_clock()
    }

    fn is_full(&self) -> bool {
        self.model.is_full()
    }

    fn describe(&self) -> StoreFacts {
        self.model.describe()
    }
}

/// What befalls calls of the store while faults last.
struct Plan {
    world: World,
    stream: Stream,
    on_sick: OnSick,
}

impl Plan {
    /// As the spells of a scenario have it.
    fn write_in_weather(&mut self) -> CallFate {
        let weather = self.world.weather.clone();
        let mut fate = CallFate {
            delay: Span(self.stream.between(12, 500)),
            sync_delay: Span(self.stream.between(50, 2_000)),
            fault: None,
        };
        if weather.meets_once(&self.world, "store-sick") {
            (self.on_sick)();
            fate.fault = Some(Fault::SyncError);
        } else if weather.meets(&self.world, "store-unknown", &mut self.stream).is_some() {
            let faults = [Fault::AnswerLost, Fault::RequestLost, Fault::Unavailable];
            fate.fault = self.stream.pick(&faults).copied();
        }
        if let Some(slower) = weather.meets(&self.world, "store-slow", &mut self.stream) {
            fate.sync_delay = Span(slower);
        }
        fate
    }

    fn write(&mut self) -> CallFate {
        if self.world.options.plan.is_some() {
            return self.write_in_weather();
        }
        let usual = self.stream.between(50, 2_000);
        let slow = self.stream.between(10_000, 4_000_000);
        let drawn = self.stream.between(0, 9_999);
        let faults = self.world.options.faults;
        let is_on = |family: bool| family && !self.world.is_healed();
        let fault = match drawn {
            0..=199 if is_on(faults.unknown) => Some(Fault::AnswerLost),
            200..=399 if is_on(faults.unknown) => Some(Fault::RequestLost),
            400..=499 if is_on(faults.unknown) => Some(Fault::Unavailable),
            500..=519 if is_on(faults.sick) => Some(Fault::SyncError),
            _ => None,
        };
        let is_slow = is_on(faults.slow) && drawn.is_multiple_of(20);
        if is_slow {
            self.world.feel("slow");
        }
        match fault {
            Some(Fault::SyncError) => {
                self.world.feel("sick");
                (self.on_sick)();
            }
            Some(_) => self.world.feel("unknown"),
            None => {}
        }
        CallFate {
            delay: Span(usual / 4),
            sync_delay: Span(if is_slow { slow } else { usual }),
            fault,
        }
    }
}

impl FaultPlan for Plan {
    fn on_commit(&mut self, _request: &Commit) -> CallFate {
        self.write()
    }

    fn on_open(&mut self, _request: &Open) -> CallFate {
        self.write()
    }

    fn on_read(&mut self) -> CallFate {
        CallFate {
            delay: Span(self.stream.between(0, 300)),
            ..CallFate::default()
        }
    }
}
