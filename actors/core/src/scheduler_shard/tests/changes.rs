//! Edits (F25), and the shared cases about them. Next: `lives.rs`.

use super::world::*;
use crate::fate::FateKind::*;
use crate::job::Origin;
use crate::refusal::{Refusal, RefusalKind};
use crate::row::Row;
use crate::schedule::{EditKind, MisfirePolicy, PendingFate, Rule};
use crate::scheduler_shard::io::ScheduleReply;
use crate::time::Span;

fn refused(answer: Option<Result<ScheduleReply, Refusal>>) -> (RefusalKind, &'static str) {
    let refusal = answer.unwrap().unwrap_err();
    (refusal.kind, refusal.code)
}

/// 16:33 of the first day.
const FIRED: i64 = NOON + 4 * HOUR + 33 * MINUTE;

#[test]
fn beh_c01_edit_not_backwards() {
    let mut world = World::new(NOON);
    world.create("daily", cron("33 16 * * *"));
    world.run(FIRED + MINUTE + 8);
    assert_eq!(world.nominals("daily"), [FIRED]);
    let view = view(world.step(edit("daily", cron("34 16 * * *"))).unwrap());
    assert_eq!(view.next.unwrap().0, at(FIRED + MINUTE + DAY));
    world.run(FIRED + DAY);
    assert_eq!(world.jobs.len(), 1);
    world.run(FIRED + DAY + MINUTE);
    assert_eq!(world.nominals("daily"), [FIRED, FIRED + MINUTE + DAY]);
    world.audited("daily");
}

#[test]
fn beh_c02_edit_drops_old() {
    for pending in [PendingFate::Retime, PendingFate::Drop] {
        let mut world = World::new(NOON - HOUR);
        world.create("daily", cron("0 23 * * *"));
        world.run(NOON);
        world
            .step(edit_with("daily", cron("0 5 * * *"), (None, pending, false)))
            .unwrap()
            .unwrap();
        world.run(NOON + DAY);
        assert_eq!(world.nominals("daily"), [NOON + 17 * HOUR]);
        world.audited("daily");
    }
}

#[test]
fn f25_a_kept_fire_fires_as_planned_and_the_new_rule_beside_it() {
    let mut world = World::new(NOON - HOUR);
    world.create("daily", cron("0 23 * * *"));
    world.run(NOON);
    world
        .step(edit_with(
            "daily",
            cron("0 */5 * * *"),
            (None, PendingFate::Keep, false),
        ))
        .unwrap()
        .unwrap();
    world.restart();
    world.run(NOON + DAY);
    let expected = [3, 8, 11, 12, 17, 22].map(|hour| NOON + hour * HOUR);
    assert_eq!(world.nominals("daily"), expected);
    let definitions: Vec<u64> = world.jobs.iter().map(definition_of).collect();
    assert_eq!(definitions, [2, 2, 1, 2, 2, 2]);
    world.audited("daily");
}

fn definition_of(fire: &crate::scheduler_shard::io::Fire) -> u64 {
    match fire.origin {
        Origin::Occurrence { definition, .. } => definition,
        Origin::Request { .. } => 0,
    }
}

#[test]
fn f25_a_kept_instant_that_the_new_rule_asks_for_too_fires_once() {
    let mut world = World::new(NOON);
    world.create("daily", cron("0 23 * * *"));
    world
        .step(edit_with(
            "daily",
            cron("0 22,23 * * *"),
            (None, PendingFate::Keep, false),
        ))
        .unwrap()
        .unwrap();
    world.run(NOON + 12 * HOUR);
    assert_eq!(world.nominals("daily"), [NOON + 10 * HOUR, NOON + 11 * HOUR]);
    world.audited("daily");
}

#[test]
fn f25_a_dropped_instant_does_not_fire_even_if_the_new_rule_asks_for_it() {
    let mut world = World::new(NOON);
    world.create("daily", cron("0 23 * * *"));
    world
        .step(edit_with("daily", cron("0 23 * * *"), (None, PendingFate::Drop, false)))
        .unwrap()
        .unwrap();
    world.run(NOON + 2 * DAY);
    assert_eq!(world.nominals("daily"), [NOON + 11 * HOUR + DAY]);
    assert_eq!(world.count("daily", WithdrawnEdit), 1);
    world.audited("daily");
}

#[test]
fn f25_a_per_second_schedule_can_be_edited() {
    let mut world = World::new(NOON);
    let seen = Some(seen(&world.create("tick", cron("* * * * * *"))));
    world.run(NOON + 10);
    let input = edit_with("tick", cron("*/2 * * * * *"), (seen, PendingFate::Retime, false));
    let view = view(world.step(input).unwrap());
    assert_eq!(view.definition.version, 2);
    let again = edit_with("tick", cron("* * * * * *"), (seen, PendingFate::Retime, false));
    assert_eq!(
        refused(world.step(again)),
        (RefusalKind::Precondition, "version_differs")
    );
    world.audited("tick");
}

/// What was read before the name was given anew says nothing of the schedule that has it now.
#[test]
fn f27_an_edit_of_another_life_is_refused_also_at_the_same_version() {
    let mut world = World::new(NOON);
    let before = seen(&world.create("tick", cron("0 * * * *")));
    world.step(delete("tick")).unwrap().unwrap();
    let now = seen(&world.create("tick", cron("30 * * * *")));
    assert_eq!((before.version, now.version), (1, 1));
    for dry_run in [true, false] {
        let stale = edit_with("tick", cron("@daily"), (Some(before), PendingFate::Retime, dry_run));
        assert_eq!(
            refused(world.step(stale)),
            (RefusalKind::Precondition, "version_differs")
        );
    }
    let fresh = edit_with("tick", cron("@daily"), (Some(now), PendingFate::Retime, false));
    assert_eq!(view(world.step(fresh).unwrap()).definition.version, 2);
    world.audited("tick");
}

#[test]
fn f25_there_and_back_again_gives_one_instant_one_fate() {
    let mut world = World::new(NOON - HOUR);
    world.create("daily", cron("0 23 * * *"));
    for (hours, expression) in [(0, "0 5 * * *"), (1, "0 23 * * *"), (2, "0 5 * * *"), (3, "0 23 * * *")] {
        world.run(NOON + hours * HOUR);
        world.step(edit("daily", cron(expression))).unwrap().unwrap();
    }
    world.run(NOON + DAY);
    assert_eq!(world.nominals("daily"), [NOON + 11 * HOUR]);
    world.audited("daily");
}

#[test]
fn f25_a_backlog_drains_under_the_definition_that_made_it() {
    let mut world = World::new(NOON);
    let mut spec = cron("* * * * *");
    spec.misfire = MisfirePolicy::All { cap: 1_000, rate: 1 };
    world.create("report", spec);
    world.down_until(NOON + HOUR);
    world.step(edit("report", cron("30 3 * * *"))).unwrap().unwrap();
    world.restart();
    world.run(NOON + 2 * HOUR);
    assert_eq!(world.jobs.len(), 60);
    assert!(world.jobs.iter().all(|fire| definition_of(fire) == 1));
    world.audited("report");
}

#[test]
fn f25_what_jitter_holds_back_is_kept_retimed_or_withdrawn() {
    let spec = |seconds| {
        let mut spec = cron("0 * * * *");
        spec.jitter = Span::from_secs(seconds);
        spec
    };
    for pending in [PendingFate::Keep, PendingFate::Retime, PendingFate::Drop] {
        let mut world = World::new(NOON);
        let due = world.create("hourly", spec(3_600)).next.unwrap().1;
        assert!(due > at(NOON + HOUR), "the hash of this name moves it");
        world.run(NOON + HOUR);
        world
            .step(edit_with("hourly", spec(0), (None, pending, false)))
            .unwrap()
            .unwrap();
        world.restart();
        world.tick();
        let at_once = world.jobs.len();
        world.run(NOON + 2 * HOUR);
        let expected = match pending {
            PendingFate::Keep => (0, vec![NOON + HOUR, NOON + 2 * HOUR]),
            PendingFate::Retime => (1, vec![NOON + HOUR, NOON + 2 * HOUR]),
            PendingFate::Drop => (0, vec![NOON + 2 * HOUR]),
        };
        assert_eq!((at_once, world.nominals("hourly")), expected);
        assert_eq!(
            world.count("hourly", WithdrawnEdit),
            u64::from(pending == PendingFate::Drop)
        );
        world.audited("hourly");
    }
}

#[test]
fn a_dry_run_shows_fires_before_and_after_and_changes_nothing() {
    let mut world = World::new(NOON);
    let seen = seen(&world.create("daily", cron("0 23 * * *")));
    let (rows, view) = (world.rows.clone(), world.cursor("daily"));
    let answer = world.step(edit_with(
        "daily",
        cron("0 5 * * *"),
        (Some(seen), PendingFate::Keep, true),
    ));
    let Some(Ok(ScheduleReply::EditPreview { before, after, pending })) = answer else {
        panic!("no preview");
    };
    assert_eq!(before[0], at(NOON + 11 * HOUR));
    assert_eq!(after[..2], [at(NOON + 11 * HOUR), at(NOON + 17 * HOUR)]);
    assert_eq!(pending, Some((at(NOON + 11 * HOUR), PendingFate::Keep)));
    assert_eq!((world.rows.clone(), world.cursor("daily")), (rows, view));
}

#[test]
fn beh_c06_zone_change() {
    let berlin = |zone: &str| cron_in(zone, &["0 9 * * *"]);
    let mut world = World::new(NOON - 12 * HOUR);
    world.create("daily", berlin("Europe/Berlin"));
    world.run(NOON - 2 * HOUR);
    assert_eq!(world.nominals("daily"), [NOON - 4 * HOUR]);
    let view = view(world.step(edit("daily", berlin("America/New_York"))).unwrap());
    assert_eq!(view.next.unwrap().0, at(NOON + 2 * HOUR));
    assert_eq!(world.jobs.len(), 1);
    world.run(NOON + 2 * HOUR);
    assert_eq!(world.jobs.iter().map(definition_of).collect::<Vec<_>>(), [1, 2]);
    let zones = world.opened().definitions.into_iter().map(|row| match row.spec.rule {
        Rule::Cron { zone, .. } => zone.to_string(),
        _ => String::new(),
    });
    assert_eq!(zones.collect::<Vec<_>>(), ["Europe/Berlin", "America/New_York"]);
    world.audited("daily");
}

#[test]
fn edits_leave_a_history() {
    let mut world = World::new(NOON);
    world.create("report", cron("0 * * * *"));
    let mut second = 0;
    for input in [
        pause("report"),
        resume("report"),
        edit("report", cron("1 * * * *")),
        run_now("report", 1),
    ] {
        second += 1;
        world.run(NOON + second);
        world.step(input).unwrap().unwrap();
    }
    let kinds = world.rows.values().filter_map(|row| match row {
        Row::Edit(row) => Some(row.kind),
        _ => None,
    });
    use EditKind::*;
    assert_eq!(kinds.collect::<Vec<_>>(), [Created, Paused, Resumed, Edited, RunNow]);
    let made = world.rows.values().filter_map(|row| match row {
        Row::Definition(row) => Some((row.version, row.created_at == row.effective_at)),
        _ => None,
    });
    let made: Vec<_> = made.collect();
    assert_eq!(made, [(1, true), (2, false)], "an edit is no new creation");
}

#[test]
fn an_edit_in_a_pause_leaves_the_pause_to_the_old_definition() {
    let mut world = World::new(NOON);
    world.create("report", cron("* * * * *"));
    world.step(pause("report")).unwrap().unwrap();
    world.run(NOON + 150);
    let view = view(world.step(edit("report", cron("*/5 * * * *"))).unwrap());
    assert!(view.next.is_none() && view.cursor.paused_at.is_some());
    world.run(NOON + 11 * MINUTE);
    world.step(resume("report")).unwrap().unwrap();
    world.run(NOON + 15 * MINUTE);
    assert_eq!(
        world.spans("report"),
        [(Paused, Some(2)), (Paused, Some(2)), (FiredOnTime, Some(1))]
    );
    world.audited("report");
}

#[test]
fn an_edit_revives_a_finished_schedule() {
    let mut world = World::new(NOON);
    let mut spec = cron("* * * * *");
    spec.count_max = Some(2);
    world.create("report", spec.clone());
    world.run(NOON + HOUR);
    assert!(world.cursor("report").finished_at.is_some());
    spec.count_max = Some(4);
    world.step(edit("report", spec)).unwrap().unwrap();
    assert!(world.cursor("report").finished_at.is_none());
    world.run(NOON + 2 * HOUR);
    assert_eq!(world.nominals("report"), [1, 2, 61, 62].map(|k| NOON + k * MINUTE));
}

#[test]
fn f25_a_kept_fire_is_not_lost_in_a_missed_stretch() {
    let mut world = World::new(NOON);
    world.create("daily", cron("0 23 * * *"));
    let input = edit_with("daily", cron("*/10 * * * *"), (None, PendingFate::Keep, false));
    world.step(input).unwrap().unwrap();
    world.down_until(NOON + DAY);
    let kept = NOON + 11 * HOUR;
    assert_eq!(world.nominals("daily"), [kept - 10 * MINUTE, kept, NOON + DAY]);
    assert_eq!(definition_of(&world.jobs[1]), 1);
    world.audited("daily");
}
