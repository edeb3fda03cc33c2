//! Asking for work and taking grants.
//!
//! Owns: F8, F13, F14, F15 as a worker sees them. Next: `keeping.rs`.

use super::*;

#[test]
fn room_is_never_promised_twice() {
    let mut bench = Bench::new(5, 4);
    (0..4).for_each(|shard| bench.put(WorkerInput::ReadyHint(ShardId(shard))));
    let asked: u32 = bench.offers().iter().map(|(_, _, slots)| slots).sum();
    assert_eq!(asked, 5, "all room is offered, no more");
}

#[test]
fn hinted_shards_are_asked_in_turn() {
    let mut bench = Bench::new(1, 3);
    let mut order = Vec::new();
    for _ in 0..6 {
        (0..3).for_each(|shard| bench.put(WorkerInput::ReadyHint(ShardId(shard))));
        let (shard, offer, _) = bench.offers()[0];
        order.push(shard.0);
        let from = ShardOwner { shard, ..owner(1) };
        bench.put(WorkerInput::Granted {
            from,
            offer,
            grants: vec![],
            waited: Span::ZERO,
            more: true,
            apart: None,
        });
    }
    let (first, later) = order.split_at(3);
    assert_eq!(first, later);
    assert_eq!(first.iter().collect::<std::collections::BTreeSet<_>>().len(), 3);
}

#[test]
fn f8_a_lost_hint_is_made_good_by_the_sweep() {
    let mut bench = Bench::new(16, 4);
    bench.pass(Span::ZERO);
    for (shard, offer, _) in bench.offers() {
        let from = ShardOwner { shard, ..owner(1) };
        bench.put(WorkerInput::Granted {
            from,
            offer,
            grants: vec![],
            waited: Span::ZERO,
            more: false,
            apart: None,
        });
    }
    assert!(bench.offers().is_empty(), "an idle worker is quiet");
    bench.pass(Span::from_millis(1_100));
    assert_eq!(bench.offers().len(), 4, "every shard is asked, hint or not");
}

#[test]
fn f13_waiting_for_work_does_not_eat_the_lease() {
    let (mut bench, offer) = Bench::asked(1);
    bench.pass(Span::from_millis(1_900));
    bench.grant(offer, vec![plain(1, 1)], Span::from_millis(1_800));
    // 100 ms on the way, all counted against us, and the margin.
    assert_eq!(
        bench.starts(),
        vec![(key(&plain(1, 1)), LENGTH - Span::from_millis(1_100))]
    );
}

#[test]
fn f13_a_wait_beyond_belief_gives_no_longer_lease() {
    let (mut bench, offer) = Bench::asked(1);
    bench.grant(offer, vec![plain(1, 1)], Span::from_secs(1_000_000));
    assert_eq!(bench.starts()[0].1, LENGTH - Span::from_secs(1));
}

#[test]
fn f13_a_renewal_counts_from_the_heartbeat_it_answers() {
    let (mut bench, offer) = Bench::asked(1);
    bench.grant(offer, vec![plain(1, 1)], Span::ZERO);
    bench.pass(Span::from_secs(16));
    let beats = bench.beats();
    assert_eq!(beats.len(), 2);
    bench.renew(1, beats[0].0, key(&plain(1, 1)));
    bench.pass(Span::from_secs(8 + 30 - 1 - 16 - 1));
    assert!(bench.stops().is_empty());
    bench.pass(Span::from_secs(1));
    assert_eq!(bench.stops(), vec![(key(&plain(1, 1)), StopReason::LeaseLost)]);
}

#[test]
fn f14_a_late_grant_is_handed_back() {
    let (mut bench, offer) = Bench::asked(1);
    bench.freeze(Span::from_secs(40));
    // The offer is still open when the grant is read, for nobody looked in between.
    bench.grant(offer, vec![plain(1, 1)], Span::ZERO);
    assert!(bench.starts().is_empty());
    assert_eq!(bench.hand_backs(), vec![vec![key(&plain(1, 1))]]);
    bench.grant(offer, vec![plain(1, 1)], Span::from_secs(40));
    assert!(bench.starts().is_empty(), "forsworn for ever");
}

#[test]
fn f14_a_grant_for_an_offer_given_up_is_handed_back_once() {
    let (mut bench, offer) = Bench::asked(1);
    bench.pass(Span::from_secs(10));
    assert!(
        bench.offers().iter().any(|(_, id, _)| *id != offer),
        "a new number at last"
    );
    bench.grant(offer, vec![plain(1, 1)], Span::from_secs(9));
    assert_eq!(bench.hand_backs().len(), 1);
    bench.grant(offer, vec![plain(1, 1)], Span::from_secs(9));
    assert!(bench.hand_backs().is_empty() && bench.starts().is_empty());
}

#[test]
fn f14_an_unanswered_offer_is_repeated_under_its_number() {
    let (mut bench, offer) = Bench::asked(1);
    bench.pass(Span::from_millis(2_000));
    assert_eq!(bench.offers(), vec![(ShardId(0), offer, 1)]);
}

#[test]
fn f14_repeated_grants_start_once_and_are_never_handed_back() {
    let (mut bench, offer) = Bench::asked(2);
    bench.grant(offer, vec![plain(1, 1)], Span::ZERO);
    bench.grant(offer, vec![plain(1, 1)], Span::ZERO);
    bench.finish(key(&plain(1, 1)));
    bench.grant(offer, vec![plain(1, 1)], Span::ZERO);
    bench.record(1, key(&plain(1, 1)), Recorded::Recorded);
    bench.grant(offer, vec![plain(1, 1)], Span::ZERO);
    assert_eq!(bench.starts().len(), 1);
    assert!(bench.hand_backs().is_empty(), "handing back what ran would be a lie");
}

#[test]
fn f14_grants_beyond_the_room_are_handed_back() {
    let (mut bench, offer) = Bench::asked(1);
    bench.grant(offer, vec![plain(1, 1), plain(2, 2)], Span::ZERO);
    assert_eq!(bench.starts().len(), 1);
    assert_eq!(bench.hand_backs(), vec![vec![key(&plain(2, 2))]]);
}

#[test]
fn f14_an_unacknowledged_hand_back_is_sent_again() {
    let (mut bench, offer) = Bench::asked(1);
    bench.grant(offer, vec![plain(1, 1), plain(2, 2)], Span::ZERO);
    bench.pass(Span::from_secs(1));
    assert_eq!(bench.hand_backs().len(), 2);
    bench.record(1, key(&plain(2, 2)), Recorded::Recorded);
    bench.pass(Span::from_secs(60));
    assert!(bench.hand_backs().is_empty());
}

#[test]
fn f14_a_hand_back_is_sent_until_the_newest_owner_answers_it() {
    let (mut bench, offer) = Bench::asked(1);
    bench.grant(offer, vec![plain(1, 1), plain(2, 2)], Span::ZERO);
    let mut longest = Span::ZERO;
    for _ in 0..200 {
        bench.hand_backs();
        let before = bench.now;
        while bench.hand_backs().is_empty() {
            bench.pass(Span::from_millis(250));
            assert!(bench.now.since(before) < Span::from_secs(60), "it is still being sent");
        }
        longest = longest.max(bench.now.since(before));
    }
    let heartbeat = Span::from_millis(limits::HEARTBEAT_MS);
    assert!(
        longest < heartbeat,
        "an owner that hears again waits for one heartbeat: {longest:?}"
    );
    bench.lose(3, key(&plain(9, 9)));
    bench.record(2, key(&plain(2, 2)), Recorded::Stale);
    bench.pass(Span::from_secs(10));
    assert!(!bench.hand_backs().is_empty(), "an older owner may only not know it");
    bench.record(3, key(&plain(2, 2)), Recorded::Stale);
    bench.pass(Span::from_secs(60));
    assert!(
        bench.hand_backs().is_empty(),
        "its lease is over: nothing is left to tell"
    );
}

#[test]
fn f14_a_shard_that_answers_no_hand_back_is_asked_for_no_more_than_is_remembered() {
    let (mut bench, offer) = Bench::asked(1);
    let late: Vec<Grant> = (1..=limits::HAND_BACKS_OPEN_MAX as u64).map(|n| plain(n, n)).collect();
    bench.freeze(Span::from_secs(40));
    bench.grant(offer, late, Span::ZERO);
    bench.offers();
    bench.pass(Span::from_secs(5));
    bench.put(WorkerInput::ReadyHint(ShardId(0)));
    assert!(
        bench.offers().is_empty(),
        "what came of it could not be handed back for sure"
    );
    bench.record(1, key(&plain(1, 1)), Recorded::Recorded);
    for n in 2..=limits::OFFER_SLOTS_MAX as u64 {
        bench.record(1, key(&plain(n, n)), Recorded::Recorded);
    }
    bench.pass(Span::from_secs(5));
    assert!(!bench.offers().is_empty());
}

#[test]
fn f14_the_grants_of_a_second_owner_for_one_offer_go_back() {
    let (mut bench, offer) = Bench::asked(2);
    bench.grant(offer, vec![plain(1, 7)], Span::ZERO);
    let twin = Grant {
        token: token(2, 1),
        ..plain(2, 1)
    };
    let from = owner(2);
    bench.put(WorkerInput::Granted {
        from,
        offer,
        grants: vec![twin.clone()],
        waited: Span::ZERO,
        more: false,
        apart: None,
    });
    assert_eq!(bench.starts().len(), 1);
    assert_eq!(bench.hand_backs(), vec![vec![key(&twin)]]);
}

#[test]
fn f15_at_most_once_starts_only_after_its_durable_begin() {
    let (mut bench, offer) = Bench::asked(1);
    bench.grant(offer, vec![once(1, 1)], Span::ZERO);
    let (id, token) = key(&once(1, 1));
    assert_eq!(bench.begins(), vec![(id, token)]);
    bench.pass(Span::from_secs(2));
    assert_eq!(bench.begins(), vec![(id, token)], "repeated until answered");
    assert!(bench.starts().is_empty());
    bench.put(WorkerInput::Begun { id, token });
    bench.put(WorkerInput::Begun { id, token });
    assert_eq!(bench.starts().len(), 1);
    bench.pass(Span::from_secs(5));
    assert!(bench.begins().is_empty());
}

#[test]
fn f15_a_begin_answered_too_late_starts_nothing() {
    let (mut bench, offer) = Bench::asked(1);
    bench.grant(offer, vec![once(1, 1)], Span::ZERO);
    let (id, token) = key(&once(1, 1));
    bench.freeze(Span::from_secs(29));
    bench.put(WorkerInput::Begun { id, token });
    assert!(bench.starts().is_empty());
    assert_eq!(bench.hand_backs(), vec![vec![(id, token)]]);
    assert_eq!(bench.worker.used(), 0);
}

#[test]
fn a_shard_out_of_reach_holds_no_slots() {
    let mut bench = Bench::new(1, 2);
    bench.put(WorkerInput::ReadyHint(ShardId(0)));
    assert_eq!(bench.offers().len(), 1);
    bench.put(WorkerInput::ReadyHint(ShardId(1)));
    assert!(bench.offers().is_empty());
    bench.put(WorkerInput::ShardAway(ShardId(0)));
    assert_eq!(bench.offers()[0].0, ShardId(1));
}

#[test]
fn a_grant_from_the_wrong_shard_goes_back() {
    let mut bench = Bench::new(2, 2);
    bench.put(WorkerInput::ReadyHint(ShardId(0)));
    let offer = bench.offers()[0].1;
    let stray = plain(16_000, 1);
    bench.grant(offer, vec![stray.clone()], Span::ZERO);
    assert!(bench.starts().is_empty());
    assert_eq!(bench.hand_backs(), vec![vec![key(&stray)]]);
}

#[test]
fn f14_a_grant_that_never_came_is_forsworn_when_asked_for() {
    let (mut bench, offer) = Bench::asked(2);
    bench.grant(offer, vec![plain(1, 1)], Span::ZERO);
    bench.put(WorkerInput::ReadyHint(ShardId(0)));
    let open = bench.offers()[0].1;
    let lost = plain(2, 2);
    bench.put(WorkerInput::Reconcile {
        from: owner(2),
        items: vec![key(&plain(1, 1)), key(&lost)],
    });
    assert_eq!(bench.hand_backs(), vec![vec![key(&lost)]], "what runs is not forsworn");
    bench.grant(open, vec![lost], Span::ZERO);
    assert_eq!(bench.starts().len(), 1, "forsworn for ever");
}

#[test]
fn a_worker_that_holds_back_offers_no_room_and_asks_by_itself_afterwards() {
    let mut bench = Bench::new(8, 2);
    bench.pass(Span::from_secs(1));
    assert!(bench.offers().iter().any(|(_, _, slots)| *slots > 0));
    bench.put(WorkerInput::HoldBack(true));
    bench.pass(Span::from_secs(30));
    bench.put(WorkerInput::ReadyHint(ShardId(1)));
    assert!(
        bench.offers().iter().all(|(_, _, slots)| *slots == 0),
        "only to learn what was granted"
    );
    bench.put(WorkerInput::HoldBack(false));
    bench.pass(Span::from_secs(2));
    assert!(
        bench.offers().iter().any(|(_, _, slots)| *slots > 0),
        "with no message at all"
    );
}
