//! What is done to a schedule beside its definition, and what became of its occurrences.
//!
//! Owns: pause, resume, run-now, backfill, fates, edits. Must never: decide. Next: `schedules.rs`.

use super::jobs::{CreatedAnswer, key_header, made, odd_reply};
use super::schedules::{call, full_name, schedule_not_found, shown};
use super::walk::{after_row, key_cursor, no_cursor, read_key_cursor, walk};
use crate::api::body::{JsonBody, NoBody, ok};
use crate::api::dto::new_job::check_header_key;
use crate::api::dto::schedule::{BackfillBody, read_backfill};
use crate::api::dto::schedule_view::{self, BackfillAnswer, EditAnswer, FateAnswer, ScheduleAnswer};
use crate::api::fields::invalid;
use crate::api::handle::Shared;
use crate::api::query::{Params, SchedulePath};
use crate::api::text;
use crate::gateway::{FateQuery, ScheduleRequest};
use crate::problem::Problem;
use axum::extract::State;
use axum::response::Response;
use fencepost_core::fate::{FATE_KINDS, FateKind, FateSpan};
use fencepost_core::ids::{Incarnation, hash64};
use fencepost_core::lease_manager::io::Created;
use fencepost_core::limits::LIST_PAGE_ROWS;
use fencepost_core::name::Name;
use fencepost_core::refusal::Refusal;
use fencepost_core::row::Row;
use fencepost_core::schedule::EditRow;
use fencepost_core::scheduler_shard::io::ScheduleReply;
use fencepost_core::time::StoreTime;
use hyper::{HeaderMap, StatusCode};
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// A page of fates.
#[derive(Debug, Serialize, ToSchema)]
pub struct FateList {
    /// In order of time; stretches neither overlap nor leave holes.
    pub items: Vec<FateAnswer>,
    /// Pass it as `cursor` to go on; missing at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What was done to a schedule.
#[derive(Debug, Serialize, ToSchema)]
pub struct EditList {
    /// Oldest first.
    pub items: Vec<EditAnswer>,
    /// Pass it as `cursor` to go on; missing at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

async fn simple(shared: &Shared, name: Name, request: ScheduleRequest) -> Result<Response, Problem> {
    match call(shared, name, request).await? {
        ScheduleReply::Schedule(view) => Ok(shown(StatusCode::OK, &view)),
        ScheduleReply::Deleted
        | ScheduleReply::Ran { .. }
        | ScheduleReply::Backfill { .. }
        | ScheduleReply::EditPreview { .. } => Err(odd_reply()),
    }
}

/// Pauses a schedule: nothing fires until it is resumed.
#[utoipa::path(post, path = "/v1/schedules/{name}/pause", tag = "schedules", params(("name" = String, Path, description = "Its name.")),
    responses((status = 200, description = "The schedule as it is now.", body = ScheduleAnswer), (status = "default", description = "A problem.", body = Problem)))]
pub async fn pause(
    State(shared): State<Arc<Shared>>,
    SchedulePath(name): SchedulePath,
    params: Params,
    NoBody: NoBody,
) -> Result<Response, Problem> {
    params.end()?;
    simple(&shared, name, ScheduleRequest::Pause).await
}

/// Resumes a schedule; what fell in the pause has fate `paused`.
#[utoipa::path(post, path = "/v1/schedules/{name}/resume", tag = "schedules", params(("name" = String, Path, description = "Its name.")),
    responses((status = 200, description = "The schedule as it is now.", body = ScheduleAnswer), (status = "default", description = "A problem.", body = Problem)))]
pub async fn resume(
    State(shared): State<Arc<Shared>>,
    SchedulePath(name): SchedulePath,
    params: Params,
    NoBody: NoBody,
) -> Result<Response, Problem> {
    params.end()?;
    simple(&shared, name, ScheduleRequest::Resume).await
}

/// The number that makes a request safe to repeat: from its key, or fresh. Zero means "none" elsewhere.
fn request_number(shared: &Shared, headers: &HeaderMap) -> Result<u64, Refusal> {
    let number = match key_header(headers)? {
        Some(key) => {
            check_header_key(key)?;
            hash64("schedule request", &[key.as_bytes()])
        }
        None => shared.gateway.draw() as u64,
    };
    Ok(number.max(1))
}

/// Fires a schedule once now, without moving its rule.
#[utoipa::path(post, path = "/v1/schedules/{name}/run-now", tag = "schedules",
    params(("name" = String, Path, description = "Its name."), ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat.")),
    responses((status = 201, description = "The job that it made.", body = CreatedAnswer), (status = 200, description = "The key had made it before.", body = CreatedAnswer),
        (status = 422, description = "The key was used for another request about this schedule.", body = Problem), (status = "default", description = "A problem.", body = Problem)))]
pub async fn run_now(
    State(shared): State<Arc<Shared>>,
    SchedulePath(name): SchedulePath,
    headers: HeaderMap,
    params: Params,
    NoBody: NoBody,
) -> Result<Response, Problem> {
    params.end()?;
    let request = request_number(&shared, &headers)?;
    match call(&shared, name, ScheduleRequest::RunNow { request }).await? {
        ScheduleReply::Ran { job, replayed } => Ok(made(&Created { id: job, replayed })),
        ScheduleReply::Schedule(_)
        | ScheduleReply::Deleted
        | ScheduleReply::Backfill { .. }
        | ScheduleReply::EditPreview { .. } => Err(odd_reply()),
    }
}

/// Makes up a past range, at the bounded rate of a backlog.
#[utoipa::path(post, path = "/v1/schedules/{name}/backfill", tag = "schedules", request_body = BackfillBody,
    params(("name" = String, Path, description = "Its name."), ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat.")),
    responses((status = 200, description = "What it makes, or would make, or what the key had made before.", body = BackfillAnswer),
        (status = 422, description = "The key was used for another request about this schedule.", body = Problem), (status = "default", description = "A problem.", body = Problem)))]
pub async fn backfill(
    State(shared): State<Arc<Shared>>,
    SchedulePath(name): SchedulePath,
    headers: HeaderMap,
    params: Params,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    params.end()?;
    let asked = read_backfill(body)?;
    let request = ScheduleRequest::Backfill {
        from: asked.from,
        to: asked.to,
        cap: asked.cap,
        rerun: asked.rerun,
        request: request_number(&shared, &headers)?,
        dry_run: asked.dry_run,
    };
    let known = shared.gateway.schedule(full_name(name.clone())).await.ok().flatten();
    let history_at = known.map(|facts| facts.view.cursor.history_at);
    let begins_at = history_at.filter(|begin| asked.from < *begin);
    match call(&shared, name, request).await? {
        ScheduleReply::Backfill {
            count,
            instants,
            already_fired,
            over_cap,
        } => Ok(ok(&BackfillAnswer {
            dry_run: asked.dry_run,
            count,
            nominal_at: instants.into_iter().map(text::instant).collect(),
            already_fired,
            over_cap,
            begins_at: begins_at.map(text::instant),
        })),
        ScheduleReply::Schedule(_)
        | ScheduleReply::Deleted
        | ScheduleReply::Ran { .. }
        | ScheduleReply::EditPreview { .. } => Err(odd_reply()),
    }
}

fn read_life(params: &mut Params) -> Result<Option<Incarnation>, Refusal> {
    let Some(value) = params.text("incarnation")? else {
        return Ok(None);
    };
    let refusal = || {
        let hint = "Pass incarnation as the schedule or a job shows it.";
        invalid("incarnation_invalid", "This is no incarnation.", hint).at("incarnation")
    };
    text::parse_incarnation(&value).map(Some).ok_or_else(refusal)
}

/// What became of occurrences, as stretches of nominal time.
#[utoipa::path(get, path = "/v1/schedules/{name}/fates", tag = "schedules",
    params(("name" = String, Path, description = "Its name."), ("incarnation" = Option<String>, Query, description = "Another life of the name."),
        ("from" = Option<String>, Query, description = "Stretches that end after this instant."), ("to" = Option<String>, Query, description = "Stretches that begin before this instant."),
        ("fate" = Option<String>, Query, description = "Some fates, with commas between them."),
        ("cursor" = Option<String>, Query, description = "`next` of the page before."), ("limit" = Option<u32>, Query, description = "1 to 1,000; 100.")),
    responses((status = 200, description = "A page.", body = FateList), (status = "default", description = "A problem.", body = Problem)))]
pub async fn list_fates(
    State(shared): State<Arc<Shared>>,
    SchedulePath(name): SchedulePath,
    mut params: Params,
) -> Result<Response, Problem> {
    let incarnation = read_life(&mut params)?;
    let query = FateQuery {
        name: full_name(name.clone()),
        incarnation,
        from: params.instant("from")?,
        to: params.instant("to")?,
        after: None,
        limit: LIST_PAGE_ROWS,
    };
    let kinds = FATE_KINDS.map(|kind| (kind.as_str(), kind));
    let kinds: Vec<FateKind> = params.words("fate", &kinds)?;
    let after = params.text("cursor")?.map(|cursor| read_cursor(&cursor)).transpose()?;
    let limit = params.limit()?;
    params.end()?;
    if incarnation.is_none() && shared.gateway.schedule(full_name(name.clone())).await?.is_none() {
        return Err(schedule_not_found(&name).into());
    }
    let page = |after| {
        let query = query.clone();
        shared.gateway.fates(FateQuery { after, ..query })
    };
    let takes = |span: &FateSpan| kinds.is_empty() || kinds.contains(&span.kind);
    let show = |span: &FateSpan| takes(span).then(|| schedule_view::fate(span));
    let (items, next) = walk(limit, after, page, show, |span| (span.to, span.from)).await?;
    Ok(ok(&FateList {
        items,
        next: next.map(|(end, start)| format!("{}.{}", end.0, start.0)),
    }))
}

fn read_cursor(text: &str) -> Result<(StoreTime, StoreTime), Refusal> {
    let read = || {
        let (end, start) = text.split_once('.')?;
        Some((StoreTime(end.parse().ok()?), StoreTime(start.parse().ok()?)))
    };
    read().ok_or_else(no_cursor)
}

/// What was done to a schedule, in all lives of its name unless one is named.
#[utoipa::path(get, path = "/v1/schedules/{name}/edits", tag = "schedules",
    params(("name" = String, Path, description = "Its name."), ("incarnation" = Option<String>, Query, description = "One life of the name."),
        ("cursor" = Option<String>, Query, description = "`next` of the page before."), ("limit" = Option<u32>, Query, description = "1 to 1,000; 100.")),
    responses((status = 200, description = "The records.", body = EditList), (status = "default", description = "A problem.", body = Problem)))]
pub async fn list_edits(
    State(shared): State<Arc<Shared>>,
    SchedulePath(name): SchedulePath,
    mut params: Params,
) -> Result<Response, Problem> {
    let incarnation = read_life(&mut params)?;
    let from = params
        .text("cursor")?
        .map(|cursor| read_key_cursor(&cursor))
        .transpose()?;
    let limit = params.limit()?;
    params.end()?;
    let full = full_name(name.clone());
    let is_first = from.is_none();
    let page = |from| shared.gateway.edits(full.clone(), incarnation, from, LIST_PAGE_ROWS);
    let show = |row: &EditRow| Some(schedule_view::edit(row));
    let key = |row: &EditRow| after_row(&Row::Edit(Box::new(row.clone())).key());
    let (items, next) = walk(limit, from, page, show, key).await?;
    // A deleted schedule is known by its records; one with neither never was, or is forgotten.
    if is_first && items.is_empty() && shared.gateway.schedule(full).await?.is_none() {
        return Err(schedule_not_found(&name).into());
    }
    Ok(ok(&EditList {
        items,
        next: next.map(|key| key_cursor(&key)),
    }))
}
