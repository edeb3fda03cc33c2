//! Offers that wait at a shard: granted in the step that makes work, never a promise.

use crate::support::lease_harness::Leases;
use crate::support::make::{item, job_id, name, spec, succeeded, worker};
use fencepost_core::ids::{OfferId, WorkerId};
use fencepost_core::job::{JobSpec, JobState};
use fencepost_core::lease_manager::io::{Grant, LeaseEffect, LeaseInput};
use fencepost_core::target::Target;
use fencepost_core::time::{Monotonic, Span};

/// Lets an offer wait; answers whether it was kept.
fn wait(leases: &mut Leases, worker: &WorkerId, offer: u64, slots: u32, queues: &[&str]) -> bool {
    leases.take_effects();
    leases.step(LeaseInput::Offer {
        worker: worker.clone(),
        offer: OfferId(offer),
        slots,
        queues: queues.iter().map(|queue| name(queue)).collect(),
        commands: true,
        waits: true,
        apart: 0,
    });
    grants(leases).is_empty()
}

/// Answers to offers since last looked at: number, when it came, what it was given.
fn grants(leases: &mut Leases) -> Vec<(u64, Monotonic, Vec<Grant>)> {
    let answered = |effect| match effect {
        LeaseEffect::SendGrants {
            offer,
            received_at,
            grants,
            ..
        } => Some((offer.0, received_at, grants)),
        _ => None,
    };
    leases.take_effects().into_iter().filter_map(answered).collect()
}

#[test]
fn what_becomes_due_is_granted_in_the_same_step_and_never_lies_in_the_ready_range() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    assert!(wait(&mut leases, &w, 1, 4, &[]));
    leases.create(item(1, spec())).unwrap();
    let answered = grants(&mut leases);
    assert_eq!((answered.len(), answered[0].0, answered[0].2.len()), (1, 1, 1));
    assert_eq!(leases.place(1), Some("leased"));
    assert_eq!(leases.rows.writes[&job_id(1)], 2, "job and lease");
    let token = answered[0].2[0].token;
    leases.report(&w, job_id(1), token, succeeded());
    assert_eq!(leases.rows.writes[&job_id(1)], 4, "and at its end lease and job");
    leases.check();
}

#[test]
fn what_finds_no_room_gets_its_row_at_the_end_of_the_step() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    assert!(wait(&mut leases, &w, 1, 1, &[]));
    leases.create_all((1..=3).map(|number| item(number, spec())).collect());
    let answered = grants(&mut leases);
    assert_eq!(answered[0].2.len(), 1);
    let ready = (1..=3).filter(|number| leases.place(*number) == Some("ready")).count();
    assert_eq!(ready, 2, "both of the others are found by a later owner");
    leases.restart();
    assert_eq!(leases.offer(&w, 8).len(), 2);
    leases.check();
}

#[test]
fn f13_the_wait_of_an_offer_counts_from_when_it_came() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let came = leases.now.mono;
    assert!(wait(&mut leases, &w, 1, 1, &[]));
    leases.pass(Span::from_secs(4));
    leases.create(item(1, spec())).unwrap();
    let answered = grants(&mut leases);
    assert_eq!(answered[0].1, came, "the shell tells the worker how long it waited");
}

#[test]
fn f08_an_offer_that_is_too_old_is_not_trusted_with_work() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    assert!(wait(&mut leases, &w, 1, 1, &[]));
    leases.pass(Span::from_secs(11));
    leases.create(item(1, spec())).unwrap();
    let effects = leases.take_effects();
    assert!(
        !effects
            .iter()
            .any(|effect| matches!(effect, LeaseEffect::SendGrants { .. }))
    );
    assert!(
        effects.iter().any(|effect| matches!(effect, LeaseEffect::HintReady)),
        "whoever is there is hinted"
    );
    assert_eq!((leases.state(1), leases.place(1)), (JobState::Ready, Some("ready")));
    leases.check();
}

#[test]
fn f14_asking_after_an_offer_that_waits_returns_its_grants_or_ends_it() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    assert!(wait(&mut leases, &w, 1, 1, &[]));
    leases.create(item(1, spec())).unwrap();
    let first = grants(&mut leases).remove(0).2;
    let again = leases.offer_as(&w, 1, 0, &[]);
    assert_eq!(again[0].token, first[0].token, "the same grant, not another");
    assert!(wait(&mut leases, &w, 2, 1, &[]));
    assert!(leases.offer_as(&w, 2, 0, &[]).is_empty());
    leases.create(item(2, spec())).unwrap();
    assert_eq!(
        leases.place(2),
        Some("ready"),
        "an offer that was called back gets nothing"
    );
    leases.check();
}

fn remote_spec(queue: &str) -> JobSpec {
    JobSpec {
        target: Target::Remote(name("resize")),
        queue: name(queue),
        ..spec()
    }
}

#[test]
fn remote_jobs_are_granted_only_to_offers_that_name_their_line() {
    let (mut leases, node, remote) = (Leases::new(), worker("a", 1), worker("b", 1));
    leases.create_all(vec![
        item(1, remote_spec("a")),
        item(2, remote_spec("b")),
        item(
            3,
            JobSpec {
                queue: name("b"),
                ..spec()
            },
        ),
    ]);
    let own = leases.offer(&node, 9);
    assert_eq!(own.iter().map(|grant| grant.job.id).collect::<Vec<_>>(), [job_id(3)]);
    leases.report(&node, job_id(3), own[0].token, succeeded());
    assert!(leases.offer(&node, 9).is_empty(), "what is left are remote jobs");
    leases.restart();
    assert!(leases.offer_as(&remote, 101, 9, &["~c"]).is_empty());
    let granted = leases.offer_as(&remote, 102, 9, &["~b", "~c"]);
    assert_eq!(
        granted.iter().map(|grant| grant.job.id).collect::<Vec<_>>(),
        [job_id(2)]
    );
    assert_eq!(leases.place(1), Some("ready"));
    // One whose worker was lost is a node's no more than before, and waits for no place of its own.
    (0..80).for_each(|_| leases.pass(Span::from_secs(1)));
    assert!(leases.offer(&node, 9).is_empty());
    let apart = leases.offer_as(&remote, 103, 9, &["~b"]);
    assert_eq!(apart.iter().map(|grant| grant.job.id).collect::<Vec<_>>(), [job_id(2)]);
    leases.check();
}

#[test]
fn a_remote_job_that_becomes_ready_serves_the_claim_that_waits_and_no_node() {
    let (mut leases, node, remote) = (Leases::new(), worker("a", 1), worker("b", 1));
    assert!(wait(&mut leases, &node, 1, 4, &[]));
    leases.take_effects();
    leases.step(LeaseInput::Offer {
        worker: remote.clone(),
        offer: OfferId(1),
        slots: 1,
        queues: vec![name("a").remote_line()],
        commands: true,
        waits: true,
        apart: 0,
    });
    leases.create(item(1, remote_spec("a"))).unwrap();
    let answered = grants(&mut leases);
    assert_eq!(
        (answered.len(), answered[0].2.len()),
        (1, 1),
        "the claim's offer, not the node's"
    );
    let row = leases.rows.leased().into_iter().next().unwrap();
    assert_eq!(row.worker, remote);
    leases.check();
}

#[test]
fn waiting_offers_are_served_in_turn_and_only_for_their_queues() {
    let mut leases = Leases::new();
    let (a, b, picky) = (worker("a", 1), worker("b", 1), worker("c", 1));
    let mut served = Vec::new();
    for round in 1..=4 {
        assert!(wait(&mut leases, &a, round, 1, &[]) || round > 1);
        assert!(wait(&mut leases, &b, round, 1, &[]) || round > 1);
        assert!(wait(&mut leases, &picky, round, 1, &["other"]));
        leases.create(item(round, spec())).unwrap();
        let row = leases
            .rows
            .leased()
            .into_iter()
            .find(|row| row.id == job_id(round))
            .unwrap();
        served.push(row.worker.clone());
    }
    assert_eq!(served.iter().filter(|worker| **worker == a).count(), 2);
    assert_eq!(served.iter().filter(|worker| **worker == b).count(), 2);
    leases.check();
}

#[test]
fn f14_a_worker_that_cannot_be_reached_is_granted_nothing_and_keeps_its_leases() {
    let (mut leases, gone, other) = (Leases::new(), worker("a", 1), worker("b", 1));
    leases.create(item(1, spec())).unwrap();
    assert_eq!(leases.offer(&gone, 1).len(), 1);
    assert!(wait(&mut leases, &gone, 50, 4, &[]));
    leases.step(LeaseInput::WorkerUnreached(gone.clone()));
    leases.create(item(2, spec())).unwrap();
    assert!(grants(&mut leases).is_empty(), "its offer ended with the way to it");
    assert_eq!(leases.place(2), Some("ready"));
    assert_eq!(leases.offer(&other, 4).len(), 1);
    assert_eq!(leases.place(1), Some("leased"), "the end of a connection ends no lease");
    leases.step(LeaseInput::WorkerUnreached(gone));
    leases.check();
}
