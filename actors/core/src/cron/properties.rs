//! Properties of the search: against a plain enumeration, in every zone, around every kind of change.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::schedule::{GapPolicy, OverlapPolicy};
use crate::time::StoreTime;
use crate::zone::{LocalInstants, LocalSeconds, UnixSeconds, Zone};

const GAPS: [GapPolicy; 2] = [GapPolicy::NextValid, GapPolicy::Skip];
const OVERLAPS: [OverlapPolicy; 3] = [OverlapPolicy::First, OverlapPolicy::Second, OverlapPolicy::Both];

fn at(text: &str) -> StoreTime {
    UnixSeconds(LocalSeconds::from_text(text).unwrap().0).store_time()
}

fn plan(expressions: &[&str], zone: &str, gap: GapPolicy, overlap: OverlapPolicy) -> CronPlan {
    CronPlan::parse(expressions, HashSeed(0), Zone::get(zone).unwrap(), gap, overlap).unwrap()
}

/// All occurrences after one instant and up to another.
fn between(plan: &CronPlan, after: StoreTime, until: StoreTime) -> Vec<StoreTime> {
    let first = plan.next_after(after);
    std::iter::successors(first, |at| plan.next_after(*at))
        .take_while(|at| *at <= until)
        .collect()
}

/// What becomes of one local time, said plainly.
fn instants_of(
    zone: &Zone,
    wildcard: bool,
    local: LocalSeconds,
    gap: GapPolicy,
    overlap: OverlapPolicy,
) -> Vec<UnixSeconds> {
    match (zone.local_to_instants(local), wildcard, gap, overlap) {
        (LocalInstants::One(only), ..) => vec![only],
        (LocalInstants::Gap { end_of_gap }, false, GapPolicy::NextValid, _) => vec![end_of_gap],
        (LocalInstants::Gap { .. }, ..) => vec![],
        (LocalInstants::Two(first, _), false, _, OverlapPolicy::First) => vec![first],
        (LocalInstants::Two(_, second), false, _, OverlapPolicy::Second) => vec![second],
        (LocalInstants::Two(first, second), ..) => vec![first, second],
    }
}

/// The same by asking for every minute of local time what becomes of it; no segment, no jump.
fn enumerated(plan: &CronPlan, gap: GapPolicy, overlap: OverlapPolicy, after: i64, until: i64) -> Vec<StoreTime> {
    let mut found = BTreeSet::new();
    for local in ((after - 2 * 86_400) / 60 * 60..=until + 2 * 86_400)
        .step_by(60)
        .map(LocalSeconds)
    {
        for rule in plan.rules().iter().filter(|rule| rule.matches(local)) {
            found.extend(instants_of(plan.zone(), rule.is_wildcard(), local, gap, overlap));
        }
    }
    let inside = found.into_iter().filter(|at| after < at.0 && at.0 <= until);
    inside.map(UnixSeconds::store_time).collect()
}

/// A change of the zone after the instant, or the instant itself where there is none.
fn near_change(zone: &Zone, from: i64) -> i64 {
    let end = zone.segment_at(UnixSeconds(from)).end;
    if end == UnixSeconds::END { from } else { end.0 }
}

fn expression() -> impl Strategy<Value = String> {
    let minute = prop::sample::select(vec!["0", "30", "*/15", "*", "0,30", "1-59/29", "59", "45,5"]);
    let hour = prop::sample::select(vec![
        "*",
        "0",
        "1",
        "2",
        "3",
        "23",
        "*/2",
        "0-3",
        "1,13",
        "22,23,0,1,2,3",
    ]);
    let dom = prop::sample::select(vec!["*", "?", "*/2", "L", "LW", "1W,15W", "1-7", "31", "25-31"]);
    let dow = prop::sample::select(vec!["*", "0", "SUN#L", "6L", "+SAT,SUN", "*/3", "MON-FRI", "0#1"]);
    (minute, hour, dom, dow).prop_map(|(minute, hour, dom, dow)| format!("{minute} {hour} {dom} * {dow}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_search_finds_what_enumeration_finds(
        expressions in prop::collection::vec(expression(), 1..4),
        zone in any::<prop::sample::Index>(),
        (gap, overlap) in (prop::sample::select(GAPS.to_vec()), prop::sample::select(OVERLAPS.to_vec())),
        (from, days_before, offset) in (0_i64..5_000_000_000, 0_i64..3, -7200_i64..7200),
    ) {
        let names: Vec<_> = Zone::names().collect();
        let zone = Zone::get(names[zone.index(names.len())]).unwrap();
        let after = near_change(&zone, from) - days_before * 86_400 + offset;
        let until = after + 4 * 86_400;
        let Ok(plan) = CronPlan::parse(&expressions, HashSeed(0), zone, gap, overlap) else { return Ok(()) };
        let found = between(&plan, StoreTime::from_secs(after), StoreTime::from_secs(until));
        prop_assert_eq!(&found, &enumerated(&plan, gap, overlap, after, until), "{:?}", expressions);
        prop_assert!(found.windows(2).all(|pair| pair[0] < pair[1]));
        for pair in found.windows(2) {
            prop_assert_eq!(plan.prev_before(pair[1]), Some(pair[0]));
            prop_assert_eq!(plan.prev_before(StoreTime(pair[0].0 + 1)), Some(pair[0]));
            prop_assert_eq!(plan.next_after(StoreTime(pair[1].0 - 1)), Some(pair[1]));
        }
        let count = |cap| plan.count_between(StoreTime::from_secs(after), StoreTime::from_secs(until), cap);
        prop_assert_eq!(count(u64::MAX), found.len() as u64);
        prop_assert_eq!(count(3), 3.min(found.len() as u64));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,40}|[0-9*/,LW#+?A-Z() -]{0,40}") {
        if let Ok(rule) = CronRule::parse(&text, HashSeed(1)) {
            let first = rule.next_local(LocalSeconds(0)).unwrap();
            prop_assert!(rule.matches(first));
            prop_assert_eq!(rule.previous_local(LocalSeconds(first.0 + 1)), Some(first));
        }
    }

    #[test]
    fn any_instant_may_be_asked(text in expression(), at in any::<i64>()) {
        for zone in ["Africa/Casablanca", "UTC", "Pacific/Apia"] {
            let Ok(rule) = CronPlan::parse(&[&text], HashSeed(0), Zone::get(zone).unwrap(), GapPolicy::NextValid, OverlapPolicy::First)
                else { return Ok(()) };
            if let Some(next) = rule.next_after(StoreTime(at)) {
                prop_assert!(next.0 > at);
            }
            if let Some(previous) = rule.prev_before(StoreTime(at)) {
                prop_assert!(previous.0 < at);
            }
        }
    }
}

/// In every zone, a daily time fires once for each local date of seventeen years, except
/// for the dates that clocks left out, which fire at the end of the gap or never.
#[test]
fn a_daily_rule_fires_once_a_local_date_in_every_zone() {
    for name in Zone::names() {
        let plan = plan(&["30 2 * * *"], name, GapPolicy::NextValid, OverlapPolicy::First);
        let (from, until) = (at("2010-01-01T12:00"), at("2027-01-01T12:00"));
        let found = between(&plan, from, until);
        let dates: BTreeSet<_> = found
            .iter()
            .map(|at| plan.zone().local_at(UnixSeconds(at.secs())).date())
            .collect();
        assert!(dates.len() >= found.len() - 1, "{name}: a date with two occurrences");
        let days = (until.secs() - from.secs()) / 86_400;
        assert!(
            (days - 1..=days + 1).contains(&(found.len() as i64)),
            "{name}: {} in {days} days",
            found.len()
        );
    }
}

/// A rule for the very date of a clock change, met after a search over months, forwards and back.
#[test]
fn a_yearly_rule_on_the_day_of_a_change_is_found_from_afar() {
    let (mut changes, near) = (0, [-3600, -1800, -60, 0, 60, 1800, 3600]);
    for name in Zone::names() {
        let zone = Zone::get(name).unwrap();
        let mut segment = zone.segment_at(UnixSeconds(at("1996-01-01T00:00").secs()));
        while segment.end.0 < at("2031-01-01T00:00").secs() {
            let (change, index) = (segment.end.0, changes % near.len());
            let local = LocalSeconds((segment.local_end().0 + near[index]).div_euclid(60) * 60);
            let text = local.to_naive().format("%M %H %d %m *").to_string();
            let (gap, overlap) = (GAPS[changes % 2], OVERLAPS[changes % 3]);
            let plan = CronPlan::parse(&[&text], HashSeed(0), zone.clone(), gap, overlap).unwrap();
            let (from, until) = (change - 150 * 86_400, change + 150 * 86_400);
            let expected = instants_of(&zone, false, local, gap, overlap);
            let expected: Vec<_> = expected.into_iter().map(UnixSeconds::store_time).collect();
            let found = between(&plan, StoreTime::from_secs(from), StoreTime::from_secs(until));
            assert_eq!(found, expected, "{name} {text} {gap:?} {overlap:?}");
            let back = plan
                .prev_before(StoreTime::from_secs(until))
                .filter(|at| at.secs() > from);
            assert_eq!(back.as_ref(), expected.last(), "{name} {text} {gap:?} {overlap:?}");
            segment = zone.segment_at(segment.end);
            changes += 1;
        }
    }
    assert!(changes > 5_000, "only {changes}");
}

#[test]
fn a_time_moved_out_of_a_gap_is_counted_once_with_the_time_it_meets() {
    let plan = plan(
        &["0,30 2,3 * * *"],
        "Europe/Berlin",
        GapPolicy::NextValid,
        OverlapPolicy::First,
    );
    let (from, until) = (at("2026-03-29T00:00"), at("2026-03-29T12:00"));
    assert_eq!(
        between(&plan, from, until),
        [at("2026-03-29T01:00"), at("2026-03-29T01:30")]
    );
    assert_eq!(plan.count_between(from, until, 10), 2);
}

#[test]
fn days_that_a_zone_left_out_are_passed() {
    let midnight_after = |zone, gap, after| {
        let plan = plan(&["0 0 * * *"], zone, gap, OverlapPolicy::First);
        between(&plan, at(after), StoreTime(at(after).0 + 3 * 86_400_000_000))
    };
    // Samoa had no 30 December 2011: its midnight moves to the first instant of the 31st.
    let apia = [at("2011-12-29T10:00"), at("2011-12-30T10:00"), at("2011-12-31T10:00")];
    assert_eq!(
        midnight_after("Pacific/Apia", GapPolicy::NextValid, "2011-12-28T12:00"),
        apia
    );
    assert_eq!(
        midnight_after("Pacific/Apia", GapPolicy::Skip, "2011-12-28T12:00"),
        apia
    );
    // Kwajalein had no 21 August 1993.
    let kwajalein = [at("1993-08-20T12:00"), at("1993-08-21T12:00"), at("1993-08-22T12:00")];
    let found = midnight_after("Pacific/Kwajalein", GapPolicy::NextValid, "1993-08-19T13:00");
    assert_eq!(found, kwajalein);
    let noon = plan(&["0 12 30 12 *"], "Pacific/Apia", GapPolicy::Skip, OverlapPolicy::First);
    assert_eq!(noon.next_after(at("2011-12-01T00:00")), Some(at("2012-12-29T22:00")));
}

#[test]
fn equal_instants_of_several_expressions_are_one_occurrence() {
    let plan = plan(
        &["0 * * * *", "0 2 * * *", "0,10,20 2 * * *"],
        "Europe/Berlin",
        GapPolicy::NextValid,
        OverlapPolicy::First,
    );
    let found = between(&plan, at("2026-03-29T00:30"), at("2026-03-29T02:30"));
    assert_eq!(found, [at("2026-03-29T01:00"), at("2026-03-29T02:00")]);
    assert_eq!(
        plan.count_between(at("2026-03-29T00:30"), at("2026-03-29T02:30"), 100),
        2
    );
}

#[test]
fn a_rule_that_only_ever_falls_into_gaps_ends() {
    let skip = plan(
        &["30 2 * 3 SUN#L"],
        "Europe/Berlin",
        GapPolicy::Skip,
        OverlapPolicy::First,
    );
    let after_summer_time_began = at("1981-01-01T00:00");
    assert_eq!(
        skip.prev_before(StoreTime::MAX),
        skip.prev_before(after_summer_time_began)
    );
    assert_eq!(skip.next_after(after_summer_time_began), None);
}

#[test]
fn the_last_occurrence_lies_in_9998_and_the_first_in_1970() {
    for zone in ["UTC", "Pacific/Kiritimati", "Etc/GMT+12", "America/New_York"] {
        let plan = plan(&["0 0 * * *"], zone, GapPolicy::NextValid, OverlapPolicy::First);
        let local = |at: StoreTime| plan.zone().local_at(UnixSeconds(at.secs())).to_text();
        assert_eq!(
            local(plan.prev_before(StoreTime(i64::MAX)).unwrap()),
            "9998-12-31T00:00:00"
        );
        assert_eq!(
            local(plan.next_after(StoreTime(i64::MIN)).unwrap()),
            "1970-01-01T00:00:00"
        );
        assert_eq!(plan.next_after(plan.prev_before(StoreTime(i64::MAX)).unwrap()), None);
    }
}

#[test]
fn a_count_over_all_time_agrees_with_the_calendar() {
    let all = |text| {
        plan(&[text], "UTC", GapPolicy::NextValid, OverlapPolicy::First).count_between(
            StoreTime(-1),
            StoreTime::MAX,
            u64::MAX,
        )
    };
    let days = (at("9999-01-01T00:00").secs() / 86_400).unsigned_abs();
    assert_eq!(all("0 0 * * *"), days);
    assert_eq!(all("* * * * * *"), days * 86_400);
}
