//! A request's JSON body: type, size, time, then strict parsing. And the way back out.
//!
//! Owns: the extractor and `answer`. Must never: accept a body without its content type (a page of another
//! site can send text, not JSON). Next: `json.rs`.

use super::guard::read_body;
use super::handle::Shared;
use super::json::{self, Json};
use crate::problem::Problem;
use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::response::Response;
use hyper::StatusCode;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use serde::Serialize;
use std::sync::Arc;

/// A body that was read and parsed.
#[derive(Debug)]
pub struct JsonBody(pub Json);

impl FromRequest<Arc<Shared>> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<JsonBody, Problem> {
        let is_json = request
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| {
                let kind = value.split(';').next().unwrap_or_default().trim();
                kind.eq_ignore_ascii_case("application/json")
            });
        if !is_json || request.headers().contains_key(CONTENT_ENCODING) {
            let hint = "Send Content-Type: application/json, without a content encoding.";
            return Err(Problem::http(415, "content_type", "The body must be plain JSON.", hint));
        }
        let limits = &shared.limits;
        let bytes = read_body(request.into_body(), limits.body_bytes_max, limits.body).await?;
        Ok(JsonBody(json::parse(&bytes)?))
    }
}

/// The body of a request that has none: what somebody put into it (an idempotency key, say) would be read by nobody.
#[derive(Debug)]
pub struct NoBody;

impl FromRequest<Arc<Shared>> for NoBody {
    type Rejection = Problem;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<NoBody, Problem> {
        let limits = &shared.limits;
        let bytes = read_body(request.into_body(), limits.body_bytes_max, limits.body).await?;
        match bytes.trim_ascii() {
            b"" | b"{}" | b"null" => Ok(NoBody),
            _ => {
                let hint = "Leave it out; an idempotency key goes into the header Idempotency-Key.";
                let detail = "This request has no body; what is in it would not be read.";
                Err(Problem::http(400, "body_unexpected", detail, hint))
            }
        }
    }
}

/// A JSON answer.
pub fn answer<T: Serialize>(status: StatusCode, value: &T) -> Response {
    let mut response = match serde_json::to_vec(value) {
        Ok(bytes) => Response::new(Body::from(bytes)),
        Err(error) => {
            tracing::error!(%error, "an answer could not be written as JSON");
            let hint = "Report this with the request id.";
            return axum::response::IntoResponse::into_response(Problem::http(
                500,
                "answer_failed",
                "The answer could not be written.",
                hint,
            ));
        }
    };
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A JSON answer with status 200.
pub fn ok<T: Serialize>(value: &T) -> Response {
    answer(StatusCode::OK, value)
}

/// Adds a header whose value is ours.
pub fn with_header(mut response: Response, name: &'static str, value: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
    response
}
