//! The remote store: the Store trait over a link to the node that holds the store.
//!
//! Owns: what an answer that does not come means: a commit that may have arrived is `Unknown` and
//! settled by sending it again under its number (PROTOCOL F2), one that never left is `Unavailable`.
//! Must never: know a connection (`StoreLink` is the actors' mesh, or anything that carries bytes),
//! or answer from memory. Next: `message.rs`, `serve.rs`.

pub mod message;
pub mod serve;
#[cfg(test)]
mod tests;

use crate::store::{
    Bytes, Commit, Committed, KeyValue, Open, OpenError, Opened, Scan, Stated, Store, StoreError, StoreFacts,
};
use fencepost_core::ids::{Epoch, Holder, Scope};
use fencepost_core::level::{self, Level};
use fencepost_core::limits::{
    REMOTE_BATCH_BYTES_MAX, REMOTE_KEYS_MAX, REMOTE_WRITES_MAX, SCAN_BYTES_MAX, SCAN_ROWS_MAX,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use message::{Answered, StoreAnswer, StoreCall};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What the engine of a store on another node is called, or how its name begins.
pub const REMOTE_ENGINE: &str = "remote";

/// Why a call brought no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// Nothing of it was sent.
    #[error("not sent: {0}")]
    NotSent(String),
    /// It may have arrived.
    #[error("no answer: {0}")]
    NoAnswer(String),
}

/// Carries a call to the store's node and its answer back. Calls made one after the other arrive in
/// that order, or not at all.
pub trait StoreLink: Send + Sync + 'static {
    /// Sends the call when this is called, not when the future is first polled.
    fn call(&self, call: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, LinkError>>;
    /// The level that the store's node knows, as far as is seen from here.
    fn level(&self) -> Level {
        level::known()
    }
}

/// A store on another node. Clones share one link.
#[derive(Clone)]
pub struct RemoteStore {
    shared: Arc<Shared>,
}

struct Shared {
    link: Arc<dyn StoreLink>,
    is_full: AtomicBool,
    facts: Mutex<StoreFacts>,
}

impl RemoteStore {
    /// A store behind this link.
    pub fn new(link: Arc<dyn StoreLink>) -> RemoteStore {
        let facts = StoreFacts {
            engine: REMOTE_ENGINE.to_owned(),
            ..StoreFacts::default()
        };
        RemoteStore {
            shared: Arc::new(Shared {
                link,
                is_full: AtomicBool::new(false),
                facts: Mutex::new(facts),
            }),
        }
    }

    /// Asks for the store's facts, shown by `describe` from then on; the number of the cell that a new
    /// cell in it gets.
    pub async fn ask_facts(&self) -> Result<u128, StoreError> {
        match self.call(&StoreCall::Facts).await {
            Ok(StoreAnswer::Facts(facts, cell)) => {
                *self.shared.facts.lock().unwrap_or_else(PoisonError::into_inner) = StoreFacts {
                    engine: format!("{REMOTE_ENGINE} {}", facts.engine),
                    ..facts
                };
                Ok(cell)
            }
            other => Err(no_answer(other)),
        }
    }

    fn call(&self, call: &StoreCall) -> BoxFuture<'static, Result<StoreAnswer, LinkError>> {
        let asked = self.shared.link.call(call.encode());
        let store = self.clone();
        async move {
            let answered = Answered::decode(&asked.await?)
                .map_err(|error| LinkError::NoAnswer(format!("the answer cannot be read: {error}")))?;
            store.shared.is_full.store(answered.is_full, Ordering::Relaxed);
            Ok(answered.answer)
        }
        .boxed()
    }

    fn ask<T: Send + 'static>(
        &self,
        call: &StoreCall,
        take: fn(StoreAnswer) -> Result<T, StoreAnswer>,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let asked = self.call(call);
        async move {
            match asked.await {
                Ok(answer) => take(answer).map_err(|other| no_answer(Ok(other))),
                Err(error) => Err(no_answer(Err(error))),
            }
        }
        .boxed()
    }
}

/// Whatever came instead of the answer: try again.
fn no_answer(got: Result<StoreAnswer, LinkError>) -> StoreError {
    StoreError::Unavailable(match got {
        Ok(StoreAnswer::Unavailable(why) | StoreAnswer::NotUnderstood(why)) => why,
        Ok(_) => "the store's node answered another question".to_owned(),
        Err(error) => error.to_string(),
    })
}

impl Store for RemoteStore {
    /// An answer that does not come is asked for again by the caller with the same nonce, or a new one.
    fn open(&self, request: Open) -> BoxFuture<'static, Result<Opened, OpenError>> {
        let asked = self.call(&StoreCall::Open(request));
        async move {
            match asked.await {
                Ok(StoreAnswer::Opened(opened)) => opened,
                other => Err(no_answer(other).into()),
            }
        }
        .boxed()
    }

    fn epoch(&self, scope: Scope) -> BoxFuture<'static, Result<Epoch, StoreError>> {
        self.ask(&StoreCall::Epoch(scope), |answer| match answer {
            StoreAnswer::Epoch(epoch) => Ok(epoch),
            other => Err(other),
        })
    }

    fn commit(&self, request: Commit) -> BoxFuture<'static, Committed> {
        if request.batch.writes.len() > REMOTE_WRITES_MAX || request.batch.bytes > REMOTE_BATCH_BYTES_MAX {
            let why = format!(
                "a batch of {} writes and {} bytes is larger than may be sent to a store on another node",
                request.batch.writes.len(),
                request.batch.bytes
            );
            return futures_util::future::ready(Committed::Conflict(why)).boxed();
        }
        let asked = self.call(&StoreCall::Commit(request));
        async move {
            match asked.await {
                Ok(StoreAnswer::Committed(committed)) => committed,
                // Read before anything was done with it, so certainly not applied; sent again it may
                // meet a newer build.
                Ok(StoreAnswer::NotUnderstood(why)) => Committed::Unavailable(why),
                Err(LinkError::NotSent(why)) => Committed::Unavailable(why),
                other => Committed::Unknown(match no_answer(other) {
                    StoreError::Unavailable(why) | StoreError::Broken(why) => why,
                }),
            }
        }
        .boxed()
    }

    fn check(&self, scope: Scope, holder: Holder, epoch: Epoch) -> BoxFuture<'static, Result<bool, StoreError>> {
        self.ask(&StoreCall::Check(scope, holder, epoch), |answer| match answer {
            StoreAnswer::Checked(holds) => Ok(holds),
            other => Err(other),
        })
    }

    /// In as many calls as it takes.
    fn get(&self, keys: Vec<Vec<u8>>) -> BoxFuture<'static, Result<Vec<Option<Bytes>>, StoreError>> {
        let store = self.clone();
        async move {
            let mut values = Vec::with_capacity(keys.len());
            while values.len() < keys.len() {
                let rest = keys.get(values.len()..).unwrap_or_default().to_vec();
                values.extend(store.get_within(rest, SCAN_BYTES_MAX).await?);
            }
            Ok(values)
        }
        .boxed()
    }

    fn get_within(
        &self,
        mut keys: Vec<Vec<u8>>,
        bytes: usize,
    ) -> BoxFuture<'static, Result<Vec<Option<Bytes>>, StoreError>> {
        if keys.is_empty() {
            return futures_util::future::ready(Ok(Vec::new())).boxed();
        }
        keys.truncate(REMOTE_KEYS_MAX);
        let asked = keys.len();
        let answered = self.ask(&StoreCall::Get(keys, bytes), |answer| match answer {
            StoreAnswer::Values(values) => Ok(values),
            other => Err(other),
        });
        async move {
            let values = answered.await?;
            if values.is_empty() || values.len() > asked {
                let why = format!("the store's node gave {} values of {asked}", values.len());
                return Err(StoreError::Unavailable(why));
            }
            Ok(values)
        }
        .boxed()
    }

    /// In as many calls as it takes to find what was asked for: the store's node bounds each answer.
    fn scan(&self, scan: Scan) -> BoxFuture<'static, Result<Vec<KeyValue>, StoreError>> {
        let store = self.clone();
        async move {
            let mut rest = scan.clone();
            let (mut rows, mut bytes): (Vec<KeyValue>, usize) = (Vec::new(), 0);
            loop {
                rest.limit = scan.limit.saturating_sub(rows.len()).min(SCAN_ROWS_MAX);
                rest.bytes = scan.bytes.saturating_sub(bytes).clamp(1, SCAN_BYTES_MAX);
                if rest.limit == 0 {
                    return Ok(rows);
                }
                let (page, is_end) = store.scan_page(rest.clone()).await?;
                rest.go_on_after(page.last());
                bytes += page.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
                // A page without a row that claims more would be asked for for ever.
                let is_end = is_end || page.is_empty();
                rows.extend(page);
                if is_end || scan.is_done(rows.len(), bytes) {
                    return Ok(rows);
                }
            }
        }
        .boxed()
    }

    fn now(&self, scope: Scope) -> BoxFuture<'static, Result<Stated, StoreError>> {
        self.ask(&StoreCall::Now(scope), |answer| match answer {
            StoreAnswer::Stated(stated) => Ok(stated),
            other => Err(other),
        })
    }

    fn confirm_clock(&self) -> BoxFuture<'static, Result<bool, StoreError>> {
        self.ask(&StoreCall::ConfirmClock, |answer| match answer {
            StoreAnswer::ClockConfirmed(was_in_doubt) => Ok(was_in_doubt),
            other => Err(other),
        })
    }

    fn is_full(&self) -> bool {
        self.shared.is_full.load(Ordering::Relaxed)
    }

    fn describe(&self) -> StoreFacts {
        let facts = self.shared.facts.lock();
        facts.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn level(&self) -> Level {
        self.shared.link.level()
    }
}

impl RemoteStore {
    fn scan_page(&self, scan: Scan) -> BoxFuture<'static, Result<(Vec<KeyValue>, bool), StoreError>> {
        self.ask(&StoreCall::Scan(scan), |answer| match answer {
            StoreAnswer::Rows(rows, is_end) => Ok((rows, is_end)),
            other => Err(other),
        })
    }
}

impl Scan {
    /// The rest of this scan after its last row so far.
    fn go_on_after(&mut self, last: Option<&KeyValue>) {
        let Some((key, _)) = last else { return };
        if self.backwards {
            self.to = key.to_vec();
        } else {
            self.from = key.to_vec();
            self.from.push(0);
        }
    }
}
