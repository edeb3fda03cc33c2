//! The store's time: two readings in, stated time out.
//!
//! Owns: where the clocks are handed in. All decisions are `StoreClock`'s. Must never: read a clock
//! itself. Next: `fencepost_core::store_clock`.

use crate::store::Stated;
use fencepost_core::store_clock::{ClockEvent, Line, StoreClock};
use fencepost_core::time::{BootTime, Monotonic, StoreTime};
use std::sync::{Arc, Mutex, PoisonError};

/// Readings of this machine's clocks; the caller's clock module implements it.
pub trait Clock: Send + Sync + 'static {
    /// Wall time.
    fn wall(&self) -> StoreTime;
    /// Monotonic time of this process.
    fn mono(&self) -> Monotonic;
    /// Time since the machine booted, where that can be told.
    fn boot(&self) -> Option<BootTime> {
        None
    }
}

/// The line of a store's clock, in a form that outlives a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptLine {
    /// The wall clock was believed to show `wall` then.
    pub boot: BootTime,
    /// See `boot`.
    pub wall: StoreTime,
}

/// Where a line is kept. Losing it loses only the sight of leaps while no process ran.
pub trait LineKeep: Send + Sync + 'static {
    /// What was kept last.
    fn load(&self) -> Option<KeptLine>;
    /// Keeps another instead.
    fn save(&self, line: &KeptLine);
}

/// States time: one per store.
pub struct TimeKeeper {
    clock: Arc<dyn Clock>,
    state: Mutex<StoreClock>,
    kept: Option<Kept>,
}

struct Kept {
    keep: Box<dyn LineKeep>,
    /// The line kept last.
    line: Mutex<Option<Line>>,
}

impl TimeKeeper {
    /// Starts above `floor`, the latest time ever committed.
    pub fn new(clock: Arc<dyn Clock>, floor: StoreTime) -> TimeKeeper {
        TimeKeeper {
            clock,
            state: Mutex::new(StoreClock::new(floor)),
            kept: None,
        }
    }

    /// The same, going on with the line that an earlier process of the same boot kept: a leap of the wall clock
    /// while none ran is doubt, like any other (F20). After a boot the wall clock is believed.
    pub fn keeping(clock: Arc<dyn Clock>, floor: StoreTime, keep: Box<dyn LineKeep>) -> TimeKeeper {
        let line = keep.load().zip(clock.boot()).and_then(|(kept, boot)| {
            let is_same = boot.id == kept.boot.id && boot.since >= kept.boot.since;
            is_same.then(|| Line {
                wall: kept.wall + (boot.since - kept.boot.since),
                mono: clock.mono(),
            })
        });
        let state = match line {
            Some(line) => StoreClock::expecting(floor, line),
            None => StoreClock::new(floor),
        };
        TimeKeeper {
            clock,
            state: Mutex::new(state),
            kept: Some(Kept {
                keep,
                line: Mutex::new(line),
            }),
        }
    }

    /// The time as of now: two clock readings and a few comparisons.
    pub fn state(&self) -> Stated {
        let (reading, floor, line) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let reading = state.observe(self.clock.wall(), self.clock.mono());
            (reading, state.floor(), state.line())
        };
        self.keep(line);
        if let Some(event) = reading.event {
            report(event, floor);
        }
        Stated {
            time: reading.time,
            doubt: reading.doubt,
        }
    }

    /// Keeps a line that was drawn anew: every few minutes at most, while the clock runs steadily.
    fn keep(&self, line: Option<Line>) {
        let Some((kept, line)) = self.kept.as_ref().zip(line) else {
            return;
        };
        let mut last = kept.line.lock().unwrap_or_else(PoisonError::into_inner);
        if *last == Some(line) {
            return;
        }
        *last = Some(line);
        // In this order a pause between the two readings hides a leap rather than feigning one.
        let Some(boot) = self.clock.boot() else { return };
        let since = boot.since - self.clock.mono().since(line.mono);
        kept.keep.save(&KeptLine {
            boot: BootTime { since, ..boot },
            wall: line.wall,
        });
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
