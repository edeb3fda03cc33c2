//! The one way out: every connection of an `http` target is made here.
//!
//! Owns: resolve, check all addresses, connect to a checked one, check the peer again, TLS. Must never:
//! follow a redirect, read a proxy variable, or send a byte to an address it did not check.
//! Next: `address` (which addresses), `url` (which URLs), `http` (what is sent).

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use fencepost_core::limits::{CONNECT_MS, CONNECT_TRIES_MAX, RESOLVED_ADDRESS_COUNT_MAX};
use futures_util::future::BoxFuture;
use tokio::net::TcpStream;

use super::address::AddressPolicy;
use super::url::{Host, Scheme, TargetUrl};

/// Turns a name into addresses. The simulator and tests bring their own.
pub trait Resolve: Send + Sync {
    /// All addresses of the name, in the order to try.
    fn resolve<'a>(&'a self, name: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>>;
}

/// Asks the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((name, port)).await?.collect()) })
    }
}

/// A stream to a checked peer.
pub use crate::net::Stream;

/// Why there is no connection. In every case no byte of the request has left.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// One of this server's own ports.
    #[error("port_not_allowed: targets may not use port {0}, it is one of this server's own")]
    OwnPort(u16),
    /// The resolver gave no answer.
    #[error("name_not_resolved: the host name could not be resolved; check its spelling and the name server")]
    Resolve(#[source] io::Error),
    /// More addresses than are checked.
    #[error("address_count: the host name leads to no address or to more than {RESOLVED_ADDRESS_COUNT_MAX}")]
    AddressCount,
    /// On the deny list. Which address, is not said: names inside a network are not for its tenants.
    #[error(
        "address_not_allowed: the host leads to an address that targets may not reach; an operator can allow its range"
    )]
    AddressNotAllowed,
    /// Nobody took the connection.
    #[error("connection_failed: no connection to the target ({})", .0.kind())]
    Connect(#[source] io::Error),
    /// No TLS with this peer.
    #[error("tls_failed: no secure connection to the target; check its certificate and name")]
    Tls(#[source] io::Error),
}

impl ConnectError {
    /// Whether trying again can help. What depends on names and peers may change, an own port will not.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        matches!(self, Self::OwnPort(_))
    }
}

/// What a connection may be made to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectPolicy {
    /// Which addresses.
    pub addresses: AddressPolicy,
    /// Ports of this server; refused on every host, so that sibling nodes are covered too.
    pub own_ports: BTreeSet<u16>,
}

/// Makes checked connections.
pub struct Connector {
    policy: ConnectPolicy,
    resolver: Arc<dyn Resolve>,
    #[cfg(not(madsim))]
    tls: super::tls::TlsClient,
}

impl Connector {
    /// A connector that asks the system's resolver and trusts the system's roots.
    #[must_use]
    pub fn new(policy: ConnectPolicy) -> Self {
        Self::with_resolver(policy, Arc::new(SystemResolver))
    }

    /// A connector with a resolver of the caller's.
    #[must_use]
    pub fn with_resolver(policy: ConnectPolicy, resolver: Arc<dyn Resolve>) -> Self {
        Self {
            policy,
            resolver,
            #[cfg(not(madsim))]
            tls: super::tls::TlsClient::system(),
        }
    }

    /// The same connector with other TLS settings, for private roots.
    #[cfg(not(madsim))]
    #[must_use]
    pub fn with_tls(mut self, tls: super::tls::TlsClient) -> Self {
        self.tls = tls;
        self
    }

    /// Connects to the URL's host. The caller bounds the whole attempt; one address gets `CONNECT_MS` at most.
    ///
    /// # Errors
    /// Why not; no byte has been sent to anyone.
    pub async fn connect(&self, url: &TargetUrl) -> Result<Box<dyn Stream>, ConnectError> {
        if self.policy.own_ports.contains(&url.port) {
            return Err(ConnectError::OwnPort(url.port));
        }
        let addresses = self.checked_addresses(url).await?;
        let tcp = connect_first(&addresses).await?;
        let peer = tcp.peer_addr().map_err(ConnectError::Connect)?;
        self.check(peer.ip())?;
        match url.scheme {
            Scheme::Http => Ok(Box::new(tcp)),
            Scheme::Https => self.start_tls(url, tcp).await,
        }
    }

    /// Every address of the host, each of them permitted: one bad address refuses the name.
    async fn checked_addresses(&self, url: &TargetUrl) -> Result<Vec<SocketAddr>, ConnectError> {
        let addresses = match &url.host {
            Host::Address(ip) => vec![SocketAddr::new(*ip, url.port)],
            Host::Name(name) => self
                .resolver
                .resolve(name, url.port)
                .await
                .map_err(ConnectError::Resolve)?,
        };
        if addresses.is_empty() || addresses.len() > RESOLVED_ADDRESS_COUNT_MAX {
            return Err(ConnectError::AddressCount);
        }
        for address in &addresses {
            self.check(address.ip())?;
        }
        Ok(addresses.iter().map(|a| SocketAddr::new(a.ip(), url.port)).collect())
    }

    fn check(&self, ip: IpAddr) -> Result<(), ConnectError> {
        let addresses = &self.policy.addresses;
        if !addresses.permits(ip) || (is_own_address(ip) && !addresses.is_allowed_by_name(ip)) {
            tracing::debug!(%ip, "target address refused");
            return Err(ConnectError::AddressNotAllowed);
        }
        Ok(())
    }

    #[cfg(not(madsim))]
    async fn start_tls(&self, url: &TargetUrl, tcp: TcpStream) -> Result<Box<dyn Stream>, ConnectError> {
        tokio::time::timeout(Duration::from_millis(CONNECT_MS), self.tls.start(&url.host, tcp))
            .await
            .unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut)))
            .map_err(ConnectError::Tls)
    }

    #[cfg(madsim)]
    async fn start_tls(&self, _url: &TargetUrl, _tcp: TcpStream) -> Result<Box<dyn Stream>, ConnectError> {
        Err(ConnectError::Tls(io::Error::from(io::ErrorKind::Unsupported)))
    }
}

async fn connect_first(addresses: &[SocketAddr]) -> Result<TcpStream, ConnectError> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses.iter().take(CONNECT_TRIES_MAX) {
        #[cfg(madsim)]
        crate::net::seam::dialing(&address.to_string());
        match tokio::time::timeout(Duration::from_millis(CONNECT_MS), TcpStream::connect(*address)).await {
            Ok(Ok(tcp)) => {
                // Only a matter of latency: a stream without it works as well.
                tcp.set_nodelay(true).ok();
                return Ok(tcp);
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = io::Error::from(io::ErrorKind::TimedOut),
        }
    }
    Err(ConnectError::Connect(last))
}

/// Whether this host owns the address: the kernel then picks the address itself as the source.
/// Connecting a datagram socket sends nothing.
#[cfg(not(madsim))]
fn is_own_address(ip: IpAddr) -> bool {
    let any: SocketAddr = match ip {
        IpAddr::V4(_) => (std::net::Ipv4Addr::UNSPECIFIED, 0).into(),
        IpAddr::V6(_) => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    std::net::UdpSocket::bind(any)
        .and_then(|socket| socket.connect((ip, 9)).and_then(|()| socket.local_addr()))
        .is_ok_and(|source| source.ip() == ip)
}

/// In the simulator the addresses of a node are what its scenario says; only the policy decides.
#[cfg(madsim)]
fn is_own_address(_ip: IpAddr) -> bool {
    false
}
