//! Fixed intervals: anchor + k × every, for every whole k, in exact arithmetic.
//!
//! Owns: the next and the previous instant of an absolute cadence, and how many lie between two.
//! Must never: know a zone or a clock change; the cadence goes straight through them.
//! Next: `scheduler_shard/timetable.rs`.

use crate::time::{Span, StoreTime};

/// An absolute cadence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    every: Span,
    anchor: StoreTime,
}

impl Interval {
    /// A cadence of `every` through `anchor`; `None` if `every` is zero.
    pub fn new(every: Span, anchor: StoreTime) -> Option<Interval> {
        (every > Span::ZERO).then_some(Interval { every, anchor })
    }

    /// The first instant after one.
    pub fn next_after(&self, after: StoreTime) -> Option<StoreTime> {
        self.at(self.steps_until(after) + 1)
    }

    /// The last instant before one; none lies before 1970.
    pub fn prev_before(&self, before: StoreTime) -> Option<StoreTime> {
        let before = StoreTime(before.0.min(StoreTime::MAX.0)).0.checked_sub(1)?;
        self.at(self.steps_until(StoreTime(before)))
    }

    /// How many instants lie after `after` and up to and including `until`, but at most `cap`.
    pub fn count_between(&self, after: StoreTime, until: StoreTime, cap: u64) -> u64 {
        let after = StoreTime(after.0.max(-1));
        let until = until.min(StoreTime::MAX);
        let count = self.steps_until(until) - self.steps_until(after);
        u64::try_from(count.max(0)).unwrap_or(u64::MAX).min(cap)
    }

    /// The largest k whose instant is not after `at`.
    fn steps_until(&self, at: StoreTime) -> i128 {
        (i128::from(at.0) - i128::from(self.anchor.0)).div_euclid(i128::from(self.every.0))
    }

    /// The instant of a step, from 1970 to 9999.
    fn at(&self, step: i128) -> Option<StoreTime> {
        let at = i128::from(self.anchor.0) + step * i128::from(self.every.0);
        let at = i64::try_from(at).ok()?;
        (0..=StoreTime::MAX.0).contains(&at).then_some(StoreTime(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn interval(every: u64, anchor: i64) -> Interval {
        Interval::new(Span(every), StoreTime(anchor)).unwrap()
    }

    #[test]
    fn cadence_goes_through_its_anchor_without_drift() {
        let third = interval(333_333, 1_000_000);
        let mut at = StoreTime(1_000_000);
        for k in 1..=3_000_000_i64 / 333 {
            at = third.next_after(at).unwrap();
            assert_eq!(at.0, 1_000_000 + k * 333_333);
        }
    }

    #[test]
    fn an_anchor_in_the_future_or_the_past_is_one_of_the_instants() {
        let hourly = interval(3_600_000_000, 1_800_000_000);
        assert_eq!(hourly.next_after(StoreTime(0)), Some(StoreTime(1_800_000_000)));
        let far = interval(7, 200_000_000_000_000_001);
        assert_eq!(
            far.next_after(StoreTime(200_000_000_000_000_000)),
            Some(StoreTime(200_000_000_000_000_001))
        );
        assert!(far.next_after(StoreTime(0)).unwrap().0 <= 7);
    }

    #[test]
    fn the_ends_of_time_end_the_cadence() {
        let daily = interval(86_400_000_000, 0);
        assert_eq!(daily.next_after(StoreTime::MAX), None);
        assert_eq!(daily.prev_before(StoreTime(0)), None);
        assert_eq!(daily.prev_before(StoreTime(1)), Some(StoreTime(0)));
        assert_eq!(interval(u64::MAX, 5).next_after(StoreTime(5)), None);
        assert_eq!(Interval::new(Span::ZERO, StoreTime(0)), None);
        assert_eq!(daily.next_after(StoreTime(i64::MAX)), None);
        assert!(daily.prev_before(StoreTime(i64::MIN)).is_none());
    }

    proptest! {
        #[test]
        fn next_and_previous_are_inverse_and_counted(
            every in 1_u64..1 << 45, anchor in 0_i64..1 << 52, at in 0_i64..1 << 52, steps in 0_u64..50
        ) {
            let interval = interval(every, anchor);
            let first = interval.next_after(StoreTime(at)).unwrap();
            let mut last = first;
            for _ in 0..steps {
                let next = interval.next_after(last).unwrap();
                prop_assert_eq!(interval.prev_before(next), Some(last));
                prop_assert_eq!(next.since(last), Span(every));
                last = next;
            }
            prop_assert_eq!(interval.count_between(StoreTime(at), last, u64::MAX), steps + 1);
            prop_assert_eq!(interval.count_between(StoreTime(at), last, 3), (steps + 1).min(3));
        }
    }
}
