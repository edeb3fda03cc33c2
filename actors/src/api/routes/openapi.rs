//! The OpenAPI 3.1 page, made from the same handlers that answer.
//!
//! Owns: what is listed and how a token is described. Must never: list a path that the router does not have
//! (a test compares both ways). Next: `mod.rs` for the table.

use super::{job_lists, jobs, node, preview, schedule_actions, schedules, upgrade, worker};
use crate::api::body::ok;
use axum::response::Response;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};

/// The page.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Fencepost",
        description = "Schedules, jobs, attempts and fates. Every call but /livez and /readyz needs the bearer token. Problems are RFC 9457 documents with a stable code."
    ),
    security(("token" = [])),
    modifiers(&Token),
    paths(
        node::livez,
        node::readyz,
        node::metrics,
        node::facts,
        node::quarantine,
        node::confirm_clock,
        upgrade::upgrade,
        upgrade::finish_upgrade,
        openapi_json,
        jobs::create_job,
        jobs::create_batch,
        jobs::get_job,
        jobs::wait_job,
        jobs::cancel_job,
        jobs::retry_job,
        jobs::settle_job,
        job_lists::list_jobs,
        job_lists::list_dead,
        job_lists::list_uncertain,
        job_lists::list_attempts,
        job_lists::list_logs,
        worker::claim,
        worker::heartbeat,
        worker::finish,
        worker::release,
        preview::preview,
        preview::preview_schedule,
        schedules::create_schedule,
        schedules::list_schedules,
        schedules::get_schedule,
        schedules::edit_schedule,
        schedules::delete_schedule,
        schedule_actions::pause,
        schedule_actions::resume,
        schedule_actions::run_now,
        schedule_actions::backfill,
        schedule_actions::list_fates,
        schedule_actions::list_edits,
    )
)]
pub struct ApiDoc;

struct Token;

impl Modify for Token {
    fn modify(&self, page: &mut utoipa::openapi::OpenApi) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        page.components
            .get_or_insert_default()
            .add_security_scheme("token", scheme);
    }
}

/// This page.
#[utoipa::path(get, path = "/openapi.json", tag = "node",
    responses((status = 200, description = "The page.", body = Object)))]
pub async fn openapi_json() -> Response {
    ok(&ApiDoc::openapi())
}
