//! Every path of the API, in one table that the router and the OpenAPI page are made from.
//!
//! Owns: which paths and methods exist. Must never: hold a handler's work. Next: `jobs.rs`,
//! `job_lists.rs`, `schedules.rs`, `schedule_actions.rs`, `worker.rs`, `node.rs`, `openapi.rs`.

pub mod job_lists;
pub mod jobs;
pub mod node;
pub mod openapi;
pub mod preview;
pub mod schedule_actions;
pub mod schedules;
pub mod upgrade;
pub mod walk;
pub mod worker;

use super::handle::{Route, Shared};
use super::query::{empty_id, empty_name};
use crate::problem::Problem;
use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use fencepost_core::refusal::Refusal;
use hyper::Uri;
use std::sync::Arc;

/// A path, its methods, its handlers.
type Entry = (&'static str, &'static [&'static str], MethodRouter<Arc<Shared>>);

/// The table. `methods` is what a test compares with the OpenAPI page.
pub fn table() -> Vec<Entry> {
    vec![
        ("/livez", &["get"], get(node::livez)),
        ("/readyz", &["get"], get(node::readyz)),
        ("/metrics", &["get"], get(node::metrics)),
        ("/openapi.json", &["get"], get(openapi::openapi_json)),
        ("/v1/facts", &["get"], get(node::facts)),
        ("/v1/quarantine", &["get"], get(node::quarantine)),
        ("/v1/clock/confirm", &["post"], post(node::confirm_clock)),
        ("/v1/upgrade", &["get"], get(upgrade::upgrade)),
        ("/v1/upgrade/finish", &["post"], post(upgrade::finish_upgrade)),
        (
            "/v1/jobs",
            &["get", "post"],
            get(job_lists::list_jobs).post(jobs::create_job),
        ),
        ("/v1/jobs:batch", &["post"], post(jobs::create_batch)),
        ("/v1/jobs/{id}", &["get"], get(jobs::get_job)),
        ("/v1/jobs/{id}/wait", &["get"], get(jobs::wait_job)),
        ("/v1/jobs/{id}/cancel", &["post"], post(jobs::cancel_job)),
        ("/v1/jobs/{id}/retry", &["post"], post(jobs::retry_job)),
        ("/v1/jobs/{id}/settle", &["post"], post(jobs::settle_job)),
        ("/v1/jobs/{id}/attempts", &["get"], get(job_lists::list_attempts)),
        ("/v1/jobs/{id}/logs", &["get"], get(job_lists::list_logs)),
        ("/v1/dead", &["get"], get(job_lists::list_dead)),
        ("/v1/uncertain", &["get"], get(job_lists::list_uncertain)),
        ("/v1/worker/claim", &["post"], post(worker::claim)),
        ("/v1/worker/heartbeat", &["post"], post(worker::heartbeat)),
        ("/v1/worker/finish", &["post"], post(worker::finish)),
        ("/v1/worker/release", &["post"], post(worker::release)),
        ("/v1/preview", &["post"], post(preview::preview)),
        ("/v1/schedules/{name}/preview", &["get"], get(preview::preview_schedule)),
        (
            "/v1/schedules",
            &["get", "post"],
            get(schedules::list_schedules).post(schedules::create_schedule),
        ),
        (
            "/v1/schedules/{name}",
            &["get", "put", "delete"],
            get(schedules::get_schedule)
                .put(schedules::edit_schedule)
                .delete(schedules::delete_schedule),
        ),
        ("/v1/schedules/{name}/pause", &["post"], post(schedule_actions::pause)),
        ("/v1/schedules/{name}/resume", &["post"], post(schedule_actions::resume)),
        (
            "/v1/schedules/{name}/run-now",
            &["post"],
            post(schedule_actions::run_now),
        ),
        (
            "/v1/schedules/{name}/backfill",
            &["post"],
            post(schedule_actions::backfill),
        ),
        (
            "/v1/schedules/{name}/fates",
            &["get"],
            get(schedule_actions::list_fates),
        ),
        (
            "/v1/schedules/{name}/edits",
            &["get"],
            get(schedule_actions::list_edits),
        ),
    ]
}

/// The router over the table.
pub fn router(shared: Arc<Shared>) -> Router {
    let mut router = Router::new();
    for (path, _, handlers) in table() {
        router = router.route(path, handlers);
    }
    router
        .route_layer(axum::middleware::from_fn(remember_route))
        .fallback(no_such_path)
        .with_state(shared)
}

/// Lets the log and the metrics name the route instead of the path.
async fn remember_route(matched: Option<MatchedPath>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if let Some(matched) = matched {
        response.extensions_mut().insert(Route(matched));
    }
    response
}

async fn no_such_path(uri: Uri) -> Problem {
    if let Some(refusal) = empty_place(uri.path()) {
        return refusal.into();
    }
    let hint = "See /openapi.json for every path.";
    Problem::http(404, "path_not_found", "There is no such path.", hint)
}

/// A path that ends where a name or an id belongs, which the router takes for no path at all.
fn empty_place(path: &str) -> Option<Refusal> {
    let begin = path.strip_suffix('/')?;
    let place = |entry: &Entry| match entry.0.strip_prefix(begin)? {
        "/{name}" => Some(empty_name()),
        "/{id}" => Some(empty_id()),
        _ => None,
    };
    table().iter().find_map(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_place_in_a_path_is_named() {
        for (path, field) in [
            ("/v1/schedules/", Some("name")),
            ("/v1/jobs/", Some("id")),
            ("/v1/jobs//", None),
            ("/v1/", None),
            ("/", None),
            ("", None),
        ] {
            let found = empty_place(path).and_then(|refusal| refusal.field);
            assert_eq!(found.as_deref(), field, "{path}");
        }
    }
}
