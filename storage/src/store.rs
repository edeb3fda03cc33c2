//! The Store trait: small enough for a key-value engine and for SQL, friendly to a network.
//!
//! Owns: the contract (PROTOCOL F2, F5, F6). Must never: know an engine. Every implementation passes
//! `conformance/`. Next: `batch.rs`, `fjall_store/`, `model/`.

use crate::batch::Batch;
use fencepost_core::ids::{BatchNo, Epoch, Holder, Scope};
use fencepost_core::level::{self, Level};
use fencepost_core::name::Name;
use fencepost_core::time::StoreTime;
use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::Arc;

/// A raw key or value.
pub type Bytes = Arc<[u8]>;

/// A request to own a scope: a compare-and-set.
#[derive(Clone, Debug)]
pub struct Open {
    /// Which.
    pub scope: Scope,
    /// A nonce drawn for this start; the same nonce gets the same answer.
    pub holder: Holder,
    /// The epoch the caller believes current; `None` for "whatever it is" is not allowed once the
    /// scope exists: read it with `scope` first.
    pub expected: Epoch,
    /// Succeeds only if the durable assignment row names this node.
    pub node: Name,
}

/// A scope was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The new epoch.
    pub epoch: Epoch,
    /// Store time of the open.
    pub at: StoreTime,
}

/// Why a scope was not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The epoch is another one now.
    #[error("the scope is at epoch {}, not at the one expected", .current.0)]
    Moved {
        /// Now.
        current: Epoch,
    },
    /// The assignment row names another node, or there is none.
    #[error("the scope is not assigned to this node")]
    NotAssigned,
    /// See `StoreError`.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// One numbered batch of a scope.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Which scope.
    pub scope: Scope,
    /// Whose.
    pub holder: Holder,
    /// Under which epoch.
    pub epoch: Epoch,
    /// Last + 1, or a number sent before with the same bytes.
    pub number: BatchNo,
    /// The rows.
    pub batch: Arc<Batch>,
}

/// What became of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Committed {
    /// Durable now, at this store time.
    Committed(Stated),
    /// It was durable before (same holder, epoch and number; digest compared for the last).
    Already(Stated),
    /// An expectation failed: a machine-wide contradiction, ends the shell.
    Conflict(String),
    /// Epoch, holder or number do not fit: the caller owns nothing any more.
    Stale,
    /// The disk is full: batches that free work are still accepted from the reserve.
    Full,
    /// Not applied and not to be applied by this send; send again.
    Unavailable(String),
    /// Unknown: settle it by sending the same bytes under the same number.
    Unknown(String),
}

impl fmt::Display for Committed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Committed::Committed(_) => f.write_str("the batch is durable"),
            Committed::Already(_) => f.write_str("the batch was durable before"),
            Committed::Conflict(what) => write!(f, "the batch contradicts what is stored: {what}"),
            Committed::Stale => f.write_str("another owner has taken over"),
            Committed::Full => f.write_str("the disk is full"),
            Committed::Unavailable(why) => write!(f, "the batch was not taken: {why}"),
            Committed::Unknown(why) => write!(f, "whether the batch is durable is not known: {why}"),
        }
    }
}

/// A time that the store states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stated {
    /// Never below the scope's floor.
    pub time: StoreTime,
    /// Clock doubt (F20): nothing fires, is skipped or expires.
    pub doubt: bool,
}

/// Why a read or a check failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Try again.
    #[error("the store cannot be reached: {0}")]
    Unavailable(String),
    /// This process must end.
    #[error("the store is broken: {0}")]
    Broken(String),
}

/// A scan over `[from, to)` in key order.
#[derive(Clone, Debug)]
pub struct Scan {
    /// Inclusive.
    pub from: Vec<u8>,
    /// Exclusive.
    pub to: Vec<u8>,
    /// At most this many rows.
    pub limit: usize,
    /// Ends early with the row that passes this many bytes of keys and values, but never before the
    /// second row, so that the caller sees where to go on.
    pub bytes: usize,
    /// From the end backwards.
    pub backwards: bool,
}

impl Scan {
    /// Whether a scan that has found so much has found all that it may.
    pub fn is_done(&self, rows: usize, bytes: usize) -> bool {
        rows >= self.limit || (rows >= 2 && bytes >= self.bytes)
    }
}

/// A key and its value.
pub type KeyValue = (Bytes, Bytes);

/// Facts about a store, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreFacts {
    /// `fjall`, `model`, …
    pub engine: String,
    /// Where it lies, when it lies on a disk.
    pub folder: Option<String>,
    /// Newest sequence that is durable.
    pub high_water: u64,
    /// Chain hash at that sequence, hexadecimal.
    pub chain: String,
}

/// The store. Reads show only synced state; a commit is acknowledged only after its sync.
pub trait Store: Send + Sync + 'static {
    /// Owns a scope; itself a commit.
    fn open(&self, request: Open) -> BoxFuture<'static, Result<Opened, OpenError>>;
    /// The current epoch of a scope, 0 if it was never opened.
    fn epoch(&self, scope: Scope) -> BoxFuture<'static, Result<Epoch, StoreError>>;
    /// Commits a batch.
    fn commit(&self, request: Commit) -> BoxFuture<'static, Committed>;
    /// Whether this holder's next commit would be accepted by epoch and nonce.
    fn check(&self, scope: Scope, holder: Holder, epoch: Epoch) -> BoxFuture<'static, Result<bool, StoreError>>;
    /// Values of keys, in order.
    fn get(&self, keys: Vec<Vec<u8>>) -> BoxFuture<'static, Result<Vec<Option<Bytes>>, StoreError>>;
    /// Values of the first of these keys, in order: at least of one, and ending with the value that
    /// passes this many bytes, or earlier where the store has bounds of its own, but not before the second
    /// unless that is where the bytes end. A store that cannot bound an answer gives all.
    fn get_within(
        &self,
        keys: Vec<Vec<u8>>,
        bytes: usize,
    ) -> BoxFuture<'static, Result<Vec<Option<Bytes>>, StoreError>> {
        let _ = bytes;
        self.get(keys)
    }
    /// Rows of a range.
    fn scan(&self, scan: Scan) -> BoxFuture<'static, Result<Vec<KeyValue>, StoreError>>;
    /// The store's time. Ready at once where the store is in this process.
    fn now(&self, scope: Scope) -> BoxFuture<'static, Result<Stated, StoreError>>;
    /// An operator says that the store's clock is right, although it leapt: clock doubt is over (F20).
    /// Answers whether there was doubt.
    fn confirm_clock(&self) -> BoxFuture<'static, Result<bool, StoreError>>;
    /// Whether batches that make work are refused for want of room. Advisory: a shell asks before it
    /// steps; the answer `Full` to a commit is what counts.
    fn is_full(&self) -> bool {
        false
    }
    /// Facts for people.
    fn describe(&self) -> StoreFacts;
    /// The level that its node knows of, or has raised it to: a new cell gets no higher one.
    fn level(&self) -> Level {
        level::known()
    }
}
