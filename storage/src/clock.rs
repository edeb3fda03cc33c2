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
    state: Mutex<State>,
    kept: Option<Kept>,
}

struct State {
    clock: StoreClock,
    /// The line that stands, and how often one was drawn.
    line: Option<Line>,
    drawn: u64,
}

struct Kept {
    keep: Box<dyn LineKeep>,
    /// Of the line kept last. Readers may come here in another order than they drew lines: an older one is not kept
    /// over a newer.
    drawn: Mutex<u64>,
}

impl State {
    fn new(clock: StoreClock) -> Mutex<State> {
        let (line, drawn) = (clock.line(), 0);
        Mutex::new(State { clock, line, drawn })
    }

    /// The line with its number.
    fn line(&mut self) -> Option<(u64, Line)> {
        let line = self.clock.line();
        if line != self.line {
            self.line = line;
            self.drawn += 1;
        }
        line.map(|line| (self.drawn, line))
    }
}

impl TimeKeeper {
    /// Starts above `floor`, the latest time ever committed.
    pub fn new(clock: Arc<dyn Clock>, floor: StoreTime) -> TimeKeeper {
        TimeKeeper {
            clock,
            state: State::new(StoreClock::new(floor)),
            kept: None,
        }
    }

    /// The same, going on with the line that an earlier process of the same boot kept: a leap of the wall clock
    /// while none ran is doubt, like any other (F20). After a boot the wall clock is believed.
    pub fn keeping(clock: Arc<dyn Clock>, floor: StoreTime, keep: Box<dyn LineKeep>) -> TimeKeeper {
        // In this order a pause between the two readings hides a leap rather than feigning one.
        let (mono, boot) = (clock.mono(), clock.boot());
        let line = keep.load().zip(boot).and_then(|(kept, boot)| {
            let is_same = boot.id == kept.boot.id && boot.since >= kept.boot.since;
            is_same.then(|| Line {
                wall: kept.wall + (boot.since - kept.boot.since),
                mono,
            })
        });
        let state = match line {
            Some(line) => StoreClock::expecting(floor, line),
            None => StoreClock::new(floor),
        };
        TimeKeeper {
            clock,
            state: State::new(state),
            kept: Some(Kept {
                keep,
                drawn: Mutex::new(0),
            }),
        }
    }

    /// The time as of now: two clock readings and a few comparisons.
    pub fn state(&self) -> Stated {
        let (reading, floor, line) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let reading = state.clock.observe(self.clock.wall(), self.clock.mono());
            (reading, state.clock.floor(), state.line())
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
    fn keep(&self, line: Option<(u64, Line)>) {
        let Some((kept, (drawn, line))) = self.kept.as_ref().zip(line) else {
            return;
        };
        let mut last = kept.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        if *last >= drawn {
            return;
        }
        *last = drawn;
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
        let was_in_doubt = self
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clock
            .confirm();
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

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_core::time::Span;

    const NOON: StoreTime = StoreTime(1_795_000_000_000_000);
    const DAY: Span = Span::from_secs(86_400);

    /// Stands still, a day ahead of the line.
    struct Ahead;

    impl Clock for Ahead {
        fn wall(&self) -> StoreTime {
            NOON + DAY
        }

        fn mono(&self) -> Monotonic {
            Monotonic(0)
        }

        fn boot(&self) -> Option<BootTime> {
            Some(BOOT)
        }
    }

    const BOOT: BootTime = BootTime {
        id: 1,
        since: Span::from_secs(1_000),
    };

    struct InMemory(Arc<Mutex<KeptLine>>);

    impl LineKeep for InMemory {
        fn load(&self) -> Option<KeptLine> {
            Some(*self.0.lock().unwrap())
        }

        fn save(&self, line: &KeptLine) {
            *self.0.lock().unwrap() = *line;
        }
    }

    #[test]
    fn f20_a_reader_that_comes_late_keeps_no_older_line_over_a_newer() {
        let kept = KeptLine { boot: BOOT, wall: NOON };
        let kept = Arc::new(Mutex::new(kept));
        let keeper = TimeKeeper::keeping(Arc::new(Ahead), NOON, Box::new(InMemory(kept.clone())));
        assert!(keeper.state().doubt);
        // It read the clock in the doubt, and comes to keep its line when the doubt is settled.
        let late = keeper.state.lock().unwrap().line();
        assert!(keeper.confirm());
        assert_eq!(kept.lock().unwrap().wall, NOON + DAY);
        keeper.keep(late);
        assert_eq!(
            kept.lock().unwrap().wall,
            NOON + DAY,
            "a restart does not doubt what was confirmed"
        );
    }
}
