//! Histories of PROTOCOL section 1 at the machine: F1, F4, F8, F9.

use crate::support::lease_harness::{Leases, START};
use crate::support::make::{failed, item, item_due, job_id, name, spec, succeeded, worker};
use fencepost_core::ids::Incarnation;
use fencepost_core::job::{FireCause, JobState, Origin, Place};
use fencepost_core::lease_manager::io::{LeaseEffect, LeaseInput};
use fencepost_core::limits::SWEEP_PAUSE_MS;
use fencepost_core::machine::{Expect, Out, Write};
use fencepost_core::row::{Row, RowKey};
use fencepost_core::scheduler_shard::io::Fire;
use fencepost_core::time::{Span, StoreTime};
use std::sync::Arc;

fn fire(number: u64, due_at: StoreTime) -> Fire {
    Fire {
        id: job_id(number),
        spec: Arc::new(spec()),
        origin: Origin::Occurrence {
            schedule: name("nightly"),
            incarnation: Incarnation::default(),
            definition: 1,
            nominal: due_at,
            cause: FireCause::Due,
        },
        due_at,
    }
}

#[test]
fn f1_a_fire_is_an_insert_that_cannot_revive_a_finished_job() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let mut out = Out::default();
    leases.machine.on_fires(leases.now, vec![fire(1, START)], &mut out);
    let guarded = out.writes.iter().any(|write| {
        matches!(
            write,
            Write::Put {
                row: Row::Job(_),
                expect: Expect::Absent
            }
        )
    });
    assert!(guarded, "the job row must be absent");
    leases.rows.apply(&out.writes);
    let grant = leases.offer(&w, 1).remove(0);
    leases.report(&w, grant.job.id, grant.token, succeeded());
    let again = std::panic::catch_unwind(|| leases.rows.clone().apply(&out.writes));
    assert!(again.is_err(), "the same batch under another number is refused");
    assert_eq!(leases.state(1), JobState::Succeeded);
}

#[test]
fn f1_retries_and_cancels_of_a_fired_job_stay_with_one_writer() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.fire(vec![fire(1, START), fire(2, START + Span::from_secs(9))]);
    assert_eq!((leases.place(1), leases.place(2)), (Some("ready"), Some("wait")));
    let grant = leases.offer(&w, 1).remove(0);
    leases.report(&w, grant.job.id, grant.token, failed());
    leases.cancel(2).unwrap();
    assert_eq!(
        (leases.state(1), leases.state(2)),
        (JobState::Waiting, JobState::Cancelled)
    );
    leases.check();
}

#[test]
#[should_panic(expected = "conflict")]
fn f4_a_decision_on_a_stale_row_is_refused_by_its_version() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let mut once = spec();
    once.retry.attempt_count_max = 1;
    leases.create(item(1, once)).unwrap();
    let grant = leases.offer(&w, 1).remove(0);
    leases.report(&w, grant.job.id, grant.token, failed());
    let stale = leases.job(1);
    leases.retry_dead(1).unwrap();
    let reply = fencepost_core::machine::ReplyTo(99);
    leases.step(LeaseInput::RetryDead {
        reply,
        id: job_id(1),
        job: Some(Box::new(stale)),
    });
}

#[test]
fn f8_work_is_found_without_any_hint() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.create(item(1, spec())).unwrap();
    leases.create(item_due(2, START + Span::from_secs(5))).unwrap();
    leases.take_effects();
    leases.restart();
    leases.pass(Span::from_secs(6));
    assert_eq!(leases.offer(&w, 9).len(), 2);
}

#[test]
fn f8_the_sweep_finds_a_job_that_no_range_names() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.create(item(1, spec())).unwrap();
    leases.create(item_due(2, START + Span::from_secs(600))).unwrap();
    leases
        .rows
        .rows
        .retain(|key, _| !matches!(key, RowKey::Ready(_) | RowKey::Wait(..)));
    leases.restart();
    assert!(leases.offer(&w, 9).is_empty(), "nothing names them");
    leases.pass(Span::from_millis(SWEEP_PAUSE_MS + 1));
    let repaired = leases
        .take_effects()
        .iter()
        .filter(|e| matches!(e, LeaseEffect::JobRepaired { .. }))
        .count();
    assert_eq!(repaired, 2);
    assert_eq!((leases.place(1), leases.place(2)), (Some("ready"), Some("wait")));
    assert_eq!(leases.offer(&w, 9).len(), 1);
    leases.check();
}

#[test]
fn f8_the_sweep_finds_rows_that_memory_does_not_know() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let mut other = Leases::new();
    other.create(item(1, spec())).unwrap();
    other.create(item_due(2, START + Span::from_secs(1))).unwrap();
    leases.rows = other.rows;
    assert!(leases.offer(&w, 9).is_empty());
    leases.pass(Span::from_millis(SWEEP_PAUSE_MS + 1));
    leases.pass(Span::from_millis(1));
    assert_eq!(leases.offer(&w, 9).len(), 2);
    leases.check();
}

#[test]
fn f8_the_sweep_expires_what_nobody_asks_for() {
    let mut leases = Leases::new();
    let mut short = spec();
    short.expires_at = Some(START + Span::from_secs(1));
    leases.create(item(1, short)).unwrap();
    leases.pass(Span::from_millis(SWEEP_PAUSE_MS + 1));
    assert_eq!((leases.state(1), leases.place(1)), (JobState::Expired, None));
    leases.check();
}

#[test]
fn f9_one_bad_row_is_left_out_and_the_rest_goes_on() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    for number in 1..=3 {
        leases.create(item(number, spec())).unwrap();
    }
    if let Some(Row::Job(job)) = leases.rows.rows.get_mut(&RowKey::Job(job_id(2))) {
        job.state = JobState::Succeeded;
    }
    leases.restart();
    let granted: Vec<_> = leases.offer(&w, 9).iter().map(|grant| grant.job.id).collect();
    assert_eq!(granted, [job_id(1), job_id(3)]);
    let rejected = leases
        .take_effects()
        .iter()
        .any(|e| matches!(e, LeaseEffect::JobRejected { id, .. } if *id == job_id(2)));
    assert!(rejected);
}

/// Whatever moves such a job would delete a row where none lies, and leave this one behind.
#[test]
fn f9_a_place_row_that_lies_elsewhere_than_its_job_says_is_left_out() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let waits = START + Span::from_secs(1);
    for item in [item(1, spec()), item(2, spec()), item_due(3, waits), item_due(4, waits)] {
        leases.create(item).unwrap();
    }
    for number in [2, 4] {
        if let Some(Row::Job(job)) = leases.rows.rows.get_mut(&RowKey::Job(job_id(number))) {
            match &mut job.place {
                Place::Ready { order: at } | Place::Wait { at, .. } => *at = *at + Span::from_millis(1),
                other => panic!("{other:?}"),
            }
        }
    }
    leases.restart();
    let mut rejected: Vec<_> = leases
        .take_effects()
        .into_iter()
        .filter_map(|effect| match effect {
            LeaseEffect::JobRejected { id, reason } => Some((id, reason)),
            _ => None,
        })
        .collect();
    rejected.sort_unstable();
    let why = "the place row is not where the job's row says";
    assert_eq!(rejected, [(job_id(2), why), (job_id(4), why)]);
    leases.pass(Span::from_secs(2));
    let granted: Vec<_> = leases.offer(&w, 9).iter().map(|grant| grant.job.id).collect();
    assert_eq!(granted, [job_id(1), job_id(3)]);
}

#[test]
fn f9_the_sweep_takes_up_nothing_that_a_load_leaves_out() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let waits = START + Span::from_secs(1);
    for item in [item(1, spec()), item_due(2, waits), item(3, spec()), item(4, spec())] {
        leases.create(item).unwrap();
    }
    for number in 1..=3 {
        if let Some(Row::Job(job)) = leases.rows.rows.get_mut(&RowKey::Job(job_id(number))) {
            Arc::make_mut(&mut job.spec).retry.attempt_count_max = 0;
        }
    }
    let lies_nowhere = |key: &RowKey| matches!(key, RowKey::Ready(row) if row.id == job_id(3));
    leases.rows.rows.retain(|key, _| !lies_nowhere(key));
    let before = leases.rows.rows.clone();
    leases.restart();
    let rejected = |leases: &mut Leases| -> Vec<_> {
        let effects = leases.take_effects();
        let repaired = effects
            .iter()
            .any(|effect| matches!(effect, LeaseEffect::JobRepaired { .. }));
        assert!(!repaired, "{effects:?}");
        let rejected = effects.into_iter().filter_map(|effect| match effect {
            LeaseEffect::JobRejected { id, .. } => Some(id),
            _ => None,
        });
        rejected.collect()
    };
    assert_eq!(
        rejected(&mut leases).len(),
        2,
        "the loads tell of those that they come to"
    );
    leases.pass(Span::from_millis(SWEEP_PAUSE_MS + 1));
    assert_eq!(
        rejected(&mut leases),
        [job_id(3)],
        "the walk tells of what no load comes to"
    );
    leases.pass(Span::from_secs(2));
    let granted: Vec<_> = leases.offer(&w, 9).iter().map(|grant| grant.job.id).collect();
    assert_eq!(granted, [job_id(4)]);
    for number in 1..=3 {
        let key = RowKey::Job(job_id(number));
        assert_eq!(
            leases.rows.rows.get(&key),
            before.get(&key),
            "nothing is written over it"
        );
    }
}
