//! The Worker machine: holds leases, fences itself, reports outcomes until they are recorded.
//!
//! Owns: one node's slots. Must never: run a target itself, keep anything durable, or start an
//! attempt that it has handed back (or the other way round). One step costs what its message and
//! the due timers cost, not what is held. Next: `io.rs`, then `offers.rs` (asking for work),
//! `grants.rs` (taking it), `leases.rs` (keeping it), `outcomes.rs` (reporting), `here.rs` (an owner that is
//! reached again), `elsewhere.rs` (words of others), `drain.rs`.

mod apart;
mod book;
mod check;
mod config;
mod drain;
mod elsewhere;
mod grants;
mod here;
pub mod io;
mod leases;
mod offers;
mod outcomes;
mod timers;

#[cfg(test)]
mod tests;

pub use config::WorkerConfig;

use crate::ids::{JobId, ShardId};
use crate::time::{Monotonic, Span};
use apart::Apart;
use book::ShardBook;
use drain::Stage;
use io::{WorkerEffect, WorkerInput};
use std::collections::BTreeSet;
use timers::{Timer, Timers};

/// One node's worker.
#[derive(Clone, Debug, Hash)]
pub struct WorkerMachine {
    config: WorkerConfig,
    /// By shard number.
    books: Vec<ShardBook>,
    timers: Timers,
    /// Shards to be asked, none with an open offer.
    asking: BTreeSet<ShardId>,
    /// The one asked last.
    asked_last: ShardId,
    offer_last: u64,
    beat_last: u64,
    /// Slots in use.
    used: u32,
    /// Slots kept free for open offers.
    promised: u32,
    /// Outcomes not recorded yet.
    unrecorded: usize,
    stage: Stage,
    /// Nothing new is asked for; what runs goes on.
    holds_back: bool,
    /// The places for jobs whose worker was lost before.
    apart: Apart,
}

impl WorkerMachine {
    /// An idle worker; if it takes work, its first step asks every shard.
    pub fn new(config: WorkerConfig) -> WorkerMachine {
        assert!(config.slots > 0, "a worker has at least one slot");
        let mut timers = Timers::default();
        timers.arm(Monotonic(0), Timer::Sweep);
        let stage = match config.takes_work {
            true => Stage::Working,
            false => Stage::Draining,
        };
        WorkerMachine {
            books: config.shards.shards().map(|_| ShardBook::default()).collect(),
            config,
            timers,
            asking: BTreeSet::new(),
            asked_last: ShardId(u16::MAX),
            offer_last: 0,
            beat_last: 0,
            used: 0,
            promised: 0,
            unrecorded: 0,
            stage,
            holds_back: false,
            apart: Apart::default(),
        }
    }

    /// Takes a fact in and gives orders, all to be carried out at once. Time that has passed is seen
    /// first: a grant, begin or renewal never meets a lease that has ended meanwhile.
    pub fn step(&mut self, now: Monotonic, input: WorkerInput, effects: &mut Vec<WorkerEffect>) {
        self.run_due(now, effects);
        match input {
            WorkerInput::ReadyHint(shard) => self.on_hint(now, shard, effects),
            WorkerInput::Granted {
                from,
                offer,
                grants,
                waited,
                more,
                apart,
            } => {
                self.on_granted(
                    now,
                    from,
                    grants::Answer {
                        offer,
                        grants,
                        waited,
                        more,
                        apart,
                    },
                    effects,
                );
            }
            WorkerInput::Renewed { from, beat, held } => self.on_renewed(now, from, beat, &held, effects),
            WorkerInput::Lost { from, lost } => self.on_lost(now, from, &lost, effects),
            WorkerInput::CancelRequested { from, id, token } => {
                self.on_cancel_requested(now, from, (id, token), effects);
            }
            WorkerInput::Begun { id, token } => self.on_begun(now, (id, token), effects),
            WorkerInput::AttemptsFinished { items } => self.on_finished(now, items, effects),
            WorkerInput::NotStarted { items } => self.on_not_started(now, items, effects),
            WorkerInput::CameLate { items } => self.on_came_late(now, items, effects),
            WorkerInput::NeverBegun { items } => self.on_never_begun(now, items, effects),
            WorkerInput::Recorded { from, items } => self.on_recorded(now, from, &items, effects),
            WorkerInput::Reconcile { from, items } => self.on_reconcile(now, from, &items, effects),
            WorkerInput::ShardAway(shard) => self.on_shard_away(now, shard),
            WorkerInput::ShardHere(shard) => self.on_shard_here(now, shard, effects),
            WorkerInput::HoldBack(holds_back) => self.on_hold_back(now, holds_back, effects),
            WorkerInput::Drain => self.on_drain(now, effects),
            WorkerInput::DrainExpired => self.on_drain_expired(now, effects),
            WorkerInput::Tick => {}
        }
        self.ask(now, effects);
        self.tell_drained(effects);
    }

    /// When it wants to be stepped again, at the latest.
    pub fn next_wake(&self) -> Option<Monotonic> {
        self.timers.next_at()
    }

    /// Attempts that use a slot now.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Outcomes that are not recorded yet.
    pub fn unrecorded(&self) -> usize {
        self.unrecorded
    }

    fn run_due(&mut self, now: Monotonic, effects: &mut Vec<WorkerEffect>) {
        while let Some(timer) = self.timers.pop_due(now) {
            match timer {
                Timer::Lease(id, token) => self.on_lease_due(now, (id, token), effects),
                Timer::Begin(id, token) => self.on_begin_due(now, (id, token), effects),
                Timer::Heartbeat(shard) => self.on_heartbeat_due(now, shard, effects),
                Timer::Offer(shard) => self.on_offer_due(now, shard, effects),
                Timer::Outcomes(shard) => self.on_outcomes_due(now, shard, effects),
                Timer::HandBacks(shard) => self.on_hand_backs_due(now, shard, effects),
                Timer::Apart(id, token) => self.on_apart_due(now, (id, token)),
                Timer::ApartSettled => self.on_apart_settled(),
                Timer::Sweep => self.on_sweep_due(now),
            }
        }
    }

    fn shard_of(&self, id: JobId) -> ShardId {
        self.config.shards.shard_of(id.slot())
    }

    fn book_mut(&mut self, shard: ShardId) -> Option<&mut ShardBook> {
        self.books.get_mut(usize::from(shard.0))
    }

    /// A wait is at least a millisecond, or a zero in the settings would spin.
    fn after(now: Monotonic, wait: Span) -> Monotonic {
        now + wait.max(Span::from_millis(1))
    }
}
