//! The shared behaviour cases about workers with both machines: a lease manager, the Worker that runs the job,
//! and a second worker that is idle.

use crate::support::lease_harness::Leases;
use crate::support::make::{item, job_id, spec, succeeded, worker};
use fencepost_core::ids::{JobId, ShardId, ShardMap, ShardOwner, Token, WorkerId};
use fencepost_core::job::{AttemptResult, JobState};
use fencepost_core::time::Span;
use fencepost_core::worker::io::{WorkerEffect, WorkerInput};
use fencepost_core::worker::{WorkerConfig, WorkerMachine};

/// A worker that runs the shard's one job, and the owner that it talks to without loss or delay.
struct Pair {
    leases: Leases,
    worker: WorkerMachine,
    id: WorkerId,
    running: Vec<(JobId, Token)>,
    stopped: usize,
    drained: bool,
}

impl Pair {
    /// The job is granted and runs.
    fn running() -> Pair {
        let mut leases = Leases::new();
        leases.create(item(1, spec())).unwrap();
        let mut pair = Pair {
            leases,
            worker: WorkerMachine::new(WorkerConfig::new(1, ShardMap::new(1).unwrap())),
            id: worker("a", 1),
            running: Vec::new(),
            stopped: 0,
            drained: false,
        };
        pair.put(WorkerInput::ReadyHint(ShardId(0)));
        assert_eq!(pair.running.len(), 1);
        pair
    }

    fn put(&mut self, input: WorkerInput) {
        let mut effects = Vec::new();
        self.worker.step(self.leases.now.mono, input, &mut effects);
        self.worker.check();
        effects.into_iter().for_each(|effect| self.deliver(effect));
    }

    fn deliver(&mut self, effect: WorkerEffect) {
        let facts = &self.leases.facts;
        let from = ShardOwner {
            shard: facts.shard,
            generation: facts.generation,
            epoch: facts.epoch,
        };
        match effect {
            WorkerEffect::SendOffer { offer, slots, .. } => {
                let grants = self.leases.offer_as(&self.id, offer.0, slots, &[]);
                self.put(WorkerInput::Granted {
                    from,
                    offer,
                    grants,
                    waited: Span::ZERO,
                    more: false,
                    apart: None,
                });
            }
            WorkerEffect::SendHeartbeat { beat, held, .. } => {
                let (held, lost) = self.leases.heartbeat(&self.id, &held);
                assert!(lost.is_empty(), "{lost:?}");
                self.put(WorkerInput::Renewed { from, beat, held });
            }
            WorkerEffect::SendOutcomes { items, .. } => {
                let report = |(id, token, outcome)| (id, token, self.leases.report(&self.id, id, token, outcome));
                let items = items.into_iter().map(report).collect();
                self.put(WorkerInput::Recorded { from, items });
            }
            WorkerEffect::StartAttempt { grant, .. } => self.running.push((grant.job.id, grant.token)),
            WorkerEffect::StopAttempt { .. } => self.stopped += 1,
            WorkerEffect::Drained => self.drained = true,
            WorkerEffect::SendHandBack { .. } | WorkerEffect::SendBegin { .. } => panic!("{effect:?}"),
            WorkerEffect::ExtendAttempt { .. } | WorkerEffect::TellRecorded { .. } => {}
        }
    }

    /// Time passes for both; the idle worker asks each second and gets nothing.
    fn pass(&mut self, seconds: u64, idle: &WorkerId) {
        for second in 0..seconds {
            self.leases.pass(Span::from_secs(1));
            self.put(WorkerInput::Tick);
            assert!(self.leases.offer(idle, 1).is_empty(), "after {second} s");
        }
    }

    fn finish(&mut self) {
        let (id, token) = self.running[0];
        self.put(WorkerInput::AttemptsFinished {
            items: vec![(id, token, succeeded())],
        });
    }

    fn ended_well_in_one_attempt(&self) {
        let job = self.leases.job(1);
        assert_eq!((job.state, job.attempts.len()), (JobState::Succeeded, 1));
        assert_eq!((self.running.len(), self.stopped), (1, 0));
        self.leases.check();
    }
}

#[test]
fn beh_w02_a_job_of_twenty_leases_stays_with_its_worker() {
    let mut pair = Pair::running();
    pair.pass(600, &worker("b", 1));
    pair.finish();
    pair.ended_well_in_one_attempt();
}

#[test]
fn beh_w09_a_busy_worker_that_is_stopped_finishes_its_job_and_an_idle_one_never_gets_it() {
    let mut pair = Pair::running();
    pair.put(WorkerInput::Drain);
    pair.pass(300, &worker("b", 1));
    assert!(!pair.drained, "it waits for its job");
    pair.finish();
    assert!(pair.drained, "the outcome is recorded");
    pair.ended_well_in_one_attempt();
}

#[test]
fn beh_w09_the_idle_worker_gets_the_job_only_when_the_stopping_one_is_killed() {
    let (mut pair, idle) = (Pair::running(), worker("b", 1));
    pair.put(WorkerInput::Drain);
    pair.pass(60, &idle);
    // Killed: it says nothing any more.
    let leases = &mut pair.leases;
    let waited = (1..60).find(|_| {
        leases.pass(Span::from_secs(1));
        !leases.offer(&idle, 1).is_empty()
    });
    let waited = waited.expect("the job goes elsewhere");
    assert!((15..=33).contains(&waited), "after {waited} s of a lease of 30 s");
    let attempts = leases.job(1).attempts;
    assert_eq!((attempts.len(), attempts[0].result), (1, AttemptResult::WorkerLost));
    assert_eq!(leases.machine.current_attempt(job_id(1)).unwrap().attempt, 2);
    leases.check();
}
