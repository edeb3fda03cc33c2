//! The product's own `http` target over simulated sockets: same connector, same bounds, simulated time.
#![allow(clippy::disallowed_methods, reason = "simulated time is what is measured")]

use std::convert::Infallible;
use std::net::IpAddr;
use std::time::Duration;

use fencepost::net::rt::{HyperIo, HyperTimer};
use fencepost::targets::{AttemptContext, CancelSignal, HandlerRegistry, TargetRunner, TargetsConfig};
use fencepost_core::ids::{JobId, Token};
use fencepost_core::job::{EffectProof, Outcome, RetryAdvice, Verdict};
use fencepost_core::name::Name;
use fencepost_core::target::{HttpTarget, Payload, PayloadKind, Target};
use fencepost_core::time::{Span, StoreTime};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use madsim::net::NetSim;
use madsim::runtime::{Handle, NodeHandle};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const TARGET: [u8; 4] = [10, 0, 0, 1];

/// A node for the target and one for the worker; the target is known by a name.
fn nodes() -> (NodeHandle, NodeHandle) {
    let node = |name: &str, ip: [u8; 4]| Handle::current().create_node().name(name).ip(IpAddr::from(ip)).build();
    NetSim::current().add_dns_record("hooks.example", IpAddr::from(TARGET));
    (node("target", TARGET), node("worker", [10, 0, 0, 2]))
}

async fn call(worker: &NodeHandle, config: TargetsConfig, port: u16) -> Outcome {
    let url = format!("http://hooks.example:{port}/in");
    let attempt = AttemptContext {
        job: JobId::from_bytes([1; 16]).expect("the slot exists"),
        tenant: Name::new("default").expect("a name"),
        queue: Name::new("default").expect("a name"),
        schedule: None,
        token: Token::default(),
        attempt: 1,
        scheduled_for: StoreTime(0),
        timeout: Span::from_secs(60),
        target: Target::Http(HttpTarget {
            method: "POST".into(),
            url: url.into(),
            headers: vec![],
        }),
        payload: Payload {
            kind: PayloadKind::Json,
            bytes: b"{}".as_slice().into(),
        },
    };
    let runner = TargetRunner::new(config, HandlerRegistry::default());
    worker
        .spawn(async move { runner.run(attempt, CancelSignal::never()).await })
        .await
        .expect("the worker lives")
}

fn inside_allowed() -> TargetsConfig {
    TargetsConfig::default().allowing(["10.0.0.0/8".parse().expect("a range")])
}

async fn echo_key(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let key = request
        .headers()
        .get("idempotency-key")
        .map(|value| value.as_bytes().to_vec());
    Ok(Response::new(Full::new(Bytes::from(key.unwrap_or_default()))))
}

async fn serve_echo(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder.timer(HyperTimer).header_read_timeout(Duration::from_secs(5));
        let service = hyper::service::service_fn(echo_key);
        builder.serve_connection(HyperIo::new(stream), service).await.ok();
    }
}

/// Listens on the target's node and gives each connection, its request read, to `answer`.
async fn listen<F>(target: &NodeHandle, port: u16, answer: fn(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    target.spawn(async move {
        let listener = TcpListener::bind(("0.0.0.0", port)).await.expect("a free port");
        ready.send(()).ok();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _count = stream.read(&mut request).await;
            answer(stream).await;
        }
    });
    is_ready.await.expect("it listens");
}

#[madsim::test]
async fn a_call_runs_over_simulated_sockets() {
    let (target, worker) = nodes();
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    target.spawn(async move {
        let listener = TcpListener::bind("0.0.0.0:8080").await.expect("a free port");
        ready.send(()).ok();
        serve_echo(listener).await;
    });
    is_ready.await.expect("it listens");
    let outcome = call(&worker, inside_allowed(), 8080).await;
    assert_eq!(outcome.verdict, Verdict::Succeeded, "{outcome:?}");
    assert_eq!(&*outcome.output, b"job_01010101010101010101010101010101");
    let refused = call(&worker, TargetsConfig::default(), 8080).await;
    assert!(
        refused
            .error
            .as_deref()
            .is_some_and(|error| error.starts_with("address_not_allowed: "))
    );
}

#[madsim::test]
async fn one_byte_a_second_ends_at_the_timeout_of_simulated_time() {
    let (target, worker) = nodes();
    listen(&target, 8080, |mut stream| async move {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
            .await
            .ok();
        loop {
            stream.write_all(b"x").await.ok();
            stream.flush().await.ok();
            madsim::time::sleep(Duration::from_secs(1)).await;
        }
    })
    .await;
    let before = madsim::time::Instant::now();
    let outcome = call(&worker, inside_allowed(), 8080).await;
    assert_eq!(
        outcome.verdict,
        Verdict::TimedOut {
            effect: EffectProof::Unproven
        }
    );
    let took = before.elapsed();
    assert!((60..62).contains(&took.as_secs()), "{took:?}");
    assert!((55..=61).contains(&outcome.output.len()), "{}", outcome.output.len());
}

#[madsim::test]
async fn nobody_listening_proves_no_effect() {
    let (_target, worker) = nodes();
    let outcome = call(&worker, inside_allowed(), 8080).await;
    let verdict = Verdict::Failed {
        retry: RetryAdvice::ByPolicy,
        effect: EffectProof::NoEffect,
    };
    assert_eq!(outcome.verdict, verdict, "{outcome:?}");
}

#[madsim::test]
async fn a_target_that_dies_in_the_middle_proves_nothing() {
    let (target, worker) = nodes();
    listen(&target, 8080, |mut stream| async move {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\nhalf")
            .await
            .ok();
        stream.flush().await.ok();
        madsim::time::sleep(Duration::from_secs(1)).await;
        Handle::current().kill("target");
    })
    .await;
    let outcome = call(&worker, inside_allowed(), 8080).await;
    let unproven = EffectProof::Unproven;
    let broken = Verdict::Failed {
        retry: RetryAdvice::ByPolicy,
        effect: unproven,
    };
    assert!(
        [broken, Verdict::TimedOut { effect: unproven }].contains(&outcome.verdict),
        "{outcome:?}"
    );
}
