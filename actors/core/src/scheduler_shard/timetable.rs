//! A definition made ready to be asked: which instants it asks for, and which of them are excluded.
//!
//! Owns: rule, bounds and exclusions of one definition version, searched forwards and backwards
//! without enumeration. Must never: know cursors, fates or jitter (see `live.rs`). *Raw* instants are
//! those of the rule within the bounds; the others leave out excluded dates.

use super::excluded::ExcludedDates;
use super::validate;
use crate::cron::CronPlan;
use crate::interval::Interval;
use crate::limits::{COUNT_STEPS_MAX, EXCLUDED_RUNS_MAX};
use crate::refusal::Refusal;
use crate::schedule::{Rule, ScheduleSpec};
use crate::time::{Span, StoreTime};
use crate::zone::{LocalInstants, LocalSeconds, UnixSeconds, Zone};
use std::sync::Arc;

/// One definition version, ready to be asked.
#[derive(Clone, Debug)]
pub struct Timetable {
    ticks: Ticks,
    zone: Arc<Zone>,
    excluded: ExcludedDates,
    /// Instants up to here do not exist.
    after: StoreTime,
    /// Instants after it do not exist.
    until: StoreTime,
}

#[derive(Clone, Debug)]
enum Ticks {
    Never,
    Cron(CronPlan),
    Interval(Interval),
    Once(StoreTime),
}

/// A run of instants whose local dates are treated alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Whether they are excluded.
    pub excluded: bool,
    /// First instant.
    pub first: StoreTime,
    /// Last instant.
    pub last: StoreTime,
}

const STEP: Span = Span(1);

impl Timetable {
    /// Of a checked spec; instants after `effective_at` only. The error is what `validate` says.
    pub fn compile(spec: &ScheduleSpec, effective_at: StoreTime) -> Result<Timetable, Refusal> {
        let zone = validate::zone_of(&spec.rule)?;
        let ticks = match &spec.rule {
            Rule::Cron { .. } => Ticks::Cron(validate::plan_of(&spec.rule, &zone)?),
            Rule::Interval { every, anchor, .. } => {
                Interval::new(*every, *anchor).map_or(Ticks::Never, Ticks::Interval)
            }
            Rule::Once { at, .. } => Ticks::Once(*at),
        };
        let starts_after = spec.starts_at.map_or(effective_at, |at| at - STEP);
        Ok(Timetable {
            ticks,
            zone,
            excluded: ExcludedDates::new(&spec.exclusions),
            after: effective_at.max(starts_after),
            until: spec.ends_at.unwrap_or(StoreTime::MAX),
        })
    }

    /// Asks for nothing; stands in for a definition that cannot be evaluated.
    pub fn never() -> Timetable {
        Timetable {
            ticks: Ticks::Never,
            zone: Zone::utc(),
            excluded: ExcludedDates::default(),
            after: StoreTime::MAX,
            until: StoreTime(0),
        }
    }

    /// Whether it stands in for one that cannot be evaluated.
    pub fn is_never(&self) -> bool {
        matches!(self.ticks, Ticks::Never)
    }

    /// Whether any date is excluded.
    pub fn has_exclusions(&self) -> bool {
        !self.excluded.is_empty()
    }

    /// Seconds east of UTC at an instant.
    pub fn offset_at(&self, at: StoreTime) -> i32 {
        self.zone.offset_at(UnixSeconds::at_or_before(at))
    }

    /// Whether equal local times are one occurrence (a cron rule of fixed times).
    pub fn is_fixed_time(&self) -> bool {
        match &self.ticks {
            Ticks::Cron(plan) => plan.rules().iter().any(|rule| !rule.is_wildcard()),
            Ticks::Never | Ticks::Interval(_) | Ticks::Once(_) => false,
        }
    }

    /// Whether clocks show the local time of `at` for the second time.
    pub fn is_second_pass(&self, at: StoreTime) -> bool {
        let second = UnixSeconds::at_or_before(at);
        let local = self.zone.local_at(second);
        matches!(self.zone.local_to_instants(local), LocalInstants::Two(_, later) if later == second)
    }

    /// The first instant after `at`, excluded ones too.
    pub fn next_raw(&self, at: StoreTime) -> Option<StoreTime> {
        let at = at.max(self.after);
        let next = match &self.ticks {
            Ticks::Never => None,
            Ticks::Cron(plan) => plan.next_after(at),
            Ticks::Interval(interval) => interval.next_after(at),
            Ticks::Once(once) => Some(*once).filter(|once| *once > at),
        };
        next.filter(|next| *next <= self.until && *next <= StoreTime::MAX)
    }

    /// The last instant before `at`, excluded ones too.
    pub fn prev_raw(&self, at: StoreTime) -> Option<StoreTime> {
        let at = at.min(self.until + STEP);
        let previous = match &self.ticks {
            Ticks::Never => None,
            Ticks::Cron(plan) => plan.prev_before(at),
            Ticks::Interval(interval) => interval.prev_before(at),
            Ticks::Once(once) => Some(*once).filter(|once| *once < at),
        };
        previous.filter(|previous| *previous > self.after)
    }

    /// The run of equally treated dates around an instant.
    pub fn stretch(&self, at: StoreTime) -> Stretch {
        let second = UnixSeconds::at_or_before(at);
        let segment = self.zone.segment_at(second);
        let day = i32::try_from(segment.local_of(second).0.div_euclid(86_400)).unwrap_or(0);
        let (first_day, last_day) = self.excluded.run(day);
        let midnight = |day: i32| segment.instant_of(LocalSeconds(i64::from(day) * 86_400));
        let first = midnight(first_day).max(segment.start);
        let end = midnight(last_day + 1).min(segment.end);
        Stretch {
            excluded: self.excluded.contains(day),
            first: first.store_time(),
            last: end.store_time() - STEP,
        }
    }

    /// The first occurrence after `at`. Gives up, as if there were none, after
    /// `EXCLUDED_RUNS_MAX` runs of excluded dates that held nothing else.
    pub fn next_after(&self, at: StoreTime) -> Option<StoreTime> {
        let mut at = at;
        for _ in 0..EXCLUDED_RUNS_MAX {
            let next = self.next_raw(at)?;
            #[cfg(test)]
            crate::planted::reached(next);
            if self.excluded.is_empty() {
                return Some(next);
            }
            let stretch = self.stretch(next);
            if !stretch.excluded {
                return Some(next);
            }
            at = stretch.last;
        }
        None
    }

    /// The last occurrence at or before `at`.
    pub fn prev_at_or_before(&self, at: StoreTime) -> Option<StoreTime> {
        let mut before = at + STEP;
        for _ in 0..EXCLUDED_RUNS_MAX {
            let previous = self.prev_raw(before)?;
            if self.excluded.is_empty() {
                return Some(previous);
            }
            let stretch = self.stretch(previous);
            if !stretch.excluded {
                return Some(previous);
            }
            before = stretch.first;
        }
        None
    }

    /// How many raw instants lie in `(after, to]`; `None` if counting would mean walking over more
    /// than `COUNT_STEPS_MAX` of them.
    pub fn count_raw(&self, after: StoreTime, to: StoreTime) -> Option<u64> {
        let (after, to) = (after.max(self.after), to.min(self.until));
        if to <= after {
            return Some(0);
        }
        match &self.ticks {
            Ticks::Never => Some(0),
            Ticks::Cron(plan) if self.counts_without_walking() => Some(plan.count_between(after, to, u64::MAX)),
            Ticks::Cron(plan) => {
                let count = plan.count_between(after, to, COUNT_STEPS_MAX);
                (count < COUNT_STEPS_MAX).then_some(count)
            }
            Ticks::Interval(interval) => Some(interval.count_between(after, to, u64::MAX)),
            Ticks::Once(once) => Some(u64::from(*once > after && *once <= to)),
        }
    }

    /// How many occurrences lie in `(after, to]`, with the bound of `count_raw`.
    pub fn count(&self, after: StoreTime, to: StoreTime) -> Option<u64> {
        if self.excluded.is_empty() {
            return self.count_raw(after, to);
        }
        let (mut at, mut count) = (after, 0);
        for _ in 0..EXCLUDED_RUNS_MAX {
            let Some(next) = self.next_after(at).filter(|next| *next <= to) else {
                return Some(count);
            };
            let last = self.stretch(next).last.min(to);
            count += self.count_raw(at.max(next - STEP), last)?;
            at = last;
        }
        None
    }

    /// Whether any number of instants is counted in a bounded time.
    pub fn counts_without_walking(&self) -> bool {
        match &self.ticks {
            Ticks::Cron(plan) => plan.rules().len() == 1,
            Ticks::Never | Ticks::Interval(_) | Ticks::Once(_) => true,
        }
    }

    /// The largest instant `at` such that `(at, to]` holds the newest `keep` occurrences of
    /// `(after, to]`, or `after` if there are no more.
    pub fn newest_begin(&self, after: StoreTime, to: StoreTime, keep: u64) -> StoreTime {
        if self.counts_without_walking() && !self.has_exclusions() {
            return self.newest_begin_by_count(after, to, keep);
        }
        let mut at = to;
        for _ in 0..keep {
            match self.prev_at_or_before(at).filter(|previous| *previous > after) {
                Some(previous) => at = previous - STEP,
                None => return after,
            }
        }
        at
    }

    fn newest_begin_by_count(&self, after: StoreTime, to: StoreTime, keep: u64) -> StoreTime {
        let count = |from: i64| self.count_raw(StoreTime(from), to).unwrap_or(0);
        let (mut low, mut high) = (after.0, to.0);
        if count(low) <= keep {
            return after;
        }
        // Invariant: more than `keep` after `low`, at most `keep` after `high`.
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match count(middle) > keep {
                true => low = middle,
                false => high = middle,
            }
        }
        StoreTime(high)
    }
}
