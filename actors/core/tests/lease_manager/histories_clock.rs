//! Waits of a length beyond the window when the store's clock is set (F20 b). Next: `histories_outcomes.rs`, for
//! those in it.

use crate::support::lease_harness::{Leases, START};
use crate::support::make::{item, item_due, job_id, spec, succeeded, worker};
use fencepost_core::ids::WorkerId;
use fencepost_core::job::JobSpec;
use fencepost_core::lease_manager::io::{CreateItem, LeaseEffect, LeaseInput};
use fencepost_core::limits::WAIT_WINDOW_JOBS;
use fencepost_core::row::{Row, RowKey};
use fencepost_core::time::{Span, StoreTime};

const MINUTE: Span = Span::from_secs(60);
const HOUR: Span = Span::from_secs(3_600);
/// More than a window, and a half.
const MANY: u64 = WAIT_WINDOW_JOBS as u64 * 5 / 2;

fn delayed(number: u64, delay: Span) -> CreateItem {
    CreateItem {
        delay: Some(delay),
        ..item(number, spec())
    }
}

fn create(leases: &mut Leases, items: impl Iterator<Item = CreateItem>) {
    let items: Vec<CreateItem> = items.collect();
    for part in items.chunks(500) {
        assert!(leases.create_all(part.to_vec()).iter().all(Result::is_ok));
    }
}

/// More delays of an hour than a window holds.
fn with_many_delays() -> (Leases, WorkerId) {
    let mut leases = Leases::new();
    create(&mut leases, (0..MANY).map(|n| delayed(n, HOUR)));
    (leases, worker("a", 1))
}

fn set_back(leases: &mut Leases, by: Span) {
    leases.now.store = leases.now.store - by;
}

/// Runs all that is due; answers how many.
fn drain(leases: &mut Leases, w: &WorkerId) -> u64 {
    let mut count = 0;
    loop {
        let grants = leases.offer(w, 100);
        if grants.is_empty() {
            return count;
        }
        for grant in grants {
            leases.report(w, grant.job.id, grant.token, succeeded());
            count += 1;
        }
    }
}

#[test]
fn f20_delays_beyond_the_window_are_elapsed_time_when_the_clock_is_set_back() {
    let (mut leases, w) = with_many_delays();
    leases.pass(Span::from_secs(59 * 60));
    set_back(&mut leases, Span::from_secs(5 * 3_600));
    leases.pass(Span::from_secs(50));
    assert_eq!(drain(&mut leases, &w), 0, "nor are they shortened");
    leases.pass(Span::from_secs(20));
    assert_eq!(drain(&mut leases, &w), MANY);
    leases.check();
}

/// What is due by the calendar lies before the delays, and fills the window for hours.
#[test]
fn f20_delays_behind_many_instants_are_elapsed_time_when_the_clock_is_set_back() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let due = START + Span::from_secs(30 * 60);
    create(&mut leases, (0..MANY).map(|n| item_due(n, due)));
    create(&mut leases, (MANY..MANY + 10).map(|n| delayed(n, HOUR)));
    leases.pass(Span::from_secs(29 * 60));
    set_back(&mut leases, Span::from_secs(5 * 3_600));
    leases.pass(Span::from_secs(30 * 60));
    assert_eq!(drain(&mut leases, &w), 0);
    leases.pass(Span::from_secs(2 * 60));
    assert_eq!(drain(&mut leases, &w), 10);
    leases.pass(Span::from_secs(5 * 3_600));
    assert_eq!(drain(&mut leases, &w), MANY, "an instant is an instant");
    leases.check();
}

#[test]
fn f20_a_leap_ahead_shortens_no_delay_beyond_the_window_and_holds_up_no_instant() {
    let (mut leases, w) = with_many_delays();
    leases
        .create(item_due(MANY, START + Span::from_secs(3 * 3_600)))
        .unwrap();
    leases.pass(MINUTE);
    leases.now.store = leases.now.store + Span::from_secs(5 * 3_600);
    leases.pass(MINUTE);
    let grants = leases.offer(&w, 10);
    assert_eq!(grants.len(), 1);
    assert_eq!(grants[0].job.id, job_id(MANY));
    leases.report(&w, grants[0].job.id, grants[0].token, succeeded());
    leases.pass(Span::from_secs(57 * 60));
    assert_eq!(drain(&mut leases, &w), 0);
    leases.pass(Span::from_secs(90));
    assert_eq!(drain(&mut leases, &w), MANY);
    leases.check();
}

#[test]
fn f20_a_leap_that_is_undone_leaves_delays_as_they_were() {
    let (mut leases, w) = with_many_delays();
    leases.now.store = leases.now.store + Span::from_secs(86_400);
    leases.pass(Span::from_secs(10 * 60));
    create(&mut leases, (MANY..2 * MANY).map(|n| delayed(n, HOUR)));
    set_back(&mut leases, Span::from_secs(86_400));
    leases.pass(Span::from_secs(49 * 60));
    assert_eq!(drain(&mut leases, &w), 0);
    leases.pass(Span::from_secs(2 * 60));
    assert_eq!(drain(&mut leases, &w), MANY);
    leases.pass(Span::from_secs(8 * 60));
    assert_eq!(drain(&mut leases, &w), 0);
    leases.pass(Span::from_secs(2 * 60));
    assert_eq!(drain(&mut leases, &w), MANY);
    leases.check();
}

#[test]
fn f20_what_is_made_while_rows_are_moved_waits_its_own_length() {
    let (mut leases, w) = with_many_delays();
    set_back(&mut leases, Span::from_secs(2 * 3_600));
    leases.hold_loads = true;
    leases.pass(Span::from_secs(1));
    assert!(!leases.loads.is_empty(), "the walk has begun, and is not over");
    create(
        &mut leases,
        (MANY..2 * MANY).map(|n| delayed(n, Span::from_secs(1_800))),
    );
    leases.hold_loads = false;
    leases.answer_loads();
    create(
        &mut leases,
        (2 * MANY..3 * MANY).map(|n| delayed(n, Span::from_secs(900))),
    );
    for (minutes, expected) in [(14, 0), (2, MANY), (13, 0), (2, MANY), (28, 0), (3, MANY)] {
        leases.pass(Span::from_secs(minutes * 60));
        assert_eq!(drain(&mut leases, &w), expected);
    }
    leases.check();
}

/// An owner knows nothing of what was set before it. What is left is never more than the whole length, then.
#[test]
fn f20_an_owner_that_ends_while_rows_are_moved_loses_nothing() {
    let (mut leases, w) = with_many_delays();
    leases.pass(Span::from_secs(30 * 60));
    set_back(&mut leases, Span::from_secs(5 * 3_600));
    leases.pass(Span::from_millis(150));
    let moved = |leases: &Leases| {
        let limit: StoreTime = leases.now.store + HOUR;
        leases.rows.waiting().iter().filter(|row| row.at <= limit).count() as u64
    };
    let before = moved(&leases);
    assert!(before > 0 && before < MANY, "{before} are moved");
    leases.restart();
    leases.pass(Span::from_secs(29 * 60));
    assert_eq!(drain(&mut leases, &w), 0, "never early");
    leases.pass(Span::from_secs(2 * 60));
    let first = drain(&mut leases, &w);
    assert!(first >= before);
    leases.pass(Span::from_secs(3 * 3_600));
    leases.pass(Span::from_secs(3 * 3_600));
    assert_eq!(first + drain(&mut leases, &w), MANY);
    leases.check();
}

/// What is due stays due: its row follows the clock too, though it is in a ready window by now.
#[test]
fn f20_what_was_due_before_the_clock_was_set_back_is_due_after_the_owner_ended() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    create(&mut leases, (0..10).map(|n| delayed(n, HOUR)));
    leases.pass(HOUR + MINUTE);
    set_back(&mut leases, Span::from_secs(5 * 3_600));
    leases.pass(MINUTE);
    leases.restart();
    leases.pass(Span::from_secs(1));
    assert_eq!(drain(&mut leases, &w), 10);
    leases.check();
}

/// While the store is away only heartbeats are stepped, at the time that it stated last.
#[test]
fn f20_a_store_that_was_away_makes_no_wait_shorter() {
    let (mut leases, w) = with_many_delays();
    let away = Span::from_secs(11 * 60);
    for _ in 0..11 * 12 {
        leases.now.mono = leases.now.mono + Span::from_secs(5);
        leases.heartbeat(&w, &[]);
    }
    leases.now.store = leases.now.store + away;
    leases.pass(Span::from_millis(150));
    leases.restart();
    leases.pass(Span::from_secs(45 * 60));
    assert_eq!(drain(&mut leases, &w), 0, "56 minutes are over");
    leases.pass(Span::from_secs(5 * 60));
    assert_eq!(drain(&mut leases, &w), MANY);
    leases.check();
}

/// The question was answered before the freeze, and the answer is looked at after it.
#[test]
fn f20_an_old_statement_after_a_freeze_makes_no_wait_shorter() {
    let (mut leases, w) = with_many_delays();
    let frozen = Span::from_secs(11 * 60);
    leases.now.mono = leases.now.mono + frozen;
    leases.now.store = leases.now.store + Span::from_millis(50);
    leases.step(LeaseInput::Tick);
    leases.now.store = leases.now.store + frozen;
    leases.pass(Span::from_millis(150));
    leases.restart();
    leases.pass(Span::from_secs(45 * 60));
    assert_eq!(drain(&mut leases, &w), 0, "56 minutes are over");
    leases.pass(Span::from_secs(5 * 60));
    assert_eq!(drain(&mut leases, &w), MANY);
    leases.check();
}

/// A number of jobs that run to their end, so that the marks rise over them (F7).
fn run_many(leases: &mut Leases, w: &WorkerId, delay: Option<Span>, priority: u8) {
    for round in 0..5 {
        let urgent = |n| item(n, JobSpec { priority, ..spec() });
        let items = (round * 1_000..round * 1_000 + 1_000).map(|n| CreateItem { delay, ..urgent(n) });
        create(leases, items);
        leases.pass(Span::from_secs(120));
        assert_eq!(drain(leases, w), 1_000);
    }
}

/// An owner ends, and what this creates comes while the next one's first pages are being read. The sweep, which would
/// find a job some day, is not answered.
fn create_while_opened(leases: &mut Leases, items: impl Iterator<Item = CreateItem>) {
    leases.hold_loads = true;
    leases.restart();
    let loads: Vec<LeaseEffect> = leases.loads.drain(..).collect();
    let pages: Vec<LeaseInput> = loads.into_iter().map(|load| leases.fetch(load)).collect();
    create(leases, items);
    pages.into_iter().for_each(|page| leases.step(page));
    leases.jump(Span::from_secs(3));
    leases.step(LeaseInput::Tick);
    leases.hold_loads = false;
    leases
        .loads
        .retain(|load| !matches!(load, LeaseEffect::LoadSweep { .. }));
    leases.answer_loads();
    leases.step(LeaseInput::Tick);
}

#[test]
fn f7_a_wait_below_the_mark_that_comes_while_the_first_page_is_read_is_found() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    run_many(&mut leases, &w, Some(MINUTE), 4);
    set_back(&mut leases, Span::from_secs(5 * 3_600));
    create_while_opened(&mut leases, (9_000..9_001).map(|n| delayed(n, Span::from_secs(1))));
    assert_eq!(drain(&mut leases, &w), 1);
    leases.check();
}

#[test]
fn f7_a_more_urgent_job_that_comes_while_the_first_page_is_read_is_found() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    run_many(&mut leases, &w, None, 4);
    create(&mut leases, (8_000..8_001).map(|n| item(n, spec())));
    let urgent = JobSpec { priority: 0, ..spec() };
    create_while_opened(&mut leases, (9_000..9_001).map(|n| item(n, urgent.clone())));
    assert_eq!(drain(&mut leases, &w), 2);
    leases.check();
}

#[test]
fn f7_the_walk_over_rows_to_be_moved_begins_at_the_mark() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    run_many(&mut leases, &w, Some(MINUTE), 4);
    set_back(&mut leases, HOUR);
    leases.hold_loads = true;
    leases.step(LeaseInput::Tick);
    let is_whole = |load: &LeaseEffect| matches!(load, LeaseEffect::LoadMoved { from: None, .. });
    let is_walk = |load: &LeaseEffect| matches!(load, LeaseEffect::LoadMoved { .. });
    assert!(leases.loads.iter().any(is_walk) && !leases.loads.iter().any(is_whole));
}

/// What is put aside stays aside, though its row may be moved with others (F9).
#[test]
fn f9_the_walk_takes_up_no_job_that_cannot_be_decided_on() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    create(&mut leases, (0..1).map(|n| delayed(n, MINUTE)));
    let mut job = leases.job(0);
    let mut broken = spec();
    broken.retry.attempt_count_max = 0;
    job.spec = broken.into();
    leases.rows.rows.insert(RowKey::Job(job.id), Row::Job(Box::new(job)));
    leases.restart();
    set_back(&mut leases, HOUR);
    leases.hold_loads = true;
    leases.step(LeaseInput::Tick);
    leases
        .loads
        .retain(|load| matches!(load, LeaseEffect::LoadMoved { .. }));
    leases.answer_loads();
    leases.jump(Span::from_secs(120));
    leases.step(LeaseInput::Tick);
    assert_eq!(drain(&mut leases, &w), 0);
}
