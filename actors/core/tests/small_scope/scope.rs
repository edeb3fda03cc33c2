//! How much of the world is explored, and which fault is planted in it.
//!
//! Owns: the bounds. Must never: change while a world is explored. Next: `world.rs`.

use crate::make;
use fencepost_core::ids::{JobId, Slot, WorkerId};
use fencepost_core::job::{Delivery, JobSpec, RetryPolicy};
use fencepost_core::limits;
use fencepost_core::name::Name;
use fencepost_core::time::Span;
use std::sync::Arc;

/// Length of a lease.
pub const LEASE: Span = Span::from_secs(30);
/// Between heartbeats.
pub const HEARTBEAT: Span = Span::from_secs(10);
/// Time passes in steps of this length.
pub const STEP: Span = Span::from_secs(5);
/// A short time: what lost a worker is due again after it, and a worker has heard every shard.
pub const MOMENT: Span = Span::from_millis(limits::APART_SETTLE_MS);
const _: () = assert!(limits::WORKER_LOST_WAIT_MS <= limits::APART_SETTLE_MS && MOMENT.0 < STEP.0);

/// What is explored.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Of the one job.
    pub delivery: Delivery,
    /// At the resource.
    pub guard: GuardKind,
    /// Attempts that the job may be given.
    pub attempt_count_max: u32,
    /// Events in a row.
    pub depth: u8,
    /// How often the rarer events may happen.
    pub budget: Budget,
    /// Only the first worker is there.
    pub lone: bool,
    /// Of each worker: with two, an idle worker's offer waits at the shard.
    pub slots: u32,
    /// What is wrong.
    pub fault: Option<Fault>,
}

/// How often each of the rarer events may happen in one history.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub struct Budget {
    /// All of these together.
    pub all: u8,
    /// A new owner opens the shard and the old one is gone.
    pub restarts: u8,
    /// A new owner opens the shard while the old one goes on.
    pub takeovers: u8,
    /// A worker dies; its node starts anew.
    pub deaths: u8,
    /// A client cancels.
    pub cancels: u8,
    /// A heartbeat interval passes and messages get through.
    pub beats: u8,
    /// Longer than a lease passes and nothing gets through.
    pub silences: u8,
    /// The same, while somebody stands still.
    pub pauses: u8,
    /// A commit hangs.
    pub hangs: u8,
    /// A message comes twice.
    pub doubles: u8,
    /// A worker drains.
    pub drains: u8,
}

/// What the resource checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardKind {
    /// It remembers idempotency keys.
    Keys,
    /// It knows tokens only; attempts after the first seal before they apply (F10).
    Tokens,
    /// It applies whatever comes.
    Nothing,
}

/// Something that is wrong on purpose: the explorer must find each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The owner takes an outcome for the current attempt's, whatever its token.
    TokenNotChecked,
    /// The owner takes a late heartbeat for life: it leases again what it has reaped.
    RenewsReaped,
    /// The owner does not charge an attempt whose worker was lost.
    CrashNotCounted,
    /// The owner settles an unknown commit by reading back (F2).
    ReadsBack,
    /// The store does not compare epochs.
    EpochNotChecked,
    /// The owner's shell releases effects before their batch is durable (F3).
    ReleasesEarly,
    /// The owner's shell answers a cancel that it never wrote.
    CancelNotWritten,
    /// The resource compares tokens, but nobody seals (F10).
    FenceOnly,
    /// The resource seals, but does not compare tokens.
    TokenIgnoredAtResource,
    /// The worker starts an at-most-once attempt before its begin is durable (F15).
    StartsBeforeBegin,
    /// The worker hands back what it has started when it drains (F14).
    HandsBackStarted,
}

impl Scope {
    /// All kinds of events, at most so many of the rarer ones in one history.
    pub fn all(delivery: Delivery, guard: GuardKind, rare: u8, depth: u8) -> Scope {
        Scope {
            delivery,
            guard,
            attempt_count_max: 2,
            depth,
            budget: Budget {
                all: rare,
                restarts: 2,
                takeovers: 1,
                deaths: 1,
                cancels: 1,
                beats: 2,
                silences: 2,
                pauses: 1,
                hangs: 1,
                doubles: 2,
                drains: 1,
            },
            lone: false,
            slots: 1,
            fault: None,
        }
    }

    /// Whether this is what is wrong.
    pub fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// What the job is. Waits between attempts are nil, so that histories are short; but for the one after a lost
    /// worker, which is everybody's.
    pub fn spec(&self) -> JobSpec {
        JobSpec {
            retry: RetryPolicy {
                attempt_count_max: self.attempt_count_max,
                backoff_first: Span::ZERO,
                backoff_cap: Span::ZERO,
            },
            delivery: self.delivery,
            ..make::spec()
        }
    }
}

/// The one job.
pub fn job_id() -> JobId {
    JobId::fresh(Slot::new(7).unwrap(), [1; 14])
}

/// A worker's identity.
pub fn worker_id(node: usize, boot: u64) -> WorkerId {
    WorkerId {
        node: name(["a", "b"][node]),
        boot,
    }
}

/// A name that is one.
pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// The specification, shared.
pub fn shared(spec: JobSpec) -> Arc<JobSpec> {
    Arc::new(spec)
}
