//! Reporting outcomes until they are recorded.
//!
//! Owns: F18 as a worker sees it. Next: `property.rs`.

use super::*;

/// A worker with `count` running attempts.
fn running(slots: u32, count: u64) -> Bench {
    let (mut bench, offer) = Bench::asked(slots);
    bench.grant(offer, (1..=count).map(|n| plain(n, n)).collect(), Span::ZERO);
    assert_eq!(bench.starts().len() as u64, count);
    bench
}

fn key_of(n: u64) -> (JobId, Token) {
    key(&plain(n, n))
}

#[test]
fn f18_a_finished_attempt_is_renewed_until_it_is_recorded() {
    let mut bench = running(1, 1);
    bench.finish(key_of(1));
    bench.pass(Span::from_secs(100));
    let beats = bench.beats();
    assert_eq!(beats.len(), 12);
    assert!(beats.iter().all(|(_, held)| held == &vec![key_of(1)]));
    bench.record(1, key_of(1), Recorded::Recorded);
    bench.pass(Span::from_secs(100));
    assert!(bench.beats().is_empty());
}

#[test]
fn f18_an_outcome_is_sent_again_until_it_is_recorded_with_growing_gaps() {
    let mut bench = running(1, 1);
    bench.finish(key_of(1));
    bench.pass(Span::from_secs(60));
    let sends = bench.outcomes().len();
    assert!((6..=9).contains(&sends), "1, 2, 4, 8, 15, 15 … seconds apart: {sends}");
    bench.record(1, key_of(1), Recorded::Recorded);
    bench.pass(Span::from_secs(60));
    assert!(bench.outcomes().is_empty());
}

#[test]
fn f18_steady_progress_does_not_put_off_a_lost_outcome() {
    let mut bench = running(40, 40);
    bench.finish(key_of(1));
    bench.outcomes();
    for n in 2..=40 {
        bench.pass(Span::from_millis(100));
        bench.finish(key_of(n));
        bench.record(1, key_of(n), Recorded::Recorded);
    }
    assert!(bench.outcomes().iter().flatten().any(|sent| *sent == key_of(1)));
}

#[test]
fn f18_a_lost_lease_is_still_reported_and_renewed_no_more() {
    let mut bench = running(1, 1);
    bench.finish(key_of(1));
    bench.lose(1, key_of(1));
    bench.outcomes();
    bench.pass(Span::from_secs(10));
    assert!(bench.beats().is_empty());
    assert!(!bench.outcomes().is_empty());
    bench.record(1, key_of(1), Recorded::Stale);
    assert_eq!(bench.worker.unrecorded(), 0);
}

#[test]
fn f18_an_older_owner_cannot_call_an_outcome_stale() {
    let mut bench = running(2, 2);
    bench.finish(key_of(1));
    bench.record(4, key_of(9), Recorded::Recorded);
    bench.record(3, key_of(1), Recorded::Stale);
    assert_eq!(bench.worker.unrecorded(), 1);
    bench.record(3, key_of(1), Recorded::Recorded);
    assert_eq!(
        bench.worker.unrecorded(),
        0,
        "what is durable is durable, whoever says so"
    );
}

/// Whoever waits for the answer takes the first for the last word.
#[test]
fn f18_only_an_answer_that_counts_is_passed_on() {
    let mut bench = running(3, 3);
    (1..=2).for_each(|n| bench.finish(key_of(n)));
    bench.put(WorkerInput::NotStarted { items: vec![key_of(3)] });
    bench.record(4, key_of(9), Recorded::Recorded);
    (1..=3).for_each(|n| bench.record(3, key_of(n), Recorded::Stale));
    assert_eq!(bench.told(), [], "an older owner may not know the attempt");
    for _ in 0..2 {
        bench.record(3, key_of(1), Recorded::Recorded);
        bench.record(4, key_of(2), Recorded::Stale);
        bench.record(4, key_of(3), Recorded::Recorded);
    }
    let told = [
        (key_of(1), Recorded::Recorded),
        (key_of(2), Recorded::Stale),
        (key_of(3), Recorded::Recorded),
    ];
    assert_eq!(bench.told(), told, "each once");
}

#[test]
fn outcomes_gather_while_a_message_is_on_its_way() {
    let mut bench = running(100, 100);
    (1..=100).for_each(|n| bench.finish(key_of(n)));
    let sent = bench.outcomes();
    assert!(sent.len() <= 8, "{} messages for 100 outcomes", sent.len());
    let gone = sent.iter().flatten().count() as u64;
    (1..=gone).for_each(|n| bench.record(1, key_of(n), Recorded::Recorded));
    let rest: usize = bench.outcomes().iter().map(Vec::len).sum();
    assert_eq!(gone as usize + rest, 100);
}

#[test]
fn one_message_of_outcomes_is_bounded_in_bytes() {
    let mut bench = running(600, 600);
    let output: Arc<[u8]> = Arc::from(vec![0; crate::limits::OUTPUT_TAIL_BYTES_MAX]);
    for n in 1..=600 {
        let (id, token) = key_of(n);
        let outcome = Outcome {
            output: output.clone(),
            ..success()
        };
        bench.put(WorkerInput::AttemptsFinished {
            items: vec![(id, token, outcome)],
        });
    }
    let most = bench.outcomes().iter().map(Vec::len).max().unwrap();
    assert!(most * crate::limits::OUTPUT_TAIL_BYTES_MAX <= crate::limits::OUTCOME_BYTES_MAX + (32 << 10));
}

#[test]
fn what_ends_together_is_told_in_one_message() {
    let mut bench = running(600, 600);
    let items = (1..=600).map(|n| {
        let (id, token) = key_of(n);
        (id, token, success())
    });
    bench.put(WorkerInput::AttemptsFinished { items: items.collect() });
    let told = bench.outcomes();
    assert_eq!(told.iter().map(Vec::len).collect::<Vec<_>>(), [600]);
}

#[test]
fn outcomes_that_pile_up_hold_back_new_work() {
    let mut bench = Bench::new(1, 1);
    bench.worker.config.outcome_count_max = 3;
    for n in 1..=3 {
        bench.put(WorkerInput::ReadyHint(ShardId(0)));
        let offer = bench.offers()[0].1;
        bench.grant(offer, vec![plain(n, n)], Span::ZERO);
        bench.finish(key_of(n));
    }
    bench.put(WorkerInput::ReadyHint(ShardId(0)));
    bench.pass(Span::from_secs(5));
    assert!(bench.offers().is_empty());
    bench.record(1, key_of(2), Recorded::Recorded);
    assert_eq!(bench.offers().len(), 1);
}
