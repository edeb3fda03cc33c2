//! A store of rows, a clock and a record of jobs, around one SchedulerShard.
//!
//! Every write is applied as the store would, conditions included; a restart builds the machine from
//! rows alone; every step is followed by `check()`, and an audit of all histories can be asked for.

use crate::fate::{FateKind, FateSpan};
use crate::ids::JobId;
use crate::job::{FireCause, Origin};
use crate::level;
use crate::limits::AUDIT_PAGE_MS;
use crate::machine::{Expect, Out, ReplyTo, Wake, Write};
use crate::refusal::Refusal;
use crate::row::{Row, RowKey};
use crate::schedule::{BacklogRow, CursorRow, ScheduleDefinition, ScheduleSpec};
use crate::scheduler_shard::SchedulerShard;
use crate::scheduler_shard::audit::{AuditFault, AuditInput, AuditReport, audit};
use crate::scheduler_shard::io::{
    Fire, FireNote, Loaded, ScheduleEffect, ScheduleInput, ScheduleOpened, ScheduleReply, ScheduleView,
};
use crate::time::{Monotonic, Now, Span, StoreTime};
use std::collections::BTreeMap;

pub use super::make::*;

pub struct World {
    pub rows: BTreeMap<RowKey, Row>,
    pub machine: SchedulerShard,
    pub now: Now,
    pub epoch: u64,
    /// Every job ever made, in order.
    pub jobs: Vec<Fire>,
    pub ids: BTreeMap<JobId, usize>,
    pub notes: Vec<FireNote>,
    /// Of jobs that are stored: when they ended.
    pub ends: BTreeMap<JobId, Option<StoreTime>>,
    /// What the auditor found.
    pub faults: Vec<AuditFault>,
    /// What the shell would hand in next, for trials.
    pub orders: Vec<ScheduleInput>,
    /// A page that the auditor ordered.
    ordered: Option<ScheduleEffect>,
    /// Rows written, by all steps.
    pub writes: usize,
    pub steps: usize,
    /// Whether each step is followed by `check()`, which visits every schedule.
    is_checked: bool,
}

impl World {
    pub fn new(seconds: i64) -> World {
        let now = Now {
            store: at(seconds),
            mono: Monotonic(0),
            doubt: false,
        };
        let mut machine = SchedulerShard::open(facts(1), ScheduleOpened::default(), now, &mut Out::default()).unwrap();
        machine.set_level(level::NEWEST);
        machine.stop_sweep();
        World {
            rows: BTreeMap::new(),
            machine,
            now,
            epoch: 1,
            jobs: Vec::new(),
            ids: BTreeMap::new(),
            notes: Vec::new(),
            ends: BTreeMap::new(),
            faults: Vec::new(),
            orders: Vec::new(),
            ordered: None,
            writes: 0,
            steps: 0,
            is_checked: true,
        }
    }

    /// For many schedules.
    pub fn unchecked(seconds: i64) -> World {
        World {
            is_checked: false,
            ..World::new(seconds)
        }
    }

    /// One step; answers the reply, if there was one.
    pub fn step(&mut self, input: ScheduleInput) -> Option<Result<ScheduleReply, Refusal>> {
        let input = self.look(input);
        let (mut out, mut fires) = (Out::default(), Vec::new());
        self.machine.step(self.now, input, &mut out, &mut fires);
        if self.is_checked {
            self.machine.check();
        }
        self.steps += 1;
        self.commit(out, fires)
    }

    /// As the store and the LeaseManager would take it.
    pub fn commit(&mut self, out: Out<ScheduleEffect>, fires: Vec<Fire>) -> Option<Result<ScheduleReply, Refusal>> {
        self.writes += out.writes.len();
        for write in out.writes {
            match write {
                Write::Delete(key) => drop(self.rows.remove(&key)),
                Write::Put { row, expect } => {
                    let key = row.key();
                    assert!(
                        expect != Expect::Absent || !self.rows.contains_key(&key),
                        "{key:?} is there already"
                    );
                    self.rows.insert(key, row);
                }
            }
        }
        for fire in fires {
            let before = self.ids.insert(fire.id, self.jobs.len());
            assert!(before.is_none(), "occurrence made two jobs: {fire:?}");
            assert!(fire.due_at <= self.now.store, "fired early: {fire:?}");
            self.ends.insert(fire.id, None);
            self.jobs.push(fire);
        }
        let mut reply = None;
        for effect in out.effects {
            match effect {
                ScheduleEffect::Reply(_, answer) => reply = Some(answer),
                ScheduleEffect::Note(note) => self.notes.push(note),
                ScheduleEffect::AuditFault { fault, .. } => self.faults.push(fault),
                ScheduleEffect::LoadFates { .. }
                | ScheduleEffect::LoadRequests { .. }
                | ScheduleEffect::LoadEdits { .. } => self.ordered = Some(effect),
                ScheduleEffect::AskTrialTurn => self.orders.push(ScheduleInput::TrialTurn),
                ScheduleEffect::TrialMarked => self.orders.push(ScheduleInput::TrialMarked),
                ScheduleEffect::EndTrialTurn => {}
            }
        }
        reply
    }

    pub fn tick(&mut self) {
        self.step(ScheduleInput::Tick);
    }

    /// Moves both clocks to an instant, without a step.
    pub fn jump(&mut self, to: StoreTime) {
        self.now.mono = self.now.mono + to.since(self.now.store);
        self.now.store = self.now.store.max(to);
    }

    /// Steps whenever the machine wants to be stepped, until an instant.
    pub fn run(&mut self, until: i64) {
        self.run_to(at(until));
    }

    pub fn run_to(&mut self, until: StoreTime) {
        self.tick();
        while let Some(next) = self.next_at().filter(|next| *next <= until) {
            self.jump(next);
            self.tick();
        }
        self.jump(until);
        self.tick();
    }

    fn next_at(&self) -> Option<StoreTime> {
        let Wake { mono, store } = self.machine.next_wake();
        let mono = mono.map(|mono| self.now.store + mono.since(self.now.mono));
        [mono, store].into_iter().flatten().min()
    }

    /// Nobody steps until an instant; then one step.
    pub fn down_until(&mut self, until: i64) {
        self.jump(at(until));
        self.restart();
        self.run(until);
    }

    /// One round of the auditor, from a fresh owner: the only tests in which it walks.
    pub fn audit_by_pages(&mut self) {
        self.open();
        for _ in 0..50 {
            self.now.mono = self.now.mono + Span::from_millis(AUDIT_PAGE_MS);
            self.tick();
            if let Some(page) = self.page() {
                self.step(page);
            }
        }
        self.machine.stop_sweep();
    }

    fn page(&mut self) -> Option<ScheduleInput> {
        let (name, incarnation, after, limit) = match self.ordered.take()? {
            ScheduleEffect::LoadFates {
                name,
                incarnation,
                after,
                limit,
            } => (name, incarnation, after, limit),
            ScheduleEffect::LoadRequests { from, limit } => return Some(self.requests_page(from, limit)),
            ScheduleEffect::LoadEdits { after, limit } => return Some(self.edits_page(after, limit)),
            _ => return None,
        };
        let mine = self.rows.values().filter_map(|row| match row {
            Row::Fate(row) if row.name == name.1 && row.incarnation == incarnation => Some(row.span.clone()),
            _ => None,
        });
        let mut fates: Vec<FateSpan> = mine.filter(|span| span.to > after).collect();
        let is_end = fates.len() <= limit;
        fates.truncate(limit);
        Some(ScheduleInput::Loaded(Loaded::Fates {
            name,
            incarnation,
            fates,
            is_end,
        }))
    }

    /// A new owner builds the machine from rows.
    pub fn restart(&mut self) {
        self.open();
        self.machine.stop_sweep();
    }

    fn open(&mut self) {
        self.epoch += 1;
        let mut out = Out::default();
        self.machine = SchedulerShard::open(facts(self.epoch), self.opened(), self.now, &mut out).unwrap();
        self.machine.set_level(level::NEWEST);
        self.machine.check();
        self.commit(out, Vec::new());
    }

    pub fn opened(&self) -> ScheduleOpened {
        let mut opened = ScheduleOpened::default();
        for row in self.rows.values() {
            match row {
                Row::Definition(row) => opened.definitions.push((**row).clone()),
                Row::Cursor(row) => opened.cursors.push((**row).clone()),
                Row::Backlog(row) => opened.backlogs.push((**row).clone()),
                Row::Edit(row) => opened.recorded.push(((row.tenant.clone(), row.name.clone()), row.at)),
                _ => {}
            }
        }
        opened
    }

    pub fn create(&mut self, text: &str, spec: ScheduleSpec) -> ScheduleView {
        view(self.try_create(text, spec, false))
    }

    pub fn try_create(&mut self, text: &str, spec: ScheduleSpec, paused: bool) -> Result<ScheduleReply, Refusal> {
        let input = ScheduleInput::Create {
            reply: ReplyTo(1),
            name: name(text),
            spec: Box::new(spec),
            paused,
        };
        self.step(input).unwrap()
    }

    pub fn cursor(&self, text: &str) -> CursorRow {
        let (tenant, name) = name(text);
        let found = self.rows.values().find_map(|row| match row {
            Row::Cursor(row) if row.tenant == tenant && row.name == name => Some((**row).clone()),
            _ => None,
        });
        found.unwrap()
    }

    pub fn backlogs(&self) -> Vec<BacklogRow> {
        let row = |row: &Row| match row {
            Row::Backlog(row) => Some((**row).clone()),
            _ => None,
        };
        self.rows.values().filter_map(row).collect()
    }

    /// Closed spans of a name's current incarnation, or of its newest deleted one.
    pub fn closed(&self, text: &str) -> Vec<FateSpan> {
        let fates = self.rows.values().filter_map(|row| match row {
            Row::Fate(row) if row.name.as_str() == text => Some((row.incarnation, row.span.clone())),
            _ => None,
        });
        let fates: Vec<_> = fates.collect();
        let defined = self
            .opened()
            .definitions
            .into_iter()
            .filter(|row| row.name.as_str() == text);
        let newest = self
            .incarnation(text)
            .or_else(|| defined.map(|row| row.incarnation).max());
        fates
            .into_iter()
            .filter(|(incarnation, _)| Some(*incarnation) == newest)
            .map(|(_, span)| span)
            .collect()
    }

    fn incarnation(&self, text: &str) -> Option<crate::ids::Incarnation> {
        self.rows.values().find_map(|row| match row {
            Row::Cursor(row) if row.name.as_str() == text => Some(row.incarnation),
            _ => None,
        })
    }

    /// All spans in order, the open one last.
    pub fn spans(&self, text: &str) -> Vec<(FateKind, Option<u64>)> {
        let mut spans = self.closed(text);
        if self.incarnation(text).is_some() {
            spans.extend(self.cursor(text).open);
        }
        spans.sort_by_key(|span| span.to);
        spans.into_iter().map(|span| (span.kind, span.count)).collect()
    }

    pub fn count(&self, text: &str, kind: FateKind) -> u64 {
        self.cursor(text).counts.of(kind)
    }

    /// Nominal instants of a schedule's jobs in seconds, in the order they were made.
    pub fn nominals(&self, text: &str) -> Vec<i64> {
        self.origins(text)
            .into_iter()
            .map(|(nominal, _)| nominal.secs())
            .collect()
    }

    pub fn origins(&self, text: &str) -> Vec<(StoreTime, FireCause)> {
        let origin = |fire: &Fire| match &fire.origin {
            Origin::Occurrence {
                schedule,
                nominal,
                cause,
                ..
            } if schedule.as_str() == text => Some((*nominal, *cause)),
            _ => None,
        };
        self.jobs.iter().filter_map(origin).collect()
    }

    pub fn audit(&self, text: &str) -> AuditReport {
        let cursor = self.incarnation(text).map(|_| self.cursor(text));
        let incarnation = cursor.as_ref().map(|cursor| cursor.incarnation);
        let mut definitions: Vec<ScheduleDefinition> = self.opened().definitions;
        definitions.retain(|row| row.name.as_str() == text);
        let newest = definitions.iter().map(|row| row.incarnation).max();
        definitions.retain(|row| Some(row.incarnation) == incarnation.or(newest));
        let mut backlogs = self.backlogs();
        backlogs.retain(|row| row.name.as_str() == text);
        audit(AuditInput {
            definitions: &definitions,
            unevaluated: 0,
            fates: &self.closed(text),
            begins_at: None,
            cursor: cursor.as_ref(),
            backlogs: &backlogs,
        })
    }

    /// The audit finds nothing wrong, and its counts are those of the cursor.
    pub fn audited(&self, text: &str) -> AuditReport {
        let report = self.audit(text);
        assert!(
            report.faults.is_empty(),
            "{:#?}\n{:#?}",
            report.faults,
            self.closed(text)
        );
        report
    }
}

pub fn view(answer: Result<ScheduleReply, Refusal>) -> ScheduleView {
    match answer {
        Ok(ScheduleReply::Schedule(view)) => *view,
        other => panic!("not a schedule: {other:?}"),
    }
}
