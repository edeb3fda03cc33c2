//! The two kinds of time, and the one value that every step gets.
//!
//! Owns: `StoreTime` for calendars, `Monotonic` for waits, `Span` for lengths, `Shift` for lengths that have a
//! direction. Must never: read a
//! clock. Next: `store_clock.rs` (doubt), `ids.rs`.

use std::ops::{Add, Neg, Sub};

/// Microseconds in a second.
pub const MICROS: i64 = 1_000_000;

/// An instant of the calendar as the store states it: microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreTime(pub i64);

/// An instant of one node's monotonic clock: microseconds since that node started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic(pub u64);

/// A length of time in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

/// How far an instant is moved, or lies from another, in microseconds: later above zero, earlier below. Saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shift(pub i64);

/// What a step knows about time: a time the store has stated, this node's monotonic clock, and
/// whether the store's clock is in doubt (then nothing fires, is skipped or expires).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Stated by the store, never an estimate.
    pub store: StoreTime,
    /// For waits only.
    pub mono: Monotonic,
    /// Clock doubt.
    pub doubt: bool,
}

/// Time since a machine booted, its sleep included, and of which boot: what tells how long no process ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BootTime {
    /// Drawn by the system at each boot.
    pub id: u128,
    /// Since then.
    pub since: Span,
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// From whole milliseconds; saturates.
    pub const fn from_millis(millis: u64) -> Span {
        Span(millis.saturating_mul(1_000))
    }

    /// From whole seconds; saturates.
    pub const fn from_secs(secs: u64) -> Span {
        Span(secs.saturating_mul(1_000_000))
    }

    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }

    /// Half of it.
    pub const fn half(self) -> Span {
        Span(self.0 / 2)
    }

    /// As a standard duration.
    pub const fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_micros(self.0)
    }
}

impl Shift {
    /// Not at all.
    pub const ZERO: Shift = Shift(0);

    /// Later by this.
    pub const fn later(span: Span) -> Shift {
        match span.0.checked_signed_diff(0) {
            Some(shift) => Shift(shift),
            None => Shift(i64::MAX),
        }
    }
}

impl StoreTime {
    /// The last instant of the year 9999.
    pub const MAX: StoreTime = StoreTime(253_402_300_799 * MICROS + (MICROS - 1));

    /// From whole seconds since the Unix epoch.
    pub const fn from_secs(secs: i64) -> StoreTime {
        StoreTime(secs.saturating_mul(MICROS))
    }

    /// Whole seconds since the Unix epoch, rounded down.
    pub const fn secs(self) -> i64 {
        self.0.div_euclid(MICROS)
    }

    /// Time passed since `earlier`, zero if it lies ahead.
    pub fn since(self, earlier: StoreTime) -> Span {
        Span(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// How far from `other`: above zero if it lies later.
    pub fn shift_from(self, other: StoreTime) -> Shift {
        Shift(self.0.saturating_sub(other.0))
    }

    /// Later by `span`, `None` beyond the year 9999.
    pub fn checked_add(self, span: Span) -> Option<StoreTime> {
        let sum = self.0.checked_add(i64::try_from(span.0).ok()?)?;
        (sum <= StoreTime::MAX.0).then_some(StoreTime(sum))
    }
}

impl Monotonic {
    /// Time passed since `earlier`, zero if it lies ahead.
    pub fn since(self, earlier: Monotonic) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Span> for Monotonic {
    type Output = Monotonic;
    fn add(self, span: Span) -> Monotonic {
        Monotonic(self.0.saturating_add(span.0))
    }
}

impl Add<Span> for StoreTime {
    type Output = StoreTime;
    /// Saturates at the year 9999.
    fn add(self, span: Span) -> StoreTime {
        self.checked_add(span).unwrap_or(StoreTime::MAX)
    }
}

impl Sub<Span> for StoreTime {
    type Output = StoreTime;
    fn sub(self, span: Span) -> StoreTime {
        StoreTime(self.0.saturating_sub(i64::try_from(span.0).unwrap_or(i64::MAX)))
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl Sub for Span {
    type Output = Span;
    /// Stops at zero.
    fn sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl Add<Shift> for StoreTime {
    type Output = StoreTime;
    fn add(self, shift: Shift) -> StoreTime {
        StoreTime(self.0.saturating_add(shift.0))
    }
}

impl Add for Shift {
    type Output = Shift;
    fn add(self, other: Shift) -> Shift {
        Shift(self.0.saturating_add(other.0))
    }
}

impl Sub for Shift {
    type Output = Shift;
    fn sub(self, other: Shift) -> Shift {
        Shift(self.0.saturating_sub(other.0))
    }
}

impl Neg for Shift {
    type Output = Shift;
    fn neg(self) -> Shift {
        Shift(self.0.saturating_neg())
    }
}
