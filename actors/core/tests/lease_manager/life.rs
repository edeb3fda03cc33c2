//! A job's life: creation, grant, outcome, retry, end; and what it costs in rows.

use crate::support::lease_harness::{Leases, START};
use crate::support::make::{failed, failed_with, item, item_due, job_id, name, spec, succeeded, worker};
use fencepost_core::job::{AttemptResult, EffectProof, JobState, RetryAdvice};
use fencepost_core::lease_manager::io::{LeaseEffect, Recorded};
use fencepost_core::time::Span;

#[test]
fn a_job_is_granted_run_and_recorded() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.create(item(1, spec())).unwrap();
    let grants = leases.offer(&w, 4);
    assert_eq!(grants.len(), 1);
    assert_eq!((grants[0].attempt, leases.place(1)), (1, Some("leased")));
    leases.check();
    assert_eq!(
        leases.report(&w, job_id(1), grants[0].token, succeeded()),
        Recorded::Recorded
    );
    let job = leases.job(1);
    assert_eq!(
        (job.state, job.charged, job.attempts.len()),
        (JobState::Succeeded, 1, 1)
    );
    assert_eq!(job.attempts[0].result, AttemptResult::Succeeded);
    assert_eq!(leases.place(1), None);
    leases.check();
}

#[test]
fn f33_a_life_costs_at_most_eight_row_writes() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let mut keyed = item_due(1, START + Span::from_secs(5));
    keyed.key = Some(("k".into(), [1; 32]));
    leases.create(keyed).unwrap();
    leases.create(item(2, spec())).unwrap();
    leases.pass(Span::from_secs(6));
    for grant in leases.offer(&w, 4) {
        leases.report(&w, grant.job.id, grant.token, succeeded());
    }
    assert_eq!(leases.rows.writes[&job_id(1)], 7, "delayed, with a key");
    assert_eq!(leases.rows.writes[&job_id(2)], 6, "due at once, without a key");
}

#[test]
fn a_failed_attempt_waits_its_backoff_and_runs_again() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.create(item(1, spec())).unwrap();
    let first = leases.offer(&w, 1).remove(0);
    leases.report(&w, first.job.id, first.token, failed());
    assert_eq!((leases.state(1), leases.place(1)), (JobState::Waiting, Some("wait")));
    assert!(leases.offer(&w, 1).is_empty(), "not before its backoff");
    leases.pass(Span::from_secs(2));
    let second = leases.offer(&w, 1).remove(0);
    assert_eq!(second.attempt, 2);
    assert!(second.token > first.token);
    leases.check();
}

#[test]
fn retry_after_is_honoured_and_stop_stops() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.create(item(1, spec())).unwrap();
    leases.create(item(2, spec())).unwrap();
    let grants = leases.offer(&w, 2);
    let later = failed_with(RetryAdvice::After(Span::from_secs(600)), EffectProof::NoEffect);
    leases.report(&w, job_id(1), grants[0].token, later);
    let stop = failed_with(RetryAdvice::Stop, EffectProof::Unproven);
    leases.report(&w, job_id(2), grants[1].token, stop);
    assert_eq!(leases.job(2).reason.as_deref(), Some("stopped by target"));
    assert_eq!(
        (leases.state(2), leases.place(2)),
        (JobState::Dead, Some("dead letter"))
    );
    leases.pass(Span::from_secs(599));
    assert!(leases.offer(&w, 1).is_empty());
    leases.pass(Span::from_secs(2));
    assert_eq!(leases.offer(&w, 1).len(), 1);
}

#[test]
fn a_dead_job_sent_back_keeps_its_history_and_gets_a_fresh_budget() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let mut once = spec();
    once.retry.attempt_count_max = 1;
    leases.create(item(1, once)).unwrap();
    for number in 1..=2 {
        let grant = leases.offer(&w, 1).remove(0);
        assert_eq!(grant.attempt, number);
        leases.report(&w, job_id(1), grant.token, failed());
        assert_eq!(leases.job(1).reason.as_deref(), Some("attempts used up"));
        if number == 1 {
            assert_eq!(leases.retry_dead(1).unwrap().state, JobState::Ready);
            let refusal = leases.retry_dead(1).unwrap_err();
            assert_eq!(refusal.code, "job_not_dead");
            assert!(refusal.hint.starts_with("It goes on"), "{}", refusal.hint);
        }
    }
    assert_eq!(leases.job(1).attempts.len(), 2);
    assert_eq!(leases.place(1), Some("dead letter"));
    leases.check();
}

#[test]
fn an_expired_job_never_starts_and_doubt_decides_nothing() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let mut short = spec();
    short.expires_at = Some(START + Span::from_secs(10));
    leases.create(item(1, short.clone())).unwrap();
    leases.create(item(2, short)).unwrap();
    leases.jump(Span::from_secs(11));
    leases.now.doubt = true;
    assert_eq!(leases.offer(&w, 1).len(), 1, "in doubt it is not expired");
    leases.now.doubt = false;
    assert!(leases.offer(&w, 1).is_empty());
    assert_eq!((leases.state(2), leases.place(2)), (JobState::Expired, None));
    leases.check();
}

#[test]
fn priority_goes_first_then_order_within_a_class() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    for (number, priority) in [(1, 5), (2, 5), (3, 0), (4, 9)] {
        leases.jump(Span::from_millis(1));
        let mut spec = spec();
        spec.priority = priority;
        leases.create(item(number, spec)).unwrap();
    }
    let order: Vec<_> = leases.offer(&w, 9).iter().map(|grant| grant.job.id).collect();
    assert_eq!(order, [job_id(3), job_id(1), job_id(2), job_id(4)]);
}

#[test]
fn classes_take_turns_and_an_offer_may_name_its_queues() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    for number in 0..100 {
        let mut flood = spec();
        flood.tenant = name("loud");
        leases.create(item(number, flood)).unwrap();
    }
    let mut quiet = spec();
    quiet.tenant = name("quiet");
    leases.create(item(100, quiet)).unwrap();
    let mut other = spec();
    other.queue = name("other");
    leases.create(item(101, other)).unwrap();
    let first: Vec<_> = leases.offer(&w, 3).iter().map(|grant| grant.job.id).collect();
    assert!(
        first.contains(&job_id(100)) && first.contains(&job_id(101)),
        "{first:?}"
    );
    assert!(leases.offer_as(&w, 900, 5, &["other"]).is_empty());
    assert_eq!(leases.offer_as(&w, 901, 5, &["default"]).len(), 5);
    leases.check();
}

fn hints(leases: &mut Leases) -> usize {
    let hint = |effect: &&LeaseEffect| matches!(effect, LeaseEffect::HintReady);
    leases.take_effects().iter().filter(hint).count()
}

#[test]
fn f08_a_worker_that_got_all_it_asked_for_and_heard_of_no_more_is_told_of_what_comes() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.create(item(1, spec())).unwrap();
    assert_eq!(hints(&mut leases), 1);
    assert_eq!(leases.offer(&w, 1).len(), 1, "all that it asked for, and all there is");
    leases.take_effects();
    leases.create(item(2, spec())).unwrap();
    assert_eq!(hints(&mut leases), 1, "it does not ask by itself");
}

#[test]
fn a_hungry_worker_is_told_once_when_something_becomes_ready() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.offer(&w, 1);
    leases.take_effects();
    for number in 1..=3 {
        leases.create(item(number, spec())).unwrap();
    }
    assert_eq!(hints(&mut leases), 1);
}

#[test]
fn an_owner_that_holds_back_grants_nothing_and_what_runs_is_recorded() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.create(item(1, spec())).unwrap();
    let running = leases.offer(&w, 1).remove(0);
    leases.machine.set_holds_back(true);
    leases.create(item(2, spec())).unwrap();
    assert!(leases.offer(&w, 4).is_empty());
    leases.check();
    let recorded = leases.report(&w, running.job.id, running.token, succeeded());
    assert_eq!(recorded, Recorded::Recorded);
    leases.machine.set_holds_back(false);
    assert_eq!(leases.offer(&w, 4).len(), 1);
    leases.check();
}
