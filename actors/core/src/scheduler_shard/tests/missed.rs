//! Missed stretches: misfire sets and policies (F39), backlogs (F24), grace, clock doubt (F20).

use super::world::*;
use crate::fate::FateKind::*;
use crate::job::FireCause;
use crate::limits::{BACKLOG_ROWS_MAX, BACKLOG_SPANS_MAX, EDIT_DROPS_MAX};
use crate::schedule::{Exclusion, MisfirePolicy, PendingFate};
use crate::time::Span;

/// Down from 22:00 until 06:00:20.
fn night(policy: MisfirePolicy) -> World {
    let evening = NOON + 10 * HOUR;
    let mut world = World::new(evening - 10 * MINUTE);
    world.create("report", with(policy, cron("* * * * *")));
    world.run(evening - 1);
    assert_eq!(world.jobs.len(), 9);
    world.jobs.clear();
    world.down_until(evening + 8 * HOUR + 20);
    world
}

const SIX: i64 = NOON + 18 * HOUR;

#[test]
fn beh_m01_night_off() {
    let mut world = night(MisfirePolicy::Latest);
    assert_eq!(world.nominals("report"), [SIX]);
    assert_eq!(world.count("report", SkippedMisfire), 480);
    assert!(world.jobs[0].due_at == at(SIX));
    world.run(SIX + 5 * MINUTE);
    assert_eq!(
        world.nominals("report"),
        (0..=5).map(|k| SIX + k * MINUTE).collect::<Vec<_>>()
    );
    assert_eq!(world.jobs[1].due_at, at(SIX + MINUTE));
    let report = world.audited("report");
    assert_eq!(report.counts.of(SkippedMisfire), 480);
}

#[test]
fn f39_six_oclock_latest_makes_one_job() {
    let world = night(MisfirePolicy::Latest);
    assert_eq!(world.origins("report"), [(at(SIX), FireCause::CatchUp)]);
    assert_eq!(
        world.spans("report"),
        [
            (FiredOnTime, Some(9)),
            (SkippedMisfire, Some(480)),
            (FiredOnTime, Some(1))
        ]
    );
}

#[test]
fn f39_coalesce_carries_first_last_and_count() {
    let world = night(MisfirePolicy::Coalesce);
    let first = at(NOON + 10 * HOUR);
    assert_eq!(
        world.origins("report"),
        [(at(SIX), FireCause::Coalesced { first, count: 481 })]
    );
    assert_eq!(world.count("report", Coalesced), 480);
    world.audited("report");
}

#[test]
fn f39_skip_drops_what_is_beyond_tolerance_and_fires_the_rest() {
    let world = night(MisfirePolicy::Skip);
    assert_eq!(world.nominals("report"), [SIX]);
    assert_eq!(world.count("report", SkippedMisfire), 480);
    world.audited("report");
}

#[test]
fn f39_per_second_an_outage_of_a_minute_gives_all_or_one() {
    for (down, jobs) in [(59, 59), (60, 60), (61, 1)] {
        let mut world = World::new(NOON);
        world.create("tick", cron("* * * * * *"));
        world.run(NOON + 5);
        world.jobs.clear();
        world.down_until(NOON + 5 + down);
        // The oldest is `down - 1` seconds late.
        let expected = if down - 1 > 60 { 1 } else { jobs.max(down) };
        assert_eq!(world.jobs.len() as i64, expected, "{down} s");
        world.audited("tick");
    }
    let mut world = World::new(NOON);
    world.create("tick", cron("* * * * * *"));
    world.down_until(NOON + 62);
    assert_eq!(world.nominals("tick"), [NOON + 62]);
}

#[test]
fn f24_catch_up_never_delays_the_present() {
    let mut world = World::new(NOON);
    world.create(
        "report",
        with(MisfirePolicy::All { cap: 100_000, rate: 1 }, cron("* * * * *")),
    );
    world.down_until(NOON + 7 * DAY);
    assert_eq!(world.backlogs().len(), 1);
    let released = world.jobs.len();
    assert!(released <= 2, "{released} at once");
    world.run(NOON + 7 * DAY + HOUR);
    let live: Vec<_> = world
        .origins("report")
        .into_iter()
        .filter(|(_, cause)| *cause == FireCause::Due)
        .collect();
    assert_eq!(live.len(), 60, "each on time");
    let late = world.origins("report").len() - live.len();
    assert!((3_590..=3_602).contains(&late), "{late} at one a second");
    assert_eq!(world.spans("report").last().unwrap(), &(FiredOnTime, Some(60)));
    world.audited("report");
    world.restart();
    world.run(NOON + 7 * DAY + 4 * HOUR);
    assert_eq!(world.jobs.len(), 7 * 1_440 + 240);
    assert!(world.backlogs().is_empty());
    assert_eq!(world.count("report", FiredLate), 10_080);
    world.audited("report");
}

#[test]
fn f24_all_keeps_the_newest_and_skips_the_rest_as_one_span() {
    let mut world = World::new(NOON);
    world.create(
        "report",
        with(MisfirePolicy::All { cap: 5, rate: 50 }, cron("* * * * *")),
    );
    world.down_until(NOON + 2 * HOUR);
    world.run(NOON + 2 * HOUR + 10);
    assert_eq!(
        world.nominals("report"),
        (116..=120).map(|k| NOON + k * MINUTE).collect::<Vec<_>>()
    );
    assert_eq!(world.count("report", SkippedCap), 115);
    assert_eq!(world.closed("report").len(), 3, "the cap, what was late, what was not");
    world.audited("report");
}

#[test]
pub(super) fn f24_backlogs_are_bounded() {
    let mut world = World::new(NOON);
    world.create(
        "report",
        with(MisfirePolicy::All { cap: 100_000, rate: 1 }, cron("* * * * * *")),
    );
    for outage in 1..=BACKLOG_ROWS_MAX as i64 + 4 {
        world.down_until(NOON + outage * HOUR);
        world.run(NOON + outage * HOUR + 30);
        world.audited("report");
    }
    assert_eq!(world.backlogs().len(), BACKLOG_SPANS_MAX, "backlogs are merged");
    assert!(world.count("report", SkippedCap) > 0);
}

/// What edits dropped cuts an outage into pieces. At the bound of both, the newest outage gives up nothing of its own.
#[test]
fn f24_an_outage_that_drops_cut_is_caught_up_with_as_a_whole() {
    let spec = || with(MisfirePolicy::All { cap: 100_000, rate: 1 }, cron("* * * * * *"));
    let mut world = World::new(NOON);
    world.create("report", spec());
    for outage in 1..=BACKLOG_SPANS_MAX as i64 {
        world.down_until(NOON + outage * HOUR);
        world.run(NOON + outage * HOUR + 1);
    }
    let begin = NOON + BACKLOG_SPANS_MAX as i64 * HOUR;
    world.run(begin + 10 * MINUTE);
    for k in 0..EDIT_DROPS_MAX as i64 {
        let mut once = once(begin + (12 + 2 * k) * MINUTE);
        once.misfire = spec().misfire;
        world.step(edit("report", once)).unwrap().unwrap();
        let dropping = edit_with("report", spec(), (None, PendingFate::Drop, false));
        world.step(dropping).unwrap().unwrap();
    }
    let before = world.count("report", SkippedCap);
    world.down_until(begin + HOUR);
    assert_eq!(world.backlogs().len(), BACKLOG_ROWS_MAX, "the edge of the bound");
    let kept = world.backlogs()[BACKLOG_SPANS_MAX - 1..].iter().map(|row| row.to).max();
    assert_eq!(kept, Some(at(begin + HOUR)));
    let given_up = world.count("report", SkippedCap) - before;
    world.restart();
    world.audited("report");
    world.run(begin + HOUR + 20 * MINUTE);
    assert_eq!(world.count("report", WithdrawnEdit), EDIT_DROPS_MAX as u64);
    let own = world.nominals("report");
    let own = own
        .iter()
        .filter(|at| (begin + 10 * MINUTE + 1..=begin + HOUR).contains(at))
        .count();
    assert_eq!(own, 3_000 - EDIT_DROPS_MAX, "all of the newest outage");
    assert!(given_up > 0, "the oldest is");
    world.audited("report");
}

#[test]
fn f24_two_outages_in_a_row_share_a_backlog() {
    let mut world = World::new(NOON);
    world.create(
        "report",
        with(MisfirePolicy::All { cap: 1_000, rate: 1 }, cron("* * * * *")),
    );
    world.down_until(NOON + HOUR);
    world.down_until(NOON + 2 * HOUR);
    assert_eq!(world.backlogs().len(), 1);
    world.audited("report");
}

#[test]
fn f24_deadline_is_judged_at_release() {
    let mut world = World::new(NOON);
    let mut spec = with(MisfirePolicy::All { cap: 100, rate: 1 }, cron("* * * * *"));
    let mut job = (*spec.job).clone();
    job.expires_at = Some(at(NOON + HOUR + 10));
    spec.job = job.into();
    world.create("report", spec);
    world.down_until(NOON + HOUR);
    world.run(NOON + HOUR + 2 * MINUTE);
    assert_eq!(world.count("report", FiredLate), 10);
    assert_eq!(world.count("report", Expired), 52);
    world.audited("report");
}

#[test]
fn f23_a_year_of_a_per_second_schedule_settles_in_a_few_rows() {
    for policy in [
        MisfirePolicy::Latest,
        MisfirePolicy::Coalesce,
        MisfirePolicy::Skip,
        MisfirePolicy::All { cap: 100_000, rate: 50 },
    ] {
        let mut world = World::new(NOON);
        world.create("tick", with(policy, cron("* * * * * *")));
        world.run(NOON + 3);
        world.writes = 0;
        world.jump(at(NOON + 365 * DAY));
        world.tick();
        assert!(world.writes <= 6, "{policy:?}: {} rows", world.writes);
        let missed: u64 = [SkippedMisfire, Coalesced, SkippedCap]
            .iter()
            .map(|kind| world.count("tick", *kind))
            .sum();
        assert!(missed >= 365 * 86_400 - 100_100, "{missed}");
        world.audited("tick");
    }
}

#[test]
fn f23_a_year_of_pause_is_one_row() {
    let mut world = World::new(NOON);
    world.create("tick", cron_in("UTC", &["* * * * * *", "0 0 12 * * *"]));
    world.run(NOON + 3);
    world.step(pause("tick")).unwrap().unwrap();
    world.run(NOON + 365 * DAY);
    world.step(resume("tick")).unwrap().unwrap();
    world.run(NOON + 365 * DAY + 3);
    // Two expressions are not counted by arithmetic: the auditor fills in what it can.
    assert_eq!(
        world.spans("tick"),
        [(FiredOnTime, Some(3)), (Paused, None), (FiredOnTime, Some(3))]
    );
    assert_eq!(world.audited("tick").uncounted, 1);
}

#[test]
fn f23_missed_stretches_leave_excluded_days_excluded() {
    let mut world = World::new(NOON);
    let mut spec = cron("0 * * * *");
    spec.exclusions = vec![Exclusion::Weekday(0), Exclusion::Weekday(6)];
    world.create("work", spec);
    world.down_until(NOON + 14 * DAY);
    assert_eq!(world.nominals("work"), [NOON + 14 * DAY]);
    assert_eq!(world.count("work", Excluded), 4 * 24);
    assert_eq!(world.count("work", SkippedMisfire), 10 * 24 - 1);
    assert_eq!(world.spans("work").len(), 6);
    world.audited("work");
}

#[test]
fn excluded_days_pass_between_fires() {
    let mut world = World::new(NOON);
    let mut spec = cron("0 9 * * *");
    spec.exclusions = vec![Exclusion::Weekday(0), Exclusion::Weekday(6)];
    world.create("work", spec);
    world.run(NOON + 14 * DAY);
    assert_eq!(world.count("work", Excluded), 4);
    assert_eq!(world.jobs.len(), 10);
    assert_eq!(world.spans("work").len(), 5);
    world.audited("work");
}

#[test]
fn beh_m02_grace_window() {
    for (minute, jobs) in [(20, 1), (30, 1), (31, 0)] {
        let mut world = World::new(NOON);
        let mut spec = cron("0 8 * * *");
        spec.grace = Some(Span::from_secs(1_800));
        world.create("daily", spec);
        let eight = NOON + 20 * HOUR;
        world.run(eight - 10 * MINUTE);
        world.down_until(eight + minute * MINUTE);
        assert_eq!(world.jobs.len(), jobs, "at 08:{minute}");
        world.run(eight + DAY);
        assert_eq!(world.nominals("daily").last(), Some(&(eight + DAY)));
        assert_eq!(world.count("daily", SkippedGrace), 1 - jobs as u64);
        world.audited("daily");
    }
}

#[test]
fn beh_m02_the_edge_of_grace_is_exact() {
    for (late, jobs) in [
        (Span::from_secs(1_800), 1),
        (Span(1_800_000_001), 0),
        (Span::from_secs(1_801), 0),
    ] {
        let mut world = World::new(NOON);
        let mut spec = cron("0 8 * * *");
        spec.grace = Some(Span::from_secs(1_800));
        world.create("daily", spec);
        world.jump(at(NOON + 20 * HOUR) + late);
        world.tick();
        assert_eq!(world.jobs.len(), jobs);
    }
}

#[test]
fn grace_is_tested_first_for_each_occurrence() {
    let mut world = World::new(NOON);
    let mut spec = with(
        MisfirePolicy::All {
            cap: 1_000,
            rate: 1_000,
        },
        cron("* * * * *"),
    );
    spec.grace = Some(Span::from_secs(600));
    world.create("report", spec);
    world.down_until(NOON + HOUR);
    world.run(NOON + HOUR + 5);
    assert_eq!(
        world.nominals("report"),
        (50..=60).map(|k| NOON + k * MINUTE).collect::<Vec<_>>()
    );
    assert_eq!(world.count("report", SkippedGrace), 49);
    world.audited("report");
}

#[test]
fn the_edge_of_tolerance_is_on_time() {
    for (late, kind) in [(60_000_000, FiredOnTime), (60_000_001, FiredLate)] {
        let mut world = World::new(NOON);
        world.create("report", cron("0 * * * *"));
        world.jump(at(NOON + HOUR) + Span(late));
        world.tick();
        assert_eq!(world.spans("report"), [(kind, Some(1))]);
    }
}

#[test]
fn a_job_whose_expiry_has_passed_is_not_made() {
    let mut world = World::new(NOON);
    let mut spec = cron("* * * * *");
    let mut job = (*spec.job).clone();
    job.expires_at = Some(at(NOON + 3 * MINUTE));
    spec.job = job.into();
    world.create("report", spec);
    world.run(NOON + 5 * MINUTE);
    assert_eq!((world.jobs.len(), world.count("report", Expired)), (2, 3));
    world.audited("report");
}
