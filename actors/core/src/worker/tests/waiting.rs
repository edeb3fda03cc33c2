//! Offers that wait at shards: how many, and how they come back.
//!
//! Owns: what an idle worker leaves with the shards. Next: `asking.rs`.

use super::*;

const NOTHING: Vec<Grant> = Vec::new();

fn answer(bench: &mut Bench, (shard, offer): (ShardId, OfferId), grants: Vec<Grant>) {
    let from = ShardOwner { shard, ..owner(1) };
    bench.put(WorkerInput::Granted {
        from,
        offer,
        grants,
        waited: Span::ZERO,
        more: false,
        apart: None,
    });
}

fn waiting(bench: &mut Bench) -> Vec<(ShardId, OfferId, u32)> {
    bench.pick(|effect| match effect {
        WorkerEffect::SendOffer {
            shard,
            offer,
            slots,
            waits: true,
            apart: 0,
            ..
        } => Some((*shard, *offer, *slots)),
        _ => None,
    })
}

#[test]
fn an_idle_worker_lets_an_offer_wait_at_every_shard_for_half_its_slots() {
    let mut bench = Bench::new(64, 4);
    bench.pass(Span::ZERO);
    let offers = waiting(&mut bench);
    assert_eq!(offers.len(), 4);
    assert_eq!(offers.iter().map(|(_, _, slots)| slots).sum::<u32>(), 32);
    bench.put(WorkerInput::ReadyHint(ShardId(2)));
    let called = bench.offers();
    assert_eq!(called, [(offers[2].0, offers[2].1, 0)], "a hint calls the offer back");
    answer(&mut bench, (offers[2].0, offers[2].1), NOTHING);
    let (shard, _, slots) = bench.offers()[0];
    assert_eq!(
        (shard, slots),
        (ShardId(2), 40),
        "and all that is free goes to whom has work"
    );
}

#[test]
fn a_worker_with_too_few_slots_for_its_shards_lets_nothing_wait() {
    let mut bench = Bench::new(7, 4);
    bench.pass(Span::ZERO);
    assert!(waiting(&mut bench).is_empty());
    assert_eq!(bench.offers().len(), 4);
}

#[test]
fn f13_a_grant_for_an_offer_that_waited_runs_its_full_length() {
    let mut bench = Bench::new(8, 1);
    bench.pass(Span::ZERO);
    let (_, offer, _) = waiting(&mut bench)[0];
    bench.pass(Span::from_secs(4));
    bench.grant(offer, vec![plain(1, 1)], Span::from_secs(4));
    let (_, left) = bench.starts()[0];
    let margin = Span::from_millis(crate::limits::LEASE_MARGIN_MS);
    assert_eq!(left, LENGTH - margin, "the wait is the owner's, not the lease's");
    assert_eq!(waiting(&mut bench).len(), 1, "the next offer waits at once");
}

#[test]
fn f14_an_offer_is_asked_after_when_it_has_waited_for_long() {
    let mut bench = Bench::new(8, 1);
    bench.pass(Span::ZERO);
    let (shard, offer, _) = waiting(&mut bench)[0];
    bench.pass(Span::from_millis(crate::limits::OFFER_WAIT_MS));
    assert_eq!(bench.offers(), [(shard, offer, 0)], "the same number, no room");
    answer(&mut bench, (shard, offer), NOTHING);
    let again = waiting(&mut bench);
    assert_eq!(again.len(), 1);
    assert!(again[0].1 > offer, "then a new one waits");
}

#[test]
fn what_waits_comes_back_when_another_shard_starves() {
    let mut bench = Bench::new(4, 2);
    bench.pass(Span::ZERO);
    let offers = waiting(&mut bench);
    assert_eq!(offers.len(), 2);
    let grants = vec![plain(1, 1)];
    bench.put(WorkerInput::Granted {
        from: owner(1),
        offer: offers[0].1,
        grants,
        waited: Span::ZERO,
        more: true,
        apart: None,
    });
    let (shard, offer, slots) = bench.offers()[0];
    assert_eq!((shard, slots), (ShardId(0), 2), "all that is free");
    bench.put(WorkerInput::Granted {
        from: owner(1),
        offer,
        grants: vec![plain(2, 2), plain(3, 3)],
        waited: Span::ZERO,
        more: true,
        apart: None,
    });
    assert_eq!(bench.offers(), [(ShardId(1), offers[1].1, 0)], "no slot waits in vain");
    answer(&mut bench, (ShardId(1), offers[1].1), NOTHING);
    assert_eq!(bench.offers()[0].2, 1);
}

#[test]
fn a_drain_calls_every_offer_back_at_once() {
    let mut bench = Bench::new(64, 4);
    bench.pass(Span::ZERO);
    let offers = waiting(&mut bench);
    bench.put(WorkerInput::Drain);
    assert_eq!(bench.offers().len(), 4);
    assert!(!bench.drained());
    for (shard, offer, _) in offers {
        answer(&mut bench, (shard, offer), NOTHING);
    }
    assert!(bench.drained());
}

#[test]
fn a_shard_that_does_not_keep_offers_is_not_asked_again_at_once() {
    let mut bench = Bench::new(8, 1);
    bench.pass(Span::ZERO);
    let (shard, offer, _) = waiting(&mut bench)[0];
    answer(&mut bench, (shard, offer), NOTHING);
    assert!(bench.offers().is_empty());
    bench.pass(Span::from_millis(1_100));
    assert_eq!(waiting(&mut bench).len(), 1, "the sweep tries again");
}
