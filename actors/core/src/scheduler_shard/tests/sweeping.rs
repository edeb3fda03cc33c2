//! The auditor at work: pages, faults, counts filled in, old fates dropped.

use super::world::*;
use crate::fate::FateKind::*;
use crate::limits::{AUDIT_ROWS, FATE_RETENTION_DAYS};
use crate::row::{Row, RowKey};
use crate::schedule::{Exclusion, MisfirePolicy};
use crate::scheduler_shard::audit::AuditFaultKind;
use crate::scheduler_shard::io::{Loaded, ScheduleInput};

impl World {
    /// The page that the machine ordered.
    pub(super) fn edits_page(&self, after: Option<RowKey>, limit: usize) -> ScheduleInput {
        let is_edit =
            |key: &&RowKey| matches!(key, RowKey::Edit(..)) && after.as_ref().is_none_or(|after| *key > after);
        let edits: Vec<RowKey> = self.rows.keys().filter(is_edit).take(limit).cloned().collect();
        let next = edits.last().filter(|_| edits.len() == limit).cloned();
        ScheduleInput::Loaded(Loaded::Edits { edits, next })
    }

    fn edits(&self, text: &str) -> usize {
        let of_name = |key: &&RowKey| matches!(key, RowKey::Edit(_, _, name, ..) if name.as_str() == text);
        self.rows.keys().filter(of_name).count()
    }
}

/// Fires from 09:00 to 17:00 on workdays, over a year: more spans than a page.
fn a_year() -> World {
    let mut world = World::new(NOON);
    let mut spec = cron("0 9,17 * * *");
    spec.exclusions = (0..5).map(|k| Exclusion::Weekday(k % 7)).step_by(2).collect();
    world.create("it", spec);
    world.run(NOON + 365 * DAY);
    assert!(world.closed("it").len() > AUDIT_ROWS);
    world
}

#[test]
fn a_sound_history_of_several_pages_has_no_faults() {
    let mut world = a_year();
    world.audit_by_pages();
    assert!(world.faults.is_empty(), "{:?}", world.faults);
}

#[test]
fn a_hole_in_any_page_is_named() {
    for drop in [3, AUDIT_ROWS - 1, AUDIT_ROWS, AUDIT_ROWS + 5] {
        let mut world = a_year();
        let nth = world.closed("it")[drop].to;
        world
            .rows
            .retain(|_, row| !matches!(row, Row::Fate(row) if row.span.to == nth));
        world.machine.check();
        world.audit_by_pages();
        assert!(
            world
                .faults
                .iter()
                .any(|fault| fault.kind == AuditFaultKind::Hole && fault.to == nth),
            "{drop}"
        );
    }
}

#[test]
fn f23_counts_that_nobody_walked_are_filled_in() {
    let mut world = World::new(NOON);
    world.create("it", cron_in("UTC", &["* * * * *", "30 30 12 * * *"]));
    world.step(pause("it")).unwrap().unwrap();
    world.run(NOON + 30 * DAY);
    world.step(resume("it")).unwrap().unwrap();
    world.run(NOON + 31 * DAY);
    let closed = world.closed("it").remove(0);
    assert_eq!((closed.kind, closed.count), (Paused, None));
    // Too many to walk now as well: the count stays open, and that is no fault.
    world.audit_by_pages();
    assert!(world.faults.is_empty());
    let expected = 30 * 1_440 + 30;
    for row in world.rows.values_mut() {
        if let Row::Definition(row) = row {
            row.spec = cron("* * * * *");
        }
    }
    world.restart();
    world.audit_by_pages();
    assert_eq!(world.closed("it")[0].count, Some(expected - 30));
    assert_eq!(world.count("it", Paused), expected - 30);
}

#[test]
fn f23_old_fates_are_dropped_and_history_begins_later() {
    let mut world = a_year();
    let before = world.closed("it").len();
    for _ in 0..3 {
        world.audit_by_pages();
    }
    let cursor = world.cursor("it");
    assert!(cursor.history_at > at(NOON + (364 - FATE_RETENTION_DAYS as i64 - 7) * DAY));
    assert!(cursor.history_at <= at(NOON + (365 - FATE_RETENTION_DAYS as i64) * DAY));
    assert!(world.closed("it").len() < before / 2);
    world.audited("it");
    assert!(world.faults.is_empty());
    world.restart();
    world.run(NOON + 366 * DAY);
    world.audited("it");
}

#[test]
fn what_a_backlog_owes_is_not_purged() {
    let mut world = World::new(NOON);
    let spec = with(MisfirePolicy::All { cap: 100_000, rate: 1 }, cron("* * * * * *"));
    world.create("it", spec);
    world.down_until(NOON + DAY);
    world.step(pause("it")).unwrap().unwrap();
    world.jump(at(NOON + 200 * DAY));
    world.audit_by_pages();
    assert_eq!(world.backlogs().len(), 1);
    world.audited("it");
    assert!(world.faults.is_empty());
}

#[test]
fn p7_entries_of_edits_go_after_their_retention_but_for_the_newest_of_a_life() {
    let mut world = World::new(NOON);
    for name in ["it", "other"] {
        world.create(name, cron("0 0 1 1 *"));
        for request in 0..300 {
            world.step(run_now(name, request)).unwrap().unwrap();
        }
    }
    world.step(delete("other")).unwrap().unwrap();
    let days = |days: i64| at(NOON + (FATE_RETENTION_DAYS as i64 + days) * DAY);
    world.jump(days(-1));
    world.audit_by_pages();
    assert_eq!((world.edits("it"), world.edits("other")), (301, 302));
    world.step(pause("it")).unwrap().unwrap();
    world.jump(days(1));
    world.now.doubt = true;
    world.audit_by_pages();
    assert_eq!((world.edits("it"), world.edits("other")), (302, 302), "not in doubt");
    world.now.doubt = false;
    world.audit_by_pages();
    assert_eq!((world.edits("it"), world.edits("other")), (1, 0), "the pause is young");
    world.jump(days(200));
    world.audit_by_pages();
    assert_eq!(world.edits("it"), 1, "the newest stays");
}

#[test]
fn the_history_of_a_deleted_schedule_goes_after_its_retention() {
    let mut world = World::new(NOON);
    let history = |world: &World| {
        let kept = |row: &&Row| matches!(row, Row::Fate(_) | Row::Definition(_));
        world.rows.values().filter(kept).count()
    };
    world.create("it", cron("* * * * *"));
    world.run(NOON + 3 * MINUTE);
    world.step(delete("it")).unwrap().unwrap();
    assert_eq!(history(&world), 3);
    world.create("it", cron("0 0 1 1 *"));
    world.jump(at(NOON + (FATE_RETENTION_DAYS as i64 - 1) * DAY));
    world.audit_by_pages();
    assert_eq!((history(&world), world.machine.past_lives()), (4, 1));
    world.jump(at(NOON + (FATE_RETENTION_DAYS as i64 + 1) * DAY));
    world.audit_by_pages();
    assert_eq!(
        (history(&world), world.machine.past_lives()),
        (1, 0),
        "the life of now stays"
    );
    world.run(NOON + 365 * DAY);
    assert_eq!(world.nominals("it").len(), 4);
    assert!(world.faults.is_empty());
}
