//! The target: a real HTTP server on a machine of its own, with a ledger outside all nodes.
//!
//! Owns: effects, applied once per key (`/key`), under the highest token after sealing (`/token`), or each time
//! (`/neither`); and how it misbehaves. Must never: tell the product anything but HTTP. Next: `clients.rs`.

use super::{TARGET_IP, TARGET_PORT, World, services};
use crate::own;
use crate::runtime::{Stream, sleep_here};
use fencepost::net::rt::{HyperIo, HyperTimer, spawn_local};
use fencepost_history::seen::{Call, Honours};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response, StatusCode};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the target remembers.
#[derive(Default)]
struct Ledger {
    keys: BTreeSet<String>,
    /// Highest token seen for an intent, and whether its effect is there.
    lines: BTreeMap<String, (String, bool)>,
}

/// The target's machine.
#[derive(Clone)]
pub(super) struct Target {
    world: World,
    ledger: Arc<Mutex<Ledger>>,
    stream: Arc<Mutex<Stream>>,
}

/// How one call is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    Prompt,
    Slow(u64),
    FailsBefore,
    FailsAfter,
    DropsBefore,
    DropsAfter,
    Hangs,
}

/// Starts the target.
pub fn start(world: &World) {
    let node = world.sim.new_node("target", TARGET_IP);
    let target = Target {
        world: world.clone(),
        ledger: Arc::default(),
        stream: Arc::new(Mutex::new(Stream::new(world.options.seed, "target"))),
    };
    let services = target.clone();
    node.run(move || listen(target));
    if !own::names().is_empty() {
        node.run(move || services::listen(services));
    }
}

async fn listen(target: Target) {
    let listener = tokio::net::TcpListener::bind((TARGET_IP, TARGET_PORT)).await;
    let Ok(listener) = listener else {
        return;
    };
    while let Ok((stream, caller)) = listener.accept().await {
        let target = target.clone();
        spawn_local(async move {
            let service = hyper::service::service_fn(move |request| answer(target.clone(), request, caller.ip()));
            let mut builder = hyper::server::conn::http1::Builder::new();
            builder.timer(HyperTimer);
            let _ = builder.serve_connection(HyperIo::new(stream), service).await;
        });
    }
}

async fn answer(target: Target, request: Request<Incoming>, caller: IpAddr) -> io::Result<Response<Full<Bytes>>> {
    let IpAddr::V4(ip) = caller else {
        return Err(io::Error::other("a caller of another world"));
    };
    let _running = target.world.work.begin(ip);
    let links = target.world.links.clone();
    let answered = work_on(target, request, ip).await;
    links.sent(TARGET_IP, ip);
    answered
}

async fn work_on(target: Target, request: Request<Incoming>, caller: Ipv4Addr) -> io::Result<Response<Full<Bytes>>> {
    let (parts, body) = request.into_parts();
    let bytes = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let header = |name: &str| {
        let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let payload: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    let mut intent = payload.get("intent").and_then(Value::as_str).unwrap_or("?").to_owned();
    let scheduled_for = header("fencepost-scheduled-for");
    if intent.starts_with('s') {
        intent = format!("{intent}@{scheduled_for}");
    }
    let call = Call {
        at: target.world.sim.now(),
        intent,
        key: header("idempotency-key"),
        token: header("fencepost-token"),
        attempt: header("fencepost-attempt").parse().unwrap_or(0),
        scheduled_for,
        honours: match parts.uri.path() {
            "/key" => Honours::Key,
            "/neither" => Honours::Nothing,
            _ => Honours::Token,
        },
        applied: false,
    };
    if payload.get("kills").and_then(Value::as_bool).unwrap_or_default() {
        target.strike(call, caller);
        return std::future::pending().await;
    }
    let takes = payload.get("takes").and_then(Value::as_u64).unwrap_or_default();
    if takes > 0 {
        sleep_here(takes * 1_000).await;
    }
    target.treat(call).await
}

impl Target {
    pub(super) fn world(&self) -> &World {
        &self.world
    }

    /// Whoever runs this job dies of it.
    pub(super) fn strike(&self, call: Call, caller: Ipv4Addr) {
        self.world
            .sim
            .record("target", "kills", &format!("{} {caller}", call.intent));
        self.note(call, false);
        lock(&self.world.struck).push(caller);
    }

    async fn treat(&self, call: Call) -> io::Result<Response<Full<Bytes>>> {
        let manner = self.manner_felt();
        match manner {
            Manner::FailsBefore | Manner::DropsBefore => {
                self.note(call, false);
                return match manner {
                    Manner::DropsBefore => Err(io::Error::other("dropped before the effect")),
                    _ => reply(StatusCode::INTERNAL_SERVER_ERROR),
                };
            }
            Manner::Slow(micros) => sleep_here(micros).await,
            Manner::Prompt | Manner::FailsAfter | Manner::DropsAfter | Manner::Hangs => {}
        }
        let (status, applied) = lock(&self.ledger).apply(&call);
        if status == StatusCode::CONFLICT {
            self.world.feel("seen:stale-token-rejected");
        }
        self.note(call, applied);
        match manner {
            Manner::FailsAfter => reply(StatusCode::BAD_GATEWAY),
            Manner::DropsAfter => Err(io::Error::other("dropped after the effect")),
            Manner::Hangs => {
                sleep_here(10_000_000).await;
                reply(status)
            }
            _ => reply(status),
        }
    }

    /// As the spells of a scenario have it.
    fn manner_in_weather(&self) -> Manner {
        let mut stream = lock(&self.stream);
        let mut meets = |kind| self.world.weather.meets(&self.world, kind, &mut stream);
        if meets("target-errors").is_some() {
            return *stream
                .pick(&[Manner::FailsBefore, Manner::FailsAfter])
                .unwrap_or(&Manner::FailsBefore);
        }
        if meets("target-loses-answers").is_some() {
            return Manner::DropsAfter;
        }
        if meets("target-hangs").is_some() {
            return Manner::Hangs;
        }
        meets("target-slow").map_or(Manner::Prompt, Manner::Slow)
    }

    /// How one call is treated, counted where it is a fault.
    pub(super) fn manner_felt(&self) -> Manner {
        let manner = self.manner();
        if !matches!(manner, Manner::Prompt | Manner::Slow(_)) {
            self.world.feel("target");
        }
        manner
    }

    fn manner(&self) -> Manner {
        if self.world.options.plan.is_some() {
            return self.manner_in_weather();
        }
        let mut stream = lock(&self.stream);
        let drawn = stream.between(0, 99);
        let slow = stream.between(1_000, 2_500_000);
        if !self.world.options.faults.target || self.world.is_healed() {
            return if drawn < 20 {
                Manner::Slow(slow / 10)
            } else {
                Manner::Prompt
            };
        }
        match drawn {
            0..=9 => Manner::Slow(slow),
            10..=16 => Manner::FailsBefore,
            17..=23 => Manner::FailsAfter,
            24..=28 => Manner::DropsBefore,
            29..=35 => Manner::DropsAfter,
            36..=38 => Manner::Hangs,
            _ => Manner::Prompt,
        }
    }

    pub(super) fn note(&self, mut call: Call, applied: bool) {
        call.applied = applied;
        let text = format!(
            "{} {} {} attempt {} applied {applied}",
            call.intent, call.key, call.token, call.attempt
        );
        self.world.sim.record("target", "call", &text);
        self.world.history.lock().calls.push(call);
    }
}

impl Ledger {
    /// The status to answer with, and whether the effect was applied now.
    fn apply(&mut self, call: &Call) -> (StatusCode, bool) {
        match call.honours {
            Honours::Key => return (StatusCode::OK, self.keys.insert(call.key.clone())),
            Honours::Nothing | Honours::ItsOwn => return (StatusCode::OK, true),
            Honours::Token => {}
        }
        // One occurrence may be asked for again by a re-run: its jobs are wishes of their own.
        let is_of_schedule = call.intent.contains('@');
        let line = if is_of_schedule { &call.key } else { &call.intent };
        let (highest, is_there) = self.lines.entry(line.clone()).or_default();
        if call.token < *highest {
            return (StatusCode::CONFLICT, false);
        }
        highest.clone_from(&call.token);
        let applies = !*is_there;
        *is_there = true;
        (StatusCode::OK, applies)
    }
}

fn reply(status: StatusCode) -> io::Result<Response<Full<Bytes>>> {
    let mut response = Response::new(Full::new(Bytes::new()));
    *response.status_mut() = status;
    Ok(response)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
