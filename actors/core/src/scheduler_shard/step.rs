//! What one step of the SchedulerShard carries along.
//!
//! Owns: the time of the step, its outputs and its budget of decisions. Must never: outlive the step.

use super::io::{Fire, FireNote, ScheduleEffect, ScheduleReply};
use crate::ids::ShardId;
use crate::job::JobSpec;
use crate::level::Level;
use crate::machine::{Out, ReplyTo};
#[cfg(test)]
use crate::planted::Bug;
use crate::refusal::{Refusal, storage_full};
use crate::time::Now;
use std::sync::Arc;

/// One step.
pub(super) struct Step<'a> {
    pub(super) now: Now,
    pub(super) out: &'a mut Out<ScheduleEffect>,
    pub(super) fires: &'a mut Vec<Fire>,
    /// Decisions that may still be taken.
    pub(super) budget: usize,
    /// Whose rows it writes.
    pub(super) shard: ShardId,
    /// Bytes of jobs that may still be made; the last may pass it.
    pub(super) bytes: usize,
    /// The disk takes no new jobs or schedules: nothing is decided that could ask for one.
    pub(super) is_full: bool,
    /// The cell's: nothing beyond it is written.
    pub(super) level: Level,
    /// Version of the zone data in use.
    pub(super) zone_version: &'a Arc<str>,
}

impl Step<'_> {
    /// Answers a client.
    pub(super) fn reply(&mut self, reply: ReplyTo, answer: Result<ScheduleReply, Refusal>) {
        self.out.effect(ScheduleEffect::Reply(reply, answer));
    }

    /// Tells logs and metrics.
    pub(super) fn note(&mut self, note: FireNote) {
        self.out.effect(ScheduleEffect::Note(note));
    }

    /// Whether another decision may be taken in this step.
    pub(super) fn has_budget(&self) -> bool {
        self.budget > 0 && self.bytes > 0 && !self.is_full
    }

    /// Refuses a request that needs a new row while the disk is full.
    pub(super) fn need_room(&self) -> Result<(), Refusal> {
        match self.is_full {
            true => Err(storage_full()),
            false => Ok(()),
        }
    }

    /// Takes the job of a fire from the budget.
    pub(super) fn spend_bytes(&mut self, spec: &JobSpec) {
        #[cfg(test)]
        if Bug::BytesUncounted.is_planted() {
            return;
        }
        self.bytes = self.bytes.saturating_sub(spec.weight());
    }

    /// Takes one decision from the budget.
    pub(super) fn spend(&mut self) {
        #[cfg(test)]
        if Bug::BudgetUnspent.is_planted() {
            return;
        }
        self.budget = self.budget.saturating_sub(1);
    }
}
