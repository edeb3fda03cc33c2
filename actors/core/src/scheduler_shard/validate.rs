//! What a schedule must be like: every fault of a spec, each with its field.
//!
//! Owns: the checks, called by the gateway before a request is sent and by the machine again. Must
//! never: panic on any input. Next: `timetable.rs`.

use super::timetable::Timetable;
use crate::cron::{CronPlan, HashSeed};
use crate::limits::{
    CATCH_UP_CAP_MAX, EXCLUSION_COUNT_MAX, EXPRESSION_BYTES_MAX, EXPRESSION_COUNT_MAX, FIRES_PER_STEP_MAX,
    INTERVAL_MS_MIN, JITTER_MS_MAX, LATENESS_MS_MAX,
};
use crate::name::Name;
use crate::refusal::{Refusal, RefusalKind};
use crate::schedule::{Exclusion, MisfirePolicy, Rule, ScheduleSpec};
use crate::time::{Span, StoreTime};
use crate::zone::Zone;
use std::sync::Arc;

/// Every fault of a spec, in order of its fields; empty if it is good.
pub fn validate(spec: &ScheduleSpec) -> Vec<Refusal> {
    let mut faults = Vec::new();
    check_rule(&spec.rule, &mut faults);
    check_bounds(spec, &mut faults);
    check_exclusions(&spec.exclusions, &mut faults);
    check_lateness(spec, &mut faults);
    check_misfire(spec.misfire, &mut faults);
    if faults.is_empty() {
        check_there_is_an_occurrence(spec, &mut faults);
    }
    faults
}

/// Resolves `H` once, from the schedule's name, into `resolved`; what is resolved already stays.
pub fn resolve_hashes(spec: &mut ScheduleSpec, tenant: &Name, name: &Name) -> Result<(), Refusal> {
    let seed = HashSeed::of_schedule(tenant.as_str(), name.as_str());
    let Rule::Cron {
        expressions, resolved, ..
    } = &mut spec.rule
    else {
        return Ok(());
    };
    if resolved.len() == expressions.len() {
        return Ok(());
    }
    let mut plain: Vec<Arc<str>> = Vec::with_capacity(expressions.len());
    for (index, text) in expressions.iter().enumerate() {
        let rule = crate::cron::CronRule::parse(text, seed).map_err(|error| error.refusal(&expression_place(index)))?;
        plain.push(rule.plain().into());
    }
    *resolved = plain;
    Ok(())
}

/// The zone that a rule names.
pub(super) fn zone_of(rule: &Rule) -> Result<Arc<Zone>, Refusal> {
    let (Rule::Cron { zone, .. } | Rule::Interval { zone, .. } | Rule::Once { zone, .. }) = rule;
    Zone::get(zone).map_err(|error| error.refusal("schedule.rule.zone"))
}

/// The plan of a cron rule, as resolved.
pub(super) fn plan_of(rule: &Rule, zone: &Arc<Zone>) -> Result<CronPlan, Refusal> {
    let Rule::Cron {
        resolved, gap, overlap, ..
    } = rule
    else {
        return Err(invalid("rule_not_cron", "the rule has no expressions", "name a cron rule").at("schedule.rule"));
    };
    CronPlan::parse(resolved, HashSeed(0), Arc::clone(zone), *gap, *overlap)
        .map_err(|(index, error)| error.refusal(&expression_place(index)))
}

fn expression_place(index: usize) -> String {
    format!("schedule.rule.expressions[{index}]")
}

fn invalid(code: &'static str, detail: impl Into<String>, hint: impl Into<String>) -> Refusal {
    Refusal::new(RefusalKind::Invalid, code, detail, hint)
}

fn check_rule(rule: &Rule, faults: &mut Vec<Refusal>) {
    let zone = match zone_of(rule) {
        Ok(zone) => zone,
        Err(refusal) => {
            faults.push(refusal);
            Zone::utc()
        }
    };
    match rule {
        Rule::Cron {
            expressions, resolved, ..
        } => check_expressions(rule, expressions, resolved, &zone, faults),
        Rule::Interval { every, anchor, .. } => {
            let (least, most) = (Span::from_millis(INTERVAL_MS_MIN), StoreTime::MAX.since(StoreTime(0)));
            if *every < least || *every > most {
                let detail = format!("an interval has at least {INTERVAL_MS_MIN} ms and at most 8,000 years");
                faults.push(invalid("interval_range", detail, "write for example 30s or 1d").at("schedule.rule.every"));
            }
            check_instant(Some(*anchor), "schedule.rule.anchor", faults);
        }
        Rule::Once { at, .. } => check_instant(Some(*at), "schedule.rule.at", faults),
    }
}

fn check_expressions(
    rule: &Rule,
    expressions: &[Arc<str>],
    resolved: &[Arc<str>],
    zone: &Arc<Zone>,
    faults: &mut Vec<Refusal>,
) {
    let place = "schedule.rule.expressions";
    if expressions.is_empty() || expressions.len() > EXPRESSION_COUNT_MAX {
        let detail = format!(
            "a schedule has 1 to {EXPRESSION_COUNT_MAX} expressions, not {}",
            expressions.len()
        );
        faults.push(invalid("expression_count", detail, "use several schedules").at(place));
        return;
    }
    if resolved.len() != expressions.len() {
        let detail = "every expression needs its form without H";
        faults.push(invalid("expression_unresolved", detail, "send the schedule through the API").at(place));
        return;
    }
    for (index, text) in expressions.iter().enumerate() {
        if text.len() > EXPRESSION_BYTES_MAX {
            let detail = format!(
                "an expression has at most {EXPRESSION_BYTES_MAX} bytes, not {}",
                text.len()
            );
            let hint = "split it into several expressions of one schedule";
            faults.push(invalid("cron_too_long", detail, hint).at(expression_place(index)));
        }
    }
    if let Err(refusal) = plan_of(rule, zone) {
        faults.push(refusal);
    }
}

fn check_instant(at: Option<StoreTime>, field: &str, faults: &mut Vec<Refusal>) {
    if at.is_some_and(|at| at < StoreTime(0) || at > StoreTime::MAX) {
        let hint = "name an instant of the years 1970 to 9999";
        faults.push(invalid("instant_range", "the instant lies outside of the calendar", hint).at(field));
    }
}

fn check_bounds(spec: &ScheduleSpec, faults: &mut Vec<Refusal>) {
    check_instant(spec.starts_at, "schedule.starts_at", faults);
    check_instant(spec.ends_at, "schedule.ends_at", faults);
    if let (Some(start), Some(end)) = (spec.starts_at, spec.ends_at)
        && start > end
    {
        let hint = "swap the two, or leave one out";
        faults.push(invalid("bounds_backward", "the end lies before the start", hint).at("schedule.ends_at"));
    }
    if spec.count_max == Some(0) {
        let hint = "leave the count out, or name at least 1";
        faults.push(invalid("count_zero", "a count of zero never fires", hint).at("schedule.count_max"));
    }
}

fn check_exclusions(exclusions: &[Exclusion], faults: &mut Vec<Refusal>) {
    if exclusions.len() > EXCLUSION_COUNT_MAX {
        let detail = format!(
            "a schedule has at most {EXCLUSION_COUNT_MAX} exclusions, not {}",
            exclusions.len()
        );
        let hint = "join neighbouring dates into ranges";
        faults.push(invalid("exclusion_count", detail, hint).at("schedule.exclusions"));
    }
    for (index, exclusion) in exclusions.iter().enumerate() {
        let (code, detail, hint) = match exclusion {
            Exclusion::Dates { first, last } if first > last => (
                "exclusion_backward",
                "the range runs backwards",
                "put the earlier date first",
            ),
            Exclusion::Weekday(day) if *day > 6 => (
                "exclusion_weekday",
                "there is no such weekday",
                "0 is Sunday, 6 is Saturday",
            ),
            Exclusion::Dates { .. } | Exclusion::Weekday(_) => continue,
        };
        faults.push(invalid(code, detail, hint).at(format!("schedule.exclusions[{index}]")));
    }
}

fn check_lateness(spec: &ScheduleSpec, faults: &mut Vec<Refusal>) {
    let mut bounded = |span: Span, most: u64, field: &str| {
        if span > Span::from_millis(most) {
            let detail = format!("at most {} s", most / 1_000);
            faults.push(invalid("span_too_long", detail, "name a shorter one").at(field));
        }
    };
    bounded(spec.jitter, JITTER_MS_MAX, "schedule.jitter");
    bounded(spec.tolerance, LATENESS_MS_MAX, "schedule.tolerance");
    bounded(spec.grace.unwrap_or(Span::ZERO), LATENESS_MS_MAX, "schedule.grace");
}

fn check_misfire(policy: MisfirePolicy, faults: &mut Vec<Refusal>) {
    let MisfirePolicy::All { cap, rate } = policy else {
        return;
    };
    if cap == 0 || cap > CATCH_UP_CAP_MAX {
        let detail = format!("policy all keeps 1 to {CATCH_UP_CAP_MAX} occurrences");
        faults.push(invalid("misfire_cap", detail, "name a cap in that range").at("schedule.misfire.cap"));
    }
    let rate_max = FIRES_PER_STEP_MAX;
    if rate == 0 || usize::try_from(rate).map_or(true, |rate| rate > rate_max) {
        let detail = format!("policy all releases 1 to {rate_max} jobs a second");
        faults.push(invalid("misfire_rate", detail, "name a rate in that range").at("schedule.misfire.rate"));
    }
}

/// A rule that never fires at all is a mistake; one that has ended by now is not seen here.
fn check_there_is_an_occurrence(spec: &ScheduleSpec, faults: &mut Vec<Refusal>) {
    match Timetable::compile(spec, StoreTime(-1)) {
        Err(refusal) => faults.push(refusal),
        Ok(table) if table.next_after(StoreTime(-1)).is_none() => {
            let (detail, hint) = match table.next_raw(StoreTime(-1)) {
                Some(_) => ("every occurrence is excluded", "exclude less"),
                None => ("no occurrence lies within the bounds", "move starts_at or ends_at"),
            };
            let field = match table.next_raw(StoreTime(-1)) {
                Some(_) => "schedule.exclusions",
                None => "schedule.ends_at",
            };
            // An excluded one-shot is a fate, not a mistake of the rule.
            if !matches!(spec.rule, Rule::Once { .. }) {
                faults.push(invalid("schedule_never_fires", detail, hint).at(field));
            }
        }
        Ok(_) => {}
    }
}
