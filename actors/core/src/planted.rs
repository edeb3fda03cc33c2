//! What tests plant: a rule whose evaluation ends the process, and a build that is one version older.
//!
//! Owns: the places to plant them. Must never: be part of a release (feature `test-switches` only).

use crate::name::Name;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static HOOK: OnceLock<fn(&Name)> = OnceLock::new();

/// From now on told of each schedule that is about to be evaluated; it may panic. Only the first counts.
pub fn on_evaluate(hook: fn(&Name)) {
    let _ = HOOK.set(hook);
}

static PLAYS_OLDER: AtomicBool = AtomicBool::new(false);

/// From now on this process is one of the version before: it speaks and reads no more than that did.
pub fn play_older() {
    PLAYS_OLDER.store(true, Ordering::SeqCst);
}

/// Whether it is.
pub(crate) fn plays_older() -> bool {
    PLAYS_OLDER.load(Ordering::SeqCst)
}

/// A schedule is about to be evaluated.
pub(crate) fn evaluated(name: &Name) {
    if let Some(hook) = HOOK.get() {
        hook(name);
    }
}

/// A bound that is not kept, so that the tests of it can be seen to notice.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unbounded {
    /// Backlogs of a schedule are never merged.
    Backlogs,
    /// A step's budget of decisions is never spent.
    Budget,
    /// The bytes of what a step fires are not counted.
    Bytes,
}

#[cfg(test)]
thread_local! {
    /// Which one, in tests of this thread.
    pub(crate) static UNBOUNDED: std::cell::Cell<Option<Unbounded>> = const { std::cell::Cell::new(None) };
}

/// What a worker does not say again to an owner that is reached anew, so that the tests of it can be seen to notice.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsaid {
    /// Outcomes that are not recorded.
    Outcomes,
    /// Attempts that were handed back.
    HandBacks,
    /// The open offer.
    Offer,
    /// Begins that are not answered.
    Begins,
    /// What it still holds.
    Heartbeat,
}

#[cfg(test)]
thread_local! {
    /// Which one, in tests of this thread.
    pub(crate) static UNSAID: std::cell::Cell<Option<Unsaid>> = const { std::cell::Cell::new(None) };
}

/// A rule of schedules that is broken, so that the tests of it can be seen to notice.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// What an edit dropped fires under the next rule that asks for it (F25).
    DropLifted,
    /// A missed set counts what an edit dropped in it (F25).
    DropMissed,
}

#[cfg(test)]
thread_local! {
    /// Which one, in tests of this thread.
    pub(crate) static BROKEN: std::cell::Cell<Option<Broken>> = const { std::cell::Cell::new(None) };
}

#[cfg(test)]
impl Broken {
    /// Whether it is this one.
    pub(crate) fn is_planted(self) -> bool {
        BROKEN.get() == Some(self)
    }
}

#[cfg(test)]
static INSTANT_HOOK: OnceLock<fn(crate::time::StoreTime)> = OnceLock::new();

/// From now on told of each instant that a rule is found to ask for. Only the first counts.
#[cfg(test)]
pub(crate) fn on_instant(hook: fn(crate::time::StoreTime)) {
    let _ = INSTANT_HOOK.set(hook);
}

/// A rule asks for this instant.
#[cfg(test)]
pub(crate) fn reached(at: crate::time::StoreTime) {
    if let Some(hook) = INSTANT_HOOK.get() {
        hook(at);
    }
}
