//! What a shard's actor is sent, and how it answers.
//!
//! Owns: the messages between gateway, worker and shard within a node. Must never: be a promise by
//! itself: what must happen is found by scanning rows (PROTOCOL F8). Next: `shard_actor.rs`.

use crate::gateway::{ShardReply, ShardRequest};
use fencepost_core::ids::{BeatId, JobId, OfferId, Token, WorkerId};
use fencepost_core::job::Outcome;
use fencepost_core::name::Name;
use fencepost_core::refusal::{Refusal, RefusalKind};
use fencepost_core::worker::io::WorkerInput;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Where a client's answer goes.
pub type Answering = oneshot::Sender<Result<ShardReply, Refusal>>;

/// The way back to a worker: false when the message was not taken (it is a hint then).
pub type WorkerLink = Arc<dyn Fn(WorkerInput) -> bool + Send + Sync>;

/// A message for a shard.
pub enum ToShard {
    /// A client's request.
    Client(Box<ShardRequest>, Answering),
    /// A worker is there and may be hinted. It is a hint itself: each message of a worker says so too.
    WorkerHere(WorkerId, WorkerLink),
    /// A worker is gone for good (its node drained, or a claim has ended).
    WorkerGone(WorkerId),
    /// A worker's message, with the way back to it.
    Worker(WorkerId, WorkerLink, FromWorker),
    /// That way is broken; nothing is known of the worker.
    WorkerUnreached(WorkerId, WorkerLink),
    /// Answers how the shard is.
    Probe(oneshot::Sender<ShardProbe>),
    /// No new grants from now on; what is stamped becomes durable.
    Drain,
    /// Answers when nothing is stamped and not durable.
    Settled(oneshot::Sender<()>),
    /// Whether this node hosts the shard: it opens it now, or closes it and lets it be.
    Host(bool),
    /// Asks the store whether the shard is still this owner's, and closes it if it is not.
    Prove,
    /// Ends the actor, which lets go of the store.
    Stop,
}

/// What a probe sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardProbe {
    /// Open, loaded, replayed and audited; it steps.
    pub open: bool,
    /// The store does not answer it: it renews leases and takes nothing new.
    pub away: bool,
    /// Why it is kept shut, after its number in a sentence.
    pub refused: Option<&'static str>,
    /// Schedules that are alive.
    pub schedules: u64,
}

impl ShardProbe {
    /// Of a shard that does not answer.
    pub fn silent() -> ShardProbe {
        ShardProbe {
            refused: Some("does not answer"),
            ..ShardProbe::default()
        }
    }

    /// Whether it did not answer.
    pub fn is_silent(&self) -> bool {
        self.refused == ShardProbe::silent().refused
    }

    /// Whether it is shut for a reason that does not pass by itself.
    pub fn is_kept_shut(&self) -> bool {
        !self.open && self.refused.is_some() && !self.is_silent()
    }
}

/// What a worker tells a shard: the sending half of `WorkerEffect`.
#[derive(Clone, Debug)]
pub enum FromWorker {
    /// Room.
    Offer {
        /// Number.
        offer: OfferId,
        /// Room.
        slots: u32,
        /// Only these queues.
        queues: Vec<Name>,
        /// To be kept while there is nothing.
        waits: bool,
        /// The worst of the jobs that run apart may be among the grants if it lost at most so many workers.
        apart: u32,
        /// Whether commands may be among the grants.
        commands: bool,
    },
    /// Still held.
    Heartbeat {
        /// Number; comes back with the renewal.
        beat: BeatId,
        /// What.
        held: Vec<(JobId, Token)>,
    },
    /// About to begin an at-most-once attempt.
    Begin {
        /// Job.
        id: JobId,
        /// Token.
        token: Token,
    },
    /// Outcomes.
    Outcomes {
        /// What.
        items: Vec<(JobId, Token, Outcome)>,
    },
    /// Not started and never will be.
    HandBack {
        /// What.
        items: Vec<(JobId, Token)>,
    },
}

impl actix::Message for ToShard {
    type Result = ();
}

/// What callers are told while a shard cannot take requests. Nothing was done.
pub fn shard_away() -> Refusal {
    Refusal::new(
        RefusalKind::Unavailable,
        "shard_unavailable",
        "the part of the cell that owns this is starting, draining or waiting for the store",
        "send the same request again in a moment",
    )
}

/// What callers are told when a commit's end is not known to this shell any more.
pub fn outcome_unknown() -> Refusal {
    Refusal::new(
        RefusalKind::Unavailable,
        crate::problem::OUTCOME_UNKNOWN,
        "the request was taken, but whether it became durable is not known",
        "look whether it is done, or send it again with the same idempotency key, id or name: it is not done twice",
    )
}

/// What callers are told when the row that decides cannot be read. Nothing was done.
pub fn row_unreadable() -> Refusal {
    Refusal::new(
        RefusalKind::Unavailable,
        "row_unreadable",
        "a row that this depends on cannot be read; it was put into quarantine",
        "see the quarantine list and the log; restore the row from a backup before trying again",
    )
}
