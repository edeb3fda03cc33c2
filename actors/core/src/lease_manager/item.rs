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
    /// Due so long after it is made, by elapsed time, whatever the store's clock does meanwhile (F20 b). Then
    /// `due_at` counts only with an owner of the version before, to whom no delay can be said.
    pub delay: Option<Span>,
    /// Later than this after `due_at` it is not made but refused (`misfire grace`, BEH-D11).
    pub grace: Option<Span>,
    /// Key and digest of the request as parsed.
    pub key: Option<(Arc<str>, [u8; 32])>,
    /// The key's row, if there is one.
    pub key_row: Option<Box<KeyRow>>,
    /// The job that the key row names, if there is one; also the job already stored under `id`.
    pub existing: Option<Box<Job>>,
}

impl CreateItem {
    /// Its first due instant, made now.
    pub fn first_due(&self, now: StoreTime) -> StoreTime {
        first_due(self.due_at, self.delay, now)
    }
}

/// The first due instant of what was made then.
pub(super) fn first_due(due_at: Option<StoreTime>, delay: Option<Span>, made_at: StoreTime) -> StoreTime {
    delay.map_or(due_at.unwrap_or(made_at), |delay| made_at + delay)
}
