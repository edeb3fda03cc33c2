//! A job, its attempts and its states, as every part sees them.
//!
//! Owns: the types and the one table of state moves. Must never: decide (see `lease_manager/`).
//! Next: `target.rs`, `row.rs`, `lease_manager/io.rs`.

use crate::ids::{Incarnation, JobId, Token, WorkerId};
use crate::level::Level;
use crate::limits::KEY_RETENTION_HOURS;
use crate::name::Name;
use crate::target::{Payload, Target};
use crate::time::{Span, StoreTime};
use std::sync::Arc;

/// What the user asked for; never changes after creation, shared by all copies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JobSpec {
    /// Owner of quotas; `default` until tenants exist.
    pub tenant: Name,
    /// The line it waits in.
    pub queue: Name,
    /// What it does.
    pub target: Target,
    /// Its input.
    pub payload: Payload,
    /// 0 first, 9 last.
    pub priority: u8,
    /// Free words to filter by.
    pub tags: Vec<Name>,
    /// Limit of one attempt.
    pub timeout: Span,
    /// When to try again.
    pub retry: RetryPolicy,
    /// What to do with an attempt that began and has no proven outcome.
    pub delivery: Delivery,
    /// Not started by then: never starts (fate of the job: expired).
    pub expires_at: Option<StoreTime>,
}

impl JobSpec {
    /// Whether a worker over HTTP carries it out.
    pub fn is_remote(&self) -> bool {
        matches!(self.target, Target::Remote(_))
    }

    /// Whether it runs a program, which not every worker does.
    pub fn is_command(&self) -> bool {
        matches!(self.target, Target::Command(_))
    }

    /// The line it stands in when it is ready, in a cell of this level: its queue's, or that of the queue's remote
    /// jobs, which only workers over HTTP are granted, or of its commands.
    pub fn line_at(&self, level: Level) -> Name {
        match self.is_command() && level.has_command_lines() {
            true => self.queue.command_line(),
            false => self.line(),
        }
    }

    /// Every line in which it may be found: before a cell is raised commands stand among the others.
    pub fn lines(&self) -> impl Iterator<Item = Name> {
        let beside = self.is_command().then(|| self.queue.command_line());
        std::iter::once(self.line()).chain(beside)
    }

    /// The line of the first level.
    pub fn line(&self) -> Name {
        match self.target {
            Target::Remote(_) => self.queue.remote_line(),
            Target::Http(_) | Target::Command(_) | Target::Handler(_) => self.queue.clone(),
        }
    }
}

/// When to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RetryPolicy {
    /// Attempts in all, at least 1.
    pub attempt_count_max: u32,
    /// Delay before the second attempt; doubles with each.
    pub backoff_first: Span,
    /// Longest delay.
    pub backoff_cap: Span,
}

/// What to do with an attempt that began and has no proven outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// Try again.
    AtLeastOnce,
    /// Park it as uncertain for a human.
    AtMostOnce,
}

/// Where a job comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Asked for directly; the idempotency key if one was given.
    Request {
        /// (tenant, key) maps to this job while the key row lives.
        key: Option<Arc<str>>,
    },
    /// An occurrence of a schedule.
    Occurrence {
        /// The schedule.
        schedule: Name,
        /// Which life of that name.
        incarnation: Incarnation,
        /// Version of the definition it came from.
        definition: u64,
        /// The nominal instant.
        nominal: StoreTime,
        /// How it came about.
        cause: FireCause,
    },
}

/// How an occurrence came to make a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FireCause {
    /// Its time had come.
    Due,
    /// It was missed and the policy asks for it.
    CatchUp,
    /// Policy coalesce: it stands for `count` occurrences from `first` to the nominal instant.
    Coalesced {
        /// The oldest it stands for.
        first: StoreTime,
        /// How many, itself included.
        count: u64,
    },
    /// A person asked for it now.
    RunNow,
    /// A person asked for a past range.
    Backfill,
}

/// Where a job stands. `Ready` in the row may be *running*: the leased row decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobState {
    /// Its time has not come (first start, or the wait between attempts).
    Waiting,
    /// May be granted.
    Ready,
    /// An attempt is current.
    Leased,
    /// At-most-once, begun, unproven: for a human.
    Uncertain,
    /// Done.
    Succeeded,
    /// Cancelled before or instead of a success.
    Cancelled,
    /// Given up.
    Dead,
    /// Not started before its expiry.
    Expired,
}

/// The only moves a job may make.
pub const MOVES: &[(JobState, JobState)] = &[
    (JobState::Waiting, JobState::Ready),
    (JobState::Waiting, JobState::Cancelled),
    (JobState::Waiting, JobState::Expired),
    (JobState::Ready, JobState::Leased),
    (JobState::Ready, JobState::Cancelled),
    (JobState::Ready, JobState::Expired),
    (JobState::Leased, JobState::Succeeded),
    (JobState::Leased, JobState::Waiting),
    (JobState::Leased, JobState::Ready),
    (JobState::Leased, JobState::Dead),
    (JobState::Leased, JobState::Cancelled),
    (JobState::Leased, JobState::Uncertain),
    (JobState::Uncertain, JobState::Succeeded),
    (JobState::Uncertain, JobState::Dead),
    (JobState::Uncertain, JobState::Ready),
    (JobState::Uncertain, JobState::Cancelled),
    (JobState::Dead, JobState::Ready),
];

/// One unit of work with one identity.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Job {
    /// Slot and the rest.
    pub id: JobId,
    /// Grows by one with each put; a put names the version it replaces.
    pub version: u64,
    /// What the user asked for.
    pub spec: Arc<JobSpec>,
    /// Where it comes from.
    pub origin: Origin,
    /// When it was made.
    pub created_at: StoreTime,
    /// First due instant; lateness counts from here.
    pub due_at: StoreTime,
    /// As of this row; see `JobState`.
    pub state: JobState,
    /// Why it stands there, for people: `worker lost`, `stopped by target`, `attempts used up`.
    pub reason: Option<Arc<str>>,
    /// Where its place row lies while it is not finished.
    pub place: Place,
    /// Attempts charged (grants less proven non-starts).
    pub charged: u32,
    /// Attempts refunded.
    pub refunded: u32,
    /// Number that the next attempt gets, counted from 1.
    pub attempt_next: u32,
    /// Newest attempts that have ended, oldest first, at most `ATTEMPT_RECORDS_MAX`; older ones lie in
    /// rows of their own (`AttemptsRow`).
    pub attempts: Vec<AttemptRecord>,
    /// When someone asked to cancel it while it ran.
    pub cancel_requested_at: Option<StoreTime>,
    /// When it was finished.
    pub ended_at: Option<StoreTime>,
    /// How long its idempotency key is kept from then on, as its end promised; a day where it says nothing.
    pub key_kept: Option<Span>,
}

/// How long a key is kept when nobody says.
pub const KEY_KEPT: Span = Span::from_secs(KEY_RETENTION_HOURS * 3_600);

/// Which place row names a job. At most one exists; a leased row may replace `Ready`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// In the wait range under this instant.
    Wait {
        /// Due instant of the wait.
        at: StoreTime,
        /// Full length of the wait, to clamp what is left after a load; zero for a start at an instant.
        length: Span,
    },
    /// In the ready range: class and priority come from the spec.
    Ready {
        /// Order within priority.
        order: StoreTime,
    },
    /// In the leased range, written only when a job row is rewritten while its lease goes on.
    Leased,
    /// Parked (uncertain).
    Parked,
    /// In the dead-letter range under this instant.
    DeadLetter {
        /// When it was given up.
        at: StoreTime,
    },
    /// Finished: none.
    None,
}

/// One ended attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AttemptRecord {
    /// Counted from 1.
    pub no: u32,
    /// Its fencing token.
    pub token: Token,
    /// Who held it.
    pub worker: WorkerId,
    /// Grant made durable.
    pub granted_at: StoreTime,
    /// Outcome or reap recorded.
    pub ended_at: StoreTime,
    /// How it ended.
    pub result: AttemptResult,
    /// What went wrong.
    pub error: Option<Arc<str>>,
    /// Tail of its output.
    pub output: Arc<[u8]>,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttemptResult {
    /// The target succeeded.
    Succeeded,
    /// The target failed.
    Failed,
    /// The attempt's time-out passed.
    TimedOut,
    /// Lease ran out, or the worker's node died.
    WorkerLost,
    /// Proven not to have started: refunded.
    HandedBack,
    /// Stopped on request.
    Cancelled,
}

/// What a worker reports of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// The verdict.
    pub verdict: Verdict,
    /// Error text for people, bounded.
    pub error: Option<Arc<str>>,
    /// Tail of the output, bounded.
    pub output: Arc<[u8]>,
}

/// The verdict of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The effect is there.
    Succeeded,
    /// It failed.
    Failed {
        /// May it be tried again, and when.
        retry: RetryAdvice,
        /// Is it proven that nothing happened.
        effect: EffectProof,
    },
    /// The time-out passed.
    TimedOut {
        /// Is it proven that nothing happened.
        effect: EffectProof,
    },
    /// It stopped because it was asked to.
    Cancelled {
        /// Is it proven that nothing happened.
        effect: EffectProof,
    },
}

/// What a failed target says about trying again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetryAdvice {
    /// By the job's policy.
    ByPolicy,
    /// Not before this long from now (Retry-After); counts against the policy all the same.
    After(Span),
    /// Never (410, handler error that is not retryable).
    Stop,
}

/// Whether it is proven that an attempt had no effect (PROTOCOL F15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EffectProof {
    /// Not started, refused before any byte, 429, 503 with Retry-After, or the handler says so.
    NoEffect,
    /// Anything else.
    Unproven,
}

impl Job {
    /// A job as it is made, due and ready at once.
    pub fn due_at_once(id: JobId, spec: Arc<JobSpec>, origin: Origin, at: StoreTime) -> Job {
        Job {
            id,
            version: 1,
            spec,
            origin,
            created_at: at,
            due_at: at,
            state: JobState::Ready,
            reason: None,
            place: Place::Ready { order: at },
            charged: 0,
            refunded: 0,
            attempt_next: 1,
            attempts: Vec::new(),
            cancel_requested_at: None,
            ended_at: None,
            key_kept: None,
        }
    }

    /// Ends it now; its key is kept for so long.
    pub fn end(&mut self, now: StoreTime, key_kept: Span) {
        self.ended_at = Some(now);
        let has_key = matches!(self.origin, Origin::Request { key: Some(_) });
        self.key_kept = Some(key_kept).filter(|kept| has_key && *kept != KEY_KEPT);
    }

    /// Whether a worker was lost while it ran, as far as its records go: it may be what ends workers.
    pub fn has_lost_a_worker(&self) -> bool {
        self.workers_lost() > 0
    }

    /// Workers lost while it ran, as far as its records go.
    pub fn workers_lost(&self) -> u32 {
        let is_lost = |attempt: &&AttemptRecord| attempt.result == AttemptResult::WorkerLost;
        self.attempts.iter().filter(is_lost).count() as u32
    }
}

impl JobState {
    /// Whether the job can change no more by itself.
    pub fn is_finished(self) -> bool {
        matches!(
            self,
            JobState::Succeeded | JobState::Cancelled | JobState::Dead | JobState::Expired
        )
    }

    /// Whether the table has this move.
    pub fn may_become(self, next: JobState) -> bool {
        MOVES.contains(&(self, next))
    }
}
