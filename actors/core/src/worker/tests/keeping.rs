//! Keeping leases, cancelling, draining.
//!
//! Owns: F17 as a worker sees it. Next: `reporting.rs`.

use super::*;

/// A worker with one running attempt.
fn running() -> (Bench, (JobId, Token)) {
    let (mut bench, offer) = Bench::asked(1);
    bench.grant(offer, vec![plain(1, 1)], Span::ZERO);
    assert_eq!(bench.starts().len(), 1);
    (bench, key(&plain(1, 1)))
}

/// Passes time, answering each heartbeat as the owner of `epoch`.
fn pass_renewed(bench: &mut Bench, epoch: u64, seconds: u64) {
    for _ in 0..seconds {
        bench.pass(Span::from_secs(1));
        for (beat, held) in bench.beats() {
            held.into_iter().for_each(|key| bench.renew(epoch, beat, key));
        }
    }
}

#[test]
fn a_renewed_lease_goes_on() {
    let (mut bench, _) = running();
    pass_renewed(&mut bench, 1, 300);
    assert!(bench.stops().is_empty());
    let left = bench.effects.iter().find_map(|effect| match effect {
        WorkerEffect::ExtendAttempt { left, .. } => Some(*left),
        _ => None,
    });
    assert_eq!(left, Some(LENGTH - Span::from_secs(1)));
}

#[test]
fn the_worker_stops_by_itself_when_nobody_renews() {
    let (mut bench, key) = running();
    bench.pass(Span::from_secs(29));
    assert_eq!(bench.stops(), vec![(key, StopReason::LeaseLost)]);
    bench.beats();
    bench.pass(Span::from_secs(60));
    assert!(bench.stops().is_empty(), "told once");
    assert!(bench.beats().is_empty(), "renewed no more");
    assert_eq!(bench.worker.used(), 1, "the slot is free only when the run has ended");
    bench.finish(key);
    assert_eq!(bench.worker.used(), 0);
    assert_eq!(bench.outcomes(), vec![vec![key]], "reported as evidence");
}

#[test]
fn a_pause_of_the_worker_ends_leases_before_anything_else_is_read() {
    let (mut bench, key) = running();
    bench.pass(Span::from_secs(8));
    let (beat, _) = bench.beats().remove(0);
    bench.freeze(Span::from_secs(60));
    bench.renew(1, beat, key);
    assert_eq!(bench.stops(), vec![(key, StopReason::LeaseLost)]);
}

#[test]
fn f17_a_renewal_by_an_older_owner_is_ignored() {
    let (mut bench, key) = running();
    bench.lose(3, (plain(9, 9).job.id, token(1, 9)));
    bench.pass(Span::from_secs(8));
    let (beat, _) = bench.beats().remove(0);
    bench.renew(2, beat, key);
    bench.cancel(2, key);
    assert!(bench.stops().is_empty(), "its word on cancelling is ignored too");
    bench.pass(Span::from_secs(21));
    assert_eq!(bench.stops(), vec![(key, StopReason::LeaseLost)]);
}

#[test]
fn f17_a_newer_owner_renews_the_leases_of_the_older() {
    let (mut bench, _) = running();
    pass_renewed(&mut bench, 2, 120);
    assert!(bench.stops().is_empty());
}

#[test]
fn f17_an_older_owner_cannot_take_a_lease_away() {
    let (mut bench, key) = running();
    pass_renewed(&mut bench, 2, 9);
    bench.lose(1, key);
    assert!(bench.stops().is_empty());
    bench.lose(2, key);
    assert_eq!(bench.stops(), vec![(key, StopReason::LeaseLost)]);
}

#[test]
fn an_answer_to_a_forgotten_heartbeat_extends_nothing() {
    let (mut bench, key) = running();
    bench.renew(1, BeatId(77), key);
    bench.pass(Span::from_secs(29));
    assert_eq!(bench.stops().len(), 1);
}

#[test]
fn a_cancel_stops_the_run_once_and_the_lease_goes_on() {
    let (mut bench, key) = running();
    for _ in 0..4 {
        bench.pass(Span::from_secs(8));
        let beat = bench.beats().last().unwrap().0;
        bench.renew(1, beat, key);
        bench.cancel(1, key);
    }
    assert_eq!(bench.stops(), vec![(key, StopReason::CancelRequested)]);
    bench.pass(Span::from_secs(29));
    assert_eq!(
        bench.stops(),
        vec![(key, StopReason::LeaseLost)],
        "a stubborn run is told more firmly"
    );
}

#[test]
fn a_cancel_need_not_wait_for_a_heartbeat() {
    let (mut bench, offer) = Bench::asked(2);
    bench.grant(offer, vec![plain(1, 1), once(2, 2)], Span::ZERO);
    for grant in [plain(1, 1), plain(1, 1), once(2, 2), plain(9, 9)] {
        let (from, (id, token)) = (owner(2), key(&grant));
        bench.put(WorkerInput::CancelRequested { from, id, token });
    }
    assert_eq!(
        bench.stops(),
        vec![(key(&plain(1, 1)), StopReason::CancelRequested)],
        "told once"
    );
    assert_eq!(
        bench.hand_backs(),
        vec![vec![key(&once(2, 2))]],
        "what has not begun goes back"
    );
    let (from, (id, token)) = (owner(1), key(&plain(1, 1)));
    bench.put(WorkerInput::CancelRequested { from, id, token });
    assert!(bench.stops().is_empty(), "an older owner's word is ignored");
}

#[test]
fn a_cancel_before_the_begin_hands_back() {
    let (mut bench, offer) = Bench::asked(1);
    bench.grant(offer, vec![once(1, 1)], Span::ZERO);
    bench.pass(Span::from_secs(8));
    bench.cancel(1, key(&once(1, 1)));
    assert_eq!(bench.hand_backs(), vec![vec![key(&once(1, 1))]]);
    assert!(bench.stops().is_empty() && bench.worker.used() == 0);
}

#[test]
fn a_drain_takes_nothing_new_and_lets_what_runs_end() {
    let (mut bench, offer) = Bench::asked(3);
    bench.grant(offer, vec![plain(1, 1), once(2, 2)], Span::ZERO);
    bench.put(WorkerInput::ReadyHint(ShardId(0)));
    let open = bench.offers()[0].1;
    bench.put(WorkerInput::Drain);
    assert_eq!(
        bench.hand_backs(),
        vec![vec![key(&once(2, 2))]],
        "not begun, so not started"
    );
    bench.put(WorkerInput::ReadyHint(ShardId(0)));
    bench.grant(open, vec![plain(3, 3)], Span::ZERO);
    assert_eq!(bench.hand_backs(), vec![vec![key(&plain(3, 3))]]);
    assert!(bench.stops().is_empty() && bench.offers().is_empty());
    bench.finish(key(&plain(1, 1)));
    assert!(!bench.drained(), "the outcome is not recorded");
    (1..=3).for_each(|n| bench.record(1, key(&plain(n, n)), Recorded::Recorded));
    assert!(bench.drained());
    bench.pass(Span::from_secs(60));
    assert!(bench.effects.iter().all(|effect| matches!(
        effect,
        WorkerEffect::StartAttempt { .. }
            | WorkerEffect::SendBegin { .. }
            | WorkerEffect::SendOutcomes { .. }
            | WorkerEffect::TellRecorded { .. }
    )));
}

#[test]
fn f14_a_drain_waits_for_grants_on_their_way() {
    let (mut bench, offer) = Bench::asked(3);
    bench.put(WorkerInput::Drain);
    assert!(!bench.drained());
    bench.pass(Span::from_secs(2));
    assert_eq!(
        bench.offers(),
        vec![(ShardId(0), offer, 0)],
        "asks what was granted, wants nothing"
    );
    bench.grant(offer, vec![plain(1, 1)], Span::from_secs(2));
    assert_eq!(bench.hand_backs().len(), 1);
    bench.pass(Span::from_secs(20));
    assert!(!bench.drained(), "nobody has taken it back yet");
    bench.record(1, key(&plain(1, 1)), Recorded::Recorded);
    assert!(bench.drained());
}

#[test]
fn f14_the_drain_limit_ends_the_wait_for_hand_backs() {
    let (mut bench, offer) = Bench::asked(1);
    bench.grant(offer, vec![once(1, 1)], Span::ZERO);
    bench.put(WorkerInput::Drain);
    bench.pass(Span::from_secs(20));
    assert!(!bench.drained());
    bench.put(WorkerInput::DrainExpired);
    assert!(bench.drained());
}

#[test]
fn the_drain_limit_stops_what_runs() {
    let (mut bench, key) = running();
    bench.put(WorkerInput::Drain);
    bench.put(WorkerInput::DrainExpired);
    bench.put(WorkerInput::DrainExpired);
    assert_eq!(bench.stops(), vec![(key, StopReason::Draining)]);
    assert!(!bench.drained());
    bench.put(WorkerInput::AttemptsFinished {
        items: vec![(key.0, key.1, failure())],
    });
    bench.record(1, key, Recorded::Recorded);
    assert!(bench.drained());
}

#[test]
fn an_idle_worker_drains_at_once() {
    let mut bench = Bench::new(4, 1);
    bench.pass(Span::ZERO);
    let offer = bench.offers()[0].1;
    bench.grant(offer, vec![], Span::ZERO);
    bench.put(WorkerInput::Drain);
    assert!(bench.drained());
}
