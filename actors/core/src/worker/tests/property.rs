//! Random steps: a worker among lost, repeated, late and foreign messages.
//!
//! Owns: what must hold whatever is said to a worker. Next: `../check.rs`.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// What may happen next; numbers choose among what is there.
#[derive(Clone, Debug)]
enum Move {
    Hint(u16),
    Away(u16),
    Here(u16),
    Answer {
        pick: usize,
        grants: u8,
        once: bool,
        waited: u64,
        again: bool,
    },
    Renew {
        pick: usize,
        epoch: u64,
        cancel: bool,
    },
    Lose {
        pick: usize,
        epoch: u64,
    },
    Reconcile {
        pick: usize,
        epoch: u64,
    },
    Begun(usize),
    Finish(usize),
    /// Whoever was to carry it out gives it back, and perhaps says an end all the same.
    NotStarted(usize, bool),
    Record {
        pick: usize,
        stale: bool,
        epoch: u64,
    },
    Pass(u64),
    HoldBack(bool),
    Drain,
    DrainExpired,
}

fn moves() -> impl Strategy<Value = Move> {
    prop_oneof![
        4 => (0..3_u16).prop_map(Move::Hint),
        1 => (0..4_u16).prop_map(Move::Away),
        2 => (0..4_u16).prop_map(Move::Here),
        8 => (any::<usize>(), 0..5_u8, any::<bool>(), 0..40_u64, any::<bool>())
            .prop_map(|(pick, grants, once, waited, again)| Move::Answer { pick, grants, once, waited, again }),
        4 => (any::<usize>(), 1..4_u64, prop::bool::weighted(0.2))
            .prop_map(|(pick, epoch, cancel)| Move::Renew { pick, epoch, cancel }),
        1 => (any::<usize>(), 1..4_u64).prop_map(|(pick, epoch)| Move::Lose { pick, epoch }),
        2 => (any::<usize>(), 1..4_u64).prop_map(|(pick, epoch)| Move::Reconcile { pick, epoch }),
        4 => any::<usize>().prop_map(Move::Begun),
        6 => any::<usize>().prop_map(Move::Finish),
        2 => (any::<usize>(), any::<bool>()).prop_map(|(pick, ends)| Move::NotStarted(pick, ends)),
        6 => (any::<usize>(), prop::bool::weighted(0.2), 1..4_u64)
            .prop_map(|(pick, stale, epoch)| Move::Record { pick, stale, epoch }),
        5 => (0..20_000_u64).prop_map(Move::Pass),
        1 => any::<bool>().prop_map(Move::HoldBack),
        1 => Just(Move::Drain),
        1 => Just(Move::DrainExpired),
    ]
}

/// The world around the worker, with what was seen of it.
struct World {
    bench: Bench,
    shards: ShardMap,
    sequence: u64,
    answers: Vec<(ShardId, OfferId, Vec<Grant>)>,
    offers: Vec<(ShardId, OfferId)>,
    started: BTreeSet<(JobId, Token)>,
    running: BTreeSet<(JobId, Token)>,
    begun: BTreeSet<(JobId, Token)>,
    handed_back: BTreeSet<(JobId, Token)>,
    declined: BTreeSet<(JobId, Token)>,
    stopped: BTreeMap<(JobId, Token), Vec<StopReason>>,
    reported: BTreeSet<(JobId, Token)>,
    /// Answers that were passed on.
    told: BTreeSet<(JobId, Token)>,
    beats: Vec<BeatId>,
    drained: u32,
}

impl World {
    fn new() -> World {
        World {
            bench: Bench::new(4, 3),
            shards: ShardMap::new(3).unwrap(),
            sequence: 0,
            answers: Vec::new(),
            offers: Vec::new(),
            started: BTreeSet::new(),
            running: BTreeSet::new(),
            begun: BTreeSet::new(),
            handed_back: BTreeSet::new(),
            declined: BTreeSet::new(),
            stopped: BTreeMap::new(),
            reported: BTreeSet::new(),
            told: BTreeSet::new(),
            beats: Vec::new(),
            drained: 0,
        }
    }

    fn go(&mut self, next: Move) {
        match next {
            Move::Hint(shard) => self.bench.put(WorkerInput::ReadyHint(ShardId(shard))),
            Move::Away(shard) => self.bench.put(WorkerInput::ShardAway(ShardId(shard))),
            Move::Here(shard) => self.bench.put(WorkerInput::ShardHere(ShardId(shard))),
            Move::Answer {
                pick,
                grants,
                once,
                waited,
                again,
            } => self.answer(pick, grants, once, waited, again),
            Move::Renew { pick, epoch, cancel } => self.renew(pick, epoch, cancel),
            Move::Lose { pick, epoch } => {
                if let Some(key) = nth(&self.started, pick) {
                    let from = self.owner_of(key, epoch);
                    self.bench.put(WorkerInput::Lost { from, lost: vec![key] });
                }
            }
            Move::Reconcile { pick, epoch } => self.reconcile(pick, epoch),
            Move::Begun(pick) => {
                if let Some((id, token)) = nth(&self.begun, pick) {
                    self.bench.put(WorkerInput::Begun { id, token });
                }
            }
            Move::Finish(pick) => {
                if let Some(key) = nth(&self.running, pick) {
                    self.running.remove(&key);
                    self.bench.finish(key);
                }
            }
            Move::NotStarted(pick, ends) => {
                if let Some(key) = nth(&self.running, pick) {
                    self.running.remove(&key);
                    self.declined.insert(key);
                    self.bench.put(WorkerInput::NotStarted { items: vec![key] });
                    if ends {
                        self.bench.finish(key);
                    }
                }
            }
            Move::Record { pick, stale, epoch } => {
                if let Some(key) = nth(&self.reported, pick) {
                    let recorded = if stale { Recorded::Stale } else { Recorded::Recorded };
                    let from = self.owner_of(key, epoch);
                    self.bench.put(WorkerInput::Recorded {
                        from,
                        items: vec![(key.0, key.1, recorded)],
                    });
                }
            }
            Move::Pass(millis) => self.bench.pass(Span::from_millis(millis)),
            Move::HoldBack(holds_back) => self.hold_back(holds_back),
            Move::Drain => self.bench.put(WorkerInput::Drain),
            Move::DrainExpired => self.bench.put(WorkerInput::DrainExpired),
        }
        self.watch();
    }

    /// While it holds back, what it sends offers no room.
    fn hold_back(&mut self, holds_back: bool) {
        let before = self.bench.effects.len();
        self.bench.put(WorkerInput::HoldBack(holds_back));
        if holds_back {
            self.bench.put(WorkerInput::ReadyHint(ShardId(0)));
            let offers_room =
                |effect: &WorkerEffect| matches!(effect, WorkerEffect::SendOffer { slots, .. } if *slots > 0);
            assert!(!self.bench.effects.iter().skip(before).any(offers_room));
        }
    }

    fn owner_of(&self, key: (JobId, Token), epoch: u64) -> ShardOwner {
        ShardOwner {
            shard: self.shards.shard_of(key.0.slot()),
            ..owner(epoch)
        }
    }

    /// Answers an offer, or repeats an answer; some fresh answers are lost on their way.
    fn answer(&mut self, pick: usize, count: u8, at_most_once: bool, waited: u64, again: bool) {
        let old = (!self.answers.is_empty() && again).then(|| self.answers[pick % self.answers.len()].clone());
        let fresh = (!self.offers.is_empty()).then(|| self.offers[pick % self.offers.len()]);
        let Some((shard, offer, grants)) = old.or_else(|| {
            let (shard, offer) = fresh?;
            let grants = (0..count).map(|_| self.draw(shard, at_most_once)).collect();
            Some((shard, offer, grants))
        }) else {
            return;
        };
        self.answers.push((shard, offer, grants.clone()));
        if pick.is_multiple_of(5) {
            return;
        }
        let from = ShardOwner { shard, ..owner(1) };
        let waited = Span::from_secs(waited);
        self.bench.put(WorkerInput::Granted {
            from,
            offer,
            grants,
            waited,
            more: count > 3,
            apart: None,
        });
    }

    fn draw(&mut self, shard: ShardId, at_most_once: bool) -> Grant {
        self.sequence += 1;
        let number = u64::from(self.shards.slots_of(shard).0) + self.sequence * 16_384;
        match at_most_once {
            true => once(number, self.sequence),
            false => plain(number, self.sequence),
        }
    }

    /// Asks about a grant that was sent or is only about to be.
    fn reconcile(&mut self, pick: usize, epoch: u64) {
        let sent: Vec<Grant> = self.answers.iter().flat_map(|answer| answer.2.clone()).collect();
        let Some(grant) = sent.get(pick % (sent.len() + 1)) else {
            return;
        };
        let key = key(grant);
        let from = self.owner_of(key, epoch);
        self.bench.put(WorkerInput::Reconcile { from, items: vec![key] });
    }

    fn renew(&mut self, pick: usize, epoch: u64, cancel: bool) {
        let Some(key) = nth(&self.started, pick) else { return };
        let Some(beat) = self.beats.last().copied() else { return };
        let from = self.owner_of(key, epoch);
        let held = vec![Renewal {
            id: key.0,
            token: key.1,
            length: LENGTH,
        }];
        self.bench.put(WorkerInput::Renewed { from, beat, held });
        if cancel {
            let (id, token) = key;
            self.bench.put(WorkerInput::CancelRequested { from, id, token });
        }
    }

    /// Looks at every order once.
    fn watch(&mut self) {
        for effect in std::mem::take(&mut self.bench.effects) {
            match effect {
                WorkerEffect::SendOffer { shard, offer, .. } => self.offers.push((shard, offer)),
                WorkerEffect::SendHeartbeat { beat, held, .. } => {
                    assert!(held.iter().all(|key| !self.handed_back.contains(key)));
                    self.beats.push(beat);
                }
                WorkerEffect::SendBegin { id, token, .. } => {
                    assert!(!self.handed_back.contains(&(id, token)), "begun after it was forsworn");
                    self.begun.insert((id, token));
                }
                WorkerEffect::SendOutcomes { items, .. } => {
                    for (id, token, _) in items {
                        assert!(self.started.contains(&(id, token)) && !self.running.contains(&(id, token)));
                        assert!(!self.declined.contains(&(id, token)), "reported, though it went back");
                        self.reported.insert((id, token));
                    }
                }
                WorkerEffect::SendHandBack { items, .. } => {
                    assert!(
                        items
                            .iter()
                            .all(|key| !self.started.contains(key) || self.declined.contains(key)),
                        "forsworn after it started"
                    );
                    self.handed_back.extend(items);
                }
                WorkerEffect::StartAttempt { grant, left, .. } => self.on_start(&grant, left),
                WorkerEffect::ExtendAttempt { id, token, .. } => assert!(self.running.contains(&(id, token))),
                WorkerEffect::StopAttempt { id, token, reason } => {
                    assert!(self.running.contains(&(id, token)), "only what runs is stopped");
                    let told = self.stopped.entry((id, token)).or_default();
                    assert!(!told.contains(&reason), "told once");
                    told.push(reason);
                }
                WorkerEffect::TellRecorded { items } => {
                    for (id, token, _) in items {
                        let key = (id, token);
                        let waits = self.reported.contains(&key) || self.handed_back.contains(&key);
                        assert!(waits, "an answer to what was not said");
                        assert!(self.told.insert(key), "told twice");
                    }
                }
                WorkerEffect::Drained => self.drained += 1,
            }
        }
        assert!(self.running.len() <= 4 && self.drained <= 1);
    }

    fn on_start(&mut self, grant: &Grant, left: Span) {
        let key = key(grant);
        assert!(self.started.insert(key), "started twice");
        assert!(!self.handed_back.contains(&key), "started after it was forsworn");
        let begun = grant.job.spec.delivery == Delivery::AtLeastOnce || self.begun.contains(&key);
        assert!(begun && left > Span::ZERO && left < LENGTH);
        assert!(self.drained == 0);
        self.running.insert(key);
    }

    /// Everything is answered from now on: the worker must come to rest.
    fn settle(&mut self) {
        self.go(Move::DrainExpired);
        for _ in 0..100 {
            while let Some(key) = self.running.pop_first() {
                self.bench.finish(key);
                self.watch();
            }
            let told = self.reported.clone();
            for key in told.union(&self.handed_back).copied().collect::<Vec<_>>() {
                let from = self.owner_of(key, 9);
                self.bench.put(WorkerInput::Recorded {
                    from,
                    items: vec![(key.0, key.1, Recorded::Stale)],
                });
                self.watch();
            }
            self.go(Move::Pass(1_000));
        }
        assert_eq!(self.drained, 1, "a drain with answers ends");
        assert_eq!((self.bench.worker.used(), self.bench.worker.unrecorded()), (0, 0));
        assert_eq!(self.bench.worker.next_wake(), None, "nothing is left to do");
    }
}

fn nth<T: Copy + Ord>(set: &BTreeSet<T>, pick: usize) -> Option<T> {
    set.iter().nth(pick % set.len().max(1)).copied()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_said_a_worker_stays_honest(moves in prop::collection::vec(moves(), 1..120)) {
        let mut world = World::new();
        for next in moves {
            world.go(next);
        }
        world.settle();
    }
}
