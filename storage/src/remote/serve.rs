//! The store's side: one call from bytes to bytes, on any store.
//!
//! Owns: turning calls into calls, and the commits in work. Commits are handed to the store before this
//! returns its future, so that calls handed in one after the other reach the store in that order. A commit
//! that is sent again while it is in work joins it: while a sync is slow, repeats cost no memory. Must
//! never: read the reply of one caller for another. Next: `message.rs`.

use super::message::{Answered, StoreAnswer, StoreCall};
use crate::store::{Commit, Committed, KeyValue, Scan, Store, StoreError};
use fencepost_core::ids::{BatchNo, Epoch, Holder, Scope};
use fencepost_core::limits::{REMOTE_COMMITS_MAX, SCAN_BYTES_MAX, SCAN_ROWS_MAX};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// A store that is served to other nodes.
pub struct Serving {
    store: Arc<dyn Store>,
    cell: u128,
    /// The last commits of each scope that were not answered when they were looked at.
    commits: Mutex<BTreeMap<Scope, VecDeque<InWork>>>,
}

/// Who sent which bytes under which number.
type Sent = (Holder, Epoch, BatchNo, [u8; 32]);

struct InWork {
    sent: Sent,
    committed: Shared<BoxFuture<'static, Committed>>,
}

impl Serving {
    /// Serves this store. `cell` is the number that a new cell in it gets.
    pub fn new(store: Arc<dyn Store>, cell: u128) -> Serving {
        Serving {
            store,
            cell,
            commits: Mutex::default(),
        }
    }

    /// Answers one call.
    pub fn answer(&self, call: &[u8]) -> BoxFuture<'static, Vec<u8>> {
        let answering: BoxFuture<'static, StoreAnswer> = match StoreCall::decode(call) {
            Ok(call) => self.carry_out(call),
            Err(error) => {
                let why = format!("the store's node cannot read the call: {error}");
                futures_util::future::ready(StoreAnswer::NotUnderstood(why)).boxed()
            }
        };
        let store = self.store.clone();
        async move {
            let answer = answering.await;
            let is_full = store.is_full();
            Answered { is_full, answer }.encode()
        }
        .boxed()
    }

    fn carry_out(&self, call: StoreCall) -> BoxFuture<'static, StoreAnswer> {
        let store = &self.store;
        match call {
            StoreCall::Open(open) => store.open(open).map(StoreAnswer::Opened).boxed(),
            StoreCall::Epoch(scope) => told(store.epoch(scope), StoreAnswer::Epoch),
            StoreCall::Commit(commit) => self.commit(commit).map(StoreAnswer::Committed).boxed(),
            StoreCall::Check(scope, holder, epoch) => told(store.check(scope, holder, epoch), StoreAnswer::Checked),
            StoreCall::Get(keys, most) => told(store.get_within(keys, most.min(SCAN_BYTES_MAX)), StoreAnswer::Values),
            StoreCall::Scan(scan) => {
                let bounded = Scan {
                    limit: scan.limit.min(SCAN_ROWS_MAX),
                    bytes: scan.bytes.min(SCAN_BYTES_MAX),
                    ..scan
                };
                let asked = store.scan(bounded.clone());
                let page = async move { Ok(page_of(&bounded, asked.await?)) }.boxed();
                told(page, |(rows, is_end)| StoreAnswer::Rows(rows, is_end))
            }
            StoreCall::Now(scope) => told(store.now(scope), StoreAnswer::Stated),
            StoreCall::ConfirmClock => told(store.confirm_clock(), StoreAnswer::ClockConfirmed),
            StoreCall::Facts => {
                let facts = StoreAnswer::Facts(store.describe(), self.cell);
                futures_util::future::ready(facts).boxed()
            }
        }
    }

    /// The same bytes under the same number have the same end, whichever sending brings it (F2).
    fn commit(&self, commit: Commit) -> Shared<BoxFuture<'static, Committed>> {
        let (scope, digest) = (commit.scope, commit.batch.digest);
        let sent = (commit.holder, commit.epoch, commit.number, digest);
        let mut commits = self.commits.lock().unwrap_or_else(PoisonError::into_inner);
        let in_work = commits.entry(scope).or_default();
        // What has ended is judged anew, also where nobody was there to see its end.
        in_work.retain(|known| known.committed.clone().now_or_never().is_none());
        if let Some(known) = in_work.iter().find(|known| known.sent == sent) {
            return known.committed.clone();
        }
        // Those of a caller that is gone are asked for by nobody.
        if in_work.len() >= REMOTE_COMMITS_MAX {
            in_work.pop_front();
        }
        let committed = self.store.commit(commit).shared();
        in_work.push_back(InWork {
            sent,
            committed: committed.clone(),
        });
        committed
    }
}

/// The rows, and whether the range held no more than they are.
fn page_of(scan: &Scan, rows: Vec<KeyValue>) -> (Vec<KeyValue>, bool) {
    let bytes = rows.iter().map(|(key, value)| key.len() + value.len()).sum();
    let is_end = !scan.is_done(rows.len(), bytes);
    (rows, is_end)
}

/// A broken store ends its own process; to others it is away.
fn told<T: Send + 'static>(
    asked: BoxFuture<'static, Result<T, StoreError>>,
    say: fn(T) -> StoreAnswer,
) -> BoxFuture<'static, StoreAnswer> {
    asked
        .map(move |answer| match answer {
            Ok(value) => say(value),
            Err(StoreError::Unavailable(why) | StoreError::Broken(why)) => StoreAnswer::Unavailable(why),
        })
        .boxed()
}
