//! Facts that the LeaseManager is told and orders that it gives.
//!
//! Owns: the two enums. Must never: hold logic. Cold rows that a decision needs travel with the
//! input; the shell has fetched them through its overlay. Next: `worker/io.rs`.

pub use super::item::CreateItem;
pub use super::reply::{CancelAnswer, Created, LeaseReply};
use crate::ids::{BeatId, JobId, OfferId, Token, WorkerId};
use crate::job::{Job, Outcome};
use crate::machine::ReplyTo;
use crate::name::Name;
use crate::row::{LeasedRow, MarkRow, ReadyRow, Row, WaitRow};
use crate::time::{Monotonic, Span, StoreTime};
use std::cmp::Reverse;
use std::sync::Arc;

/// A job whose worker was lost while it ran: the greater, the sooner it is tried, over all shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Suspect {
    /// Workers lost.
    pub lost: u32,
    /// How much longer it ran before one of its last two losses than before the other: what ends workers does
    /// so after much the same time, those beside it were started before or after it. Nil after one loss.
    pub unevenness: Reverse<Span>,
    /// When it was granted last before it lost one.
    pub granted_at: StoreTime,
}

/// A fact or request for the LeaseManager.
#[derive(Clone, Debug)]
pub enum LeaseInput {
    /// Jobs asked for by a client; answered per item.
    CreateJobs {
        /// Whom to answer.
        reply: ReplyTo,
        /// At most `BATCH_JOBS_MAX`.
        items: Vec<CreateItem>,
    },
    /// A client asks to cancel.
    CancelJob {
        /// Whom to answer.
        reply: ReplyTo,
        /// Which.
        id: JobId,
        /// The job's row, if there is one.
        job: Option<Box<Job>>,
    },
    /// A client sends a dead job back.
    RetryDead {
        /// Whom to answer.
        reply: ReplyTo,
        /// Which.
        id: JobId,
        /// The job's row, if there is one.
        job: Option<Box<Job>>,
    },
    /// A person settles an uncertain job.
    SettleUncertain {
        /// Whom to answer.
        reply: ReplyTo,
        /// Which.
        id: JobId,
        /// The job's row, if there is one.
        job: Option<Box<Job>>,
        /// What the person found.
        verdict: Settlement,
    },
    /// A worker has room. Repeating an offer id returns the same grants.
    Offer {
        /// Who.
        worker: WorkerId,
        /// Its number.
        offer: OfferId,
        /// At most this many grants.
        slots: u32,
        /// Only these queues; empty means all.
        queues: Vec<Name>,
        /// Whether it runs commands; without it is granted none.
        commands: bool,
        /// If there is nothing now: keep it for what becomes ready, and answer then.
        waits: bool,
        /// The worst of the jobs whose worker was lost before may be among the grants if it lost at most so
        /// many; 0: none of them.
        apart: u32,
    },
    /// A worker still holds these.
    Heartbeat {
        /// Who.
        worker: WorkerId,
        /// Its number; goes back with the renewal.
        beat: BeatId,
        /// What.
        held: Vec<(JobId, Token)>,
    },
    /// A worker is about to begin an at-most-once attempt.
    Begin {
        /// Who.
        worker: WorkerId,
        /// Which job.
        id: JobId,
        /// Under which token.
        token: Token,
    },
    /// A worker reports outcomes. `job` is set by the shell when the attempt is not current any more
    /// and the row was fetched (a late outcome may settle an uncertain job).
    Outcomes {
        /// Who.
        worker: WorkerId,
        /// What.
        items: Vec<AttemptOutcome>,
    },
    /// A worker proves that these did not start, and never will under this token.
    HandBack {
        /// Who.
        worker: WorkerId,
        /// What.
        items: Vec<(JobId, Token)>,
    },
    /// The way to this worker broke: its offer that waits would be granted to nobody. Its leases go on.
    WorkerUnreached(WorkerId),
    /// A page of the ready range, asked for by `LoadReady`.
    ReadyLoaded {
        /// The class.
        class: (Name, Name),
        /// In order, with their jobs; a row whose job is missing or unreadable is left out and
        /// quarantined by the shell.
        rows: Vec<(ReadyRow, Job)>,
        /// Whether the range ended.
        end: bool,
        /// First key after the page when it did not end.
        horizon: Option<ReadyRow>,
    },
    /// A page of the wait range, asked for by `LoadWait`.
    WaitLoaded {
        /// In order.
        rows: Vec<(WaitRow, Job)>,
        /// Whether the range ended.
        end: bool,
        /// First (instant, id) not in the page when it did not end.
        horizon: Option<(StoreTime, JobId)>,
    },
    /// A page of the wait range, asked for by `LoadMoved`.
    MovedPage {
        /// In order, with their jobs as they are now, what is stamped and not durable included.
        rows: Vec<(WaitRow, Job)>,
        /// First (instant, id) not in the page; `None` when the range ended.
        next: Option<(StoreTime, JobId)>,
    },
    /// The shell has released `SendGrants` for this offer: its leases count from now (F13). Until then
    /// they are not reaped, so that a slow store cannot end a lease that nobody has seen yet.
    GrantsReleased {
        /// To whom.
        worker: WorkerId,
        /// For which offer.
        offer: OfferId,
    },
    /// Grants that never left this node are as handed back (F14); those that did, in another answer, are let be.
    GrantsUnsent(Vec<(JobId, Token)>),
    /// A page of the job range, asked for by `LoadSweep`.
    SweepPage {
        /// In order of id.
        rows: Vec<SweptJob>,
        /// Where the next page begins; `None` when the range ended.
        next: Option<JobId>,
    },
    /// Time has passed.
    Tick,
}

/// A job met by the sweep, with the rows that `sweep_keys` names for it, as far as they exist.
#[derive(Clone, Debug)]
pub struct SweptJob {
    /// The job's row.
    pub job: Job,
    /// Of the rows asked for, those that exist; read through the overlay.
    pub rows: Vec<Row>,
}

/// Everything a LeaseManager is told when its shard was opened. Ready classes come as the first row
/// of each non-empty class; windows are then loaded by orders.
#[derive(Clone, Debug, Default)]
pub struct LeaseOpened {
    /// All leased rows with their jobs.
    pub leased: Vec<(LeasedRow, Job)>,
    /// Non-empty ready classes.
    pub classes: Vec<(Name, Name)>,
    /// The low-water marks of the wait range and of all ready classes (F7).
    pub marks: Vec<MarkRow>,
    /// Workers that are known dead: same node as this one, another boot than this (the number).
    pub dead_node: Option<(Name, u64)>,
}

/// An outcome of one attempt.
#[derive(Clone, Debug)]
pub struct AttemptOutcome {
    /// Job.
    pub id: JobId,
    /// Under which token.
    pub token: Token,
    /// What came out.
    pub outcome: Outcome,
    /// The job's row when the attempt is not current here, if there is one.
    pub job: Option<Box<Job>>,
}

/// What a person found out about an uncertain job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// The effect is there.
    Succeeded,
    /// There is no effect: give it up.
    Dead,
    /// There is no effect: try again.
    Retry,
}

/// An order of the LeaseManager.
#[derive(Clone, Debug)]
pub enum LeaseEffect {
    /// Answers a client.
    Reply(ReplyTo, LeaseReply),
    /// Hands attempts to a worker. When the shell releases it, it stamps `waited` and steps
    /// `GrantsReleased` (F13).
    SendGrants {
        /// To whom.
        worker: WorkerId,
        /// For which offer.
        offer: OfferId,
        /// When this owner received the offer.
        received_at: Monotonic,
        /// Attempts; may be empty.
        grants: Vec<Grant>,
        /// Whether more is ready in the classes asked for.
        more: bool,
        /// First of the jobs whose worker was lost that wait for their turn there.
        apart: Option<Suspect>,
    },
    /// Confirms leases. Exempt from waiting for durability (F3): each grant is durable and no
    /// stamped batch ends it.
    SendRenewed {
        /// To whom.
        worker: WorkerId,
        /// The heartbeat that this answers.
        beat: BeatId,
        /// Still held, with the full length. Nothing else: a renewal may overtake the batch that says so.
        held: Vec<Renewal>,
    },
    /// Tells that these are not held any more.
    SendLost {
        /// To whom.
        worker: WorkerId,
        /// Which.
        lost: Vec<(JobId, Token)>,
    },
    /// An at-most-once attempt may begin.
    SendBegun {
        /// To whom.
        worker: WorkerId,
        /// Job.
        id: JobId,
        /// Token.
        token: Token,
    },
    /// Someone asked to cancel the job; durable by now. A hint: each heartbeat repeats it.
    SendCancel {
        /// To whom.
        worker: WorkerId,
        /// Job.
        id: JobId,
        /// Token.
        token: Token,
    },
    /// Outcomes are durable, or came too late.
    SendRecorded {
        /// To whom.
        worker: WorkerId,
        /// Which, and whether it counted.
        items: Vec<(JobId, Token, Recorded)>,
    },
    /// Asks a worker about grants of an earlier epoch that may never have reached it (F14): it hands
    /// back those that it has never seen, and will never start them.
    SendReconcile {
        /// To whom.
        worker: WorkerId,
        /// Which.
        items: Vec<(JobId, Token)>,
    },
    /// Something is ready (a hint to workers; may be lost).
    HintReady,
    /// Load the next page of a class's ready range from this key (inclusive), at most `limit` rows
    /// and about `SCAN_BYTES_MAX` bytes of jobs.
    LoadReady {
        /// Class.
        class: (Name, Name),
        /// From here; `None` is the head.
        from: Option<ReadyRow>,
        /// Rows.
        limit: usize,
    },
    /// Load the next page of the wait range from this key (inclusive), bounded likewise.
    LoadWait {
        /// From here; `None` is the head.
        from: Option<(StoreTime, JobId)>,
        /// Rows.
        limit: usize,
    },
    /// Load a page of the wait range from this key (inclusive), bounded likewise: its rows are to follow the store's
    /// clock, which was set.
    LoadMoved {
        /// From here; `None` is the head.
        from: Option<(StoreTime, JobId)>,
        /// Rows.
        limit: usize,
    },
    /// Load the next page of the job range from this id (inclusive), each with its `sweep_keys` rows.
    LoadSweep {
        /// From here; `None` is the head.
        from: Option<JobId>,
        /// Rows.
        limit: usize,
    },
    /// A job was moved other than by the end of an attempt (for logs, metrics and waiting clients).
    JobChanged(Box<Job>),
    /// An attempt ended and moved its job (for logs, metrics and waiting clients). Each move is told
    /// once, by this or by `JobChanged`.
    AttemptEnded(Box<Job>),
    /// The sweep removed an old job.
    JobPurged {
        /// Which.
        id: JobId,
        /// How it had ended; a purged dead letter is a job given up for good.
        state: crate::job::JobState,
    },
    /// The sweep mended a job's rows; each is a defect to look into.
    JobRepaired {
        /// Which.
        id: JobId,
        /// What was wrong, for people.
        what: &'static str,
    },
    /// A stored job has values that no step may decide on: left out, to be quarantined (F9).
    JobRejected {
        /// Which.
        id: JobId,
        /// Why, for people.
        reason: &'static str,
    },
}

/// An attempt handed to a worker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    /// The job as stored (without this attempt).
    pub job: Arc<Job>,
    /// Attempt number.
    pub attempt: u32,
    /// Fencing token.
    pub token: Token,
    /// Length of the lease.
    pub length: Span,
    /// When it was granted.
    pub granted_at: StoreTime,
}

/// A confirmed lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Renewal {
    /// Job.
    pub id: JobId,
    /// Token.
    pub token: Token,
    /// Full length again, from the heartbeat's sending.
    pub length: Span,
}

/// What became of a reported outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recorded {
    /// It is durable (now or from an earlier report).
    Recorded,
    /// The attempt was not current any more; kept as evidence at most.
    Stale,
}
