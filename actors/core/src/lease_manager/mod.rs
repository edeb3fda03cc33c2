//! The LeaseManager machine: owns every job of a shard from its insert to its history.
//!
//! Owns: job, attempts, wait, ready, leased, parked, key, dead-letter rows, and the marks of its ranges. Must
//! never: read another machine's state, or decide by a clock but the two that a step is given.
//!
//! A job has one job row and at most one place row. The job row is not rewritten when the job becomes
//! ready or is granted: the leased row alone says that an attempt is current. So a fresh job costs six
//! row writes (job, place, place gone, lease, lease gone, job), four if an offer waits for it, one more for
//! its key.
//!
//! Next: `io.rs` (facts and orders), `places.rs` (the one way in and out of each range), `grants.rs`,
//! `outcomes.rs`, `decide.rs` (F15), `window.rs` (F34), `mark.rs` (F7), `leases.rs` (F16, F17).

mod apart;
mod cancel;
mod check;
mod create;
mod decide;
mod elapsed;
mod grants;
mod heartbeat;
pub mod io;
mod item;
mod leases;
mod lines;
mod loads;
mod mark;
mod outcomes;
mod places;
mod ready;
mod recent;
mod reply;
mod sweep;
mod waiting;
mod waiting_offers;
mod window;
mod workers;

pub use decide::backoff;
pub use sweep::sweep_keys;

use crate::ids::{JobId, Token};
use crate::job::Job;
use crate::level::{self, Level};
use crate::limits::{PROMOTE_PER_STEP_MAX, READY_LOADS_MAX, REAP_PER_STEP_MAX};
use crate::machine::{Out, Wake};
use crate::row::{LeasedRow, MarkRange, MarkRow, RowKey};
use crate::shard::ShardFacts;
use crate::time::{Monotonic, Now, Span};
use apart::Apart;
use elapsed::Elapsed;
use io::{LeaseEffect, LeaseInput, LeaseOpened};
use leases::LeaseTable;
use lines::Lines;
use places::Lies;
use ready::{ClassId, ReadyKey, ReadyRange};
use recent::RecentTokens;
use std::sync::Arc;
use sweep::Sweep;
use waiting::WaitRange;
use waiting_offers::{Asked, WaitingOffers};
use window::Beyond;
use workers::Workers;

type Orders = Out<LeaseEffect>;

/// The machine of one shard, for one epoch.
#[derive(Clone, Debug, Hash)]
pub struct LeaseManager {
    facts: ShardFacts,
    ready: ReadyRange,
    /// Due jobs that run one at a time.
    apart: Apart,
    /// One of them came due in this step.
    fresh_apart: bool,
    waits: WaitRange,
    elapsed: Elapsed,
    leases: LeaseTable,
    workers: Workers,
    /// Offers that found nothing and wait.
    waiting_offers: WaitingOffers,
    /// Ready jobs of this step whose place row is not written yet.
    unplaced: Vec<(ClassId, ReadyKey)>,
    /// Of this step, or of the one before until the next begins.
    moved: usize,
    recent: RecentTokens,
    sweep: Sweep,
    /// Of the newest token of this epoch.
    sequence: u64,
    /// The cell's.
    level: Level,
    /// Since the last hint some offer got less than it asked for, or was told that nothing is left.
    hungry: bool,
    /// Something became ready in this step.
    fresh: bool,
    doubt: bool,
    /// The disk takes no new jobs.
    is_full: bool,
    /// This node's clock is not trusted: nothing is granted.
    holds_back: bool,
}

impl LeaseManager {
    /// Takes over a shard: all leases get their grace, the windows are ordered.
    pub fn open(facts: ShardFacts, opened: LeaseOpened, now: Now, out: &mut Orders) -> LeaseManager {
        let mut machine = LeaseManager {
            facts,
            ready: ReadyRange::default(),
            apart: Apart::default(),
            fresh_apart: false,
            waits: WaitRange::new(wait_mark(&opened.marks)),
            elapsed: Elapsed::new(now),
            leases: LeaseTable::new(facts.heartbeat, now.mono),
            workers: Workers::default(),
            waiting_offers: WaitingOffers::default(),
            unplaced: Vec::new(),
            moved: 0,
            recent: RecentTokens::default(),
            sweep: Sweep::new(now.mono),
            sequence: 0,
            level: level::FIRST,
            hungry: true,
            fresh: false,
            doubt: now.doubt,
            is_full: false,
            holds_back: false,
        };
        for (row, job) in opened.leased {
            machine.inherit(row, job, opened.dead_node.as_ref(), out);
        }
        for name in &opened.classes {
            machine.ready.class_id(name, Beyond::Unloaded);
        }
        for mark in opened.marks {
            machine.adopt_mark(mark);
        }
        for name in opened.classes.iter().take(READY_LOADS_MAX) {
            if let Some(class) = machine.ready.find(name) {
                machine.order_ready_page(class, out);
            }
        }
        machine.order_wait_page(out);
        machine
    }

    /// Whether the disk takes no new jobs from the next step on: they are refused, all else goes on.
    pub fn set_full(&mut self, is_full: bool) {
        self.is_full = is_full;
    }

    /// Whether nothing is granted from the next step on. Afterwards that step serves the offers that wait.
    pub fn set_holds_back(&mut self, holds_back: bool) {
        self.fresh |= self.holds_back && !holds_back;
        self.holds_back = holds_back;
    }

    /// The cell's level, from the next step on; the oldest until then.
    pub fn set_level(&mut self, level: Level) {
        self.level = level;
    }

    /// How long keys of jobs that end from the next step on are kept.
    pub fn set_key_kept(&mut self, kept: Span) {
        self.facts.key_kept = kept;
    }

    /// The store answers again after a while in which only heartbeats were stepped.
    pub fn came_back(&mut self, now: Monotonic) {
        self.leases.came_back(now);
    }

    /// Whether this attempt is current: its outcome needs no cold row.
    pub fn holds(&self, id: JobId, token: Token) -> bool {
        self.leases.get(id).is_some_and(|lease| lease.row.token == token)
    }

    /// Whether the grant of this current attempt has left this node, as far as this owner knows.
    pub fn has_left(&self, id: JobId) -> bool {
        self.leases.is_released(id)
    }

    /// One fact or request.
    pub fn step(&mut self, now: Now, input: LeaseInput, out: &mut Orders) {
        self.begin_step(now);
        match input {
            LeaseInput::CreateJobs { reply, items } => self.on_create_jobs(now, reply, items, out),
            LeaseInput::CancelJob { reply, id, job } => self.on_cancel_job(now, reply, id, job, out),
            LeaseInput::RetryDead { reply, id, job } => self.on_retry_dead(now, reply, id, job, out),
            LeaseInput::SettleUncertain {
                reply,
                id,
                job,
                verdict,
            } => {
                self.on_settle_uncertain(now, reply, (id, job), verdict, out);
            }
            LeaseInput::Offer {
                worker,
                offer,
                slots,
                queues,
                commands,
                waits,
                apart,
            } => {
                let asked = Asked {
                    offer,
                    slots,
                    lines: Lines::of(queues, commands),
                    apart,
                    received_at: now.mono,
                };
                self.on_offer(now, worker, asked, waits, out);
            }
            LeaseInput::Heartbeat { worker, beat, held } => self.on_heartbeat((worker, beat), held, out),
            LeaseInput::Begin { worker, id, token } => self.on_begin(worker, id, token, out),
            LeaseInput::Outcomes { worker, items } => self.on_outcomes(now, worker, items, out),
            LeaseInput::HandBack { worker, items } => self.on_hand_back(now, worker, items, out),
            LeaseInput::WorkerUnreached(worker) => self.waiting_offers.drop_of(&worker),
            LeaseInput::ReadyLoaded {
                class,
                rows,
                end,
                horizon,
            } => {
                self.on_ready_loaded(&class, rows, end, horizon, out);
            }
            LeaseInput::WaitLoaded { rows, end, horizon } => self.on_wait_loaded(now, rows, end, horizon, out),
            LeaseInput::MovedPage { rows, next } => self.on_moved_page(now, rows, next, out),
            LeaseInput::GrantsReleased { worker, offer } => self.on_grants_released(&worker, offer),
            LeaseInput::GrantsUnsent(items) => self.on_grants_unsent(now, items, out),
            LeaseInput::SweepPage { rows, next } => self.on_sweep_page(now, rows, next, out),
            LeaseInput::Tick => self.on_tick(now, out),
        }
        self.end_step(now, out);
    }

    /// When to be stepped with `Tick`, at the latest.
    pub fn next_wake(&self) -> Wake {
        let (by_clock, by_calendar) = self.waits.next_due();
        let mono = [
            self.leases.next_wake(),
            by_clock,
            self.sweep.next_wake(),
            self.elapsed.next_wake(),
            // The next step goes on where this one stopped.
            (!self.may_move()).then(|| self.elapsed.stepped_at()),
        ];
        Wake {
            mono: mono.into_iter().flatten().min(),
            store: by_calendar.filter(|_| !self.doubt),
        }
    }

    /// The current attempt of a job, as stored; it decides whether a job runs.
    pub fn current_attempt(&self, id: JobId) -> Option<&LeasedRow> {
        self.leases.get(id).map(|lease| &lease.row)
    }

    /// Bytes of a job whose attempt is current; none of another.
    pub fn lease_bytes(&self, id: JobId) -> usize {
        self.leases.get(id).map_or(0, |lease| lease.job.weight())
    }

    /// Attempts that are current.
    pub fn lease_count(&self) -> usize {
        self.leases.len()
    }

    fn begin_step(&mut self, now: Now) {
        self.leases.on_step(now.mono);
        self.elapsed.on_step(now);
        self.doubt = now.doubt;
        self.fresh |= !self.may_move();
        self.moved = 0;
    }

    /// What became ready goes to the offers that wait for it; what is left gets its row and is hinted.
    fn end_step(&mut self, now: Now, out: &mut Orders) {
        if self.fresh && !self.holds_back {
            self.serve_waiting_offers(now, out);
        }
        self.place_rows(out);
        let is_wanted = self.fresh && self.hungry && !self.holds_back && self.ready.has_any();
        if is_wanted {
            self.hungry = false;
        }
        // Offers that wait are not given what runs apart: their workers must ask.
        if is_wanted || (self.fresh_apart && !self.holds_back) {
            out.effect(LeaseEffect::HintReady);
        }
        (self.fresh, self.fresh_apart) = (false, false);
    }

    fn on_tick(&mut self, now: Now, out: &mut Orders) {
        for lease in self.leases.take_ended(REAP_PER_STEP_MAX) {
            self.reap(now, lease, out);
        }
        self.promote_due(now, out);
        self.sweep.on_tick(now.mono, out);
        self.elapsed.on_tick(now.mono, self.waits.mark().stored(), out);
    }

    /// Moves due jobs from the wait window to the ready windows; their rows follow only when they must.
    fn promote_due(&mut self, now: Now, out: &mut Orders) {
        for _ in 0..PROMOTE_PER_STEP_MAX {
            let Some((key, entry)) = self.waits.take_due(now) else {
                break;
            };
            if is_expired(&entry.job, now) {
                self.delete_wait_row(key, out);
                self.expire(now, entry.job, out);
            } else if self.apart.insert(key, &entry.job) {
                self.fresh_apart = true;
            } else {
                self.enter_ready(entry.job, key.0, Lies::Waiting(key.0), out);
            }
        }
        self.order_wait_page(out);
    }

    /// A lease of an earlier epoch.
    fn inherit(&mut self, row: LeasedRow, job: Job, dead: Option<&(crate::name::Name, u64)>, out: &mut Orders) {
        if job.id != row.id || job.state.is_finished() {
            out.delete(RowKey::Leased(row.id));
            out.effect(LeaseEffect::JobRepaired {
                id: row.id,
                what: "a leased row named a finished job",
            });
            return;
        }
        let (id, token, worker) = (row.id, row.token, row.worker.clone());
        let length = leases::grace(&row, &self.facts);
        self.leases.add(row, Arc::new(job), length, true);
        if dead.is_some_and(|(node, boot)| worker.node == *node && !worker.is_of_start(*boot)) {
            self.leases.orphan(id);
        } else {
            self.workers.inherit(worker, id, token);
        }
    }

    fn adopt_mark(&mut self, mark: MarkRow) {
        let (MarkRange::Ready(queue, tenant), RowKey::Ready(from)) = (mark.range, mark.from) else {
            return;
        };
        let class = self.ready.class_id(&(queue, tenant), Beyond::Complete);
        self.ready.class_mut(class).mark = mark::Mark::new(Some(ready::key_of(&from)));
    }
}

fn wait_mark(marks: &[MarkRow]) -> Option<waiting::WaitKey> {
    marks.iter().find_map(|mark| match (&mark.range, &mark.from) {
        (MarkRange::Wait, RowKey::Wait(_, at, id)) => Some((*at, *id)),
        _ => None,
    })
}

/// Not started before its expiry; never decided in clock doubt (F20).
fn is_expired(job: &Job, now: Now) -> bool {
    let started = job.attempt_next > job.refunded.saturating_add(1);
    !now.doubt && !started && job.spec.expires_at.is_some_and(|at| at <= now.store)
}
