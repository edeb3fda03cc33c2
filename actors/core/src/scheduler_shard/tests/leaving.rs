//! Owners that are told to stop before they have proven themselves (F9): no schedule is blamed for it.

use super::trials::*;
use super::world::*;
use crate::ids::ShardId;
use crate::machine::Out;
use crate::scheduler_shard::io::{ScheduleEffect, ScheduleInput};
use crate::scheduler_shard::marks::leave_marks;

/// Whether the owner after this one would try its schedules one by one.
fn next_is_careful(world: &mut World) -> bool {
    let mut next = World::new(NOON);
    next.rows.clone_from(&world.rows);
    next.now = world.now;
    mark(&mut next, "next").is_careful
}

#[test]
fn f9_an_owner_told_to_stop_in_clock_doubt_is_no_young_death() {
    let mut world = three();
    world.jump(at(NOON + 5 * MINUTE));
    world.now.doubt = true;
    let opened = mark(&mut world, "one");
    load(&mut world, opened);
    world.tick();
    assert!(next_is_careful(&mut world), "were it killed now");
    world.step(ScheduleInput::Leaving);
    assert!(keys(&world).is_empty(), "{:?}", keys(&world));
    assert!(!next_is_careful(&mut world));
}

#[test]
fn f9_an_owner_told_to_stop_on_a_full_disk_is_no_young_death() {
    let mut world = three();
    world.jump(at(NOON + 5 * MINUTE));
    let opened = mark(&mut world, "one");
    load(&mut world, opened);
    world.machine.set_full(true);
    world.tick();
    assert!(next_is_careful(&mut world), "were it killed now");
    let jobs = world.jobs.len();
    world.step(ScheduleInput::Leaving);
    assert!(keys(&world).is_empty(), "{:?}", keys(&world));
    assert!(!next_is_careful(&mut world));
    assert_eq!(world.jobs.len(), jobs, "it took no room");
}

#[test]
fn f9_an_owner_told_to_stop_in_trials_begins_no_further_one_and_the_next_goes_on_with_them() {
    let mut world = three();
    mark(&mut world, "one");
    let opened = mark(&mut world, "two");
    load(&mut world, opened);
    world.step(ScheduleInput::TrialTurn);
    world.step(ScheduleInput::TrialMarked);
    assert_eq!(world.machine.len(), 3);
    world.step(ScheduleInput::Leaving);
    world.orders.clear();
    let mut out = Out::default();
    let turn = ScheduleInput::TrialTurn;
    world.machine.step(world.now, turn, &mut out, &mut Vec::new());
    assert!(out.writes.is_empty(), "no further mark");
    assert!(matches!(out.effects.as_slice(), [ScheduleEffect::EndTrialTurn]));
    assert_eq!(keys(&world), ["owner"]);
    let opened = mark(&mut world, "three");
    assert!(
        opened.is_careful && opened.poisons.is_empty(),
        "careful, and nobody is blamed"
    );
    let deaths = |world: &World| marks(world)[0].deaths;
    assert_eq!(deaths(&world), 1, "an orderly end is not counted");
    assert!(start(&mut world, "four"));
    assert!(keys(&world).is_empty(), "{:?}", keys(&world));
}

#[test]
fn f9_a_trial_whose_mark_is_on_its_way_is_withdrawn_by_an_order_to_stop() {
    let mut world = three();
    mark(&mut world, "one");
    let opened = mark(&mut world, "two");
    load(&mut world, opened);
    world.step(ScheduleInput::TrialTurn);
    world.step(ScheduleInput::Leaving);
    assert_eq!(keys(&world).len(), 2, "its mark stands: {:?}", keys(&world));
    make_deadly(Some("zeta"));
    assert!(lives(&mut world, |world| drop(world.step(ScheduleInput::TrialMarked))));
    make_deadly(None);
    assert_eq!(keys(&world), ["owner"]);
    assert_eq!(world.machine.len(), 3, "none is forgotten");
    let opened = mark(&mut world, "three");
    assert!(opened.is_careful && opened.poisons.is_empty());
}

#[test]
fn f9_an_owner_told_to_stop_before_its_shard_is_open_is_no_young_death() {
    let mut world = three();
    mark(&mut world, "one");
    let others = leave_marks(ShardId(0), &marks(&world), "two", world.now.store);
    assert!(others.is_empty(), "what another left behind is a death");
    let left = leave_marks(ShardId(0), &marks(&world), "one", world.now.store);
    apply(&mut world, left);
    assert!(keys(&world).is_empty());
    mark(&mut world, "two");
    mark(&mut world, "three");
    let left = leave_marks(ShardId(0), &marks(&world), "three", world.now.store);
    apply(&mut world, left);
    assert!(mark(&mut world, "four").is_careful, "a death before it still counts");
    assert_eq!(marks(&world)[0].deaths, 1);
}

#[test]
fn an_owner_that_has_proven_itself_leaves_without_a_word() {
    let mut world = three();
    assert!(start(&mut world, "one"));
    assert!(keys(&world).is_empty());
    let writes = world.writes;
    world.step(ScheduleInput::Leaving);
    assert_eq!(world.writes, writes);
    world.run(NOON + 3 * MINUTE);
    assert_eq!(*world.nominals("alpha").last().unwrap(), NOON + 3 * MINUTE);
}
