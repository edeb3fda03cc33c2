//! Validation: every fault of a spec, with its field.

use super::world::*;
use crate::limits::{CATCH_UP_CAP_MAX, EXCLUSION_COUNT_MAX, EXPRESSION_COUNT_MAX, JITTER_MS_MAX, LATENESS_MS_MAX};
use crate::refusal::RefusalKind;
use crate::schedule::{Exclusion, MisfirePolicy, Rule, ScheduleSpec};
use crate::scheduler_shard::validate::{resolve_hashes, validate};
use crate::time::{Span, StoreTime};
use proptest::prelude::*;

fn fields(spec: &ScheduleSpec) -> Vec<String> {
    validate(spec)
        .into_iter()
        .map(|refusal| refusal.field.unwrap())
        .collect()
}

fn changed(change: impl FnOnce(&mut ScheduleSpec)) -> Vec<String> {
    let mut spec = cron("* * * * *");
    change(&mut spec);
    fields(&spec)
}

#[test]
fn a_good_spec_has_no_faults() {
    for spec in [
        cron("* * * * *"),
        every(60, NOON),
        once(NOON),
        cron_in("Europe/Berlin", &["0 9 * * 1-5", "@daily"]),
    ] {
        assert!(fields(&spec).is_empty());
    }
}

#[test]
fn each_fault_names_its_field() {
    assert_eq!(
        fields(&cron_in("UTC", &["* * * * *", "61 * * * *"])),
        ["schedule.rule.expressions[1].minute"]
    );
    assert_eq!(fields(&cron_in("Mars/Olympus", &["* * * * *"])), ["schedule.rule.zone"]);
    assert_eq!(fields(&cron_in("UTC", &[])), ["schedule.rule.expressions"]);
    assert_eq!(
        fields(&cron_in("UTC", &["* * * * *"; EXPRESSION_COUNT_MAX + 1])),
        ["schedule.rule.expressions"]
    );
    assert_eq!(fields(&cron(&"1,".repeat(200)))[0], "schedule.rule.expressions[0]");
    assert_eq!(fields(&every(0, NOON)), ["schedule.rule.every"]);
    assert_eq!(fields(&every(60, -5)), ["schedule.rule.anchor"]);
    assert_eq!(fields(&once(i64::MAX / 2_000_000)), ["schedule.rule.at"]);
    assert_eq!(
        changed(|spec| spec.starts_at = Some(StoreTime(-1))),
        ["schedule.starts_at"]
    );
    assert_eq!(changed(|spec| spec.count_max = Some(0)), ["schedule.count_max"]);
    assert_eq!(
        changed(|spec| spec.jitter = Span::from_millis(JITTER_MS_MAX + 1)),
        ["schedule.jitter"]
    );
    assert_eq!(
        changed(|spec| spec.tolerance = Span::from_millis(LATENESS_MS_MAX + 1)),
        ["schedule.tolerance"]
    );
    assert_eq!(changed(|spec| spec.grace = Some(Span(u64::MAX))), ["schedule.grace"]);
    assert_eq!(
        changed(|spec| (spec.starts_at, spec.ends_at) = (Some(at(NOON)), Some(at(NOON - 1)))),
        ["schedule.ends_at"]
    );
}

#[test]
fn all_faults_come_at_once() {
    let faults = changed(|spec| {
        spec.misfire = MisfirePolicy::All {
            cap: CATCH_UP_CAP_MAX + 1,
            rate: 0,
        };
        spec.count_max = Some(0);
        spec.exclusions = vec![Exclusion::Weekday(7), Exclusion::Dates { first: 5, last: 4 }];
    });
    assert_eq!(
        faults,
        [
            "schedule.count_max",
            "schedule.exclusions[0]",
            "schedule.exclusions[1]",
            "schedule.misfire.cap",
            "schedule.misfire.rate"
        ]
    );
}

#[test]
fn a_rule_whose_every_occurrence_is_excluded_is_refused_in_bounded_time() {
    let mut spec = cron("0 0 * * 0");
    spec.exclusions = vec![Exclusion::Weekday(0)];
    assert_eq!(fields(&spec), ["schedule.exclusions"]);
    assert_eq!(
        changed(|spec| spec.exclusions = (0..7).map(Exclusion::Weekday).collect()),
        ["schedule.exclusions"]
    );
    let many = vec![Exclusion::Weekday(0); EXCLUSION_COUNT_MAX + 1];
    assert_eq!(changed(|spec| spec.exclusions = many), ["schedule.exclusions"]);
}

#[test]
fn bounds_without_an_occurrence_are_refused() {
    let mut spec = cron("0 0 1 1 *");
    spec.starts_at = Some(at(NOON));
    spec.ends_at = Some(at(NOON + DAY));
    assert_eq!(fields(&spec), ["schedule.ends_at"]);
}

#[test]
fn h_is_resolved_once_from_the_name_and_the_machine_refuses_what_is_not() {
    let mut spec = cron("H H * * *");
    let Rule::Cron { resolved, .. } = &mut spec.rule else {
        panic!("cron");
    };
    resolved.clear();
    assert_eq!(validate(&spec)[0].code, "expression_unresolved");
    let resolve = |mut spec: ScheduleSpec, text: &str| {
        let (tenant, name) = name(text);
        resolve_hashes(&mut spec, &tenant, &name).unwrap();
        match spec.rule {
            Rule::Cron { resolved, .. } => resolved[0].to_string(),
            _ => String::new(),
        }
    };
    assert_eq!(resolve(spec.clone(), "a"), resolve(spec.clone(), "a"));
    assert_ne!(resolve(spec.clone(), "a"), resolve(spec.clone(), "b"));
    let mut world = World::new(NOON);
    let view = world.create("a", spec.clone());
    let Rule::Cron {
        expressions, resolved, ..
    } = view.definition.spec.rule
    else {
        panic!("cron");
    };
    assert_eq!(
        (&*expressions[0], resolved[0].to_string()),
        ("H H * * *", resolve(spec, "a"))
    );
}

#[test]
fn the_machine_checks_again() {
    let mut world = World::new(NOON);
    let refusal = world.try_create("bad", cron("61 * * * *"), false).unwrap_err();
    assert_eq!((refusal.kind, refusal.code), (RefusalKind::Invalid, "cron_range"));
    assert!(world.rows.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_validation_panic(text in "\\PC{0,40}", zone in "\\PC{0,20}") {
        let _ = validate(&cron_in(&zone, &[&text]));
        let _ = validate(&cron(&text));
    }

    #[test]
    fn a_valid_interval_can_be_created_and_stepped(
        every_us in 1_u64..1 << 50, anchor in 0_i64..1 << 55, jump in 0_i64..1_000_000_000, jitter in 0_u64..86_400_000_000
    ) {
        let mut spec = every(1, 0);
        spec.rule = Rule::Interval { every: Span(every_us), anchor: StoreTime(anchor), zone: "UTC".into() };
        spec.jitter = Span(jitter);
        if validate(&spec).is_empty() {
            let mut world = World::new(NOON);
            let _ = world.try_create("it", spec, false);
            world.jump(at(NOON + jump));
            world.tick();
        }
    }
}
