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
mod tests {
    use super::*;

    const NOON: i64 = 1_767_268_800;

    fn at(clock: &mut StoreClock, wall_s: i64, mono_s: u64) -> ClockReading {
        clock.observe(StoreTime::from_secs(wall_s), Monotonic(mono_s * 1_000_000))
    }

    fn started() -> StoreClock {
        let mut clock = StoreClock::new(StoreTime::from_secs(NOON - 5));
        let reading = at(&mut clock, NOON, 0);
        assert_eq!((reading.time, reading.doubt), (StoreTime::from_secs(NOON), false));
        clock
    }

    #[test]
    fn f20_time_runs_with_the_wall_clock() {
        let mut clock = started();
        for second in 1..1_000 {
            let reading = at(&mut clock, NOON + second, second as u64);
            assert_eq!(reading.time, StoreTime::from_secs(NOON + second));
            assert!(!reading.doubt && reading.event.is_none());
        }
    }

    #[test]
    fn f20_a_leap_of_a_day_is_doubt_and_raises_no_floor() {
        let mut clock = started();
        let reading = at(&mut clock, NOON + 86_401, 1);
        assert!(reading.doubt);
        assert_eq!(reading.time, StoreTime::from_secs(NOON));
        assert_eq!(
            reading.event,
            Some(ClockEvent::DoubtBegan {
                ahead: Span::from_secs(86_400)
            })
        );
        let undone = at(&mut clock, NOON + 60, 60);
        assert_eq!(undone.event, Some(ClockEvent::LeapUndone));
        assert_eq!((undone.time, undone.doubt), (StoreTime::from_secs(NOON + 60), false));
    }

    #[test]
    fn f20_a_step_of_the_limit_is_believed_and_one_beyond_is_not() {
        let mut clock = started();
        assert!(!at(&mut clock, NOON + 61, 1).doubt);
        let mut clock = started();
        assert!(at(&mut clock, NOON + 62, 1).doubt);
    }

    #[test]
    fn f20_small_steps_add_up_to_a_leap() {
        let mut clock = started();
        assert!(!at(&mut clock, NOON + 41, 1).doubt);
        assert!(at(&mut clock, NOON + 82, 2).doubt);
    }

    #[test]
    fn f20_a_slewed_clock_is_never_in_doubt() {
        let mut clock = started();
        for second in 1..20_000_u64 {
            let wall = NOON + second as i64 + (second / 100) as i64;
            assert!(!at(&mut clock, wall, second).doubt, "at {second}");
        }
    }

    #[test]
    fn f20_doubt_ends_after_the_clock_ran_steadily() {
        let mut clock = started();
        assert!(at(&mut clock, NOON + 3_601, 1).doubt);
        assert!(at(&mut clock, NOON + 3_900, 300).doubt);
        let reading = at(&mut clock, NOON + 3_901, 301);
        assert_eq!(reading.event, Some(ClockEvent::DoubtSettled(DoubtEnd::Steady)));
        assert_eq!(
            (reading.time, reading.doubt),
            (StoreTime::from_secs(NOON + 3_901), false)
        );
        assert!(!at(&mut clock, NOON + 3_902, 302).doubt);
    }

    #[test]
    fn f20_another_leap_in_doubt_starts_the_wait_anew() {
        let mut clock = started();
        assert!(at(&mut clock, NOON + 3_601, 1).doubt);
        assert!(at(&mut clock, NOON + 7_500, 300).doubt);
        assert!(at(&mut clock, NOON + 7_501, 301).doubt);
        assert!(!at(&mut clock, NOON + 7_800, 600).doubt);
    }

    #[test]
    fn f20_an_operator_settles_a_doubt() {
        let mut clock = started();
        assert!(at(&mut clock, NOON + 3_601, 1).doubt);
        assert!(clock.confirm());
        let reading = at(&mut clock, NOON + 3_602, 2);
        assert_eq!(reading.event, Some(ClockEvent::DoubtSettled(DoubtEnd::Confirmed)));
        assert_eq!(
            (reading.time, reading.doubt),
            (StoreTime::from_secs(NOON + 3_602), false)
        );
    }

    #[test]
    fn f20_a_confirmation_without_doubt_changes_nothing() {
        let mut clock = started();
        assert!(!clock.confirm());
        assert!(at(&mut clock, NOON + 3_601, 1).doubt);
        assert!(at(&mut clock, NOON + 3_602, 2).doubt);
    }

    #[test]
    fn f20_a_confirmation_is_of_the_leap_that_was_seen_and_of_no_later_one() {
        let mut clock = started();
        assert!(at(&mut clock, NOON + 3_601, 1).doubt);
        assert!(clock.confirm());
        let reading = at(&mut clock, NOON + 86_402, 2);
        assert!(reading.doubt);
        assert_eq!(reading.time, StoreTime::from_secs(NOON));
    }

    #[test]
    fn beh_k01_a_clock_set_back_holds_the_floor_then_lowers_it_in_an_audited_step() {
        let mut clock = started();
        let held = at(&mut clock, NOON - 3_600, 1);
        assert_eq!(held.time, StoreTime::from_secs(NOON));
        assert!(!held.doubt && matches!(held.event, Some(ClockEvent::Held { .. })));
        assert_eq!(at(&mut clock, NOON - 3_301, 300).time, StoreTime::from_secs(NOON));
        let lowered = at(&mut clock, NOON - 3_300, 301);
        assert_eq!(lowered.time, StoreTime::from_secs(NOON - 3_300));
        assert!(matches!(lowered.event, Some(ClockEvent::FloorLowered { .. })));
        assert_eq!(
            at(&mut clock, NOON - 3_299, 302).time,
            StoreTime::from_secs(NOON - 3_299)
        );
    }

    /// A start at `mono_s` of its process, when the wall clock should show noon.
    fn expecting(mono_s: u64) -> StoreClock {
        let line = Line {
            wall: StoreTime::from_secs(NOON),
            mono: Monotonic(mono_s * 1_000_000),
        };
        StoreClock::expecting(StoreTime::from_secs(NOON - 3_600), line)
    }

    #[test]
    fn f20_a_leap_that_nobody_saw_is_doubt_at_the_start() {
        let mut clock = expecting(2);
        let reading = at(&mut clock, NOON + 86_400, 2);
        assert_eq!(
            (reading.time, reading.doubt),
            (StoreTime::from_secs(NOON - 3_600), true)
        );
        assert_eq!(
            clock.line(),
            expecting(2).line(),
            "the line is not drawn to what is doubted"
        );
        assert!(clock.confirm());
        assert_eq!(
            at(&mut clock, NOON + 86_401, 3).time,
            StoreTime::from_secs(NOON + 86_401)
        );
        assert_ne!(clock.line(), expecting(2).line());
    }

    #[test]
    fn f20_time_spent_down_is_no_leap() {
        let mut clock = expecting(2);
        let reading = at(&mut clock, NOON + 30, 2);
        assert_eq!((reading.time, reading.doubt), (StoreTime::from_secs(NOON + 30), false));
    }

    #[test]
    fn f20_a_start_with_the_clock_set_back_holds_time_and_lowers_it_after_the_wait() {
        let mut clock = expecting(0);
        let reading = at(&mut clock, NOON - 7_200, 0);
        assert_eq!(
            (reading.time, reading.doubt),
            (StoreTime::from_secs(NOON - 3_600), false)
        );
        assert!(matches!(reading.event, Some(ClockEvent::Held { .. })));
        let wait = CLOCK_DOUBT_MAX_MS / 1_000;
        let reading = at(&mut clock, NOON - 7_200 + wait.cast_signed(), wait);
        assert_eq!(reading.time, StoreTime::from_secs(NOON - 7_200 + wait.cast_signed()));
    }

    #[test]
    fn f20_a_clock_that_comes_back_ends_the_hold() {
        let mut clock = started();
        at(&mut clock, NOON - 30, 10);
        let reading = at(&mut clock, NOON + 1, 41);
        assert_eq!(reading.event, Some(ClockEvent::HoldEnded));
        assert_eq!((reading.time, reading.doubt), (StoreTime::from_secs(NOON + 1), false));
    }

    #[test]
    fn f20_a_floor_poisoned_by_ten_years_is_lowered_after_the_wait() {
        let mut clock = StoreClock::new(StoreTime::from_secs(NOON + 315_360_000));
        assert_eq!(at(&mut clock, NOON, 0).time, StoreTime::from_secs(NOON + 315_360_000));
        let reading = at(&mut clock, NOON + 300, 300);
        assert_eq!(reading.time, StoreTime::from_secs(NOON + 300));
    }
}
