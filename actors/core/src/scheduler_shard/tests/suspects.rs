//! What a trial evaluates, and what is not evaluated while trials are made (F9).

use super::trials::*;
use super::world::*;
use crate::limits::AUDIT_PAGE_MS;
use crate::machine::Out;
use crate::planted;
use crate::schedule::MisfirePolicy;
use crate::scheduler_shard::io::{ScheduleEffect, ScheduleInput};
use crate::time::{Span, StoreTime};
use std::cell::Cell;

thread_local! {
    static DEADLY_AT: Cell<Option<StoreTime>> = const { Cell::new(None) };
}

/// A rule that is asked for what comes up to this instant panics, in this thread.
fn make_deadly_at(at: Option<StoreTime>) {
    planted::on_instant(|at| assert_ne!(DEADLY_AT.get(), Some(at), "a test asked for it"));
    DEADLY_AT.set(at);
}

/// One schedule dies of an instant half an hour after its last decision; others are sound.
fn dies_later(policy: MisfirePolicy) -> World {
    let mut world = World::new(NOON);
    world.create("alpha", cron("30 * * * * *"));
    let mut bad = with(policy, every(1, NOON));
    bad.tolerance = Span::from_secs(3_600);
    if matches!(policy, MisfirePolicy::All { .. }) {
        bad.tolerance = Span::from_secs(60);
    }
    world.create("bad", bad);
    world.run(NOON + 10);
    world.jump(at(NOON + HOUR));
    make_deadly_at(Some(at(NOON + 1_800)));
    world
}

#[test]
fn f9_a_trial_looks_at_what_a_backlog_will_release_after_it() {
    let mut world = dies_later(MisfirePolicy::All { cap: 10_000, rate: 50 });
    assert!(start(&mut world, "first"), "it is not released yet");
    assert!(!lives(&mut world, |world| world.run(NOON + HOUR + MINUTE)));
    start_until_it_lives(&mut world);
    assert_eq!(keys(&world), ["schedule/default/bad/1"], "named, not just dead");
    make_deadly_at(None);
    world.run(NOON + HOUR + 2 * MINUTE);
    assert_eq!(*world.nominals("alpha").last().unwrap(), NOON + HOUR + MINUTE + 30);
    world.audited("alpha");
}

#[test]
fn f9_a_trial_looks_at_what_is_due_beyond_one_step() {
    let mut world = dies_later(MisfirePolicy::Skip);
    start_until_it_lives(&mut world);
    assert_eq!(keys(&world), ["schedule/default/bad/1"], "named, not just dead");
    make_deadly_at(None);
}

#[test]
fn f9_the_auditor_walks_over_nothing_while_schedules_wait_for_their_trial() {
    let mut world = three();
    mark(&mut world, "one");
    let opened = mark(&mut world, "two");
    load(&mut world, opened);
    let ordered = |world: &mut World, input: ScheduleInput| {
        let mut out = Out::default();
        world.machine.step(world.now, input, &mut out, &mut Vec::new());
        out.effects
            .iter()
            .any(|effect| matches!(effect, ScheduleEffect::LoadFates { .. }))
    };
    for _ in 0..3 {
        world.now.mono = world.now.mono + Span::from_millis(10 * AUDIT_PAGE_MS);
        assert!(!ordered(&mut world, ScheduleInput::Tick), "between two trials");
        assert_eq!(world.machine.sweep_at(), None, "and no timer wakes it for that");
        assert!(!ordered(&mut world, ScheduleInput::TrialTurn));
        assert!(!ordered(&mut world, ScheduleInput::Tick), "in a trial");
        assert!(!ordered(&mut world, ScheduleInput::TrialMarked));
    }
    assert!(!world.machine.is_trying());
    assert!(ordered(&mut world, ScheduleInput::Tick), "then it begins");
}
