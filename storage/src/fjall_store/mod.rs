//! The embedded store: fjall under one commit thread.
//!
//! Owns: the handle that callers hold. Commits travel to the commit thread (`committer.rs`), which
//! takes all that wait, makes one journal write with one sync, then the high-water mark
//! (`marker.rs`), then answers. Reads go to fjall directly: it shows a batch only after its sync.
//! Must never: acknowledge what is not synced and marked, or open a folder that lost something
//! (`start.rs`). Next: `start.rs`, `committer.rs`.

mod backup;
mod clock_file;
mod committer;
mod disk_space;
mod engine_panic;
mod error;
mod floor;
mod folder;
mod glance;
mod identity;
mod journal;
mod lock;
mod mark;
mod marker;
mod presence;
mod queue;
mod redo;
mod restore;
mod rewrite;
mod space;
mod start;
mod unfinished;
mod verify;

#[cfg(test)]
pub(crate) mod tests;

pub use backup::{BackupError, IsStopped, backup};
pub use disk_space::{FreeSpace, StatvfsProbe};
pub use engine_panic::is_opening;
pub use error::StartError;
pub use floor::{Floor, FloorWrite};
pub use glance::{Glance, glance};
pub use identity::Identity;
pub use restore::{RestoreStep, Restored, restore};
#[cfg(any(test, feature = "planted"))]
pub use start::PlantedFaults;
pub use start::{NewStore, Options};

use crate::clock::TimeKeeper;
use crate::keys::scope_key;
use crate::store::{
    Bytes, Commit, Committed, KeyValue, Open, OpenError, Opened, Scan, Stated, Store, StoreError, StoreFacts,
};
use crate::{codec, rules};
use disk_space::DiskSpace;
use fencepost_core::ids::{Epoch, Holder, Scope};
use fencepost_core::level::Level;
use fencepost_core::row::ScopeRow;
use fjall::Readable;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use mark::Mark;
use queue::{Item, Queue};
use space::Spaces;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// The embedded store. Dropping the last clone ends its threads and releases the folder.
#[derive(Clone)]
pub struct FjallStore {
    shared: Arc<Shared>,
}

struct Shared {
    spaces: Spaces,
    time: Arc<TimeKeeper>,
    queue: Arc<Queue>,
    disk: Arc<Mutex<DiskSpace>>,
    /// The mark that is durable.
    acknowledged: Arc<Mutex<Mark>>,
    folder: PathBuf,
    /// Its format is raised while the store is open.
    identity: Arc<Mutex<Identity>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Released last.
    _lock: lock::FolderLock,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.queue.close();
        let threads = std::mem::take(&mut *locked(&self.threads));
        for thread in threads {
            let _ = thread.join();
        }
    }
}

impl FjallStore {
    /// Opens the store in `folder`, or makes one there if the folder is empty or absent. Refuses,
    /// before anything is written, what is newer, held by another process or has lost something.
    pub fn start(folder: &Path, options: Options) -> Result<FjallStore, StartError> {
        start::start(folder, options)
    }

    /// What the folder's identity file says.
    pub fn identity(&self) -> Identity {
        *locked(&self.shared.identity)
    }

    /// Bytes on disk: tables and journals.
    pub fn disk_bytes(&self) -> u64 {
        self.shared.spaces.disk_bytes()
    }

    /// Rewrites every table without what was deleted; for benches and offline work, it blocks.
    pub fn compact(&self) -> Result<(), StoreError> {
        self.shared.spaces.compact().map_err(broken)
    }

    fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Spaces) -> Result<T, fjall::Error> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let store = self.clone();
        async move {
            if let Some(why) = store.shared.queue.broken() {
                return Err(StoreError::Broken(why));
            }
            read(&store.shared.spaces).map_err(broken)
        }
        .boxed()
    }

    fn scope_row(&self, scope: Scope) -> BoxFuture<'static, Result<Option<ScopeRow>, StoreError>> {
        let key = scope_key(scope);
        let found = self.get(vec![key.clone()]);
        async move {
            let Some(value) = found.await?.into_iter().next().flatten() else {
                return Ok(None);
            };
            codec::decode_scope(&key, &value)
                .map(Some)
                .map_err(|error| StoreError::Broken(format!("row {}: {error}", rules::shown(&key))))
        }
        .boxed()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn broken(error: fjall::Error) -> StoreError {
    StoreError::Broken(error::plain(&error))
}

impl Store for FjallStore {
    fn open(&self, request: Open) -> BoxFuture<'static, Result<Opened, OpenError>> {
        let (answer, receiver) = tokio::sync::oneshot::channel();
        self.shared.queue.push(Item::Open { request, answer });
        async move {
            receiver
                .await
                .unwrap_or_else(|_| Err(StoreError::Unavailable("the store has ended".into()).into()))
        }
        .boxed()
    }

    fn epoch(&self, scope: Scope) -> BoxFuture<'static, Result<Epoch, StoreError>> {
        let row = self.scope_row(scope);
        async move { Ok(row.await?.map_or(Epoch(0), |row| row.epoch)) }.boxed()
    }

    fn commit(&self, request: Commit) -> BoxFuture<'static, Committed> {
        let (answer, receiver) = tokio::sync::oneshot::channel();
        self.shared.queue.push(Item::Commit { request, answer });
        async move {
            receiver
                .await
                .unwrap_or_else(|_| Committed::Unknown("the store ended before it answered".into()))
        }
        .boxed()
    }

    fn check(&self, scope: Scope, holder: Holder, epoch: Epoch) -> BoxFuture<'static, Result<bool, StoreError>> {
        let row = self.scope_row(scope);
        async move { Ok(row.await?.is_some_and(|row| row.holder == holder && row.epoch == epoch)) }.boxed()
    }

    fn get(&self, keys: Vec<Vec<u8>>) -> BoxFuture<'static, Result<Vec<Option<Bytes>>, StoreError>> {
        self.get_within(keys, usize::MAX)
    }

    fn get_within(
        &self,
        keys: Vec<Vec<u8>>,
        most: usize,
    ) -> BoxFuture<'static, Result<Vec<Option<Bytes>>, StoreError>> {
        self.read(move |spaces| {
            let snapshot = spaces.snapshot();
            let mut values: Vec<Option<Bytes>> = Vec::with_capacity(keys.len());
            let mut bytes = 0;
            for key in &keys {
                if bytes >= most && !values.is_empty() {
                    break;
                }
                let value = match spaces.of_key(key) {
                    Some(space) => snapshot.get(space, key)?.map(|value| Bytes::from(&*value)),
                    None => None,
                };
                bytes += value.as_ref().map_or(0, |value| value.len());
                values.push(value);
            }
            Ok(values)
        })
    }

    fn scan(&self, scan: Scan) -> BoxFuture<'static, Result<Vec<KeyValue>, StoreError>> {
        self.read(move |spaces| spaces.scan(&scan))
    }

    fn now(&self, _scope: Scope) -> BoxFuture<'static, Result<Stated, StoreError>> {
        let answer = match self.shared.queue.broken() {
            Some(why) => Err(StoreError::Broken(why)),
            None => Ok(self.shared.time.state()),
        };
        ready(answer).boxed()
    }

    fn confirm_clock(&self) -> BoxFuture<'static, Result<bool, StoreError>> {
        let was_in_doubt = self.shared.time.confirm();
        Box::pin(async move { Ok(was_in_doubt) })
    }

    fn is_full(&self) -> bool {
        locked(&self.shared.disk).is_full()
    }

    fn level(&self) -> Level {
        Level(u16::try_from(self.identity().format).unwrap_or(u16::MAX))
    }

    fn describe(&self) -> StoreFacts {
        let mark = *locked(&self.shared.acknowledged);
        StoreFacts {
            engine: "fjall".to_owned(),
            folder: Some(self.shared.folder.display().to_string()),
            high_water: mark.sequence,
            chain: mark.chain_text(),
        }
    }
}
