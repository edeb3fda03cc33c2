//! Histories of PROTOCOL section 2 about leases: F12, F13, F14, F16, F17.

use crate::support::lease_harness::Leases;
use crate::support::make::{failed, item, job_id, spec, start, succeeded, worker};
use fencepost_core::ids::OfferId;
use fencepost_core::job::{AttemptResult, JobState};
use fencepost_core::lease_manager::io::{LeaseEffect, LeaseInput, Recorded};
use fencepost_core::limits::WORKERS_REMEMBERED_MAX;
use fencepost_core::time::Span;

#[test]
fn f12_tokens_grow_over_all_grants_of_a_scope_and_across_owners() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let mut last = fencepost_core::ids::Token::default();
    for round in 0..4 {
        for number in 0..5 {
            leases.create(item(round * 10 + number, spec())).unwrap();
        }
        for grant in leases.offer(&w, 5) {
            assert!(grant.token > last && grant.token.to_bytes() > last.to_bytes());
            last = grant.token;
            leases.report(&w, grant.job.id, grant.token, succeeded());
        }
        leases.restart();
    }
}

#[test]
fn f13_a_lease_counts_from_the_release_of_its_grant() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.create(item(1, spec())).unwrap();
    leases.release = false;
    leases.offer_as(&w, 7, 1, &[]);
    leases.pass(Span::from_secs(300));
    assert_eq!(leases.place(1), Some("leased"), "a slow sync is not a lost worker");
    let (worker, offer) = (w.clone(), OfferId(7));
    leases.step(LeaseInput::GrantsReleased { worker, offer });
    leases.pass(Span::from_secs(29));
    assert_eq!(leases.place(1), Some("leased"));
    leases.pass(Span::from_secs(3));
    assert_eq!(leases.state(1), JobState::Waiting, "and a lost worker is one");
    leases.check();
}

#[test]
fn f13_a_grant_of_a_worker_that_is_forgotten_before_it_has_left_does_not_hold_its_job_for_ever() {
    let mut leases = Leases::new();
    leases.release = false;
    for number in 1..=WORKERS_REMEMBERED_MAX as u64 + 1 {
        leases.create(item(number, spec())).unwrap();
        leases.offer_as(&worker("a", number), 1, 1, &[]);
    }
    assert_eq!(leases.place(1), Some("leased"));
    let (worker, offer) = (worker("a", 1), OfferId(1));
    leases.step(LeaseInput::GrantsReleased { worker, offer });
    leases.pass(Span::from_secs(33));
    assert_eq!(leases.state(1), JobState::Waiting, "a lost worker");
    leases.check();
}

#[test]
fn f14_a_repeated_offer_gets_the_same_grants_with_the_time_left() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    for number in 1..=3 {
        leases.create(item(number, spec())).unwrap();
    }
    let first = leases.offer_as(&w, 7, 2, &[]);
    leases.pass(Span::from_secs(10));
    let again = leases.offer_as(&w, 7, 2, &[]);
    let tokens = |grants: &[fencepost_core::lease_manager::io::Grant]| -> Vec<_> {
        grants
            .iter()
            .map(|grant| (grant.job.id, grant.token, grant.attempt))
            .collect()
    };
    assert_eq!(tokens(&first), tokens(&again));
    assert_eq!(again[0].length, Span::from_secs(20));
    leases.report(&w, first[0].job.id, first[0].token, succeeded());
    assert_eq!(
        tokens(&leases.offer_as(&w, 7, 2, &[])),
        tokens(&first[1..]),
        "only what is current"
    );
    assert_eq!(leases.place(3), Some("ready"), "a repetition takes nothing more");
    leases.check();
}

#[test]
fn f14_a_grant_that_found_no_way_to_its_worker_is_taken_back_unless_it_had_left_before() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let mut once = spec();
    once.retry.attempt_count_max = 1;
    leases.create(item(1, once)).unwrap();
    leases.release = false;
    let unsent = leases.offer_as(&w, 7, 1, &[]).remove(0);
    let key = (unsent.job.id, unsent.token);
    leases.step(LeaseInput::GrantsUnsent(vec![key]));
    assert_eq!(leases.place(1), Some("ready"), "and it costs no attempt");
    assert!(leases.offer_as(&w, 7, 1, &[]).is_empty(), "forsworn for that offer");
    leases.release = true;
    let grant = leases.offer(&w, 1).remove(0);
    assert_eq!(grant.attempt, 2);
    let key = (grant.job.id, grant.token);
    leases.step(LeaseInput::GrantsUnsent(vec![key]));
    assert_eq!(
        leases.place(1),
        Some("leased"),
        "a repeated answer was lost, not the grant"
    );
    assert_eq!(leases.report(&w, key.0, key.1, succeeded()), Recorded::Recorded);
    assert_eq!(leases.state(1), JobState::Succeeded);
    leases.check();
}

#[test]
fn f14_a_handed_back_attempt_is_refunded_and_its_number_burnt() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let mut once = spec();
    once.retry.attempt_count_max = 1;
    leases.create(item(1, once)).unwrap();
    let grant = leases.offer(&w, 1).remove(0);
    assert_eq!(leases.hand_back(&w, grant.job.id, grant.token), Recorded::Recorded);
    assert_eq!(
        leases.hand_back(&w, grant.job.id, grant.token),
        Recorded::Recorded,
        "said twice"
    );
    let job = leases.job(1);
    assert_eq!((job.charged, job.refunded, job.attempt_next), (0, 1, 2));
    assert_eq!(
        (job.state, job.attempts[0].result),
        (JobState::Ready, AttemptResult::HandedBack)
    );
    leases.check();
    let second = leases.offer(&w, 1).remove(0);
    assert_eq!(second.attempt, 2);
    leases.report(&w, second.job.id, second.token, succeeded());
    assert_eq!(leases.state(1), JobState::Succeeded, "its one attempt was still there");
}

#[test]
fn f14_a_new_owner_asks_about_grants_that_may_never_have_arrived() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let mut once = spec();
    once.retry.attempt_count_max = 1;
    leases.create(item(1, once.clone())).unwrap();
    leases.create(item(2, once)).unwrap();
    let grants = leases.offer(&w, 2);
    leases.restart();
    leases.take_effects();
    leases.heartbeat(&w, &[(grants[0].job.id, grants[0].token)]);
    let asked = leases.take_effects().into_iter().find_map(|effect| match effect {
        LeaseEffect::SendReconcile { items, .. } => Some(items),
        _ => None,
    });
    assert_eq!(
        asked.unwrap(),
        [(grants[1].job.id, grants[1].token)],
        "only what it did not name"
    );
    leases.hand_back(&w, grants[1].job.id, grants[1].token);
    leases.heartbeat(&w, &[]);
    assert!(
        !leases
            .take_effects()
            .iter()
            .any(|e| matches!(e, LeaseEffect::SendReconcile { .. })),
        "asked once"
    );
    assert_eq!(
        leases.offer(&w, 2).len(),
        1,
        "a deploy does not drop a job of one attempt"
    );
    leases.check();
}

/// Leases of two minutes, so that halving shows above two heartbeats.
fn long_lease() -> (
    Leases,
    fencepost_core::ids::WorkerId,
    fencepost_core::lease_manager::io::Grant,
) {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.facts.lease = Span::from_secs(120);
    leases.restart();
    leases.create(item(1, spec())).unwrap();
    let grant = leases.offer(&w, 1).remove(0);
    (leases, w, grant)
}

/// Seconds until the reap.
fn reaped_after(leases: &mut Leases) -> u64 {
    for second in 0..1_000 {
        if leases.place(1) != Some("leased") {
            return second;
        }
        leases.pass(Span::from_secs(1));
    }
    panic!("never reaped");
}

#[test]
fn f16_a_crash_looping_owner_does_not_keep_the_dead_alive() {
    for (starts, seconds) in [(1, 120), (2, 60), (3, 30), (4, 16), (9, 16)] {
        let (mut leases, _, _) = long_lease();
        for _ in 0..starts {
            leases.restart();
        }
        assert_eq!(reaped_after(&mut leases), seconds, "after {starts} starts");
    }
}

#[test]
fn f16_a_heartbeat_marks_a_lease_seen_once_per_epoch() {
    let (mut leases, w, grant) = long_lease();
    let held = [(grant.job.id, grant.token)];
    let before = leases.rows.writes[&job_id(1)];
    leases.heartbeat(&w, &held);
    assert_eq!(
        leases.rows.writes[&job_id(1)],
        before,
        "granted in this epoch: no write"
    );
    for _ in 0..3 {
        leases.restart();
        for _ in 0..5 {
            leases.pass(Span::from_secs(8));
            leases.heartbeat(&w, &held);
        }
    }
    assert_eq!(leases.rows.writes[&job_id(1)], before + 3);
    leases.restart();
    assert_eq!(
        reaped_after(&mut leases),
        120,
        "seen by the last owner: a full length again"
    );
}

#[test]
fn f17_the_owners_own_absence_reaps_nobody() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.create(item(1, spec())).unwrap();
    let grant = leases.offer(&w, 1).remove(0);
    leases.pass(Span::from_secs(20));
    leases.jump(Span::from_secs(60));
    leases.step(LeaseInput::Tick);
    assert_eq!(
        leases.place(1),
        Some("leased"),
        "timers fire before the queued heartbeats are read"
    );
    assert_eq!(leases.heartbeat(&w, &[(grant.job.id, grant.token)]).0.len(), 1);
    leases.jump(Span::from_secs(600));
    leases.step(LeaseInput::Tick);
    leases.pass(Span::from_secs(7));
    assert_eq!(leases.place(1), Some("leased"));
    leases.pass(Span::from_secs(30));
    assert_eq!(
        leases.state(1),
        JobState::Waiting,
        "a dead worker is found all the same"
    );
}

#[test]
fn f17_a_reap_needs_a_full_heartbeat_of_being_awake() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.create(item(1, spec())).unwrap();
    leases.offer(&w, 1);
    leases.pass(Span::from_millis(29_990));
    leases.jump(Span::from_secs(9));
    leases.step(LeaseInput::Tick);
    leases.pass(Span::from_secs(7));
    assert_eq!(
        leases.place(1),
        Some("leased"),
        "its end passed, but nobody could be heard"
    );
    leases.pass(Span::from_secs(1));
    assert_eq!(leases.state(1), JobState::Waiting);
}

#[test]
fn f14_what_never_started_is_not_charged_for_an_outage_of_the_store() {
    let (mut leases, w, other) = (Leases::new(), worker("a", 1), worker("b", 1));
    let mut single = spec();
    single.retry.attempt_count_max = 1;
    leases.create(item(1, single)).unwrap();
    leases.create(item(2, spec())).unwrap();
    let grant = leases.offer(&w, 1).remove(0);
    let busy = leases.offer(&other, 1).remove(0);
    // The store is away: only heartbeats are stepped, and the hand-back cannot be heard.
    for _ in 0..30 {
        leases.jump(Span::from_secs(4));
        leases.heartbeat(&other, &[(busy.job.id, busy.token)]);
    }
    leases.machine.came_back(leases.now.mono);
    leases.step(LeaseInput::Tick);
    leases.pass(Span::from_secs(5));
    assert_eq!(leases.hand_back(&w, grant.job.id, grant.token), Recorded::Recorded);
    let job = leases.job(1);
    assert_eq!((job.charged, job.refunded), (0, 1));
    assert_eq!(leases.offer(&w, 1).len(), 1, "its one attempt is still to come");
    leases.check();
}

#[test]
fn workers_of_an_earlier_start_of_this_node_are_reaped_at_the_first_tick() {
    let mut leases = Leases::new();
    for number in 1..=2 {
        leases.create(item(number, spec())).unwrap();
    }
    leases.offer(&worker("here", 1), 1);
    leases.offer(&worker("there", 1), 1);
    leases.dead_node = Some(start("here", 2));
    leases.restart();
    leases.step(LeaseInput::Tick);
    assert_eq!((leases.state(1), leases.place(2)), (JobState::Waiting, Some("leased")));
    assert_eq!(leases.job(1).reason.as_deref(), Some("worker lost"));
    leases.check();
}

#[test]
fn a_worker_cannot_renew_or_begin_what_another_holds() {
    let (mut leases, w, thief) = (Leases::new(), worker("a", 1), worker("b", 1));
    leases.create(item(1, spec())).unwrap();
    let grant = leases.offer(&w, 1).remove(0);
    assert_eq!(leases.heartbeat(&thief, &[(grant.job.id, grant.token)]).1.len(), 1);
    assert!(!leases.begin(&thief, grant.job.id, grant.token));
    leases.report(&w, grant.job.id, grant.token, failed());
    assert!(!leases.begin(&w, grant.job.id, grant.token));
}
