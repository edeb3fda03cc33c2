//! What one step of the SchedulerShard carries along.
//!
//! Owns: the time of the step, its outputs and its budget of decisions. Must never: outlive the step.

use super::io::{Fire, FireNote, ScheduleEffect, ScheduleReply};
use crate::machine::{Out, ReplyTo};
use crate::refusal::Refusal;
use crate::time::Now;
use std::sync::Arc;

/// One step.
pub(super) struct Step<'a> {
    pub(super) now: Now,
    pub(super) out: &'a mut Out<ScheduleEffect>,
    pub(super) fires: &'a mut Vec<Fire>,
    /// Decisions that may still be taken.
    pub(super) budget: usize,
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

    /// Takes one decision from the budget.
    pub(super) fn spend(&mut self) {
        self.budget = self.budget.saturating_sub(1);
    }
}
