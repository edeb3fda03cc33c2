//! Faults of the model store: planned call by call, crashes, and bugs planted for tests of tests.
//!
//! Owns: their names. Must never: draw chance; a plan is the caller's and seeded by it.
//! Next: `mod.rs`.

use crate::store::{Commit, Open};
use fencepost_core::time::Span;

/// What befalls one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallFate {
    /// Before the call is looked at.
    pub delay: Span,
    /// Between its write and the end of its sync (a slow disk).
    pub sync_delay: Span,
    /// What goes wrong.
    pub fault: Option<Fault>,
}

/// What may go wrong with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Not applied, and the caller knows.
    Unavailable,
    /// Not applied, and the caller does not know.
    RequestLost,
    /// Applied and durable, and the caller does not know.
    AnswerLost,
    /// The sync fails: the store is broken until it crashes.
    SyncError,
}

/// Decides what befalls each call, in order of the calls.
pub trait FaultPlan: Send {
    /// Of a commit.
    fn on_commit(&mut self, request: &Commit) -> CallFate;
    /// Of an open.
    fn on_open(&mut self, request: &Open) -> CallFate;
    /// Of a read or check.
    fn on_read(&mut self) -> CallFate;
}

/// Nothing ever goes wrong.
pub struct NoFaults;

impl FaultPlan for NoFaults {
    fn on_commit(&mut self, _request: &Commit) -> CallFate {
        CallFate::default()
    }

    fn on_open(&mut self, _request: &Open) -> CallFate {
        CallFate::default()
    }

    fn on_read(&mut self) -> CallFate {
        CallFate::default()
    }
}

/// How the store dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The process is killed: the kernel keeps what was written.
    Process,
    /// The power fails: of the unsynced commits only the first `kept` reached the disk; the next
    /// one is torn and counts as absent.
    Power {
        /// How many; zero for a disk that kept nothing.
        kept: usize,
    },
}

#[cfg(any(test, feature = "planted"))]
pub use planted::*;

#[cfg(any(test, feature = "planted"))]
mod planted {
    use crate::batch::{Batch, RawExpect, RawWrite};
    use crate::rules::{Group, State};
    use crate::store::{Commit, Committed, Open};
    use fencepost_core::ids::{BatchNo, Epoch, Scope};
    use std::sync::Arc;

    /// Bugs that the conformance suite must find.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Planted {
        /// Reads show rows whose sync is pending (F5).
        ReadUnsynced,
        /// A commit is answered before its sync (P1).
        AckBeforeSync,
        /// The epoch of a commit is not looked at (F2). No history of a cell shows it alone: an owner draws a new
        /// holder for each open, so whoever comes with an old epoch comes with an old holder, too. See `OwnerIgnored`.
        EpochIgnored,
        /// The holder of a commit is not looked at (F6). Shown alone only where two holders have one epoch, which
        /// opens prevent (and a region that lost an open does not). See `OwnerIgnored`.
        HolderIgnored,
        /// Neither is looked at: only numbers are left between an old owner and the rows.
        OwnerIgnored,
        /// A number beyond the next is taken (F2).
        GapAccepted,
        /// A number committed before is applied again (F2). What names the version that it replaces is refused then
        /// (F4), so that the same bytes are once in and once in conflict.
        DuplicateApplied,
        /// The digest of a repeated number is not compared (F2).
        DigestIgnored,
        /// Expectations are not looked at (F4).
        ExpectationsIgnored,
        /// A refused batch leaves its rows behind.
        RefusedBatchLeavesTrace,
        /// Open raises whatever epoch there is (F6).
        OpenWithoutCompare,
        /// Open needs no assignment (F6).
        OpenWithoutAssignment,
        /// A repeated open with the same nonce is refused or raises again (F6).
        OpenForgetsNonce,
        /// A takeover leaves the epoch as it was (P4).
        EpochNotRaised,
    }

    /// All of them.
    pub const PLANTED: [Planted; 14] = [
        Planted::ReadUnsynced,
        Planted::AckBeforeSync,
        Planted::EpochIgnored,
        Planted::HolderIgnored,
        Planted::OwnerIgnored,
        Planted::GapAccepted,
        Planted::DuplicateApplied,
        Planted::DigestIgnored,
        Planted::ExpectationsIgnored,
        Planted::RefusedBatchLeavesTrace,
        Planted::OpenWithoutCompare,
        Planted::OpenWithoutAssignment,
        Planted::OpenForgetsNonce,
        Planted::EpochNotRaised,
    ];

    /// The request as a store with the bug would judge it.
    pub(in super::super) fn bent(bug: Option<Planted>, state: &impl State, request: &Commit) -> Commit {
        let mut bent = request.clone();
        let Some(row) = state.scope(request.scope) else {
            return bent;
        };
        match bug {
            Some(Planted::EpochIgnored) => bent.epoch = row.epoch,
            Some(Planted::HolderIgnored) => bent.holder = row.holder,
            Some(Planted::OwnerIgnored) => (bent.epoch, bent.holder) = (row.epoch, row.holder),
            Some(Planted::GapAccepted) if request.number > row.batch => bent.number = BatchNo(row.batch.0 + 1),
            Some(Planted::DigestIgnored) if request.number == row.batch => {
                bent.batch = Arc::new(Batch {
                    digest: row.digest,
                    ..(*request.batch).clone()
                });
            }
            Some(Planted::ExpectationsIgnored) => bent.batch = Arc::new(without_expectations(&request.batch)),
            _ => {}
        }
        bent
    }

    fn without_expectations(batch: &Batch) -> Batch {
        let mut batch = batch.clone();
        for write in &mut batch.writes {
            if let RawWrite::Put { expect, .. } = write {
                *expect = RawExpect::Any;
            }
        }
        batch
    }

    /// The answer as a store with the bug would give it.
    pub(in super::super) fn bent_answer<S: State>(
        bug: Option<Planted>,
        group: &mut Group<'_, S>,
        request: &Commit,
        answer: Committed,
    ) -> Committed {
        match (bug, &answer) {
            (Some(Planted::DuplicateApplied), Committed::Already(_)) => group
                .state_scope(request.scope)
                .and_then(|row| group.apply(row, request).ok())
                .unwrap_or(answer),
            _ => answer,
        }
    }

    /// The open as a store with the bug would judge it.
    pub(in super::super) fn bent_open(bug: Option<Planted>, state: &impl State, request: &Open) -> Open {
        let mut bent = request.clone();
        let row = state.scope(request.scope);
        match bug {
            Some(Planted::OpenWithoutCompare) => bent.expected = row.map_or(Epoch(0), |row| row.epoch),
            Some(Planted::OpenWithoutAssignment) => {
                if let Some(node) = assigned(state, request.scope) {
                    bent.node = node;
                }
            }
            Some(Planted::OpenForgetsNonce) if row.is_some_and(|row| row.holder == request.holder) => {
                bent.expected = Epoch(u64::MAX);
            }
            _ => {}
        }
        bent
    }

    /// The epoch that a store with the bug would give to a new holder.
    pub(in super::super) fn bent_epoch(bug: Option<Planted>, before: Option<Epoch>, raised: Epoch) -> Epoch {
        match (bug, before) {
            (Some(Planted::EpochNotRaised), Some(before)) => before,
            _ => raised,
        }
    }

    fn assigned(state: &impl State, scope: Scope) -> Option<fencepost_core::name::Name> {
        let key = crate::keys::key_bytes(&fencepost_core::row::RowKey::Assignment(scope));
        let value = state.value(&key).ok()??;
        match crate::codec::decode_row(&key, &value).ok()? {
            fencepost_core::row::Row::Assignment(row) => Some(row.node),
            _ => None,
        }
    }
}
