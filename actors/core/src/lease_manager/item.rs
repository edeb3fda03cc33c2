//! One job asked for, with the cold rows that say whether it is there already.
//!
//! Owns: the shape. Must never: decide (`create.rs` does). Next: `io.rs`.

use crate::ids::JobId;
use crate::job::{Job, JobSpec};
use crate::row::KeyRow;
use crate::time::{Span, StoreTime};
use std::sync::Arc;

/// One job asked for.
#[derive(Clone, Debug)]
pub struct CreateItem {
    /// Drawn by the gateway before its first send; re-sent ids are the same.
    pub id: JobId,
    /// It was sent before, and what became of that is not known: the job's row is fetched. What is sent
    /// for the first time has a fresh id, which no row can have.
    pub resent: bool,
    /// What.
    pub spec: Arc<JobSpec>,
    /// First due instant; the past means now. `None` means now.
    pub due_at: Option<StoreTime>,
    /// Later than this after `due_at` it is not made but refused (`misfire grace`, BEH-D11).
    pub grace: Option<Span>,
    /// Key and digest of the request as parsed.
    pub key: Option<(Arc<str>, [u8; 32])>,
    /// The key's row, if there is one.
    pub key_row: Option<Box<KeyRow>>,
    /// The job that the key row names, if there is one; also the job already stored under `id`.
    pub existing: Option<Box<Job>>,
}
