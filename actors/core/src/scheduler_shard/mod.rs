//! The SchedulerShard machine: turns due occurrences into jobs and gives every occurrence a fate.
//!
//! Owns: definitions, cursors, backlogs, fates. Must never: write a job's rows but by a fire, or do
//! work for a schedule that is not due. Next: `io.rs` (facts and orders), `live.rs` (one schedule),
//! `settle.rs` (what is due), `edit.rs` and its neighbours (requests), `index.rs` (who is due).

pub mod audit;
mod backfill;
mod backlog;
mod check;
mod contradiction;
mod create;
mod dropped;
mod edit;
mod excluded;
mod hold;
mod index;
pub mod io;
mod live;
pub mod marks;
mod open;
mod past_edits;
mod past_lives;
mod refusals;
mod requests;
mod restored;
mod run_now;
mod settle;
mod step;
mod sweep;
mod tape;
pub mod timetable;
mod trial;
pub mod validate;
mod version;
mod view;
mod walk;
mod zone_data;

use crate::ids::{Incarnation, Slot};
use crate::level::Level;
use crate::limits::{BATCH_BYTES_MAX, DOUBT_PACE_MS, FIRES_PER_STEP_MAX, FULL_PACE_MS};
use crate::machine::{Out, Wake};
use crate::name::Name;
use crate::shard::ShardFacts;
use crate::time::{Now, Span};
use backfill::Backfill;
use edit::Edit;
use index::Index;
use io::{Fire, Loaded, ScheduleEffect, ScheduleInput};
use live::Live;
pub use open::OpenRefused;
use past_lives::PastLives;
pub use restored::hold_restored;
use std::sync::Arc;
use step::Step;
use sweep::Sweep;
use trial::Trials;
pub use view::view_of;
use walk::Walk;

/// All schedules of one shard.
#[derive(Clone, Debug)]
pub struct SchedulerShard {
    facts: ShardFacts,
    index: Index,
    /// Version of the zone data of this build.
    zone_version: Arc<str>,
    /// Creating steps of this epoch (F27).
    creations: u64,
    sweep: Sweep,
    past: PastLives,
    requests: Walk,
    edits: Walk,
    /// The cell's; nothing beyond it is written.
    level: Level,
    trials: Trials,
    /// The disk takes no new jobs or schedules.
    is_full: bool,
    /// Time of the last step.
    last: Now,
}

/// In doubt, time is asked for this often.
const DOUBT_PACE: Span = Span::from_millis(DOUBT_PACE_MS);
/// On a full disk, what is due asks for room this often.
const FULL_PACE: Span = Span::from_millis(FULL_PACE_MS);

impl SchedulerShard {
    /// Takes a fact or request, then decides what is due.
    pub fn step(&mut self, now: Now, input: ScheduleInput, out: &mut Out<ScheduleEffect>, fires: &mut Vec<Fire>) {
        self.last = now;
        let zone_version = Arc::clone(&self.zone_version);
        let mut step = Step {
            now,
            out,
            fires,
            budget: FIRES_PER_STEP_MAX,
            shard: self.facts.shard,
            bytes: BATCH_BYTES_MAX,
            is_full: self.is_full,
            level: self.level,
            zone_version: &zone_version,
        };
        let stood = self.trials.stands();
        match input.reply().filter(|_| self.trials.are_on()) {
            Some(reply) => self.refuse_in_trial(&mut step, reply),
            None => self.dispatch(&mut step, input),
        }
        if self.trials.stands() {
            return;
        }
        if !stood {
            self.decide_due(&mut step);
            self.order_sweep(&mut step);
        }
        self.prove(&mut step);
    }

    fn dispatch(&mut self, step: &mut Step<'_>, input: ScheduleInput) {
        match input {
            ScheduleInput::Create {
                reply,
                name,
                spec,
                paused,
            } => self.on_create(step, reply, name, *spec, paused),
            ScheduleInput::Edit {
                reply,
                name,
                if_match,
                spec,
                pending,
                dry_run,
            } => {
                let edit = Edit {
                    if_match,
                    spec: *spec,
                    pending,
                    dry_run,
                };
                self.on_edit(step, reply, name, edit);
            }
            ScheduleInput::Pause { reply, name } => self.on_pause(step, reply, &name),
            ScheduleInput::Resume { reply, name } => self.on_resume(step, reply, &name),
            ScheduleInput::Delete { reply, name } => self.on_delete(step, reply, &name),
            ScheduleInput::RunNow {
                reply,
                name,
                request,
                seen,
                made,
            } => self.on_run_now(step, reply, &name, (request, seen, made)),
            ScheduleInput::Backfill {
                reply,
                name,
                from,
                to,
                cap,
                rerun,
                request,
                seen,
                dry_run,
                life,
                fates,
            } => {
                let asked = Backfill {
                    from,
                    to,
                    cap,
                    rerun,
                    number: request,
                    seen,
                    dry_run,
                    life,
                    fates,
                };
                self.on_backfill(step, reply, &name, asked);
            }
            ScheduleInput::Loaded(loaded) => self.on_loaded(step, loaded),
            ScheduleInput::TrialTurn => self.on_trial_turn(step),
            ScheduleInput::TrialMarked => self.on_trial_marked(step),
            ScheduleInput::Leaving => self.on_leaving(),
            ScheduleInput::Tick => {}
        }
    }

    fn on_loaded(&mut self, step: &mut Step<'_>, loaded: Loaded) {
        match loaded {
            Loaded::Fates {
                name,
                incarnation,
                fates,
                is_end,
            } => self.on_fates_loaded(step, &name, incarnation, fates, is_end),
            Loaded::Requests { requests, next } => self.on_requests_loaded(step, requests, next),
            Loaded::Edits { edits, next } => self.on_edits_loaded(step, edits, next),
        }
    }

    /// The live schedules first, then what they leave to the backlogs.
    fn decide_due(&mut self, step: &mut Step<'_>) {
        if step.now.doubt || step.is_full {
            return;
        }
        while let Some(id) = self.index.first_due(step.now.store)
            && step.has_budget()
        {
            self.index.with(id, |live| {
                live.settle(step);
                live.flush(step);
            });
        }
        while let Some(id) = self.index.first_release(step.now.mono)
            && step.has_budget()
        {
            self.index.with(id, |live| {
                live.release(step);
                live.flush(step);
            });
        }
    }

    /// When to be stepped again, at the latest.
    pub fn next_wake(&self) -> Wake {
        if self.trials.stands() {
            return Wake::default();
        }
        let due = self.index.next_due();
        let release = self.index.next_release();
        let is_late = due.is_some_and(|due| due <= self.last.store);
        if self.last.doubt {
            let is_waiting = is_late || release.is_some();
            return Wake {
                mono: is_waiting.then(|| self.last.mono + DOUBT_PACE),
                store: due.filter(|_| !is_late),
            };
        }
        let at_once = is_late.then_some(self.last.mono);
        let mut work = [at_once, release].into_iter().flatten().min();
        if self.is_full {
            work = work.map(|at| at.max(self.last.mono + FULL_PACE));
        }
        Wake {
            mono: [work, self.sweep_at()].into_iter().flatten().min(),
            store: due.filter(|_| !is_late),
        }
    }

    /// Whether the disk takes no new jobs and schedules from the next step on: what is due then stays
    /// due, and what asks for a new row is refused.
    pub fn set_full(&mut self, is_full: bool) {
        self.is_full = is_full;
    }

    /// How long requests are kept that are carried out from the next step on, after the end of what they make.
    pub fn set_key_kept(&mut self, kept: Span) {
        self.facts.key_kept = kept;
    }

    /// The cell's level, from the next step on; the oldest until then.
    pub fn set_level(&mut self, level: Level) {
        self.level = level;
    }

    /// How many schedules there are.
    pub fn len(&self) -> usize {
        self.index.len() + self.trials.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many of them are in quarantine.
    pub fn quarantined(&self) -> usize {
        self.index.quarantined()
    }

    /// Which life of a name is the current one.
    pub fn incarnation_of(&self, name: &(Name, Name)) -> Option<Incarnation> {
        let live = self.index.get(self.index.find(name)?)?;
        Some(live.cursor.incarnation)
    }

    /// Whether a schedule of that name belongs here.
    fn is_home_of(&self, name: &(Name, Name)) -> bool {
        self.facts.map.shard_of(Slot::of_schedule(&name.0, &name.1)) == self.facts.shard
    }
}

#[cfg(test)]
pub(crate) mod tests;
