//! The HTTP API over real sockets on a whole node with the model store: what callers are promised.
//!
//! Owns: the world that the tests share. Next: `guard.rs`, `limits.rs`, `input.rs`, `jobs.rs`,
//! `schedules.rs`, `workers.rs`, `openapi.rs`, `commands.rs`.
#![cfg(not(madsim))]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

mod away;
mod by_hand;
mod commands;
mod edges;
mod edits;
mod flags;
mod guard;
mod input;
mod jobs;
mod limits;
mod lists;
mod openapi;
mod payloads;
#[path = "../support/problems.rs"]
mod problem_page;
mod schedules;
#[path = "../support/stoppable.rs"]
mod stoppable;
#[path = "../support/whole.rs"]
mod whole;
mod workers;

use fencepost::api::server::{ApiConfig, ApiServer, HttpLimits};
use fencepost::api::token::TokenDigest;
use fencepost::chance::SystemChance;
use fencepost::clock::{SharedClock, SystemClock};
use fencepost::net::rt::HyperIo;
use fencepost::node::lanes::local_lane;
use fencepost::node::{Node, NodeConfig, NodeParts, run_node};
use fencepost::targets::{HandlerContext, HandlerError, HandlerRegistry, TargetRunner, TargetsConfig};
use fencepost_core::name::Name;
use fencepost_core::time::{Monotonic, Span, StoreTime};
use fencepost_storage::model::ModelStore;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::{HeaderMap, Request};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
pub(crate) use whole::run;

pub(crate) const TOKEN: &str = "fp_test_0123456789abcdef";

/// A node and its API.
pub(crate) struct World {
    pub address: SocketAddr,
    pub node: Node,
    stop: watch::Sender<bool>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {:?}", self.body))
    }

    /// Status and code of a problem; the form of the problem is checked on the way.
    pub fn problem(&self) -> (u16, String) {
        let value = self.json();
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        assert_eq!(self.headers["content-type"], "application/problem+json", "{value}");
        assert_eq!(value["status"], self.status, "{value}");
        assert_eq!(text("type"), format!("urn:fencepost:problem:{}", text("code")));
        assert_eq!(self.headers["x-request-id"], text("request_id").as_str());
        for key in ["title", "detail", "hint"] {
            assert!(!text(key).is_empty(), "{key} is missing: {value}");
        }
        assert!(value["retryable"].is_boolean(), "{value}");
        problem_page::expect(&text("code"), problem_page::HTTP, self.status.into());
        (self.status, text("code"))
    }

    pub fn field(&self) -> String {
        self.json()["field"].as_str().unwrap_or_default().to_owned()
    }
}

struct Ticks(SharedClock);

impl fencepost_storage::clock::Clock for Ticks {
    fn wall(&self) -> StoreTime {
        StoreTime(self.0.wall())
    }

    fn mono(&self) -> Monotonic {
        self.0.mono()
    }
}

/// A store on this clock.
pub(crate) fn model_store(clock: &SharedClock) -> ModelStore {
    let sleeper = clock.clone();
    ModelStore::new(
        Arc::new(Ticks(clock.clone())),
        Arc::new(move |span: Span| sleeper.sleep(span)),
    )
}

async fn echo(context: HandlerContext) -> Result<Vec<u8>, HandlerError> {
    Ok(context.payload.bytes.to_vec())
}

async fn fail(_: HandlerContext) -> Result<Vec<u8>, HandlerError> {
    Err(HandlerError::retry("it does not work"))
}

async fn hang(_: HandlerContext) -> Result<Vec<u8>, HandlerError> {
    std::future::pending().await
}

fn handlers() -> HandlerRegistry {
    let mut registry = HandlerRegistry::default();
    registry.register(Name::new("echo").unwrap(), echo);
    registry.register(Name::new("fail").unwrap(), fail);
    registry.register(Name::new("hang").unwrap(), hang);
    registry
}

impl World {
    pub async fn new() -> World {
        World::with_limits(HttpLimits::default()).await
    }

    pub async fn with_limits(limits: HttpLimits) -> World {
        World::with(limits, |_| {}).await
    }

    /// With settings of its node.
    pub async fn with(limits: HttpLimits, set: impl FnOnce(&mut NodeConfig)) -> World {
        let clock: SharedClock = Arc::new(SystemClock::new());
        World::start(clock.clone(), model_store(&clock), limits, set).await
    }

    pub async fn on(clock: SharedClock, store: ModelStore, limits: HttpLimits) -> World {
        World::start(clock, store, limits, |_| {}).await
    }

    async fn start(
        clock: SharedClock,
        store: ModelStore,
        limits: HttpLimits,
        set: impl FnOnce(&mut NodeConfig),
    ) -> World {
        let parts = NodeParts {
            store: Arc::new(store),
            cell: 7,
            clock,
            chance: Arc::new(SystemChance),
            runner: TargetRunner::new(TargetsConfig::for_dev(), handlers()),
            lanes: vec![local_lane()],
            notes: Vec::new(),
            fatal: Arc::new(|reason| panic!("the store broke: {reason}")),
        };
        let mut config = NodeConfig::new(Name::new("local").unwrap());
        config.shards = 4;
        set(&mut config);
        let node = run_node(config, parts).await.unwrap();
        node.ready().await;
        let config = ApiConfig {
            listen: "127.0.0.1:0".parse().unwrap(),
            host_names: Vec::new(),
            token: TokenDigest::of(TOKEN),
            targets: TargetsConfig::for_dev(),
            limits,
            metrics: None,
        };
        let api = ApiServer::bind(config, node.gateway.clone()).await.unwrap();
        let (stop, stopped) = watch::channel(false);
        let address = api.address();
        tokio::spawn(api.serve(stopped, Duration::from_secs(5)));
        World { address, node, stop }
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], None).await
    }

    pub async fn post(&self, path: &str, body: &str) -> Reply {
        self.send("POST", path, &[], Some(body.as_bytes())).await
    }

    /// With the token, and a JSON content type if there is a body.
    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&[u8]>) -> Reply {
        let token = format!("Bearer {TOKEN}");
        let mut all = vec![("authorization", token.as_str())];
        if body.is_some() {
            all.push(("content-type", "application/json"));
        }
        all.extend(headers);
        self.send_raw(method, path, &all, body).await
    }

    /// With these headers only; `host` is added unless it is among them.
    pub async fn send_raw(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&[u8]>) -> Reply {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(HyperIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(async move {
            let _ = connection.await;
        });
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", self.address.to_string());
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = Full::new(Bytes::copy_from_slice(body.unwrap_or_default()));
        let response = sender.send_request(request.body(body).unwrap()).await.unwrap();
        let (head, body) = response.into_parts();
        Reply {
            status: head.status.as_u16(),
            headers: head.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    /// Makes a job and returns its id.
    pub async fn make(&self, body: &str) -> String {
        let reply = self.post("/v1/jobs", body).await;
        assert_eq!(reply.status, 201, "{:?}", reply.body);
        reply.json()["id"].as_str().unwrap().to_owned()
    }

    /// The job once it is finished or uncertain.
    pub async fn wait(&self, id: &str) -> Value {
        self.get(&format!("/v1/jobs/{id}/wait?timeout=60")).await.json()
    }

    pub fn stop(&self) {
        self.stop.send_replace(true);
    }
}
