//! Edits that give a one-shot a past instant: as at creation, it is its one occurrence (F25, BEH-D11).

use super::world::*;
use crate::fate::FateKind::*;
use crate::schedule::{PendingFate, ScheduleSpec};
use crate::scheduler_shard::io::ScheduleReply;
use crate::time::Span;

const LATER: i64 = NOON + 6 * HOUR;

/// A one-shot that is still to come, made at noon, an hour ago.
fn pending_one() -> World {
    let mut world = World::new(NOON);
    world.create("it", once(LATER));
    world.run(NOON + HOUR);
    world
}

fn edit_to(
    world: &mut World,
    spec: ScheduleSpec,
    pending: PendingFate,
) -> Result<ScheduleReply, crate::refusal::Refusal> {
    world.step(edit_with("it", spec, (None, pending, false))).unwrap()
}

#[test]
fn f25_a_one_shot_that_is_given_a_past_instant_is_due() {
    for past in [NOON + HOUR, NOON + 1, NOON, NOON - DAY] {
        for pending in [PendingFate::Retime, PendingFate::Drop] {
            let mut world = pending_one();
            let shown = view(edit_to(&mut world, once(past), pending));
            assert_eq!(world.nominals("it"), [past]);
            assert!(shown.next.is_none());
            world.restart();
            world.run(LATER + HOUR);
            assert_eq!(world.jobs.len(), 1, "{past}");
            let kind = if past == NOON + HOUR { FiredOnTime } else { FiredLate };
            assert_eq!(world.count("it", kind), 1);
            assert!(world.cursor("it").finished_at.is_some());
            world.audited("it");
        }
    }
}

#[test]
fn f25_what_is_kept_fires_beside_a_past_instant() {
    let mut world = pending_one();
    view(edit_to(&mut world, once(NOON - HOUR), PendingFate::Keep));
    world.run(LATER + HOUR);
    assert_eq!(world.nominals("it"), [NOON - HOUR, LATER]);
    world.audited("it");
}

#[test]
fn f25_a_past_instant_beyond_its_grace_is_missed_at_once() {
    let mut world = pending_one();
    let mut spec = once(NOON - DAY);
    spec.grace = Some(Span::from_secs(3_600));
    view(edit_to(&mut world, spec, PendingFate::Retime));
    world.run(LATER + HOUR);
    assert!(world.jobs.is_empty());
    assert_eq!(world.spans("it"), [(SkippedGrace, Some(1))]);
    world.audited("it");
}

#[test]
fn f25_a_dry_run_shows_a_past_instant_and_changes_nothing() {
    let mut world = pending_one();
    let (rows, past) = (world.rows.clone(), NOON - HOUR);
    let input = edit_with("it", once(past), (None, PendingFate::Retime, true));
    let Some(Ok(ScheduleReply::EditPreview { before, after, .. })) = world.step(input) else {
        panic!("no preview");
    };
    assert_eq!((before, after), (vec![at(LATER)], vec![at(past)]));
    assert_eq!(world.rows, rows);
}

#[test]
fn f25_a_rule_that_becomes_a_past_one_shot_gives_it_a_fate_only_where_nothing_has_one() {
    let mut world = World::new(NOON);
    world.create("it", cron("0 * * * *"));
    world.run(NOON + 90 * MINUTE);
    for decided in [NOON - HOUR, NOON + 30 * MINUTE, NOON + HOUR] {
        for dry_run in [true, false] {
            let input = edit_with("it", once(decided), (None, PendingFate::Retime, dry_run));
            let refused = world.step(input).unwrap().unwrap_err();
            assert_eq!(
                (refused.code, refused.field.as_deref()),
                ("once_decided", Some("schedule.rule.at"))
            );
        }
    }
    view(edit_to(&mut world, once(NOON + 80 * MINUTE), PendingFate::Retime));
    world.run(NOON + DAY);
    assert_eq!(world.nominals("it"), [NOON + HOUR, NOON + 80 * MINUTE]);
    world.audited("it");
}

/// Another setting of a one-shot that has fired, or was missed, is no reason to run it again.
#[test]
fn f25_an_edit_that_leaves_the_instant_as_it_is_fires_nothing() {
    let mut world = World::new(NOON);
    world.create("it", once(NOON + HOUR));
    world.run(NOON + 2 * HOUR);
    let mut spec = once(NOON + HOUR);
    spec.tolerance = Span::from_secs(5);
    view(edit_to(&mut world, spec, PendingFate::Retime));
    world.run(NOON + DAY);
    assert_eq!(world.nominals("it"), [NOON + HOUR]);
    world.audited("it");
}

#[test]
fn f25_a_past_instant_is_refused_in_a_pause() {
    let mut world = pending_one();
    world.step(pause("it")).unwrap().unwrap();
    let refused = edit_to(&mut world, once(NOON - HOUR), PendingFate::Retime).unwrap_err();
    assert_eq!(refused.code, "once_decided");
    world.step(resume("it")).unwrap().unwrap();
    view(edit_to(&mut world, once(NOON - HOUR), PendingFate::Retime));
    assert_eq!(world.nominals("it"), [NOON - HOUR]);
    world.audited("it");
}
