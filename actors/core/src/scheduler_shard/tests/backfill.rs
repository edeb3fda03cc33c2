//! Backfill: preview, cap, once each, re-runs (F27), released at a bounded rate.

use super::world::*;
use crate::fate::FateKind::*;
use crate::job::FireCause;
use crate::limits::{BACKFILL_COUNT_MAX, BACKFILL_SPANS_MAX, CATCH_UP_RATE_DEFAULT};
use crate::machine::ReplyTo;
use crate::refusal::Refusal;
use crate::scheduler_shard::io::{ScheduleInput, ScheduleReply};

pub(super) struct Asked {
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) cap: u32,
    pub(super) rerun: bool,
    pub(super) request: u64,
    pub(super) dry_run: bool,
}

pub(super) fn asked(from: i64, to: i64, request: u64) -> Asked {
    Asked {
        from,
        to,
        cap: 1_000,
        rerun: false,
        request,
        dry_run: false,
    }
}

/// (count, already fired, over cap), and the instants in seconds.
pub(super) type Answer = ((u64, u64, u64), Vec<i64>);

pub(super) fn backfill(world: &mut World, asked: Asked) -> Result<Answer, Refusal> {
    let mut fates = world.closed("it");
    fates.retain(|span| span.to > at(asked.from) && span.from < at(asked.to));
    let input = ScheduleInput::Backfill {
        reply: ReplyTo(1),
        name: name("it"),
        from: at(asked.from),
        to: at(asked.to),
        cap: asked.cap,
        rerun: asked.rerun,
        request: asked.request,
        seen: None,
        dry_run: asked.dry_run,
        life: world.machine.incarnation_of(&name("it")),
        fates,
    };
    match world.step(input).unwrap()? {
        ScheduleReply::Backfill {
            count,
            instants,
            already_fired,
            over_cap,
        } => Ok((
            (count, already_fired, over_cap),
            instants.into_iter().map(|at| at.secs()).collect(),
        )),
        other => panic!("{other:?}"),
    }
}

/// Minutely, paused over minutes 2 to 5, running again since.
pub(super) fn paused_over_four() -> World {
    let mut world = World::new(NOON);
    world.create("it", cron("* * * * *"));
    world.run(NOON + 90);
    world.step(pause("it")).unwrap().unwrap();
    world.run(NOON + 90 + 4 * MINUTE);
    world.step(resume("it")).unwrap().unwrap();
    world.run(NOON + 8 * MINUTE);
    world
}

#[test]
fn beh_c04_a_backfill_makes_up_a_pause_once_each() {
    let mut world = paused_over_four();
    let range = || asked(NOON, NOON + 8 * MINUTE, 1);
    let minutes = |of: &[i64]| of.iter().map(|k| NOON + k * MINUTE).collect::<Vec<_>>();
    let preview = backfill(
        &mut world,
        Asked {
            dry_run: true,
            ..range()
        },
    )
    .unwrap();
    assert_eq!(preview, ((4, 4, 0), minutes(&[2, 3, 4, 5])));
    assert_eq!(world.count("it", Paused), 4);
    assert_eq!(backfill(&mut world, range()).unwrap(), preview);
    world.run(NOON + 9 * MINUTE);
    assert_eq!(world.count("it", Paused), 0);
    assert_eq!(world.count("it", FiredLate), 4);
    let made_up = world
        .origins("it")
        .into_iter()
        .filter(|(_, cause)| *cause == FireCause::Backfill);
    assert!(made_up.map(|(nominal, _)| nominal.secs()).eq(minutes(&[2, 3, 4, 5])));
    world.audited("it");
    let again = backfill(&mut world, Asked { request: 2, ..range() }).unwrap();
    assert_eq!(again, ((0, 8, 0), vec![]), "they fired already");
    world.audited("it");
}

#[test]
fn a_pending_backfill_is_not_made_twice() {
    let mut world = paused_over_four();
    world.now.doubt = true;
    backfill(&mut world, asked(NOON, NOON + 8 * MINUTE, 1)).unwrap();
    let refusal = backfill(&mut world, asked(NOON, NOON + 8 * MINUTE, 2));
    assert!(refusal.is_ok_and(|answer| answer.0.0 == 0));
    world.restart();
    world.now.doubt = false;
    world.run(NOON + 9 * MINUTE);
    assert_eq!(world.count("it", FiredLate), 4);
    world.audited("it");
}

#[test]
fn f27_what_fired_already_is_fired_again_only_as_a_rerun_and_keeps_its_fate() {
    let mut world = paused_over_four();
    let range = || asked(NOON + 5 * MINUTE, NOON + 8 * MINUTE, 3);
    assert_eq!(backfill(&mut world, range()).unwrap().0, (0, 3, 0));
    let rerun = backfill(
        &mut world,
        Asked {
            rerun: true,
            request: 4,
            ..range()
        },
    )
    .unwrap();
    assert_eq!(rerun.0, (3, 0, 0));
    world.run(NOON + 8 * MINUTE + 30);
    assert_eq!(world.jobs.len(), 4 + 3, "as jobs of their own");
    assert_eq!(world.count("it", FiredOnTime), 4);
    world.audited("it");
}

#[test]
fn the_cap_takes_the_oldest_and_says_what_it_left() {
    let mut world = paused_over_four();
    let answer = backfill(
        &mut world,
        Asked {
            cap: 3,
            ..asked(NOON, NOON + 8 * MINUTE, 1)
        },
    )
    .unwrap();
    assert_eq!(answer.0, (3, 4, 1));
    world.run(NOON + 9 * MINUTE);
    assert_eq!((world.count("it", FiredLate), world.count("it", Paused)), (3, 1));
    world.audited("it");
    assert_eq!(
        backfill(&mut world, asked(NOON, NOON + 8 * MINUTE, 2)).unwrap().0,
        (1, 7, 0)
    );
    world.run(NOON + 10 * MINUTE);
    assert_eq!(world.count("it", FiredLate), 4);
    world.audited("it");
}

#[test]
fn a_backfill_goes_out_at_a_bounded_rate_and_survives_restarts() {
    let mut world = World::new(NOON);
    world.create("it", cron("* * * * * *"));
    world.step(pause("it")).unwrap().unwrap();
    world.run(NOON + HOUR);
    let answer = backfill(&mut world, asked(NOON, NOON + HOUR, 1));
    assert!(
        answer.is_ok_and(|answer| answer.0 == (0, 0, 0)),
        "the pause has no fate yet"
    );
    world.step(resume("it")).unwrap().unwrap();
    backfill(
        &mut world,
        Asked {
            cap: 2_000,
            ..asked(NOON, NOON + HOUR, 2)
        },
    )
    .unwrap();
    world.step(pause("it")).unwrap().unwrap();
    for second in 1..=10 {
        let before = world.jobs.len();
        world.run(NOON + HOUR + second);
        assert!(world.jobs.len() - before <= CATCH_UP_RATE_DEFAULT as usize + 5);
        world.restart();
    }
    world.run(NOON + HOUR + MINUTE);
    assert_eq!(world.jobs.len(), 2_000, "a person's request goes on in a pause");
    world.audited("it");
}

#[test]
fn a_backfill_of_bad_ranges_is_refused_with_its_field() {
    let mut world = paused_over_four();
    let field = |answer: Result<Answer, Refusal>| answer.unwrap_err().field.unwrap();
    assert_eq!(field(backfill(&mut world, asked(NOON, NOON, 1))), "to");
    assert_eq!(field(backfill(&mut world, asked(NOON, NOON + DAY, 1))), "to");
    for cap in [0, BACKFILL_COUNT_MAX + 1] {
        let bad = Asked {
            cap,
            ..asked(NOON, NOON + MINUTE, 1)
        };
        assert_eq!(field(backfill(&mut world, bad)), "cap");
    }
}

#[test]
fn a_range_in_too_many_stretches_is_refused() {
    let mut world = World::new(NOON);
    world.create("it", cron("* * * * *"));
    for k in 0..=BACKFILL_SPANS_MAX as i64 {
        world.run(NOON + k * 3 * MINUTE + 90);
        world.step(pause("it")).unwrap().unwrap();
        world.run(NOON + k * 3 * MINUTE + 150);
        world.step(resume("it")).unwrap().unwrap();
    }
    let end = world.now.store.secs();
    let refusal = backfill(&mut world, asked(NOON, end, 1)).unwrap_err();
    assert_eq!(refusal.code, "backfill_scattered");
    assert!(backfill(&mut world, asked(NOON, NOON + HOUR, 1)).is_ok());
}

#[test]
fn stale_fates_are_refused() {
    let mut world = paused_over_four();
    let fates = world.closed("it");
    world.now.doubt = true;
    backfill(&mut world, asked(NOON, NOON + 8 * MINUTE, 1)).unwrap();
    let input = ScheduleInput::Backfill {
        reply: ReplyTo(1),
        name: name("it"),
        from: at(NOON),
        to: at(NOON + 8 * MINUTE),
        cap: 100,
        rerun: false,
        request: 2,
        seen: None,
        dry_run: false,
        life: world.machine.incarnation_of(&name("it")),
        fates,
    };
    assert_eq!(world.step(input).unwrap().unwrap_err().code, "backfill_range_changed");
}

#[test]
fn f27_fates_of_an_older_life_are_not_taken_for_those_of_the_new_one() {
    let mut world = paused_over_four();
    let (fates, life) = (world.closed("it"), world.machine.incarnation_of(&name("it")));
    world.step(delete("it")).unwrap().unwrap();
    world.create("it", cron("* * * * *"));
    let jobs = world.jobs.len();
    let input = ScheduleInput::Backfill {
        reply: ReplyTo(1),
        name: name("it"),
        from: at(NOON),
        to: at(NOON + 8 * MINUTE),
        cap: 100,
        rerun: false,
        request: 2,
        seen: None,
        dry_run: false,
        life,
        fates,
    };
    assert_eq!(world.step(input).unwrap().unwrap_err().code, "backfill_range_changed");
    world.run(NOON + 8 * MINUTE + 30);
    assert_eq!(
        world.jobs.len(),
        jobs,
        "nothing of the old life is made up in the new one"
    );
    world.audited("it");
}
