//! Bugs planted for the simulator, to prove that its checkers find them.
//!
//! Owns: the switch. This module and every use of it exist only under `cfg(madsim)`; no release binary
//! holds any of it. Must never: be on unless a run asks for it by name. Next: `sim/src/bugs.rs`.

use std::sync::atomic::{AtomicU8, Ordering};

/// A planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Bug {
    /// Effects leave before their batch is durable (F3).
    ReleasedBeforeDurable = 1,
    /// A commit of unknown outcome counts as durable (F2).
    UnknownTakenForDurable,
    /// A commit of unknown outcome is waited for instead of sent again (F2).
    UnknownNeverSentAgain,
    /// The idempotency key contains the attempt's number.
    KeyPerAttempt,
    /// Due-ness is decided on a clock that is ahead of the store's.
    FiresAhead,
    /// After a start, schedules go on from now: what was missed gets no fate.
    MissedWindowDropped,
    /// After a start, the last stretch is decided again under another life: a job's id does not come from
    /// its occurrence.
    FiresUnderAnotherId,
    /// A cancel finds a finished job as it was before its end.
    CancelSeesTheUnfinished,
    /// A cancel is answered as done while the attempt still runs.
    RunningToldAsCancelled,
    /// A target that answers with a fault of its own is taken to have done its work.
    FaultTakenForSuccess,
    /// "Not now" is told as a fault of the server.
    NotNowToldAsFault,
    /// The row of a run-now is not found when it is sent again (F26).
    RequestForgotten,
    /// Due-ness is decided by the node's own wall clock.
    DueByOwnClock,
    /// A local time that exists twice fires in both passes, whatever the policy.
    RepeatedHourFiresTwice,
    /// A local time that does not exist never fires, whatever the policy.
    GapTimeDropped,
    /// A job that may run once only is tried again.
    OnceTriedAgain,
    /// An attempt whose worker died does not count (R02).
    LostWorkerUncounted,
    /// What a step answers that wrote nothing leaves before the batches that it has read (F3), unproven (F32).
    WriteFreeReplyEarly,
    /// A job's id is made of its idempotency key (F26).
    KeyNamesTheJob,
    /// A start that is told another number of shards goes on with it (F28).
    ShardCountChanged,
    /// A report that comes after its attempt ended here is told as recorded, and nobody hears it (F18).
    LateWordTakenForRecorded,
    /// An attempt that its worker gives back stays where it is (F14).
    HandBackDropped,
    /// Who has an attempt ends it no earlier than its owner does: all clocks run alike (F13).
    FenceWithoutMargin,
}

static PLANTED: AtomicU8 = AtomicU8::new(0);

/// Plants a bug in this process.
pub fn plant(bug: Bug) {
    PLANTED.store(bug as u8, Ordering::SeqCst);
    if bug == Bug::LostWorkerUncounted {
        fencepost_core::planted::Bug::LossUncounted.plant();
    }
}

/// Whether this bug is planted.
pub fn is_planted(bug: Bug) -> bool {
    PLANTED.load(Ordering::SeqCst) == bug as u8
}
