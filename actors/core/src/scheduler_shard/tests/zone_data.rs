//! What newer zone data make of a schedule's row (F22): no local day twice, no instant upon another.

use super::world::*;
use crate::fate::FateKind::*;
use crate::row::Row;
use crate::schedule::{CursorRow, EditKind, PendingFate, ScheduleSpec};
use crate::time::Span;

fn tamper(world: &mut World, change: impl Fn(&mut CursorRow)) {
    for row in world.rows.values_mut() {
        if let Row::Cursor(cursor) = row {
            change(cursor);
        }
    }
}

/// Berlin was an hour further east by the data of then: so a mark was written.
fn set_back(cursor: &mut CursorRow, mark: usize) {
    let dropped = &mut cursor.dropped[mark];
    (dropped.nominal, dropped.offset) = (dropped.nominal - Span::from_secs(3_600), dropped.offset + 3_600);
}

fn berlin(expression: &str) -> ScheduleSpec {
    cron_in("Europe/Berlin", &[expression])
}

fn edit_to(world: &mut World, spec: ScheduleSpec, pending: PendingFate) {
    let input = edit_with("it", spec, (None, pending, false));
    world.step(input).unwrap().unwrap();
}

/// Fired at 09:00 local by zone data that differ from today's by `shift` seconds.
fn with_older_zone_data(shift: i64) -> World {
    let mut world = World::new(NOON - 12 * HOUR);
    world.create("daily", cron_in("Europe/Berlin", &["0 9 * * *"]));
    world.run(NOON - 4 * HOUR);
    assert_eq!(world.nominals("daily"), [NOON - 4 * HOUR]);
    tamper(&mut world, |cursor| {
        // The fire came earlier, at what was 09:00 then.
        cursor.nominal = at(NOON - 4 * HOUR - shift);
        cursor.open.as_mut().unwrap().to = cursor.nominal;
        cursor.offset += i32::try_from(shift).unwrap();
        cursor.zone_version = "2020a".into();
    });
    world.now.store = at(NOON - 4 * HOUR - shift);
    world
}

#[test]
fn f22_newer_zone_data_do_not_fire_one_local_day_twice() {
    let mut world = with_older_zone_data(HOUR);
    world.restart();
    world.run(NOON + DAY);
    assert_eq!(world.nominals("daily"), [NOON - 4 * HOUR, NOON - 4 * HOUR + DAY]);
    assert_eq!(world.count("daily", WithdrawnEdit), 1);
    let zone_edits = world
        .rows
        .values()
        .filter(|row| matches!(row, Row::Edit(row) if row.kind == EditKind::ZoneData));
    assert_eq!(zone_edits.count(), 1);
    assert_ne!(&*world.cursor("daily").zone_version, "2020a");
}

#[test]
fn f22_the_same_zone_data_would_fire_it_again() {
    let mut world = with_older_zone_data(HOUR);
    tamper(&mut world, |cursor| {
        cursor.zone_version = crate::zone::ZoneVersion::bundled().as_str().into();
    });
    world.ids.clear();
    world.restart();
    world.run(NOON);
    assert_eq!(world.jobs.len(), 2, "so it is the version that makes the difference");
}

#[test]
fn f22_newer_zone_data_that_move_nothing_change_nothing() {
    let mut world = with_older_zone_data(0);
    world.writes = 0;
    world.restart();
    assert_eq!(world.writes, 0);
    world.run(NOON + DAY);
    assert_eq!(world.jobs.len(), 2);
}

#[test]
fn f22_newer_zone_data_move_a_dropped_instant_with_its_local_time() {
    let mut world = World::new(NOON);
    world.create("it", cron_in("Europe/Berlin", &["0 9 * * *"]));
    edit_to(&mut world, berlin("0 9 * * *"), PendingFate::Drop);
    tamper(&mut world, |cursor| {
        set_back(cursor, 0);
        cursor.zone_version = "2020a".into();
    });
    world.restart();
    world.run(NOON + 2 * DAY);
    assert_eq!(world.nominals("it"), [NOON - 4 * HOUR + 2 * DAY]);
    assert_eq!(world.count("it", WithdrawnEdit), 1);
    world.audited("it");
}

/// By the data of then 09:00 in Berlin was 07:00 and is dropped, and 10:00 was 08:00 and is kept. By the newer data
/// 09:00 is 08:00.
#[test]
fn f22_a_dropped_instant_that_newer_zone_data_move_upon_a_kept_one_gives_way() {
    let nine = NOON - 4 * HOUR + DAY;
    let mut world = World::new(NOON);
    world.create("it", berlin("0 9,10 * * *"));
    edit_to(&mut world, berlin("0 9,10 * * *"), PendingFate::Drop);
    edit_to(&mut world, berlin("0 12 * * *"), PendingFate::Keep);
    assert_eq!(world.cursor("it").kept.unwrap().nominal, at(nine + HOUR));
    tamper(&mut world, |cursor| {
        set_back(cursor, 0);
        let kept = cursor.kept.as_mut().unwrap();
        (kept.nominal, kept.due) = (at(nine), at(nine));
        cursor.zone_version = "2020a".into();
    });
    world.restart();
    world.machine.find_contradiction().unwrap();
    world.run(nine + 2 * DAY);
    assert_eq!(world.nominals("it"), [nine, nine + 3 * HOUR, nine + 3 * HOUR + DAY]);
    world.audited("it");
}

#[test]
fn f22_two_dropped_instants_that_newer_zone_data_move_together_are_one() {
    let nine = NOON - 4 * HOUR + DAY;
    let mut world = World::new(NOON);
    world.create("it", berlin("0 9,10 * * *"));
    for _ in 0..2 {
        edit_to(&mut world, berlin("0 9,10 * * *"), PendingFate::Drop);
    }
    tamper(&mut world, |cursor| {
        cursor.dropped[0].offset += 3_600;
        cursor.zone_version = "2020a".into();
    });
    world.restart();
    assert_eq!(world.cursor("it").dropped.len(), 1);
    world.run(nine + 2 * HOUR);
    assert_eq!(world.nominals("it"), [nine], "only 10:00 is dropped");
    world.audited("it");
}

/// The hour that clocks show again holds a kept fire: the line does not go backwards, and no fire is without a fate.
#[test]
fn f22_a_kept_fire_in_the_hour_that_is_shown_again_has_a_fate() {
    let ten = NOON - 3 * HOUR;
    for (minute, withdrawn) in [(10, 4), (25, 3), (40, 4)] {
        let mut world = World::new(NOON - 12 * HOUR);
        world.create("it", berlin(&format!("0,{minute} 9-10 * * *")));
        // 10:00 has fired; what comes at 10:10, 10:25 or 10:40 is kept, of the rule before; the new one asks for
        // 10:25, too.
        world.run(ten);
        edit_to(&mut world, berlin("5,25,45 8-17 * * *"), PendingFate::Keep);
        let before = world.jobs.len();
        tamper(&mut world, |cursor| {
            cursor.offset += 3_600;
            cursor.zone_version = "2020a".into();
        });
        world.restart();
        world.audited("it");
        world.run(ten + 90 * MINUTE);
        // By the newer data it was 10:00 then, and is 11:00 at what was taken for 10:00: 10:05 to 10:45 come again.
        let fired = world.nominals("it")[before..].to_vec();
        assert_eq!(fired, [ten + 65 * MINUTE, ten + 85 * MINUTE], "{minute}");
        assert_eq!(world.count("it", WithdrawnEdit), withdrawn, "{minute}");
        world.audited("it");
    }
}
