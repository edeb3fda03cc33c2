//! Batches of one shard on their way together: one is lost, the next one is not mistaken for stale.
//!
//! Owns: a store that loses one commit. Next: `../../src/shell/flight.rs`.

use super::*;
use fencepost_core::ids::{Epoch, Holder, Scope, ShardId};
use fencepost_storage::store::{
    Bytes, Commit, Committed, KeyValue, Open, OpenError, Opened, Scan, Stated, Store, StoreError, StoreFacts,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Mutex;
use tokio::sync::oneshot;

/// A store behind a link that loses one commit when it is told to, and says so only when it is told to.
pub struct Lossy {
    pub store: ModelStore,
    /// The next commit waits for this and is lost.
    pub losing: Mutex<Option<oneshot::Receiver<()>>>,
    /// The next commit waits for this and goes on then.
    pub holding: Mutex<Option<oneshot::Receiver<()>>>,
    /// What became of the commits since, in the order of their answers.
    pub answers: Arc<Mutex<Vec<&'static str>>>,
}

impl Lossy {
    /// The next commit is lost; its caller learns that when the answer is sent.
    fn lose_next(&self) -> oneshot::Sender<()> {
        let (tell, told) = oneshot::channel();
        *self.losing.lock().unwrap() = Some(told);
        self.answers.lock().unwrap().clear();
        tell
    }

    /// The next commit is on its way until the answer is sent.
    pub fn hold_next(&self) -> oneshot::Sender<()> {
        let (tell, told) = oneshot::channel();
        *self.holding.lock().unwrap() = Some(told);
        tell
    }

    pub fn is_holding(&self) -> bool {
        self.holding.lock().unwrap().is_none()
    }

    pub fn answers(&self) -> Vec<&'static str> {
        self.answers.lock().unwrap().clone()
    }
}

impl Store for Lossy {
    fn commit(&self, request: Commit) -> BoxFuture<'static, Committed> {
        if let Some(told) = self.losing.lock().unwrap().take() {
            return told.map(|_| Committed::Unavailable("lost on its way".into())).boxed();
        }
        if let Some(told) = self.holding.lock().unwrap().take() {
            let (store, answers) = (self.store.clone(), self.answers.clone());
            return async move {
                let _ = told.await;
                let committed = store.commit(request).await;
                if matches!(committed, Committed::Stale) {
                    answers.lock().unwrap().push("stale");
                }
                committed
            }
            .boxed();
        }
        let answers = self.answers.clone();
        let note = move |committed: &Committed| {
            answers.lock().unwrap().push(match committed {
                Committed::Committed(_) => "committed",
                Committed::Already(_) => "already",
                Committed::Stale => "stale",
                _ => "other",
            });
        };
        self.store.commit(request).inspect(note).boxed()
    }

    fn open(&self, request: Open) -> BoxFuture<'static, Result<Opened, OpenError>> {
        self.store.open(request)
    }

    fn epoch(&self, scope: Scope) -> BoxFuture<'static, Result<Epoch, StoreError>> {
        self.store.epoch(scope)
    }

    fn check(&self, scope: Scope, holder: Holder, epoch: Epoch) -> BoxFuture<'static, Result<bool, StoreError>> {
        self.store.check(scope, holder, epoch)
    }

    fn get(&self, keys: Vec<Vec<u8>>) -> BoxFuture<'static, Result<Vec<Option<Bytes>>, StoreError>> {
        self.store.get(keys)
    }

    fn get_within(
        &self,
        keys: Vec<Vec<u8>>,
        bytes: usize,
    ) -> BoxFuture<'static, Result<Vec<Option<Bytes>>, StoreError>> {
        self.store.get_within(keys, bytes)
    }

    fn scan(&self, scan: Scan) -> BoxFuture<'static, Result<Vec<KeyValue>, StoreError>> {
        self.store.scan(scan)
    }

    fn now(&self, scope: Scope) -> BoxFuture<'static, Result<Stated, StoreError>> {
        self.store.now(scope)
    }

    fn confirm_clock(&self) -> BoxFuture<'static, Result<bool, StoreError>> {
        self.store.confirm_clock()
    }

    fn is_full(&self) -> bool {
        self.store.is_full()
    }

    fn describe(&self) -> StoreFacts {
        self.store.describe()
    }
}

/// A node with one shard over a store that loses commits.
async fn node_over(world: &World) -> (Arc<Lossy>, Node) {
    let lossy = Arc::new(Lossy {
        store: world.store.clone(),
        losing: Mutex::new(None),
        holding: Mutex::new(None),
        answers: Arc::default(),
    });
    let mut config = world.config();
    config.shards = 1;
    let parts = NodeParts {
        store: lossy.clone(),
        ..world.parts()
    };
    let node = run_node(config, parts).await.unwrap();
    node.ready().await;
    (lossy, node)
}

/// A creation on its way; its job waits for years, so that nothing else is written.
fn creating(world: &World, node: &Node) -> impl Future<Output = bool> + use<> {
    let mut item = item(fresh(node), "noop");
    item.due_at = Some(StoreTime(world.clock.wall()) + Span::from_secs(1_000_000));
    let asked = node.gateway.call(ShardId(0), ShardRequest::CreateJobs(vec![item]));
    async move { matches!(asked.await, Ok(ShardReply::Created(created)) if created.iter().all(Result::is_ok)) }
}

#[test]
fn f02_a_batch_behind_a_lost_one_is_sent_again_and_ends_no_owner() {
    run(async {
        let world = World::new();
        let (lossy, node) = node_over(&world).await;
        world.settle().await;
        let tell = lossy.lose_next();
        let first = actix::spawn(creating(&world, &node));
        while lossy.losing.lock().unwrap().is_some() {
            tokio::task::yield_now().await;
        }
        let second = actix::spawn(creating(&world, &node));
        while lossy.answers().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            lossy.answers(),
            ["stale"],
            "sent while the first was on its way, and a gap to the store"
        );
        tell.send(()).unwrap();
        assert!(first.await.unwrap() && second.await.unwrap(), "both are durable");
        assert_eq!(lossy.answers(), ["stale", "committed", "committed"]);
        assert_eq!(world.store.epoch(Scope::Shard(ShardId(0))).await.unwrap(), Epoch(1));
    });
}
