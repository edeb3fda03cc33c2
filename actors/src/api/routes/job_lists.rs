//! Lists of jobs and what one job left behind. Lists walk by id; filters judge the row that was read
//! (PROTOCOL F35), so a job that changes state meanwhile is never skipped for its place.
//!
//! Owns: filters and cursors. Must never: promise a total. Next: `walk.rs`, `gateway.rs`.

use super::jobs::job_not_found;
use super::schedules::{full_name, schedule_not_found};
use super::walk::{Walked, no_cursor, walk};
use crate::api::body::ok;
use crate::api::dto::job_view::{self, AttemptAnswer, JobAnswer, LogAnswer, RESULTS, STATES, shown_state};
use crate::api::handle::Shared;
use crate::api::query::{JobPath, Params};
use crate::gateway::{Answer, JobRange, JobView, Page};
use crate::problem::Problem;
use axum::extract::State;
use axum::response::Response;
use fencepost_core::ids::{JobId, Slot};
use fencepost_core::job::{AttemptRecord, AttemptResult, JobState, Origin};
use fencepost_core::limits::{LIST_PAGE_ROWS, PAGE_ITEMS_MAX};
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
    /// Oldest first.
    pub items: Vec<AttemptAnswer>,
    /// Pass it as `cursor` to go on; missing at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Output of attempts.
#[derive(Debug, Serialize, ToSchema)]
pub struct LogList {
    /// Oldest first.
    pub items: Vec<LogAnswer>,
    /// Pass it as `cursor` to go on; missing at the end. A page holds at most 64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

#[derive(Debug, Default)]
struct Filter {
    states: Vec<JobState>,
    queue: Option<Name>,
    tag: Option<Name>,
    schedule: Option<Name>,
}

impl Filter {
    /// What every list of jobs can be filtered by.
    fn read(params: &mut Params) -> Result<Filter, Refusal> {
        Ok(Filter {
            states: Vec::new(),
            queue: params.name("queue")?,
            tag: params.name("tag")?,
            schedule: params.name("schedule")?,
        })
    }

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
        ..Filter::read(&mut params)?
    };
    let range = match &filter.schedule {
        Some(name) => {
            let (tenant, name) = full_name(name.clone());
            JobRange::Slot(Slot::of_schedule(&tenant, &name))
        }
        None => JobRange::All,
    };
    list(&shared, range, &filter, params).await
}

/// Jobs given up, by id.
#[utoipa::path(get, path = "/v1/dead", tag = "jobs",
    params(("cursor" = Option<String>, Query, description = "`next` of the page before."), ("limit" = Option<u32>, Query, description = "1 to 1,000; 100."),
        ("queue" = Option<String>, Query, description = "Of this queue."), ("tag" = Option<String>, Query, description = "With this tag."),
        ("schedule" = Option<String>, Query, description = "Made by this schedule.")),
    responses((status = 200, description = "A page.", body = JobList), (status = "default", description = "A problem.", body = Problem)))]
pub async fn list_dead(State(shared): State<Arc<Shared>>, mut params: Params) -> Result<Response, Problem> {
    let filter = Filter::read(&mut params)?;
    list(&shared, JobRange::Dead, &filter, params).await
}

/// Jobs parked as uncertain, by id.
#[utoipa::path(get, path = "/v1/uncertain", tag = "jobs",
    params(("cursor" = Option<String>, Query, description = "`next` of the page before."), ("limit" = Option<u32>, Query, description = "1 to 1,000; 100."),
        ("queue" = Option<String>, Query, description = "Of this queue."), ("tag" = Option<String>, Query, description = "With this tag."),
        ("schedule" = Option<String>, Query, description = "Made by this schedule.")),
    responses((status = 200, description = "A page.", body = JobList), (status = "default", description = "A problem.", body = Problem)))]
pub async fn list_uncertain(State(shared): State<Arc<Shared>>, mut params: Params) -> Result<Response, Problem> {
    let filter = Filter::read(&mut params)?;
    list(&shared, JobRange::Uncertain, &filter, params).await
}

async fn list(shared: &Shared, range: JobRange, filter: &Filter, mut params: Params) -> Result<Response, Problem> {
    let limit = params.limit()?;
    let cursor = params.text("cursor")?;
    params.end()?;
    let after = cursor
        .map(|text| JobId::parse(&text).ok_or_else(no_cursor))
        .transpose()?;
    let is_first = after.is_none();
    let (items, next) = walk(
        limit,
        after,
        |after| shared.gateway.jobs(range, after, LIST_PAGE_ROWS),
        |view| filter.takes(view).then(|| JobAnswer::listed(view)),
        |view| view.job.id,
    )
    .await?;
    if let Some(name) = filter
        .schedule
        .as_ref()
        .filter(|_| is_first && items.is_empty() && next.is_none())
    {
        refuse_unknown(shared, name).await?;
    }
    Ok(ok(&JobList {
        items,
        next: next.map(|id| id.to_string()),
    }))
}

/// An empty list of a name that is none is a mistake in the name. Jobs of a deleted schedule are listed.
async fn refuse_unknown(shared: &Shared, name: &Name) -> Result<(), Refusal> {
    match shared.gateway.schedule(full_name(name.clone())).await {
        Ok(Some(_)) | Err(_) => Ok(()),
        Ok(None) => Err(Refusal {
            detail: format!("There is no schedule '{name}', and no such job of one that was deleted."),
            ..schedule_not_found(name)
        }
        .at("schedule")),
    }
}

/// Attempts of a job that ended.
#[utoipa::path(get, path = "/v1/jobs/{id}/attempts", tag = "jobs",
    params(("id" = String, Path, description = "Its id."),
        ("cursor" = Option<String>, Query, description = "`next` of the page before."), ("limit" = Option<u32>, Query, description = "1 to 1,000; 100."),
        ("result" = Option<String>, Query, description = "Some of succeeded, failed, timed_out, worker_lost, handed_back, cancelled; with commas.")),
    responses((status = 200, description = "A page.", body = AttemptList), (status = "default", description = "A problem.", body = Problem)))]
pub async fn list_attempts(
    State(shared): State<Arc<Shared>>,
    JobPath(id): JobPath,
    params: Params,
) -> Result<Response, Problem> {
    let (items, next) = walk_attempts(&shared, id, params, PAGE_ITEMS_MAX, job_view::attempt).await?;
    Ok(ok(&AttemptList {
        items,
        next: next.map(|no| no.to_string()),
    }))
}

/// The kept tail of each attempt's output.
#[utoipa::path(get, path = "/v1/jobs/{id}/logs", tag = "jobs",
    params(("id" = String, Path, description = "Its id."),
        ("cursor" = Option<String>, Query, description = "`next` of the page before."), ("limit" = Option<u32>, Query, description = "1 to 1,000; 100."),
        ("result" = Option<String>, Query, description = "Some of succeeded, failed, timed_out, worker_lost, handed_back, cancelled; with commas.")),
    responses((status = 200, description = "A page.", body = LogList), (status = "default", description = "A problem.", body = Problem)))]
pub async fn list_logs(
    State(shared): State<Arc<Shared>>,
    JobPath(id): JobPath,
    params: Params,
) -> Result<Response, Problem> {
    let (items, next) = walk_attempts(&shared, id, params, LIST_PAGE_ROWS, job_view::log).await?;
    Ok(ok(&LogList {
        items,
        next: next.map(|no| no.to_string()),
    }))
}

async fn walk_attempts<A>(
    shared: &Shared,
    id: JobId,
    mut params: Params,
    most: usize,
    show: fn(&AttemptRecord) -> A,
) -> Result<Walked<A, u32>, Problem> {
    let results: Vec<AttemptResult> = params.words("result", RESULTS)?;
    let limit = params.limit()?.min(most);
    let cursor = params.text("cursor")?;
    params.end()?;
    let after = cursor
        .map(|text| text.parse::<u32>().map_err(|_| no_cursor()))
        .transpose()?;
    if shared.gateway.job(id).await?.is_none() {
        return Err(job_not_found(id).into());
    }
    let page = |after: Option<u32>| -> Answer<Page<AttemptRecord, u32>> {
        let page = shared.gateway.attempts(id, after.unwrap_or(0), LIST_PAGE_ROWS);
        Box::pin(async move { page.await?.ok_or_else(|| job_not_found(id)) })
    };
    let takes = |record: &AttemptRecord| results.is_empty() || results.contains(&record.result);
    let walked = walk(
        limit,
        after,
        page,
        |record| takes(record).then(|| show(record)),
        |record| record.no,
    );
    Ok(walked.await?)
}
