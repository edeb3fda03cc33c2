//! When a schedule asks for an occurrence, as JSON: cron, interval or once.
//!
//! Owns: the reading of a rule, every part checked where it is named. Must never: evaluate a rule beyond
//! what its check needs. Next: `schedule.rs`.

use crate::api::fields::Fields;
use crate::api::json::Json;
use crate::api::text;
use fencepost_core::cron::{CronPlan, HashSeed};
use fencepost_core::limits::{EXPRESSION_COUNT_MAX, INTERVAL_MS_MIN};
use fencepost_core::name::Name;
use fencepost_core::once;
use fencepost_core::refusal::Refusal;
use fencepost_core::schedule::{GapPolicy, OverlapPolicy, Rule};
use fencepost_core::time::{Span, StoreTime};
use fencepost_core::zone::{LocalSeconds, Zone};
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// Policies for local times that do not exist.
pub const GAPS: &[(&str, GapPolicy)] = &[("next-valid", GapPolicy::NextValid), ("skip", GapPolicy::Skip)];

/// Policies for local times that exist twice.
pub const OVERLAPS: &[(&str, OverlapPolicy)] = &[
    ("first", OverlapPolicy::First),
    ("second", OverlapPolicy::Second),
    ("both", OverlapPolicy::Both),
];

/// When: exactly one of `cron`, `every`, `at`, `at_local`.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct RuleBody {
    /// One expression or a list of up to 16; 5, 6 or 7 fields, macros, `H`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<Vec<String>>,
    /// Fixed interval, such as `30s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// One instant of the interval; the second of its creation by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<String>,
    /// Once, at this instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Once, at this local time in `tz`: `2026-03-29T02:30:00`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_local: Option<String>,
    /// IANA zone; `UTC`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tz: Option<String>,
    /// Local times that do not exist: `next-valid` (default) or `skip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<String>,
    /// Local times that exist twice: `first` (default), `second` or `both`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<String>,
}

struct Policies {
    zone: Arc<Zone>,
    gap: GapPolicy,
    overlap: OverlapPolicy,
}

/// Reads the rule of the schedule `name`; `now` anchors an interval that names no anchor.
///
/// # Errors
/// The first field that is wrong.
pub fn read_rule(fields: &mut Fields, name: &Name, now: StoreTime) -> Result<Rule, Refusal> {
    let given: Vec<_> = ["cron", "every", "at", "at_local"]
        .into_iter()
        .filter(|field| fields.has(field))
        .collect();
    let hint = "Give exactly one of cron, every, at and at_local.";
    match given.as_slice() {
        [_] => {}
        [] => return Err(fields.missing("cron", hint)),
        [_, second, ..] => {
            return Err(fields.refuse(second, "rule_twice", "The schedule says twice when it fires.", hint));
        }
    }
    let tz = fields.text("tz")?.unwrap_or_else(|| "UTC".to_owned());
    let policies = Policies {
        zone: Zone::get(&tz).map_err(|error| error.refusal(fields.name_of("tz")))?,
        gap: fields.word("gap", GAPS)?.unwrap_or_default(),
        overlap: fields.word("overlap", OVERLAPS)?.unwrap_or_default(),
    };
    #[cfg(madsim)]
    let policies = planted_policies(policies);
    let expressions = read_expressions(fields)?;
    let every = fields.span("every", Span(u64::MAX))?;
    let anchor = fields.instant("anchor")?;
    let at = fields.instant("at").map_err(|refusal| Refusal {
        hint: format!(
            "{} A local time goes into at_local (--at-local), its zone into tz.",
            refusal.hint
        ),
        ..refusal
    })?;
    let local = fields.text("at_local")?;
    if let (Some(_), None) = (anchor, every) {
        return Err(fields.refuse(
            "anchor",
            "anchor_alone",
            "Only an interval has an anchor.",
            "Leave it out.",
        ));
    }
    match (every, at, local) {
        (Some(every), ..) => read_interval(fields, every, anchor.unwrap_or(whole_second(now)), &policies),
        (_, Some(at), _) => Ok(once_at(at, None, &policies)),
        (_, _, Some(local)) => read_local(fields, &local, &policies),
        _ => cron(fields, &expressions, name, &policies),
    }
}

#[cfg(madsim)]
fn planted_policies(mut policies: Policies) -> Policies {
    use crate::planted::{Bug, is_planted};
    if is_planted(Bug::GapTimeDropped) {
        policies.gap = GapPolicy::Skip;
    }
    if is_planted(Bug::RepeatedHourFiresTwice) {
        policies.overlap = OverlapPolicy::Both;
    }
    policies
}

/// `cron` is a text or a list of texts.
fn read_expressions(fields: &mut Fields) -> Result<Vec<String>, Refusal> {
    match fields.take("cron") {
        None => Ok(Vec::new()),
        Some(Json::Text(text)) => Ok(vec![text]),
        Some(Json::List(items)) if (1..=EXPRESSION_COUNT_MAX).contains(&items.len()) => {
            let text = |(at, item)| match item {
                Json::Text(text) => Ok(text),
                _ => Err(fields.refuse(
                    &format!("cron[{at}]"),
                    "field_type",
                    "A cron expression is a text.",
                    "Put it in quotes.",
                )),
            };
            items.into_iter().enumerate().map(text).collect()
        }
        Some(_) => Err(fields.refuse(
            "cron",
            "field_type",
            format!("This field is a cron expression, or a list of 1 to {EXPRESSION_COUNT_MAX}."),
            "Send a text such as \"0 2 * * *\".",
        )),
    }
}

fn cron(fields: &Fields, texts: &[String], name: &Name, policies: &Policies) -> Result<Rule, Refusal> {
    let seed = HashSeed::of_schedule("default", name.as_str());
    let plan = CronPlan::parse(texts, seed, Arc::clone(&policies.zone), policies.gap, policies.overlap)
        .map_err(|(at, error)| error.refusal(&fields.name_of(&format!("cron[{at}]"))))?;
    let texts =
        |of: fn(&fencepost_core::cron::CronRule) -> &str| plan.rules().iter().map(|r| Arc::from(of(r))).collect();
    Ok(Rule::Cron {
        expressions: texts(|rule| rule.text()),
        resolved: texts(|rule| rule.plain()),
        zone: policies.zone.name().into(),
        gap: policies.gap,
        overlap: policies.overlap,
    })
}

fn read_interval(fields: &Fields, every: Span, anchor: StoreTime, policies: &Policies) -> Result<Rule, Refusal> {
    if every < Span::from_millis(INTERVAL_MS_MIN) {
        let detail = format!("An interval is at least {INTERVAL_MS_MIN} ms.");
        return Err(fields.refuse("every", "interval_too_short", detail, "Give a longer one."));
    }
    Ok(Rule::Interval {
        every,
        anchor,
        zone: policies.zone.name().into(),
    })
}

/// Where an interval begins when nobody says so: people expect whole seconds.
fn whole_second(at: StoreTime) -> StoreTime {
    StoreTime::from_secs(at.secs())
}

fn once_at(at: StoreTime, local: Option<Arc<str>>, policies: &Policies) -> Rule {
    Rule::Once {
        at,
        local,
        zone: policies.zone.name().into(),
        gap: policies.gap,
        overlap: policies.overlap,
    }
}

fn read_local(fields: &Fields, given: &str, policies: &Policies) -> Result<Rule, Refusal> {
    let place = fields.name_of("at_local");
    let at = once::instant_of(&policies.zone, given, policies.gap, policies.overlap, &place)?;
    let local = LocalSeconds::from_text(given).map_or_else(|| given.to_owned(), LocalSeconds::to_text);
    Ok(once_at(at, Some(local.into()), policies))
}

fn word<T: PartialEq>(words: &[(&str, T)], value: &T) -> Option<String> {
    words
        .iter()
        .find(|(_, known)| known == value)
        .map(|(word, _)| (*word).to_owned())
}

impl RuleBody {
    /// The body that would make this rule.
    pub fn of(rule: &Rule) -> RuleBody {
        match rule {
            Rule::Cron {
                expressions,
                zone,
                gap,
                overlap,
                ..
            } => RuleBody {
                cron: Some(expressions.iter().map(ToString::to_string).collect()),
                tz: Some(zone.to_string()),
                gap: word(GAPS, gap),
                overlap: word(OVERLAPS, overlap),
                ..RuleBody::default()
            },
            Rule::Interval { every, anchor, zone } => RuleBody {
                every: Some(text::span(*every)),
                anchor: Some(text::instant(*anchor)),
                tz: Some(zone.to_string()),
                ..RuleBody::default()
            },
            Rule::Once {
                at,
                local,
                zone,
                gap,
                overlap,
            } => RuleBody {
                at: local.is_none().then(|| text::instant(*at)),
                at_local: local.as_deref().map(str::to_owned),
                tz: Some(zone.to_string()),
                gap: word(GAPS, gap),
                overlap: word(OVERLAPS, overlap),
                ..RuleBody::default()
            },
        }
    }

    /// One line for tables: what the rule says.
    pub fn line(rule: &Rule) -> String {
        match rule {
            Rule::Cron { expressions, .. } => expressions.join(" | "),
            Rule::Interval { every, .. } => format!("every {}", text::span(*every)),
            Rule::Once { at, local, .. } => match local {
                Some(local) => format!("once at {local}"),
                None => format!("once at {}", text::instant(*at)),
            },
        }
    }
}
