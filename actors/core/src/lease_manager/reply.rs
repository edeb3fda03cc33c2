//! What clients of a shard's jobs are answered.
//!
//! Owns: the shapes. Must never: decide. Next: `io.rs`.

use crate::ids::JobId;
use crate::job::{Job, JobState};
use crate::refusal::Refusal;

/// An answer to a client.
#[derive(Clone, Debug)]
pub enum LeaseReply {
    /// One per item, in order.
    Created(Vec<Result<Created, Refusal>>),
    /// To a cancel.
    Cancel(Result<CancelAnswer, Refusal>),
    /// To a retry or a settlement: the job as it is now.
    Job(Result<Box<Job>, Refusal>),
}

/// A job made or found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// The job.
    pub id: JobId,
    /// True when the key, or the same id sent again, had made it before.
    pub replayed: bool,
}

/// The three honest answers to a cancel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CancelAnswer {
    /// No attempt starts after this answer.
    Cancelled,
    /// An attempt is current; it was asked to stop.
    Running {
        /// Its number.
        attempt: u32,
    },
    /// It had ended already.
    Finished(JobState),
}
