//! Durable creation over HTTP: the same requests as `create.rs`, on kept connections over loopback.
//!
//! Owns: the server beside the rig, and the clients on a thread of their own. Each answer means synced.
//! Must never: count a request that was not answered with its jobs. Next: `http.rs`, `../api/server.rs`.

use crate::api::server::{ApiConfig, HttpLimits, Listening};
use crate::api::token::{TokenDigest, token_text};
use crate::bench::BenchOptions;
use crate::bench::beside::beside_floor;
use crate::bench::create::{BATCH_CLIENTS, SINGLE_CLIENTS, shares};
use crate::bench::figure::{Figure, per_second};
use crate::bench::floor::Kind;
use crate::bench::http::{Connection, Peer};
use crate::bench::rig::Rig;
use crate::chance::draw_u64;
use crate::clock::{Clock, SystemClock};
use crate::net::rt::spawn_local;
use crate::node::lanes::Lane;
use crate::process::threads;
use crate::targets::TargetsConfig;
use fencepost_core::limits::BATCH_JOBS_MAX;
use futures_util::future::try_join_all;
use hyper::StatusCode;
use hyper::body::Bytes;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

const JOB: &str = r#"{"target":{"type":"handler","name":"noop"}}"#;

/// What a client sends, and what an answer to it looks like.
#[derive(Clone, Debug)]
struct Exchange {
    path: &'static str,
    body: Bytes,
    status: StatusCode,
    begins: String,
}

/// Batches of 1,000.
pub async fn batches(options: &BenchOptions) -> Result<Vec<Figure>, String> {
    let shares = shares(options.jobs.div_ceil(BATCH_JOBS_MAX), BATCH_CLIENTS);
    let exchange = Exchange {
        path: "/v1/jobs:batch",
        body: format!(r#"{{"jobs":[{}]}}"#, vec![JOB; BATCH_JOBS_MAX].join(",")).into(),
        status: StatusCode::OK,
        begins: format!(r#"{{"created":{BATCH_JOBS_MAX},"#),
    };
    let measure = create(options, shares, (exchange, BATCH_JOBS_MAX));
    beside_floor(options, ("create-batch-http", Kind::Batches, 0.4), measure).await
}

/// One by one.
pub async fn singles(options: &BenchOptions) -> Result<Vec<Figure>, String> {
    let shares = shares(options.jobs / 4, SINGLE_CLIENTS);
    let exchange = Exchange {
        path: "/v1/jobs",
        body: JOB.into(),
        status: StatusCode::CREATED,
        begins: r#"{"id":"job_"#.to_owned(),
    };
    let measure = create(options, shares.clone(), (exchange, 1));
    let mut figures = beside_floor(options, ("create-single-http", Kind::Singles, 0.6), measure).await?;
    let answered = create(options, shares, (refused(), 1)).await?;
    figures.push(Figure::new(
        "create-single-http",
        "answered-without-store",
        answered,
        "requests/s",
    ));
    Ok(figures)
}

/// The same request with a field that nobody knows: all of HTTP and JSON, and nothing behind it. What this machine
/// allows over HTTP at most, clients included.
fn refused() -> Exchange {
    Exchange {
        path: "/v1/jobs",
        body: JOB.replacen('{', r#"{"unknown":1,"#, 1).into(),
        status: StatusCode::BAD_REQUEST,
        begins: "{".to_owned(),
    }
}

async fn create(
    options: &BenchOptions,
    shares: Vec<usize>,
    (exchange, at_once): (Exchange, usize),
) -> Result<f64, String> {
    let rig = Rig::start(options).await?;
    let (tell_stop, stop) = watch::channel(false);
    let (peer, served) = serve(&rig, stop).await?;
    let jobs = shares.iter().sum::<usize>() * at_once;
    let lanes = threads::make_lanes(1);
    let clients = lanes.first().ok_or("no lane")?;
    let took = ask(clients, peer, shares, exchange).await;
    let _ = tell_stop.send(true);
    let _ = served.await;
    rig.stop().await;
    Ok(per_second(jobs, took?))
}

/// The real listener and the real API on the rig's node.
async fn serve(rig: &Rig, stop: watch::Receiver<bool>) -> Result<(Peer, oneshot::Receiver<()>), String> {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listening = Listening::bind(listen).await.map_err(|refusal| refusal.to_string())?;
    let draw = || u128::from(draw_u64(&*rig.chance));
    let peer = Peer {
        address: listening.address(),
        token: token_text([draw(), draw()]),
    };
    let config = ApiConfig {
        listen,
        host_names: Vec::new(),
        token: TokenDigest::of(&peer.token),
        targets: TargetsConfig::for_dev(),
        limits: HttpLimits::default(),
        metrics: None,
    };
    let api = listening.into_server(config, rig.node.gateway.clone());
    let (tell_served, served) = oneshot::channel();
    spawn_local(async move {
        api.serve(stop, Duration::from_secs(5)).await;
        let _ = tell_served.send(());
    });
    Ok((peer, served))
}

/// Runs the clients on their thread: the time from the first request to the last answer.
async fn ask(lane: &Lane, peer: Peer, shares: Vec<usize>, exchange: Exchange) -> Result<Duration, String> {
    let (tell, told) = oneshot::channel();
    lane(Box::new(move || {
        spawn_local(async move {
            let _ = tell.send(run_clients(peer, shares, exchange).await);
        });
    }));
    told.await.map_err(|_| "the clients' thread ended".to_owned())?
}

async fn run_clients(peer: Peer, shares: Vec<usize>, exchange: Exchange) -> Result<Duration, String> {
    let opening = shares.iter().map(|_| Connection::open(peer.clone()));
    let connections = try_join_all(opening).await?;
    let clock = SystemClock::new();
    let began = clock.mono();
    let clients = connections.into_iter().zip(shares);
    let asking = clients.map(|(connection, rounds)| run_client(connection, rounds, &exchange));
    try_join_all(asking).await?;
    Ok(clock.mono().since(began).to_std())
}

async fn run_client(mut connection: Connection, rounds: usize, exchange: &Exchange) -> Result<(), String> {
    for _ in 0..rounds {
        let (status, body) = connection.post(exchange.path, exchange.body.clone()).await?;
        if status != exchange.status || !body.starts_with(exchange.begins.as_bytes()) {
            let start = String::from_utf8_lossy(body.get(..200).unwrap_or(&body)).into_owned();
            return Err(format!("POST {} was answered with {status}: {start}", exchange.path));
        }
    }
    Ok(())
}
