//! What was seen from outside: requests and answers, calls at the target, commits, news, disturbances.
//!
//! Owns: the record that checkers judge. Must never: be read by anything that runs in a node. Times
//! are simulated microseconds since the run began, true for everyone. Next: `checkers/`.

use crate::spec::PlainSpec;
use fencepost_core::ids::{BatchNo, Epoch, Holder, JobId, Scope};
use fencepost_core::job::Job;
use fencepost_core::name::Name;
use fencepost_core::time::StoreTime;
use std::collections::{BTreeMap, BTreeSet};
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
    /// Definitions as drawn, by tag.
    pub specs: BTreeMap<String, PlainSpec>,
    /// Definitions that a client was told to hold.
    pub made: Vec<Made>,
    /// Names that were asked to be deleted.
    pub deletes: BTreeSet<String>,
    /// Lives that a client was told to be over.
    pub deleted: BTreeSet<String>,
    /// Stretches in which a schedule may have been paused.
    pub holds: Vec<Hold>,
    /// Stretches that were asked to be made up.
    pub backfills: Vec<Backfilled>,
    /// Names whose planned fire an edit was asked to drop.
    pub drops: BTreeSet<String>,
    /// Jobs of run-nows that a client was told of.
    pub ran: Vec<Ran>,
    /// Dead jobs that were asked to be sent back.
    pub retried: BTreeSet<JobId>,
    /// Schedules refused because nothing was left to fire.
    pub refused: u64,
    /// Answers to cancels.
    pub cancels: Vec<Cancel>,
    /// Ended states that a client was told of.
    pub ends: Vec<End>,
    /// Every answer.
    pub answers: Vec<Answered>,
    /// What clients found wrong in an answer.
    pub odd: Vec<String>,
    /// Calls at the target.
    pub calls: Vec<Call>,
    /// Commits that the store accepted.
    pub commits: Vec<Accepted>,
    /// Every word of the store about a batch, in the order told.
    pub batches: Vec<BatchTold>,
    /// Opens that the store granted.
    pub openings: Vec<Opening>,
    /// Assignments that reached the store, in this order; those that it refused are taken out.
    pub named: BTreeMap<u64, Named>,
    /// Attempts that workers over HTTP were handed.
    pub handed: Vec<Handed>,
    /// When they began its effect: it was theirs by their own clock.
    pub begun: Vec<Moment>,
    /// When an owner told that an attempt had ended.
    pub over: Vec<Moment>,
    /// Reports of theirs that were answered as recorded.
    pub reported: Vec<Reported>,
    /// Jobs that a list showed, with the end that it showed last.
    pub shown: BTreeMap<JobId, Option<String>>,
    /// News of jobs, in the order told.
    pub moves: Vec<Job>,
    /// When something disturbed the node.
    pub disturbances: Vec<Disturbance>,
    /// When store time was seen lowered, in simulated microseconds, and to what.
    pub lowered: Option<(u64, StoreTime)>,
    /// Stretches of store time that came twice.
    pub again: Vec<Again>,
    /// How store time ran beside the run's own, noted where it ran otherwise by more than `LAG_NOTED`.
    pub lags: Vec<Lag>,
}

/// An attempt that a process was handed over HTTP.
#[derive(Clone, Debug)]
pub struct Handed {
    /// When its answer came.
    pub at: u64,
    /// The job.
    pub job: String,
    /// The attempt's token.
    pub token: String,
    /// The process.
    pub to: String,
}

/// A moment in the life of an attempt.
#[derive(Clone, Debug)]
pub struct Moment {
    /// When.
    pub at: u64,
    /// The job.
    pub job: String,
    /// The attempt's token.
    pub token: String,
}

/// A report that was answered as recorded.
#[derive(Clone, Debug)]
pub struct Reported {
    /// When that was heard.
    pub at: u64,
    /// The job.
    pub job: JobId,
    /// The attempt's token.
    pub token: String,
    /// `succeeded`, `failed`, `cancelled`.
    pub result: &'static str,
}

/// What is no pace of a clock but its reading.
const LAG_NOTED: i64 = 1_000;

/// How far store time was behind the run's own when it was stated, in microseconds; only differences count.
#[derive(Clone, Copy, Debug)]
pub struct Lag {
    /// What was stated.
    pub time: i64,
    /// The run's own time less that.
    pub behind: i64,
}

impl Seen {
    /// By how much more time may have passed than store time did, between these two instants of it.
    pub fn passed_unstated(&self, one: i64, other: i64) -> i64 {
        let between = one.min(other) - LAG_NOTED..=one.max(other) + LAG_NOTED;
        let noted = self.lags.iter().filter(|lag| between.contains(&lag.time));
        let (least, most) = noted.fold((i64::MAX, i64::MIN), |(least, most), lag| {
            (least.min(lag.behind), most.max(lag.behind))
        });
        if least > most { 0 } else { most - least + 2 * LAG_NOTED }
    }
}

/// Store time was stated, and then less: its machine died, which forgets what it had stated beyond its last commit
/// while owners on other machines live on; or it was lowered (F20). Empty while nothing was stated since.
#[derive(Clone, Copy, Debug)]
pub struct Again {
    /// The least that was stated before it had come so far again.
    pub from: i64,
    /// The highest that had been stated.
    pub to: i64,
    /// It came so far again.
    pub is_over: bool,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answered {
    /// To what.
    pub op: &'static str,
    /// HTTP status.
    pub status: u16,
    /// Code of the problem, if it is one.
    pub code: String,
}

/// A definition was acknowledged, by creation or edit.
#[derive(Clone, Debug)]
pub struct Made {
    /// Schedule.
    pub name: String,
    /// Tag of the definition.
    pub tag: String,
}

/// A schedule may have been paused, in microseconds since the run began.
#[derive(Clone, Debug)]
pub struct Hold {
    /// Schedule.
    pub name: String,
    /// The pause was sent.
    pub from: u64,
    /// The resume was answered.
    pub to: u64,
}

/// A past stretch was asked for, in microseconds since the Unix epoch.
#[derive(Clone, Debug)]
pub struct Backfilled {
    /// Schedule.
    pub name: String,
    /// Exclusive.
    pub from: i64,
    /// Inclusive.
    pub to: i64,
    /// Also what had fired.
    pub is_rerun: bool,
}

/// A run-now was answered.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Schedule and number of its life.
    pub life: String,
    /// Idempotency key.
    pub key: String,
    /// The job told.
    pub job: JobId,
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

/// By what a target knows that an effect is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Honours {
    /// The idempotency key.
    Key,
    /// The highest token, with sealing.
    Token,
    /// Nothing: each call has its effect.
    Nothing,
    /// Whatever a user's service goes by: each effect has a name, and is judged by it.
    ItsOwn,
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
    /// By what the target knows an effect again.
    pub honours: Honours,
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
    /// When that was told, in simulated microseconds.
    pub told_at: u64,
}

/// What the store said of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// It is in, since now.
    Committed,
    /// It is in, since before.
    Already,
    /// It is in, and nobody was told: the answer was lost.
    Lost,
    /// It contradicts what is there.
    Conflict,
}

/// A word of the store about a batch.
#[derive(Clone, Debug)]
pub struct BatchTold {
    /// Scope.
    pub scope: Scope,
    /// Under which epoch.
    pub epoch: Epoch,
    /// Whose.
    pub holder: Holder,
    /// Number.
    pub number: BatchNo,
    /// What tells its bytes apart from others.
    pub digest: u64,
    /// What was said.
    pub word: Word,
    /// When the store was asked, in simulated microseconds.
    pub asked_at: u64,
    /// When it answered.
    pub told_at: u64,
}

/// The store opened a scope.
#[derive(Clone, Debug)]
pub struct Opening {
    /// Scope.
    pub scope: Scope,
    /// For whom.
    pub holder: Holder,
    /// On which node.
    pub node: Name,
    /// The epoch that was expected.
    pub expected: Epoch,
    /// The epoch that was told.
    pub epoch: Epoch,
    /// When the store was asked, in simulated microseconds.
    pub asked_at: u64,
    /// When it answered.
    pub told_at: u64,
}

/// A coordinator's batch names the node that may open a scope.
#[derive(Clone, Debug)]
pub struct Named {
    /// Scope.
    pub scope: Scope,
    /// Node.
    pub node: Name,
    /// The coordinator's epoch and the batch's number: they order what it says.
    pub by: (Epoch, BatchNo),
    /// When the store was asked, in simulated microseconds.
    pub asked_at: u64,
    /// When it said that the batch is in, if it did.
    pub told_at: Option<u64>,
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

impl Seen {
    /// An assignment reaches the store; by this number it is told afterwards what came of it.
    pub fn names(&mut self, named: Named) -> u64 {
        let number = self.named.last_key_value().map_or(0, |(last, _)| last + 1);
        self.named.insert(number, named);
        number
    }
}

impl History {
    /// Reads and writes.
    pub fn lock(&self) -> MutexGuard<'_, Seen> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store forgets what it stated; `highest` is that.
    pub fn forget_time(&self, highest: i64) {
        self.lock().again.push(Again {
            from: highest,
            to: highest,
            is_over: false,
        });
    }

    /// The store stated this, at this moment of the run.
    pub fn stated(&self, time: i64, at: u64) {
        let mut seen = self.lock();
        for again in seen.again.iter_mut().filter(|again| !again.is_over) {
            again.from = again.from.min(time);
            again.is_over = time >= again.to;
        }
        let behind = at.cast_signed() - time;
        let is_new = |last: &Lag| last.behind.abs_diff(behind) > LAG_NOTED.unsigned_abs();
        if seen.lags.last().is_none_or(is_new) {
            seen.lags.push(Lag { time, behind });
        }
    }

    /// A disturbance begins; the number is its own.
    pub fn disturb(&self, kind: &'static str, from: u64) -> usize {
        let mut seen = self.lock();
        let to = u64::MAX;
        seen.disturbances.push(Disturbance { from, to, kind });
        seen.disturbances.len() - 1
    }

    /// This one ends, and none that began since.
    pub fn calm_one(&self, number: usize, at: u64) {
        if let Some(one) = self.lock().disturbances.get_mut(number) {
            one.to = one.to.min(at);
        }
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
