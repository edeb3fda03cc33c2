//! Facts that the Worker machine is told and orders that it gives.
//!
//! Owns: the two enums. Must never: hold logic. A worker has no durable state: its orders are
//! released at once. Next: `lease_manager/io.rs`.

use crate::ids::{BeatId, JobId, OfferId, ShardId, ShardOwner, Token};
use crate::job::Outcome;
use crate::lease_manager::io::{Grant, Recorded, Renewal, Suspect};
use crate::name::Name;
use crate::time::Span;

/// A fact for the worker.
#[derive(Clone, Debug, Hash)]
pub enum WorkerInput {
    /// Whether nothing new is to be taken: this node's clock is not trusted.
    HoldBack(bool),
    /// A shard says that something is ready (a hint; a paced sweep asks anyway).
    ReadyHint(ShardId),
    /// Grants for an offer. `waited` is the owner's time from receiving the offer to releasing this.
    Granted {
        /// From.
        from: ShardOwner,
        /// For.
        offer: OfferId,
        /// Attempts.
        grants: Vec<Grant>,
        /// Owner's wait (F13).
        waited: Span,
        /// More is ready there.
        more: bool,
        /// First of the jobs whose worker was lost that wait for their turn there.
        apart: Option<Suspect>,
    },
    /// Leases confirmed; counted from when the heartbeat was sent.
    Renewed {
        /// From.
        from: ShardOwner,
        /// The heartbeat that this answers.
        beat: BeatId,
        /// Which.
        held: Vec<Renewal>,
    },
    /// Leases gone.
    Lost {
        /// From.
        from: ShardOwner,
        /// Which.
        lost: Vec<(JobId, Token)>,
    },
    /// Someone asked to cancel this job; each heartbeat is answered so again.
    CancelRequested {
        /// From.
        from: ShardOwner,
        /// Job.
        id: JobId,
        /// Token.
        token: Token,
    },
    /// An at-most-once attempt may begin.
    Begun {
        /// Job.
        id: JobId,
        /// Token.
        token: Token,
    },
    /// Runs have come to their end.
    AttemptsFinished {
        /// Which, and what came out.
        items: Vec<(JobId, Token, Outcome)>,
    },
    /// Runs that did nothing and never will: whoever was to carry them out has not begun them. Of one whose lease is
    /// over nothing is said, whatever it did.
    NotStarted {
        /// Which.
        items: Vec<(JobId, Token)>,
    },
    /// What came of attempts that have ended for this node: to be told until an owner has answered, and nothing is
    /// held for it (F18).
    CameLate {
        /// Which, and what came out.
        items: Vec<(JobId, Token, Outcome)>,
    },
    /// Attempts of workers that are gone, which nobody has begun and nobody will: they go back (F14).
    NeverBegun {
        /// Which.
        items: Vec<(JobId, Token)>,
    },
    /// Outcomes are recorded.
    Recorded {
        /// From.
        from: ShardOwner,
        /// Which.
        items: Vec<(JobId, Token, Recorded)>,
    },
    /// A new owner asks about grants of its predecessors that the worker has not named: those that it
    /// has never seen are handed back, and never start here if they come after all (F14).
    Reconcile {
        /// From.
        from: ShardOwner,
        /// Which.
        items: Vec<(JobId, Token)>,
    },
    /// A message to a shard could not be delivered; offers and begins to it are to be sent again.
    ShardAway(ShardId),
    /// The shard's owner can be reached: a connection was made, the shard moved, or an owner has opened it. What
    /// it has not answered is sent again now; a hint, for timers send it anyway.
    ShardHere(ShardId),
    /// Take no new work, finish or hand back what is there.
    Drain,
    /// Drain limit reached: hand back or abandon what is left.
    DrainExpired,
    /// Time has passed.
    Tick,
}

/// An order of the worker.
#[derive(Clone, Debug)]
pub enum WorkerEffect {
    /// Offer room to a shard.
    SendOffer {
        /// To.
        shard: ShardId,
        /// Number.
        offer: OfferId,
        /// Room.
        slots: u32,
        /// Only these queues; empty means all.
        queues: Vec<Name>,
        /// Whether commands may be among the grants.
        commands: bool,
        /// To be kept while there is nothing, and answered then.
        waits: bool,
        /// The worst of the jobs whose worker was lost before may be among the grants if it lost at most so
        /// many; 0: none of them.
        apart: u32,
    },
    /// Renew.
    SendHeartbeat {
        /// To.
        shard: ShardId,
        /// Number; comes back with the renewal.
        beat: BeatId,
        /// Held, including attempts whose outcome is not recorded yet (F18).
        held: Vec<(JobId, Token)>,
    },
    /// About to begin an at-most-once attempt.
    SendBegin {
        /// To.
        shard: ShardId,
        /// Job.
        id: JobId,
        /// Token.
        token: Token,
    },
    /// Report; repeated until recorded.
    SendOutcomes {
        /// To.
        shard: ShardId,
        /// What.
        items: Vec<(JobId, Token, Outcome)>,
    },
    /// Not started and never will be under this token.
    SendHandBack {
        /// To.
        shard: ShardId,
        /// Which.
        items: Vec<(JobId, Token)>,
    },
    /// Run it.
    StartAttempt {
        /// What.
        grant: Grant,
        /// Owner.
        shard: ShardId,
        /// The lease goes on for this long from now, by this worker's own count.
        left: Span,
    },
    /// Tell the run that its lease goes on for this long from now (command supervisors need it).
    ExtendAttempt {
        /// Job.
        id: JobId,
        /// Token.
        token: Token,
        /// From now.
        left: Span,
    },
    /// Stop a run.
    StopAttempt {
        /// Job.
        id: JobId,
        /// Token.
        token: Token,
        /// Why.
        reason: StopReason,
    },
    /// Tell whoever waits for it what became of reports and hand-backs: answers that count, and only these.
    TellRecorded {
        /// Which.
        items: Vec<(JobId, Token, Recorded)>,
    },
    /// Nothing is left after a drain.
    Drained,
}

/// Why a run is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// Someone asked to cancel the job.
    CancelRequested,
    /// The lease ended or was lost: nothing it does counts any more.
    LeaseLost,
    /// The drain limit was reached.
    Draining,
}
