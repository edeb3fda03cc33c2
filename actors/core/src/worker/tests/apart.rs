//! Jobs whose worker was lost before run one at a time at first, over all shards (BEH-R02).

use super::*;
use crate::ids::WorkerId;
use crate::job::{AttemptRecord, AttemptResult};
use crate::lease_manager::io::Suspect;
use crate::limits::{APART_ALONE_MS, APART_MS, APART_SETTLE_MS};
use std::cmp::Reverse;

/// Offers since last looked at: shard, number, whether it waits, whether it has the place for such a job.
fn offered(bench: &mut Bench) -> Vec<(ShardId, OfferId, bool, bool)> {
    let offers = bench.pick(|effect| match effect {
        WorkerEffect::SendOffer {
            shard,
            offer,
            waits,
            apart,
            ..
        } => Some((*shard, *offer, *waits, *apart > 0)),
        _ => None,
    });
    let with = offers.iter().filter(|(.., apart)| *apart);
    assert!(with.count() <= 1, "one open offer has the place: {offers:?}");
    offers
}

fn first(lost: u32) -> Option<Suspect> {
    (lost > 0).then_some(Suspect {
        lost,
        unevenness: Reverse(Span::ZERO),
        granted_at: StoreTime(0),
    })
}

/// So that every shard could say whom it has.
fn settle(bench: &mut Bench) {
    bench.pass(Span::from_millis(APART_SETTLE_MS));
}

/// Nothing is granted; `waiting` says whether such jobs wait there.
fn answer(bench: &mut Bench, shard: ShardId, offer: OfferId, waiting: bool) {
    answer_with(bench, shard, offer, u32::from(waiting));
}

/// The first that waits there lost so many workers.
fn answer_with(bench: &mut Bench, shard: ShardId, offer: OfferId, lost: u32) {
    let from = ShardOwner { shard, ..owner(1) };
    bench.put(WorkerInput::Granted {
        from,
        offer,
        grants: vec![],
        waited: Span::ZERO,
        more: false,
        apart: first(lost),
    });
}

/// Answers all offers but those that wait; tells which shards were offered the place.
fn answered(bench: &mut Bench, waiting: bool) -> Vec<u16> {
    let mut places = Vec::new();
    loop {
        let mut offers = offered(bench);
        offers.retain(|(_, _, waits, _)| !waits);
        if offers.is_empty() {
            return places;
        }
        for (shard, offer, _, apart) in offers {
            places.extend(apart.then_some(shard.0));
            answer(bench, shard, offer, waiting);
        }
    }
}

/// A grant of a job that lost its worker before.
fn suspect(number: u64, sequence: u64) -> Grant {
    let mut grant = plain(number, sequence);
    let job = Arc::make_mut(&mut grant.job);
    job.attempts.push(AttemptRecord {
        no: 1,
        token: token(0, 1),
        worker: WorkerId {
            node: Name::new("a").unwrap(),
            boot: 0,
        },
        granted_at: StoreTime(0),
        ended_at: StoreTime(0),
        result: AttemptResult::WorkerLost,
        error: None,
        output: Arc::from([]),
    });
    grant
}

#[test]
fn beh_r02_one_shard_at_a_time_is_offered_the_place_and_each_gets_its_turn() {
    let mut bench = Bench::new(8, 3);
    (0..3).for_each(|shard| bench.put(WorkerInput::ReadyHint(ShardId(shard))));
    assert!(answered(&mut bench, true).is_empty(), "not before all could say");
    settle(&mut bench);
    let mut places = answered(&mut bench, true);
    places.sort_unstable();
    assert_eq!(places, [0, 1, 2], "each once, and no spin where nothing came of it");
}

#[test]
fn beh_r02_while_one_runs_no_offer_brings_another_until_it_ends() {
    let (mut bench, offer) = Bench::asked(4);
    let grant = suspect(1, 1);
    bench.grant(offer, vec![grant.clone()], Span::ZERO);
    bench.put(WorkerInput::ReadyHint(ShardId(0)));
    assert_eq!(answered(&mut bench, true), [] as [u16; 0]);
    bench.finish(key(&grant));
    assert_eq!(
        answered(&mut bench, true),
        [0],
        "the shard where others wait is asked at once"
    );
}

#[test]
fn beh_r02_what_has_run_for_a_while_is_taken_for_harmless() {
    let (mut bench, offer) = Bench::asked(4);
    bench.grant(offer, vec![suspect(1, 1)], Span::ZERO);
    bench.put(WorkerInput::ReadyHint(ShardId(0)));
    assert!(answered(&mut bench, true).is_empty());
    for _ in 1..APART_MS / 100 {
        bench.pass(Span::from_millis(100));
        assert!(answered(&mut bench, true).is_empty(), "too early");
    }
    bench.pass(Span::from_millis(100));
    assert_eq!(answered(&mut bench, true), [0]);
}

/// When so many suspects of one shard, all of them long, were started.
fn starts_of(count: u64) -> Vec<Monotonic> {
    let mut bench = Bench::new(64, 1);
    bench.put(WorkerInput::ReadyHint(ShardId(0)));
    let mut starts = Vec::new();
    while (starts.len() as u64) < count {
        for (_, offer, waits, apart) in offered(&mut bench) {
            let number = starts.len() as u64 + 1;
            let mut grant = suspect(number, number);
            grant.length = Span::from_secs(3_600);
            let is_granted = apart && number <= count && !waits;
            bench.put(WorkerInput::Granted {
                from: owner(1),
                offer,
                grants: if is_granted { vec![grant] } else { Vec::new() },
                waited: Span::ZERO,
                more: false,
                apart: first(1),
            });
            if is_granted {
                starts.push(bench.now);
            }
        }
        bench.pass(Span::from_millis(100));
    }
    starts
}

#[test]
fn beh_r02_long_jobs_come_back_ever_faster_once_some_have_proven_harmless() {
    let starts = starts_of(60);
    let alone = Span::from_millis(APART_MS);
    for pair in starts[..4].windows(2) {
        assert!(pair[1].since(pair[0]) >= alone, "the first run alone: {starts:?}");
    }
    let waited = starts[59].since(starts[0]);
    assert!(waited <= Span(alone.0 * 12), "not one by one: {waited:?}");
}

/// Answers offers until one has the place.
fn next_place(bench: &mut Bench) -> OfferId {
    loop {
        let mut offers = offered(bench);
        offers.retain(|(_, _, waits, _)| !waits);
        if offers.is_empty() {
            settle(bench);
            continue;
        }
        if let Some((_, offer, ..)) = offers.iter().find(|(.., apart)| *apart) {
            return *offer;
        }
        for (shard, offer, ..) in offers {
            answer(bench, shard, offer, true);
        }
    }
}

#[test]
fn beh_r02_those_that_end_at_once_let_no_two_run_together() {
    let mut bench = Bench::new(64, 1);
    bench.put(WorkerInput::ReadyHint(ShardId(0)));
    for number in 1..=30 {
        let offer = next_place(&mut bench);
        let grant = suspect(number, number);
        bench.put(WorkerInput::Granted {
            from: owner(1),
            offer,
            grants: vec![grant.clone()],
            waited: Span::ZERO,
            more: false,
            apart: first(1),
        });
        assert!(answered(&mut bench, true).is_empty(), "one at a time");
        bench.finish(key(&grant));
    }
}

#[test]
fn beh_r02_a_silent_shard_keeps_the_place_from_nobody() {
    let mut bench = Bench::new(8, 2);
    (0..2).for_each(|shard| bench.put(WorkerInput::ReadyHint(ShardId(shard))));
    assert!(answered(&mut bench, true).is_empty());
    let silent = ShardId(0);
    bench.put(WorkerInput::ShardAway(silent));
    settle(&mut bench);
    let mut places = Vec::new();
    for _ in 0..9 {
        let mut offers = offered(&mut bench);
        offers.retain(|(shard, _, waits, _)| *shard != silent && !waits);
        for (shard, offer, _, apart) in offers {
            places.extend(apart.then_some(shard.0));
            answer(&mut bench, shard, offer, true);
        }
    }
    assert_eq!(places, [1]);
}

#[test]
fn beh_r02_what_is_called_back_for_such_a_job_does_not_wait_again() {
    // All room lies at shards: one of their offers must come back before the place can be used.
    let mut bench = Bench::new(6, 3);
    bench.pass(Span::ZERO);
    let offers = offered(&mut bench);
    let grants = |shard: u16| {
        let first = u64::from(ShardMap::new(3).unwrap().slots_of(ShardId(shard)).0);
        (1..=1).map(|n| plain(first + 16_384 * n, n)).collect::<Vec<_>>()
    };
    for (shard, offer, ..) in &offers {
        bench.put(WorkerInput::Granted {
            from: ShardOwner {
                shard: *shard,
                ..owner(1)
            },
            offer: *offer,
            grants: grants(shard.0),
            waited: Span::ZERO,
            more: false,
            apart: first(u32::from(*shard == ShardId(1))),
        });
    }
    settle(&mut bench);
    let mut places = Vec::new();
    for _ in 0..20 {
        let mut sent = offered(&mut bench);
        sent.retain(|(_, _, waits, _)| !waits);
        places.extend(sent.iter().filter(|(.., apart)| *apart).map(|(shard, ..)| shard.0));
        for (shard, offer, ..) in sent {
            answer(&mut bench, shard, offer, shard == ShardId(1));
        }
    }
    assert_eq!(places.first(), Some(&1));
    assert!(offered(&mut bench).is_empty(), "it comes to rest");
}

/// Answers all offers but those that wait, each shard with the workers that its first one lost.
fn told(bench: &mut Bench, lost: [u32; 2]) -> Vec<(ShardId, OfferId)> {
    let mut places = Vec::new();
    loop {
        let mut offers = offered(bench);
        offers.retain(|(_, _, waits, _)| !waits);
        if offers.is_empty() {
            return places;
        }
        for (shard, offer, _, apart) in offers {
            match apart {
                true => places.push((shard, offer)),
                false => answer_with(bench, shard, offer, lost[usize::from(shard.0)]),
            }
        }
    }
}

#[test]
fn beh_r02_the_shard_with_the_worst_suspect_is_asked_first() {
    let mut bench = Bench::new(8, 2);
    (0..2).for_each(|shard| bench.put(WorkerInput::ReadyHint(ShardId(shard))));
    assert!(told(&mut bench, [1, 2]).is_empty());
    settle(&mut bench);
    let places = told(&mut bench, [1, 2]);
    assert_eq!(places.iter().map(|(shard, _)| shard.0).collect::<Vec<_>>(), [1]);
}

#[test]
fn beh_r02_what_lost_two_workers_waits_for_other_suspects_but_not_for_ever() {
    let (mut bench, offer) = Bench::asked(4);
    let mut long = suspect(1, 1);
    long.length = Span::from_secs(3_600);
    bench.grant(offer, vec![long], Span::ZERO);
    bench.put(WorkerInput::ReadyHint(ShardId(0)));
    assert!(told(&mut bench, [2, 0]).is_empty());
    for _ in 1..APART_ALONE_MS / 1_000 {
        bench.pass(Span::from_secs(1));
        assert!(told(&mut bench, [2, 0]).is_empty(), "the other still runs");
    }
    bench.pass(Span::from_secs(1));
    assert_eq!(told(&mut bench, [2, 0]).len(), 1);
}

#[test]
fn beh_r02_suspects_that_moved_to_another_node_leave_the_choice_to_those_that_are_here() {
    let mut bench = Bench::new(8, 2);
    (0..2).for_each(|shard| bench.put(WorkerInput::ReadyHint(ShardId(shard))));
    assert!(told(&mut bench, [1, 0]).is_empty(), "not before all could say");
    bench.put(WorkerInput::ShardAway(ShardId(0)));
    settle(&mut bench);
    let here = |bench: &mut Bench| -> Vec<(OfferId, bool)> {
        let mut offers = offered(bench);
        offers.retain(|(shard, _, waits, _)| *shard == ShardId(1) && !waits);
        offers.into_iter().map(|(_, offer, _, apart)| (offer, apart)).collect()
    };
    here(&mut bench);
    bench.put(WorkerInput::ReadyHint(ShardId(1)));
    let mut seen = 0;
    loop {
        let offers = here(&mut bench);
        if offers.is_empty() {
            break;
        }
        for (offer, apart) in offers {
            assert!(!apart, "the next crash lets every shard say whom it has, too");
            seen += 1;
            answer(&mut bench, ShardId(1), offer, true);
        }
    }
    assert!(seen > 0, "it was asked");
    settle(&mut bench);
    let mut places = 0;
    for _ in 0..9 {
        for (offer, apart) in here(&mut bench) {
            places += usize::from(apart);
            answer(&mut bench, ShardId(1), offer, true);
        }
    }
    assert!(places > 0, "and then it gets its place");
}
