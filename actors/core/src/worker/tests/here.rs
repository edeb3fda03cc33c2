//! An owner that can be reached again: everything that it has not answered, at once and only once a word.
//!
//! Owns: F14, F15 and F18 where a shard moves to another node. Next: `property.rs`.

use super::*;
use crate::planted::Bug;

const SHARD: ShardId = ShardId(0);

/// A worker with one run, granted by the owner of epoch 1.
fn with_run(grants: Vec<Grant>) -> Bench {
    let (mut bench, offer) = Bench::asked(8);
    bench.grant(offer, grants, Span::ZERO);
    bench.effects.clear();
    bench
}

#[test]
fn f18_an_outcome_goes_to_the_new_owner_at_once_however_long_the_old_one_was_away() {
    let mut bench = with_run(vec![plain(1, 1)]);
    bench.finish(key(&plain(1, 1)));
    // The gaps have grown to their longest.
    bench.pass(Span::from_secs(60));
    bench.effects.clear();
    bench.put(WorkerInput::ShardHere(SHARD));
    assert_eq!(bench.outcomes(), [vec![key(&plain(1, 1))]]);
    assert_eq!(bench.beats().len(), 1, "and its lease is renewed there");
    bench.put(WorkerInput::Drain);
    bench.record(2, key(&plain(1, 1)), Recorded::Recorded);
    bench.put(WorkerInput::ShardHere(SHARD));
    assert!(bench.outcomes().is_empty(), "what is recorded is not said again");
}

#[test]
fn f18_a_drain_ends_when_the_new_owner_has_answered() {
    let mut bench = with_run(vec![plain(1, 1)]);
    bench.put(WorkerInput::ShardAway(SHARD));
    bench.put(WorkerInput::Drain);
    bench.finish(key(&plain(1, 1)));
    bench.pass(Span::from_secs(20));
    assert!(!bench.drained());
    bench.effects.clear();
    bench.put(WorkerInput::ShardHere(SHARD));
    assert_eq!(bench.outcomes(), [vec![key(&plain(1, 1))]]);
    let asked = bench.offers();
    bench.record(2, key(&plain(1, 1)), Recorded::Recorded);
    for (_, offer, slots) in asked {
        assert_eq!(slots, 0, "a drain asks only what was granted");
        bench.put(WorkerInput::Granted {
            from: owner(2),
            offer,
            grants: Vec::new(),
            waited: Span::ZERO,
            more: false,
            apart: None,
        });
    }
    assert!(bench.drained());
}

#[test]
fn f14_a_hand_back_goes_to_the_new_owner_at_once_until_it_answers() {
    let mut bench = with_run(Vec::new());
    bench.put(WorkerInput::Reconcile {
        from: owner(1),
        items: vec![key(&plain(1, 1))],
    });
    bench.pass(Span::from_secs(60));
    bench.effects.clear();
    for _ in 0..2 {
        bench.put(WorkerInput::ShardHere(SHARD));
        assert_eq!(bench.hand_backs(), [vec![key(&plain(1, 1))]]);
    }
    bench.record(2, key(&plain(1, 1)), Recorded::Recorded);
    bench.put(WorkerInput::ShardHere(SHARD));
    assert!(bench.hand_backs().is_empty());
}

#[test]
fn f14_an_offer_that_was_cut_off_is_repeated_under_its_number_and_its_grants_run_once() {
    let (mut bench, offer) = Bench::asked(8);
    bench.effects.clear();
    bench.put(WorkerInput::ShardHere(SHARD));
    let again = bench.offers();
    assert!(
        again.iter().all(|(_, id, _)| *id == offer) && again.len() == 1,
        "{again:?}"
    );
    // Both answers come: what was granted to it once, said twice.
    for _ in 0..2 {
        bench.grant(offer, vec![plain(1, 1)], Span::ZERO);
    }
    assert_eq!(bench.starts().len(), 1);
    assert!(bench.hand_backs().is_empty(), "what runs is not handed back");
}

/// Each shard is asked, and none can be reached yet: the slots come back and go to the next one. With fewer slots than
/// shards most offers then had no room left; nobody asked after them, and until they were given up, after eight
/// seconds, a hint of their shard changed nothing.
#[test]
fn f14_offers_that_never_left_keep_no_shard_from_being_heard_once_its_owner_is_reached() {
    let mut bench = Bench::new(2, 16);
    bench.put(WorkerInput::Tick);
    let mut unsent = bench.offers();
    while let Some((shard, ..)) = unsent.pop() {
        bench.put(WorkerInput::ShardAway(shard));
        unsent.extend(bench.offers());
    }
    for shard in 0..16 {
        bench.put(WorkerInput::ShardHere(ShardId(shard)));
    }
    let asked = bench.offers();
    assert_eq!(asked.len(), 16, "{asked:?}");
    for (shard, offer, _) in asked {
        bench.put(WorkerInput::Granted {
            from: ShardOwner { shard, ..owner(1) },
            offer,
            grants: Vec::new(),
            waited: Span::ZERO,
            more: false,
            apart: None,
        });
    }
    bench.effects.clear();
    bench.put(WorkerInput::ReadyHint(ShardId(9)));
    assert_eq!(
        bench.offers().first().map(|(shard, _, slots)| (*shard, *slots)),
        Some((ShardId(9), 2))
    );
}

#[test]
fn f14_an_offer_that_waits_is_asked_after_for_its_owner_may_be_another() {
    let (mut bench, offer) = Bench::asked(64);
    bench.grant(offer, Vec::new(), Span::ZERO);
    let waiting = bench.offers();
    assert_eq!(waiting.len(), 1, "it waits there");
    bench.put(WorkerInput::ShardHere(SHARD));
    assert_eq!(bench.offers(), [(SHARD, waiting[0].1, 0)]);
}

#[test]
fn f15_a_begin_is_said_again_and_starts_its_run_once() {
    let mut bench = with_run(vec![once(1, 1)]);
    let (id, token) = key(&once(1, 1));
    bench.put(WorkerInput::ShardHere(SHARD));
    assert_eq!(bench.begins(), [(id, token)]);
    for _ in 0..2 {
        bench.put(WorkerInput::Begun { id, token });
    }
    assert_eq!(bench.starts().len(), 1);
    bench.put(WorkerInput::ShardHere(SHARD));
    assert!(bench.begins().is_empty());
}

#[test]
fn an_owner_that_is_there_again_and_again_costs_only_what_is_open() {
    let mut bench = with_run(vec![plain(1, 1)]);
    for _ in 0..100 {
        bench.put(WorkerInput::ShardHere(SHARD));
        bench.put(WorkerInput::ShardHere(ShardId(7)));
    }
    assert!(bench.effects.len() <= 200, "a heartbeat and an offer each time");
    assert_eq!(bench.worker.used(), 1);
}

#[test]
fn what_a_worker_keeps_from_an_owner_that_is_reached_again_is_caught() {
    for (unsaid, test) in [
        (
            Bug::OutcomesUnsaid,
            f18_an_outcome_goes_to_the_new_owner_at_once_however_long_the_old_one_was_away as fn(),
        ),
        (
            Bug::HeartbeatUnsaid,
            f18_an_outcome_goes_to_the_new_owner_at_once_however_long_the_old_one_was_away,
        ),
        (
            Bug::HandBacksUnsaid,
            f14_a_hand_back_goes_to_the_new_owner_at_once_until_it_answers,
        ),
        (
            Bug::OfferUnsaid,
            f14_an_offer_that_was_cut_off_is_repeated_under_its_number_and_its_grants_run_once,
        ),
        (Bug::BeginsUnsaid, f15_a_begin_is_said_again_and_starts_its_run_once),
    ] {
        assert!(unsaid.noticed_by(test).is_some(), "{unsaid:?}: nothing noticed");
    }
}
