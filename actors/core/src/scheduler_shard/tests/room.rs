//! What does not fit: a full disk, payloads that would make a step too large.

use super::world::*;
use crate::fate::FateKind::*;
use crate::limits::{
    BATCH_BYTES_MAX, EXCLUSION_COUNT_MAX, EXPRESSION_COUNT_MAX, PAYLOAD_BYTES_MAX, SCHEDULES_PER_SHARD_BYTES_MAX,
    TAG_COUNT_MAX,
};
use crate::machine::ReplyTo;
use crate::refusal::RefusalKind;
use crate::row::Row;
use crate::schedule::{Exclusion, PendingFate, Rule};
use crate::scheduler_shard::io::ScheduleInput;
use crate::target::{Payload, PayloadKind};
use crate::time::Span;
use std::sync::Arc;

/// Minutely; the disk is full since the second minute, and it is the eleventh.
fn overdue() -> World {
    let mut world = World::new(NOON);
    world.create("report", cron("* * * * *"));
    world.run(NOON + MINUTE);
    world.machine.set_full(true);
    world.jump(at(NOON + 10 * MINUTE + 30));
    world.tick();
    assert_eq!(world.nominals("report"), [NOON + MINUTE], "what is due stays due");
    world
}

fn made(world: &World) -> usize {
    let is_made = |row: &&Row| matches!(row, Row::Definition(_) | Row::Job(_));
    world.rows.values().filter(is_made).count() + world.jobs.len()
}

#[test]
fn on_a_full_disk_what_is_due_waits_calmly_and_is_late_when_there_is_room() {
    let mut world = overdue();
    let pause = world.machine.next_wake().mono.unwrap().since(world.now.mono);
    assert!(pause >= Span::from_millis(250), "no spinning: {pause:?}");
    world.machine.set_full(false);
    world.tick();
    assert_eq!(world.nominals("report"), [NOON + MINUTE, NOON + 10 * MINUTE]);
    world.audited("report");
}

#[test]
fn on_a_full_disk_a_pause_needs_no_row_that_makes_work() {
    let mut world = overdue();
    let before = made(&world);
    view(world.step(pause("report")).unwrap());
    assert_eq!(made(&world), before);
    world.machine.set_full(false);
    world.run(NOON + 20 * MINUTE);
    assert_eq!(made(&world), before, "a pause holds all that was not decided");
    world.step(resume("report")).unwrap().unwrap();
    world.run(NOON + 21 * MINUTE);
    assert_eq!(world.nominals("report"), [NOON + MINUTE, NOON + 21 * MINUTE]);
    assert_eq!(world.count("report", Paused), 19, "and gives it this fate");
    world.audited("report");
}

#[test]
fn on_a_full_disk_a_delete_withdraws_what_is_due_and_what_is_planned() {
    let mut world = overdue();
    let before = made(&world);
    world.step(delete("report")).unwrap().unwrap();
    assert_eq!(made(&world), before);
    assert_eq!(
        world.spans("report"),
        [(FiredOnTime, Some(1)), (WithdrawnDelete, Some(10))]
    );
    world.audited("report");
    world.restart();
    assert!(world.machine.is_empty());
}

#[test]
fn on_a_full_disk_what_asks_for_a_new_row_is_refused_and_changes_nothing() {
    let mut world = overdue();
    let rows = world.rows.clone();
    let backfill = ScheduleInput::Backfill {
        reply: ReplyTo(1),
        name: name("report"),
        from: at(NOON),
        to: at(NOON + MINUTE),
        cap: 10,
        rerun: true,
        request: 3,
        seen: None,
        dry_run: false,
        life: world.machine.incarnation_of(&name("report")),
        fates: Vec::new(),
    };
    for input in [
        edit("report", cron("5 * * * *")),
        resume("report"),
        run_now("report", 2),
        backfill,
    ] {
        let refusal = world.step(input).unwrap().unwrap_err();
        assert_eq!((refusal.kind, refusal.code), (RefusalKind::StorageFull, "storage_full"));
    }
    let refusal = world.try_create("other", cron("* * * * *"), false).unwrap_err();
    assert_eq!(refusal.code, "storage_full");
    assert_eq!(world.rows, rows);
    assert_eq!(world.jobs.len(), 1);
}

#[test]
pub(super) fn f33_the_fires_of_one_step_are_bounded_by_bytes() {
    let mut world = World::new(NOON);
    let mut spec = cron("* * * * *");
    let mut job = (*spec.job).clone();
    job.payload = Payload {
        kind: PayloadKind::Bytes,
        bytes: vec![7; PAYLOAD_BYTES_MAX].into(),
    };
    spec.job = Arc::new(job);
    for k in 0..20 {
        world.create(&format!("s{k}"), spec.clone());
    }
    world.jump(at(NOON + MINUTE));
    let in_one = BATCH_BYTES_MAX / PAYLOAD_BYTES_MAX;
    for step in 1..=20 / in_one {
        world.tick();
        assert!(
            world.jobs.len() <= step * in_one,
            "{} in {step} steps",
            world.jobs.len()
        );
        assert!(world.jobs.len() >= (step * in_one).min(20));
    }
    assert_eq!(world.jobs.len(), 20);
    assert!(world.machine.next_wake().mono.is_none_or(|at| at > world.now.mono));
}

#[test]
fn f33_definitions_in_memory_are_bounded_by_bytes_and_a_delete_makes_room() {
    let mut world = World::new(NOON);
    let mut spec = cron("@yearly");
    let job = Arc::make_mut(&mut spec.job);
    job.payload = Payload {
        kind: PayloadKind::Bytes,
        bytes: vec![0; PAYLOAD_BYTES_MAX].into(),
    };
    let fits = SCHEDULES_PER_SHARD_BYTES_MAX / spec.weight();
    for number in 0..fits {
        world.create(&format!("s{number}"), spec.clone());
    }
    let refused = world.try_create("more", spec.clone(), false).unwrap_err();
    let told = (refused.kind, refused.code);
    assert_eq!(told, (RefusalKind::Limited, "schedules_bytes_limit"));
    let edit = |world: &mut World, spec| {
        let input = ScheduleInput::Edit {
            reply: ReplyTo(1),
            name: name("s0"),
            if_match: None,
            spec: Box::new(spec),
            pending: PendingFate::Retime,
            dry_run: false,
        };
        world.step(input).unwrap()
    };
    // The version before stays for as long as a fate names it.
    assert_eq!(
        edit(&mut world, spec.clone()).unwrap_err().code,
        "schedules_bytes_limit"
    );
    world.create("small", cron("@yearly"));
    assert!(edit(&mut world, cron("@daily")).is_ok());
    world.step(delete("s1")).unwrap().unwrap();
    world.create("more", spec);
    world.machine.check();
}

#[test]
fn f33_all_of_a_definition_counts_and_not_only_its_payload() {
    let mut world = World::new(NOON);
    world.create("plain", cron("@yearly"));
    let plain = world.machine.index.bytes();
    let minutes: Vec<String> = (0..60).map(|minute| minute.to_string()).collect();
    let expression = format!("{} * * * *", minutes.join(","));
    let mut spec = cron("@yearly");
    let Rule::Cron {
        expressions, resolved, ..
    } = &mut spec.rule
    else {
        panic!("a cron rule");
    };
    *expressions = vec![expression.as_str().into(); EXPRESSION_COUNT_MAX];
    *resolved = expressions.clone();
    spec.exclusions = (0..EXCLUSION_COUNT_MAX as i32)
        .map(|day| Exclusion::Dates {
            first: 21_000 + 2 * day,
            last: 21_000 + 2 * day,
        })
        .collect();
    Arc::make_mut(&mut spec.job).tags = (0..TAG_COUNT_MAX).map(|tag| name(&format!("{tag:0100}")).1).collect();
    world.create("rich", spec);
    let rich = world.machine.index.bytes() - plain;
    let texts = 2 * EXPRESSION_COUNT_MAX * expression.len() + 100 * TAG_COUNT_MAX;
    let exclusions = EXCLUSION_COUNT_MAX * size_of::<Exclusion>();
    assert!(rich >= texts + exclusions, "{rich} of {texts} and {exclusions}");
    world.machine.check();
}
