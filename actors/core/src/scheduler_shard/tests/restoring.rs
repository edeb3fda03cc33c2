//! A store restored from a backup (F11): what fired after the backup was taken does not fire again where a
//! second run is worse than none.

use super::world::*;
use crate::fate::FateKind::*;
use crate::ids::JobId;
use crate::job::Delivery;
use crate::machine::{ReplyTo, Write};
use crate::row::{Row, RowKey};
use crate::schedule::{EditKind, MisfirePolicy, PendingFate, ScheduleSpec};
use crate::scheduler_shard::hold_restored;
use crate::scheduler_shard::io::ScheduleInput;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

fn delivered(delivery: Delivery, mut spec: ScheduleSpec) -> ScheduleSpec {
    Arc::make_mut(&mut spec.job).delivery = delivery;
    spec
}

fn at_most_once(spec: ScheduleSpec) -> ScheduleSpec {
    delivered(Delivery::AtMostOnce, spec)
}

/// Another store, made of a backup's rows while this one's world goes on.
fn restored(backup: &BTreeMap<RowKey, Row>, world: &World) -> World {
    let mut back = World::new(NOON);
    back.rows.clone_from(backup);
    back.now = world.now;
    back.epoch = 70;
    for cursor in back.opened().cursors {
        let of_life = |row: &&Row| matches!(row, Row::Backlog(row) if row.name == cursor.name);
        let backlogs = back.rows.values().filter(of_life).filter_map(|row| match row {
            Row::Backlog(row) => Some((**row).clone()),
            _ => None,
        });
        let backlogs = backlogs.collect();
        let mut definitions = back.opened().definitions;
        definitions.retain(|row| row.name == cursor.name);
        for write in hold_restored(cursor, &definitions, backlogs, (None, back.now.store)) {
            match write {
                Write::Put { row, .. } => drop(back.rows.insert(row.key(), row)),
                Write::Delete(key) => drop(back.rows.remove(&key)),
            }
        }
    }
    back.restart();
    back
}

fn made(world: &World) -> BTreeSet<JobId> {
    world.ids.keys().copied().collect()
}

fn kinds(world: &World) -> Vec<EditKind> {
    let kind = |row: &Row| match row {
        Row::Edit(row) => Some(row.kind),
        _ => None,
    };
    world.rows.values().filter_map(kind).collect()
}

/// A person asks for a range that has run already.
fn run_again(world: &mut World, text: &str, (from, to): (i64, i64)) {
    let asked = ScheduleInput::Backfill {
        reply: ReplyTo(1),
        name: name(text),
        from: at(from),
        to: at(to),
        cap: 1_000,
        rerun: true,
        request: 7,
        seen: None,
        dry_run: false,
        life: world.machine.incarnation_of(&name(text)),
        fates: world.closed(text),
    };
    assert!(world.step(asked).unwrap().is_ok());
}

#[test]
fn f11_an_at_most_once_occurrence_that_fired_after_the_backup_does_not_fire_again() {
    let mut world = World::new(NOON);
    world.create("once", at_most_once(cron("* * * * *")));
    world.create("often", cron("* * * * *"));
    world.run(NOON + 5 * MINUTE);
    let backup = world.rows.clone();
    world.run(NOON + 9 * MINUTE);
    let mut back = restored(&backup, &world);
    back.run(NOON + 12 * MINUTE);
    assert!(back.nominals("once").is_empty(), "held until a person has looked");
    assert_eq!(back.cursor("once").paused_at, Some(at(NOON + 9 * MINUTE)));
    assert_eq!(kinds(&back).last(), Some(&EditKind::Restored), "and it says why");
    assert_eq!(
        *back.nominals("often").last().unwrap(),
        NOON + 12 * MINUTE,
        "the others go on"
    );
    view(back.step(resume("once")).unwrap());
    back.run(NOON + 14 * MINUTE);
    assert_eq!(back.nominals("once"), [NOON + 13 * MINUTE, NOON + 14 * MINUTE]);
    assert_eq!(
        back.spans("once"),
        [(FiredOnTime, Some(5)), (Paused, Some(7)), (FiredOnTime, Some(2))]
    );
    for text in ["once", "often"] {
        back.audited(text);
    }
}

#[test]
fn f11_what_backlogs_owed_at_the_backup_is_not_made_up_again() {
    let policy = MisfirePolicy::All { cap: 1_000, rate: 1 };
    let mut world = World::new(NOON);
    world.create("once", at_most_once(with(policy, cron("* * * * *"))));
    world.create("asked", at_most_once(cron("* * * * *")));
    world.run(NOON + 5 * MINUTE);
    world.down_until(NOON + 30 * MINUTE);
    run_again(&mut world, "asked", (NOON, NOON + 30 * MINUTE));
    assert_eq!(world.backlogs().len(), 2, "half of it is made up");
    let backup = world.rows.clone();
    let before = made(&world);
    world.run(NOON + 40 * MINUTE);
    assert!(world.backlogs().is_empty());
    let lost: BTreeSet<JobId> = made(&world).difference(&before).copied().collect();
    assert!(lost.len() > 20, "{}", lost.len());

    let mut back = restored(&backup, &world);
    assert!(back.backlogs().is_empty());
    for text in ["once", "asked"] {
        view(back.step(resume(text)).unwrap());
    }
    back.run(NOON + 60 * MINUTE);
    assert!(made(&back).is_disjoint(&lost), "none of them is made twice");
    for text in ["once", "asked"] {
        assert_eq!(*back.nominals(text).last().unwrap(), NOON + 60 * MINUTE);
        back.audited(text);
    }
}

#[test]
fn f11_a_kept_occurrence_of_an_at_most_once_version_is_held_too() {
    let mut world = World::new(NOON);
    world.create("kept", at_most_once(cron("*/10 * * * *")));
    let fresh = delivered(Delivery::AtLeastOnce, cron("*/7 * * * *"));
    let keep = edit_with("kept", fresh, (None, PendingFate::Keep, false));
    view(world.step(keep).unwrap());
    assert!(world.cursor("kept").kept.is_some());
    let backup = world.rows.clone();
    let before = made(&world);
    world.run(NOON + 12 * MINUTE);
    let lost: BTreeSet<JobId> = made(&world).difference(&before).copied().collect();
    let mut back = restored(&backup, &world);
    view(back.step(resume("kept")).unwrap());
    back.run(NOON + 30 * MINUTE);
    assert!(made(&back).is_disjoint(&lost));
    back.audited("kept");
}

#[test]
fn f11_a_restore_leaves_at_least_once_schedules_as_they_are() {
    let mut world = World::new(NOON);
    world.create("often", cron("* * * * *"));
    world.create("over", at_most_once(once(NOON + 60)));
    world.run(NOON + 5 * MINUTE);
    assert!(world.cursor("over").finished_at.is_some());
    for cursor in world.opened().cursors {
        let definitions = world.opened().definitions;
        let definitions: Vec<_> = definitions.into_iter().filter(|row| row.name == cursor.name).collect();
        assert!(hold_restored(cursor, &definitions, Vec::new(), (None, world.now.store)).is_empty());
    }
}
