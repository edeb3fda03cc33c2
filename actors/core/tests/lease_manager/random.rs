//! Random steps of clients, workers, clocks and crashes; memory and rows are checked after each, and
//! in the end everything must come to its end.

use crate::steps::{Op, asked, op, verdict_of};
use crate::support::lease_harness::{Leases, START};
use crate::support::make::{job_id, start, succeeded, worker};
use fencepost_core::ids::{JobId, OfferId, Token, WorkerId};
use fencepost_core::job::{Delivery, JobState};
use fencepost_core::lease_manager::io::{CancelAnswer, Grant, LeaseEffect, LeaseInput, Settlement};
use fencepost_core::level;
use fencepost_core::time::Span;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// One attempt as its worker knows it.
#[derive(Clone)]
struct Attempt {
    worker: WorkerId,
    id: JobId,
    token: Token,
    begun: bool,
    /// Reported with a proof, or settled by a person.
    proven: bool,
    ended: bool,
}

struct World {
    leases: Leases,
    attempts: Vec<Attempt>,
    offers: BTreeMap<u8, u64>,
    /// Offers that may wait, with their workers.
    waiting: BTreeMap<u64, u8>,
    offer_next: u64,
    last: Token,
    cancelled: BTreeSet<JobId>,
    ended: BTreeMap<JobId, JobState>,
    /// Starts in the current budget of attempts.
    starts: BTreeMap<JobId, u32>,
}

/// The one that runs no commands.
fn idle_of_commands() -> WorkerId {
    worker("w", 0)
}

impl World {
    fn new() -> World {
        let mut leases = Leases::new();
        leases.level = level::FIRST;
        leases.machine.set_level(level::FIRST);
        World {
            leases,
            attempts: Vec::new(),
            offers: BTreeMap::new(),
            waiting: BTreeMap::new(),
            offer_next: 1_000,
            last: Token::default(),
            cancelled: BTreeSet::new(),
            ended: BTreeMap::new(),
            starts: BTreeMap::new(),
        }
    }

    fn take(&mut self, worker: &WorkerId, grants: Vec<Grant>) {
        for grant in grants {
            let id = grant.job.id;
            assert!(grant.token > self.last, "tokens grow");
            self.last = grant.token;
            assert!(
                !self.cancelled.contains(&id),
                "no attempt starts after a cancel was answered"
            );
            assert!(!self.ended.contains_key(&id), "no attempt of a job that has ended");
            let is_run = *worker != idle_of_commands() || !grant.job.spec.is_command();
            assert!(is_run || self.leases.level < level::NEWEST, "its worker runs it");
            let unproven = self.attempts.iter().any(|a| a.id == id && a.begun && !a.proven);
            let once = grant.job.spec.delivery == Delivery::AtMostOnce;
            assert!(
                !once || !unproven,
                "what began and is unproven is never tried again by us"
            );
            let starts = self.starts.entry(id).or_default();
            *starts += 1;
            assert!(*starts <= grant.job.spec.retry.attempt_count_max, "within its attempts");
            assert_eq!(
                grant.job.charged + 1,
                *starts,
                "the stored count is the count of starts"
            );
            self.attempts.push(Attempt {
                worker: worker.clone(),
                id,
                token: grant.token,
                begun: false,
                proven: false,
                ended: false,
            });
        }
    }

    fn pick(&self, which: usize) -> Option<usize> {
        (!self.attempts.is_empty()).then(|| which % self.attempts.len())
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Create { number, kind, delay } => drop(self.leases.create(asked(number, kind, delay))),
            Op::Cancel(number) => {
                if let Ok(CancelAnswer::Cancelled) = self.leases.cancel(number) {
                    self.cancelled.insert(job_id(number));
                }
            }
            Op::RetryDead(number) => {
                if self.leases.retry_dead(number).is_ok() {
                    self.ended.remove(&job_id(number));
                    self.starts.remove(&job_id(number));
                    self.forgive(job_id(number));
                }
            }
            Op::Settle(number, verdict) => self.settle(number, verdict),
            Op::Offer { who, slots } => {
                self.offer_next += 1;
                self.offers.insert(who, self.offer_next);
                let worker = worker("w", u64::from(who));
                self.leases.commands = worker != idle_of_commands();
                let grants = self.leases.offer_as(&worker, self.offer_next, slots, &[]);
                self.take(&worker, grants);
            }
            Op::RepeatOffer(who) => self.repeat_offer(who),
            Op::LetWait { who, slots } => self.let_wait(who, slots),
            Op::Heartbeat(who) => self.heartbeat(who),
            Op::Begin(which) => {
                if let Some(at) = self.pick(which) {
                    let attempt = self.attempts[at].clone();
                    let begun = self.leases.begin(&attempt.worker, attempt.id, attempt.token);
                    self.attempts[at].begun |= begun;
                }
            }
            Op::Report { which, verdict } => {
                if let Some(at) = self.pick(which) {
                    let attempt = self.attempts[at].clone();
                    self.attempts[at].proven |= verdict <= 2 || verdict & 1 == 0;
                    self.attempts[at].ended = true;
                    self.leases
                        .report(&attempt.worker, attempt.id, attempt.token, verdict_of(verdict));
                }
            }
            Op::ReportAll { who, verdict } => self.report_all(who, verdict),
            Op::CreateSome { number, kinds } => self.create_some(number, &kinds),
            Op::HandBack(which) => self.hand_back(which),
            Op::Pass(seconds) => self.leases.pass(Span::from_secs(seconds)),
            Op::Absent(seconds) => self.leases.jump(Span::from_secs(seconds)),
            Op::StoreClock(seconds) => {
                let store = self.leases.now.store.0 + seconds * 1_000_000;
                self.leases.now.store.0 = store.max(START.0);
            }
            Op::Doubt(doubt) => self.leases.now.doubt = doubt,
            Op::HoldLoads(hold) => {
                self.leases.hold_loads = hold;
                if !hold {
                    self.leases.answer_loads();
                }
            }
            Op::HoldReleases(hold) => self.leases.release = !hold,
            Op::Raise => {
                self.leases.level = level::NEWEST;
                self.leases.machine.set_level(level::NEWEST);
            }
            Op::Restart { dead } => {
                self.leases.dead_node = dead.then(|| start("w", 1));
                self.offers.clear();
                self.leases.restart();
            }
        }
    }

    fn let_wait(&mut self, who: u8, slots: u32) {
        self.offer_next += 1;
        self.offers.insert(who, self.offer_next);
        self.waiting.insert(self.offer_next, who);
        self.leases.step(LeaseInput::Offer {
            worker: worker("w", u64::from(who)),
            offer: OfferId(self.offer_next),
            slots,
            queues: Vec::new(),
            commands: worker("w", u64::from(who)) != idle_of_commands(),
            waits: true,
            apart: 0,
        });
    }

    /// Grants to offers that waited: they come with whatever step made work.
    fn take_waited(&mut self) {
        for effect in self.leases.take_effects() {
            let LeaseEffect::SendGrants {
                worker, offer, grants, ..
            } = effect
            else {
                continue;
            };
            if self.waiting.remove(&offer.0).is_some() {
                self.take(&worker, grants);
                self.leases.step(LeaseInput::GrantsReleased { worker, offer });
            }
        }
    }

    fn settle(&mut self, number: u64, verdict: u8) {
        let verdict = [Settlement::Succeeded, Settlement::Dead, Settlement::Retry][usize::from(verdict)];
        if self.leases.settle(number, verdict).is_ok() && verdict == Settlement::Retry {
            self.starts.remove(&job_id(number));
            self.forgive(job_id(number));
        }
    }

    fn forgive(&mut self, id: JobId) {
        for attempt in self.attempts.iter_mut().filter(|attempt| attempt.id == id) {
            attempt.proven = true;
        }
    }

    /// A repeated offer's grants are known already, unless nothing had been granted for it.
    fn repeat_offer(&mut self, who: u8) {
        let Some(offer) = self.offers.get(&who).copied() else {
            return;
        };
        self.take_waited();
        self.waiting.remove(&offer);
        let worker = worker("w", u64::from(who));
        self.leases.commands = worker != idle_of_commands();
        let grants = self.leases.offer_as(&worker, offer, 2, &[]);
        let (known, new): (Vec<_>, Vec<_>) = grants.into_iter().partition(|grant| grant.token <= self.last);
        for grant in known {
            assert!(
                self.attempts
                    .iter()
                    .any(|a| a.token == grant.token && a.id == grant.job.id)
            );
        }
        self.take(&worker, new);
    }

    fn report_all(&mut self, who: u8, verdict: u8) {
        let worker = worker("w", u64::from(who));
        let mut items = Vec::new();
        for attempt in self.attempts.iter_mut().filter(|attempt| attempt.worker == worker) {
            attempt.ended = true;
            attempt.proven |= verdict <= 2 || verdict & 1 == 0;
            items.push((attempt.id, attempt.token, verdict_of(verdict)));
        }
        items.extend_from_within(items.len() / 2..);
        self.leases.report_all(&worker, items);
    }

    fn create_some(&mut self, number: u64, kinds: &[u8]) {
        let items = (0..)
            .zip(kinds)
            .map(|(place, kind)| asked((number + place / 2) % 24, *kind, place * 3));
        self.leases.create_all(items.collect());
    }

    fn heartbeat(&mut self, who: u8) {
        let worker = worker("w", u64::from(who));
        let held: Vec<_> = self
            .attempts
            .iter()
            .filter(|a| a.worker == worker && !a.ended)
            .map(|a| (a.id, a.token))
            .collect();
        let (renewed, lost) = self.leases.heartbeat(&worker, &held);
        assert_eq!(renewed.len() + lost.len(), held.len(), "each is answered");
        for attempt in self.attempts.iter_mut().filter(|a| lost.contains(&(a.id, a.token))) {
            attempt.ended = true;
        }
    }

    /// A worker hands back only what it has not started.
    fn hand_back(&mut self, which: usize) {
        let Some(at) = self.pick(which) else { return };
        let attempt = self.attempts[at].clone();
        if attempt.ended || attempt.begun {
            return;
        }
        self.attempts[at].ended = true;
        let current = self
            .leases
            .machine
            .current_attempt(attempt.id)
            .is_some_and(|row| row.token == attempt.token);
        self.leases.hand_back(&attempt.worker, attempt.id, attempt.token);
        if let Some(starts) = self.starts.get_mut(&attempt.id).filter(|_| current) {
            *starts -= 1;
        }
    }

    fn check(&mut self) {
        self.leases.check();
        for job in self.leases.rows.jobs() {
            if let Some(state) = self.ended.get(&job.id) {
                assert_eq!(job.state, *state, "a finished job never turns into another");
            }
            if job.state.is_finished() {
                self.ended.insert(job.id, job.state);
            }
            if self.cancelled.contains(&job.id) {
                assert_eq!(job.state, JobState::Cancelled, "cancelled is cancelled");
            }
        }
    }

    /// Everything heals; workers finish all they get.
    fn settle_down(&mut self) {
        self.leases.now.doubt = false;
        self.leases.hold_loads = false;
        self.leases.release = true;
        self.leases.answer_loads();
        self.leases.restart();
        let healer = worker("healer", 1);
        self.leases.commands = true;
        for _ in 0..40 {
            self.leases.pass(Span::from_secs(30));
            for grant in self.leases.offer(&healer, 100) {
                self.leases.begin(&healer, grant.job.id, grant.token);
                self.leases.report(&healer, grant.job.id, grant.token, succeeded());
            }
            self.leases.take_effects();
        }
        self.leases.check();
        for job in self.leases.rows.jobs() {
            let at_rest = job.state.is_finished() || job.state == JobState::Uncertain;
            assert!(
                at_rest,
                "{} is still {:?} in {:?}",
                job.id,
                job.state,
                self.leases.rows.places(job.id)
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_steps_keep_rows_and_memory_in_accord(ops in prop::collection::vec(op(), 1..150)) {
        let mut world = World::new();
        for op in ops {
            world.apply(op);
            world.leases.step(LeaseInput::Tick);
            world.take_waited();
            world.check();
        }
        world.settle_down();
    }
}
