//! The seven fields of an expression: names, ranges and the words each of them knows.
//!
//! Owns: the table of fields. Must never: parse more than one value.

use super::{YEAR_MAX, YEAR_MIN};

/// A field of a cron expression, or the expression as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CronField {
    /// The whole text.
    Expression,
    /// 0-59.
    Second,
    /// 0-59.
    Minute,
    /// 0-23.
    Hour,
    /// 1-31.
    DayOfMonth,
    /// 1-12 or JAN-DEC.
    Month,
    /// 0-7 or SUN-SAT; 0 and 7 are Sunday.
    DayOfWeek,
    /// 1970-9998.
    Year,
}

const MONTHS: &[&str] = &[
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

impl CronField {
    /// The fields of a seven-field expression, in order.
    pub const ALL: [Self; 7] = [
        Self::Second,
        Self::Minute,
        Self::Hour,
        Self::DayOfMonth,
        Self::Month,
        Self::DayOfWeek,
        Self::Year,
    ];

    /// The name that errors use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Expression => "expression",
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day-of-month",
            Self::Month => "month",
            Self::DayOfWeek => "day-of-week",
            Self::Year => "year",
        }
    }

    /// The smallest and the largest value.
    pub(super) fn range(self) -> (u16, u16) {
        match self {
            Self::Expression => (0, 0),
            Self::Second | Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::DayOfMonth => (1, 31),
            Self::Month => (1, 12),
            Self::DayOfWeek => (0, 7),
            Self::Year => (YEAR_MIN as u16, YEAR_MAX as u16),
        }
    }

    /// The values of `*`: each weekday once.
    pub(super) fn star(self) -> (u16, u16) {
        match self {
            Self::DayOfWeek => (0, 6),
            Self::Expression
            | Self::Second
            | Self::Minute
            | Self::Hour
            | Self::DayOfMonth
            | Self::Month
            | Self::Year => self.range(),
        }
    }

    /// The values that a bare `H` draws from: days that every month has, each weekday once.
    pub(super) fn hash_range(self) -> Option<(u16, u16)> {
        match self {
            Self::Expression | Self::Year => None,
            Self::DayOfMonth => Some((1, 28)),
            Self::Second | Self::Minute | Self::Hour | Self::Month | Self::DayOfWeek => Some(self.star()),
        }
    }

    /// The value of a whole upper-case word, where this field has words.
    pub(super) fn word(self, text: &str) -> Option<u16> {
        let (words, first) = match self {
            Self::Month => (MONTHS, 1),
            Self::DayOfWeek => (WEEKDAYS, 0),
            _ => return None,
        };
        let index = words.iter().position(|word| *word == text)?;
        Some(first + u16::try_from(index).ok()?)
    }
}
