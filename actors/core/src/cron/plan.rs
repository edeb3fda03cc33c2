//! Several expressions in one zone: the instants they ask for.
//!
//! Owns: the mapping of local times to instants under the gap and overlap policies, for fixed-time
//! and wildcard rules alike, and the merging of equal instants into one occurrence (F22).
//! Must never: search without a bound. Time is walked one zone segment after the other; a segment
//! without a match is left at once, and a search jumps straight to the next match of the pattern,
//! so it takes at most as many steps as the zone has segments up to 9999.

use std::sync::Arc;

use super::hash::HashSeed;
use super::{CronError, CronRule};
use crate::schedule::{GapPolicy, OverlapPolicy};
use crate::time::StoreTime;
use crate::zone::{LocalSeconds, OFFSET_BOUND_SECONDS, Segment, UnixSeconds, Zone};

/// No occurrence lies before this instant: some zone's 1970-01-01.
const HORIZON_BEGIN: UnixSeconds = UnixSeconds(-OFFSET_BOUND_SECONDS);
/// No occurrence lies at or after this instant: every zone's 9999-01-01.
const HORIZON_END: UnixSeconds = UnixSeconds(253_370_764_800 + OFFSET_BOUND_SECONDS);

/// The cron half of a schedule's rule, ready to be asked.
#[derive(Debug, Clone)]
pub struct CronPlan {
    rules: Vec<CronRule>,
    /// The last occurrence of each rule; `UnixSeconds::BEGIN` for a rule that only means times in
    /// gaps it skips. Without it, each search for such a rule would walk to the year 9999.
    lasts: Vec<UnixSeconds>,
    zone: Arc<Zone>,
    gap: GapPolicy,
    overlap: OverlapPolicy,
}

/// What one rule may use of one segment.
struct Reach {
    /// Local times shown here that count, `from` inclusive, `until` exclusive.
    from: LocalSeconds,
    until: LocalSeconds,
    /// Local times left out just before the segment that move to its first instant.
    moved: Option<(LocalSeconds, LocalSeconds)>,
}

impl CronPlan {
    /// Reads the expressions, at least one.
    pub fn parse<T: AsRef<str>>(
        expressions: &[T],
        seed: HashSeed,
        zone: Arc<Zone>,
        gap: GapPolicy,
        overlap: OverlapPolicy,
    ) -> Result<Self, (usize, CronError)> {
        let parse = |(index, text): (usize, &T)| CronRule::parse(text.as_ref(), seed).map_err(|e| (index, e));
        let rules = expressions.iter().enumerate().map(parse).collect::<Result<_, _>>()?;
        let mut plan = Self {
            rules,
            lasts: Vec::new(),
            zone,
            gap,
            overlap,
        };
        let last = |rule| plan.previous_of(rule, HORIZON_END).unwrap_or(UnixSeconds::BEGIN);
        plan.lasts = plan.rules.iter().map(last).collect();
        Ok(plan)
    }

    /// The parsed expressions.
    pub fn rules(&self) -> &[CronRule] {
        &self.rules
    }

    /// The zone.
    pub fn zone(&self) -> &Arc<Zone> {
        &self.zone
    }

    /// The first occurrence after an instant.
    pub fn next_after(&self, after: StoreTime) -> Option<StoreTime> {
        let from = UnixSeconds::at_or_before(after).plus(1);
        let unended = self.rules.iter().zip(&self.lasts).filter(|(_, last)| from <= **last);
        let next = unended.filter_map(|(rule, _)| self.next_of(rule, from)).min();
        next.map(UnixSeconds::store_time)
    }

    /// The last occurrence before an instant.
    pub fn prev_before(&self, before: StoreTime) -> Option<StoreTime> {
        let before = UnixSeconds::at_or_after(before);
        let previous = |(rule, last): (&CronRule, &UnixSeconds)| match *last < before {
            true => Some(*last).filter(|last| *last > UnixSeconds::BEGIN),
            false => self.previous_of(rule, before),
        };
        let previous = self.rules.iter().zip(&self.lasts).filter_map(previous).max();
        previous.map(UnixSeconds::store_time)
    }

    /// How many occurrences lie after `after` and up to and including `until`; counts no further
    /// than `cap`. One expression is counted without walking its occurrences.
    pub fn count_between(&self, after: StoreTime, until: StoreTime, cap: u64) -> u64 {
        if let [rule] = self.rules.as_slice() {
            let from = UnixSeconds::at_or_before(after).plus(1);
            return self.count_of(rule, from, UnixSeconds::at_or_before(until).plus(1), cap);
        }
        let (mut count, mut at) = (0, after);
        while count < cap {
            match self.next_after(at).filter(|next| *next <= until) {
                Some(next) => (count, at) = (count + 1, next),
                None => break,
            }
        }
        count
    }

    /// What a fixed-time or wildcard rule may use of a segment.
    fn reach(&self, rule: &CronRule, segment: &Segment) -> Reach {
        let mut reach = Reach {
            from: segment.local_start(),
            until: segment.local_end(),
            moved: None,
        };
        if rule.is_wildcard() {
            return reach;
        }
        if segment.start > UnixSeconds::BEGIN {
            let before = self.zone.segment_at(segment.start.plus(-1)).local_end();
            if before < reach.from && self.gap == GapPolicy::NextValid {
                reach.moved = Some((before, reach.from));
            }
            if self.overlap == OverlapPolicy::First {
                reach.from = reach.from.max(before);
            }
        }
        if segment.end < UnixSeconds::END && self.overlap == OverlapPolicy::Second {
            reach.until = reach.until.min(self.zone.segment_at(segment.end).local_start());
        }
        reach
    }

    /// The first occurrence of one rule at or after an instant.
    fn next_of(&self, rule: &CronRule, from: UnixSeconds) -> Option<UnixSeconds> {
        let mut at = from.max(HORIZON_BEGIN);
        let mut segment = self.zone.segment_at(at);
        while at < HORIZON_END {
            let reach = self.reach(rule, &segment);
            let whole = at == segment.start;
            if whole && reach.moved_matches(rule) {
                return Some(segment.start);
            }
            let next = rule.next_local(reach.from.max(segment.local_of(at)));
            if let Some(local) = next.filter(|local| *local < reach.until) {
                return Some(segment.instant_of(local));
            }
            // What a part of a segment showed may be shown once more by the following one, so only
            // after a whole segment is it known that nothing fits before the next match.
            at = match (whole, next) {
                (true, None) => return None,
                (true, Some(local)) => segment.end.max(UnixSeconds(local.0 - OFFSET_BOUND_SECONDS)),
                (false, _) => segment.end,
            };
            if at < HORIZON_END {
                segment = self.zone.segment_at(at);
                at = segment.start;
            }
        }
        None
    }

    /// The last occurrence of one rule before an instant.
    fn previous_of(&self, rule: &CronRule, before: UnixSeconds) -> Option<UnixSeconds> {
        let mut before = before.min(HORIZON_END);
        while before > HORIZON_BEGIN {
            let segment = self.zone.segment_at(before.plus(-1));
            let reach = self.reach(rule, &segment);
            let whole = before == segment.end;
            let previous = rule.previous_local(reach.until.min(segment.local_of(before)));
            if let Some(local) = previous.filter(|local| *local >= reach.from) {
                return Some(segment.instant_of(local));
            }
            if reach.moved_matches(rule) {
                return Some(segment.start);
            }
            before = match (whole, previous) {
                (true, None) => return None,
                (true, Some(local)) => {
                    let hint = self.zone.segment_at(UnixSeconds(local.0 + OFFSET_BOUND_SECONDS));
                    segment.start.min(hint.end)
                }
                (false, _) => segment.start,
            };
        }
        None
    }

    /// The occurrences of one rule from an instant up to, but not including, another.
    fn count_of(&self, rule: &CronRule, from: UnixSeconds, until: UnixSeconds, cap: u64) -> u64 {
        let (mut at, until) = (from.max(HORIZON_BEGIN), until.min(HORIZON_END));
        let mut count = 0;
        while at < until && count < cap {
            let segment = self.zone.segment_at(at);
            let reach = self.reach(rule, &segment);
            let end = segment.end.min(until);
            if at == segment.start && reach.moved_matches(rule) && !rule.matches(segment.local_start()) {
                count += 1;
            }
            let local_from = reach.from.max(segment.local_of(at));
            count += rule.count_local(local_from, reach.until.min(segment.local_of(end)));
            at = segment.end;
        }
        count.min(cap)
    }
}

impl Reach {
    /// Whether the first instant of the segment is asked for by a local time left out before it.
    fn moved_matches(&self, rule: &CronRule) -> bool {
        self.moved
            .is_some_and(|(from, until)| rule.next_local(from).is_some_and(|local| local < until))
    }
}
