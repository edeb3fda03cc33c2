//! A rule that ends the process (F9): suspects one by one, the culprit put aside, the others go on.

use super::world::*;
use crate::fate::FateKind::*;
use crate::ids::ShardId;
use crate::machine::{Out, ReplyTo, Write};
use crate::name::Name;
use crate::planted;
use crate::refusal::Refusal;
use crate::row::{QuarantineRow, Row, RowKey};
use crate::schedule::PendingFate;
use crate::scheduler_shard::SchedulerShard;
use crate::scheduler_shard::audit::AuditFaultKind;
use crate::scheduler_shard::io::{LostCursor, ScheduleInput, ScheduleOpened, ScheduleReply};
use crate::scheduler_shard::marks::{is_mark, read_marks};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static DEADLY: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Evaluating this schedule panics, in this thread.
pub(super) fn make_deadly(name: Option<&str>) {
    planted::on_evaluate(|name: &Name| {
        let is_it = DEADLY.with_borrow(|deadly| deadly.as_deref() == Some(name.as_str()));
        assert!(!is_it, "a test asked for it");
    });
    DEADLY.set(name.map(str::to_owned));
}

pub(super) fn marks(world: &World) -> Vec<QuarantineRow> {
    let mark = |row: &Row| match row {
        Row::Quarantine(row) => Some((**row).clone()),
        _ => None,
    };
    world.rows.values().filter_map(mark).collect()
}

pub(super) fn keys(world: &World) -> Vec<String> {
    let key = |row: QuarantineRow| String::from_utf8(row.key.to_vec()).unwrap();
    marks(world).into_iter().map(key).collect()
}

/// The marks of an owner, durable; what it then opens with.
pub(super) fn mark(world: &mut World, boot: &str) -> ScheduleOpened {
    let found = read_marks(ShardId(0), &marks(world), boot, world.now.store);
    apply(world, found.writes);
    let mut opened = world.opened();
    opened.poisons = found.poisons;
    opened.is_careful = found.deaths > 0;
    opened.is_marked = true;
    opened
}

pub(super) fn apply(world: &mut World, writes: Vec<Write>) {
    for write in writes {
        match write {
            Write::Put { row, .. } => drop(world.rows.insert(row.key(), row)),
            Write::Delete(key) => drop(world.rows.remove(&key)),
        }
    }
}

/// The machine of a new owner, which has not stepped yet.
pub(super) fn load(world: &mut World, opened: ScheduleOpened) {
    world.epoch += 1;
    world.orders.clear();
    let mut out = Out::default();
    let epoch = world.epoch;
    world.machine = SchedulerShard::open(facts(epoch), opened, world.now, &mut out).unwrap();
    world.commit(out, Vec::new());
}

/// A process that owns the shard, as the shell runs it: the marks first, then the rows, then its orders
/// in turn. Answers whether it lives.
pub(super) fn start(world: &mut World, boot: &str) -> bool {
    let opened = mark(world, boot);
    lives(world, |world| {
        load(world, opened);
        world.tick();
        while let Some(order) = world.orders.pop() {
            world.step(order);
        }
        world.tick();
    })
}

/// What a step of a process that dies has not committed is not in the rows.
pub(super) fn lives(world: &mut World, run: impl FnOnce(&mut World)) -> bool {
    catch_unwind(AssertUnwindSafe(|| run(world))).is_ok()
}

pub(super) fn three() -> World {
    let mut world = World::new(NOON);
    for name in ["alpha", "bad", "zeta"] {
        world.create(name, cron("* * * * *"));
    }
    world.run(NOON + MINUTE);
    world
}

/// Starts until one process lives; answers how many died.
pub(super) fn start_until_it_lives(world: &mut World) -> usize {
    (0..20).find(|boot| start(world, &boot.to_string())).unwrap()
}

#[test]
fn f9_a_rule_that_ends_its_owner_is_found_alone_and_the_others_go_on() {
    let mut world = three();
    make_deadly(Some("bad"));
    assert!(
        !lives(&mut world, |world| world.run(NOON + 2 * MINUTE)),
        "it panics when due"
    );
    world.jump(at(NOON + 3 * MINUTE));
    assert_eq!(start_until_it_lives(&mut world), 3, "once among all, then twice alone");
    assert_eq!(keys(&world), ["schedule/default/bad/1"]);
    world.run(NOON + 5 * MINUTE);
    assert_eq!(world.nominals("bad"), [NOON + MINUTE]);
    for good in ["alpha", "zeta"] {
        assert_eq!(*world.nominals(good).last().unwrap(), NOON + 5 * MINUTE);
        world.audited(good);
    }
    assert_eq!(world.machine.quarantined(), 1);
    let bad = view(world.step(pause("bad")).unwrap());
    let reason = bad.quarantined.unwrap();
    assert!(reason.contains("evaluated this schedule alone"), "{reason}");
    let spans = world.spans("bad");
    assert_eq!(spans.last().map(|(kind, _)| *kind), Some(Quarantined), "{spans:?}");
    assert!(!is_mark(&marks(&world)[0]), "people see it");
    assert!(start(&mut world, "next"), "it stays aside");
    make_deadly(None);
}

#[test]
fn f9_an_edit_releases_and_the_deadly_version_is_never_evaluated_again() {
    let mut world = three();
    make_deadly(Some("bad"));
    world.jump(at(NOON + 3 * MINUTE));
    start_until_it_lives(&mut world);
    make_deadly(None);
    let edit = ScheduleInput::Edit {
        reply: ReplyTo(1),
        name: name("bad"),
        if_match: None,
        spec: Box::new(cron("*/2 * * * *")),
        pending: PendingFate::Retime,
        dry_run: false,
    };
    assert!(view(world.step(edit).unwrap()).quarantined.is_none());
    assert_eq!(keys(&world), ["past/default/bad/1"]);
    world.run(NOON + 4 * MINUTE);
    assert_eq!(*world.nominals("bad").last().unwrap(), NOON + 4 * MINUTE);
    assert!(start(&mut world, "after"));
    assert_eq!(world.machine.quarantined(), 0);
    assert!(matches!(world.step(delete("bad")), Some(Ok(ScheduleReply::Deleted))));
    assert!(keys(&world).is_empty(), "a new life of the name begins without");
}

#[test]
fn f9_resume_tries_again_and_gives_the_time_between_its_fate() {
    let mut world = three();
    make_deadly(Some("bad"));
    world.jump(at(NOON + 3 * MINUTE));
    start_until_it_lives(&mut world);
    let resumed = catch_unwind(AssertUnwindSafe(|| {
        world
            .machine
            .clone()
            .step(world.now, resume("bad"), &mut Out::default(), &mut Vec::new())
    }));
    assert!(resumed.is_err(), "still deadly: that process ends, its row stands");
    assert!(start(&mut world, "again"));
    assert_eq!(world.machine.quarantined(), 1);
    make_deadly(None);
    world.run(NOON + 4 * MINUTE);
    assert!(view(world.step(resume("bad")).unwrap()).quarantined.is_none());
    assert!(keys(&world).is_empty());
    world.run(NOON + 6 * MINUTE);
    assert_eq!(world.nominals("bad")[1..], [NOON + 5 * MINUTE, NOON + 6 * MINUTE]);
    assert_eq!(
        world.spans("bad"),
        [(FiredOnTime, Some(1)), (Quarantined, None), (FiredOnTime, Some(2))]
    );
    world.audited("bad");
}

#[test]
fn f9_a_process_that_is_killed_while_it_tries_holds_nothing_against_anyone_for_good() {
    let mut world = three();
    // Young, then in the trial of one.
    mark(&mut world, "one");
    let opened = mark(&mut world, "two");
    load(&mut world, opened);
    world.step(ScheduleInput::TrialTurn);
    assert_eq!(keys(&world).len(), 2, "{:?}", keys(&world));
    assert!(start(&mut world, "three"));
    assert!(keys(&world).is_empty(), "{:?}", keys(&world));
    world.run(NOON + 2 * MINUTE);
    for name in ["alpha", "bad", "zeta"] {
        assert_eq!(world.nominals(name).len(), 2);
    }
}

#[test]
fn f9_nothing_else_is_evaluated_while_a_mark_stands() {
    let mut world = three();
    let mut opened = world.opened();
    opened.is_careful = true;
    let mut out = Out::default();
    world.machine = SchedulerShard::open(facts(9), opened, world.now, &mut out).unwrap();
    world.commit(out, Vec::new());
    assert_eq!(world.machine.len(), 3, "those that wait for their trial are there");
    world.step(ScheduleInput::TrialTurn);
    world.step(ScheduleInput::TrialMarked);
    world.step(ScheduleInput::TrialTurn);
    let before = world.jobs.len();
    world.jump(at(NOON + 5 * MINUTE));
    world.tick();
    assert_eq!(world.jobs.len(), before, "the first is due, and waits");
    assert_eq!(world.machine.next_wake(), Default::default(), "and does not spin");
    let refused: Refusal = world.step(pause("alpha")).unwrap().unwrap_err();
    assert_eq!(refused.code, "schedules_in_trial");
}

#[test]
fn f9_a_cursor_that_cannot_be_read_hides_no_schedule() {
    let mut world = three();
    world.down_until(NOON + 20 * MINUTE);
    world.run(NOON + 22 * MINUTE);
    let closed = world.closed("bad");
    let mut opened = world.opened();
    opened.cursors.retain(|cursor| cursor.name.as_str() != "bad");
    let (tenant, text) = name("bad");
    opened.lost.push(LostCursor {
        tenant,
        name: text,
        reason: "its cursor row cannot be read: checksum".into(),
        closed: Some((closed.first().unwrap().from, closed.last().unwrap().to)),
    });
    world.jump(at(NOON + 30 * MINUTE));
    let mut out = Out::default();
    world.machine = SchedulerShard::open(facts(9), opened, world.now, &mut out).unwrap();
    world.commit(out, Vec::new());
    world.run(NOON + 31 * MINUTE);
    let shown = view(world.step(pause("bad")).unwrap());
    assert_eq!(
        shown.quarantined.as_deref(),
        Some("its cursor row cannot be read: checksum")
    );
    assert!(world.audit("bad").faults.is_empty(), "what nobody knows has a fate too");
    assert!(view(world.step(resume("bad")).unwrap()).quarantined.is_none());
    world.run(NOON + 33 * MINUTE);
    assert_eq!(
        world.nominals("bad")[world.nominals("bad").len() - 2..],
        [NOON + 32 * MINUTE, NOON + 33 * MINUTE]
    );
    world.audited("bad");
    assert!(keys(&world).is_empty());
}

#[test]
fn f9_the_auditor_names_what_is_in_quarantine() {
    let mut world = three();
    for row in world.rows.values_mut() {
        if let Row::Quarantine(_) = row {
            panic!("nothing is there yet");
        }
    }
    world
        .rows
        .retain(|key, _| !matches!(key, RowKey::Definition(_, _, name, ..) if name.as_str() == "bad"));
    world.restart();
    world.audit_by_pages();
    assert!(
        world
            .faults
            .iter()
            .any(|fault| fault.kind == AuditFaultKind::Quarantined),
        "{:?}",
        world.faults
    );
}
