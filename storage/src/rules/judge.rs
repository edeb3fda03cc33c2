//! The two judgements: may this open raise the epoch, and does this batch come next.
//!
//! Owns: PROTOCOL F2 and F6 as pure functions. Must never: look at rows. Next: `mod.rs`.

use crate::store::{Commit, Open};
use fencepost_core::ids::{BatchNo, Epoch};
use fencepost_core::row::ScopeRow;
use fencepost_core::time::StoreTime;

/// What a commit's scope, holder, epoch and number say about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It comes next; the scope row as it is now.
    Apply(ScopeRow),
    /// It was committed before; the scope row as it is now.
    Already(ScopeRow),
    /// It owns nothing any more, or leaves a gap.
    Stale,
    /// Another batch carries this number.
    Conflict(String),
}

/// F2: accepted only as last + 1 of this epoch and holder; at or below the last it was committed
/// before (the digest is compared for the last); all else is refused.
pub fn judge_commit(scope: Option<&ScopeRow>, request: &Commit) -> Judgement {
    let Some(row) = scope else {
        return Judgement::Stale;
    };
    if row.epoch != request.epoch || row.holder != request.holder || request.number == BatchNo(0) {
        return Judgement::Stale;
    }
    if Some(request.number.0) == row.batch.0.checked_add(1) {
        return Judgement::Apply(row.clone());
    }
    if request.number > row.batch {
        return Judgement::Stale;
    }
    if request.number == row.batch && request.batch.digest != row.digest {
        return Judgement::Conflict(format!(
            "batch {} was committed before with other bytes",
            request.number.0
        ));
    }
    Judgement::Already(row.clone())
}

/// What becomes of an open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenJudgement {
    /// The epoch rises to this.
    Raise(Epoch),
    /// This holder opened it already under that expectation: the same answer.
    Same(ScopeRow),
    /// The epoch is another one.
    Moved,
    /// The assignment does not name the node.
    NotAssigned,
}

/// F6: a compare-and-set for the assigned node; the same nonce gets the same answer.
pub fn judge_open(scope: Option<&ScopeRow>, is_assigned: bool, request: &Open) -> OpenJudgement {
    let current = scope.map_or(Epoch(0), |row| row.epoch);
    let next = request.expected.0.checked_add(1).map(Epoch);
    if let Some(row) = scope
        && row.holder == request.holder
        && Some(row.epoch) == next
    {
        return OpenJudgement::Same(row.clone());
    }
    if current != request.expected {
        return OpenJudgement::Moved;
    }
    if !is_assigned {
        return OpenJudgement::NotAssigned;
    }
    next.map_or(OpenJudgement::Moved, OpenJudgement::Raise)
}

pub(super) fn opened_row(request: &Open, epoch: Epoch, at: StoreTime) -> ScopeRow {
    ScopeRow {
        scope: request.scope,
        epoch,
        holder: request.holder,
        batch: BatchNo(0),
        digest: [0; 32],
        at,
    }
}
