//! This node's clock against the store's: measured with every look, shown, and judged.
//!
//! Owns: the measurement's way from the store's answer to whoever asks, and the word that this node holds back.
//! Enforced only where the store is on another node: a store in this process has the same clock. Must never: stop
//! what runs, or keep a lease from being renewed. Next: `fencepost_core::clock_trust`, `watch.rs`.

use crate::clock::SharedClock;
use fencepost_core::clock_trust::{ClockTrust, Offset, Reading};
use fencepost_core::time::{Span, StoreTime};
use metrics::gauge;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is known of this node's clock.
pub struct ClockWatch {
    clock: SharedClock,
    trust: Mutex<ClockTrust>,
    /// The store is on another node.
    is_far: AtomicBool,
    holds_back: AtomicBool,
}

/// The same for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockFacts {
    /// Where the offset lies; nothing before the first measurement.
    pub offset: Option<Offset>,
    /// Beyond this the node claims nothing.
    pub bound: Span,
    /// It claims nothing now.
    pub holds_back: bool,
}

impl ClockWatch {
    /// Has not measured yet, and does not hold back.
    pub fn new(clock: SharedClock, bound: Span) -> Arc<ClockWatch> {
        Arc::new(ClockWatch {
            clock,
            trust: Mutex::new(ClockTrust::new(bound)),
            is_far: AtomicBool::new(false),
            holds_back: AtomicBool::new(false),
        })
    }

    /// The store answers only after a while: it is elsewhere, and so is its clock.
    pub(crate) fn enforce(&self) {
        self.is_far.store(true, Ordering::SeqCst);
    }

    /// Both clocks of this node now.
    pub(crate) fn reading(&self) -> Reading {
        Reading {
            wall: self.clock.wall(),
            mono: self.clock.mono(),
        }
    }

    /// The store stated a time between these readings.
    pub(crate) fn measure(&self, asked: Reading, answered: Reading, stated: StoreTime) {
        self.lock().measure(asked, answered, stated);
        self.judge();
    }

    /// Looks at the clocks as they are now: they may have been set since the last measurement.
    pub(crate) fn judge(&self) {
        let (trust, now) = (self.lock(), self.reading());
        let Some(offset) = trust.offset(now) else { return };
        let is_trusted = trust.is_trusted(now);
        let bound = trust.bound();
        drop(trust);
        gauge!("fencepost_clock_offset_seconds").set(offset.middle() as f64 / 1e6);
        gauge!("fencepost_clock_offset_error_seconds").set(offset.error().0 as f64 / 1e6);
        let holds_back = !is_trusted && self.is_far.load(Ordering::SeqCst);
        gauge!("fencepost_clock_holds_back").set(f64::from(u8::from(holds_back)));
        if self.holds_back.swap(holds_back, Ordering::SeqCst) == holds_back {
            return;
        }
        let (offset, bound) = (offset.middle() / 1_000, bound.as_millis());
        match holds_back {
            true => tracing::error!(
                offset_ms = offset,
                bound_ms = bound,
                "this node's clock is not proven to be near the store's: it takes and gives no work; set the clock"
            ),
            false => tracing::info!(offset_ms = offset, "this node's clock is near the store's again"),
        }
    }

    /// Whether this node takes and gives no work.
    pub(crate) fn holds_back(&self) -> bool {
        self.holds_back.load(Ordering::SeqCst)
    }

    /// For people.
    pub(crate) fn facts(&self) -> ClockFacts {
        let trust = self.lock();
        ClockFacts {
            offset: trust.offset(self.reading()),
            bound: trust.bound(),
            holds_back: self.holds_back(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, ClockTrust> {
        self.trust.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
