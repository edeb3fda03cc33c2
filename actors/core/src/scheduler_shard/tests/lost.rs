//! A schedule whose cursor cannot be read (F9): what nobody can say is not done twice.

use super::world::*;
use crate::fate::FateKind::*;
use crate::machine::{Out, ReplyTo};
use crate::row::Row;
use crate::scheduler_shard::SchedulerShard;
use crate::scheduler_shard::io::{LostCursor, ScheduleInput, ScheduleReply};

/// The cursor row of the schedule rots; a person resumes it.
fn lose_cursor(world: &mut World) {
    let closed = world.closed("it");
    let mut opened = world.opened();
    opened.cursors.clear();
    let (tenant, text) = name("it");
    opened.lost.push(LostCursor {
        tenant,
        name: text,
        reason: "its cursor row cannot be read: checksum".into(),
        closed: closed
            .first()
            .zip(closed.last())
            .map(|(first, last)| (first.from, last.to)),
    });
    let mut out = Out::default();
    world.epoch += 1;
    world.machine = SchedulerShard::open(facts(world.epoch), opened, world.now, &mut out).unwrap();
    world.machine.set_level(crate::level::NEWEST);
    world.machine.stop_sweep();
    world.commit(out, Vec::new());
    world.restart();
    view(world.step(resume("it")).unwrap());
    world.audited("it");
}

fn backfill(world: &mut World, (from, to): (i64, i64), rerun: bool, request: u64) -> (u64, u64) {
    let input = ScheduleInput::Backfill {
        reply: ReplyTo(1),
        name: name("it"),
        from: at(from),
        to: at(to),
        cap: 100,
        rerun,
        request,
        seen: None,
        dry_run: false,
        life: world.machine.incarnation_of(&name("it")),
        fates: world.closed("it"),
    };
    let Some(Ok(ScheduleReply::Backfill {
        count, already_fired, ..
    })) = world.step(input)
    else {
        panic!("not made up");
    };
    (count, already_fired)
}

/// Each job that had been made would be made again, under its own id, which the store refuses for ever.
#[test]
fn f09_what_may_have_fired_before_a_cursor_was_lost_is_not_made_up_as_if_it_had_not() {
    let mut world = World::new(NOON);
    world.create("it", cron("* * * * *"));
    world.run(NOON + 5 * MINUTE);
    lose_cursor(&mut world);
    let range = (NOON, NOON + 5 * MINUTE);
    assert_eq!(backfill(&mut world, range, false, 1), (0, 5));
    world.run(NOON + 6 * MINUTE);
    assert_eq!(world.jobs.len(), 6);
    assert_eq!(
        backfill(&mut world, range, true, 2),
        (5, 0),
        "it is made again where that is asked for"
    );
    world.run(NOON + 7 * MINUTE);
    assert_eq!(world.jobs.len(), 12);
    assert_eq!(world.count("it", FiredOnTime), 2);
    world.audited("it");
}

/// A number of a backlog is part of what makes the id of a job that runs again.
#[test]
fn f09_backlogs_after_a_lost_cursor_have_numbers_of_their_own() {
    let mut world = World::new(NOON);
    world.create("it", cron("* * * * *"));
    let range = (NOON, NOON + 2 * MINUTE);
    world.run(NOON + 3 * MINUTE);
    world.step(pause("it")).unwrap().unwrap();
    world.run(NOON + 4 * MINUTE);
    world.step(resume("it")).unwrap().unwrap();
    assert_eq!(backfill(&mut world, range, true, 7).0, 2);
    world.run(NOON + 5 * MINUTE);
    assert!(world.backlogs().is_empty(), "it is over, and has left no row");
    lose_cursor(&mut world);
    // The key of the request was kept for its time, and is used anew.
    world.rows.retain(|_, row| !matches!(row, Row::Request(_)));
    let before = world.jobs.len();
    assert_eq!(backfill(&mut world, range, true, 7).0, 2);
    world.run(NOON + 6 * MINUTE);
    assert_eq!(world.jobs.len(), before + 3);
    world.audited("it");
}
