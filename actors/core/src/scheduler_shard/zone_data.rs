//! Opening a schedule whose row was written with older zone data: an edit at now (PROTOCOL F22).
//!
//! Owns: what becomes of the instants that a row holds ahead of its cursor: what was kept is meant by its instant, what
//! was dropped by its local time. Must never: let two of them fall upon each other, or one local time fire twice. Next:
//! `dropped.rs`, docs/decisions/0035.

use super::live::Live;
use super::step::Step;
use super::tape::Bulk;
use super::timetable::Timetable;
use crate::fate::FateKind;
use crate::schedule::EditKind;
use crate::time::{MICROS, StoreTime};

impl Live {
    /// Newer zone data is an edit at now (F22): of a fixed-time rule, the next occurrence must be later
    /// by the local clock too, or the same local day would fire twice.
    pub(super) fn meet_zone_data(&mut self, step: &mut Step<'_>) {
        let Some(version) = self.current() else {
            return;
        };
        let table = &version.timetable;
        if self.cursor.zone_version != *step.zone_version && table.is_fixed_time() {
            self.move_dropped(table);
        }
        let moved = i64::from(self.cursor.offset) - i64::from(table.offset_at(self.cursor.nominal));
        let is_same = self.cursor.zone_version == *step.zone_version || moved == 0;
        if is_same || !table.is_fixed_time() {
            return;
        }
        let number = version.definition.version;
        self.record(step, EditKind::ZoneData, (number, number), None);
        let local = |at, offset: i32| at + i64::from(offset) * MICROS;
        let shown = local(self.cursor.nominal.0, self.cursor.offset);
        while let Some(next) = table.next_raw(self.cursor.nominal)
            && local(next.0, table.offset_at(next)) <= shown
            && !table.is_second_pass(next)
        {
            self.withdraw_shown(step, table, next);
        }
        self.cursor_moved(step);
    }

    /// Withdraws the occurrences up to `to`, whose local times clocks have shown before. A kept fire among them goes
    /// with them, with a fate of its own: the line moves forward only.
    fn withdraw_shown(&mut self, step: &mut Step<'_>, table: &Timetable, to: StoreTime) {
        let (kind, number) = (FateKind::WithdrawnEdit, self.cursor.definition);
        let kept = self.cursor.kept.filter(|kept| kept.nominal <= to);
        if let Some(kept) = kept {
            return self.grow_one(step, kept.nominal, kind, kept.definition);
        }
        let bulk = Bulk {
            to,
            kind,
            definition: number,
        };
        self.tape(step.zone_version).pass(table, bulk, step.out);
        self.cursor_moved(step);
    }

    /// Under newer zone data the same local time of a fixed-time rule is at another instant (F22); what was dropped
    /// is meant by its local time. A mark that comes upon another is one with it; one that comes upon a kept fire
    /// goes: what is kept is meant by its instant, and a person asked for it (docs/decisions/0035).
    fn move_dropped(&mut self, table: &Timetable) {
        let reached = self.cursor.nominal;
        for dropped in &mut self.cursor.dropped {
            let moved = i64::from(dropped.offset) - i64::from(table.offset_at(dropped.nominal));
            if moved != 0 {
                dropped.nominal = StoreTime(dropped.nominal.0.saturating_add(moved * MICROS));
                dropped.offset = table.offset_at(dropped.nominal);
                self.dirty = true;
            }
        }
        let kept = self.cursor.kept.map(|kept| kept.nominal);
        let is_ahead = |at: StoreTime| at > reached && Some(at) != kept;
        self.cursor.dropped.retain(|dropped| is_ahead(dropped.nominal));
        self.cursor.dropped.sort_unstable_by_key(|dropped| dropped.nominal);
        self.cursor.dropped.dedup_by_key(|dropped| dropped.nominal);
    }
}
