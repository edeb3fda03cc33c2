//! The accept loop: hyper over the runtime alias, every connection within bounds of count, size and time.
//!
//! Owns: sockets and connections. A connection that is silent, sends its head slowly, sends too much, or does
//! not take its answer is closed; further connections wait while the most are open. Must never: look into
//! a request beyond what `handle.rs` does. Next: `handle.rs`, `routes/`.

use super::guard::{Guard, check_listen};
use super::handle::{Handler, Shared};
use super::stall::StallGuard;
use super::token::TokenDigest;
use crate::gateway::Gateway;
use crate::net::rt::{HyperIo, HyperTimer};
use crate::problem::plain;
use crate::targets::TargetsConfig;
use fencepost_core::limits::{
    BODY_BYTES_MAX, HEADER_BYTES_MAX, HEADER_COUNT_MAX, HTTP_ACCEPT_PAUSE_MS, HTTP_BODIES_BYTES_MAX, HTTP_BODY_MS,
    HTTP_CONNECTION_COUNT_MAX, HTTP_HEAD_MS, HTTP_STALL_MS,
};
use fencepost_core::refusal::{Refusal, RefusalKind};
use hyper::rt::Timer as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Bounds of connections and requests.
#[derive(Clone, Debug)]
pub struct HttpLimits {
    /// Connections at once.
    pub connection_count_max: usize,
    /// Silence before a request, and the sending of its head.
    pub head: Duration,
    /// The sending of a body.
    pub body: Duration,
    /// A client takes not a byte of its answer.
    pub stall: Duration,
    /// Bytes of a body.
    pub body_bytes_max: usize,
    /// Bytes of all bodies in work at once; at least one body.
    pub bodies_bytes_max: usize,
}

impl Default for HttpLimits {
    fn default() -> HttpLimits {
        HttpLimits {
            connection_count_max: HTTP_CONNECTION_COUNT_MAX,
            head: Duration::from_millis(HTTP_HEAD_MS),
            body: Duration::from_millis(HTTP_BODY_MS),
            stall: Duration::from_millis(HTTP_STALL_MS),
            body_bytes_max: BODY_BYTES_MAX,
            bodies_bytes_max: HTTP_BODIES_BYTES_MAX,
        }
    }
}

/// Renders the metrics page; the recorder belongs to the process, not to the API.
pub type RenderMetrics = Arc<dyn Fn() -> String + Send + Sync>;

/// What a server is made of.
#[derive(Clone)]
pub struct ApiConfig {
    /// Where to listen; loopback only.
    pub listen: SocketAddr,
    /// Further names in `Host` that lead here.
    pub host_names: Vec<String>,
    /// The token of mutating and reading calls.
    pub token: TokenDigest,
    /// Which targets jobs may name.
    pub targets: TargetsConfig,
    /// Bounds.
    pub limits: HttpLimits,
    /// The metrics page, if there is a recorder.
    pub metrics: Option<RenderMetrics>,
}

/// A bound listener: nobody else has the port, nothing is served yet.
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listening {
    /// Binds.
    ///
    /// # Errors
    /// The address is not loopback, or cannot be bound.
    pub async fn bind(listen: SocketAddr) -> Result<Listening, Refusal> {
        check_listen(listen)?;
        let failed = |error: std::io::Error| {
            let detail = format!("The address {listen} cannot be listened on: {}.", plain(&error));
            let hint = "Another server may be running; choose another port with --listen.";
            Refusal::new(RefusalKind::Unavailable, "listen_failed", detail, hint).at("listen")
        };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Listening { listener, address })
    }

    /// Where it listens; the port is the real one also when 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The server on this listener.
    pub fn into_server(self, config: ApiConfig, gateway: Arc<dyn Gateway>) -> ApiServer {
        let Listening { listener, address } = self;
        let guard = Guard::new(address, config.host_names, config.token);
        let shared = Arc::new(Shared {
            gateway,
            targets: config.targets.with_own_ports([address.port()]),
            limits: config.limits.clone(),
            metrics: config.metrics,
        });
        ApiServer {
            listener,
            address,
            handler: Arc::new(Handler::new(guard, shared)),
            limits: config.limits,
        }
    }
}

/// A bound server, not yet serving.
pub struct ApiServer {
    listener: TcpListener,
    address: SocketAddr,
    handler: Arc<Handler>,
    limits: HttpLimits,
}

impl ApiServer {
    /// Binds the listener.
    ///
    /// # Errors
    /// The address is not loopback, or cannot be bound.
    pub async fn bind(config: ApiConfig, gateway: Arc<dyn Gateway>) -> Result<ApiServer, Refusal> {
        let listening = Listening::bind(config.listen).await?;
        Ok(listening.into_server(config, gateway))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` becomes true (or its sender is dropped), then lets open requests finish for as long
    /// as `drain` and returns.
    pub async fn serve(self, mut stop: watch::Receiver<bool>, drain: Duration) {
        let most = self.limits.connection_count_max;
        let slots = Arc::new(Semaphore::new(most));
        loop {
            let accepted = tokio::select! {
                biased;
                () = stopped(&mut stop) => break,
                accepted = accept(&self.listener, &slots) => accepted,
            };
            match accepted {
                Ok((stream, permit)) => {
                    let (handler, limits) = (Arc::clone(&self.handler), self.limits.clone());
                    tokio::spawn(serve_connection(stream, handler, limits, stop.clone(), permit));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    HyperTimer.sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(self.listener);
        let all = u32::try_from(most).unwrap_or(u32::MAX);
        let closed = tokio::time::timeout(drain, slots.acquire_many(all)).await;
        if closed.is_err() {
            tracing::warn!("connections were still open when the drain ended");
        }
    }
}

/// Ends once `stop` is true, or nobody can say so any more.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stopped| *stopped).await;
}

/// After a failed accept (out of file handles, say).
const ACCEPT_PAUSE: Duration = Duration::from_millis(HTTP_ACCEPT_PAUSE_MS);

async fn accept(listener: &TcpListener, slots: &Arc<Semaphore>) -> std::io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let permit = Arc::clone(slots).acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, permit))
}

async fn serve_connection(
    stream: TcpStream,
    handler: Arc<Handler>,
    limits: HttpLimits,
    mut stop: watch::Receiver<bool>,
    permit: OwnedSemaphorePermit,
) {
    let _ = stream.set_nodelay(true);
    let service = hyper::service::service_fn(move |request| {
        let handler = Arc::clone(&handler);
        async move { Ok::<_, std::convert::Infallible>(handler.handle(request).await) }
    });
    let io = HyperIo::new(StallGuard::new(stream, limits.stall));
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(HyperTimer)
        .header_read_timeout(limits.head)
        .max_headers(HEADER_COUNT_MAX)
        .max_header_size(HEADER_BYTES_MAX)
        .auto_date_header(cfg!(not(madsim)))
        .serve_connection(io, service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = stopped(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
    drop(permit);
}
