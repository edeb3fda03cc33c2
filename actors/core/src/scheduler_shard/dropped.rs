//! What edits dropped ahead of its time: remembered by its instant until time is there (PROTOCOL F25).
//!
//! Owns: the marks in the cursor row, and the fate *withdrawn by edit*. A dropped instant stays in the line of
//! occurrences and gets its fate when it comes, if the rule of that day asks for it; the cursor goes nowhere before.
//! Must never: hold up a rule, or fire. Next: `edit.rs`, `live.rs`, `zone_data.rs`.

use super::live::{Live, Planned};
use super::refusals;
use super::settle::Case;
use super::step::Step;
use super::tape::Piece;
use super::timetable::Timetable;
use super::version::Version;
use crate::fate::FateKind;
use crate::job::FireCause;
use crate::limits::EDIT_DROPS_MAX;
#[cfg(test)]
use crate::planted::Bug;
use crate::refusal::Refusal;
use crate::schedule::DroppedOccurrence;
use crate::time::{Span, StoreTime};

/// Whether a rule asks for this very instant.
fn asks(table: &Timetable, at: StoreTime) -> bool {
    table.next_after(at - Span(1)) == Some(at)
}

/// Whether it does, but for an excluded date.
fn asks_in_vain(table: &Timetable, at: StoreTime) -> bool {
    !asks(table, at) && table.next_raw(at - Span(1)) == Some(at)
}

impl Live {
    /// Whether an edit dropped what is planned for this instant.
    pub(super) fn is_dropped(&self, nominal: StoreTime) -> bool {
        #[cfg(test)]
        if Bug::DropLifted.is_planted() {
            return false;
        }
        self.cursor.dropped.iter().any(|dropped| dropped.nominal == nominal)
    }

    /// The next occurrence of the line that is to fire; nothing while it is at rest.
    pub(super) fn next_fire(&self) -> Option<Planned> {
        self.fire_from(self.plan?)
    }

    /// The first occurrence that is to fire, `planned` or one after it.
    pub(super) fn fire_from(&self, planned: Planned) -> Option<Planned> {
        let mut planned = planned;
        while planned.dropped {
            planned = self.planned_after(planned.nominal)?;
        }
        Some(planned)
    }

    /// Room for one more mark, once those are gone that say nothing any more: their instants belong to
    /// reigns that are over, and no kept fire of such a reign lies behind them.
    pub(super) fn make_room_to_drop(&mut self, effective_at: StoreTime) -> Result<(), Refusal> {
        if self.cursor.kept.is_none() {
            self.cursor.dropped.retain(|dropped| dropped.nominal > effective_at);
            self.dirty = true;
        }
        match self.cursor.dropped.len() < EDIT_DROPS_MAX {
            true => Ok(()),
            false => Err(refusals::too_many_drops(EDIT_DROPS_MAX)),
        }
    }

    /// Remembers what was planned and does not fire, whichever rule asks for it then.
    pub(super) fn drop_ahead(&mut self, nominal: StoreTime) {
        let dropped = &mut self.cursor.dropped;
        let place = dropped.partition_point(|known| known.nominal < nominal);
        dropped.insert(place, DroppedOccurrence { nominal, offset: 0 });
        self.dirty = true;
    }

    /// Where rows have no place for a mark: the new rule gives what was dropped its fate ahead of its time, if it asks
    /// for it next, and begins behind it.
    pub(super) fn withdraw_if_next(&mut self, step: &mut Step<'_>, nominal: StoreTime) {
        let next = self.planned_after(self.cursor.nominal);
        if next.is_some_and(|next| next.nominal == nominal) {
            self.withdraw(step, nominal, self.cursor.definition);
        }
    }

    /// Another rule may show other local times at the instants that were dropped.
    pub(super) fn show_dropped(&mut self, version: &Version) {
        for dropped in &mut self.cursor.dropped {
            dropped.offset = version.timetable.offset_at(dropped.nominal);
        }
    }

    /// What of a stretch from the cursor up to `to` was dropped and is asked for, the oldest first.
    pub(super) fn dropped_up_to(&self, version: &Version, to: StoreTime) -> Vec<StoreTime> {
        #[cfg(test)]
        if Bug::DropMissed.is_planted() {
            return Vec::new();
        }
        let instants = self.cursor.dropped.iter().map(|dropped| dropped.nominal);
        let is_within = |at: &StoreTime| *at > self.cursor.nominal && *at <= to;
        let within = instants.filter(is_within);
        within.filter(|at| asks(&version.timetable, *at)).collect()
    }

    /// What was dropped before `nominal`, which is the next to get a fate: the present rule's own gets its fate,
    /// and a span that ends at a kept fire of another version must not hold what that version asked for and lost.
    pub(super) fn pass_dropped(&mut self, step: &mut Step<'_>, nominal: StoreTime, definition: u64) {
        let Some(current) = self.current().filter(|_| !self.cursor.dropped.is_empty()) else {
            return;
        };
        let kept = self.versions.get(&definition).cloned();
        let instants: Vec<StoreTime> = self.cursor.dropped.iter().map(|dropped| dropped.nominal).collect();
        for at in instants.into_iter().filter(|at| *at < nominal) {
            let is_asked = asks(&current.timetable, at);
            let is_kept_away = kept.as_ref().is_some_and(|kept| asks(&kept.timetable, at));
            if at <= self.cursor.nominal || asks_in_vain(&current.timetable, at) || !(is_asked || is_kept_away) {
                continue;
            }
            self.grow_withdrawn(step, at, u64::from(is_asked), self.cursor.definition);
        }
    }

    /// The next occurrence of the line is withdrawn by an edit.
    pub(super) fn withdraw(&mut self, step: &mut Step<'_>, nominal: StoreTime, definition: u64) {
        self.pass_dropped(step, nominal, definition);
        self.grow_withdrawn(step, nominal, 1, definition);
    }

    fn grow_withdrawn(&mut self, step: &mut Step<'_>, nominal: StoreTime, count: u64, definition: u64) {
        let kind = FateKind::WithdrawnEdit;
        let piece = Piece {
            to: nominal,
            kind,
            count: Some(count),
            late: None,
            definition,
        };
        self.grow_behind_excluded(step, piece);
        if count > 0 {
            let case = Case {
                nominal,
                due: nominal,
                cause: FireCause::Due,
            };
            self.note(step, kind, &case, Some(count), None);
        }
    }
}
