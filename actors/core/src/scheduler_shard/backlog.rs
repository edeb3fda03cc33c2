//! Missed stretches and made-up ranges, released bit by bit beside the live cursor (PROTOCOL F24).
//!
//! Owns: cutting a stretch off, its pace, and the fates of what it releases. Must never: delay a live
//! fire: it uses what the live schedules leave of a step's budget.

use super::live::Live;
use super::settle::{Case, fire, judge};
use super::step::Step;
use super::tape::{Bulk, Piece, Tape};
use super::version::{Discriminator, Version};
use crate::fate::FateKind;
use crate::job::FireCause;
use crate::limits::{BACKLOG_PACE_MS, BACKLOG_PAGE, BACKLOG_SPANS_MAX};
#[cfg(test)]
use crate::planted::Bug;
use crate::row::Row;
use crate::schedule::{BackfillMark, BacklogRow};
use crate::time::{Monotonic, Span, StoreTime};
use std::sync::Arc;

/// A backlog in memory.
#[derive(Clone, Debug)]
pub(super) struct Backlog {
    pub(super) row: BacklogRow,
    /// When it last released something; `None` since the shard was opened.
    last: Option<Monotonic>,
    /// When it may release again.
    next: Monotonic,
    dirty: bool,
}

/// A new backlog, but for its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) definition: u64,
    pub(super) from: StoreTime,
    pub(super) to: StoreTime,
    pub(super) rate: u32,
    pub(super) backfill: Option<BackfillMark>,
}

/// Releases come no closer together than this.
const PACE: Span = Span::from_millis(BACKLOG_PACE_MS);
const SECOND: u64 = 1_000_000;

impl Backlog {
    /// As loaded or just made; it may release at once.
    pub(super) fn new(row: BacklogRow, now: Monotonic, dirty: bool) -> Backlog {
        Backlog {
            row,
            last: None,
            next: now,
            dirty,
        }
    }

    /// When it may release again.
    pub(super) fn next(&self) -> Monotonic {
        self.next
    }

    /// Whether a misfire made it, rather than a person.
    pub(super) fn is_misfire(&self) -> bool {
        self.row.backfill.is_none()
    }

    /// Whether it runs again what has a fate already, so that it decides none.
    pub(super) fn is_rerun(&self) -> bool {
        self.row.backfill.is_some_and(|mark| mark.request != 0)
    }

    pub(super) fn flush(&mut self, step: &mut Step<'_>) {
        if std::mem::take(&mut self.dirty) {
            step.out.put(Row::Backlog(Box::new(self.row.clone())));
        }
    }

    /// How many jobs it may release now; sets when it may again.
    fn take_allowance(&mut self, now: Monotonic) -> usize {
        let rate = u64::from(self.row.rate.max(1));
        let wait = Span(SECOND / rate).max(PACE);
        let elapsed = self.last.map_or(wait, |last| now.since(last));
        self.last = Some(now);
        self.next = now + wait;
        let allowed = u128::from(rate) * u128::from(elapsed.0) / u128::from(SECOND);
        usize::try_from(allowed).unwrap_or(BACKLOG_PAGE).clamp(1, BACKLOG_PAGE)
    }
}

impl Live {
    /// Policy `all`: cuts what is missed up to `to` into a backlog, the newest `cap` of it.
    pub(super) fn cut_backlog(
        &mut self,
        step: &mut Step<'_>,
        version: &Version,
        to: StoreTime,
        (cap, rate): (u32, u32),
    ) {
        let first = self.cursor.backlog_next;
        let begin = version.timetable.newest_begin(self.cursor.nominal, to, u64::from(cap));
        self.pass(step, version, FateKind::SkippedCap, begin);
        for dropped in self.dropped_up_to(version, to) {
            self.cut_stretch(step, version, dropped - Span(1), rate);
            self.withdraw(step, dropped, version.definition.version);
        }
        self.cut_stretch(step, version, to, rate);
        #[cfg(test)]
        if Bug::BacklogsUnmerged.is_planted() {
            return;
        }
        // However many pieces, an outage is caught up with as a whole: it gives up what is older, nothing of its own.
        let is_new = self.backlogs.range(first..).next().is_some();
        let older: Vec<u32> = self.misfires_before(first).collect();
        let surplus = (older.len() + usize::from(is_new)).saturating_sub(BACKLOG_SPANS_MAX);
        for number in older.into_iter().take(surplus) {
            self.close_backlog(step, number, FateKind::SkippedCap);
        }
    }

    fn misfires_before(&self, number: u32) -> impl Iterator<Item = u32> {
        let older = self.backlogs.range(..number);
        older
            .filter(|(_, backlog)| backlog.is_misfire())
            .map(|(number, _)| *number)
    }

    /// Cuts off what is missed between the cursor and `to`, if anything is.
    fn cut_stretch(&mut self, step: &mut Step<'_>, version: &Version, to: StoreTime, rate: u32) {
        let next = version.timetable.next_after(self.cursor.nominal);
        if next.is_none_or(|next| next > to) {
            return;
        }
        self.tape(step.zone_version).close(step.out);
        let cut = Cut {
            definition: version.definition.version,
            from: self.cursor.nominal,
            to,
            rate,
            backfill: None,
        };
        self.cursor.nominal = to;
        self.cursor_moved(step);
        let newest = self.backlogs.values_mut().next_back();
        match newest.filter(|last| last.continues(&cut)) {
            Some(last) => {
                last.row.to = to;
                last.dirty = true;
            }
            None => self.add_backlog(step, cut),
        }
    }

    /// Adds a backlog under the next number.
    pub(super) fn add_backlog(&mut self, step: &Step<'_>, cut: Cut) {
        let number = self.cursor.backlog_next;
        self.cursor.backlog_next += 1;
        self.dirty = true;
        let row = BacklogRow {
            tenant: self.cursor.tenant.clone(),
            name: self.cursor.name.clone(),
            incarnation: self.cursor.incarnation,
            number,
            definition: cut.definition,
            from: cut.from,
            to: cut.to,
            rate: cut.rate,
            backfill: cut.backfill,
            released: 0,
            open: None,
        };
        self.backlogs.insert(number, Backlog::new(row, step.now.mono, true));
    }

    /// When the next backlog may release; a pause holds those of misfires.
    pub(super) fn next_release(&self) -> Option<Monotonic> {
        let held = |backlog: &&Backlog| !self.holds(backlog);
        self.backlogs.values().filter(held).map(Backlog::next).min()
    }

    fn holds(&self, backlog: &Backlog) -> bool {
        self.quarantined.is_some() || (self.cursor.paused_at.is_some() && backlog.is_misfire())
    }

    /// Releases what the backlogs may release now.
    pub(super) fn release(&mut self, step: &mut Step<'_>) {
        let ready = |(_, backlog): &(&u32, &Backlog)| !self.holds(backlog) && backlog.next <= step.now.mono;
        let numbers: Vec<u32> = self.backlogs.iter().filter(ready).map(|(number, _)| *number).collect();
        for number in numbers {
            if !step.has_budget() {
                return;
            }
            self.release_page(step, number);
        }
        self.replan(step.now.store);
    }

    fn release_page(&mut self, step: &mut Step<'_>, number: u32) {
        let Some(mut backlog) = self.backlogs.remove(&number) else {
            return;
        };
        let Some(version) = self.versions.get(&backlog.row.definition).map(Arc::clone) else {
            self.backlogs.insert(number, backlog);
            return self.quarantine(step, "a definition version that a backlog names is missing");
        };
        let mut left = backlog.take_allowance(step.now.mono);
        while left > 0 && step.has_budget() {
            let next = version.timetable.next_after(backlog.row.from);
            let Some(nominal) = next.filter(|next| *next <= backlog.row.to) else {
                break;
            };
            // Not early either, when the clock was lowered since.
            let case = backlog.case(&version, nominal);
            if case.due > step.now.store || (backlog.is_misfire() && self.is_used_up()) {
                break;
            }
            left -= 1;
            step.spend();
            backlog.dirty = true;
            self.release_one(step, &version, &mut backlog, case);
        }
        let rest = version
            .timetable
            .next_after(backlog.row.from)
            .filter(|next| *next <= backlog.row.to);
        let is_over = rest.is_none() || (backlog.is_misfire() && self.is_used_up());
        self.backlogs.insert(number, backlog);
        if is_over {
            self.close_backlog(step, number, FateKind::SkippedCap);
        }
    }

    fn release_one(&mut self, step: &mut Step<'_>, version: &Version, backlog: &mut Backlog, case: Case) {
        let nominal = case.nominal;
        let kind = judge(&version.definition.spec, &case, step.now.store);
        let late = kind.is_fired() && backlog.is_misfire();
        let discriminator = match backlog.row.backfill {
            Some(mark) if mark.request != 0 => Discriminator::Rerun(mark.request),
            Some(_) | None => Discriminator::Occurrence,
        };
        if backlog.is_rerun() {
            backlog.row.from = nominal;
        } else {
            let definition = version.definition.version;
            let mut tape = self.backlog_tape(&mut backlog.row, step.zone_version);
            tape.pass_excluded(&version.timetable, nominal, definition, step.out);
            let late = late.then(|| step.now.store.since(case.due));
            tape.grow(
                Piece {
                    to: nominal,
                    kind,
                    count: Some(1),
                    late,
                    definition,
                },
                step.out,
            );
            self.dirty = true;
        }
        let job = kind.is_fired().then(|| {
            self.cursor.fired += u64::from(backlog.is_misfire());
            backlog.row.released += 1;
            fire(step, version, case, discriminator)
        });
        self.note(step, kind, &case, Some(1), job);
    }

    /// Ends a backlog; what is left of it gets `kind`.
    pub(super) fn close_backlog(&mut self, step: &mut Step<'_>, number: u32, kind: FateKind) {
        let Some(mut backlog) = self.backlogs.remove(&number) else {
            return;
        };
        let key = Row::Backlog(Box::new(backlog.row.clone())).key();
        step.out.delete(key);
        if backlog.is_rerun() {
            return;
        }
        let (to, definition) = (backlog.row.to, backlog.row.definition);
        let version = self
            .versions
            .get(&definition)
            .filter(|version| !version.is_broken())
            .map(Arc::clone);
        let mut tape = self.backlog_tape(&mut backlog.row, step.zone_version);
        match version {
            Some(version) => {
                tape.pass(&version.timetable, Bulk { to, kind, definition }, step.out);
                tape.stretch_to(to);
            }
            None => tape.grow(
                Piece {
                    to,
                    kind,
                    count: None,
                    late: None,
                    definition,
                },
                step.out,
            ),
        }
        tape.close(step.out);
        self.dirty = true;
    }

    fn backlog_tape<'a>(&'a mut self, row: &'a mut BacklogRow, zone_version: &'a Arc<str>) -> Tape<'a> {
        Tape {
            owner: (&self.cursor.tenant, &self.cursor.name, self.cursor.incarnation),
            zone_version,
            at: &mut row.from,
            open: &mut row.open,
            counts: &mut self.cursor.counts,
        }
    }
}

impl Backlog {
    fn case(&self, version: &Version, nominal: StoreTime) -> Case {
        let next = version
            .has_jitter()
            .then(|| version.timetable.next_after(nominal))
            .flatten();
        Case {
            nominal,
            due: version.due(nominal, next),
            cause: match self.is_misfire() {
                true => FireCause::CatchUp,
                false => FireCause::Backfill,
            },
        }
    }

    fn continues(&self, cut: &Cut) -> bool {
        let row = &self.row;
        row.backfill.is_none() && row.to == cut.from && row.definition == cut.definition && row.rate == cut.rate
    }
}
