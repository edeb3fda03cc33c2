//! Histories about windows and fairness: F30, F34.

use crate::support::lease_harness::{Leases, START};
use crate::support::make::{item, item_due, job_id, name, spec, succeeded, worker};
use fencepost_core::job::JobState;
use fencepost_core::lease_manager::io::{CancelAnswer, LeaseEffect, LeaseInput};
use fencepost_core::limits::{READY_WINDOW_JOBS, WAIT_WINDOW_JOBS};
use fencepost_core::time::Span;
use std::collections::BTreeSet;

fn create_ready(leases: &mut Leases, from: u64, count: u64, tenant: &str) {
    for start in (from..from + count).step_by(1_000) {
        let end = (start + 1_000).min(from + count);
        let items = (start..end).map(|number| {
            let mut spec = spec();
            spec.tenant = name(tenant);
            item(number, spec)
        });
        let answers = leases.create_all(items.collect());
        assert!(answers.iter().all(Result::is_ok));
        leases.jump(Span::from_millis(1));
    }
}

/// Grants and finishes everything; answers the order of ids.
fn drain(leases: &mut Leases) -> Vec<fencepost_core::ids::JobId> {
    let w = worker("drain", 1);
    let mut order = Vec::new();
    loop {
        let grants = leases.offer(&w, 500);
        if grants.is_empty() && !leases.more() {
            return order;
        }
        for grant in grants {
            order.push(grant.job.id);
            leases.report(&w, grant.job.id, grant.token, succeeded());
        }
        leases.machine.check();
        leases.take_effects();
    }
}

#[test]
fn f34_beyond_the_horizon_only_rows_exist_and_all_come_in_order() {
    let mut leases = Leases::new();
    let count = 3 * READY_WINDOW_JOBS as u64;
    create_ready(&mut leases, 0, count, "default");
    leases.machine.check();
    let order = drain(&mut leases);
    assert_eq!(order.len() as u64, count);
    assert_eq!(order.iter().collect::<BTreeSet<_>>().len() as u64, count, "each once");
    let sorted: Vec<_> = (0..count).map(job_id).collect();
    assert_eq!(order, sorted, "first come, first served");
}

#[test]
fn f34_an_insert_below_the_horizon_enters_and_is_granted_first() {
    let mut leases = Leases::new();
    create_ready(&mut leases, 0, 2 * READY_WINDOW_JOBS as u64, "default");
    let mut urgent = spec();
    urgent.priority = 0;
    leases.create(item(900_000, urgent)).unwrap();
    leases.machine.check();
    assert_eq!(leases.offer(&worker("a", 1), 1)[0].job.id, job_id(900_000));
}

#[test]
fn f34_large_payloads_shrink_the_window_and_lose_nothing() {
    let mut leases = Leases::new();
    for number in 0..30 {
        let mut large = spec();
        large.payload = fencepost_core::target::Payload {
            kind: fencepost_core::target::PayloadKind::Bytes,
            bytes: vec![1; 1 << 20].into(),
        };
        leases.create(item(number, large)).unwrap();
        leases.machine.check();
    }
    assert_eq!(drain(&mut leases).len(), 30);
}

#[test]
fn f34_the_wait_window_is_bounded_and_far_jobs_come_when_they_are_due() {
    let mut leases = Leases::new();
    let count = 2 * WAIT_WINDOW_JOBS as u64 + 500;
    let mut items: Vec<_> = (0..count)
        .map(|n| item_due(n, START + Span::from_secs(10 + n)))
        .collect();
    items.reverse();
    while !items.is_empty() {
        let rest = items.split_off(items.len().min(1_000));
        leases.create_all(std::mem::replace(&mut items, rest));
    }
    leases.check();
    leases.restart();
    leases.check();
    leases.now.store = START + Span::from_secs(9 + count / 2);
    leases.pass(Span::from_secs(1));
    assert_eq!(drain(&mut leases).len() as u64, count / 2 + 1);
    leases.now.store = START + Span::from_secs(10 + count);
    leases.pass(Span::from_secs(1));
    assert_eq!(drain(&mut leases).len() as u64, count - count / 2 - 1);
}

#[test]
fn f34_a_herd_at_one_instant_all_comes() {
    let mut leases = Leases::new();
    let due = START + Span::from_secs(60);
    let count = READY_WINDOW_JOBS as u64 + WAIT_WINDOW_JOBS as u64 + 1_000;
    for start in (0..count).step_by(1_000) {
        leases.create_all((start..(start + 1_000).min(count)).map(|n| item_due(n, due)).collect());
    }
    leases.pass(Span::from_secs(61));
    leases.machine.check();
    assert_eq!(drain(&mut leases).len() as u64, count);
}

#[test]
fn f34_what_left_the_range_while_its_page_was_fetched_stays_away() {
    let mut leases = Leases::new();
    create_ready(&mut leases, 0, 3 * READY_WINDOW_JOBS as u64, "default");
    leases.hold_loads = true;
    let w = worker("a", 1);
    while leases.loads.is_empty() {
        for grant in leases.offer(&w, 100) {
            leases.report(&w, grant.job.id, grant.token, succeeded());
        }
    }
    let load = leases.loads.pop_front().unwrap();
    let LeaseEffect::LoadReady { from: Some(from), .. } = &load else {
        panic!("{load:?}")
    };
    let beyond = u64::from_be_bytes(from.id.as_bytes()[8..].try_into().unwrap());
    let page = leases.fetch(load);
    assert_eq!(leases.cancel(beyond + 3).unwrap(), CancelAnswer::Cancelled);
    leases.step(page);
    leases.check();
    leases.hold_loads = false;
    leases.answer_loads();
    let order = drain(&mut leases);
    assert!(!order.contains(&job_id(beyond + 3)) && order.contains(&job_id(beyond + 4)));
    assert_eq!(leases.state(beyond + 3), JobState::Cancelled);
}

#[test]
fn f34_a_page_that_does_not_join_on_any_more_is_dropped_and_asked_for_again() {
    let mut leases = Leases::new();
    let full = READY_WINDOW_JOBS as u64;
    create_ready(&mut leases, 0, 2 * full, "default");
    leases.hold_loads = true;
    let w = worker("a", 1);
    while leases.loads.is_empty() {
        for grant in leases.offer(&w, 100) {
            leases.report(&w, grant.job.id, grant.token, succeeded());
        }
    }
    let load = leases.loads.pop_front().unwrap();
    let page = leases.fetch(load);
    for start in 0..5 {
        let items = (0..1_000).map(|n| {
            let mut urgent = spec();
            urgent.priority = 0;
            item(500_000 + start * 1_000 + n, urgent)
        });
        leases.create_all(items.collect());
    }
    leases.step(page);
    leases.machine.check();
    leases.hold_loads = false;
    leases.answer_loads();
    let left = leases.rows.ready().len();
    assert_eq!(drain(&mut leases).len(), left);
    assert_eq!(leases.rows.ready().len(), 0);
}

#[test]
fn f34_an_unasked_page_is_ignored() {
    let mut leases = Leases::new();
    leases.create(item(1, spec())).unwrap();
    let load = LeaseEffect::LoadReady {
        class: (name("default"), name("default")),
        from: None,
        limit: 10,
    };
    let page = leases.fetch(load);
    leases.offer(&worker("a", 1), 1);
    leases.step(page);
    leases.step(LeaseInput::WaitLoaded {
        rows: Vec::new(),
        end: false,
        horizon: None,
    });
    leases.check();
    assert!(leases.offer(&worker("a", 1), 1).is_empty());
}

#[test]
fn f30_a_flooder_does_not_starve_a_quiet_tenant() {
    let mut leases = Leases::new();
    create_ready(&mut leases, 0, 10_000, "loud");
    create_ready(&mut leases, 500_000, 10, "quiet");
    leases.machine.check();
    let w = worker("a", 1);
    let granted: BTreeSet<_> = leases.offer(&w, 20).iter().map(|grant| grant.job.id).collect();
    assert!(
        (500_000..500_010).all(|number| granted.contains(&job_id(number))),
        "within one turn each"
    );
    leases.restart();
    create_ready(&mut leases, 600_000, 10, "calm");
    let granted: BTreeSet<_> = leases.offer(&w, 20).iter().map(|grant| grant.job.id).collect();
    assert!(
        (600_000..600_010).all(|number| granted.contains(&job_id(number))),
        "also after a restart"
    );
}

#[test]
fn f30_a_due_flood_does_not_starve_a_quiet_tenant_either() {
    let mut leases = Leases::new();
    for start in 0..10 {
        let items = (0..1_000).map(|n| item_due(start * 1_000 + n, START + Span::from_secs(5)));
        leases.create_all(items.collect());
    }
    leases.pass(Span::from_secs(6));
    create_ready(&mut leases, 500_000, 5, "quiet");
    let granted: BTreeSet<_> = leases
        .offer(&worker("a", 1), 10)
        .iter()
        .map(|grant| grant.job.id)
        .collect();
    assert!((500_000..500_005).all(|number| granted.contains(&job_id(number))));
    leases.machine.check();
}

#[test]
fn f30_many_classes_share_the_window_and_all_are_served() {
    let mut leases = Leases::new();
    for number in 0..6_000 {
        let mut one = spec();
        one.queue = name(&format!("q{:04}", number % 3_000));
        leases.create(item(number, one)).unwrap();
    }
    leases.machine.check();
    leases.restart();
    leases.machine.check();
    assert_eq!(drain(&mut leases).len(), 6_000);
}

#[test]
fn f30_jobs_held_back_by_a_limit_are_parked_and_cost_the_others_nothing() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    create_ready(&mut leases, 0, 200, "lost");
    assert_eq!(leases.offer(&w, 200).len(), 200);
    leases.pass(Span::from_secs(90));
    leases.check();
    // All of them lost their worker: they may run one at a time, and wait aside for that.
    create_ready(&mut leases, 500_000, 50, "quiet");
    leases.hold_loads = true;
    let first = leases.offer(&w, 51);
    assert_eq!(first.len(), 51, "one that runs apart, and all that are free to run");
    for _ in 0..20 {
        assert!(leases.offer_without_place(&w, 10).is_empty());
    }
    assert!(
        leases.loads.is_empty(),
        "what is parked is not read again at each offer"
    );
    leases.hold_loads = false;
    leases.report(&w, first[0].job.id, first[0].token, succeeded());
    assert_eq!(leases.offer(&w, 10).len(), 1, "and comes back when the limit frees");
    leases.check();
}

#[test]
fn f34_a_row_whose_job_is_ready_in_memory_is_not_loaded_twice() {
    let mut leases = Leases::new();
    let mut lonely = spec();
    lonely.queue = name("lonely");
    let mut lent = item(1, lonely);
    lent.due_at = Some(START + Span::from_secs(50));
    leases.create(lent).unwrap();
    leases.now.store = START + Span::from_secs(60);
    leases.step(LeaseInput::Tick);
    leases.now.store = START;
    for number in 10..20 {
        let mut large = spec();
        large.payload = fencepost_core::target::Payload {
            kind: fencepost_core::target::PayloadKind::Bytes,
            bytes: vec![1; 1 << 20].into(),
        };
        let mut item = item(number, large);
        item.due_at = Some(START + Span::from_secs(number));
        leases.create(item).unwrap();
    }
    leases.check();
    for _ in 0..12 {
        leases.pass(Span::from_secs(2));
        leases.offer_as(&worker("a", 1), leases.now.mono.0, 9, &["default"]);
        leases.check();
    }
    assert_eq!(leases.offer(&worker("a", 1), 9)[0].job.id, job_id(1));
}
