//! What a schedule would ask for: without making it, or for one that is there.
//!
//! Owns: the two previews. Must never: write anything. Next: `fencepost_core::scheduler_shard`.

use super::schedules::{full_name, schedule_not_found};
use crate::api::body::{JsonBody, ok};
use crate::api::dto::rule::{RuleBody, read_rule};
use crate::api::dto::schedule::read_bounds;
use crate::api::fields::Fields;
use crate::api::handle::Shared;
use crate::api::query::{Params, SchedulePath};
use crate::api::text;
use crate::problem::Problem;
use axum::extract::State;
use axum::response::Response;
use fencepost_core::cron::has_h;
use fencepost_core::limits::PREVIEW_COUNT_MAX;
use fencepost_core::refusal::Refusal;
use fencepost_core::schedule::{Rule, ScheduleSpec};
use fencepost_core::scheduler_shard::timetable::Timetable;
use fencepost_core::time::StoreTime;
use fencepost_core::zone::{UnixSeconds, Zone};
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// Body of `POST /v1/preview`.
#[derive(Debug, Serialize, ToSchema)]
pub struct PreviewBody {
    /// Resolve `H` as for the schedule of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When.
    #[serde(flatten)]
    pub rule: RuleBody,
    /// Occurrences before it do not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_at: Option<String>,
    /// Occurrences after it do not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<String>,
    /// Local dates on which nothing fires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude: Option<Vec<String>>,
    /// Strictly after this instant; now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Instants, 1 to 1,000; 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n: Option<u32>,
}

/// One instant.
#[derive(Debug, Serialize, ToSchema)]
pub struct InstantAnswer {
    /// In UTC.
    pub at: String,
    /// In the schedule's zone, with its offset.
    pub local: String,
}

/// Instants to come.
#[derive(Debug, Serialize, ToSchema)]
pub struct PreviewAnswer {
    /// Ascending.
    pub items: Vec<InstantAnswer>,
    /// Nothing comes after them.
    pub ends: bool,
    /// Version of the zone data.
    pub zone_version: String,
    /// What makes these instants others than those of a schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

const NAMELESS_H: &str = "H is drawn from the schedule's name: send name to see its own times.";

/// Previews a rule without a schedule.
#[utoipa::path(post, path = "/v1/preview", tag = "schedules", request_body = PreviewBody,
    responses((status = 200, description = "The instants.", body = PreviewAnswer), (status = "default", description = "A problem.", body = Problem)))]
pub async fn preview(
    State(shared): State<Arc<Shared>>,
    params: Params,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    params.end()?;
    let now = shared.gateway.now();
    let mut fields = Fields::of(body, "")?;
    let given = fields.name("name")?;
    let is_nameless = given.is_none();
    let name = given.unwrap_or_else(|| crate::api::dto::job::fixed_name("preview"));
    let rule = read_rule(&mut fields, &name, now)?;
    let bounds = read_bounds(&mut fields)?;
    let after = fields.instant("after")?.unwrap_or(now);
    let count = fields.whole("n", 1..=u64::from(PREVIEW_COUNT_MAX))?.unwrap_or(10);
    fields.end()?;
    let spec = bounds.around(rule);
    let mut answer = instants(&spec, after, count as usize)?;
    let draws = |expressions: &[Arc<str>]| expressions.iter().any(|expression| has_h(expression));
    if is_nameless && matches!(&spec.rule, Rule::Cron { expressions, .. } if draws(expressions)) {
        answer.note = Some(NAMELESS_H.to_owned());
    }
    Ok(ok(&answer))
}

/// Previews a schedule that is there, from now on by default.
#[utoipa::path(get, path = "/v1/schedules/{name}/preview", tag = "schedules",
    params(("name" = String, Path, description = "Its name."), ("after" = Option<String>, Query, description = "Strictly after this instant; now."),
        ("n" = Option<u32>, Query, description = "Instants, 1 to 1,000; 10.")),
    responses((status = 200, description = "The instants.", body = PreviewAnswer), (status = "default", description = "A problem.", body = Problem)))]
pub async fn preview_schedule(
    State(shared): State<Arc<Shared>>,
    SchedulePath(name): SchedulePath,
    mut params: Params,
) -> Result<Response, Problem> {
    let after = params.instant("after")?.unwrap_or_else(|| shared.gateway.now());
    let count = params.whole("n", 1, u64::from(PREVIEW_COUNT_MAX))?.unwrap_or(10);
    params.end()?;
    let found = shared.gateway.schedule(full_name(name.clone())).await?;
    let facts = found.ok_or_else(|| schedule_not_found(&name))?;
    Ok(ok(&instants(&facts.view.definition.spec, after, count as usize)?))
}

fn instants(spec: &ScheduleSpec, after: StoreTime, count: usize) -> Result<PreviewAnswer, Refusal> {
    let table = Timetable::compile(spec, StoreTime(0))?;
    let zone = zone_of(&spec.rule)?;
    let first = table.next_after(after);
    let items: Vec<_> = std::iter::successors(first, |at| table.next_after(*at))
        .take(count)
        .map(|at| InstantAnswer {
            at: text::instant(at),
            local: local_text(&zone, at),
        })
        .collect();
    Ok(PreviewAnswer {
        ends: items.len() < count,
        items,
        zone_version: fencepost_core::zone::ZoneVersion::bundled().to_string(),
        note: None,
    })
}

fn zone_of(rule: &Rule) -> Result<Arc<Zone>, Refusal> {
    let (Rule::Cron { zone, .. } | Rule::Interval { zone, .. } | Rule::Once { zone, .. }) = rule;
    Zone::get(zone).map_err(|error| error.refusal("tz"))
}

/// An instant as clocks in a zone show it, with the offset.
pub fn local_text(zone: &Zone, at: StoreTime) -> String {
    let unix = UnixSeconds(at.secs());
    let offset = chrono::FixedOffset::east_opt(zone.offset_at(unix));
    let offset = offset.map(|offset| offset.to_string()).unwrap_or_default();
    format!("{}{offset}", zone.local_at(unix).to_text())
}
