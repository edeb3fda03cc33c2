//! The shared behaviour cases that a lease manager alone can show.

use crate::steps::command;
use crate::support::lease_harness::{Leases, START};
use crate::support::make::{failed, item, item_due, job_id, spec, start, succeeded, worker};
use fencepost_core::job::{AttemptResult, JobState};
use fencepost_core::lease_manager::io::{CancelAnswer, LeaseEffect, Recorded};
use fencepost_core::refusal::RefusalKind;
use fencepost_core::time::{Span, StoreTime};
use std::collections::BTreeMap;
use std::sync::Arc;

#[test]
fn beh_p04_idem_key() {
    let mut leases = Leases::new();
    let keyed = |number, digest| {
        let mut item = item(number, spec());
        item.key = Some(("K".into(), [digest; 32]));
        item
    };
    assert!(!leases.create(keyed(1, 1)).unwrap().replayed);
    let again = leases.create(keyed(2, 1)).unwrap();
    assert_eq!((again.id, again.replayed), (job_id(1), true));
    assert_eq!(leases.create(keyed(3, 2)).unwrap_err().kind, RefusalKind::KeyReused);
    assert_eq!(leases.rows.jobs().len(), 1, "nothing was made");
    let burst = (10..60).map(|number| {
        let mut item = item(number, spec());
        item.key = Some(("new".into(), [9; 32]));
        item
    });
    let answers = leases.create_all(burst.collect());
    let ids: Vec<_> = answers.iter().map(|answer| answer.as_ref().unwrap().id).collect();
    assert!(ids.iter().all(|id| *id == job_id(10)));
    assert_eq!(
        answers
            .iter()
            .filter(|answer| answer.as_ref().unwrap().replayed)
            .count(),
        49
    );
    leases.check();
}

#[test]
fn beh_p07_far_future() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let day = 86_400;
    let dues = [
        START + Span::from_secs(25 * day),
        START + Span::from_secs(3 * 365 * day),
        START + Span::from_secs(3_650 * day),
        StoreTime::MAX,
    ];
    for (number, due) in (1..).zip(dues) {
        leases.create(item_due(number, due)).unwrap();
    }
    let beyond = StoreTime(StoreTime::MAX.0 + 1);
    assert_eq!(leases.create(item_due(9, beyond)).unwrap_err().code, "due_out_of_range");
    assert_eq!(START.checked_add(Span::from_millis(u64::MAX)), None);
    leases.pass(Span::from_secs(day));
    assert!(leases.offer(&w, 9).is_empty(), "none fires");
    for (number, due) in (1..).zip(dues) {
        assert_eq!(
            (leases.state(number), leases.job(number).due_at),
            (JobState::Waiting, due)
        );
    }
}

#[test]
fn beh_r01_max_attempts() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    for (number, attempts) in [(1, 1), (2, 2), (5, 5)] {
        let mut spec = spec();
        spec.retry.attempt_count_max = attempts;
        leases.create(item(number, spec)).unwrap();
    }
    let mut starts = std::collections::BTreeMap::new();
    for _ in 0..40 {
        for grant in leases.offer(&w, 9) {
            *starts.entry(grant.job.id).or_insert(0) += 1;
            assert_eq!(
                grant.job.charged + 1,
                starts[&grant.job.id],
                "the count equals the starts"
            );
            leases.report(&w, grant.job.id, grant.token, failed());
            let charged = leases.rows.job(grant.job.id).unwrap().charged;
            assert_eq!(charged, starts[&grant.job.id]);
        }
        leases.pass(Span::from_secs(4));
    }
    for number in [1, 2, 5] {
        let job = leases.job(number);
        assert_eq!(u64::from(starts[&job_id(number)]), number);
        assert_eq!((job.state, leases.place(number)), (JobState::Dead, Some("dead letter")));
        assert_eq!(job.attempts.last().unwrap().error.as_deref(), Some("it went wrong"));
    }
}

#[test]
fn beh_r02_a_job_that_kills_its_worker_dies_at_its_cap() {
    let mut leases = Leases::new();
    leases.create(item(1, spec())).unwrap();
    let mut starts = 0;
    for boot in 1..20 {
        for grant in leases.offer(&worker("a", boot), 1) {
            starts += 1;
            assert_eq!(grant.attempt, starts);
        }
        leases.pass(Span::from_secs(41));
    }
    let job = leases.job(1);
    assert_eq!((starts, job.state, job.charged), (3, JobState::Dead, 3));
    assert_eq!(job.reason.as_deref(), Some("worker lost"));
    assert!(job.attempts.iter().all(|a| a.result == AttemptResult::WorkerLost));
    leases.check();
}

#[test]
fn a_command_waits_until_the_one_before_it_must_have_ended() {
    let mut leases = Leases::new();
    let mut with_command = item(1, spec());
    Arc::make_mut(&mut with_command.spec).target = command();
    leases.create(with_command).unwrap();
    leases.create(item(2, spec())).unwrap();
    assert_eq!(leases.offer(&worker("a", 1), 2).len(), 2);
    // Nobody is heard of again. The call ended with its process; the command has a second for that, its supervisor two.
    let mut again = BTreeMap::new();
    for tenths in 0..600 {
        for grant in leases.offer(&worker("a", 2), 2) {
            again.insert(grant.job.id, tenths);
            leases.report(&worker("a", 2), grant.job.id, grant.token, succeeded());
        }
        leases.pass(Span::from_millis(100));
    }
    let (command, call) = (again[&job_id(1)], again[&job_id(2)]);
    assert!((20..=25).contains(&(command - call)), "{command} {call}");
    leases.check();
}

/// A process that dies whenever the killer runs; what else it was given it carries out.
fn lives_through(leases: &mut Leases, boot: u64, killer: u64) -> bool {
    let w = worker("a", boot);
    loop {
        let grants = leases.offer(&w, 9);
        if grants.iter().any(|grant| grant.job.id == job_id(killer)) {
            return false;
        }
        if grants.is_empty() {
            return true;
        }
        for grant in grants {
            leases.report(&w, grant.job.id, grant.token, succeeded());
        }
        leases.check();
    }
}

#[test]
fn beh_r02_those_that_ran_beside_a_killer_are_charged_once_and_it_dies_at_its_cap() {
    let mut leases = Leases::new();
    for number in 1..=5 {
        leases.create(item(number, spec())).unwrap();
    }
    for boot in 1..20 {
        // The owner dies with its worker, as in one process.
        if !lives_through(&mut leases, boot, 3) {
            leases.dead_node = Some(start("a", boot + 1));
            leases.restart();
        }
        leases.pass(Span::from_secs(10));
    }
    let killer = leases.job(3);
    assert_eq!((killer.state, killer.charged), (JobState::Dead, 3));
    assert_eq!(killer.reason.as_deref(), Some("worker lost"));
    for number in [1, 2, 4, 5] {
        let job = leases.job(number);
        assert_eq!((job.state, job.charged), (JobState::Succeeded, 2), "job {number}");
    }
    leases.check();
}

#[test]
fn beh_r02_what_was_granted_last_before_the_loss_runs_first_and_then_the_most_urgent() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let mut urgent = spec();
    urgent.priority = 0;
    leases.create(item(1, spec())).unwrap();
    leases.create(item(2, urgent)).unwrap();
    assert_eq!(leases.offer(&w, 9).len(), 2);
    leases.pass(Span::from_secs(10));
    leases.create(item(3, spec())).unwrap();
    assert_eq!(leases.offer(&w, 9).len(), 1);
    leases.dead_node = Some(start("a", 2));
    leases.restart();
    leases.pass(Span::from_secs(10));
    let mut order = Vec::new();
    for grant in (0..3).flat_map(|_| leases.offer(&worker("a", 2), 9)) {
        order.push(grant.job.id);
    }
    assert_eq!(order, [job_id(3), job_id(2), job_id(1)]);
    leases.check();
}

#[test]
fn beh_r02_what_waits_to_run_apart_can_be_cancelled_and_is_found_again() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    for number in 1..=3 {
        leases.create(item(number, spec())).unwrap();
    }
    assert_eq!(leases.offer(&w, 9).len(), 3);
    leases.pass(Span::from_secs(60));
    leases.check();
    assert_eq!(leases.cancel(2).unwrap(), CancelAnswer::Cancelled);
    leases.check();
    assert_eq!(leases.offer(&worker("a", 2), 9).len(), 1, "one at a time");
    leases.restart();
    leases.pass(Span::from_secs(10));
    leases.check();
    assert_eq!(leases.offer(&worker("b", 1), 9).len(), 1, "a new owner finds the other");
    assert!(leases.offer(&worker("b", 1), 9).is_empty());
}

#[test]
fn beh_r05_cancel_before_start() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let mut started = std::collections::BTreeSet::new();
    let (mut cancelled, mut running) = (0, 0);
    for number in 0..1_000 {
        let due = START + Span::from_millis(number * 37 % 200);
        leases.create(item_due(number, due)).unwrap();
    }
    for number in 0..1_000 {
        leases.pass(Span::from_millis(1));
        if number % 3 == 0 {
            started.extend(leases.offer(&w, 2).iter().map(|grant| grant.job.id));
        }
        match leases.cancel(number).unwrap() {
            CancelAnswer::Cancelled => {
                cancelled += 1;
                assert!(!started.contains(&job_id(number)));
            }
            CancelAnswer::Running { attempt } => {
                running += 1;
                assert_eq!(attempt, 1);
                assert!(started.contains(&job_id(number)));
            }
            CancelAnswer::Finished(state) => panic!("no third outcome: {state:?}"),
        }
    }
    assert!(
        cancelled > 0 && running > 0,
        "{cancelled} before, {running} after the start"
    );
    leases.pass(Span::from_secs(1));
    assert!(leases.offer(&w, 1_000).is_empty(), "no attempt starts after the answer");
    leases.check();
}

#[test]
fn beh_r07_cancel_running_fails() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.create(item(1, spec())).unwrap();
    let grant = leases.offer(&w, 1).remove(0);
    assert_eq!(leases.cancel(1).unwrap(), CancelAnswer::Running { attempt: 1 });
    let told = leases
        .take_effects()
        .into_iter()
        .filter(|effect| matches!(effect, LeaseEffect::SendCancel { .. }));
    assert_eq!(told.count(), 1, "the worker is told at once");
    assert_eq!(leases.cancel(1).unwrap(), CancelAnswer::Running { attempt: 1 });
    leases.check();
    leases.take_effects();
    let (renewed, _) = leases.heartbeat(&w, &[(grant.job.id, grant.token)]);
    assert_eq!(renewed.len(), 1);
    let told = leases.take_effects();
    let is_told = |effect: &LeaseEffect| matches!(effect, LeaseEffect::SendCancel { .. });
    assert!(told.iter().any(is_told), "each heartbeat asks the worker to stop again");
    leases.report(&w, grant.job.id, grant.token, failed());
    assert_eq!((leases.state(1), leases.place(1)), (JobState::Cancelled, None));
    leases.pass(Span::from_secs(100));
    assert!(leases.offer(&w, 1).is_empty(), "no retry");
    assert_eq!(leases.cancel(1).unwrap(), CancelAnswer::Finished(JobState::Cancelled));
    for (said, answer) in [(failed(), Recorded::Recorded), (succeeded(), Recorded::Stale)] {
        assert_eq!(leases.report(&w, grant.job.id, grant.token, said), answer);
    }
    assert_eq!(
        leases.state(1),
        JobState::Cancelled,
        "it never turns into the other later"
    );
}

#[test]
fn beh_r07_cancel_running_succeeds() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.create(item(1, spec())).unwrap();
    let grant = leases.offer(&w, 1).remove(0);
    leases.cancel(1).unwrap();
    leases.report(&w, grant.job.id, grant.token, succeeded());
    assert_eq!(leases.state(1), JobState::Succeeded, "the work is done");
    assert_eq!(
        leases.job(1).cancel_requested_at,
        Some(START),
        "and the request is in the history"
    );
}

#[test]
fn beh_w01_a_dead_workers_job_runs_elsewhere() {
    let (mut leases, dead, alive) = (Leases::new(), worker("a", 1), worker("b", 1));
    leases.create(item(1, spec())).unwrap();
    leases.offer(&dead, 1);
    leases.pass(Span::from_secs(29));
    assert!(leases.offer(&alive, 1).is_empty());
    leases.pass(Span::from_secs(4));
    let second = leases.offer(&alive, 1).remove(0);
    assert_eq!(second.attempt, 2);
    assert_eq!(second.job.attempts[0].result, AttemptResult::WorkerLost);
    leases.check();
}

#[test]
fn beh_w02_slow_is_not_dead() {
    let (mut leases, w, idle) = (Leases::new(), worker("a", 1), worker("b", 1));
    leases.create(item(1, spec())).unwrap();
    let grant = leases.offer(&w, 1).remove(0);
    for _ in 0..60 {
        leases.pass(Span::from_secs(10));
        assert_eq!(leases.heartbeat(&w, &[(grant.job.id, grant.token)]).0.len(), 1);
        assert!(leases.offer(&idle, 1).is_empty());
    }
    leases.report(&w, grant.job.id, grant.token, succeeded());
    assert_eq!(leases.job(1).attempts.len(), 1);
}

#[test]
fn beh_w05_an_own_stale_attempt_is_refused() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.create(item(1, spec())).unwrap();
    let old = leases.offer(&w, 1).remove(0);
    leases.pass(Span::from_secs(40));
    let new = leases.offer(&w, 1).remove(0);
    assert_eq!(
        leases.heartbeat(&w, &[(job_id(1), old.token)]).1,
        [(job_id(1), old.token)]
    );
    assert_eq!(leases.hand_back(&w, job_id(1), old.token), Recorded::Stale);
    assert_eq!(leases.report(&w, job_id(1), old.token, succeeded()), Recorded::Stale);
    let current = leases.machine.current_attempt(job_id(1)).unwrap();
    assert_eq!(
        (current.token, current.attempt),
        (new.token, 2),
        "the running attempt is untouched"
    );
    assert_eq!(leases.report(&w, job_id(1), new.token, succeeded()), Recorded::Recorded);
    leases.check();
}

#[test]
fn beh_d11_one_off_in_the_past() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let yesterday = StoreTime(START.0 - 86_400_000_000);
    leases.create(item_due(1, yesterday)).unwrap();
    let mut late = item_due(2, yesterday);
    late.grace = Some(Span::from_secs(3_600));
    assert_eq!(leases.create(late).unwrap_err().code, "too_late");
    let grant = leases.offer(&w, 9);
    assert_eq!(grant.len(), 1);
    leases.report(&w, job_id(1), grant[0].token, succeeded());
    leases.pass(Span::from_secs(600));
    assert!(leases.offer(&w, 9).is_empty(), "in neither case again");
    let mut edge = item_due(3, StoreTime(START.0 + 600_000_000 - 3_600_000_000));
    edge.grace = Some(Span::from_secs(3_600));
    assert!(leases.create(edge).is_ok(), "the edge is inclusive");
}
