//! The bug that the simulator plants in the machines, to prove that its checkers find it.
//!
//! Owns: the switch. This module and every use of it exist only under `cfg(madsim)`. Must never: be on unless a run
//! asks for it by name. Next: `planted.rs` of the package `fencepost`, `lease_manager/outcomes.rs`.

use std::sync::atomic::{AtomicBool, Ordering};

static FORGETS_LOSSES: AtomicBool = AtomicBool::new(false);

/// From now on an attempt whose worker died does not count.
pub fn forget_losses() {
    FORGETS_LOSSES.store(true, Ordering::SeqCst);
}

/// Whether it is so.
pub(crate) fn forgets_losses() -> bool {
    FORGETS_LOSSES.load(Ordering::SeqCst)
}
