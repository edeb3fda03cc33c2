//! One request from head to answer: request id, guard, route, problem, log, metrics.
//!
//! Owns: what is the same for every request. Must never: log a body, a query or a header's value (they may
//! hold secrets). Next: `routes/`.

use super::guard::{Guard, OPEN_PATHS};
use super::places::as_sent;
use super::routes;
use super::server::{HttpLimits, RenderMetrics};
use crate::gateway::{Gateway, ShardReply, ShardRequest};
use crate::net::rt::HyperTimer;
use crate::problem::Problem;
use crate::targets::TargetsConfig;
use axum::Router;
use axum::body::Body;
use axum::extract::MatchedPath;
use axum::response::{IntoResponse, Response};
use fencepost_core::ids::ShardId;
use fencepost_core::limits::CLAIM_BODY_BYTES_MAX;
use fencepost_core::refusal::Refusal;
use http_body_util::Limited;
use hyper::body::{Body as _, Incoming};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::rt::Timer as _;
use hyper::{Method, Request, StatusCode};
use std::sync::Arc;
use tokio::sync::Semaphore;
use tower::ServiceExt as _;

/// What every handler can reach.
pub struct Shared {
    /// The node.
    pub gateway: Arc<dyn Gateway>,
    /// Which targets jobs may name.
    pub targets: TargetsConfig,
    /// Bounds.
    pub limits: HttpLimits,
    /// The metrics page.
    pub metrics: Option<RenderMetrics>,
}

impl Shared {
    /// Sends a request to a shard's owner; refusals come back with fields as the caller sent them.
    ///
    /// # Errors
    /// As the owner refuses it.
    pub async fn call(&self, shard: ShardId, request: ShardRequest) -> Result<ShardReply, Refusal> {
        let reply = self.gateway.call(shard, request).await.map_err(as_sent)?;
        Ok(match reply {
            ShardReply::Created(items) => {
                let renamed = items.into_iter().map(|item| item.map_err(as_sent));
                ShardReply::Created(renamed.collect())
            }
            other => other,
        })
    }
}

/// The one request with a body that waits.
const CLAIM_PATH: &str = "/v1/worker/claim";

/// Bytes of one permit for bodies.
const KIB: usize = 1_024;

/// Answers requests.
pub struct Handler {
    guard: Guard,
    shared: Arc<Shared>,
    router: Router,
    /// Room for bodies, in KiB.
    bodies: Semaphore,
}

impl Handler {
    /// Over a guard and what handlers reach.
    pub fn new(guard: Guard, shared: Arc<Shared>) -> Handler {
        let router = routes::router(Arc::clone(&shared));
        let bodies = Semaphore::new(shared.limits.bodies_bytes_max.div_ceil(KIB));
        Handler {
            guard,
            shared,
            router,
            bodies,
        }
    }

    /// Answers one request.
    pub async fn handle(&self, request: Request<Incoming>) -> Response {
        let id = format!("req_{:016x}", self.shared.gateway.draw() as u64);
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let began = HyperTimer.now();
        let mut response = match self.guard.check(request.uri(), request.headers()) {
            Ok(()) => self.route(request).await,
            Err(problem) => problem.into_response(),
        };
        finish(&mut response, &id);
        let took = HyperTimer.now().saturating_duration_since(began);
        note(&method, &path, &response, &id, took);
        response
    }

    async fn route(&self, request: Request<Incoming>) -> Response {
        // A claim holds its room for as long as it waits.
        let is_claim = request.uri().path() == CLAIM_PATH;
        let most = match is_claim {
            true => CLAIM_BODY_BYTES_MAX.min(self.shared.limits.body_bytes_max),
            false => self.shared.limits.body_bytes_max,
        };
        let bytes = request
            .body()
            .size_hint()
            .upper()
            .and_then(|bytes| usize::try_from(bytes).ok());
        let room = u32::try_from(bytes.unwrap_or(most).min(most).div_ceil(KIB)).unwrap_or(u32::MAX);
        // Whoever holds the room has sent its body, or is refused, within the limit; twice that is a turn.
        let wait = self.shared.limits.body * 2;
        let turn = tokio::time::timeout(wait, self.bodies.acquire_many(room)).await;
        let Ok(Ok(_room)) = turn else {
            let detail = "Too many large requests are in work.";
            return Problem::http(503, "bodies_busy", detail, "Try again in a moment.").into_response();
        };
        let into_body = |body| match is_claim {
            true => Body::new(Limited::new(body, most)),
            false => Body::new(body),
        };
        let answered = self.router.clone().oneshot(request.map(into_body)).await;
        let response = answered.unwrap_or_else(|never| match never {});
        if response.status() == StatusCode::METHOD_NOT_ALLOWED && problem_of(&response).is_none() {
            return not_allowed(&response);
        }
        response
    }
}

fn not_allowed(response: &Response) -> Response {
    let allow = response.headers().get(ALLOW).cloned();
    let known = allow
        .as_ref()
        .and_then(|value| value.to_str().ok())
        .unwrap_or("none")
        .to_owned();
    let hint = format!("This path knows: {known}.");
    let mut answer =
        Problem::http(405, "method_not_allowed", "The method does not fit this path.", hint).into_response();
    if let Some(allow) = allow {
        answer.headers_mut().insert(ALLOW, allow);
    }
    answer
}

fn problem_of(response: &Response) -> Option<&Problem> {
    response.extensions().get::<Problem>()
}

/// Writes the problem's body, now that the request has an id, and the headers that every answer has.
fn finish(response: &mut Response, id: &str) {
    if let Some(mut problem) = response.extensions_mut().remove::<Problem>() {
        problem.request_id = Some(id.into());
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let headers = response.headers_mut();
        // The router has counted the empty body that it saw.
        headers.remove(CONTENT_LENGTH);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if problem.retryable {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if problem.status == 401 {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"fencepost\""));
        }
        *response.body_mut() = Body::from(body);
        response.extensions_mut().insert(Code(problem.code));
    }
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    if let Ok(value) = HeaderValue::from_str(id) {
        headers.insert("x-request-id", value);
    }
}

/// The code of a problem that was answered.
#[derive(Clone)]
struct Code(Box<str>);

/// The route that a request met, as written in the router; set by `routes::router`.
#[derive(Clone)]
pub struct Route(pub MatchedPath);

fn note(method: &Method, path: &str, response: &Response, id: &str, took: std::time::Duration) {
    let status = response.status().as_u16();
    let route = response
        .extensions()
        .get::<Route>()
        .map_or("none", |route| route.0.as_str())
        .to_owned();
    let code = response.extensions().get::<Code>().map_or("", |code| &*code.0);
    metrics::histogram!("fencepost_http_request_duration_seconds",
        "method" => method_label(method), "route" => route.clone(), "status" => status.to_string())
    .record(took.as_secs_f64());
    if OPEN_PATHS.contains(&path) {
        return;
    }
    let micros = took.as_micros() as u64;
    match status {
        500.. => tracing::warn!(request_id = id, %method, route, status, code, micros, "request failed"),
        400.. => tracing::info!(request_id = id, %method, route, status, code, micros, "request refused"),
        _ => tracing::debug!(request_id = id, %method, route, status, micros, "request answered"),
    }
}

/// Methods are a small set of labels whatever a client sends.
fn method_label(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        "HEAD" => "HEAD",
        _ => "other",
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status;
        response.extensions_mut().insert(self);
        response
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        Problem::of(&refusal)
    }
}
