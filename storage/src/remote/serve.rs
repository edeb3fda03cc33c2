//! The store's side: one call from bytes to bytes, on any store.
//!
//! Owns: turning calls into calls. Commits are handed to the store before this returns its future, so
//! that calls handed in one after the other reach the store in that order. Must never: read the reply
//! of one caller for another. Next: `message.rs`.

use super::message::{Answered, StoreAnswer, StoreCall};
use crate::store::{KeyValue, Scan, Store, StoreError};
use fencepost_core::limits::{SCAN_BYTES_MAX, SCAN_ROWS_MAX};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// Answers one call. `cell` is the number that a new cell in this store gets.
pub fn answer(store: &Arc<dyn Store>, cell: u128, call: &[u8]) -> BoxFuture<'static, Vec<u8>> {
    let answering: BoxFuture<'static, StoreAnswer> = match StoreCall::decode(call) {
        Ok(call) => carry_out(store, cell, call),
        Err(error) => {
            let why = format!("the store's node cannot read the call: {error}");
            futures_util::future::ready(StoreAnswer::NotUnderstood(why)).boxed()
        }
    };
    let store = store.clone();
    async move {
        let answer = answering.await;
        let is_full = store.is_full();
        Answered { is_full, answer }.encode()
    }
    .boxed()
}

fn carry_out(store: &Arc<dyn Store>, cell: u128, call: StoreCall) -> BoxFuture<'static, StoreAnswer> {
    match call {
        StoreCall::Open(open) => store.open(open).map(StoreAnswer::Opened).boxed(),
        StoreCall::Epoch(scope) => told(store.epoch(scope), StoreAnswer::Epoch),
        StoreCall::Commit(commit) => store.commit(commit).map(StoreAnswer::Committed).boxed(),
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
        StoreCall::Facts => {
            let facts = StoreAnswer::Facts(store.describe(), cell);
            futures_util::future::ready(facts).boxed()
        }
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
