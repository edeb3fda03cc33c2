//! What a schedule is asked to be: the body of a request, the same shape that answers show.
//!
//! Owns: the fields of a schedule in requests, their defaults and bounds. Must never: evaluate a rule.
//! Next: `rule.rs`, `job.rs`.

use super::job::{JobBody, read_spec};
use super::rule::{RuleBody, read_rule};
use crate::api::fields::Fields;
use crate::api::json::Json;
use crate::api::places::as_sent;
use crate::api::text;
use crate::targets::TargetsConfig;
use fencepost_core::calendar::{format_exclusion, parse_exclusion};
use fencepost_core::limits::{
    BACKFILL_COUNT_MAX, CATCH_UP_CAP_DEFAULT, CATCH_UP_CAP_MAX, CATCH_UP_RATE_DEFAULT, CATCH_UP_RATE_MAX,
    EXCLUSION_COUNT_MAX, JITTER_MS_MAX, LATENESS_MS_MAX, TOLERANCE_MS,
};
use fencepost_core::name::Name;
use fencepost_core::refusal::Refusal;
use fencepost_core::schedule::{Exclusion, MisfirePolicy, PendingFate, Rule, ScheduleSpec};
use fencepost_core::scheduler_shard::validate::validate;
use fencepost_core::time::{Span, StoreTime};
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// What becomes of the planned fire in an edit.
pub const PENDINGS: &[(&str, PendingFate)] = &[
    ("keep", PendingFate::Keep),
    ("retime", PendingFate::Retime),
    ("drop", PendingFate::Drop),
];

/// A schedule's definition.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ScheduleBody {
    /// When.
    #[serde(flatten)]
    pub rule: RuleBody,
    /// Occurrences before it do not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_at: Option<String>,
    /// Occurrences after it do not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<String>,
    /// After this many fires the schedule is finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Local dates on which nothing fires: `2026-12-25`, `2026-12-24..2026-12-26`, `sun`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude: Option<Vec<String>>,
    /// Spread each due instant over this window; `0s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<String>,
    /// Occurrences found late: `latest` (default), `coalesce`, `all` or `skip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub misfire: Option<String>,
    /// Bounds of misfire policy `all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<CatchUpBody>,
    /// At most this late is on time; `1m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<String>,
    /// Later than this never fires; no limit by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace: Option<String>,
    /// What each fire makes.
    pub job: JobBody,
}

/// Bounds of misfire policy `all`.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CatchUpBody {
    /// The newest this many are kept; 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap: Option<u32>,
    /// Jobs a second; 50.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
}

/// Body of `POST /v1/schedules`.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NewScheduleBody {
    /// 1 to 128 characters of `A-Z a-z 0-9 . _ -`, the first a letter or digit.
    pub name: String,
    /// Make it paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// The definition.
    #[serde(flatten)]
    pub definition: ScheduleBody,
}

/// Body of `POST /v1/schedules/{name}/backfill`.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BackfillBody {
    /// Occurrences after this instant.
    pub from: String,
    /// Occurrences up to this instant, not after now.
    pub to: String,
    /// Most jobs; 10,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap: Option<u32>,
    /// Also occurrences that fired already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerun: Option<bool>,
    /// Only show what would be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
}

/// A schedule asked for, as parsed.
#[derive(Clone, Debug)]
pub struct NewSchedule {
    /// Its name.
    pub name: Name,
    /// What.
    pub spec: ScheduleSpec,
    /// Made paused.
    pub paused: bool,
}

/// A backfill asked for, as parsed.
#[derive(Clone, Copy, Debug)]
pub struct Backfill {
    /// Exclusive.
    pub from: StoreTime,
    /// Inclusive.
    pub to: StoreTime,
    /// Most jobs.
    pub cap: u32,
    /// Also occurrences that fired already.
    pub rerun: bool,
    /// Only show.
    pub dry_run: bool,
}

/// Every field of a schedule that is created; an edit names neither of the first two.
const FIELDS: &[&str] = &[
    "name",
    "paused",
    "cron",
    "every",
    "anchor",
    "at",
    "at_local",
    "tz",
    "gap",
    "overlap",
    "starts_at",
    "ends_at",
    "count",
    "exclude",
    "jitter",
    "misfire",
    "catch_up",
    "tolerance",
    "grace",
    "job",
];

/// Reads the body of a creation.
///
/// # Errors
/// The first field that is wrong.
pub fn read_new_schedule(json: Json, now: StoreTime, targets: &TargetsConfig) -> Result<NewSchedule, Refusal> {
    let mut fields = Fields::of(json, "")?.only(FIELDS)?;
    let name = fields.name("name")?;
    let name = name.ok_or_else(|| fields.missing("name", "Name the schedule, such as nightly-backup."))?;
    let paused = fields.flag("paused")?;
    let spec = read_definition(&mut fields, &name, now, targets)?;
    fields.end()?;
    Ok(NewSchedule { name, spec, paused })
}

/// Reads the body of an edit: the whole definition anew.
///
/// # Errors
/// The first field that is wrong.
pub fn read_edit(json: Json, name: &Name, now: StoreTime, targets: &TargetsConfig) -> Result<ScheduleSpec, Refusal> {
    let of_definition = FIELDS.get(2..).unwrap_or_default();
    let mut fields = Fields::of(json, "")?.only(of_definition)?;
    let spec = read_definition(&mut fields, name, now, targets)?;
    fields.end()?;
    Ok(spec)
}

fn read_definition(
    fields: &mut Fields,
    name: &Name,
    now: StoreTime,
    targets: &TargetsConfig,
) -> Result<ScheduleSpec, Refusal> {
    let rule = read_rule(fields, name, now)?;
    let bounds = read_bounds(fields)?;
    let hint = "Say what each fire makes: {\"target\": …}.";
    let mut job = fields.object("job")?.ok_or_else(|| fields.missing("job", hint))?;
    let spec = read_spec(&mut job, targets)?;
    job.end()?;
    let spec = ScheduleSpec {
        rule,
        starts_at: bounds.starts_at,
        ends_at: bounds.ends_at,
        count_max: fields.whole("count", 1..=u64::MAX)?,
        exclusions: bounds.exclusions,
        jitter: fields
            .span("jitter", Span::from_millis(JITTER_MS_MAX))?
            .unwrap_or(Span::ZERO),
        misfire: read_misfire(fields)?,
        tolerance: fields
            .span("tolerance", Span::from_millis(LATENESS_MS_MAX))?
            .unwrap_or(Span::from_millis(TOLERANCE_MS)),
        grace: fields.span("grace", Span::from_millis(LATENESS_MS_MAX))?,
        job: Arc::new(spec),
    };
    let fault = validate(&spec).into_iter().next();
    fault.map_or(Ok(spec), |refusal| Err(as_sent(refusal)))
}

/// What narrows a rule down.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    starts_at: Option<StoreTime>,
    ends_at: Option<StoreTime>,
    exclusions: Vec<Exclusion>,
}

impl Bounds {
    /// Nothing but local dates on which nothing fires.
    pub fn excluding(exclusions: Vec<Exclusion>) -> Bounds {
        Bounds {
            exclusions,
            ..Bounds::default()
        }
    }

    /// A definition of this rule that makes jobs which do nothing: for previews.
    pub fn around(self, rule: Rule) -> ScheduleSpec {
        ScheduleSpec {
            rule,
            starts_at: self.starts_at,
            ends_at: self.ends_at,
            count_max: None,
            exclusions: self.exclusions,
            jitter: Span::ZERO,
            misfire: MisfirePolicy::Latest,
            tolerance: Span::from_millis(TOLERANCE_MS),
            grace: None,
            job: Arc::new(super::job::noop()),
        }
    }
}

/// Reads what narrows a rule down.
///
/// # Errors
/// The first field that is wrong.
pub fn read_bounds(fields: &mut Fields) -> Result<Bounds, Refusal> {
    let (starts_at, ends_at) = (fields.instant("starts_at")?, fields.instant("ends_at")?);
    if starts_at.zip(ends_at).is_some_and(|(start, end)| end < start) {
        let detail = "The schedule ends before it starts.";
        return Err(fields.refuse(
            "ends_at",
            "ends_before_start",
            detail,
            "Swap the two, or leave one out.",
        ));
    }
    Ok(Bounds {
        starts_at,
        ends_at,
        exclusions: read_exclusions(fields)?,
    })
}

fn read_exclusions(fields: &mut Fields) -> Result<Vec<Exclusion>, Refusal> {
    let texts = fields.texts("exclude", EXCLUSION_COUNT_MAX)?;
    let place = |at| fields.name_of(&format!("exclude[{at}]"));
    let read = |(at, text): (usize, &String)| parse_exclusion(text).map_err(|refusal| refusal.at(place(at)));
    texts.iter().enumerate().map(read).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Misfire {
    Latest,
    Coalesce,
    All,
    Skip,
}

const MISFIRES: &[(&str, Misfire)] = &[
    ("latest", Misfire::Latest),
    ("coalesce", Misfire::Coalesce),
    ("all", Misfire::All),
    ("skip", Misfire::Skip),
];

fn read_misfire(fields: &mut Fields) -> Result<MisfirePolicy, Refusal> {
    let policy = fields.word("misfire", MISFIRES)?.unwrap_or(Misfire::Latest);
    let catch_up = fields.object("catch_up")?;
    if catch_up.is_some() && policy != Misfire::All {
        let detail = "catch_up belongs to misfire policy all.";
        return Err(fields.refuse(
            "catch_up",
            "catch_up_unused",
            detail,
            "Leave it out, or set misfire to all.",
        ));
    }
    let (mut cap, mut rate) = (CATCH_UP_CAP_DEFAULT, CATCH_UP_RATE_DEFAULT);
    if let Some(mut bounds) = catch_up {
        cap = bounds
            .whole("cap", 1..=u64::from(CATCH_UP_CAP_MAX))?
            .map_or(cap, |value| value as u32);
        rate = bounds
            .whole("rate", 1..=u64::from(CATCH_UP_RATE_MAX))?
            .map_or(rate, |value| value as u32);
        bounds.end()?;
    }
    Ok(match policy {
        Misfire::Latest => MisfirePolicy::Latest,
        Misfire::Coalesce => MisfirePolicy::Coalesce,
        Misfire::Skip => MisfirePolicy::Skip,
        Misfire::All => MisfirePolicy::All { cap, rate },
    })
}

/// Reads the body of a backfill.
///
/// # Errors
/// The first field that is wrong.
pub fn read_backfill(json: Json) -> Result<Backfill, Refusal> {
    let mut fields = Fields::of(json, "")?.only(&["from", "to", "cap", "rerun", "dry_run"])?;
    let hint = "Give the range in RFC 3339.";
    let from = fields.instant("from")?.ok_or_else(|| fields.missing("from", hint))?;
    let to = fields.instant("to")?.ok_or_else(|| fields.missing("to", hint))?;
    if to <= from {
        return Err(fields.refuse(
            "to",
            "range_empty",
            "The range ends before it begins.",
            "Swap from and to.",
        ));
    }
    let cap = fields.whole("cap", 1..=u64::from(BACKFILL_COUNT_MAX))?;
    let (rerun, dry_run) = (fields.flag("rerun")?, fields.flag("dry_run")?);
    fields.end()?;
    Ok(Backfill {
        from,
        to,
        cap: cap.map_or(BACKFILL_COUNT_MAX, |value| value as u32),
        rerun,
        dry_run,
    })
}

impl ScheduleBody {
    /// The body that would make this definition, every field given. Secrets in it are masked.
    pub fn of(spec: &ScheduleSpec) -> ScheduleBody {
        let (misfire, catch_up) = match spec.misfire {
            MisfirePolicy::Latest => ("latest", None),
            MisfirePolicy::Coalesce => ("coalesce", None),
            MisfirePolicy::Skip => ("skip", None),
            MisfirePolicy::All { cap, rate } => (
                "all",
                Some(CatchUpBody {
                    cap: Some(cap),
                    rate: Some(rate),
                }),
            ),
        };
        ScheduleBody {
            rule: RuleBody::of(&spec.rule),
            starts_at: spec.starts_at.map(text::instant),
            ends_at: spec.ends_at.map(text::instant),
            count: spec.count_max,
            exclude: Some(spec.exclusions.iter().map(format_exclusion).collect()),
            jitter: Some(text::span(spec.jitter)),
            misfire: Some(misfire.to_owned()),
            catch_up,
            tolerance: Some(text::span(spec.tolerance)),
            grace: spec.grace.map(text::span),
            job: JobBody::of(&spec.job, true),
        }
    }
}
