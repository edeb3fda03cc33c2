//! One HTTP request over simulated sockets, as a client of the API sends it.
//!
//! Owns: the connection, the time-out, and asking again while an answer says "not now". Must never: take
//! an answer that did not come for a failure: it is unknown.

use super::{API_PORT, API_TOKEN, SERVER_IP, TARGET_IP, TARGET_PORT, World};
use crate::runtime::Stream;
use fencepost::net::rt::{HyperIo, spawn_local};
use fencepost_history::seen::Answered;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use serde_json::Value;
use std::net::Ipv4Addr;

/// What is answered on a full disk.
const NO_ROOM: u16 = 507;
/// Longest wait for an answer, in microseconds.
const ANSWER_MAX: u64 = 8_000_000;

/// A request.
#[derive(Clone, Debug)]
pub struct Ask {
    /// What it is, for the checkers and the counts: `op:edit`.
    pub op: &'static str,
    method: &'static str,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: Option<Value>,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Its JSON; null when it is none.
    pub body: Value,
}

impl Ask {
    /// A request without body.
    pub fn new(op: &'static str, method: &'static str, path: impl Into<String>) -> Ask {
        Ask {
            op,
            method,
            path: path.into(),
            headers: Vec::new(),
            body: None,
        }
    }

    /// With a header.
    pub fn with(mut self, header: &'static str, value: impl Into<String>) -> Ask {
        self.headers.push((header, value.into()));
        self
    }

    /// With a body.
    pub fn of(mut self, body: Value) -> Ask {
        self.body = Some(body);
        self
    }

    fn request(&self, host: Ipv4Addr) -> Option<Request<Full<Bytes>>> {
        let mut request = Request::builder()
            .method(self.method)
            .uri(&self.path)
            .header("host", host.to_string())
            .header("authorization", format!("Bearer {API_TOKEN}"));
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let bytes = match &self.body {
            Some(body) => {
                request = request.header("content-type", "application/json");
                Bytes::from(body.to_string())
            }
            None => Bytes::new(),
        };
        request.body(Full::new(bytes)).ok()
    }
}

impl Answer {
    /// A text of the body.
    pub fn text(&self, field: &str) -> &str {
        self.body.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// A number of the body.
    pub fn number(&self, field: &str) -> u64 {
        self.body.get(field).and_then(Value::as_u64).unwrap_or_default()
    }

    /// Whether it did what was asked.
    pub fn is_done(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether the same request may succeed later.
    pub fn is_not_now(&self) -> bool {
        matches!(self.status, 408 | 429 | 503 | 507) || self.text("code") == "backfill_range_changed"
    }
}

/// Sends one request; `None` when no whole answer came: the outcome is unknown.
pub async fn send(world: &World, ask: &Ask) -> Option<Answer> {
    send_within(world, ask, ANSWER_MAX).await
}

/// The same, broken off after so many microseconds.
pub async fn send_within(world: &World, ask: &Ask, micros: u64) -> Option<Answer> {
    let exchange = exchange(world, (SERVER_IP, API_PORT), ask.request(SERVER_IP)?);
    let answer = world.sim.within(micros, exchange).await.flatten();
    if let Some(answer) = &answer {
        if answer.is_done() {
            world.feel(ask.op);
        }
        if answer.status == NO_ROOM {
            world.weather.is_felt(world, "store-full");
        }
        world.history.lock().answers.push(Answered {
            op: ask.op,
            status: answer.status,
            code: answer.text("code").to_owned(),
        });
    }
    answer
}

/// Calls the target; its status, if it answered within so many microseconds.
pub async fn call_target(world: &World, ask: &Ask, micros: u64) -> Option<u16> {
    let exchange = exchange(world, (TARGET_IP, TARGET_PORT), ask.request(TARGET_IP)?);
    let answer = world.sim.within(micros, exchange).await.flatten();
    answer.map(|answer| answer.status)
}

/// Sends a request until it is answered with anything but "not now".
pub async fn ask(world: &World, ask: &Ask, stream: &mut Stream) -> Answer {
    loop {
        if let Some(answer) = send(world, ask).await
            && !answer.is_not_now()
        {
            let text = format!("{} {} {}", ask.path, answer.status, answer.text("code"));
            world.sim.record("client", ask.op, &text);
            return answer;
        }
        world.sim.sleep(stream.between(50_000, 1_000_000)).await;
    }
}

async fn exchange(world: &World, to: (Ipv4Addr, u16), request: Request<Full<Bytes>>) -> Option<Answer> {
    if let Some(here) = world.sim.here() {
        world.links.sent(here.ip(), to.0);
    }
    let stream = tokio::net::TcpStream::connect(to).await.ok()?;
    let _open = world.work.begin(to.0);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(HyperIo::new(stream)).await.ok()?;
    spawn_local(async move {
        let _ = connection.await;
    });
    let response = sender.send_request(request).await.ok()?;
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await.ok()?.to_bytes();
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    Some(Answer { status, body })
}
