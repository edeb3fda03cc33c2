//! A store that is asked again while it is away: reads of an open shard wait instead of failing.
//!
//! Owns: the pauses between questions. A shard that cannot read stays open: its leases are renewed
//! meanwhile (PROTOCOL F17), and a new owner would fare no better. Must never: repeat a commit or an
//! open; those are numbered, and only the shell knows what their end means (F2); nor an operator's word. Next:
//! `open_shard.rs`.

use crate::clock::SharedClock;
use crate::shell::fetch::SharedStore;
use fencepost_core::ids::{Epoch, Holder, Scope};
use fencepost_core::limits::{STORE_ASK_CAP_MS, STORE_ASK_FIRST_MS};
use fencepost_core::time::Span;
use fencepost_storage::store::{
    Bytes, Commit, Committed, KeyValue, Open, OpenError, Opened, Scan, Stated, Store, StoreError, StoreFacts,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// First pause before a question is asked again.
const FIRST: Span = Span::from_millis(STORE_ASK_FIRST_MS);
/// Longest pause.
const CAP: Span = Span::from_millis(STORE_ASK_CAP_MS);

/// The same store with patience.
pub fn patient(store: SharedStore, clock: SharedClock) -> SharedStore {
    Arc::new(Patient { store, clock })
}

struct Patient {
    store: SharedStore,
    clock: SharedClock,
}

impl Patient {
    /// Asks until there is an answer; at once where the store answers at once.
    fn ask<T: Send + 'static>(
        &self,
        question: impl Fn(&SharedStore) -> BoxFuture<'static, Result<T, StoreError>> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let (store, clock) = (self.store.clone(), self.clock.clone());
        let mut asked = question(&store);
        async move {
            let mut pause = FIRST;
            loop {
                match asked.await {
                    Err(StoreError::Unavailable(_)) => {}
                    answer => return answer,
                }
                clock.sleep(pause).await;
                pause = Span((pause.0 * 2).min(CAP.0));
                asked = question(&store);
            }
        }
        .boxed()
    }
}

impl Store for Patient {
    fn open(&self, request: Open) -> BoxFuture<'static, Result<Opened, OpenError>> {
        self.store.open(request)
    }

    fn epoch(&self, scope: Scope) -> BoxFuture<'static, Result<Epoch, StoreError>> {
        self.ask(move |store| store.epoch(scope))
    }

    fn commit(&self, request: Commit) -> BoxFuture<'static, Committed> {
        self.store.commit(request)
    }

    fn check(&self, scope: Scope, holder: Holder, epoch: Epoch) -> BoxFuture<'static, Result<bool, StoreError>> {
        self.ask(move |store| store.check(scope, holder, epoch))
    }

    fn get(&self, keys: Vec<Vec<u8>>) -> BoxFuture<'static, Result<Vec<Option<Bytes>>, StoreError>> {
        self.ask(move |store| store.get(keys.clone()))
    }

    fn get_within(
        &self,
        keys: Vec<Vec<u8>>,
        bytes: usize,
    ) -> BoxFuture<'static, Result<Vec<Option<Bytes>>, StoreError>> {
        self.ask(move |store| store.get_within(keys.clone(), bytes))
    }

    fn scan(&self, scan: Scan) -> BoxFuture<'static, Result<Vec<KeyValue>, StoreError>> {
        self.ask(move |store| store.scan(scan.clone()))
    }

    fn now(&self, scope: Scope) -> BoxFuture<'static, Result<Stated, StoreError>> {
        self.ask(move |store| store.now(scope))
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
