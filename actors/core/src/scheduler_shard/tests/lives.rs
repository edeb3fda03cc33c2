//! Pauses, deletes, re-creation (F27) and run-now, and the shared cases about them.

use super::world::*;
use crate::fate::FateKind::*;
use crate::job::FireCause;
use crate::refusal::{Refusal, RefusalKind};
use crate::row::Row;
use crate::schedule::MisfirePolicy;
use crate::scheduler_shard::io::ScheduleReply;

fn refused(answer: Option<Result<ScheduleReply, Refusal>>) -> (RefusalKind, &'static str) {
    let refusal = answer.unwrap().unwrap_err();
    (refusal.kind, refusal.code)
}

#[test]
fn beh_c04_pause() {
    let mut world = World::new(NOON);
    world.create("report", cron("* * * * *"));
    world.run(NOON + 90);
    world.step(pause("report")).unwrap().unwrap();
    world.restart();
    world.run(NOON + 90 + 4 * MINUTE);
    world.step(resume("report")).unwrap().unwrap();
    world.run(NOON + 6 * MINUTE);
    assert_eq!(world.nominals("report"), [NOON + MINUTE, NOON + 6 * MINUTE]);
    assert_eq!(
        world.spans("report"),
        [(FiredOnTime, Some(1)), (Paused, Some(4)), (FiredOnTime, Some(1))]
    );
    world.audited("report");
}

#[test]
fn beh_c09_delete_planned() {
    let mut world = World::new(NOON);
    world.create("report", cron("* * * * *"));
    world.run(NOON + MINUTE);
    world.step(delete("report")).unwrap().unwrap();
    world.run(NOON + HOUR);
    assert_eq!(
        world.nominals("report"),
        [NOON + MINUTE],
        "the waiting job stays, nothing new appears"
    );
    assert_eq!(
        world.spans("report"),
        [(FiredOnTime, Some(1)), (WithdrawnDelete, Some(1))]
    );
    assert!(world.machine.is_empty());
    assert_eq!(
        refused(world.step(pause("report"))),
        (RefusalKind::NotFound, "schedule_not_found")
    );
    world.audited("report");
    world.restart();
    assert!(world.machine.is_empty());
}

#[test]
fn a_deleted_schedule_gives_up_its_backlog() {
    let mut world = World::new(NOON);
    let mut spec = cron("* * * * *");
    spec.misfire = MisfirePolicy::All { cap: 1_000, rate: 1 };
    world.create("report", spec);
    world.down_until(NOON + HOUR);
    world.run(NOON + HOUR + 9);
    let made = world.jobs.len() as u64;
    world.step(delete("report")).unwrap().unwrap();
    assert!(world.backlogs().is_empty());
    let report = world.audited("report");
    assert_eq!(report.counts.of(WithdrawnDelete), 60 - made + 1);
    assert_eq!(report.counts.of(FiredLate) + report.counts.of(FiredOnTime), made);
}

#[test]
fn f27_beh_c11_recreate() {
    let mut world = World::new(NOON);
    let first = world.create("report", cron("* * * * *")).definition.incarnation;
    world.run(NOON + 5 * MINUTE);
    world.step(delete("report")).unwrap().unwrap();
    let second = world.create("report", cron("*/5 * * * *")).definition.incarnation;
    world.run(NOON + 10 * MINUTE);
    world.step(delete("report")).unwrap().unwrap();
    world.restart();
    let third = world.create("report", cron("*/5 * * * *")).definition.incarnation;
    assert!(first < second && second < third);
    world.run(NOON + 15 * MINUTE);
    assert_eq!(
        world.nominals("report"),
        [1, 2, 3, 4, 5, 10, 15].map(|k| NOON + k * MINUTE)
    );
    assert_eq!(world.spans("report"), [(FiredOnTime, Some(1))], "its own history only");
    world.audited("report");
}

#[test]
fn f27_the_same_nominal_instant_of_two_lives_makes_two_jobs() {
    let mut world = World::new(NOON);
    let past = NOON - HOUR;
    world.create("late", once(past));
    world.step(delete("late")).unwrap().unwrap();
    world.create("late", once(past));
    assert_eq!(world.nominals("late"), [past, past]);
}

fn edits(world: &World) -> Vec<crate::schedule::EditKind> {
    let kinds = world.rows.values().filter_map(|row| match row {
        Row::Edit(edit) => Some(edit.kind),
        _ => None,
    });
    kinds.collect()
}

#[test]
fn f25_what_is_done_at_one_instant_stays_apart_in_the_history_of_edits() {
    let mut world = World::new(NOON);
    world.create("report", cron("* * * * *"));
    world.step(pause("report")).unwrap().unwrap();
    world.step(resume("report")).unwrap().unwrap();
    world.step(run_now("report", 1)).unwrap().unwrap();
    world.step(run_now("report", 2)).unwrap().unwrap();
    use crate::schedule::EditKind::*;
    assert_eq!(edits(&world), [Created, Paused, Resumed, RunNow, RunNow]);
}

#[test]
fn f25_what_two_owners_do_in_one_held_instant_stays_apart_in_the_history_of_edits() {
    let mut world = World::new(NOON);
    world.create("report", cron("* * * * *"));
    world.step(pause("report")).unwrap().unwrap();
    for _ in 0..3 {
        world.restart();
        world.step(resume("report")).unwrap().unwrap();
        world.restart();
        world.step(pause("report")).unwrap().unwrap();
    }
    use crate::schedule::EditKind::*;
    assert_eq!(
        edits(&world),
        [Created, Paused, Resumed, Paused, Resumed, Paused, Resumed, Paused]
    );
}

#[test]
fn run_now_does_not_move_the_rule_and_a_repeated_request_names_the_same_job() {
    let mut world = World::new(NOON);
    world.create("report", cron("0 * * * *"));
    world.run(NOON + MINUTE);
    let ran = |answer: Option<Result<ScheduleReply, Refusal>>| match answer.unwrap().unwrap() {
        ScheduleReply::Ran { job, replayed } => (job, replayed),
        other => panic!("{other:?}"),
    };
    let (job, replayed) = ran(world.step(run_now("report", 7)));
    assert!(!replayed);
    world.run(NOON + 2 * MINUTE);
    assert_eq!(ran(world.step(run_now("report", 7))), (job, true));
    world.restart();
    assert_eq!(ran(world.step(run_now("report", 7))), (job, true));
    let (other, replayed) = ran(world.step(run_now("report", 8)));
    assert!(other != job && !replayed);
    assert_eq!(world.jobs.len(), 2);
    world.run(NOON + HOUR);
    assert_eq!(
        world.origins("report").last().unwrap(),
        &(at(NOON + HOUR), FireCause::Due)
    );
    world.audited("report");
}

#[test]
fn pausing_twice_and_resuming_twice_are_harmless() {
    let mut world = World::new(NOON);
    world.create("report", cron("* * * * *"));
    for input in [pause("report"), pause("report"), resume("report"), resume("report")] {
        world.run(world.now.store.secs() + 90);
        world.step(input).unwrap().unwrap();
    }
    assert_eq!(world.count("report", Paused), 3);
    world.audited("report");
}

#[test]
fn a_name_is_taken_once_and_unknown_names_are_refused() {
    let mut world = World::new(NOON);
    world.create("report", cron("* * * * *"));
    let again = world.try_create("report", cron("* * * * *"), false);
    assert_eq!(refused(Some(again)), (RefusalKind::Conflict, "schedule_exists"));
    for input in [
        pause("no"),
        resume("no"),
        delete("no"),
        run_now("no", 1),
        edit("no", cron("* * * * *")),
    ] {
        assert_eq!(
            refused(world.step(input)),
            (RefusalKind::NotFound, "schedule_not_found")
        );
    }
}

#[test]
fn a_rule_with_no_occurrence_after_now_is_refused_at_creation() {
    let mut world = World::new(NOON);
    let answer = world.try_create("past", cron("0 0 0 1 1 * 2020"), false);
    assert_eq!(refused(Some(answer)).1, "schedule_never_fires");
    assert!(world.rows.is_empty() && world.machine.is_empty());
}
