//! Tests of the Worker machine: one worker, time as a number, messages by hand.
//!
//! Owns: the bench that the tests share. Must never: sleep. Next: `asking.rs`, `apart.rs`, `elsewhere.rs`, `here.rs`,
//! `keeping.rs`, `reporting.rs`, `property.rs`.

mod apart;
mod asking;
mod elsewhere;
mod here;
mod keeping;
mod property;
mod reporting;
mod waiting;

use super::io::{StopReason, WorkerEffect, WorkerInput};
use super::{WorkerConfig, WorkerMachine};
use crate::ids::{BeatId, Epoch, Generation, JobId, OfferId, ShardId, ShardMap, ShardOwner, Slot, Token};
use crate::job::{Delivery, EffectProof, Job, JobSpec, Origin, Outcome, RetryPolicy, Verdict};
use crate::lease_manager::io::{Grant, Recorded, Renewal};
use crate::limits;
use crate::name::Name;
use crate::target::{Payload, Target};
use crate::time::{Monotonic, Span, StoreTime};
use std::sync::Arc;

pub(super) const LENGTH: Span = Span::from_secs(30);

/// A worker and what it has ordered since last looked at.
pub(super) struct Bench {
    pub(super) worker: WorkerMachine,
    pub(super) now: Monotonic,
    pub(super) effects: Vec<WorkerEffect>,
}

impl Bench {
    pub(super) fn new(slots: u32, shards: u16) -> Bench {
        let shards = ShardMap::new(shards).unwrap();
        Bench {
            worker: WorkerMachine::new(WorkerConfig::new(slots, shards)),
            now: Monotonic(0),
            effects: Vec::new(),
        }
    }

    /// One shard, asked already, with its offer's number.
    pub(super) fn asked(slots: u32) -> (Bench, OfferId) {
        let mut bench = Bench::new(slots, 1);
        bench.put(WorkerInput::ReadyHint(ShardId(0)));
        let offer = bench.offers().first().unwrap().1;
        (bench, offer)
    }

    pub(super) fn put(&mut self, input: WorkerInput) {
        self.worker.step(self.now, input, &mut self.effects);
        self.worker.check();
    }

    /// Lets time pass, stepping whenever the worker wants to be stepped.
    pub(super) fn pass(&mut self, span: Span) {
        let end = self.now + span;
        while let Some(wake) = self.worker.next_wake().filter(|at| *at <= end) {
            self.now = self.now.max(wake);
            self.put(WorkerInput::Tick);
        }
        self.now = end;
        self.put(WorkerInput::Tick);
    }

    /// As if the process stood still: time passes and nobody looks.
    pub(super) fn freeze(&mut self, span: Span) {
        self.now = self.now + span;
    }

    pub(super) fn grant(&mut self, offer: OfferId, grants: Vec<Grant>, waited: Span) {
        self.put(WorkerInput::Granted {
            from: owner(1),
            offer,
            grants,
            waited,
            more: false,
            apart: None,
        });
    }

    pub(super) fn renew(&mut self, epoch: u64, beat: BeatId, key: (JobId, Token)) {
        let held = vec![Renewal {
            id: key.0,
            token: key.1,
            length: LENGTH,
        }];
        self.put(WorkerInput::Renewed {
            from: owner(epoch),
            beat,
            held,
        });
    }

    pub(super) fn cancel(&mut self, epoch: u64, (id, token): (JobId, Token)) {
        let from = owner(epoch);
        self.put(WorkerInput::CancelRequested { from, id, token });
    }

    pub(super) fn lose(&mut self, epoch: u64, key: (JobId, Token)) {
        self.put(WorkerInput::Lost {
            from: owner(epoch),
            lost: vec![key],
        });
    }

    pub(super) fn finish(&mut self, (id, token): (JobId, Token)) {
        self.put(WorkerInput::AttemptsFinished {
            items: vec![(id, token, success())],
        });
    }

    pub(super) fn record(&mut self, epoch: u64, (id, token): (JobId, Token), recorded: Recorded) {
        self.put(WorkerInput::Recorded {
            from: owner(epoch),
            items: vec![(id, token, recorded)],
        });
    }

    /// Orders since last looked at, with those kept that `pick` does not know.
    fn pick<T>(&mut self, pick: impl Fn(&WorkerEffect) -> Option<T>) -> Vec<T> {
        let found = self.effects.iter().filter_map(&pick).collect();
        self.effects.retain(|effect| pick(effect).is_none());
        found
    }

    pub(super) fn offers(&mut self) -> Vec<(ShardId, OfferId, u32)> {
        self.pick(|effect| match effect {
            WorkerEffect::SendOffer {
                shard, offer, slots, ..
            } => Some((*shard, *offer, *slots)),
            _ => None,
        })
    }

    pub(super) fn starts(&mut self) -> Vec<((JobId, Token), Span)> {
        self.pick(|effect| match effect {
            WorkerEffect::StartAttempt { grant, left, .. } => Some(((grant.job.id, grant.token), *left)),
            _ => None,
        })
    }

    pub(super) fn begins(&mut self) -> Vec<(JobId, Token)> {
        self.pick(|effect| match effect {
            WorkerEffect::SendBegin { id, token, .. } => Some((*id, *token)),
            _ => None,
        })
    }

    pub(super) fn stops(&mut self) -> Vec<((JobId, Token), StopReason)> {
        self.pick(|effect| match effect {
            WorkerEffect::StopAttempt { id, token, reason } => Some(((*id, *token), *reason)),
            _ => None,
        })
    }

    pub(super) fn beats(&mut self) -> Vec<(BeatId, Vec<(JobId, Token)>)> {
        self.pick(|effect| match effect {
            WorkerEffect::SendHeartbeat { beat, held, .. } => Some((*beat, held.clone())),
            _ => None,
        })
    }

    pub(super) fn hand_backs(&mut self) -> Vec<Vec<(JobId, Token)>> {
        self.pick(|effect| match effect {
            WorkerEffect::SendHandBack { items, .. } => Some(items.clone()),
            _ => None,
        })
    }

    pub(super) fn outcomes(&mut self) -> Vec<Vec<(JobId, Token)>> {
        self.pick(|effect| match effect {
            WorkerEffect::SendOutcomes { items, .. } => {
                Some(items.iter().map(|(id, token, _)| (*id, *token)).collect())
            }
            _ => None,
        })
    }

    /// Answers that were passed on.
    pub(super) fn told(&mut self) -> Vec<((JobId, Token), Recorded)> {
        let told = self.pick(|effect| match effect {
            WorkerEffect::TellRecorded { items } => Some(items.clone()),
            _ => None,
        });
        let items = told.into_iter().flatten();
        items.map(|(id, token, recorded)| ((id, token), recorded)).collect()
    }

    pub(super) fn drained(&mut self) -> bool {
        !self
            .pick(|effect| matches!(effect, WorkerEffect::Drained).then_some(()))
            .is_empty()
    }
}

pub(super) fn owner(epoch: u64) -> ShardOwner {
    ShardOwner {
        shard: ShardId(0),
        generation: Generation(1),
        epoch: Epoch(epoch),
    }
}

pub(super) fn token(epoch: u64, sequence: u64) -> Token {
    Token {
        generation: Generation(1),
        epoch: Epoch(epoch),
        sequence,
    }
}

pub(super) fn success() -> Outcome {
    Outcome {
        verdict: Verdict::Succeeded,
        error: None,
        output: Arc::from([].as_slice()),
    }
}

pub(super) fn job(number: u64, delivery: Delivery) -> Job {
    let name = |text| Name::new(text).unwrap();
    let mut chance = [0; 14];
    chance[6..].copy_from_slice(&number.to_be_bytes());
    let spec = JobSpec {
        tenant: name("default"),
        queue: name("default"),
        target: Target::Handler(name("noop")),
        payload: Payload::empty(),
        priority: 5,
        tags: Vec::new(),
        timeout: Span::from_secs(300),
        retry: RetryPolicy {
            attempt_count_max: 3,
            backoff_first: Span::from_secs(1),
            backoff_cap: Span::from_secs(60),
        },
        delivery,
        expires_at: None,
    };
    let id = JobId::fresh(Slot::new((number % 16_384) as u16).unwrap(), chance);
    Job::due_at_once(id, Arc::new(spec), Origin::Request { key: None }, StoreTime(0))
}

/// A grant of job `number` under (epoch 1, `sequence`).
pub(super) fn grant(number: u64, sequence: u64, delivery: Delivery) -> Grant {
    Grant {
        job: Arc::new(job(number, delivery)),
        attempt: 1,
        token: token(1, sequence),
        length: LENGTH,
        granted_at: StoreTime(0),
    }
}

pub(super) fn plain(number: u64, sequence: u64) -> Grant {
    grant(number, sequence, Delivery::AtLeastOnce)
}

pub(super) fn once(number: u64, sequence: u64) -> Grant {
    grant(number, sequence, Delivery::AtMostOnce)
}

pub(super) fn key(grant: &Grant) -> (JobId, Token) {
    (grant.job.id, grant.token)
}

pub(super) fn failure() -> Outcome {
    Outcome {
        verdict: Verdict::Cancelled {
            effect: EffectProof::Unproven,
        },
        error: Some(Arc::from("stopped")),
        output: Arc::from([].as_slice()),
    }
}
