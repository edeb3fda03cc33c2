//! The store's time: two readings in, stated time out.
//!
//! Owns: where the clocks are handed in. All decisions are `StoreClock`'s. Must never: read a clock
//! itself. Next: `fencepost_core::store_clock`.

use crate::store::Stated;
use fencepost_core::store_clock::{ClockEvent, StoreClock};
use fencepost_core::time::{Monotonic, StoreTime};
use std::sync::{Arc, Mutex, PoisonError};

/// Readings of this machine's clocks; the caller's clock module implements it.
pub trait Clock: Send + Sync + 'static {
    /// Wall time.
    fn wall(&self) -> StoreTime;
    /// Monotonic time of this process.
    fn mono(&self) -> Monotonic;
}

/// States time: one per store.
pub struct TimeKeeper {
    clock: Arc<dyn Clock>,
    state: Mutex<StoreClock>,
}

impl TimeKeeper {
    /// Starts above `floor`, the latest time ever committed.
    pub fn new(clock: Arc<dyn Clock>, floor: StoreTime) -> TimeKeeper {
        TimeKeeper {
            clock,
            state: Mutex::new(StoreClock::new(floor)),
        }
    }

    /// The time as of now: two clock readings and a few comparisons.
    pub fn state(&self) -> Stated {
        let (reading, floor) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let reading = state.observe(self.clock.wall(), self.clock.mono());
            (reading, state.floor())
        };
        if let Some(event) = reading.event {
            report(event, floor);
        }
        Stated {
            time: reading.time,
            doubt: reading.doubt,
        }
    }

    /// Monotonic time, for pacing.
    pub fn mono(&self) -> Monotonic {
        self.clock.mono()
    }

    /// An operator says that the clock is right: a doubt is over with this. Whether there was one.
    pub fn confirm(&self) -> bool {
        // What the clock shows by now is what is confirmed.
        self.state();
        let was_in_doubt = self.state.lock().unwrap_or_else(PoisonError::into_inner).confirm();
        self.state();
        was_in_doubt
    }
}

fn report(event: ClockEvent, floor: StoreTime) {
    match event {
        ClockEvent::DoubtBegan { ahead } => {
            tracing::error!(ahead_ms = ahead.as_millis(), "clock doubt: the wall clock leapt ahead");
        }
        ClockEvent::DoubtSettled(how) => tracing::warn!(?how, "clock doubt settled"),
        ClockEvent::LeapUndone => tracing::warn!("clock doubt over: the wall clock went back"),
        ClockEvent::Held { behind } => {
            tracing::warn!(
                behind_ms = behind.as_millis(),
                "the wall clock lies below store time, which is held"
            );
        }
        ClockEvent::HoldEnded => tracing::warn!("the wall clock has caught up with store time"),
        ClockEvent::FloorLowered { from, .. } => {
            tracing::error!(from = from.0, to = floor.0, "store time was lowered to the wall clock");
        }
    }
}
