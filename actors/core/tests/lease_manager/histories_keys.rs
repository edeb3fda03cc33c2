//! Histories about keys and retention: F26, F33.

use crate::support::lease_harness::Leases;
use crate::support::make::{failed, item, item_due, job_id, spec, succeeded, worker};
use fencepost_core::ids::Slot;
use fencepost_core::job::{Delivery, JobState, KEY_KEPT};
use fencepost_core::lease_manager::io::{CreateItem, LeaseEffect};
use fencepost_core::limits::{JOB_RETENTION_DAYS, KEY_RETENTION_HOURS};
use fencepost_core::refusal::RefusalKind;
use fencepost_core::row::RowKey;
use fencepost_core::time::{Span, StoreTime};
use std::sync::Arc;

const HOUR: u64 = 3_600;

fn keyed(number: u64) -> CreateItem {
    let mut item = item(number, spec());
    item.key = Some(("K".into(), [1; 32]));
    item
}

fn key_exists(leases: &Leases) -> bool {
    let spec = spec();
    leases
        .rows
        .rows
        .contains_key(&RowKey::Key(Slot::of_key(&spec.tenant, "K"), spec.tenant, "K".into()))
}

fn run(leases: &mut Leases) {
    let w = worker("a", 1);
    for grant in leases.offer(&w, 9) {
        leases.report(&w, grant.job.id, grant.token, succeeded());
    }
}

/// The calendar moves on, and the sweep with it.
fn hours(leases: &mut Leases, hours: u64) {
    leases.now.store = leases.now.store + Span::from_secs(hours * HOUR);
    leases.pass(Span::from_secs(6));
}

#[test]
fn f26_after_its_retention_a_key_is_new_and_makes_a_new_id() {
    let mut leases = Leases::new();
    leases.create(keyed(1)).unwrap();
    run(&mut leases);
    leases.now.store = leases.now.store + Span::from_secs(KEY_RETENTION_HOURS * HOUR - 1);
    assert_eq!(leases.create(keyed(2)).unwrap().id, job_id(1), "not before");
    leases.now.store = leases.now.store + Span::from_secs(1);
    let made = leases.create(keyed(2)).unwrap();
    assert_eq!((made.id, made.replayed), (job_id(2), false));
    leases.check();
}

#[test]
fn f26_retention_counts_from_the_jobs_end() {
    let mut leases = Leases::new();
    let mut far = keyed(1);
    far.due_at = Some(leases.now.store + Span::from_secs(10 * 365 * 24 * HOUR));
    leases.create(far).unwrap();
    hours(&mut leases, 5 * 365 * 24);
    assert!(leases.create(keyed(2)).unwrap().replayed, "no twin while it waits");
}

#[test]
fn f26_the_same_id_sent_again_is_a_replay() {
    let mut leases = Leases::new();
    leases.create(item(1, spec())).unwrap();
    assert!(leases.create(item(1, spec())).unwrap().replayed);
    run(&mut leases);
    assert!(leases.create(item(1, spec())).unwrap().replayed);
    let twice = leases.create_all(vec![item(2, spec()), item(2, spec())]);
    assert!(!twice[0].as_ref().unwrap().replayed && twice[1].as_ref().unwrap().replayed);
    leases.check();
}

#[test]
fn f26_no_key_is_given_up_in_clock_doubt() {
    let mut leases = Leases::new();
    leases.create(keyed(1)).unwrap();
    run(&mut leases);
    leases.now.doubt = true;
    hours(&mut leases, 999);
    assert!(key_exists(&leases) && leases.create(keyed(2)).unwrap().replayed);
}

#[test]
fn f33_old_rows_go_paced_and_a_key_goes_before_its_job() {
    let mut leases = Leases::new();
    leases.create(keyed(1)).unwrap();
    run(&mut leases);
    hours(&mut leases, KEY_RETENTION_HOURS + 1);
    assert!(!key_exists(&leases) && leases.rows.job(job_id(1)).is_some());
    hours(&mut leases, JOB_RETENTION_DAYS * 24);
    assert_eq!(leases.rows.job(job_id(1)), None);
    let purged = leases
        .take_effects()
        .iter()
        .any(|e| matches!(e, LeaseEffect::JobPurged { .. }));
    assert!(purged, "counted");
}

#[test]
fn f33_a_key_that_a_newer_job_took_over_stays_when_the_old_job_goes() {
    let mut leases = Leases::new();
    leases.create(keyed(1)).unwrap();
    run(&mut leases);
    leases.now.store = leases.now.store + Span::from_secs((KEY_RETENTION_HOURS + 1) * HOUR);
    leases.create(keyed(2)).unwrap();
    hours(&mut leases, JOB_RETENTION_DAYS * 24);
    assert!(leases.rows.job(job_id(1)).is_none() && key_exists(&leases));
    assert_eq!(leases.create(keyed(3)).unwrap().id, job_id(2));
}

#[test]
fn f33_nothing_unfinished_is_ever_purged_and_dead_letters_live_longer() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let mut uncertain = spec();
    uncertain.delivery = Delivery::AtMostOnce;
    leases.create(item(1, uncertain)).unwrap();
    let mut dead = spec();
    dead.retry.attempt_count_max = 1;
    leases.create(item(2, dead)).unwrap();
    for grant in leases.offer(&w, 9) {
        leases.begin(&w, grant.job.id, grant.token);
        leases.report(&w, grant.job.id, grant.token, failed());
    }
    let mut waiting = item(3, spec());
    waiting.due_at = Some(StoreTime::MAX);
    leases.create(waiting).unwrap();
    leases.create(item(4, spec())).unwrap();
    hours(&mut leases, 29 * 24);
    let states: Vec<_> = (1..=4).map(|number| leases.state(number)).collect();
    assert_eq!(
        states,
        [JobState::Uncertain, JobState::Dead, JobState::Waiting, JobState::Ready]
    );
    hours(&mut leases, 400 * 24);
    assert_eq!(leases.rows.job(job_id(2)), None, "a dead letter is given up for good");
    assert_eq!(leases.rows.places(job_id(2)).len(), 0);
    let kept: Vec<_> = leases.rows.jobs().iter().map(|job| job.id).collect();
    assert_eq!(kept, [job_id(1), job_id(3), job_id(4)]);
    leases.check();
}

#[test]
fn f33_many_old_jobs_go_page_by_page() {
    let mut leases = Leases::new();
    for round in 0..3 {
        leases.create_all((0..400).map(|n| item(round * 400 + n, spec())).collect());
    }
    let w = worker("a", 1);
    for _ in 0..3 {
        for grant in leases.offer(&w, 1_000) {
            leases.report(&w, grant.job.id, grant.token, succeeded());
        }
    }
    leases.now.store = leases.now.store + Span::from_secs((JOB_RETENTION_DAYS * 24 + 1) * HOUR);
    leases.pass(Span::from_millis(5_001));
    let left = leases.rows.jobs().len();
    assert!(left > 800 && left < 1_200, "a page at a time: {left}");
    leases.pass(Span::from_millis(1_000));
    assert_eq!(leases.rows.jobs().len(), 0, "and faster while there is much to do");
}

#[test]
fn f26_a_creation_sent_again_under_its_id_is_the_same_job_and_another_under_it_is_refused() {
    let mut leases = Leases::new();
    let due = leases.now.store + Span::from_secs(60);
    assert!(!leases.create(item(1, spec())).unwrap().replayed);
    assert!(!leases.create(item_due(2, due)).unwrap().replayed);
    leases.pass(Span::from_secs(5));
    for again in [item(1, spec()), item_due(2, due)] {
        assert!(leases.create(again).unwrap().replayed);
    }
    let mut other = spec();
    other.priority = 1;
    for wrong in [item(1, other), item_due(1, due), item(2, spec())] {
        let refused = leases.create(wrong).unwrap_err();
        assert_eq!((refused.kind, refused.code), (RefusalKind::Conflict, "job_id_taken"));
    }
    leases.check();
}

#[test]
fn f26_twice_in_one_batch_an_id_makes_one_job_or_is_refused() {
    let mut leases = Leases::new();
    let mut other = spec();
    other.priority = 1;
    let answers = leases.create_all(vec![item(1, spec()), item(1, spec()), item(1, other)]);
    let told: Vec<_> = answers
        .into_iter()
        .map(|answer| answer.map(|made| made.replayed).map_err(|refused| refused.code))
        .collect();
    assert_eq!(told, [Ok(false), Ok(true), Err("job_id_taken")]);
}

/// Ends a keyed job under an owner who keeps keys for so long.
fn ended_under(leases: &mut Leases, kept: Span) {
    leases.facts.key_kept = kept;
    leases.restart();
    leases.create(keyed(1)).unwrap();
    run(leases);
}

#[test]
fn f26_a_key_is_kept_for_as_long_as_was_said_when_its_job_ended() {
    let (short, long) = (Span::from_secs(HOUR), Span::from_secs(48 * HOUR));
    for (kept, later) in [(short, long), (long, short), (short, KEY_KEPT), (KEY_KEPT, short)] {
        let mut leases = Leases::new();
        ended_under(&mut leases, kept);
        leases.facts.key_kept = later;
        leases.restart();
        leases.now.store = leases.now.store + kept;
        leases.now.store.0 -= 1;
        assert!(leases.create(keyed(2)).unwrap().replayed, "not before {kept:?}");
        leases.now.store.0 += 1;
        assert_eq!(leases.create(keyed(2)).unwrap().id, job_id(2), "then a new job");
        leases.check();
    }
}

#[test]
fn f33_the_sweep_takes_a_key_when_its_own_time_is_over() {
    for (kept, hours_kept) in [(1, 1), (48, 48)] {
        let mut leases = Leases::new();
        ended_under(&mut leases, Span::from_secs(kept * HOUR));
        hours(&mut leases, hours_kept - 1);
        assert!(key_exists(&leases));
        hours(&mut leases, 1);
        assert!(!key_exists(&leases) && leases.rows.job(job_id(1)).is_some());
    }
}

#[test]
fn f26_a_dead_job_that_is_tried_again_gets_the_promise_of_its_last_end() {
    let mut leases = Leases::new();
    leases.facts.key_kept = Span::from_secs(HOUR);
    leases.restart();
    let mut item = keyed(1);
    Arc::make_mut(&mut item.spec).retry.attempt_count_max = 1;
    leases.create(item).unwrap();
    let w = worker("a", 1);
    for grant in leases.offer(&w, 9) {
        leases.report(&w, grant.job.id, grant.token, failed());
    }
    assert_eq!(
        leases.rows.job(job_id(1)).unwrap().key_kept,
        Some(Span::from_secs(HOUR))
    );
    leases.facts.key_kept = KEY_KEPT;
    leases.restart();
    leases.retry_dead(1).unwrap();
    assert_eq!(leases.rows.job(job_id(1)).unwrap().key_kept, None);
    run(&mut leases);
    assert_eq!(leases.rows.job(job_id(1)).unwrap().key_kept, None, "the usual day");
}
