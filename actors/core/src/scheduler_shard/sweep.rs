//! The slow walk over all histories: audits them, fills in counts, drops what is too old.
//!
//! Owns: its pace, the place it has reached, and the begin of each history (PROTOCOL F23). Must never:
//! purge what a backlog still owes, or anything in clock doubt; or repair what it finds wrong. Next:
//! `audit.rs`.

use super::SchedulerShard;
use super::audit::{AuditFault, AuditFaultKind, AuditInput, audit};
use super::io::ScheduleEffect;
use super::live::Live;
use super::marks::bound;
use super::past_lives::horizon;
use super::step::Step;
use super::tape;
use crate::fate::FateSpan;
use crate::ids::{Incarnation, Slot};
use crate::limits::{AUDIT_PAGE_MS, AUDIT_ROUND_MS, AUDIT_ROWS, SWEEP_BUSY_PAUSE_MS};
use crate::name::Name;
use crate::row::RowKey;
use crate::schedule::{BacklogRow, ScheduleDefinition};
use crate::time::{Monotonic, Now, Span, StoreTime};

/// Where the walk is.
#[derive(Clone, Debug)]
pub(super) struct Sweep {
    /// The schedule walked over last.
    last: Option<(Name, Name)>,
    /// The page ordered: of which life, and from where.
    ordered: Option<(Incarnation, StoreTime)>,
    /// Where the next page of the same schedule begins.
    goes_on_at: Option<StoreTime>,
    next_at: Option<Monotonic>,
}

const PAGE: Span = Span::from_millis(AUDIT_PAGE_MS);
const BUSY: Span = Span::from_millis(SWEEP_BUSY_PAUSE_MS);
const ROUND: Span = Span::from_millis(AUDIT_ROUND_MS);

impl Sweep {
    /// The first round begins soon after an open.
    pub(super) fn new(now: Monotonic) -> Sweep {
        Sweep {
            last: None,
            ordered: None,
            goes_on_at: None,
            next_at: Some(now + PAGE),
        }
    }
}

impl SchedulerShard {
    /// For tests that would only see more steps by it.
    #[cfg(test)]
    pub(super) fn stop_sweep(&mut self) {
        self.sweep.next_at = None;
    }

    /// When the next page is to be ordered; never while there is nothing to walk over.
    pub(super) fn sweep_at(&self) -> Option<Monotonic> {
        let is_walking = self.requests.is_waiting() || self.edits.is_waiting();
        let is_waiting = self.sweep.ordered.is_some() || self.past.is_waiting() || is_walking;
        // In trials an audited page would be blamed on whoever is tried.
        let is_idle = is_waiting || self.is_trying() || (self.index.len() == 0 && self.past.is_empty());
        self.sweep.next_at.filter(|_| !is_idle)
    }

    /// Orders the next page when its time has come.
    pub(super) fn order_sweep(&mut self, step: &mut Step<'_>) {
        if step.now.doubt || self.sweep_at().is_none_or(|at| at > step.now.mono) {
            return;
        }
        let last = self.sweep.last.as_ref();
        let same = last
            .filter(|_| self.sweep.goes_on_at.is_some())
            .and_then(|name| self.index.find(name));
        let live = match same {
            Some(place) => self.index.get(place),
            None => self.index.after(last),
        };
        let Some(live) = live else {
            return self.end_round(step);
        };
        let cursor = &live.cursor;
        let after = self.sweep.goes_on_at.take().unwrap_or(cursor.history_at);
        let name = (cursor.tenant.clone(), cursor.name.clone());
        let incarnation = cursor.incarnation;
        self.sweep.last = Some(name.clone());
        self.sweep.ordered = Some((incarnation, after));
        let limit = AUDIT_ROWS;
        step.out.effect(ScheduleEffect::LoadFates {
            name,
            incarnation,
            after,
            limit,
        });
    }

    /// After the living the dead, then what was asked for and done, then a pause.
    fn end_round(&mut self, step: &mut Step<'_>) {
        if self.past.order(step) || self.order_requests(step) || self.order_edits(step) {
            return;
        }
        self.past.begin_round();
        self.requests.begin_round();
        self.edits.begin_round();
        self.sweep.last = None;
        self.sweep.next_at = Some(step.now.mono + ROUND);
    }

    /// The next page after a pause, a short one while there is much to drop.
    pub(super) fn page_came(&mut self, now: Now, is_busy: bool) {
        let pause = if is_busy { BUSY } else { PAGE };
        self.sweep.next_at = self.sweep.next_at.map(|_| now.mono + pause);
    }

    pub(super) fn on_fates_loaded(
        &mut self,
        step: &mut Step<'_>,
        name: &(Name, Name),
        incarnation: Incarnation,
        fates: Vec<FateSpan>,
        is_end: bool,
    ) {
        self.past.on_page(step, incarnation, &fates, is_end);
        let ordered = self.sweep.ordered.take().filter(|(life, _)| *life == incarnation);
        self.page_came(step.now, false);
        let (Some((_, after)), Some(place)) = (ordered, self.index.find(name)) else {
            return;
        };
        self.sweep.goes_on_at = fates.last().filter(|_| !is_end).map(|last| last.to);
        let page = Page { after, fates, is_end };
        self.index.with(place, |live| {
            if live.cursor.incarnation == incarnation {
                live.move_numbers(step);
                live.audit_page(step, &page);
                live.flush(step);
            }
        });
    }
}

/// Closed spans as read.
struct Page {
    after: StoreTime,
    fates: Vec<FateSpan>,
    is_end: bool,
}

impl Live {
    fn audit_page(&mut self, step: &mut Step<'_>, page: &Page) {
        // An edit or backfill since the order may have moved the begin of this page.
        if page.after < self.cursor.history_at {
            return;
        }
        let definitions: Vec<ScheduleDefinition> = self.versions.values().map(|v| v.definition.clone()).collect();
        let end = page.fates.last().map_or(page.after, |last| last.to);
        let lies_in = |row: &&BacklogRow| row.to > page.after && (page.is_end || row.from < end);
        let backlogs: Vec<BacklogRow> = self
            .backlogs
            .values()
            .map(|b| &b.row)
            .filter(lies_in)
            .cloned()
            .collect();
        if self.quarantined.is_some() && page.is_end {
            self.name_quarantine(step);
        }
        let report = audit(AuditInput {
            definitions: &definitions,
            unevaluated: bound(&self.poisons).0,
            fates: &page.fates,
            begins_at: Some(page.after),
            cursor: Some(&self.cursor).filter(|_| page.is_end),
            backlogs: &backlogs,
        });
        for fault in report.faults {
            let name = (self.cursor.tenant.clone(), self.cursor.name.clone());
            step.out.effect(ScheduleEffect::AuditFault { name, fault });
        }
        for (span, count) in report.filled {
            self.fill_in(step, span, count);
        }
        if page.after == self.cursor.history_at && !step.now.doubt {
            self.purge(step, &page.fates);
        }
    }

    /// Nobody fires it: an operator must see that.
    fn name_quarantine(&self, step: &mut Step<'_>) {
        let name = (self.cursor.tenant.clone(), self.cursor.name.clone());
        let fault = AuditFault {
            kind: AuditFaultKind::Quarantined,
            from: self.cursor.nominal,
            to: step.now.store.max(self.cursor.nominal),
            instants: Vec::new(),
        };
        step.out.effect(ScheduleEffect::AuditFault { name, fault });
    }

    /// A span that nobody walked over gets its count.
    fn fill_in(&mut self, step: &mut Step<'_>, span: FateSpan, count: u64) {
        self.cursor.counts.add(span.kind, count);
        self.dirty = true;
        let owner = (&self.cursor.tenant, &self.cursor.name, self.cursor.incarnation);
        let count = Some(count);
        step.out.put(tape::row(owner, FateSpan { count, ..span }));
    }

    /// Drops the oldest spans and moves the begin of history with them, or the auditor would see a hole.
    fn purge(&mut self, step: &mut Step<'_>, fates: &[FateSpan]) {
        let horizon = horizon(step.now.store);
        let slot = Slot::of_schedule(&self.cursor.tenant, &self.cursor.name);
        for span in fates {
            if span.from != self.cursor.history_at || span.to > horizon {
                break;
            }
            let (tenant, name) = (self.cursor.tenant.clone(), self.cursor.name.clone());
            step.out.delete(RowKey::Fate(
                slot,
                tenant,
                name,
                self.cursor.incarnation,
                span.to,
                span.from,
            ));
            self.cursor.history_at = span.to;
            self.dirty = true;
        }
    }
}
