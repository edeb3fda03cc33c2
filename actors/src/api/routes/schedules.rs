//! Schedules: making, reading, editing, deleting.
//!
//! Owns: the way from a request to the schedule's shard and back; If-Match. Must never: decide when
//! something fires. Next: `schedule_actions.rs`, `dto/schedule.rs`.

use super::jobs::odd_reply;
use super::walk::walk;
use crate::api::body::{JsonBody, NoBody, answer, ok, with_header};
use crate::api::dto::job::fixed_name;
use crate::api::dto::kept_secrets::{holds_mask, put_back};
use crate::api::dto::schedule::{NewScheduleBody, PENDINGS, ScheduleBody, read_edit, read_new_schedule};
use crate::api::dto::schedule_view::{EditPreviewAnswer, ScheduleAnswer, pending_word, status};
use crate::api::fields::invalid;
use crate::api::handle::Shared;
use crate::api::json::Json;
use crate::api::query::{Params, SchedulePath};
use crate::api::text;
use crate::gateway::{ScheduleRequest, ShardReply, ShardRequest};
use crate::problem::Problem;
use axum::extract::State;
use axum::response::Response;
use fencepost_core::ids::Slot;
use fencepost_core::limits::LIST_PAGE_ROWS;
use fencepost_core::name::Name;
use fencepost_core::refusal::{Refusal, RefusalKind};
use fencepost_core::schedule::PendingFate;
use fencepost_core::scheduler_shard::io::{ScheduleReply, ScheduleView, Seen};
use fencepost_core::target::Target;
use hyper::{HeaderMap, StatusCode};
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// A page of schedules.
#[derive(Debug, Serialize, ToSchema)]
pub struct ScheduleList {
    /// In an order that stays the same.
    pub items: Vec<ScheduleAnswer>,
    /// Pass it as `cursor` to go on; missing at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A schedule was deleted.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeletedAnswer {
    /// Its name.
    pub name: String,
    /// Always true.
    pub deleted: bool,
    /// What becomes of jobs that it had made.
    #[schema(value_type = String)]
    pub jobs: &'static str,
}

/// The name with its tenant.
pub fn full_name(name: Name) -> (Name, Name) {
    (fixed_name("default"), name)
}

/// Sends a request to the owner of a schedule.
///
/// # Errors
/// As the owner refuses it.
pub async fn call(shared: &Shared, name: Name, request: ScheduleRequest) -> Result<ScheduleReply, Problem> {
    let name = full_name(name);
    let shard = shared.gateway.shard_map().shard_of(Slot::of_schedule(&name.0, &name.1));
    let reply = shared.call(shard, ShardRequest::Schedule(name, request)).await?;
    match reply {
        ShardReply::Schedule(reply) => Ok(reply),
        ShardReply::Created(_) | ShardReply::Cancel(_) | ShardReply::Job(_) => Err(odd_reply()),
    }
}

/// What a name that nobody knows is answered with.
pub fn schedule_not_found(name: &Name) -> Refusal {
    let detail = format!("There is no schedule '{name}'.");
    Refusal::new(
        RefusalKind::NotFound,
        "schedule_not_found",
        detail,
        "List the schedules to see their names.",
    )
    .at("name")
}

/// A schedule with its ETag.
pub fn shown(status: StatusCode, view: &ScheduleView) -> Response {
    let body = ScheduleAnswer::of_view(view);
    with_header(answer(status, &body), "etag", &etag(view))
}

/// Each life of a name counts its versions from one, so both say which definition it is.
fn etag(view: &ScheduleView) -> String {
    let definition = &view.definition;
    format!(
        "\"{}-{}\"",
        definition.version,
        text::incarnation(definition.incarnation)
    )
}

/// Makes a schedule.
#[utoipa::path(post, path = "/v1/schedules", tag = "schedules", request_body = NewScheduleBody,
    responses((status = 201, description = "Made; durable.", body = ScheduleAnswer), (status = 409, description = "The name is taken.", body = Problem),
        (status = "default", description = "A problem.", body = Problem)))]
pub async fn create_schedule(
    State(shared): State<Arc<Shared>>,
    params: Params,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    params.end()?;
    let new = read_new_schedule(body, shared.gateway.now(), &shared.targets)?;
    let location = format!("/v1/schedules/{}", new.name);
    let request = ScheduleRequest::Create {
        spec: Box::new(new.spec),
        paused: new.paused,
    };
    match call(&shared, new.name, request).await? {
        ScheduleReply::Schedule(view) => Ok(with_header(shown(StatusCode::CREATED, &view), "location", &location)),
        ScheduleReply::Deleted
        | ScheduleReply::Ran { .. }
        | ScheduleReply::Backfill { .. }
        | ScheduleReply::EditPreview { .. } => Err(odd_reply()),
    }
}

/// What a list of schedules can be filtered by.
struct Filter {
    statuses: Vec<&'static str>,
    targets: Vec<&'static str>,
    queue: Option<Name>,
    tag: Option<Name>,
    prefix: Option<Name>,
}

impl Filter {
    fn takes(&self, view: &ScheduleView) -> bool {
        let (name, job) = (&view.definition.name, &view.definition.spec.job);
        let target = match job.target {
            Target::Http(_) => "http",
            Target::Command(_) => "command",
            Target::Handler(_) => "handler",
            Target::Remote(_) => "remote",
        };
        (self.statuses.is_empty() || self.statuses.contains(&status(view)))
            && (self.targets.is_empty() || self.targets.contains(&target))
            && self.queue.as_ref().is_none_or(|queue| job.queue == *queue)
            && self.tag.as_ref().is_none_or(|tag| job.tags.contains(tag))
            && self
                .prefix
                .as_ref()
                .is_none_or(|prefix| name.as_str().starts_with(prefix.as_str()))
    }
}

const STATUSES: &[(&str, &str)] = &[
    ("active", "active"),
    ("paused", "paused"),
    ("finished", "finished"),
    ("quarantined", "quarantined"),
];
const TARGETS: &[(&str, &str)] = &[
    ("http", "http"),
    ("command", "command"),
    ("handler", "handler"),
    ("remote", "remote"),
];

/// Schedules, in an order that stays the same.
#[utoipa::path(get, path = "/v1/schedules", tag = "schedules",
    params(("cursor" = Option<String>, Query, description = "`next` of the page before."), ("limit" = Option<u32>, Query, description = "1 to 1,000; 100."),
        ("status" = Option<String>, Query, description = "Some of active, paused, finished, quarantined; with commas."),
        ("target" = Option<String>, Query, description = "Some of http, command, handler, remote; with commas."),
        ("queue" = Option<String>, Query, description = "Whose jobs wait in this queue."), ("tag" = Option<String>, Query, description = "Whose jobs have this tag."),
        ("prefix" = Option<String>, Query, description = "Whose name begins so.")),
    responses((status = 200, description = "A page.", body = ScheduleList), (status = "default", description = "A problem.", body = Problem)))]
pub async fn list_schedules(State(shared): State<Arc<Shared>>, mut params: Params) -> Result<Response, Problem> {
    let filter = Filter {
        statuses: params.words("status", STATUSES)?,
        targets: params.words("target", TARGETS)?,
        queue: params.name("queue")?,
        tag: params.name("tag")?,
        prefix: params.name("prefix")?,
    };
    let limit = params.limit()?;
    let after = params.name("cursor")?.map(full_name);
    params.end()?;
    let (items, next) = walk(
        limit,
        after,
        |after| shared.gateway.schedules(after, LIST_PAGE_ROWS),
        |facts| filter.takes(&facts.view).then(|| ScheduleAnswer::of(facts)),
        |facts| full_name(facts.view.definition.name.clone()),
    )
    .await?;
    Ok(ok(&ScheduleList {
        items,
        next: next.map(|(_, name)| name.to_string()),
    }))
}

/// Reads one schedule; the ETag names its definition: its version, and which life of the name.
#[utoipa::path(get, path = "/v1/schedules/{name}", tag = "schedules", params(("name" = String, Path, description = "Its name.")),
    responses((status = 200, description = "The schedule.", body = ScheduleAnswer), (status = "default", description = "A problem.", body = Problem)))]
pub async fn get_schedule(
    State(shared): State<Arc<Shared>>,
    SchedulePath(name): SchedulePath,
    params: Params,
) -> Result<Response, Problem> {
    params.end()?;
    let found = shared.gateway.schedule(full_name(name.clone())).await?;
    let facts = found.ok_or_else(|| schedule_not_found(&name))?;
    Ok(with_header(ok(&ScheduleAnswer::of(&facts)), "etag", &etag(&facts.view)))
}

/// Replaces a schedule's definition, from now on.
#[utoipa::path(put, path = "/v1/schedules/{name}", tag = "schedules", request_body = ScheduleBody,
    params(("name" = String, Path, description = "Its name."), ("If-Match" = String, Header, description = "The ETag that was read, or *."),
        ("pending" = Option<String>, Query, description = "The planned fire: keep, retime (default) or drop."),
        ("dry_run" = Option<bool>, Query, description = "Only show what would change: an EditPreviewAnswer.")),
    responses((status = 200, description = "The schedule as it is now.", body = ScheduleAnswer), (status = 412, description = "It has changed since.", body = Problem),
        (status = "default", description = "A problem.", body = Problem)))]
pub async fn edit_schedule(
    State(shared): State<Arc<Shared>>,
    SchedulePath(name): SchedulePath,
    mut params: Params,
    headers: HeaderMap,
    JsonBody(mut body): JsonBody,
) -> Result<Response, Problem> {
    let pending = params.word("pending", PENDINGS)?.unwrap_or(PendingFate::Retime);
    let dry_run = params.flag("dry_run")?;
    params.end()?;
    let if_match = read_if_match(&headers)?;
    let if_match = put_secrets_back(&shared, &name, &mut body, if_match).await?;
    let spec = read_edit(body, &name, shared.gateway.now(), &shared.targets)?;
    let request = ScheduleRequest::Edit {
        if_match,
        spec: Box::new(spec),
        pending,
        dry_run,
    };
    match call(&shared, name, request).await? {
        ScheduleReply::Schedule(view) => Ok(shown(StatusCode::OK, &view)),
        ScheduleReply::EditPreview { before, after, pending } => Ok(ok(&EditPreviewAnswer {
            dry_run: true,
            before: before.into_iter().map(text::instant).collect(),
            after: after.into_iter().map(text::instant).collect(),
            pending_at: pending.map(|(at, _)| text::instant(at)),
            pending: pending.map(|(_, fate)| pending_word(fate)),
        })),
        ScheduleReply::Deleted | ScheduleReply::Ran { .. } | ScheduleReply::Backfill { .. } => Err(odd_reply()),
    }
}

/// Masks stand for the secrets of the version that is there: the edit then replaces that version or none.
async fn put_secrets_back(
    shared: &Shared,
    name: &Name,
    body: &mut Json,
    if_match: Option<Seen>,
) -> Result<Option<Seen>, Problem> {
    if !holds_mask(body) {
        return Ok(if_match);
    }
    let found = shared.gateway.schedule(full_name(name.clone())).await?;
    let facts = found.ok_or_else(|| schedule_not_found(name))?;
    let definition = &facts.view.definition;
    if let Some(seen) = if_match {
        seen.check(definition.incarnation, definition.version)?;
    }
    match put_back(body, &definition.spec.job) {
        true => Ok(Some(Seen {
            incarnation: Some(definition.incarnation),
            version: definition.version,
        })),
        false => Ok(if_match),
    }
}

/// `*` is any version.
fn read_if_match(headers: &HeaderMap) -> Result<Option<Seen>, Problem> {
    let hint = "Read the schedule and send its whole ETag, with its quotes, as If-Match, or send If-Match: *.";
    let Some(value) = headers.get("if-match") else {
        let detail = "An edit says which version it replaces.";
        let mut problem = Problem::http(428, "if_match_missing", detail, hint);
        problem.field = Some("If-Match".into());
        return Err(problem);
    };
    if value.as_bytes() == b"*" {
        return Ok(None);
    }
    let seen = value.to_str().ok().and_then(|text| {
        let (version, life) = text.strip_prefix('"')?.strip_suffix('"')?.split_once('-')?;
        let version = version.parse().ok()?;
        let incarnation = Some(text::parse_incarnation(life)?);
        Some(Seen { incarnation, version })
    });
    let refusal = || invalid("if_match_invalid", "This is no ETag of a schedule.", hint).at("If-Match");
    seen.map(Some).ok_or_else(|| refusal().into())
}

/// Deletes a schedule. Jobs that it had made already stay and run.
#[utoipa::path(delete, path = "/v1/schedules/{name}", tag = "schedules", params(("name" = String, Path, description = "Its name.")),
    responses((status = 200, description = "Deleted.", body = DeletedAnswer), (status = "default", description = "A problem.", body = Problem)))]
pub async fn delete_schedule(
    State(shared): State<Arc<Shared>>,
    SchedulePath(name): SchedulePath,
    params: Params,
    NoBody: NoBody,
) -> Result<Response, Problem> {
    params.end()?;
    let shown = name.to_string();
    match call(&shared, name, ScheduleRequest::Delete).await? {
        ScheduleReply::Deleted => Ok(ok(&DeletedAnswer {
            name: shown,
            deleted: true,
            jobs: "Jobs that it had made stay and run; cancel them on their own.",
        })),
        ScheduleReply::Schedule(_)
        | ScheduleReply::Ran { .. }
        | ScheduleReply::Backfill { .. }
        | ScheduleReply::EditPreview { .. } => Err(odd_reply()),
    }
}
