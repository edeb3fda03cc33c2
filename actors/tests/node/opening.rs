//! What a start reads: as much among many pending jobs as among few.
//!
//! Owns: the count of rows. Must never: measure time. Next: `../../src/shell/load.rs`.

use super::*;
use fencepost_core::ids::{Epoch, Holder, Scope};
use fencepost_storage::store::{
    Bytes, Commit, Committed, KeyValue, Open, OpenError, Opened, Scan, Stated, Store, StoreError, StoreFacts,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::atomic::AtomicUsize;

/// Counts the rows that are read.
struct Counting {
    store: ModelStore,
    rows: Arc<AtomicUsize>,
}

impl Counting {
    fn count<T: Send + 'static>(
        &self,
        read: BoxFuture<'static, Result<Vec<T>, StoreError>>,
    ) -> BoxFuture<'static, Result<Vec<T>, StoreError>> {
        let rows = self.rows.clone();
        let counted = move |found: Result<Vec<T>, StoreError>| {
            rows.fetch_add(found.as_ref().map_or(0, Vec::len), Ordering::SeqCst);
            found
        };
        read.map(counted).boxed()
    }
}

impl Store for Counting {
    fn open(&self, request: Open) -> BoxFuture<'static, Result<Opened, OpenError>> {
        self.store.open(request)
    }

    fn epoch(&self, scope: Scope) -> BoxFuture<'static, Result<Epoch, StoreError>> {
        self.store.epoch(scope)
    }

    fn commit(&self, request: Commit) -> BoxFuture<'static, Committed> {
        self.store.commit(request)
    }

    fn check(&self, scope: Scope, holder: Holder, epoch: Epoch) -> BoxFuture<'static, Result<bool, StoreError>> {
        self.store.check(scope, holder, epoch)
    }

    fn get(&self, keys: Vec<Vec<u8>>) -> BoxFuture<'static, Result<Vec<Option<Bytes>>, StoreError>> {
        self.count(self.store.get(keys))
    }

    fn get_within(
        &self,
        keys: Vec<Vec<u8>>,
        bytes: usize,
    ) -> BoxFuture<'static, Result<Vec<Option<Bytes>>, StoreError>> {
        self.count(self.store.get_within(keys, bytes))
    }

    fn scan(&self, scan: Scan) -> BoxFuture<'static, Result<Vec<KeyValue>, StoreError>> {
        self.count(self.store.scan(scan))
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

/// So many jobs due in a year, stored on one shard.
async fn store_pending(node: &Node, count: usize) {
    let due_at = node.gateway.now() + Span::from_secs(365 * 86_400);
    let later = |_| CreateItem {
        due_at: Some(due_at),
        ..item(fresh(node), "noop")
    };
    for _ in 0..count.div_ceil(1_000) {
        let items = (0..1_000).map(later).collect();
        let shard = node.gateway.shard_map().shard_of(Slot::new(0).unwrap());
        let made = node.gateway.call(shard, ShardRequest::CreateJobs(items)).await;
        assert!(matches!(made, Ok(ShardReply::Created(each)) if each.iter().all(Result::is_ok)));
    }
}

/// Rows that the next start reads until it is ready.
async fn rows_of_a_start(world: &World, config: &NodeConfig) -> usize {
    let rows = Arc::new(AtomicUsize::new(0));
    let store = world.store.clone();
    let parts = NodeParts {
        store: Arc::new(Counting {
            store,
            rows: rows.clone(),
        }),
        ..world.parts()
    };
    let node = run_node(config.clone(), parts).await.unwrap();
    node.ready().await;
    let read = rows.load(Ordering::SeqCst);
    node.drain().await;
    read
}

#[test]
fn f34_a_start_reads_as_much_among_many_pending_jobs_as_among_few() {
    run(async {
        let world = World::new();
        let mut config = world.config();
        config.shards = 1;
        let mut read = Vec::new();
        for more in [2_000, 6_000] {
            let node = run_node(config.clone(), world.parts()).await.unwrap();
            node.ready().await;
            store_pending(&node, more).await;
            node.drain().await;
            read.push(rows_of_a_start(&world, &config).await);
        }
        assert!(read[0] > 1_000, "the soonest are in memory: {read:?}");
        assert_eq!(read[0], read[1], "of 2,000 and of 8,000");
    });
}
