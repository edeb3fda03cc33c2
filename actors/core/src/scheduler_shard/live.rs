//! One schedule in memory: its rows, and the occurrence it waits for.
//!
//! Owns: the line of occurrences that a cursor walks: those of the current version, and the one that
//! an edit kept. Must never: decide a fate (see `settle.rs`), or hold what its rows do not say.

use super::backlog::Backlog;
use super::io::{ScheduleReply, ScheduleView};
use super::marks::Poison;
use super::refusals;
use super::step::Step;
use super::tape::Tape;
use super::version::Version;
use crate::refusal::Refusal;
use crate::row::Row;
use crate::schedule::{CursorRow, ScheduleDefinition};
use crate::time::{Span, StoreTime};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One schedule.
#[derive(Clone, Debug)]
pub(super) struct Live {
    /// All versions of this incarnation, by number.
    pub(super) versions: BTreeMap<u64, Arc<Version>>,
    pub(super) cursor: CursorRow,
    /// What it waits for; follows from `cursor` and `versions`.
    pub(super) plan: Option<Planned>,
    pub(super) backlogs: BTreeMap<u32, Backlog>,
    /// Why it is not evaluated.
    pub(super) quarantined: Option<Arc<str>>,
    /// What is known against its versions; each is a row.
    pub(super) poisons: Vec<Poison>,
    /// The cursor row differs from the durable one.
    pub(super) dirty: bool,
    /// Instant of the newest entry in the history of edits, whichever epoch made it.
    pub(super) recorded_at: Option<StoreTime>,
}

/// The next occurrence of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Planned {
    pub(super) nominal: StoreTime,
    pub(super) due: StoreTime,
    /// Version it belongs to.
    pub(super) version: u64,
    /// An edit kept it.
    pub(super) kept: bool,
    /// An edit dropped it: it gets a fate when it comes, and no job.
    pub(super) dropped: bool,
}

impl Live {
    /// Bytes of its definitions, roughly: each version is kept for as long as a fate names it.
    pub(super) fn weight(&self) -> usize {
        let of = |definition: &ScheduleDefinition| {
            let names = definition.tenant.as_bytes().len() + definition.name.as_bytes().len();
            definition.spec.weight() + names
        };
        self.versions.values().map(|version| of(&version.definition)).sum()
    }

    /// The current version; `None` only in quarantine.
    pub(super) fn current(&self) -> Option<Arc<Version>> {
        self.versions.get(&self.cursor.definition).map(Arc::clone)
    }

    /// The first occurrence of the line after `at`.
    pub(super) fn planned_after(&self, at: StoreTime) -> Option<Planned> {
        let version = self.current()?;
        let (nominal, kept) = self.next_nominal(&version, at)?;
        let wants_next = kept || version.has_jitter();
        let next = wants_next.then(|| self.next_nominal(&version, nominal)).flatten();
        let next = next.map(|(next, _)| next);
        let kept = self.cursor.kept.filter(|_| kept);
        Some(match kept {
            None if self.is_dropped(nominal) => Planned {
                nominal,
                due: nominal,
                version: self.cursor.definition,
                kept: false,
                dropped: true,
            },
            None => Planned {
                nominal,
                due: version.due(nominal, next),
                version: self.cursor.definition,
                kept: false,
                dropped: false,
            },
            // As planned, but for the order of due instants.
            Some(kept) => Planned {
                nominal,
                due: next.map_or(kept.due, |next| kept.due.min(next - Span(1))).max(nominal),
                version: kept.definition,
                kept: true,
                dropped: false,
            },
        })
    }

    /// The next instant of the line, and whether it is the kept one.
    fn next_nominal(&self, version: &Version, at: StoreTime) -> Option<(StoreTime, bool)> {
        let next = version.timetable.next_after(at);
        let kept = self.cursor.kept.map(|kept| kept.nominal).filter(|kept| *kept > at);
        match (next, kept) {
            (Some(next), Some(kept)) if next < kept => Some((next, false)),
            (_, Some(kept)) => Some((kept, true)),
            (Some(next), None) => Some((next, false)),
            (None, None) => None,
        }
    }

    /// The last undecided occurrence of the current version that is due by `by`, short of a kept one.
    pub(super) fn newest_due(&self, version: &Version, by: StoreTime) -> Option<StoreTime> {
        let kept = self.cursor.kept.map(|kept| kept.nominal - Span(1));
        let end = kept.map_or(by, |kept| kept.min(by));
        let undecided = |at: &StoreTime| *at > self.cursor.nominal;
        let newest = version.timetable.prev_at_or_before(end).filter(undecided)?;
        let next = version
            .has_jitter()
            .then(|| self.next_nominal(version, newest))
            .flatten();
        if version.due(newest, next.map(|(next, _)| next)) <= by {
            return Some(newest);
        }
        version.timetable.prev_at_or_before(newest - Span(1)).filter(undecided)
    }

    /// The newest occurrence of the set that ends with `newest` which no edit dropped.
    pub(super) fn newest_to_fire(&self, version: &Version, newest: StoreTime) -> StoreTime {
        let mut at = newest;
        while self.is_dropped(at)
            && let Some(previous) = version.timetable.prev_at_or_before(at - Span(1))
        {
            at = previous;
        }
        at
    }

    /// Whether its rule makes no job: paused, in quarantine, or its count is used up.
    pub(super) fn is_at_rest(&self) -> bool {
        self.cursor.paused_at.is_some() || self.quarantined.is_some() || self.is_used_up()
    }

    /// Whether it fired as often as it may.
    pub(super) fn is_used_up(&self) -> bool {
        let count_max = self.current().and_then(|version| version.definition.spec.count_max);
        count_max.is_some_and(|count_max| self.cursor.fired >= count_max)
    }

    /// Looks for the next occurrence; notes when there is none left.
    pub(super) fn replan(&mut self, now: StoreTime) {
        self.plan = match self.is_at_rest() {
            true => None,
            false => self.planned_after(self.cursor.nominal),
        };
        let is_held = self.cursor.paused_at.is_some() || self.quarantined.is_some();
        let finished = self.plan.is_none() && !is_held;
        if finished != self.cursor.finished_at.is_some() && !is_held {
            self.cursor.finished_at = finished.then_some(now);
            self.dirty = true;
        }
    }

    /// The next occurrences of the line, at most `count`.
    pub(super) fn upcoming(&self, count: usize) -> Vec<StoreTime> {
        let mut at = self.cursor.nominal;
        let mut instants = Vec::new();
        let left = self.current().and_then(|version| version.definition.spec.count_max);
        let left = left.map_or(u64::MAX, |count_max| count_max.saturating_sub(self.cursor.fired));
        while instants.len() < count && (instants.len() as u64) < left {
            let next = self.planned_after(at).and_then(|next| self.fire_from(next));
            let Some(next) = next else {
                break;
            };
            at = next.nominal;
            instants.push(at);
        }
        instants
    }

    /// The tape of the live cursor.
    pub(super) fn tape<'a>(&'a mut self, zone_version: &'a Arc<str>) -> Tape<'a> {
        let cursor = &mut self.cursor;
        Tape {
            owner: (&cursor.tenant, &cursor.name, cursor.incarnation),
            zone_version,
            at: &mut cursor.nominal,
            open: &mut cursor.open,
            counts: &mut cursor.counts,
        }
    }

    /// The cursor stands elsewhere: its row must be written, with what the zone data say there.
    pub(super) fn cursor_moved(&mut self, step: &Step<'_>) {
        self.dirty = true;
        let nominal = self.cursor.nominal;
        if let Some(version) = self.current() {
            self.cursor.offset = version.timetable.offset_at(nominal);
        }
        if self.cursor.zone_version != *step.zone_version {
            self.cursor.zone_version = Arc::clone(step.zone_version);
        }
        if self.cursor.kept.is_some_and(|kept| kept.nominal <= nominal) {
            self.cursor.kept = None;
        }
        self.cursor.dropped.retain(|dropped| dropped.nominal > nominal);
    }

    /// Writes what changed.
    pub(super) fn flush(&mut self, step: &mut Step<'_>) {
        for backlog in self.backlogs.values_mut() {
            backlog.flush(step);
        }
        if std::mem::take(&mut self.dirty) {
            step.out.put(Row::Cursor(Box::new(self.cursor.clone())));
        }
    }

    /// As shown.
    pub(super) fn view(&self) -> Result<ScheduleReply, Refusal> {
        let Some(version) = self.current() else {
            return Err(refusals::quarantined(
                self.quarantined.as_deref().unwrap_or("its definition is missing"),
            ));
        };
        Ok(ScheduleReply::Schedule(Box::new(ScheduleView {
            definition: version.definition.clone(),
            cursor: self.cursor.clone(),
            next: self.next_fire().map(|planned| (planned.nominal, planned.due)),
            quarantined: self.quarantined.clone(),
        })))
    }
}
