//! Histories of deleted schedules: kept for the retention of fates, then dropped.
//!
//! Owns: which lives of names are over, as their definitions tell. Must never: touch the life that a
//! name has now. Next: `sweep.rs`, which orders the pages.

use super::SchedulerShard;
use super::io::ScheduleEffect;
use super::live::Live;
use super::step::Step;
use crate::fate::FateSpan;
use crate::ids::{Incarnation, Slot};
use crate::limits::{AUDIT_ROWS, FATE_RETENTION_DAYS, PAST_LIVES_MAX};
use crate::name::Name;
use crate::row::RowKey;
use crate::schedule::ScheduleDefinition;
use crate::time::{Span, StoreTime};
use std::collections::VecDeque;

const DAY_S: u64 = 86_400;

/// Fates, definitions and edits up to here are old.
pub(super) fn horizon(now: StoreTime) -> StoreTime {
    now - Span::from_secs(FATE_RETENTION_DAYS * DAY_S)
}

/// A life that is over.
#[derive(Clone, Debug)]
pub(super) struct PastLife {
    name: (Name, Name),
    incarnation: Incarnation,
    versions: Vec<u64>,
    /// The newest definition holds since then.
    defined_at: StoreTime,
}

/// All of them, at most `PAST_LIVES_MAX` at a time; the rest is found at the next open.
#[derive(Clone, Debug, Default)]
pub(super) struct PastLives {
    lives: VecDeque<PastLife>,
    /// Still to be looked at in this round.
    left: usize,
    ordered: Option<PastLife>,
}

impl PastLives {
    pub(super) fn is_empty(&self) -> bool {
        self.lives.is_empty()
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.ordered.is_some()
    }

    pub(super) fn begin_round(&mut self) {
        self.left = self.lives.len();
    }

    /// Definitions of one life that has no cursor.
    pub(super) fn add(&mut self, definitions: &[ScheduleDefinition]) {
        let Some(last) = definitions.last().filter(|_| self.lives.len() < PAST_LIVES_MAX) else {
            return;
        };
        self.lives.push_back(PastLife {
            name: (last.tenant.clone(), last.name.clone()),
            incarnation: last.incarnation,
            versions: definitions.iter().map(|definition| definition.version).collect(),
            defined_at: last.effective_at,
        });
    }

    /// The schedule was just deleted.
    pub(super) fn bury(&mut self, live: &Live) {
        let versions = live.versions.values();
        let definitions: Vec<ScheduleDefinition> = versions.map(|version| version.definition.clone()).collect();
        self.add(&definitions);
    }

    /// Orders the oldest spans of the next past life; `false` when the round is over.
    pub(super) fn order(&mut self, step: &mut Step<'_>) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        self.ordered = self.lives.pop_front();
        let Some(life) = &self.ordered else {
            return false;
        };
        step.out.effect(ScheduleEffect::LoadFates {
            name: life.name.clone(),
            incarnation: life.incarnation,
            after: StoreTime(-1),
            limit: AUDIT_ROWS,
        });
        true
    }

    /// Drops what is old; a life with nothing left goes with its definitions.
    pub(super) fn on_page(&mut self, step: &mut Step<'_>, incarnation: Incarnation, fates: &[FateSpan], is_end: bool) {
        let Some(life) = self.ordered.take() else {
            return;
        };
        let horizon = horizon(step.now.store);
        if life.incarnation != incarnation || step.now.doubt {
            return self.lives.push_back(life);
        }
        let (tenant, name) = &life.name;
        let slot = Slot::of_schedule(tenant, name);
        let old = fates.iter().take_while(|span| span.to <= horizon);
        let dropped = old.map(|span| {
            let (tenant, name) = (tenant.clone(), name.clone());
            step.out
                .delete(RowKey::Fate(slot, tenant, name, incarnation, span.to, span.from));
        });
        let is_gone = dropped.count() == fates.len() && is_end && life.defined_at <= horizon;
        if !is_gone {
            return self.lives.push_back(life);
        }
        for version in &life.versions {
            let (tenant, name) = (tenant.clone(), name.clone());
            step.out
                .delete(RowKey::Definition(slot, tenant, name, incarnation, *version));
        }
    }
}

impl SchedulerShard {
    /// How many past lives still have a history.
    pub fn past_lives(&self) -> usize {
        self.past.lives.len()
    }
}
