//! Histories about low-water marks: F7.

use crate::support::lease_harness::{Leases, START};
use crate::support::make::{item, item_due, job_id, name, spec, succeeded, worker};
use fencepost_core::lease_manager::io::{LeaseEffect, LeaseInput};
use fencepost_core::limits::{MARK_INTERVAL, READY_WINDOW_JOBS};
use fencepost_core::row::{MarkRange, Row, RowKey};
use fencepost_core::time::Span;

/// Enough jobs pass for the marks of both ranges to be stored.
fn with_marks() -> Leases {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let rounds = u64::from(MARK_INTERVAL) / 500 + 2;
    for round in 0..rounds {
        let items = (0..500).map(|n| item(round * 500 + n, spec())).collect();
        assert!(leases.create_all(items).iter().all(Result::is_ok));
        leases.jump(Span::from_millis(1));
        for grant in leases.offer(&w, 500) {
            leases.report(&w, grant.job.id, grant.token, succeeded());
        }
    }
    leases
}

#[test]
fn f7_the_mark_is_a_head_start_that_falls_with_every_insert_below_it() {
    let (mut leases, w) = (with_marks(), worker("a", 1));
    let range = MarkRange::Ready(name("default"), name("default"));
    let mark = |leases: &Leases| match leases.rows.rows.get(&RowKey::Mark(leases.facts.shard, range.clone())) {
        Some(Row::Mark(row)) => Some(row.from.clone()),
        _ => None,
    };
    let stored = mark(&leases).expect("it was stored");
    let mut urgent = spec();
    urgent.priority = 0;
    leases.create(item(900_001, urgent)).unwrap();
    assert!(
        mark(&leases).unwrap() < stored,
        "the insert lowered it in the same step"
    );
    leases.restart();
    assert_eq!(
        leases.offer(&w, 9).len(),
        1,
        "the next owner's scan does not begin above it"
    );
    leases.check();
}

#[test]
fn f7_the_next_owner_knows_the_mark_that_it_must_lower() {
    let mut leases = with_marks();
    leases.restart();
    let mut urgent = spec();
    urgent.priority = 0;
    leases.create(item(900_001, urgent)).unwrap();
    leases.restart();
    assert_eq!(leases.offer(&worker("a", 1), 9).len(), 1);
}

#[test]
fn f7_the_wait_ranges_mark_falls_too() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    for round in 0..10 {
        let due = START + Span::from_secs(1_000 + round);
        let items = (0..500).map(|n| item_due(round * 500 + n, due)).collect();
        leases.create_all(items);
        leases.now.store = due;
        leases.step(LeaseInput::Tick);
        for grant in leases.offer(&w, 500) {
            leases.report(&w, grant.job.id, grant.token, succeeded());
        }
    }
    assert!(
        leases
            .rows
            .rows
            .contains_key(&RowKey::Mark(leases.facts.shard, MarkRange::Wait))
    );
    leases.now.store = START;
    leases.create(item_due(900_001, START + Span::from_secs(1))).unwrap();
    leases.restart();
    leases.pass(Span::from_secs(2));
    assert_eq!(leases.offer(&w, 9).len(), 1);
}

#[test]
fn f7_the_mark_does_not_pass_a_due_row_that_nobody_has_fetched() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let mut lonely = spec();
    lonely.queue = name("lonely");
    let mut first = item(1, lonely);
    first.due_at = Some(START + Span::from_secs(1));
    leases.create(first).unwrap();
    leases.pass(Span::from_secs(2));
    for round in 1..12 {
        let due = START + Span::from_secs(100 * round);
        leases.create_all((0..500).map(|n| item_due(round * 1_000 + n, due)).collect());
        leases.now.store = due;
        leases.step(LeaseInput::Tick);
        for grant in leases.offer_as(&w, 10_000 + round, 500, &["default"]) {
            leases.report(&w, grant.job.id, grant.token, succeeded());
        }
    }
    assert!(!leases.rows.marks().is_empty(), "marks were stored");
    leases.check();
    leases.restart();
    leases.step(LeaseInput::Tick);
    assert_eq!(leases.offer(&w, 9)[0].job.id, job_id(1));
}

#[test]
fn f7_the_mark_does_not_pass_a_horizon() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let interval = u64::from(MARK_INTERVAL);
    let count = (READY_WINDOW_JOBS as u64 + interval).next_multiple_of(1_000) + 1_000;
    for start in (0..count).step_by(1_000) {
        leases.create_all((start..start + 1_000).map(|n| item(n, spec())).collect());
        leases.jump(Span::from_millis(1));
    }
    leases.hold_loads = true;
    for _ in 0..20 {
        for grant in leases.offer(&w, 500) {
            leases.report(&w, grant.job.id, grant.token, succeeded());
        }
    }
    assert!(
        leases
            .loads
            .iter()
            .any(|load| matches!(load, LeaseEffect::LoadReady { .. }))
    );
    for number in (count - interval..count).rev() {
        leases.cancel(number).unwrap();
        leases.take_effects();
    }
    assert!(!leases.rows.marks().is_empty(), "marks were stored");
    leases.check();
}
