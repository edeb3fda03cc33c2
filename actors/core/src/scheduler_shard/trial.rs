//! Trials: after owners that died young, schedules are evaluated one by one, each behind a durable mark
//! (PROTOCOL F9).
//!
//! Owns: who is still to be tried, and the proof that this owner survives. Must never: evaluate anything
//! else while a mark stands: it would be blamed on the wrong one. Next: `marks.rs`.

use super::SchedulerShard;
use super::audit::{AuditInput, audit};
use super::backlog::Backlog;
use super::io::ScheduleEffect;
use super::live::Live;
use super::marks::{Poison, bound, left, trying_row};
use super::open::{Rows, load};
use super::refusals;
use super::step::Step;
use crate::limits::FIRES_PER_STEP_MAX;
use crate::machine::ReplyTo;
use crate::row::Row;
use crate::schedule::ScheduleDefinition;
use crate::time::StoreTime;
use std::collections::VecDeque;
use std::sync::Arc;

/// Instants of each line that a trial looks at: as many as two steps decide.
const LOOK_AHEAD_MAX: usize = 2 * FIRES_PER_STEP_MAX;

/// What is still to be tried.
#[derive(Clone, Debug, Default)]
pub(super) struct Trials {
    waiting: VecDeque<Rows>,
    tried: Option<Rows>,
    /// The owner's mark stands: nothing is proven yet.
    pub(super) is_unproven: bool,
    /// This owner was told to stop.
    is_leaving: bool,
}

impl Trials {
    /// Adds one; what died before comes after all the others.
    pub(super) fn add(&mut self, rows: Rows) {
        match rows.poisons.iter().any(|poison| poison.deaths > 0 && !poison.is_past) {
            true => self.waiting.push_back(rows),
            false => self.waiting.push_front(rows),
        }
    }

    /// Whether a mark stands, or may.
    pub(super) fn stands(&self) -> bool {
        self.tried.is_some()
    }

    /// Whether any schedule is not tried yet.
    pub(super) fn are_on(&self) -> bool {
        self.stands() || !self.waiting.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len() + usize::from(self.stands())
    }
}

impl SchedulerShard {
    /// Whether schedules are still being tried; nothing else is asked of any schedule meanwhile.
    pub fn is_trying(&self) -> bool {
        self.trials.are_on()
    }

    /// Asks for the turn of the next trial: on a node one is made at a time.
    pub(super) fn ask_trial(&self, step: &mut Step<'_>) {
        if !self.trials.waiting.is_empty() && !self.trials.is_leaving {
            step.out.effect(ScheduleEffect::AskTrialTurn);
        }
    }

    /// It was told to stop: no further trial is begun.
    pub(super) fn on_leaving(&mut self) {
        self.trials.is_leaving = true;
    }

    /// It is this shard's turn: the mark first.
    pub(super) fn on_trial_turn(&mut self, step: &mut Step<'_>) {
        assert!(!self.trials.stands(), "one trial at a time");
        let next = match self.trials.is_leaving {
            true => None,
            false => self.trials.waiting.pop_front(),
        };
        let Some(rows) = next else {
            return step.out.effect(ScheduleEffect::EndTrialTurn);
        };
        step.out
            .put(Row::Quarantine(Box::new(trying_row(step.shard, &rows.suspicion(step)))));
        step.out.effect(ScheduleEffect::TrialMarked);
        self.trials.tried = Some(rows);
    }

    /// The mark is durable: whoever ends this process now is named by it.
    pub(super) fn on_trial_marked(&mut self, step: &mut Step<'_>) {
        let Some(rows) = self.trials.tried.take() else { return };
        let mark = trying_row(step.shard, &rows.suspicion(step));
        step.out.delete(Row::Quarantine(Box::new(mark)).key());
        match self.trials.is_leaving {
            true => self.trials.waiting.push_front(rows),
            false => self.try_alone(step, rows),
        }
        step.out.effect(ScheduleEffect::EndTrialTurn);
        self.ask_trial(step);
    }

    fn try_alone(&mut self, step: &mut Step<'_>, rows: Rows) {
        let mut live = load(step, rows);
        live.look_ahead(step.now.store);
        live.settle(step);
        live.look_back();
        live.flush(step);
        self.index.insert(live);
    }

    /// Refuses what would evaluate a schedule while others are tried.
    pub(super) fn refuse_in_trial(&self, step: &mut Step<'_>, reply: ReplyTo) {
        step.reply(reply, Err(refusals::in_trial()));
    }

    /// All is loaded and what was due is decided: the next owner need not be careful. Nor need it if this one
    /// is told to stop while clock or disk hold up what is due; one with trials still to be made says so.
    pub(super) fn prove(&mut self, step: &mut Step<'_>) {
        if !self.trials.is_unproven {
            return;
        }
        let nothing_due = self.index.first_due(step.now.store).is_none();
        let is_idle = !self.trials.are_on() && nothing_due && self.index.first_release(step.now.mono).is_none();
        if self.trials.is_leaving || (is_idle && !step.now.doubt) {
            self.trials.is_unproven = false;
            let deaths = u32::from(self.trials.are_on());
            step.out.writes.push(left(step.shard, step.now.store, deaths));
        }
    }
}

impl Rows {
    /// What is held against it while it is tried.
    fn suspicion(&self, step: &Step<'_>) -> Poison {
        let version = self.cursor.definition;
        let before = self
            .poisons
            .iter()
            .find(|known| known.version == version && !known.is_past);
        Poison {
            tenant: self.cursor.tenant.clone(),
            name: self.cursor.name.clone(),
            version,
            deaths: before.map_or(0, |known| known.deaths),
            reason: "evaluated alone, after owners of this shard ended young".into(),
            at: step.now.store,
            is_past: false,
        }
    }
}

impl Live {
    /// What will be evaluated once the mark is gone: what is due beyond one step's room, and the backlogs.
    fn look_ahead(&self, now: StoreTime) {
        let line = self.current().map(|version| (version, self.cursor.nominal, now));
        let version_of = |backlog: &Backlog| self.versions.get(&backlog.row.definition).map(Arc::clone);
        let backlogs = self.backlogs.values();
        let backlogs = backlogs.filter_map(|backlog| Some((version_of(backlog)?, backlog.row.from, backlog.row.to)));
        for (version, mut at, to) in line.into_iter().chain(backlogs) {
            for _ in 0..LOOK_AHEAD_MAX {
                let next = version.timetable.next_after(at).filter(|next| *next <= to);
                let Some(next) = next else { break };
                at = next;
            }
        }
    }

    /// What the auditor will ask of its rule.
    fn look_back(&self) {
        let definitions: Vec<ScheduleDefinition> = self.versions.values().map(|v| v.definition.clone()).collect();
        audit(AuditInput {
            definitions: &definitions,
            unevaluated: bound(&self.poisons).0,
            fates: &[],
            begins_at: self.cursor.open.as_ref().map(|open| open.from),
            cursor: Some(&self.cursor),
            backlogs: &[],
        });
    }
}
