//! Fires on time: new schedules, fixed intervals, one-shots, bounds, many at once.

use super::world::*;
use crate::fate::FateKind::*;
use crate::limits::FIRES_PER_STEP_MAX;
use crate::schedule::{Exclusion, MisfirePolicy};
use crate::time::Span;

#[test]
fn an_on_time_fire_writes_one_row() {
    let mut world = World::new(NOON);
    world.create("report", cron("* * * * *"));
    world.run(NOON + 10 * MINUTE);
    world.writes = 0;
    world.run(NOON + 20 * MINUTE);
    assert_eq!((world.writes, world.nominals("report").len()), (10, 20));
    assert_eq!(world.spans("report"), [(FiredOnTime, Some(20))]);
    world.audited("report");
}

#[test]
fn beh_m06_new_is_not_late() {
    let mut world = World::new(NOON + 3 * HOUR);
    world.create("report", cron("0 9 * * *"));
    world.run(NOON + 3 * HOUR + MINUTE);
    let paused = view(world.try_create("other", cron("0 9 * * *"), true));
    assert!(paused.next.is_none());
    world.run(NOON + 3 * HOUR + 2 * MINUTE);
    let resumed = view(world.step(resume("other")).unwrap());
    assert_eq!(resumed.next.unwrap().0, at(NOON + 21 * HOUR));
    world.run(NOON + 21 * HOUR - 1);
    assert!(world.jobs.is_empty());
    world.run(NOON + 21 * HOUR);
    assert_eq!(world.jobs.len(), 2);
    world.audited("report");
    world.audited("other");
}

#[test]
fn beh_m09_long_interval() {
    let mut world = World::new(NOON);
    world.create("weekly", every(7 * 86_400, NOON));
    for day in 0..15 {
        world.run(NOON + day * DAY + HOUR);
        world.restart();
    }
    assert_eq!(world.nominals("weekly"), [NOON + 7 * DAY, NOON + 14 * DAY]);
    world.audited("weekly");
}

#[test]
fn beh_d05_restart_no_doubles() {
    let mut world = World::new(NOON);
    for text in ["a", "b", "c"] {
        world.create(text, every(600, NOON));
    }
    for restart in 0..20 {
        world.run(NOON + (restart + 1) * 3 * MINUTE);
        world.restart();
    }
    for text in ["a", "b", "c"] {
        assert_eq!(
            world.nominals(text),
            (1..=6).map(|k| NOON + k * 600).collect::<Vec<_>>()
        );
        world.audited(text);
    }
}

#[test]
fn beh_d10_interval_no_drift() {
    let mut world = World::new(NOON);
    world.create("tick", every(60, NOON));
    for slot in 1..=500_i64 {
        world.jump(at(NOON + slot * 60) + Span::from_millis((slot as u64 * 37) % 900));
        world.tick();
        if slot == 250 {
            world.step(run_now("tick", 7)).unwrap().unwrap();
        }
    }
    let regular = world
        .origins("tick")
        .into_iter()
        .filter(|(_, cause)| *cause != crate::job::FireCause::RunNow);
    assert!(
        regular
            .map(|(nominal, _)| nominal.secs())
            .eq((1..=500).map(|k| NOON + k * 60))
    );
    assert_eq!(world.jobs.len(), 501);
    world.audited("tick");
}

#[test]
fn beh_d11_one_off_in_the_past_runs_once() {
    let mut world = World::new(NOON);
    let view = world.create("late", once(NOON - DAY));
    assert_eq!(world.nominals("late"), [NOON - DAY]);
    assert!(view.cursor.finished_at.is_some() && view.next.is_none());
    world.run(NOON + 10 * MINUTE);
    world.restart();
    world.run(NOON + 20 * MINUTE);
    assert_eq!(world.jobs.len(), 1);
    assert_eq!(world.spans("late"), [(FiredLate, Some(1))]);
    world.audited("late");
}

#[test]
fn beh_d11_one_off_beyond_its_grace_is_missed_at_once() {
    let mut world = World::new(NOON);
    let mut spec = once(NOON - DAY);
    spec.grace = Some(Span::from_secs(3_600));
    world.create("late", spec);
    world.run(NOON + 10 * MINUTE);
    assert!(world.jobs.is_empty());
    assert_eq!(world.spans("late"), [(SkippedGrace, Some(1))]);
    world.audited("late");
}

#[test]
fn a_one_shot_fires_once_at_its_instant_and_is_over() {
    let mut world = World::new(NOON);
    world.create("once", once(NOON + HOUR));
    world.run(NOON + HOUR - 1);
    assert!(world.jobs.is_empty());
    world.run(NOON + 2 * DAY);
    world.restart();
    world.run(NOON + 3 * DAY);
    assert_eq!(world.nominals("once"), [NOON + HOUR]);
    assert_eq!(world.spans("once"), [(FiredOnTime, Some(1))]);
    assert_eq!(world.cursor("once").finished_at, Some(at(NOON + HOUR)));
    world.audited("once");
}

#[test]
fn beh_d11_one_off_in_the_past_is_judged_by_its_policy() {
    let all = MisfirePolicy::All { cap: 10, rate: 10 };
    for (policy, late, fate) in [
        (MisfirePolicy::Latest, DAY, FiredLate),
        (MisfirePolicy::Coalesce, DAY, FiredLate),
        (all, DAY, FiredLate),
        (MisfirePolicy::Skip, DAY, SkippedMisfire),
        (MisfirePolicy::Skip, 61, SkippedMisfire),
        (MisfirePolicy::Skip, 60, FiredOnTime),
    ] {
        let mut world = World::new(NOON);
        world.create("late", with(policy, once(NOON - late)));
        world.run(NOON + MINUTE);
        assert_eq!(world.spans("late"), [(fate, Some(1))], "{policy:?}, {late} s");
        let fires = usize::from(fate != SkippedMisfire);
        assert_eq!(world.nominals("late"), vec![NOON - late; fires], "{policy:?}, {late} s");
        assert!(world.cursor("late").finished_at.is_some());
        world.audited("late");
    }
}

#[test]
fn a_count_holds_while_missed_occurrences_are_made_up() {
    let mut world = World::new(NOON);
    let all = MisfirePolicy::All { cap: 100, rate: 1 };
    let mut counted = with(all, cron("* * * * *"));
    counted.count_max = Some(4);
    world.create("counted", counted);
    world.run(NOON + 2 * MINUTE);
    world.down_until(NOON + HOUR);
    world.run(NOON + 2 * HOUR);
    world.restart();
    world.run(NOON + 3 * HOUR);
    assert_eq!(world.jobs.len(), 4, "{:?}", world.spans("counted"));
    assert!(world.cursor("counted").finished_at.is_some());
    world.audited("counted");
}

#[test]
fn excluded_days_are_those_of_the_schedules_own_zone() {
    // In Tokyo it is 21:00 of the 5th, day 20,458: its 6th begins in three hours, its Sunday on Saturday at 15:00 UTC.
    let mut spec = cron_in("Asia/Tokyo", &["0 * * * *"]);
    spec.exclusions = vec![
        Exclusion::Dates {
            first: 20_459,
            last: 20_460,
        },
        Exclusion::Weekday(0),
    ];
    let excluded = |at: &i64| {
        let hour = (at - NOON) / HOUR;
        (3..51).contains(&hour) || (123..147).contains(&hour)
    };
    let hours: Vec<i64> = (1..=168).map(|hour| NOON + hour * HOUR).collect();
    let mut lives = World::new(NOON);
    lives.create("work", spec.clone());
    lives.run(NOON + 7 * DAY);
    let fires: Vec<i64> = hours.iter().copied().filter(|at| !excluded(at)).collect();
    assert_eq!(lives.nominals("work"), fires);
    let mut away = World::new(NOON);
    away.create("work", with(MisfirePolicy::All { cap: 1_000, rate: 10 }, spec));
    away.down_until(NOON + 7 * DAY);
    away.run(NOON + 7 * DAY + HOUR - 1);
    let mut made_up = away.nominals("work");
    made_up.sort_unstable();
    assert_eq!(made_up, fires);
    for world in [lives, away] {
        assert_eq!(world.count("work", Excluded), 48 + 24);
        world.audited("work");
    }
}

#[test]
fn a_count_a_start_and_an_end_bound_a_schedule() {
    let mut world = World::new(NOON);
    let mut counted = cron("* * * * *");
    counted.count_max = Some(3);
    world.create("counted", counted);
    let mut bounded = cron("* * * * *");
    bounded.starts_at = Some(at(NOON + 5 * MINUTE));
    bounded.ends_at = Some(at(NOON + 7 * MINUTE));
    world.create("bounded", bounded);
    world.run(NOON + HOUR);
    assert_eq!(
        world.nominals("counted"),
        (1..=3).map(|k| NOON + k * MINUTE).collect::<Vec<_>>()
    );
    assert_eq!(
        world.nominals("bounded"),
        (5..=7).map(|k| NOON + k * MINUTE).collect::<Vec<_>>()
    );
    assert!(world.cursor("counted").finished_at.is_some() && world.cursor("bounded").finished_at.is_some());
    assert!(world.machine.next_wake().store.is_none());
    world.audited("bounded");
}

#[test]
pub(super) fn no_step_fires_more_than_its_budget_and_the_next_follows_at_once() {
    let mut world = World::unchecked(NOON);
    for k in 0..FIRES_PER_STEP_MAX + 10 {
        world.create(&format!("s{k}"), cron("* * * * *"));
    }
    world.jump(at(NOON + MINUTE));
    world.tick();
    assert_eq!(world.jobs.len(), FIRES_PER_STEP_MAX, "fires of one step");
    assert_eq!(world.machine.next_wake().mono, Some(world.now.mono));
    world.tick();
    assert_eq!(world.jobs.len(), FIRES_PER_STEP_MAX + 10);
}

#[test]
fn f21_jitter_keeps_due_order_and_fires_within_its_window() {
    let mut world = World::new(NOON);
    let mut spec = every(10, NOON);
    spec.jitter = Span::from_secs(60);
    world.create("spread", spec);
    world.run(NOON + HOUR);
    let nominals = world.nominals("spread");
    assert!(nominals.len() >= 359 && nominals.windows(2).all(|pair| pair[0] + 10 == pair[1]));
    for fire in &world.jobs {
        let crate::job::Origin::Occurrence { nominal, .. } = fire.origin else {
            panic!("an occurrence");
        };
        assert!(fire.due_at.since(nominal) < Span::from_secs(10));
    }
    let moved = world.jobs.iter().filter(|fire| fire.due_at.0 % 10_000_000 != 0).count();
    assert!(moved > 300, "{moved} of them were spread");
    assert_eq!(world.count("spread", FiredOnTime), nominals.len() as u64);
    world.audited("spread");
}

#[test]
fn f21_jitter_is_bounded_by_each_pair_of_neighbours() {
    let mut world = World::new(NOON);
    let mut spec = cron("0,1 * * * *");
    spec.jitter = Span::from_secs(1_800);
    world.create("pair", spec);
    for _ in 0..50 {
        world.restart();
        world.run(world.now.store.secs() + HOUR / 2);
    }
    assert_eq!(world.nominals("pair").len() as u64, world.count("pair", FiredOnTime));
    world.audited("pair");
}
