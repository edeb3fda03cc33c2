//! Two kinds of whole seconds that must never be mixed: real instants and readings of a clock
//! on a wall.
//!
//! Owns: `UnixSeconds`, `LocalSeconds` and their way to and from calendar dates.
//! Must never: know an offset; only a `Segment` turns one kind into the other.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime};

use crate::time::{MICROS, StoreTime};

const DAY_SECONDS: i64 = 86_400;

/// A real instant: seconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixSeconds(pub i64);

/// What a wall clock shows: seconds since its own 1970-01-01T00:00:00.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalSeconds(pub i64);

impl UnixSeconds {
    /// Before every instant anything here computes with (far outside the years 1 to 9999).
    pub const BEGIN: Self = Self(-(1 << 42));
    /// After every instant anything here computes with.
    pub const END: Self = Self(1 << 42);

    /// The last whole second at or before an instant.
    pub fn at_or_before(at: StoreTime) -> Self {
        Self(at.secs())
    }

    /// The first whole second at or after an instant.
    pub fn at_or_after(at: StoreTime) -> Self {
        Self(at.secs() + i64::from(at.0.rem_euclid(MICROS) > 0))
    }

    /// The same instant as the store counts it.
    pub fn store_time(self) -> StoreTime {
        StoreTime::from_secs(self.0)
    }

    /// Later by whole seconds; earlier if negative.
    pub fn plus(self, seconds: i64) -> Self {
        Self(self.0 + seconds)
    }
}

impl LocalSeconds {
    /// Midnight at the start of a date.
    pub fn midnight(date: NaiveDate) -> Self {
        Self(i64::from(date.to_epoch_days()) * DAY_SECONDS)
    }

    /// A date and a time of day.
    pub fn new(date: NaiveDate, second_of_day: u32) -> Self {
        Self(Self::midnight(date).0 + i64::from(second_of_day))
    }

    /// The reading of a date-time without a zone; fractions are dropped.
    pub fn from_naive(local: NaiveDateTime) -> Self {
        Self(local.and_utc().timestamp())
    }

    /// As a date-time without a zone; dates chrono cannot hold become its first or last one.
    pub fn to_naive(self) -> NaiveDateTime {
        match DateTime::from_timestamp(self.0, 0) {
            Some(at) => at.naive_utc(),
            None if self.0 < 0 => NaiveDateTime::MIN,
            None => NaiveDateTime::MAX,
        }
    }

    /// The date shown.
    pub fn date(self) -> NaiveDate {
        self.to_naive().date()
    }

    /// Seconds since midnight, 0 to 86,399.
    pub fn second_of_day(self) -> u32 {
        u32::try_from(self.0.rem_euclid(DAY_SECONDS)).expect("a remainder by 86,400 fits")
    }

    /// The year shown.
    pub fn year(self) -> i32 {
        self.date().year()
    }

    /// `2026-01-01T00:00:00`, as written without an offset.
    pub fn to_text(self) -> String {
        self.to_naive().format("%Y-%m-%dT%H:%M:%S").to_string()
    }

    /// Reads `2026-01-01T00:00:00`, also with a blank for the `T` and without the seconds.
    pub fn from_text(text: &str) -> Option<Self> {
        let (date, time) = text.split_once(['T', 't', ' '])?;
        let date = NaiveDate::parse_from_str(date, "%Y-%m-%d").ok()?;
        let time = NaiveTime::parse_from_str(time, "%H:%M:%S")
            .or_else(|_| NaiveTime::parse_from_str(time, "%H:%M"))
            .ok()?;
        Some(Self::from_naive(date.and_time(time)))
    }
}
