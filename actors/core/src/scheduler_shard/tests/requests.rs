//! Requests that make jobs: carried out once, answered the same, kept until what they made is over (F26).

use super::backfill::{Answer, Asked, asked, backfill, paused_over_four};
use super::world::*;
use crate::ids::JobId;
use crate::job::KEY_KEPT;
use crate::limits::REQUEST_SWEEP_ROWS;
use crate::refusal::{Refusal, RefusalKind};
use crate::row::{Row, RowKey};
use crate::schedule::RequestRow;
use crate::scheduler_shard::io::{Loaded, ScheduleInput, ScheduleReply, SweptRequest};
use crate::time::Span;

impl World {
    /// The row of a request, as the shell looks for it.
    pub(super) fn look(&self, mut input: ScheduleInput) -> ScheduleInput {
        if let ScheduleInput::RunNow {
            name, request, seen, ..
        }
        | ScheduleInput::Backfill {
            name, request, seen, ..
        } = &mut input
        {
            let row = self
                .machine
                .request_key(name, *request)
                .and_then(|key| self.rows.get(&key));
            *seen = row.cloned().and_then(Row::into_request);
        }
        if let ScheduleInput::RunNow {
            name, request, made, ..
        } = &mut input
        {
            let earlier = self.machine.run_now_id(name, *request);
            *made = earlier.and_then(|id| Some((id, *self.ends.get(&id)?)));
        }
        input
    }

    /// The page that the machine ordered.
    pub(super) fn requests_page(&self, from: Option<RowKey>, limit: usize) -> ScheduleInput {
        let mine = self.rows.iter().filter_map(|(key, row)| match row {
            Row::Request(row) if from.as_ref().is_none_or(|from| key >= from) => Some((key, (**row).clone())),
            _ => None,
        });
        let mine: Vec<_> = mine.collect();
        let requests = mine.iter().take(limit).map(|(_, row)| SweptRequest {
            row: row.clone(),
            ends: row.jobs.iter().filter_map(|id| self.ends.get(id).copied()).collect(),
        });
        ScheduleInput::Loaded(Loaded::Requests {
            requests: requests.collect(),
            next: mine.get(limit).map(|(key, _)| (*key).clone()),
        })
    }
}

/// The minutes 6 to 8 once more.
fn rerun(world: &mut World) -> Result<Answer, Refusal> {
    let again = Asked {
        rerun: true,
        ..asked(NOON + 5 * MINUTE, NOON + 8 * MINUTE, 9)
    };
    backfill(world, again)
}

fn ran(world: &mut World, request: u64) -> Result<JobId, Refusal> {
    match world.step(run_now("it", request)).unwrap()? {
        ScheduleReply::Ran { job, .. } => Ok(job),
        other => panic!("{other:?}"),
    }
}

fn requests(world: &World) -> Vec<RequestRow> {
    let row = |row: &Row| match row {
        Row::Request(row) => Some((**row).clone()),
        _ => None,
    };
    world.rows.values().filter_map(row).collect()
}

fn end_all(world: &mut World) {
    let now = world.now.store;
    world.ends.values_mut().for_each(|end| *end = Some(now));
}

/// Time passes, then everything is walked over.
fn walked_after(world: &mut World, span: Span) -> usize {
    world.run_to(world.now.store + span);
    world.audit_by_pages();
    requests(world).len()
}

const HOUR_SPAN: Span = Span::from_secs(3_600);

#[test]
fn f26_a_request_is_answered_the_same_after_any_number_of_others() {
    let mut world = paused_over_four();
    let first = rerun(&mut world).unwrap();
    assert_eq!(first.0.0, 3);
    let job = ran(&mut world, 10).unwrap();
    world.run(NOON + 9 * MINUTE);
    let jobs = world.jobs.len();
    assert_eq!(rerun(&mut world).unwrap(), first, "at once");
    for request in 100..140 {
        ran(&mut world, request).unwrap();
    }
    assert_eq!(rerun(&mut world).unwrap(), first, "after many others");
    assert_eq!(ran(&mut world, 10).unwrap(), job);
    world.restart();
    assert_eq!(rerun(&mut world).unwrap(), first, "by another owner");
    assert_eq!(ran(&mut world, 10).unwrap(), job);
    world.run(NOON + 9 * MINUTE + 30);
    assert_eq!(world.jobs.len(), jobs + 40);
    assert!(world.cursor("it").requests.is_empty(), "nothing of it is in memory");
    world.audited("it");
}

#[test]
fn f26_a_backfill_that_made_nothing_makes_nothing_when_it_comes_again() {
    let mut world = paused_over_four();
    let range = || asked(NOON + 8 * MINUTE, NOON + 10 * MINUTE, 5);
    world.run(NOON + 10 * MINUTE);
    let first = backfill(&mut world, range()).unwrap();
    assert_eq!(first.0, (0, 2, 0));
    world.run(NOON + 11 * MINUTE);
    assert_eq!(backfill(&mut world, range()).unwrap(), first);
    // A look is no request.
    let look = Asked {
        dry_run: true,
        ..asked(NOON, NOON + 8 * MINUTE, 5)
    };
    assert_eq!(backfill(&mut world, look).unwrap().0.0, 4);
    assert_eq!(requests(&world).len(), 1);
}

#[test]
fn f26_a_key_with_another_request_is_refused() {
    let mut world = paused_over_four();
    rerun(&mut world).unwrap();
    ran(&mut world, 10).unwrap();
    let jobs = world.jobs.len();
    let same = || Asked {
        rerun: true,
        ..asked(NOON + 5 * MINUTE, NOON + 8 * MINUTE, 9)
    };
    let others = [
        Asked { from: NOON, ..same() },
        Asked {
            to: NOON + 7 * MINUTE,
            ..same()
        },
        Asked { cap: 999, ..same() },
        Asked { rerun: false, ..same() },
        Asked { request: 10, ..same() },
    ];
    for other in others {
        let refusal = backfill(&mut world, other).unwrap_err();
        assert_eq!(
            (refusal.kind, refusal.code),
            (RefusalKind::KeyReused, "idempotency_key_reused")
        );
    }
    let refusal = ran(&mut world, 9).unwrap_err();
    assert_eq!(
        (refusal.kind, refusal.code),
        (RefusalKind::KeyReused, "idempotency_key_reused")
    );
    assert_eq!(world.jobs.len(), jobs);
}

#[test]
fn f26_a_request_is_kept_for_a_day_after_the_end_of_all_that_it_made() {
    let mut world = paused_over_four();
    rerun(&mut world).unwrap();
    let job = ran(&mut world, 10).unwrap();
    assert_eq!(
        walked_after(&mut world, Span(3 * KEY_KEPT.0)),
        2,
        "its jobs have not ended"
    );
    end_all(&mut world);
    assert_eq!(walked_after(&mut world, Span(KEY_KEPT.0 - HOUR_SPAN.0)), 2);
    world.now.doubt = true;
    assert_eq!(walked_after(&mut world, Span(2 * HOUR_SPAN.0)), 2, "not in doubt");
    world.now.doubt = false;
    assert_eq!(walked_after(&mut world, Span(1)), 0);
    // The keys are used anew, as the cases demand: other jobs, under other downstream keys.
    let jobs = world.jobs.len();
    assert_ne!(ran(&mut world, 10).unwrap(), job);
    assert_eq!(rerun(&mut world).unwrap().0.0, 3);
    world.run_to(world.now.store + Span::from_secs(1));
    assert_eq!(world.jobs.len(), jobs + 4);
}

#[test]
fn f26_a_request_whose_jobs_are_not_made_yet_is_kept() {
    let mut world = paused_over_four();
    world.now.doubt = true;
    rerun(&mut world).unwrap();
    world.now.doubt = false;
    world.machine.set_full(true);
    world.jump(world.now.store + Span(2 * KEY_KEPT.0));
    let row = requests(&world).remove(0);
    let swept = || {
        ScheduleInput::Loaded(Loaded::Requests {
            requests: vec![SweptRequest {
                row: row.clone(),
                ends: Vec::new(),
            }],
            next: None,
        })
    };
    world.step(swept());
    assert_eq!(
        (requests(&world).len(), world.backlogs().len()),
        (1, 1),
        "kept while it makes up"
    );
    world.machine.set_full(false);
    world.run_to(world.now.store + HOUR_SPAN);
    assert!(world.backlogs().is_empty());
    world.step(swept());
    assert_eq!(requests(&world), []);
}

/// 50 pages are walked over: most of them are large once there is much to drop.
#[test]
fn p7_requests_whose_time_is_over_go_faster_than_small_pages_would() {
    let mut world = paused_over_four();
    let many = 50 * REQUEST_SWEEP_ROWS;
    for request in 0..many {
        ran(&mut world, request as u64).unwrap();
    }
    end_all(&mut world);
    assert_eq!(walked_after(&mut world, Span(KEY_KEPT.0 - HOUR_SPAN.0)), many);
    assert_eq!(walked_after(&mut world, Span(2 * HOUR_SPAN.0)), 0);
}

#[test]
fn f26_requests_of_a_deleted_schedule_go_with_their_time() {
    let mut world = paused_over_four();
    let job = ran(&mut world, 10).unwrap();
    world.step(delete("it")).unwrap().unwrap();
    world.create("it", cron("* * * * *"));
    assert_ne!(ran(&mut world, 10).unwrap(), job, "another life of the name");
    end_all(&mut world);
    assert_eq!(walked_after(&mut world, Span(KEY_KEPT.0 - HOUR_SPAN.0)), 2);
    assert_eq!(walked_after(&mut world, Span(2 * HOUR_SPAN.0)), 0);
}

#[test]
pub(crate) fn f26_before_its_level_a_request_is_remembered_as_the_version_before_does_and_holds_after_it() {
    let mut world = paused_over_four();
    world.machine.set_level(crate::level::FIRST);
    let job = ran(&mut world, 10).unwrap();
    assert_eq!(
        Some(job),
        world.machine.run_now_id(&name("it"), 10),
        "the id of the version before"
    );
    assert_eq!(rerun(&mut world).unwrap().0.0, 3);
    assert_eq!(
        (requests(&world), world.cursor("it").requests),
        (Vec::new(), vec![10, 9])
    );
    assert_eq!(rerun(&mut world).unwrap().0.0, 0);
    world.machine.set_level(crate::level::NEWEST);
    assert_eq!(ran(&mut world, 10).unwrap(), job, "after it was raised, too");
    assert_eq!(rerun(&mut world).unwrap().0.0, 0);
}

/// Answers of the version before hold after the raise, whichever others come, whoever owns the shard, and are over when
/// the keys are.
#[test]
pub(crate) fn f26_what_was_carried_out_before_the_raise_is_answered_until_its_key_is_over() {
    let mut world = paused_over_four();
    world.machine.set_level(crate::level::FIRST);
    let job = ran(&mut world, 10).unwrap();
    rerun(&mut world).unwrap();
    world.machine.set_level(crate::level::NEWEST);
    let is_same = |world: &mut World, when: &str| {
        let jobs = world.jobs.len();
        assert_eq!(ran(world, 10).unwrap(), job, "{when}");
        assert_eq!(rerun(world).unwrap(), ((0, 0, 0), Vec::new()), "{when}");
        assert_eq!(world.jobs.len(), jobs, "{when}");
    };
    for request in 100..140 {
        ran(&mut world, request).unwrap();
    }
    is_same(&mut world, "after many others");
    world.restart();
    is_same(&mut world, "by another owner");
    assert_eq!(walked_after(&mut world, HOUR_SPAN), 42, "each has a row");
    assert!(world.cursor("it").requests.is_empty(), "and nothing is in memory");
    is_same(&mut world, "by its row");
    walked_after(&mut world, Span(KEY_KEPT.0 - 2 * HOUR_SPAN.0));
    is_same(&mut world, "for a day");
    walked_after(&mut world, Span(2 * KEY_KEPT.0));
    assert_eq!(ran(&mut world, 10).unwrap(), job, "while its job has not ended");
    end_all(&mut world);
    walked_after(&mut world, Span(KEY_KEPT.0 - HOUR_SPAN.0));
    assert_eq!(ran(&mut world, 10).unwrap(), job, "for a day after that");
    assert_eq!(walked_after(&mut world, Span(2 * HOUR_SPAN.0)), 0);
    let jobs = world.jobs.len();
    assert_ne!(ran(&mut world, 10).unwrap(), job, "the key is used anew");
    assert_eq!(rerun(&mut world).unwrap().0.0, 3);
    world.run_to(world.now.store + Span::from_secs(1));
    assert_eq!(world.jobs.len(), jobs + 4);
}

/// The level was raised, another owner carried requests out, and this one has not heard of it yet.
#[test]
fn f26_an_owner_that_has_not_heard_of_the_raise_answers_what_another_wrote() {
    let mut world = paused_over_four();
    let (job, first) = (ran(&mut world, 10).unwrap(), rerun(&mut world).unwrap());
    world.restart();
    world.machine.set_level(crate::level::FIRST);
    let jobs = world.jobs.len();
    assert_eq!(ran(&mut world, 10).unwrap(), job);
    assert_eq!(rerun(&mut world).unwrap(), first);
    assert_eq!(ran(&mut world, 9).unwrap_err().code, "idempotency_key_reused");
    assert_eq!(world.jobs.len(), jobs);
}
