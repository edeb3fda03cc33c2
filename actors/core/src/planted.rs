//! Bugs that tests and the simulator plant in the machines, to see that what checks them notices.
//!
//! Owns: the one switch. Must never: be part of a release (tests and the simulator only; the hooks with the feature
//! `test-switches`). Next: `planted.rs` of the package `fencepost`, `sim/src/bugs.rs`.

#[cfg(any(test, feature = "test-switches"))]
mod hooks;

#[cfg(any(test, feature = "test-switches"))]
pub use hooks::*;

/// A rule that is broken, so that what checks it can be seen to notice.
#[cfg(any(test, madsim))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Backlogs of a schedule are never merged (P7).
    BacklogsUnmerged,
    /// A step's budget of decisions is never spent (P7).
    BudgetUnspent,
    /// The bytes of what a step fires are not counted (P7).
    BytesUncounted,
    /// To an owner that is reached anew, outcomes that are not recorded are not said again.
    OutcomesUnsaid,
    /// Attempts that were handed back are not said again to an owner that is reached anew.
    HandBacksUnsaid,
    /// The open offer is not said again to an owner that is reached anew.
    OfferUnsaid,
    /// Begins that are not answered are not said again to an owner that is reached anew.
    BeginsUnsaid,
    /// What the worker still holds is not said again to an owner that is reached anew.
    HeartbeatUnsaid,
    /// What an edit dropped fires under the next rule that asks for it (F25).
    DropLifted,
    /// A missed set counts what an edit dropped in it (F25).
    DropMissed,
    /// Rows of the newest level are written whatever level the cell has.
    AheadOfLevel,
    /// An attempt whose worker died does not count (R02).
    LossUncounted,
}

#[cfg(test)]
thread_local! {
    /// Which one, in tests of this thread.
    static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Which one, in the simulation that this process runs.
#[cfg(all(madsim, not(test)))]
static PLANTED: std::sync::OnceLock<Bug> = std::sync::OnceLock::new();

#[cfg(any(test, madsim))]
impl Bug {
    /// Whether it is this one.
    pub(crate) fn is_planted(self) -> bool {
        #[cfg(test)]
        let planted = PLANTED.get();
        #[cfg(not(test))]
        let planted = PLANTED.get().copied();
        planted == Some(self)
    }

    /// Runs a test with it; what the test says if it notices.
    #[cfg(test)]
    pub(crate) fn noticed_by(self, test: fn()) -> Option<String> {
        PLANTED.set(Some(self));
        let ended = std::panic::catch_unwind(test);
        PLANTED.set(None);
        let said = ended.err()?;
        let plain = said.downcast_ref::<&str>().copied().map(str::to_owned);
        Some(said.downcast_ref::<String>().cloned().or(plain).unwrap_or_default())
    }

    /// Plants it in this process, for good.
    #[cfg(all(madsim, not(test)))]
    pub fn plant(self) {
        let _ = PLANTED.set(self);
    }
}
