//! What comes after an edit that dropped the planned fire (F25). Next: `changes.rs`.

use super::world::*;
use crate::fate::FateKind::*;
use crate::limits::EDIT_DROPS_MAX;
use crate::machine::ReplyTo;
use crate::schedule::{MisfirePolicy, PendingFate, ScheduleSpec};
use crate::scheduler_shard::io::{ScheduleInput, ScheduleReply};
use crate::time::Span;

/// 23:00 of the first day.
const NIGHT: i64 = NOON + 11 * HOUR;

fn drop_to(world: &mut World, spec: ScheduleSpec) {
    let input = edit_with("it", spec, (None, PendingFate::Drop, false));
    world.step(input).unwrap().unwrap();
}

fn edit_to(world: &mut World, spec: ScheduleSpec, pending: PendingFate) {
    let input = edit_with("it", spec, (None, pending, false));
    world.step(input).unwrap().unwrap();
}

/// Daily at 23:00, whose fire of this night was dropped, an hour later.
fn dropped(spec: ScheduleSpec) -> World {
    let mut world = World::new(NOON);
    world.create("it", spec.clone());
    drop_to(&mut world, spec);
    world.run(NOON + HOUR);
    world
}

/// F25: a drop withdraws an instant that has not come yet. The next edit's rule was silent until that instant, and a
/// one-shot that was dropped could never be given another time.
#[test]
fn f25_an_edit_after_a_drop_reigns_from_itself_on() {
    for spec in [cron("0 23 * * *"), every(3_600 * 11, NOON), once(NIGHT)] {
        let mut world = dropped(spec);
        let input = edit("it", once(NOON + 2 * HOUR));
        let next = view(world.step(input).unwrap()).next.unwrap().0;
        assert_eq!(next, at(NOON + 2 * HOUR));
        world.run(NOON + 2 * DAY);
        assert_eq!(world.nominals("it"), [NOON + 2 * HOUR]);
        world.audited("it");
    }
}

#[test]
pub(super) fn f25_every_second_after_a_drop_fires_every_second_but_that_one() {
    for spec in [cron("0 23 * * *"), once(NIGHT)] {
        let mut world = dropped(spec);
        world.restart();
        edit_to(&mut world, cron("* * * * * *"), PendingFate::Retime);
        world.run(NOON + HOUR + 5);
        assert_eq!(world.jobs.len(), 5);
        world.restart();
        world.run(NIGHT + 2);
        assert_eq!(world.jobs.len() as i64, 10 * HOUR + 1, "all but 23:00");
        assert!(!world.nominals("it").contains(&NIGHT));
        assert_eq!(world.count("it", WithdrawnEdit), 1);
        world.audited("it");
    }
}

#[test]
pub(super) fn f25_what_was_dropped_stays_dropped_where_a_later_rule_asks_for_it_next() {
    let mut world = dropped(cron("0 23 * * *"));
    edit_to(&mut world, cron("0 5,23 * * *"), PendingFate::Retime);
    drop_to(&mut world, cron("0 5,23 * * *"));
    world.run(NOON + 2 * DAY);
    // 23:00 of the first day and 5:00 of the second are withdrawn.
    assert_eq!(world.nominals("it"), [NIGHT + DAY, NOON + 17 * HOUR + DAY]);
    assert_eq!(world.count("it", WithdrawnEdit), 2);
    world.audited("it");
}

#[test]
pub(super) fn f25_what_a_dropped_one_shot_is_given_fires() {
    for (time, fires) in [(NIGHT - HOUR, true), (NIGHT + HOUR, true), (NIGHT, false)] {
        let mut world = dropped(once(NIGHT));
        assert!(world.cursor("it").finished_at.is_none(), "its instant has not come");
        world.restart();
        edit_to(&mut world, once(time), PendingFate::Retime);
        world.run(NOON + DAY);
        assert_eq!(world.jobs.len(), usize::from(fires));
        assert_eq!(world.count("it", WithdrawnEdit), u64::from(!fires));
        assert!(world.cursor("it").finished_at.is_some());
        world.audited("it");
    }
}

#[test]
fn f25_a_dropped_instant_gets_its_fate_when_it_comes() {
    let mut world = dropped(once(NIGHT));
    assert_eq!(world.count("it", WithdrawnEdit), 0, "plans are no fates");
    world.run(NIGHT);
    assert_eq!(world.spans("it"), [(WithdrawnEdit, Some(1))]);
    assert_eq!(world.cursor("it").nominal, at(NIGHT));
    assert!(world.cursor("it").dropped.is_empty());
    world.audited("it");
}

/// Nothing that level 1 has no place for is written, and what is dropped does not fire.
#[test]
pub(crate) fn f25_where_rows_have_no_place_for_a_mark_a_drop_has_its_fate_ahead_of_its_time() {
    let mut world = World::new(NOON);
    world.create("it", cron("0 23 * * *"));
    world.machine.set_level(crate::level::FIRST);
    drop_to(&mut world, cron("0 23 * * *"));
    assert!(world.cursor("it").dropped.is_empty());
    assert_eq!(world.cursor("it").nominal, at(NIGHT));
    drop_to(&mut world, cron("0 5,23 * * *"));
    world.run(NOON + DAY);
    assert_eq!(world.nominals("it"), [NOON + 17 * HOUR]);
    assert_eq!(world.count("it", WithdrawnEdit), 1);
    world.audited("it");
}

#[test]
fn f25_a_view_and_a_dry_run_show_what_will_fire() {
    let mut world = dropped(cron("0 23 * * *"));
    let seen = view(world.step(pause("it")).unwrap());
    assert!(seen.next.is_none());
    let seen = view(world.step(resume("it")).unwrap());
    assert_eq!(seen.next.unwrap().0, at(NIGHT + DAY));
    let input = edit_with("it", cron("0 */12,23 * * *"), (None, PendingFate::Drop, true));
    let Some(Ok(ScheduleReply::EditPreview { before, after, pending })) = world.step(input) else {
        panic!("no preview");
    };
    assert_eq!(before[..2], [NIGHT + DAY, NIGHT + 2 * DAY].map(at));
    assert_eq!(
        after[..3],
        [NOON + DAY - 12 * HOUR, NOON + DAY, NOON + DAY + 12 * HOUR].map(at)
    );
    assert_eq!(pending, Some((at(NIGHT + DAY), PendingFate::Drop)));
}

#[test]
pub(super) fn f25_a_pause_over_a_dropped_instant_leaves_it_withdrawn() {
    let mut world = dropped(cron("0 * * * *"));
    // 13:00 was dropped, and is over; 14:00 is dropped now.
    drop_to(&mut world, cron("0 * * * *"));
    world.step(pause("it")).unwrap().unwrap();
    world.run(NOON + 3 * HOUR + 1);
    world.restart();
    world.step(resume("it")).unwrap().unwrap();
    world.run(NOON + 4 * HOUR);
    assert_eq!(world.nominals("it"), [NOON + 4 * HOUR]);
    assert_eq!(world.count("it", WithdrawnEdit), 2);
    assert_eq!(world.count("it", Paused), 1);
    world.audited("it");
}

#[test]
fn f25_a_pause_that_ends_before_a_dropped_instant_does_not_bring_it_back() {
    let mut world = dropped(cron("0 23 * * *"));
    world.step(pause("it")).unwrap().unwrap();
    world.run(NOON + 2 * HOUR);
    world.step(resume("it")).unwrap().unwrap();
    world.run(NIGHT + DAY);
    assert_eq!(world.nominals("it"), [NIGHT + DAY]);
    assert_eq!(world.count("it", WithdrawnEdit), 1);
    world.audited("it");
}

#[test]
fn f25_a_deletion_after_a_drop_withdraws_the_next_fire_too() {
    for (spec, expected) in [
        (
            cron("0 23 * * *"),
            vec![(WithdrawnEdit, Some(1)), (WithdrawnDelete, Some(1))],
        ),
        (once(NIGHT), Vec::new()),
    ] {
        let mut world = dropped(spec);
        world.step(delete("it")).unwrap().unwrap();
        assert_eq!(world.spans("it"), expected);
        world.audited("it");
        world.create("it", cron("0 23 * * *"));
        world.run(NIGHT);
        assert_eq!(world.nominals("it"), [NIGHT], "another life");
    }
}

#[test]
fn f25_a_kept_fire_behind_a_dropped_one_is_alone_in_its_span() {
    // The old rule asks for both, the new one for neither, or for the dropped one only, or for one in between.
    for (spec, withdrawn) in [
        (cron("0 12 * * *"), 0),
        (cron("0 23 * * *"), 1),
        (cron("30 23 * * *"), 0),
        (cron("30 22 * * *"), 0),
    ] {
        let mut world = dropped(every(HOUR as u64, NOON));
        world.run(NIGHT - HOUR);
        drop_to(&mut world, every(HOUR as u64, NOON));
        edit_to(&mut world, spec, PendingFate::Keep);
        let before = world.count("it", WithdrawnEdit);
        world.restart();
        world.run(NIGHT + 2 * HOUR);
        assert!(world.nominals("it").contains(&(NIGHT + HOUR)), "kept");
        assert!(!world.nominals("it").contains(&NIGHT));
        assert_eq!(world.count("it", WithdrawnEdit) - before, withdrawn);
        world.audited("it");
    }
}

#[test]
pub(super) fn f25_a_missed_set_leaves_out_what_was_dropped() {
    let policies = [
        (MisfirePolicy::Latest, vec![NIGHT + 60]),
        (MisfirePolicy::Coalesce, vec![NIGHT + 60]),
        (MisfirePolicy::Skip, vec![NIGHT + 60]),
        (
            MisfirePolicy::All { cap: 5, rate: 10 },
            vec![NIGHT - 60 * 3, NIGHT - 60 * 2, NIGHT - 60, NIGHT + 60],
        ),
    ];
    for (misfire, expected) in policies {
        for last in [0, 60] {
            let mut spec = cron("* * * * *");
            spec.misfire = misfire;
            spec.tolerance = Span::from_secs(20);
            let mut world = dropped(once(NIGHT));
            edit_to(&mut world, spec, PendingFate::Retime);
            world.run(NOON + 2 * HOUR);
            let fired = world.jobs.len();
            world.down_until(NIGHT + last + 1);
            world.run(NIGHT + last + 30);
            let mut made = world.nominals("it")[fired..].to_vec();
            made.sort_unstable();
            match last {
                60 => assert_eq!(made, expected, "{misfire:?}"),
                // The newest of the set is the one that was dropped.
                _ => assert!(!made.contains(&NIGHT), "{misfire:?}"),
            }
            assert_eq!(world.count("it", WithdrawnEdit), 1, "{misfire:?}");
            world.audited("it");
        }
    }
}

#[test]
fn f25_a_drop_with_jitter_moves_no_other_fire() {
    let spec = || {
        let mut spec = every(600, NOON);
        spec.jitter = Span::from_secs(600);
        spec
    };
    let mut plain = World::new(NOON);
    plain.create("it", spec());
    plain.run(NOON + 2 * HOUR);
    let mut world = World::new(NOON);
    world.create("it", spec());
    drop_to(&mut world, spec());
    world.run(NOON + 2 * HOUR);
    let dues = |world: &World| world.jobs.iter().map(|fire| fire.due_at).collect::<Vec<_>>();
    assert_eq!(dues(&plain)[1..], dues(&world)[..]);
    assert_eq!(world.count("it", WithdrawnEdit), 1);
    world.audited("it");
}

#[test]
fn f25_an_excluded_day_is_excluded_also_where_an_edit_dropped_it() {
    let mut world = dropped(cron("0 23 * * *"));
    let mut spec = cron("0 23 * * *");
    let today = i32::try_from(NIGHT.div_euclid(DAY)).unwrap();
    spec.exclusions = vec![crate::schedule::Exclusion::Dates {
        first: today,
        last: today,
    }];
    edit_to(&mut world, spec, PendingFate::Retime);
    world.run(NIGHT + DAY);
    assert_eq!(world.spans("it"), [(Excluded, Some(1)), (FiredOnTime, Some(1))]);
    world.audited("it");
}

#[test]
fn f25_drops_that_have_not_come_are_bounded() {
    let mut world = World::new(NOON);
    world.create("it", cron("0 23 * * *"));
    for _ in 0..EDIT_DROPS_MAX {
        drop_to(&mut world, cron("0 23 * * *"));
    }
    world.restart();
    let input = edit_with("it", cron("0 23 * * *"), (None, PendingFate::Drop, false));
    let refusal = world.step(input).unwrap().unwrap_err();
    assert_eq!(
        (refusal.code, refusal.field.as_deref()),
        ("drops_limit", Some("pending"))
    );
    world.run(NIGHT);
    drop_to(&mut world, cron("0 23 * * *"));
    world.run(NIGHT + 18 * DAY);
    assert_eq!(world.nominals("it"), [17, 18].map(|day| NIGHT + day * DAY));
    world.audited("it");
}

#[test]
fn f25_a_backfill_makes_up_what_was_dropped_once_it_is_over() {
    let mut world = dropped(cron("0 23 * * *"));
    world.run(NIGHT + HOUR);
    let input = ScheduleInput::Backfill {
        reply: ReplyTo(1),
        name: name("it"),
        from: at(NOON),
        to: at(NIGHT + 1),
        cap: 10,
        rerun: false,
        request: 1,
        seen: None,
        dry_run: false,
        life: world.machine.incarnation_of(&name("it")),
        fates: world.closed("it"),
    };
    world.step(input).unwrap().unwrap();
    world.run(NIGHT + 2 * HOUR);
    assert_eq!(world.nominals("it"), [NIGHT]);
    world.audited("it");
}
