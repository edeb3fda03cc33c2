//! Histories of PROTOCOL about outcomes and waits: F15, F18, F20 (b).

use crate::support::lease_harness::Leases;
use crate::support::make::{failed, failed_with, item, item_due, job_id, outcome, spec, succeeded, worker};
use fencepost_core::ids::WorkerId;
use fencepost_core::job::{AttemptResult, Delivery, EffectProof, JobSpec, JobState, RetryAdvice, Verdict};
use fencepost_core::lease_manager::backoff;
use fencepost_core::lease_manager::io::{
    AttemptOutcome, CancelAnswer, CreateItem, Grant, LeaseInput, Recorded, Settlement,
};
use fencepost_core::limits::ATTEMPT_RECORDS_MAX;
use fencepost_core::time::Span;
use std::sync::Arc;

/// An at-most-once job that was granted and, if asked, has begun.
pub fn at_most_once(begun: bool) -> (Leases, WorkerId, Grant) {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let mut spec = spec();
    spec.delivery = Delivery::AtMostOnce;
    leases.create(item(1, spec)).unwrap();
    let grant = leases.offer(&w, 1).remove(0);
    if begun {
        assert!(leases.begin(&w, grant.job.id, grant.token));
        assert!(leases.begin(&w, grant.job.id, grant.token), "said twice");
    }
    (leases, w, grant)
}

#[test]
fn f15_what_is_begun_and_unproven_is_parked_for_a_human() {
    let unproven = EffectProof::Unproven;
    let by_policy = RetryAdvice::ByPolicy;
    let verdicts = [
        Verdict::Failed {
            retry: by_policy,
            effect: unproven,
        },
        Verdict::TimedOut { effect: unproven },
        Verdict::Cancelled { effect: unproven },
    ];
    for verdict in verdicts {
        let (mut leases, w, grant) = at_most_once(true);
        leases.report(&w, grant.job.id, grant.token, outcome(verdict));
        assert_eq!(
            (leases.state(1), leases.place(1)),
            (JobState::Uncertain, Some("parked"))
        );
        leases.pass(Span::from_secs(3_600));
        assert!(leases.offer(&w, 9).is_empty(), "never retried by us");
        leases.check();
    }
}

#[test]
fn f15_only_proven_no_effect_is_retried() {
    let none = EffectProof::NoEffect;
    let later = RetryAdvice::After(Span::from_secs(5));
    for verdict in [
        Verdict::Failed {
            retry: later,
            effect: none,
        },
        Verdict::TimedOut { effect: none },
    ] {
        let (mut leases, w, grant) = at_most_once(true);
        leases.report(&w, grant.job.id, grant.token, outcome(verdict));
        leases.pass(Span::from_secs(6));
        assert_eq!(leases.offer(&w, 9).len(), 1);
    }
}

#[test]
fn f15_a_lost_worker_leaves_the_begun_uncertain_and_the_unbegun_retried() {
    let (mut leases, w, _) = at_most_once(true);
    leases.restart();
    leases.pass(Span::from_secs(40));
    assert_eq!(
        (leases.state(1), leases.job(1).reason.as_deref()),
        (JobState::Uncertain, Some("worker lost"))
    );
    leases.pass(Span::from_secs(9_999));
    assert!(leases.offer(&w, 9).is_empty());
    leases.check();
    let (mut leases, w, grant) = at_most_once(false);
    leases.pass(Span::from_secs(40));
    assert!(!leases.begin(&w, grant.job.id, grant.token), "too late to begin");
    assert_eq!(leases.offer(&w, 9).len(), 1);
}

#[test]
fn f15_a_cancel_of_the_unbegun_is_a_cancel() {
    let (mut leases, w, grant) = at_most_once(false);
    assert_eq!(leases.cancel(1).unwrap(), CancelAnswer::Cancelled);
    assert!(
        !leases.begin(&w, grant.job.id, grant.token),
        "no attempt starts after the answer"
    );
    assert_eq!((leases.state(1), leases.job(1).refunded), (JobState::Cancelled, 1));
    leases.check();
    let (mut leases, w, grant) = at_most_once(true);
    assert_eq!(leases.cancel(1).unwrap(), CancelAnswer::Running { attempt: 1 });
    leases.report(&w, grant.job.id, grant.token, failed());
    assert_eq!(
        leases.state(1),
        JobState::Uncertain,
        "it may have had its effect: a human says"
    );
    leases.check();
}

#[test]
fn f15_a_human_settles() {
    for (verdict, state) in [
        (Settlement::Succeeded, JobState::Succeeded),
        (Settlement::Dead, JobState::Dead),
        (Settlement::Retry, JobState::Ready),
    ] {
        let (mut leases, w, grant) = at_most_once(true);
        assert_eq!(leases.settle(1, verdict).unwrap_err().code, "job_not_uncertain");
        leases.report(&w, grant.job.id, grant.token, failed());
        let refusal = leases.retry_dead(1).unwrap_err();
        assert!(
            refusal.hint.contains("settle"),
            "a retry says what else to do: {}",
            refusal.hint
        );
        let settled = leases.settle(1, verdict).unwrap();
        assert_eq!(settled.state, state);
        let said = settled.reason.is_some_and(|reason| reason.starts_with("settled"));
        assert_eq!(said, state != JobState::Ready, "the record says that it was a person");
        leases.check();
        assert_eq!(leases.offer(&w, 9).len(), usize::from(state == JobState::Ready));
    }
}

#[test]
fn f18_a_reaped_attempt_changes_nothing_but_is_kept_as_evidence() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.create(item(1, spec())).unwrap();
    let old = leases.offer(&w, 1).remove(0);
    leases.pass(Span::from_secs(40));
    assert_eq!(leases.report(&w, job_id(1), old.token, succeeded()), Recorded::Stale);
    let evidence = leases.job(1).attempts[0].error.clone().unwrap();
    assert!(evidence.contains("reported success"), "{evidence}");
    assert_eq!(leases.report(&w, job_id(1), old.token, failed()), Recorded::Stale);
    assert_eq!(leases.job(1).attempts[0].error.clone().unwrap(), evidence, "kept once");
    leases.check();
    let new = leases.offer(&w, 1).remove(0);
    assert_eq!(new.attempt, 2);
    assert_eq!(leases.report(&w, job_id(1), old.token, succeeded()), Recorded::Stale);
    assert_eq!(leases.report(&w, job_id(1), new.token, succeeded()), Recorded::Recorded);
    leases.check();
}

#[test]
fn f18_late_words_about_two_attempts_of_one_job_may_come_in_one_message() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.create(item(1, spec())).unwrap();
    let tokens = [1, 2].map(|_| {
        let grant = leases.offer(&w, 1).remove(0);
        leases.pass(Span::from_secs(100));
        grant.token
    });
    let fetched = leases.job(1);
    let said = |token| AttemptOutcome {
        id: job_id(1),
        token,
        outcome: failed(),
        job: Some(Box::new(fetched.clone())),
    };
    let items = tokens.map(said).to_vec();
    leases.step(LeaseInput::Outcomes { worker: w, items });
    let evidence = |place: usize| leases.job(1).attempts[place].error.clone().unwrap();
    assert!(evidence(0).contains("came back") && evidence(1).contains("came back"));
    leases.check();
}

#[test]
fn f18_a_late_outcome_settles_an_uncertain_job() {
    let (settled, evidence) = (Recorded::Recorded, Recorded::Stale);
    for (late, state, answer) in [
        (succeeded(), JobState::Succeeded, settled),
        (
            failed_with(RetryAdvice::Stop, EffectProof::NoEffect),
            JobState::Dead,
            settled,
        ),
        (
            failed_with(RetryAdvice::ByPolicy, EffectProof::NoEffect),
            JobState::Ready,
            settled,
        ),
        // What proves nothing leaves it to a person.
        (failed(), JobState::Uncertain, evidence),
    ] {
        let (mut leases, w, grant) = at_most_once(true);
        leases.pass(Span::from_secs(40));
        assert_eq!(leases.state(1), JobState::Uncertain);
        leases.restart();
        assert_eq!(leases.report(&w, grant.job.id, grant.token, late.clone()), answer);
        assert_eq!(leases.state(1), state);
        leases.check();
    }
}

#[test]
fn f18_a_repeated_outcome_is_recorded_by_every_later_owner() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.create(item(1, spec())).unwrap();
    let first = leases.offer(&w, 1).remove(0);
    leases.report(&w, job_id(1), first.token, failed());
    for _ in 0..3 {
        let rows = leases.rows.rows.clone();
        assert_eq!(leases.report(&w, job_id(1), first.token, failed()), Recorded::Recorded);
        assert_eq!(leases.rows.rows, rows, "and changes nothing");
        leases.restart();
    }
    leases.pass(Span::from_secs(5));
    let second = leases.offer(&w, 1).remove(0);
    leases.report(&w, job_id(1), second.token, succeeded());
    leases.restart();
    assert_eq!(leases.report(&w, job_id(1), first.token, failed()), Recorded::Recorded);
    assert_eq!(leases.state(1), JobState::Succeeded);
}

#[test]
fn f20_a_retry_waits_its_length_whatever_the_stores_clock_does() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.create(item(1, spec())).unwrap();
    let grant = leases.offer(&w, 1).remove(0);
    let minute = failed_with(RetryAdvice::After(Span::from_secs(60)), EffectProof::NoEffect);
    leases.report(&w, grant.job.id, grant.token, minute);
    let back = |leases: &mut Leases| leases.now.store = leases.now.store - Span::from_secs(3_600);
    leases.pass(Span::from_secs(30));
    // Before its owner has seen it.
    back(&mut leases);
    leases.restart();
    leases.pass(Span::from_secs(59));
    assert!(leases.offer(&w, 1).is_empty());
    leases.pass(Span::from_secs(2));
    assert_eq!(
        leases.offer(&w, 1).len(),
        1,
        "at most its length again after a load, not an hour"
    );
}

/// A job due a minute after it is made.
fn delayed(number: u64) -> CreateItem {
    CreateItem {
        delay: Some(Span::from_secs(60)),
        ..item(number, spec())
    }
}

#[test]
fn f20_a_delay_is_elapsed_time_when_the_stores_clock_is_set_back() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.create(delayed(1)).unwrap();
    leases.now.store = leases.now.store - Span::from_secs(3_600);
    leases.pass(Span::from_secs(59));
    assert!(leases.offer(&w, 1).is_empty());
    leases.pass(Span::from_secs(2));
    assert_eq!(leases.offer(&w, 1).len(), 1, "a minute, not an hour and a minute");
}

#[test]
fn f20_a_delay_is_at_most_its_length_again_after_a_load() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.create(delayed(1)).unwrap();
    leases.pass(Span::from_secs(20));
    leases.restart();
    leases.pass(Span::from_secs(38));
    assert!(leases.offer(&w, 1).is_empty(), "what is left, not less");
    leases.now.store = leases.now.store - Span::from_secs(3_600);
    leases.restart();
    leases.pass(Span::from_secs(59));
    assert!(leases.offer(&w, 1).is_empty());
    leases.pass(Span::from_secs(2));
    assert_eq!(leases.offer(&w, 1).len(), 1);
}

#[test]
fn f20_a_leap_ahead_does_not_shorten_a_delay() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.create(delayed(1)).unwrap();
    let due = leases.now.store + Span::from_secs(60);
    leases.create(item_due(2, due)).unwrap();
    leases.now.store = leases.now.store + Span::from_secs(3_600);
    leases.pass(Span::from_secs(1));
    let granted = leases.offer(&w, 9);
    let ids: Vec<_> = granted.iter().map(|grant| grant.job.id).collect();
    assert_eq!(ids, [job_id(2)], "an instant has come, a minute has not passed");
    leases.report(&w, job_id(2), granted[0].token, succeeded());
    leases.pass(Span::from_secs(60));
    assert_eq!(leases.offer(&w, 9).len(), 1);
}

/// As a node of the version before says it: its gateway's guess of the instant.
fn delayed_as_instant(number: u64) -> CreateItem {
    item_due(number, Leases::new().now.store + Span::from_secs(61))
}

#[test]
fn f26_a_delayed_creation_sent_again_is_the_same_job_in_whichever_form_it_comes() {
    let forms: [fn(u64) -> CreateItem; 2] = [delayed, delayed_as_instant];
    for (first, second) in forms.into_iter().flat_map(|first| forms.map(|second| (first, second))) {
        let mut leases = Leases::new();
        leases.create(first(1)).unwrap();
        leases.pass(Span::from_secs(5));
        let again = CreateItem {
            resent: true,
            ..second(1)
        };
        assert!(leases.create(again.clone()).unwrap().replayed);
        let priority = spec().priority + 1;
        let other = CreateItem {
            spec: Arc::new(JobSpec { priority, ..spec() }),
            ..again
        };
        assert_eq!(leases.create(other).unwrap_err().code, "job_id_taken");
    }
}

#[test]
fn f20_in_clock_doubt_no_first_start_comes_due_but_retries_do() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.create(item(1, spec())).unwrap();
    let due = leases.now.store + Span::from_secs(86_400);
    leases.create(item_due(2, due)).unwrap();
    let grant = leases.offer(&w, 1).remove(0);
    leases.report(&w, grant.job.id, grant.token, failed());
    leases.now.store = due + Span::from_secs(5);
    leases.now.doubt = true;
    leases.pass(Span::from_secs(5));
    let granted: Vec<_> = leases.offer(&w, 9).iter().map(|grant| grant.job.id).collect();
    assert_eq!(granted, [job_id(1)], "the waiting one may have leapt");
    leases.now.doubt = false;
    leases.pass(Span::from_secs(1));
    assert_eq!(leases.offer(&w, 9).len(), 1);
}

#[test]
fn backoff_doubles_to_its_cap_with_a_jitter_that_no_restart_redraws() {
    let policy = spec().retry;
    for nth in 1..200 {
        let full = (1_000_000_u64 << (nth - 1).min(40)).min(policy.backoff_cap.0);
        let wait = backoff(job_id(1), &policy, nth);
        assert!(wait.0 >= full / 2 && wait.0 <= full, "{nth}: {wait:?}");
        assert_eq!(wait, backoff(job_id(1), &policy, nth));
    }
    let spread: std::collections::BTreeSet<_> = (0..100).map(|n| backoff(job_id(n), &policy, 1)).collect();
    assert!(spread.len() > 90, "a herd is spread");
}

#[test]
fn long_outputs_and_histories_are_bounded() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let mut spec = spec();
    spec.retry.attempt_count_max = 100;
    leases.create(item(1, spec)).unwrap();
    for _ in 0..20 {
        let grant = leases.offer(&w, 1).remove(0);
        let mut long = failed();
        long.error = Some("ä".repeat(4_000).into());
        long.output = vec![7; 100_000].into();
        leases.report(&w, grant.job.id, grant.token, long);
        leases.pass(Span::from_secs(70));
    }
    let job = leases.job(1);
    assert!(job.attempts.len() <= ATTEMPT_RECORDS_MAX, "the rest is in pages");
    assert_eq!(job.charged, 20);
    assert_eq!(job.attempts[0].result, AttemptResult::Failed);
    assert!(
        job.attempts
            .iter()
            .all(|a| a.output.len() <= 16 << 10 && a.error.as_ref().unwrap().len() <= 2_048)
    );
}
