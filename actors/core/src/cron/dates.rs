//! Matching dates: the next one, the one before, how many.
//!
//! Owns: months and years around the day table. Must never: search beyond 1970 to 9998.

use chrono::{Datelike, NaiveDate};

use super::days::{DayBits, DayTable};
use super::item::FieldValues;
use super::times::bit_before;
use super::{YEAR_MAX, YEAR_MIN};

/// Matching dates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dates {
    pub days: DayTable,
    pub months: u64,
    pub years: Years,
}

/// Matching years: all of them, or those of one bit each from 1970 on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Years {
    All,
    Some(Box<[u64]>),
}

impl Dates {
    fn month(&self, year: i32, month: u32) -> DayBits {
        match self.months >> month & 1 {
            1 => self.days.month(year, month),
            _ => 0,
        }
    }

    pub(super) fn contains(&self, date: NaiveDate) -> bool {
        self.years.contains(date.year()) && self.month(date.year(), date.month()) >> (date.day() - 1) & 1 == 1
    }

    pub(super) fn next(&self, from: NaiveDate) -> Option<NaiveDate> {
        let mut earliest = from.day();
        let mut first_month = from.month();
        for year in from.year()..=YEAR_MAX {
            if self.years.contains(year) {
                for month in first_month..=12 {
                    let bits = self.month(year, month) >> (earliest - 1);
                    if bits != 0 {
                        return NaiveDate::from_ymd_opt(year, month, earliest + bits.trailing_zeros());
                    }
                    earliest = 1;
                }
            }
            (earliest, first_month) = (1, 1);
        }
        None
    }

    pub(super) fn previous(&self, from: NaiveDate) -> Option<NaiveDate> {
        let mut latest = from.day();
        let mut last_month = from.month();
        for year in (YEAR_MIN..=from.year()).rev() {
            if self.years.contains(year) {
                for month in (1..=last_month).rev() {
                    let bits = u64::from(self.month(year, month));
                    if let Some(bit) = bit_before(bits, latest) {
                        return NaiveDate::from_ymd_opt(year, month, bit + 1);
                    }
                    latest = 31;
                }
            }
            (latest, last_month) = (31, 12);
        }
        None
    }

    /// How many dates match from `first` up to, but not including, `end`.
    pub(super) fn count(&self, first: NaiveDate, end: NaiveDate) -> u64 {
        let mut count = 0;
        let before = |date: NaiveDate| (1_u64 << (date.day() - 1)) - 1;
        for year in (first.year()..=end.year()).filter(|year| self.years.contains(*year)) {
            for month in 1..=12 {
                let at = (year, month);
                if at < (first.year(), first.month()) || at > (end.year(), end.month()) {
                    continue;
                }
                let mut bits = u64::from(self.month(year, month));
                if at == (first.year(), first.month()) {
                    bits &= !before(first);
                }
                if at == (end.year(), end.month()) {
                    bits &= before(end);
                }
                count += u64::from(bits.count_ones());
            }
        }
        count
    }
}

impl Years {
    pub(super) fn of(field: &FieldValues) -> Self {
        if field.plain == "*" {
            return Self::All;
        }
        let mut bits = vec![0_u64; (YEAR_MAX - YEAR_MIN) as usize / 64 + 1];
        for year in field.spans.iter().flat_map(|span| span.values()) {
            let index = usize::from(year).saturating_sub(YEAR_MIN as usize);
            if let Some(word) = bits.get_mut(index / 64) {
                *word |= 1 << (index % 64);
            }
        }
        Self::Some(bits.into_boxed_slice())
    }

    pub(super) fn contains(&self, year: i32) -> bool {
        let Self::Some(bits) = self else { return true };
        let index = usize::try_from(year - YEAR_MIN).unwrap_or(usize::MAX);
        bits.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }
}
