//! What was seen from outside: requests and answers, calls at the target, commits, news, disturbances.
//!
//! Owns: the record that checkers judge. Must never: be read by anything that runs in a node. Times
//! are simulated microseconds since the run began, true for everyone. Next: `checkers/`.

use fencepost_core::ids::{BatchNo, Epoch, Holder, JobId, Scope};
use fencepost_core::job::Job;
use fencepost_core::time::StoreTime;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A shared history.
#[derive(Clone, Default)]
pub struct History {
    inner: Arc<Mutex<Seen>>,
}

/// Everything seen.
#[derive(Default)]
pub struct Seen {
    /// Jobs that a client was told of.
    pub acks: Vec<Ack>,
    /// Schedules that a client was told of.
    pub schedules: Vec<String>,
    /// Schedules refused because nothing was left to fire.
    pub refused: u64,
    /// Answers to cancels.
    pub cancels: Vec<Cancel>,
    /// Ended states that a client was told of.
    pub ends: Vec<End>,
    /// Every answer's status and, for problems, its code.
    pub answers: Vec<(u16, String)>,
    /// Calls at the target.
    pub calls: Vec<Call>,
    /// Commits that the store accepted.
    pub commits: Vec<Accepted>,
    /// News of jobs, in the order told.
    pub moves: Vec<Job>,
    /// When something disturbed the node.
    pub disturbances: Vec<Disturbance>,
}

/// A job was acknowledged.
#[derive(Clone, Debug)]
pub struct Ack {
    /// What it was asked for as; also its idempotency key.
    pub intent: String,
    /// The id told.
    pub job: JobId,
    /// Whether the answer said that the key had made it before.
    pub replayed: bool,
}

/// A cancel was answered.
#[derive(Clone, Debug)]
pub struct Cancel {
    /// Which.
    pub job: JobId,
    /// `cancelled`, `running` or `finished`.
    pub result: String,
    /// When the answer came.
    pub at: u64,
}

/// A client was told that a job had ended.
#[derive(Clone, Debug)]
pub struct End {
    /// Which.
    pub job: JobId,
    /// How.
    pub state: String,
}

/// A call at the target.
#[derive(Clone, Debug)]
pub struct Call {
    /// When it arrived.
    pub at: u64,
    /// What the caller wanted: the payload's intent, with the nominal instant for schedules.
    pub intent: String,
    /// `Idempotency-Key`.
    pub key: String,
    /// `Fencepost-Token`.
    pub token: String,
    /// `Fencepost-Attempt`.
    pub attempt: u64,
    /// `Fencepost-Scheduled-For`, as text.
    pub scheduled_for: String,
    /// Whether the target honours keys (else tokens).
    pub honours_key: bool,
    /// Whether its effect was applied by this call.
    pub applied: bool,
}

/// The store accepted a batch.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// Scope.
    pub scope: Scope,
    /// Under which epoch.
    pub epoch: Epoch,
    /// Whose.
    pub holder: Holder,
    /// Number.
    pub number: BatchNo,
    /// Store time of the acceptance; answers may come in another order.
    pub at: StoreTime,
}

/// A stretch in which nothing can be asked of the node.
#[derive(Clone, Debug)]
pub struct Disturbance {
    /// Begin.
    pub from: u64,
    /// End; the far future while it lasts.
    pub to: u64,
    /// What.
    pub kind: &'static str,
}

impl History {
    /// Reads and writes.
    pub fn lock(&self) -> MutexGuard<'_, Seen> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A disturbance begins.
    pub fn disturb(&self, kind: &'static str, from: u64) {
        self.lock().disturbances.push(Disturbance {
            from,
            to: u64::MAX,
            kind,
        });
    }

    /// Every open disturbance of this kind ends.
    pub fn calm(&self, kind: &'static str, at: u64) {
        let mut seen = self.lock();
        let open = seen
            .disturbances
            .iter_mut()
            .filter(|d| d.to == u64::MAX && d.kind == kind);
        for open in open {
            open.to = at;
        }
    }
}
