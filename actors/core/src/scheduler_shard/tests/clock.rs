//! Clock doubt and clocks set back (F20), restarts (F7, F8), and what a step costs.

use super::world::*;
use crate::fate::FateKind::*;
use crate::limits::FIRES_PER_STEP_MAX;
use crate::schedule::MisfirePolicy;
use crate::scheduler_shard::io::ScheduleInput;
use crate::time::{Span, StoreTime};

#[test]
fn f20_nothing_is_decided_in_clock_doubt() {
    let mut world = World::new(NOON);
    let mut spec = with(MisfirePolicy::Skip, cron("* * * * *"));
    spec.grace = Some(Span::from_secs(30));
    world.create("report", spec);
    world.create("once", once(NOON + DAY));
    world.run(NOON + 5 * MINUTE);
    world.now.doubt = true;
    world.jump(at(NOON + 2 * DAY));
    world.writes = 0;
    world.tick();
    world.restart();
    world.tick();
    assert_eq!((world.jobs.len(), world.writes), (5, 0));
    assert!(
        world.machine.next_wake().mono.unwrap() > world.now.mono,
        "time is asked for at a pace"
    );
    world.now.doubt = false;
    world.tick();
    assert_eq!(world.count("report", SkippedGrace), 2_874);
    world.audited("report");
}

#[test]
fn f20_backlogs_wait_in_clock_doubt() {
    let mut world = World::new(NOON);
    world.create(
        "report",
        with(MisfirePolicy::All { cap: 100, rate: 1 }, cron("* * * * *")),
    );
    world.down_until(NOON + HOUR);
    let before = world.jobs.len();
    world.now.doubt = true;
    world.jump(at(NOON + HOUR + 30));
    world.tick();
    assert_eq!(world.jobs.len(), before);
}

#[test]
fn beh_k01_clock_back() {
    let mut world = World::new(NOON);
    world.create("report", cron("* * * * *"));
    world.run(NOON + 10 * MINUTE);
    // The audited step of the store's clock lowers the time by an hour.
    world.now.store = at(NOON - 50 * MINUTE);
    world.restart();
    world.run(NOON + 9 * MINUTE + 59);
    assert_eq!(world.jobs.len(), 10, "no occurrence fires twice");
    world.run(NOON + 12 * MINUTE);
    assert_eq!(
        world.nominals("report"),
        (1..=12).map(|k| NOON + k * MINUTE).collect::<Vec<_>>()
    );
    world.audited("report");
}

#[test]
fn f07_f08_everything_owed_is_found_after_a_restart_without_a_message() {
    let mut world = World::new(NOON);
    world.create("a", with(MisfirePolicy::All { cap: 1_000, rate: 1 }, cron("* * * * *")));
    world.create("b", every(30, NOON));
    world.down_until(NOON + HOUR);
    for step in 1..=600 {
        world.restart();
        world.jump(at(NOON + HOUR + step));
        world.tick();
    }
    world.run(NOON + HOUR + 601);
    assert!(world.backlogs().is_empty());
    assert_eq!(world.count("a", FiredLate) + world.count("a", FiredOnTime), 70);
    world.audited("a");
    world.audited("b");
}

#[test]
fn ten_thousand_per_second_schedules_cost_what_is_due() {
    let mut world = World::unchecked(NOON);
    for k in 0..3_000 {
        world.create(&format!("idle{k}"), cron("0 0 1 1 *"));
        world.create(&format!("busy{k}"), every(1, NOON));
    }
    world.run(NOON + 1);
    let before = (world.jobs.len(), world.writes);
    world.run(NOON + 2);
    assert_eq!((world.jobs.len() - before.0, world.writes - before.1), (3_000, 3_000));
    assert!(world.steps > 3_000 / FIRES_PER_STEP_MAX);
}

#[test]
fn a_tick_with_nothing_due_writes_nothing() {
    let mut world = World::new(NOON);
    world.create("report", cron("0 * * * *"));
    world.writes = 0;
    for _ in 0..10 {
        world.step(ScheduleInput::Tick);
    }
    assert_eq!(world.writes, 0);
    assert_eq!(world.machine.next_wake().store, Some(StoreTime::from_secs(NOON + HOUR)));
}
