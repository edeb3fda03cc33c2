//! What tests hang into the machines: a rule whose evaluation ends the process, and a build that is one version older.
//!
//! Owns: the hooks. Must never: be part of a release (feature `test-switches` only). Next: `process/switches.rs` of the
//! package `fencepost`.

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
