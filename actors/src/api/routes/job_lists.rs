//! Lists of jobs and what one job left behind. Lists walk by id; filters judge the row that was read
//! (PROTOCOL F35), so a job that changes state meanwhile is never skipped for its place.
//!
//! Owns: filters, cursors and the bound of work per request. Must never: promise a total. Next:
//! `gateway.rs`.

use super::jobs::job_not_found;
use crate::api::body::ok;
use crate::api::dto::job_view::{self, AttemptAnswer, JobAnswer, LogAnswer, STATES, shown_state};
use crate::api::fields::invalid;
use crate::api::handle::Shared;
use crate::api::query::{JobPath, Params};
use crate::gateway::{JobRange, JobView};
use crate::problem::Problem;
use axum::extract::State;
use axum::response::Response;
use fencepost_core::ids::{JobId, Slot};
use fencepost_core::job::{JobState, Origin};
use fencepost_core::limits::{LIST_PAGE_ROWS, LIST_SCAN_ROWS_MAX};
use fencepost_core::name::Name;
use fencepost_core::refusal::Refusal;
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// A page of jobs.
#[derive(Debug, Serialize, ToSchema)]
pub struct JobList {
    /// Ordered by id; without payloads.
    pub items: Vec<JobAnswer>,
    /// Pass it as `cursor` to go on; missing at the end. A page may hold fewer than `limit` and still go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Attempts that ended.
#[derive(Debug, Serialize, ToSchema)]
pub struct AttemptList {
    /// The newest 16, oldest first.
    pub items: Vec<AttemptAnswer>,
}

/// Output of attempts.
#[derive(Debug, Serialize, ToSchema)]
pub struct LogList {
    /// The newest 16, oldest first.
    pub items: Vec<LogAnswer>,
}

#[derive(Debug, Default)]
struct Filter {
    states: Vec<JobState>,
    queue: Option<Name>,
    tag: Option<Name>,
    schedule: Option<Name>,
}

impl Filter {
    fn takes(&self, view: &JobView) -> bool {
        let spec = &view.job.spec;
        (self.states.is_empty() || self.states.contains(&shown_state(view)))
            && self.queue.as_ref().is_none_or(|queue| spec.queue == *queue)
            && self.tag.as_ref().is_none_or(|tag| spec.tags.contains(tag))
            && self
                .schedule
                .as_ref()
                .is_none_or(|name| made_by(&view.job.origin, name))
    }
}

fn made_by(origin: &Origin, name: &Name) -> bool {
    matches!(origin, Origin::Occurrence { schedule, .. } if schedule == name)
}

/// Jobs, by id.
#[utoipa::path(get, path = "/v1/jobs", tag = "jobs",
    params(("cursor" = Option<String>, Query, description = "`next` of the page before."), ("limit" = Option<u32>, Query, description = "1 to 1,000; 100."),
        ("state" = Option<String>, Query, description = "Some of waiting, ready, running, uncertain, succeeded, cancelled, dead, expired; with commas."),
        ("queue" = Option<String>, Query, description = "Of this queue."), ("tag" = Option<String>, Query, description = "With this tag."),
        ("schedule" = Option<String>, Query, description = "Made by this schedule.")),
    responses((status = 200, description = "A page.", body = JobList), (status = "default", description = "A problem.", body = Problem)))]
pub async fn list_jobs(State(shared): State<Arc<Shared>>, mut params: Params) -> Result<Response, Problem> {
    let filter = Filter {
        states: params.words("state", STATES)?,
        queue: params.name("queue")?,
        tag: params.name("tag")?,
        schedule: params.name("schedule")?,
    };
    let range = match &filter.schedule {
        Some(name) => JobRange::Slot(Slot::of_schedule(&crate::api::dto::job::fixed_name("default"), name)),
        None => JobRange::All,
    };
    list(&shared, range, &filter, params).await
}

/// Jobs given up, by id.
#[utoipa::path(get, path = "/v1/dead", tag = "jobs",
    params(("cursor" = Option<String>, Query, description = "`next` of the page before."), ("limit" = Option<u32>, Query, description = "1 to 1,000; 100."),
        ("queue" = Option<String>, Query, description = "Of this queue.")),
    responses((status = 200, description = "A page.", body = JobList), (status = "default", description = "A problem.", body = Problem)))]
pub async fn list_dead(State(shared): State<Arc<Shared>>, mut params: Params) -> Result<Response, Problem> {
    let filter = Filter {
        queue: params.name("queue")?,
        ..Filter::default()
    };
    list(&shared, JobRange::Dead, &filter, params).await
}

/// Jobs parked as uncertain, by id.
#[utoipa::path(get, path = "/v1/uncertain", tag = "jobs",
    params(("cursor" = Option<String>, Query, description = "`next` of the page before."), ("limit" = Option<u32>, Query, description = "1 to 1,000; 100."),
        ("queue" = Option<String>, Query, description = "Of this queue.")),
    responses((status = 200, description = "A page.", body = JobList), (status = "default", description = "A problem.", body = Problem)))]
pub async fn list_uncertain(State(shared): State<Arc<Shared>>, mut params: Params) -> Result<Response, Problem> {
    let filter = Filter {
        queue: params.name("queue")?,
        ..Filter::default()
    };
    list(&shared, JobRange::Uncertain, &filter, params).await
}

async fn list(shared: &Shared, range: JobRange, filter: &Filter, mut params: Params) -> Result<Response, Problem> {
    let limit = params.limit()?;
    let cursor = params.text("cursor")?;
    params.end()?;
    let mut after = cursor.as_deref().map(read_cursor).transpose()?;
    let mut items = Vec::new();
    let mut read = 0;
    let next = loop {
        let page = shared.gateway.jobs(range, after, LIST_PAGE_ROWS).await?;
        read += page.items.len().max(1);
        let mut full_at = None;
        for view in &page.items {
            if filter.takes(view) {
                items.push(JobAnswer::listed(view));
            }
            if items.len() == limit {
                full_at = Some(view.job.id);
                break;
            }
        }
        let last = page.items.last().map(|view| view.job.id);
        match (full_at, page.next) {
            (Some(id), None) if last == Some(id) => break None,
            (Some(id), _) => break Some(id),
            (None, None) => break None,
            (None, Some(id)) if read >= LIST_SCAN_ROWS_MAX => break Some(id),
            (None, Some(id)) => after = Some(id),
        }
    };
    Ok(ok(&JobList {
        items,
        next: next.map(|id| id.to_string()),
    }))
}

fn read_cursor(text: &str) -> Result<JobId, Refusal> {
    JobId::parse(text).ok_or_else(|| {
        let detail = "This is no cursor of this list.";
        invalid(
            "cursor_invalid",
            detail,
            "Pass next of the page before, or leave it out.",
        )
        .at("cursor")
    })
}

/// The newest attempts of a job that ended.
#[utoipa::path(get, path = "/v1/jobs/{id}/attempts", tag = "jobs", params(("id" = String, Path, description = "Its id.")),
    responses((status = 200, description = "The attempts.", body = AttemptList), (status = "default", description = "A problem.", body = Problem)))]
pub async fn list_attempts(
    State(shared): State<Arc<Shared>>,
    JobPath(id): JobPath,
    params: Params,
) -> Result<Response, Problem> {
    params.end()?;
    let view = shared.gateway.job(id).await?.ok_or_else(|| job_not_found(id))?;
    Ok(ok(&AttemptList {
        items: job_view::attempts(&view.job),
    }))
}

/// The kept tail of each attempt's output.
#[utoipa::path(get, path = "/v1/jobs/{id}/logs", tag = "jobs", params(("id" = String, Path, description = "Its id.")),
    responses((status = 200, description = "The output.", body = LogList), (status = "default", description = "A problem.", body = Problem)))]
pub async fn list_logs(
    State(shared): State<Arc<Shared>>,
    JobPath(id): JobPath,
    params: Params,
) -> Result<Response, Problem> {
    params.end()?;
    let view = shared.gateway.job(id).await?.ok_or_else(|| job_not_found(id))?;
    Ok(ok(&LogList {
        items: job_view::logs(&view.job),
    }))
}
