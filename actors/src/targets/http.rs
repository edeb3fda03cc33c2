//! Calls a URL: one request over one guarded connection, judged.
//!
//! Owns: what is sent and the bounds on what comes back. Must never: retry, redirect, keep a connection, or
//! call an attempt harmless when a byte of it may have left. Next: `answer` (verdicts), `connector` (the way out).

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use fencepost_core::job::{EffectProof, Outcome, RetryAdvice, Verdict};
use fencepost_core::limits::{ANSWER_BODY_BYTES_MAX, ANSWER_HEAD_BYTES_MAX, LAST_ANSWER_MS};
use fencepost_core::target::{HttpTarget, PayloadKind};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response};
use tokio::time::timeout;

use super::answer::judge_answer;
use super::attempt::{AttemptContext, failed, stopped, with_error};
use super::check::check_http;
use super::connector::{ConnectError, Connector, Stream};
use super::meter::{Meter, Metered};
use super::signal::CancelSignal;
use super::tail::OutputTail;
use super::url::TargetUrl;
use crate::net::rt::HyperIo;

const AGENT: &str = concat!("fencepost/", env!("CARGO_PKG_VERSION"));

/// Why there is no complete answer.
enum Broken {
    Connect(ConnectError),
    Exchange(hyper::Error),
}

/// What a complete answer means.
type Answer = (Verdict, Option<String>);

/// How a call ended.
type Called = Result<Answer, Broken>;

/// How long an answer that lies in the socket is looked for when the attempt is to end.
const LAST_ANSWER: Duration = Duration::from_millis(LAST_ANSWER_MS);

/// Carries out one attempt. Always ends within the attempt's time-out and a look at what has come.
pub async fn run_http(
    connector: &Connector,
    authorization: bool,
    target: &HttpTarget,
    attempt: &AttemptContext,
    cancel: &CancelSignal,
) -> Outcome {
    let (url, request) = match prepare(authorization, target, attempt) {
        Ok(prepared) => prepared,
        Err(error) => {
            return failed(RetryAdvice::Stop, EffectProof::NoEffect, &error, OutputTail::default());
        }
    };
    let meter = Meter::new(ANSWER_HEAD_BYTES_MAX);
    let mut tail = OutputTail::default();
    let ended = {
        let mut call = pin!(call(connector, &url, request, &meter, &mut tail));
        let ended = tokio::select! {
            biased;
            reason = cancel.stopped() => Err(Some(reason)),
            ended = timeout(attempt.timeout.to_std(), &mut call) => ended.map_err(|_| None),
        };
        match ended {
            Err(why) => last_answer(call, &meter).await.map(Ok).ok_or(why),
            Ok(answered) => Ok(answered),
        }
    };
    let effect = if meter.has_written() {
        EffectProof::Unproven
    } else {
        EffectProof::NoEffect
    };
    match ended {
        Err(Some(reason)) => stopped(reason, effect, tail),
        Err(None) => with_error(
            Verdict::TimedOut { effect },
            "timed_out: no complete answer in time",
            tail,
        ),
        Ok(Err(broken)) => broken_outcome(&broken, effect, tail),
        Ok(Ok((verdict, error))) => Outcome {
            verdict,
            error: error.map(Into::into),
            output: tail.into_output(),
        },
    }
}

/// The complete answer that has come by the time of a stop, if there is one. When this process goes on after it was
/// stopped for a while, its timers are over before its sockets are looked at. Nothing more is sent.
async fn last_answer(call: impl Future<Output = Called>, meter: &Meter) -> Option<Answer> {
    if !meter.has_written() {
        return None;
    }
    meter.stop_writing();
    timeout(LAST_ANSWER, call).await.ok()?.ok()
}

fn broken_outcome(broken: &Broken, effect: EffectProof, tail: OutputTail) -> Outcome {
    match broken {
        Broken::Connect(why) => {
            let retry = if why.is_permanent() {
                RetryAdvice::Stop
            } else {
                RetryAdvice::ByPolicy
            };
            failed(retry, EffectProof::NoEffect, &why.to_string(), tail)
        }
        Broken::Exchange(why) => {
            let error = format!("http_exchange: the connection failed before a complete answer ({why})");
            failed(RetryAdvice::ByPolicy, effect, &error, tail)
        }
    }
}

fn prepare(
    authorization: bool,
    target: &HttpTarget,
    attempt: &AttemptContext,
) -> Result<(TargetUrl, Request<Full<Bytes>>), String> {
    let url = check_http(target, authorization).map_err(|problem| problem.to_string())?;
    let request = build_request(&url, target, attempt).map_err(|why| format!("request_invalid: {why}"))?;
    Ok((url, request))
}

/// The request: the job's headers first, then ours, which a job cannot set.
fn build_request(
    url: &TargetUrl,
    target: &HttpTarget,
    attempt: &AttemptContext,
) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
    let method = Method::from_bytes(target.method.as_bytes())?;
    let carries_body = method != Method::GET && method != Method::HEAD;
    let body = if carries_body {
        Bytes::from_owner(attempt.payload.bytes.clone())
    } else {
        Bytes::new()
    };
    let mut request = Request::builder()
        .method(method)
        .uri(url.path_and_query.as_str())
        .body(Full::new(body))?;
    let headers = request.headers_mut();
    if let (true, Some(kind)) = (carries_body, content_type(attempt.payload.kind)) {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    for (name, value) in &target.headers {
        headers.insert(
            HeaderName::try_from(name.as_str())?,
            HeaderValue::try_from(value.as_str())?,
        );
    }
    headers.insert(HOST, HeaderValue::try_from(url.authority())?);
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    for (name, value) in [
        ("idempotency-key", attempt.idempotency_key()),
        ("fencepost-token", attempt.token.to_string()),
        ("fencepost-attempt", attempt.attempt.to_string()),
        ("fencepost-scheduled-for", attempt.scheduled_for_text()),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::try_from(value)?);
    }
    Ok(request)
}

fn content_type(kind: PayloadKind) -> Option<&'static str> {
    match kind {
        PayloadKind::Empty => None,
        PayloadKind::Json => Some("application/json"),
        PayloadKind::Bytes => Some("application/octet-stream"),
    }
}

async fn call(
    connector: &Connector,
    url: &TargetUrl,
    request: Request<Full<Bytes>>,
    meter: &Arc<Meter>,
    tail: &mut OutputTail,
) -> Called {
    let stream = connector.connect(url).await.map_err(Broken::Connect)?;
    exchange(stream, request, meter, tail).await.map_err(Broken::Exchange)
}

/// One request and its answer. The connection lives in this future and dies with it.
async fn exchange(
    stream: Box<dyn Stream>,
    request: Request<Full<Bytes>>,
    meter: &Arc<Meter>,
    tail: &mut OutputTail,
) -> Result<Answer, hyper::Error> {
    let io = HyperIo::new(Metered::new(stream, meter.clone()));
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_buf_size(ANSWER_HEAD_BYTES_MAX)
        .handshake(io)
        .await?;
    let mut connection = pin!(connection);
    let mut answer = pin!(async {
        let response = sender.send_request(request).await?;
        meter.allow_reading(ANSWER_BODY_BYTES_MAX * 2);
        let judged = judge_answer(response.status(), response.headers());
        read_body(response, tail).await?;
        Ok(judged)
    });
    tokio::select! {
        biased;
        done = &mut answer => return done,
        _ = &mut connection => {}
    }
    // The connection has ended; what it had delivered by then decides.
    answer.await
}

/// Keeps the tail of the body. Past the limit the rest is not read, and the status alone decides.
async fn read_body(response: Response<Incoming>, tail: &mut OutputTail) -> Result<(), hyper::Error> {
    let mut body = response.into_body();
    let mut left = ANSWER_BODY_BYTES_MAX;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        tail.push(data.get(..left.min(data.len())).unwrap_or_default());
        left = left.saturating_sub(data.len());
        if left == 0 {
            break;
        }
    }
    Ok(())
}
