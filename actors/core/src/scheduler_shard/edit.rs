//! Replacing a definition: it holds from the moment of the edit (PROTOCOL F25).
//!
//! Owns: the end of the old version's reign, the fate of the fire that was planned, the dry run. Must
//! never: work backwards. Next: `dropped.rs`, `hold.rs` (pause, resume, delete).

use super::SchedulerShard;
use super::create::check_spec;
use super::index::Place;
use super::io::{Fire, ScheduleEffect, ScheduleReply, Seen};
use super::live::{Live, Planned};
use super::refusals;
use super::step::Step;
use super::tape::Piece;
use super::version::Version;
use crate::fate::FateKind;
use crate::ids::Incarnation;
use crate::limits::EDIT_PREVIEW_COUNT;
use crate::machine::{Out, ReplyTo};
use crate::name::Name;
use crate::refusal::Refusal;
use crate::row::Row;
use crate::schedule::{EditKind, KeptOccurrence, PendingFate, Rule, ScheduleDefinition, ScheduleSpec};
use crate::time::{Span, StoreTime};
use std::sync::Arc;

/// An edit as asked for.
pub(super) struct Edit {
    pub(super) if_match: Option<Seen>,
    pub(super) spec: ScheduleSpec,
    pub(super) pending: PendingFate,
    pub(super) dry_run: bool,
}

impl SchedulerShard {
    pub(super) fn on_edit(&mut self, step: &mut Step<'_>, reply: ReplyTo, name: (Name, Name), mut edit: Edit) {
        let answer = match self.find(&name) {
            Err(refusal) => Err(refusal),
            Ok(place) => check_spec(&mut edit.spec, &name).and_then(|()| self.edit(step, place, edit)),
        };
        step.reply(reply, answer);
    }

    fn edit(&mut self, step: &mut Step<'_>, place: Place, edit: Edit) -> Result<ScheduleReply, Refusal> {
        step.need_room()?;
        refusals::need_memory(self.index.bytes(), edit.spec.weight())?;
        if edit.dry_run {
            return self
                .index
                .get(place)
                .map_or(Err(refusals::not_found("")), |live| dry_run(live, step, edit));
        }
        self.touch(step, place, |live, step| {
            live.edit(step, edit)?;
            // A one-shot in the past is due.
            live.settle(step);
            live.view()
        })
    }

    /// The place of a schedule, or the refusal that it is not there.
    pub(super) fn find(&self, name: &(Name, Name)) -> Result<Place, Refusal> {
        if !self.is_home_of(name) {
            return Err(refusals::other_shard());
        }
        self.index
            .find(name)
            .ok_or_else(|| refusals::not_found(name.1.as_str()))
    }

    /// Lets a request work on a schedule: all that is due by now is decided before, so that the
    /// request cannot work backwards, and what changed is written after. On a full disk nothing can be
    /// decided before; requests that need room for that have been refused.
    pub(super) fn touch(
        &mut self,
        step: &mut Step<'_>,
        place: Place,
        change: impl FnOnce(&mut Live, &mut Step<'_>) -> Result<ScheduleReply, Refusal>,
    ) -> Result<ScheduleReply, Refusal> {
        let answer = self.index.with(place, |live| {
            live.settle(step);
            let is_free = step.is_full && !step.now.doubt;
            let answer = match is_free || live.is_settled(step) {
                true => change(live, step),
                false => Err(refusals::unsettled(step.now.doubt)),
            };
            live.flush(step);
            answer
        });
        answer.unwrap_or_else(|| Err(refusals::not_found("")))
    }
}

/// The edit on a copy, with nothing written.
fn dry_run(live: &Live, step: &Step<'_>, edit: Edit) -> Result<ScheduleReply, Refusal> {
    let (mut out, mut fires): (Out<ScheduleEffect>, Vec<Fire>) = Default::default();
    let mut scratch = Step {
        now: step.now,
        out: &mut out,
        fires: &mut fires,
        budget: step.budget,
        shard: step.shard,
        bytes: step.bytes,
        is_full: step.is_full,
        level: step.level,
        zone_version: step.zone_version,
    };
    let mut copy = live.clone();
    copy.settle(&mut scratch);
    if !copy.is_settled(&scratch) {
        return Err(refusals::unsettled(step.now.doubt));
    }
    let before = copy.upcoming(EDIT_PREVIEW_COUNT);
    let planned = copy.next_fire().map(|planned| (planned.nominal, edit.pending));
    copy.edit(&mut scratch, edit)?;
    Ok(ScheduleReply::EditPreview {
        before,
        after: copy.upcoming(EDIT_PREVIEW_COUNT),
        pending: planned,
    })
}

impl Seen {
    /// The definition that is there must be the one that was seen, in the same life of the name.
    ///
    /// # Errors
    /// It is another one.
    pub fn check(self, incarnation: Incarnation, version: u64) -> Result<(), Refusal> {
        if self.incarnation.is_some_and(|seen| seen != incarnation) {
            return Err(refusals::life_differs());
        }
        match self.version == version {
            true => Ok(()),
            false => Err(refusals::version_differs(self.version, version)),
        }
    }
}

/// The instant of a one-shot.
fn once_of(spec: &ScheduleSpec) -> Option<StoreTime> {
    match spec.rule {
        Rule::Once { at, .. } => Some(at),
        Rule::Cron { .. } | Rule::Interval { .. } => None,
    }
}

impl Live {
    fn edit(&mut self, step: &mut Step<'_>, edit: Edit) -> Result<(), Refusal> {
        let from = self.cursor.definition;
        if let Some(seen) = edit.if_match {
            seen.check(self.cursor.incarnation, from)?;
        }
        let effective_at = self.reign_begin(&edit.spec, step.now.store.max(self.cursor.nominal))?;
        let first = self.versions.values().next();
        let created_at = first.map_or(step.now.store, |first| first.definition.created_at);
        let definition = ScheduleDefinition {
            tenant: self.cursor.tenant.clone(),
            name: self.cursor.name.clone(),
            incarnation: self.cursor.incarnation,
            version: from + 1,
            created_at,
            effective_at,
            spec: edit.spec,
        };
        let new = Version::compile(definition)?;
        let planned = self.next_fire();
        let dropped = planned.filter(|_| edit.pending == PendingFate::Drop);
        let dropped = dropped.filter(|planned| planned.nominal > effective_at);
        if dropped.is_some() && step.level.marks_drops() {
            self.make_room_to_drop(effective_at)?;
        }
        self.begin_history_before(effective_at);
        self.end_reign(step, effective_at);
        if let Some(planned) = planned {
            self.decide_pending(step, planned, &new, edit.pending);
        }
        self.record(
            step,
            EditKind::Edited,
            (from, from + 1),
            planned.map(|p| (p.nominal, edit.pending)),
        );
        if let Some(dropped) = dropped.filter(|_| step.level.marks_drops()) {
            self.drop_ahead(dropped.nominal);
        }
        self.switch(step, new);
        if let Some(dropped) = dropped.filter(|_| !step.level.marks_drops()) {
            self.withdraw_if_next(step, dropped.nominal);
        }
        self.replan(step.now.store);
        Ok(())
    }

    /// When the reign of an edited rule begins: with the edit, or just before the past instant that a one-shot is
    /// given, as at creation. Such an instant must lie behind all that has a fate, or would have been given one by
    /// now.
    fn reign_begin(&self, spec: &ScheduleSpec, edited_at: StoreTime) -> Result<StoreTime, Refusal> {
        let once = once_of(spec);
        let is_new = once != self.current().and_then(|version| once_of(&version.definition.spec));
        let Some(once) = once.filter(|once| *once <= edited_at && is_new) else {
            return Ok(edited_at);
        };
        let is_open = self.cursor.paused_at.is_none() && (self.is_unlived() || self.cursor.nominal < once);
        match is_open {
            true if self.asked_up_to(edited_at).is_none_or(|asked| asked < once) => Ok(once - Span(1)),
            _ => Err(refusals::once_decided()),
        }
    }

    /// The last instant, not after `to`, that the present rule asked for and that has no fate yet.
    fn asked_up_to(&self, to: StoreTime) -> Option<StoreTime> {
        if self.quarantined.is_some() {
            return Some(to);
        }
        let kept = self.cursor.kept.map(|kept| kept.nominal).filter(|kept| *kept <= to);
        let current = self.current();
        let asked = current.and_then(|version| version.timetable.prev_raw(to + Span(1)));
        kept.max(asked).filter(|asked| *asked > self.cursor.nominal)
    }

    /// Whether nothing of it has had a fate.
    fn is_unlived(&self) -> bool {
        let cursor = &self.cursor;
        cursor.nominal == cursor.history_at && cursor.open.is_none() && cursor.fired == 0 && self.backlogs.is_empty()
    }

    /// The reign of a rule does not begin before history does: where nothing has happened, that begins earlier.
    fn begin_history_before(&mut self, effective_at: StoreTime) {
        if effective_at < self.cursor.nominal {
            (self.cursor.nominal, self.cursor.history_at) = (effective_at, effective_at);
            if let Some(version) = self.current() {
                self.cursor.offset = version.timetable.offset_at(effective_at);
            }
            self.dirty = true;
        }
    }

    /// What a pause, a quarantine or a used-up count hid belongs to the old version.
    fn end_reign(&mut self, step: &mut Step<'_>, effective_at: StoreTime) {
        if self.quarantined.take().is_some() {
            self.pass_unknown(step, FateKind::Quarantined);
            self.leave_behind(step);
        } else if self.cursor.paused_at.is_some() {
            self.pass_line(step, FateKind::Paused, effective_at);
        } else if self.is_used_up() {
            self.pass_line(step, FateKind::SkippedCap, effective_at);
        } else {
            self.pass_excluded_up_to(step, effective_at);
        }
        if self.cursor.paused_at.is_some() {
            self.cursor.kept = None;
        }
    }

    /// Excluded occurrences of the old version that no fire has passed yet.
    fn pass_excluded_up_to(&mut self, step: &mut Step<'_>, effective_at: StoreTime) {
        let Some(version) = self.current() else {
            return;
        };
        let end = effective_at + Span(1);
        let end = self.plan.map_or(end, |planned| planned.nominal.min(end));
        let before = self.cursor.nominal;
        let number = version.definition.version;
        self.tape(step.zone_version)
            .pass_excluded(&version.timetable, end, number, step.out);
        if self.cursor.nominal > before {
            self.cursor_moved(step);
        }
    }

    fn decide_pending(&mut self, step: &mut Step<'_>, planned: Planned, new: &Version, fate: PendingFate) {
        let effective_at = new.definition.effective_at;
        let is_past = planned.nominal <= effective_at;
        let keep = |due, definition| {
            Some(KeptOccurrence {
                nominal: planned.nominal,
                due,
                definition,
            })
        };
        self.cursor.kept = match fate {
            PendingFate::Keep => keep(planned.due, planned.version),
            PendingFate::Retime if is_past => {
                let next = new.timetable.next_after(planned.nominal);
                // Still of the old version, whose reign it lies in (F25): only its time is new.
                keep(new.due(planned.nominal, next), planned.version)
            }
            PendingFate::Retime | PendingFate::Drop => None,
        };
        if fate == PendingFate::Drop && is_past {
            self.withdraw(step, planned.nominal, planned.version);
        }
        self.dirty = true;
    }

    fn switch(&mut self, step: &mut Step<'_>, new: Version) {
        step.out.insert(Row::Definition(Box::new(new.definition.clone())));
        self.cursor.definition = new.definition.version;
        self.show_dropped(&new);
        self.versions.insert(new.definition.version, Arc::new(new));
        self.dirty = true;
    }

    /// Gives the next occurrence of the line a fate that makes no job.
    pub(super) fn grow_one(&mut self, step: &mut Step<'_>, nominal: StoreTime, kind: FateKind, definition: u64) {
        let piece = Piece {
            to: nominal,
            kind,
            count: Some(1),
            late: None,
            definition,
        };
        self.grow_next(step, piece);
    }

    /// Appends a piece that ends at the next occurrence of the line, behind what is before it and does not fire.
    pub(super) fn grow_next(&mut self, step: &mut Step<'_>, piece: Piece) {
        self.pass_dropped(step, piece.to, piece.definition);
        self.grow_behind_excluded(step, piece);
    }

    /// Appends a piece behind the excluded occurrences before it.
    pub(super) fn grow_behind_excluded(&mut self, step: &mut Step<'_>, piece: Piece) {
        let current = self.current();
        let mut tape = self.tape(step.zone_version);
        if let Some(current) = current {
            tape.pass_excluded(&current.timetable, piece.to, current.definition.version, step.out);
        }
        tape.grow(piece, step.out);
        self.cursor_moved(step);
    }

    /// Gives the whole line up to `to` one fate, a kept occurrence included.
    pub(super) fn pass_line(&mut self, step: &mut Step<'_>, kind: FateKind, to: StoreTime) {
        let Some(version) = self.current() else {
            return self.pass_unknown(step, kind);
        };
        let kept = self.cursor.kept.filter(|kept| kept.nominal <= to);
        if let Some(kept) = kept {
            self.pass(step, &version, kind, kept.nominal - Span(1));
            self.grow_one(step, kept.nominal, kind, kept.definition);
        }
        self.pass(step, &version, kind, to);
    }
}
