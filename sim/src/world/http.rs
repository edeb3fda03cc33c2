//! One HTTP request over simulated sockets, as a client of the API sends it.
//!
//! Owns: the connection and the time-out. Must never: retry; an answer that did not come is unknown.

use super::{API_PORT, API_TOKEN, SERVER_IP, World};
use fencepost::net::rt::{HyperIo, spawn_local};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use serde_json::Value;

/// Longest wait for an answer, in microseconds.
const ANSWER_MAX: u64 = 8_000_000;

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Its JSON; null when it is none.
    pub body: Value,
}

impl Answer {
    /// A text of the body.
    pub fn text(&self, field: &str) -> &str {
        self.body.get(field).and_then(Value::as_str).unwrap_or_default()
    }
}

/// Sends one request; `None` when no whole answer came: the outcome is unknown.
pub async fn send(world: &World, method: &str, path: &str, key: Option<&str>, body: Option<&Value>) -> Option<Answer> {
    let request = request(method, path, key, body)?;
    let answer = world.sim.within(ANSWER_MAX, exchange(request)).await.flatten();
    if let Some(answer) = &answer {
        let code = answer.text("code").to_owned();
        world.history.lock().answers.push((answer.status, code));
    }
    answer
}

fn request(method: &str, path: &str, key: Option<&str>, body: Option<&Value>) -> Option<Request<Full<Bytes>>> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", SERVER_IP.to_string())
        .header("authorization", format!("Bearer {API_TOKEN}"));
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    let bytes = match body {
        Some(body) => {
            request = request.header("content-type", "application/json");
            Bytes::from(body.to_string())
        }
        None => Bytes::new(),
    };
    request.body(Full::new(bytes)).ok()
}

async fn exchange(request: Request<Full<Bytes>>) -> Option<Answer> {
    let stream = tokio::net::TcpStream::connect((SERVER_IP, API_PORT)).await.ok()?;
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
