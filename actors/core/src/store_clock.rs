//! The store's clock: turns readings of a wall clock and a monotonic clock into stated store time.
//!
//! Owns: the floor, clock doubt after a forward leap, and the audited lowering of the floor after a
//! backward one (PROTOCOL F20). Must never: read a clock, or decide what fires. The store keeps one
//! of these and states what it answers. Next: `time.rs`.

use crate::limits::{CLOCK_DOUBT_MAX_MS, CLOCK_JUMP_MAX_MS};
use crate::time::{Monotonic, Span, StoreTime};

/// The clock of one store process.
///
/// It compares the wall clock with a *line*: the wall time that the monotonic clock leads one to
/// expect. The line is drawn anew only after a whole `CLOCK_DOUBT_MAX_MS` close to it, so that many
/// small steps within that time count as the leap that they add up to.
#[derive(Clone, Debug)]
pub struct StoreClock {
    floor: StoreTime,
    line: Option<Line>,
    state: State,
}

/// What the clock states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// Never below the floor.
    pub time: StoreTime,
    /// Nothing fires, is skipped or expires on this time.
    pub doubt: bool,
    /// Something that an operator should see.
    pub event: Option<ClockEvent>,
}

/// News of the clock, for logs, metrics and the audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockEvent {
    /// The wall clock leapt ahead: doubt begins.
    DoubtBegan {
        /// How far ahead of what was expected.
        ahead: Span,
    },
    /// Doubt is over and time goes on from the new reading.
    DoubtSettled(DoubtEnd),
    /// The wall clock went back to where it was expected: doubt is over.
    LeapUndone,
    /// The wall clock lies below the floor: time is held.
    Held {
        /// How far below.
        behind: Span,
    },
    /// The wall clock passed the floor again.
    HoldEnded,
    /// The wall clock stayed below for long enough: the floor was lowered (an audited step).
    FloorLowered {
        /// The floor that was.
        from: StoreTime,
        /// The floor that is.
        to: StoreTime,
    },
}

/// What settled a doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoubtEnd {
    /// The clock ran steadily for `CLOCK_DOUBT_MAX_MS`.
    Steady,
    /// An operator confirmed it.
    Confirmed,
}

/// Wall time by the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The wall clock showed this
    pub wall: StoreTime,
    /// when the monotonic clock showed this.
    pub mono: Monotonic,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Steady,
    /// Ahead of the line by a leap; `leapt` is the line it has kept to since.
    Doubt {
        leapt: Line,
        confirmed: bool,
    },
    /// Below the floor since then.
    Below {
        since: Monotonic,
    },
}

impl Line {
    fn expected(self, mono: Monotonic) -> StoreTime {
        self.wall + mono.since(self.mono)
    }

    fn is_left_by(self, wall: StoreTime, mono: Monotonic) -> bool {
        let expected = self.expected(mono);
        wall.since(expected).max(expected.since(wall)) > JUMP_MAX
    }
}

const JUMP_MAX: Span = Span::from_millis(CLOCK_JUMP_MAX_MS);
const DOUBT_MAX: Span = Span::from_millis(CLOCK_DOUBT_MAX_MS);

impl StoreClock {
    /// A clock that starts above `floor`, the latest time ever committed. The first reading draws
    /// the line: nothing here can tell a leap from time spent switched off. See `expecting`.
    pub fn new(floor: StoreTime) -> StoreClock {
        StoreClock {
            floor,
            line: None,
            state: State::Steady,
        }
    }

    /// A clock that starts above `floor` and goes on with a line: what the wall clock is expected to show, as a
    /// clock that ran on while no process did leads one to expect.
    pub fn expecting(floor: StoreTime, line: Line) -> StoreClock {
        StoreClock {
            line: Some(line),
            ..StoreClock::new(floor)
        }
    }

    /// The line that readings are compared with, once there was one.
    pub fn line(&self) -> Option<Line> {
        self.line
    }

    /// The latest time stated, as lowered by the audited step.
    pub fn floor(&self) -> StoreTime {
        self.floor
    }

    /// Whether the last reading was in doubt.
    pub fn is_in_doubt(&self) -> bool {
        matches!(self.state, State::Doubt { .. })
    }

    /// An operator says that the clock is right: the next reading settles a doubt. Whether there was one.
    pub fn confirm(&mut self) -> bool {
        if let State::Doubt { confirmed, .. } = &mut self.state {
            *confirmed = true;
        }
        self.is_in_doubt()
    }

    /// States the time for one reading of both clocks.
    pub fn observe(&mut self, wall: StoreTime, mono: Monotonic) -> ClockReading {
        let wall = wall.clamp(StoreTime(0), StoreTime::MAX);
        let line = *self.line.get_or_insert(Line { wall, mono });
        let event = if wall < self.floor {
            self.on_below(wall, mono)
        } else if wall.since(line.expected(mono)) > JUMP_MAX {
            self.on_ahead(line, wall, mono)
        } else {
            self.on_steady(line, wall, mono)
        };
        ClockReading {
            time: self.floor,
            doubt: self.is_in_doubt(),
            event,
        }
    }

    fn on_steady(&mut self, line: Line, wall: StoreTime, mono: Monotonic) -> Option<ClockEvent> {
        let event = match self.state {
            State::Steady => None,
            State::Doubt { .. } => Some(ClockEvent::LeapUndone),
            State::Below { .. } => Some(ClockEvent::HoldEnded),
        };
        self.state = State::Steady;
        self.floor = wall;
        if mono.since(line.mono) >= DOUBT_MAX {
            self.line = Some(Line { wall, mono });
        }
        event
    }

    fn on_ahead(&mut self, line: Line, wall: StoreTime, mono: Monotonic) -> Option<ClockEvent> {
        let State::Doubt { leapt, confirmed } = self.state else {
            return self.on_leap(line, wall, mono);
        };
        // Another leap is not what was confirmed.
        if leapt.is_left_by(wall, mono) {
            return self.on_leap(line, wall, mono);
        }
        if confirmed {
            return Some(self.settle(wall, mono, DoubtEnd::Confirmed));
        }
        (mono.since(leapt.mono) >= DOUBT_MAX).then(|| self.settle(wall, mono, DoubtEnd::Steady))
    }

    fn on_leap(&mut self, line: Line, wall: StoreTime, mono: Monotonic) -> Option<ClockEvent> {
        self.state = State::Doubt {
            leapt: Line { wall, mono },
            confirmed: false,
        };
        let ahead = wall.since(line.expected(mono));
        Some(ClockEvent::DoubtBegan { ahead })
    }

    fn settle(&mut self, wall: StoreTime, mono: Monotonic, how: DoubtEnd) -> ClockEvent {
        self.state = State::Steady;
        self.line = Some(Line { wall, mono });
        self.floor = wall;
        ClockEvent::DoubtSettled(how)
    }

    fn on_below(&mut self, wall: StoreTime, mono: Monotonic) -> Option<ClockEvent> {
        let State::Below { since } = self.state else {
            self.state = State::Below { since: mono };
            let behind = self.floor.since(wall);
            return Some(ClockEvent::Held { behind });
        };
        if mono.since(since) < DOUBT_MAX {
            return None;
        }
        let from = std::mem::replace(&mut self.floor, wall);
        self.state = State::Steady;
        self.line = Some(Line { wall, mono });
        Some(ClockEvent::FloorLowered { from, to: wall })
    }
}

#[cfg(test)]
mod tests;
