//! A shell around the lease manager: commits each step at once, fetches cold rows, answers loads.
//!
//! Owns: both clocks, the rows, what the machine said. Must never: release an effect before its
//! writes. Loads can be held back (`hold_loads`) to step between a fetch and its answer; a crash
//! (`restart`) forgets all but the rows.

use super::make::{facts, job_id};
use super::rows::Rows;
use fencepost_core::ids::JobId;
use fencepost_core::job::{Job, JobState};
use fencepost_core::lease_manager::io::{LeaseEffect, LeaseInput, LeaseOpened, SweptJob};
use fencepost_core::lease_manager::{LeaseManager, sweep_keys};
use fencepost_core::level::{self, Level};
use fencepost_core::machine::Out;
use fencepost_core::name::Name;
use fencepost_core::row::{MarkRange, Row, RowKey};
use fencepost_core::scheduler_shard::io::Fire;
use fencepost_core::shard::ShardFacts;
use fencepost_core::time::{Monotonic, Now, Span, StoreTime};
use std::collections::VecDeque;

/// One shard with its rows.
pub struct Leases {
    pub rows: Rows,
    pub machine: LeaseManager,
    pub facts: ShardFacts,
    pub now: Now,
    /// Everything ordered, but for loads, since the last `take_effects`.
    pub effects: Vec<LeaseEffect>,
    pub loads: VecDeque<LeaseEffect>,
    pub hold_loads: bool,
    /// The shell tells when grants were released.
    pub release: bool,
    pub dead_node: Option<(Name, u64)>,
    pub offers: u64,
    pub replies: u64,
    /// Whether those who offer run commands.
    pub commands: bool,
    /// The cell's.
    pub level: Level,
}

/// A start of the tests' calendar.
pub const START: StoreTime = StoreTime::from_secs(1_780_000_000);

impl Leases {
    pub fn new() -> Leases {
        Leases::over(Rows::default(), 1)
    }

    /// Opens over rows that are there already.
    pub fn over(rows: Rows, epoch: u64) -> Leases {
        let facts = facts(epoch);
        let now = Now {
            store: START,
            mono: Monotonic(1_000_000),
            doubt: false,
        };
        let machine = LeaseManager::open(facts, LeaseOpened::default(), now, &mut Out::default());
        let mut leases = Leases {
            rows,
            machine,
            facts,
            now,
            effects: Vec::new(),
            loads: VecDeque::new(),
            hold_loads: false,
            release: true,
            dead_node: None,
            offers: 0,
            replies: 0,
            commands: true,
            level: level::NEWEST,
        };
        leases.reopen();
        leases
    }

    /// The owner crashes and another opens the shard at once.
    pub fn restart(&mut self) {
        self.facts.epoch.0 += 1;
        self.facts.holder.0 += 1;
        self.reopen();
    }

    fn reopen(&mut self) {
        let leased = self
            .rows
            .leased()
            .into_iter()
            .map(|row| (row.clone(), self.rows.job(row.id).unwrap()));
        let opened = LeaseOpened {
            leased: leased.collect(),
            classes: self.rows.classes(),
            marks: self.rows.marks(),
            dead_node: self.dead_node.clone(),
        };
        let mut out = Out::default();
        self.loads.clear();
        self.machine = LeaseManager::open(self.facts, opened, self.now, &mut out);
        self.machine.set_level(self.level);
        self.commit(out);
    }

    /// One step, committed, with all loads answered (unless held).
    pub fn step(&mut self, input: LeaseInput) {
        let mut out = Out::default();
        self.machine.step(self.now, input, &mut out);
        self.commit(out);
    }

    pub fn fire(&mut self, fires: Vec<Fire>) {
        let mut out = Out::default();
        self.machine.on_fires(self.now, fires, &mut out);
        self.commit(out);
    }

    fn commit(&mut self, out: Out<LeaseEffect>) {
        self.rows.apply(&out.writes);
        for effect in out.effects {
            match effect {
                LeaseEffect::LoadReady { .. }
                | LeaseEffect::LoadWait { .. }
                | LeaseEffect::LoadMoved { .. }
                | LeaseEffect::LoadSweep { .. } => {
                    self.loads.push_back(effect);
                }
                effect => self.effects.push(effect),
            }
        }
        if !self.hold_loads {
            self.answer_loads();
        }
    }

    /// Answers all loads from the rows as they are now.
    pub fn answer_loads(&mut self) {
        let held = std::mem::replace(&mut self.hold_loads, true);
        while let Some(load) = self.loads.pop_front() {
            let answer = self.fetch(load);
            self.step(answer);
        }
        self.hold_loads = held;
    }

    /// What a load finds now; to be stepped later, as a slow fetch is.
    pub fn fetch(&self, load: LeaseEffect) -> LeaseInput {
        match load {
            LeaseEffect::LoadReady { class, from, limit } => {
                let (rows, end, horizon) = self.rows.ready_page(self.facts.shard, &class, from, limit);
                LeaseInput::ReadyLoaded {
                    class,
                    rows,
                    end,
                    horizon,
                }
            }
            LeaseEffect::LoadWait { from, limit } => {
                let (rows, end, horizon) = self.rows.wait_page(self.facts.shard, from, limit);
                LeaseInput::WaitLoaded { rows, end, horizon }
            }
            LeaseEffect::LoadMoved { from, limit } => {
                let (rows, _, next) = self.rows.wait_page(self.facts.shard, from, limit);
                LeaseInput::MovedPage { rows, next }
            }
            LeaseEffect::LoadSweep { from, limit } => self.sweep_page(from, limit),
            other => panic!("not a load: {other:?}"),
        }
    }

    fn sweep_page(&self, from: Option<JobId>, limit: usize) -> LeaseInput {
        let mut jobs = self
            .rows
            .jobs()
            .into_iter()
            .filter(|job| from.is_none_or(|from| job.id >= from));
        let swept = jobs.by_ref().take(limit).map(|job| {
            let keys = sweep_keys(self.facts.shard, &job);
            let rows = keys.iter().filter_map(|key| self.rows.rows.get(key).cloned()).collect();
            SweptJob { job, rows }
        });
        let rows = swept.collect();
        let next = jobs.next().map(|job| job.id);
        LeaseInput::SweepPage { rows, next }
    }

    /// Both clocks move, as far as the machine asks to be woken, and it is ticked each time.
    pub fn pass(&mut self, span: Span) {
        let end = self.now.mono + span;
        loop {
            let wake = self.machine.next_wake();
            let by_store = wake.store.map(|at| self.now.mono + at.since(self.now.store));
            let next = [wake.mono, by_store].into_iter().flatten().min().unwrap_or(end);
            let next = next.clamp(self.now.mono + Span::from_millis(1), end);
            self.jump(next.since(self.now.mono));
            self.step(LeaseInput::Tick);
            if self.now.mono >= end {
                return;
            }
        }
    }

    /// Both clocks move; nobody is stepped.
    pub fn jump(&mut self, span: Span) {
        self.now.mono = self.now.mono + span;
        self.now.store = self.now.store + span;
    }

    pub fn take_effects(&mut self) -> Vec<LeaseEffect> {
        std::mem::take(&mut self.effects)
    }

    pub fn job(&self, number: u64) -> Job {
        self.rows.job(job_id(number)).expect("the job's row exists")
    }

    pub fn state(&self, number: u64) -> JobState {
        self.job(number).state
    }

    /// Where the job's place row lies; panics if there are two.
    pub fn place(&self, number: u64) -> Option<&'static str> {
        let places = self.rows.places(job_id(number));
        assert!(places.len() <= 1, "a job has at most one place row: {places:?}");
        places.first().copied()
    }

    /// No row of a range lies below its stored mark (F7).
    pub fn check_marks(&self) {
        for mark in self.rows.marks() {
            let below = self.rows.rows.keys().find(|key| match (&mark.range, key) {
                (MarkRange::Wait, RowKey::Wait(..)) => **key < mark.from,
                (MarkRange::Ready(queue, tenant), RowKey::Ready(row)) => {
                    (&row.queue, &row.tenant) == (queue, tenant) && **key < mark.from
                }
                _ => false,
            });
            assert_eq!(below, None, "a row lies below the mark of {:?}", mark.range);
        }
    }

    /// Memory and rows agree: every unfinished job has one place row, in the range that fits.
    pub fn check(&self) {
        self.machine.check();
        let mut all_places = self.rows.all_places();
        for job in self.rows.jobs() {
            let places = all_places.remove(&job.id).unwrap_or_default();
            let fits: &[&str] = match job.state {
                JobState::Waiting | JobState::Ready => &["wait", "ready", "leased"],
                JobState::Leased => &["leased"],
                JobState::Uncertain => &["parked"],
                JobState::Dead => &["dead letter"],
                JobState::Succeeded | JobState::Cancelled | JobState::Expired => &[],
            };
            assert_eq!(
                places.len(),
                usize::from(!fits.is_empty()),
                "{} is {:?} and lies in {places:?}",
                job.id,
                job.state
            );
            assert!(
                places.iter().all(|place| fits.contains(place)),
                "{} is {:?} in {places:?}",
                job.id,
                job.state
            );
            let current = self.machine.current_attempt(job.id).is_some();
            assert_eq!(
                current,
                places == ["leased"],
                "the leased row says whether an attempt is current"
            );
            assert!(
                job.charged <= job.spec.retry.attempt_count_max,
                "no more attempts than the policy allows"
            );
        }
        self.check_marks();
        for row in self.rows.rows.values() {
            if let Row::Leased(row) = row {
                let held = self.machine.current_attempt(row.id);
                assert_eq!(held, Some(row.as_ref()), "a lease in memory is as stored");
            }
        }
    }
}
