//! Excluded local dates: which they are, and where a run of them begins and ends.
//!
//! Owns: runs of dates, searched both ways, so that a stretch is decided without walking over it. Must
//! never: know instants or zones (see `timetable.rs`). `crate::calendar` answers for one instant and
//! reads what people write.

use crate::schedule::Exclusion;

/// Excluded local dates, as days from 1970-01-01.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExcludedDates {
    /// Ascending, disjoint and not touching.
    ranges: Vec<(i32, i32)>,
    /// Bit 0 is Sunday.
    weekdays: u8,
}

/// Days outside of this are never reached: the years 1 to 9999 lie well within.
const DAY_BOUND: i32 = 4_000_000;
const ALL_WEEKDAYS: u8 = 0x7f;

impl ExcludedDates {
    /// From a schedule's exclusions.
    pub fn new(exclusions: &[Exclusion]) -> ExcludedDates {
        let mut weekdays = 0;
        let mut given = Vec::new();
        for exclusion in exclusions {
            match *exclusion {
                Exclusion::Weekday(day) => weekdays |= 1 << (day % 7),
                Exclusion::Dates { first, last } => {
                    given.push((first.max(-DAY_BOUND), last.min(DAY_BOUND)));
                }
            }
        }
        given.retain(|(first, last)| first <= last);
        given.sort_unstable();
        let mut ranges: Vec<(i32, i32)> = Vec::with_capacity(given.len());
        for (first, last) in given {
            match ranges.last_mut() {
                Some(previous) if first <= previous.1 + 1 => previous.1 = previous.1.max(last),
                _ => ranges.push((first, last)),
            }
        }
        ExcludedDates { ranges, weekdays }
    }

    /// Whether no date is excluded.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.weekdays == 0
    }

    /// Whether every date is excluded.
    pub fn is_everything(&self) -> bool {
        self.weekdays == ALL_WEEKDAYS
    }

    /// Whether a date is excluded.
    pub fn contains(&self, day: i32) -> bool {
        self.weekday(day) || self.range(day).is_some()
    }

    /// First and last day of the run of equally treated dates around `day`.
    pub fn run(&self, day: i32) -> (i32, i32) {
        if self.is_everything() {
            return (-DAY_BOUND, DAY_BOUND);
        }
        match self.contains(day) {
            true => self.run_excluded(day),
            false => self.run_included(day),
        }
    }

    fn run_excluded(&self, day: i32) -> (i32, i32) {
        let (mut first, mut last) = (day, day);
        while last < DAY_BOUND && self.contains(last + 1) {
            last = self.range(last + 1).map_or(last + 1, |range| range.1);
        }
        while first > -DAY_BOUND && self.contains(first - 1) {
            first = self.range(first - 1).map_or(first - 1, |range| range.0);
        }
        (first, last)
    }

    fn run_included(&self, day: i32) -> (i32, i32) {
        let after = self.ranges.partition_point(|range| range.0 <= day);
        let mut last = self.ranges.get(after).map_or(DAY_BOUND, |range| range.0 - 1);
        let before = after.checked_sub(1).and_then(|index| self.ranges.get(index));
        let mut first = before.map_or(-DAY_BOUND, |range| range.1 + 1);
        if let Some(ahead) = (1..7).find(|ahead| self.weekday(day + ahead)) {
            last = last.min(day + ahead - 1);
        }
        if let Some(back) = (1..7).find(|back| self.weekday(day - back)) {
            first = first.max(day - back + 1);
        }
        (first, last)
    }

    fn weekday(&self, day: i32) -> bool {
        // 1970-01-01 was a Thursday.
        let weekday = (day + 4).rem_euclid(7);
        self.weekdays & (1 << weekday) != 0
    }

    fn range(&self, day: i32) -> Option<(i32, i32)> {
        let index = self.ranges.partition_point(|range| range.1 < day);
        self.ranges.get(index).copied().filter(|range| range.0 <= day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dates(first: i32, last: i32) -> Exclusion {
        Exclusion::Dates { first, last }
    }

    #[test]
    fn runs_agree_with_asking_day_by_day() {
        let mixed = [
            Exclusion::Weekday(0),
            Exclusion::Weekday(6),
            dates(10, 12),
            dates(13, 13),
            dates(40, 60),
        ];
        for take in 0..=mixed.len() {
            let excluded = ExcludedDates::new(&mixed[..take]);
            for day in -30..120 {
                let (first, last) = excluded.run(day);
                let state = excluded.contains(day);
                assert!(first <= day && day <= last);
                for other in first.max(-200)..=last.min(200) {
                    assert_eq!(excluded.contains(other), state, "{take}: {other} in the run of {day}");
                }
                if last < 200 {
                    assert_ne!(excluded.contains(last + 1), state);
                }
                if first > -200 {
                    assert_ne!(excluded.contains(first - 1), state);
                }
            }
        }
    }

    #[test]
    fn the_epoch_was_a_thursday() {
        assert!(ExcludedDates::new(&[Exclusion::Weekday(4)]).contains(0));
    }

    #[test]
    fn seven_weekdays_are_everything() {
        let all: Vec<Exclusion> = (0..7).map(Exclusion::Weekday).collect();
        let excluded = ExcludedDates::new(&all);
        assert!(excluded.is_everything() && excluded.run(5).1 > 3_000_000);
    }
}
