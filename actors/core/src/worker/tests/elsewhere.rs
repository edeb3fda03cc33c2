//! A worker that takes no work and says what others did or never began.
//!
//! Owns: F14 and F18 for words that nobody else is left to say. Next: `reporting.rs`, `keeping.rs`.

use super::*;

fn clerk() -> Bench {
    let shards = ShardMap::new(1).unwrap();
    let mut config = WorkerConfig::new(1, shards);
    config.takes_work = false;
    let mut bench = Bench::new(1, 1);
    bench.worker = WorkerMachine::new(config);
    bench
}

fn late(bench: &mut Bench, (id, token): (JobId, Token)) {
    let items = vec![(id, token, success())];
    bench.put(WorkerInput::CameLate { items });
}

#[test]
fn f14_who_takes_no_work_asks_nobody() {
    let mut bench = clerk();
    bench.put(WorkerInput::ReadyHint(ShardId(0)));
    bench.put(WorkerInput::HoldBack(true));
    bench.put(WorkerInput::HoldBack(false));
    bench.put(WorkerInput::ShardHere(ShardId(0)));
    bench.pass(Span::from_secs(100));
    assert!(bench.offers().is_empty());
    assert!(bench.drained(), "it has nothing");
}

#[test]
fn f18_a_late_report_is_sent_until_it_is_answered_and_holds_no_lease() {
    let mut bench = clerk();
    let first = key(&plain(1, 1));
    late(&mut bench, first);
    assert_eq!(bench.outcomes(), [[first]]);
    bench.pass(Span::from_secs(60));
    assert!(bench.outcomes().len() >= 5);
    bench.put(WorkerInput::ShardHere(ShardId(0)));
    assert_eq!(bench.outcomes(), [[first]], "at once when the owner is there");
    assert!(bench.beats().is_empty());
    bench.record(1, first, Recorded::Stale);
    bench.pass(Span::from_secs(60));
    assert!(bench.outcomes().is_empty() && bench.worker.unrecorded() == 0);
    // Answered or not, each report is one.
    for _ in 0..2 {
        late(&mut bench, first);
    }
    assert_eq!((bench.outcomes(), bench.worker.unrecorded()), (vec![vec![first]], 1));
}

#[test]
fn f14_what_nobody_began_goes_back_until_that_is_answered() {
    let mut bench = clerk();
    let first = key(&plain(1, 1));
    for _ in 0..2 {
        bench.put(WorkerInput::NeverBegun { items: vec![first] });
    }
    assert_eq!(bench.hand_backs(), [[first]], "said once for both");
    bench.pass(Span::from_secs(60));
    let again = bench.hand_backs();
    assert!(again.len() >= 10, "never silent for half a heartbeat: {}", again.len());
    bench.record(1, first, Recorded::Recorded);
    bench.pass(Span::from_secs(60));
    assert!(bench.hand_backs().is_empty());
}

#[test]
fn who_has_something_left_again_is_drained_again() {
    let mut bench = clerk();
    bench.pass(Span::from_secs(1));
    assert!(bench.drained());
    let first = key(&plain(1, 1));
    bench.put(WorkerInput::NeverBegun { items: vec![first] });
    bench.put(WorkerInput::Drain);
    assert!(!bench.drained(), "it is not answered");
    bench.record(1, first, Recorded::Recorded);
    assert!(bench.drained());
    bench.put(WorkerInput::Drain);
    assert!(bench.drained(), "who asks again is told again");
}
