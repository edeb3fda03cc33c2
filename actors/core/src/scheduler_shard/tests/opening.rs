//! Opening from rows: quarantine (F9), other zone data (F22), the shard map (F28), the auditor.

use super::world::*;
use crate::fate::FateKind::*;
use crate::ids::{ShardId, ShardMap, Slot};
use crate::machine::{Out, ReplyTo};
use crate::row::Row;
use crate::schedule::{BacklogRow, CursorRow, PendingFate, Rule};
use crate::scheduler_shard::audit::AuditFaultKind;
use crate::scheduler_shard::io::{ScheduleInput, ScheduleOpened, ScheduleReply};
use crate::scheduler_shard::marks::Poison;
use crate::scheduler_shard::{OpenRefused, SchedulerShard};
use crate::shard::ShardFacts;
use std::sync::Arc;

/// Changes stored rows behind the machine's back.
fn tamper(world: &mut World, change: impl Fn(&mut Row)) {
    for row in world.rows.values_mut() {
        change(row);
    }
}

fn break_expression(row: &mut Row) {
    let Row::Definition(definition) = row else {
        return;
    };
    if let Rule::Cron { resolved, .. } = &mut definition.spec.rule
        && definition.name.as_str() == "bad"
    {
        *resolved = vec!["not cron at all".into()];
    }
}

/// A backlog over a stretch that the cursor's open span has decided already.
fn decided_anew(cursor: &CursorRow) -> Row {
    Row::Backlog(Box::new(BacklogRow {
        tenant: cursor.tenant.clone(),
        name: cursor.name.clone(),
        incarnation: cursor.incarnation,
        number: 1,
        definition: cursor.definition,
        from: at(NOON + MINUTE),
        to: at(NOON + 2 * MINUTE),
        rate: 50,
        backfill: None,
        released: 0,
        open: None,
    }))
}

fn quarantine_rows(world: &World) -> usize {
    world
        .rows
        .values()
        .filter(|row| matches!(row, Row::Quarantine(_)))
        .count()
}

fn fix(text: &str) -> ScheduleInput {
    ScheduleInput::Edit {
        reply: ReplyTo(1),
        name: name(text),
        if_match: None,
        spec: Box::new(cron("* * * * *")),
        pending: PendingFate::Retime,
        dry_run: false,
    }
}

#[test]
fn f9_one_bad_expression_puts_one_schedule_aside_and_an_edit_brings_it_back() {
    let mut world = World::new(NOON);
    world.create("bad", cron("* * * * *"));
    world.create("good", cron("* * * * *"));
    world.run(NOON + 2 * MINUTE);
    tamper(&mut world, break_expression);
    world.down_until(NOON + 5 * MINUTE + 1);
    world.run(NOON + 10 * MINUTE);
    assert_eq!(world.nominals("bad").len(), 2);
    assert_eq!(world.nominals("good").len(), 2 + 6, "one for the stop, then each");
    assert_eq!(quarantine_rows(&world), 1);
    let run = world.step(run_now("bad", 1)).unwrap();
    assert!(run.is_ok(), "what to run is known");
    let view = view(world.step(fix("bad")).unwrap());
    assert!(view.quarantined.is_none());
    world.run(NOON + 12 * MINUTE);
    assert_eq!(world.nominals("bad")[3..], [NOON + 11 * MINUTE, NOON + 12 * MINUTE]);
    assert_eq!(
        world.spans("bad"),
        [(FiredOnTime, Some(2)), (Quarantined, None), (FiredOnTime, Some(2))]
    );
    world.audited("bad");
    world.audited("good");
}

#[test]
fn f9_a_missing_definition_ends_no_shell() {
    let mut world = World::new(NOON);
    world.create("bad", cron("* * * * *"));
    world.create("good", cron("* * * * *"));
    world
        .rows
        .retain(|_, row| !matches!(row, Row::Definition(row) if row.name.as_str() == "bad"));
    world.down_until(NOON + 5 * MINUTE);
    assert_eq!(world.nominals("good"), [NOON + 5 * MINUTE]);
    assert_eq!(
        world.step(run_now("bad", 1)).unwrap().unwrap_err().code,
        "schedule_quarantined"
    );
    assert!(world.step(fix("bad")).unwrap().is_ok());
    world.run(NOON + 6 * MINUTE);
    assert_eq!(world.nominals("bad"), [NOON + 6 * MINUTE]);
    assert!(matches!(world.step(delete("bad")), Some(Ok(ScheduleReply::Deleted))));
}

#[test]
fn f9_a_row_that_contradicts_itself_ends_no_shell() {
    let mut world = World::new(NOON);
    world.create("bad", cron("* * * * *"));
    world.run(NOON + 3 * MINUTE);
    tamper(&mut world, |row| {
        if let Row::Cursor(cursor) = row {
            cursor.open.as_mut().unwrap().to = at(NOON + HOUR);
        }
    });
    world.down_until(NOON + 5 * MINUTE);
    assert_eq!(world.jobs.len(), 3);
    assert_eq!(quarantine_rows(&world), 1);
    assert!(
        world
            .audit("bad")
            .faults
            .iter()
            .any(|fault| fault.kind == AuditFaultKind::Hole)
    );
}

#[test]
fn f9_two_rows_that_decide_the_same_stretch_end_no_shell_and_fire_nothing_twice() {
    let mut world = World::new(NOON);
    world.create("bad", cron("* * * * *"));
    world.create("good", cron("* * * * *"));
    world.run(NOON + 3 * MINUTE);
    let mut backlog = None;
    for row in world.rows.values_mut() {
        if let Row::Cursor(cursor) = row
            && cursor.name.as_str() == "bad"
        {
            cursor.backlog_next = 2;
            backlog = Some(decided_anew(cursor));
        }
    }
    let backlog = backlog.unwrap();
    world.rows.insert(backlog.key(), backlog);
    world.down_until(NOON + 5 * MINUTE);
    assert_eq!(world.nominals("bad").len(), 3, "what was decided is not decided again");
    assert_eq!(world.nominals("good").len(), 5);
    assert_eq!(quarantine_rows(&world), 1);
}

#[test]
fn f9_what_ended_two_owners_is_not_evaluated() {
    let mut world = World::new(NOON);
    world.create("bad", cron("* * * * *"));
    let mut opened = world.opened();
    let (tenant, text) = name("bad");
    opened.poisons.push(Poison {
        tenant,
        name: text,
        version: 1,
        deaths: 2,
        reason: "it ended two owners".into(),
        at: world.now.store,
        is_past: false,
    });
    world.jump(at(NOON + HOUR));
    world.machine = SchedulerShard::open(facts(2), opened, world.now, &mut Out::default()).unwrap();
    world.tick();
    assert!(world.jobs.is_empty() && world.machine.next_wake().store.is_none());
}

#[test]
fn f22_an_owner_with_older_zone_data_does_not_open() {
    let mut world = World::new(NOON);
    world.create("daily", cron_in("Europe/Berlin", &["0 9 * * *"]));
    tamper(&mut world, |row| {
        if let Row::Cursor(cursor) = row {
            cursor.zone_version = "2999z".into();
        }
    });
    let refused = SchedulerShard::open(facts(2), world.opened(), world.now, &mut Out::default());
    let Err(OpenRefused::NewerZoneData { theirs, .. }) = refused else {
        panic!("opened");
    };
    assert_eq!(&*theirs, "2999z");
}

#[test]
fn f22_equal_instants_of_two_expressions_are_one_occurrence() {
    let mut world = World::new(NOON);
    world.create("both", cron_in("UTC", &["0 * * * *", "*/30 * * * *"]));
    world.run(NOON + 2 * HOUR);
    assert_eq!(world.jobs.len(), 4);
    world.audited("both");
}

#[test]
fn f22_a_gap_makes_one_occurrence_of_three_local_times() {
    // 2026-03-29, Berlin: 02:00 to 03:00 does not exist.
    let gap = 1_774_746_000;
    let mut world = World::new(gap - 2 * HOUR);
    world.create("gap", cron_in("Europe/Berlin", &["0,10,20 2 * * *"]));
    world.run(gap + 6 * HOUR);
    assert_eq!(world.nominals("gap"), [gap]);
    world.audited("gap");
}

#[test]
fn f28_a_schedule_of_another_shard_is_refused() {
    let map = ShardMap::new(4).unwrap();
    let (tenant, text) = name("report");
    let home = map.shard_of(Slot::of_schedule(&tenant, &text));
    for shard in map.shards() {
        let facts = ShardFacts { shard, map, ..facts(1) };
        let mut world = World::new(NOON);
        world.machine = SchedulerShard::open(facts, ScheduleOpened::default(), world.now, &mut Out::default()).unwrap();
        let answer = world.try_create("report", cron("* * * * *"), false);
        match shard == home {
            true => assert!(answer.is_ok()),
            false => assert_eq!(answer.unwrap_err().code, "wrong_shard"),
        }
    }
    assert_ne!(home, ShardId(99));
}

/// A history with several spans.
fn lived() -> World {
    let mut world = World::new(NOON);
    world.create("it", cron("* * * * *"));
    world.run(NOON + 3 * MINUTE);
    world.down_until(NOON + 20 * MINUTE);
    world.run(NOON + 30 * MINUTE);
    world.audited("it");
    world
}

#[test]
fn the_auditor_names_occurrences_without_a_fate() {
    let mut world = lived();
    let skipped = |row: &Row| matches!(row, Row::Fate(row) if row.span.kind == SkippedMisfire);
    world.rows.retain(|_, row| !skipped(row));
    let fault = world.audit("it").faults.remove(0);
    assert_eq!(fault.kind, AuditFaultKind::Hole);
    assert_eq!(
        fault.instants,
        (4..=19).map(|k| at(NOON + k * MINUTE)).collect::<Vec<_>>()
    );
}

#[test]
fn the_auditor_names_occurrences_with_two_fates() {
    let mut world = lived();
    tamper(&mut world, |row| {
        if let Row::Fate(row) = row
            && row.span.kind == SkippedMisfire
        {
            row.span.from = at(NOON + 2 * MINUTE);
        }
    });
    let overlap = world
        .audit("it")
        .faults
        .into_iter()
        .find(|fault| fault.kind == AuditFaultKind::Overlap)
        .unwrap();
    assert_eq!(overlap.instants, [at(NOON + 3 * MINUTE)]);
}

#[test]
fn the_auditor_sees_a_wrong_count() {
    let mut world = lived();
    tamper(&mut world, |row| {
        if let Row::Cursor(cursor) = row {
            cursor.open.as_mut().unwrap().count = Some(3);
        }
    });
    let faults = world.audit("it").faults;
    assert!(matches!(faults[..], [ref fault] if matches!(fault.kind, AuditFaultKind::Count { recorded: 3, .. })));
}

#[test]
fn the_auditor_sees_a_cursor_that_ran_ahead() {
    let mut world = lived();
    tamper(&mut world, |row| {
        if let Row::Cursor(cursor) = row {
            cursor.nominal = at(NOON + 33 * MINUTE);
        }
    });
    let fault = world.audit("it").faults.remove(0);
    assert_eq!((fault.kind, fault.instants.len()), (AuditFaultKind::Hole, 3));
}

#[test]
fn names_are_shared_not_copied() {
    let world = lived();
    let spec = &world.jobs[0].spec;
    assert!(
        world
            .jobs
            .iter()
            .skip(1)
            .take(2)
            .all(|fire| Arc::ptr_eq(&fire.spec, spec))
    );
}
