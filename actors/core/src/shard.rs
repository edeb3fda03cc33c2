//! One shard: both machines stepped together, in step order, into one batch (PROTOCOL F1).
//!
//! Owns: the crossing of a fire from the SchedulerShard to the LeaseManager. Must never: decide by
//! itself. Next: `scheduler_shard/`, `lease_manager/`.

use crate::ids::{Epoch, Generation, Holder, ShardId, ShardMap};
use crate::lease_manager::LeaseManager;
use crate::lease_manager::io::{LeaseEffect, LeaseInput, LeaseOpened};
use crate::level::Level;
use crate::machine::{Out, Wake};
use crate::scheduler_shard::io::{ScheduleEffect, ScheduleInput, ScheduleOpened};
use crate::scheduler_shard::{OpenRefused, SchedulerShard};
use crate::self_audit::{SelfAuditFault, audit_loaded};
use crate::time::{Monotonic, Now, Span};

/// A fact for one of the shard's machines.
#[derive(Clone, Debug)]
pub enum ShardInput {
    /// For the SchedulerShard.
    Schedule(ScheduleInput),
    /// For the LeaseManager.
    Lease(LeaseInput),
    /// Time has passed, for both.
    Tick,
}

/// An order of one of the shard's machines.
#[derive(Clone, Debug)]
pub enum ShardEffect {
    /// Of the SchedulerShard.
    Schedule(ScheduleEffect),
    /// Of the LeaseManager.
    Lease(LeaseEffect),
}

/// What a shard is told when it was opened.
#[derive(Clone, Debug, Default)]
pub struct ShardOpened {
    /// For the SchedulerShard.
    pub schedules: ScheduleOpened,
    /// For the LeaseManager.
    pub leases: LeaseOpened,
}

/// Facts that hold for as long as a shard is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShardFacts {
    /// Which shard.
    pub shard: ShardId,
    /// The cell's map.
    pub map: ShardMap,
    /// The cell's generation.
    pub generation: Generation,
    /// This owner's epoch.
    pub epoch: Epoch,
    /// This owner's nonce.
    pub holder: Holder,
    /// Length of an attempt's lease.
    pub lease: Span,
    /// Interval of heartbeats.
    pub heartbeat: Span,
    /// How long idempotency keys are kept after the end of jobs that end under this owner.
    pub key_kept: Span,
}

/// Both machines of one shard, for one epoch.
#[derive(Debug)]
pub struct Shard {
    scheduler: SchedulerShard,
    leases: LeaseManager,
}

impl Shard {
    /// Builds both machines from rows.
    pub fn open(
        facts: ShardFacts,
        opened: ShardOpened,
        now: Now,
        out: &mut Out<ShardEffect>,
    ) -> Result<Shard, OpenRefused> {
        audit_loaded(&facts, &opened)?;
        let mut schedules = Out::default();
        let scheduler = SchedulerShard::open(facts, opened.schedules, now, &mut schedules)?;
        let mut jobs = Out::default();
        let leases = LeaseManager::open(facts, opened.leases, now, &mut jobs);
        append(out, schedules, ShardEffect::Schedule);
        append(out, jobs, ShardEffect::Lease);
        Ok(Shard { scheduler, leases })
    }

    /// Steps the machine that the input is for; what fires becomes jobs in the same step.
    pub fn step(&mut self, now: Now, input: ShardInput, out: &mut Out<ShardEffect>) {
        match input {
            ShardInput::Schedule(input) => self.step_scheduler(now, input, out),
            ShardInput::Lease(input) => self.step_leases(now, input, out),
            ShardInput::Tick => {
                self.step_scheduler(now, ScheduleInput::Tick, out);
                self.step_leases(now, LeaseInput::Tick, out);
            }
        }
    }

    /// Whether the store takes no batch that makes work, from the next step on (a full disk).
    pub fn set_full(&mut self, is_full: bool) {
        self.scheduler.set_full(is_full);
        self.leases.set_full(is_full);
    }

    /// Whether nothing is granted from the next step on (this node's clock is not trusted).
    pub fn set_holds_back(&mut self, holds_back: bool) {
        self.leases.set_holds_back(holds_back);
    }

    /// How long keys of jobs that end from the next step on are kept.
    pub fn set_key_kept(&mut self, kept: Span) {
        self.leases.set_key_kept(kept);
        self.scheduler.set_key_kept(kept);
    }

    /// The cell's level, from the next step on.
    pub fn set_level(&mut self, level: Level) {
        self.scheduler.set_level(level);
        self.leases.set_level(level);
    }

    /// The store answers again after a while in which only heartbeats were stepped (F17).
    pub fn came_back(&mut self, now: Monotonic) {
        self.leases.came_back(now);
    }

    /// When to be stepped with `Tick`, at the latest.
    pub fn next_wake(&self) -> Wake {
        self.scheduler.next_wake().earliest(self.leases.next_wake())
    }

    /// Whether the pages are in that an opening asks for: what is due first is in memory.
    pub fn is_replayed(&self) -> bool {
        self.leases.is_replayed()
    }

    /// The second half of an opening's self-audit, once it is replayed: what is in memory, without asking
    /// a rule, at the cost of what is in memory.
    pub fn self_audit(&self) -> Result<(), SelfAuditFault> {
        let found = self
            .scheduler
            .find_contradiction()
            .and_then(|()| self.leases.find_contradiction());
        found.map_err(SelfAuditFault::Memory)
    }

    /// Panics if a machine contradicts itself.
    pub fn check(&self) {
        self.scheduler.check();
        self.leases.check();
    }

    /// Who decides when.
    pub fn scheduler(&self) -> &SchedulerShard {
        &self.scheduler
    }

    /// Who decides who.
    pub fn leases(&self) -> &LeaseManager {
        &self.leases
    }

    fn step_scheduler(&mut self, now: Now, input: ScheduleInput, out: &mut Out<ShardEffect>) {
        let (mut schedules, mut fires) = (Out::default(), Vec::new());
        self.scheduler.step(now, input, &mut schedules, &mut fires);
        append(out, schedules, ShardEffect::Schedule);
        if !fires.is_empty() {
            let mut jobs = Out::default();
            self.leases.on_fires(now, fires, &mut jobs);
            append(out, jobs, ShardEffect::Lease);
        }
    }

    fn step_leases(&mut self, now: Now, input: LeaseInput, out: &mut Out<ShardEffect>) {
        let mut jobs = Out::default();
        self.leases.step(now, input, &mut jobs);
        append(out, jobs, ShardEffect::Lease);
    }
}

/// One batch of both, in step order.
fn append<E>(out: &mut Out<ShardEffect>, part: Out<E>, wrap: impl Fn(E) -> ShardEffect) {
    out.writes.extend(part.writes);
    out.effects.extend(part.effects.into_iter().map(wrap));
}

#[cfg(test)]
#[path = "shard_tests.rs"]
mod tests;
