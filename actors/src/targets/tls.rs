//! TLS towards targets, with the system's trust.
//!
//! Owns: the client settings, made on first use so that a server without any roots still starts.
//! Must never: skip a check. Next: `connector`, its only caller.

use std::io;
use std::sync::{Arc, OnceLock};

use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::connector::Stream;
use super::url::Host;

/// The TLS settings of one connector.
#[derive(Default)]
pub struct TlsClient {
    config: OnceLock<Arc<rustls::ClientConfig>>,
}

impl TlsClient {
    /// Trusts what the system trusts.
    #[must_use]
    pub fn system() -> Self {
        Self::default()
    }

    /// Uses these settings, for private roots. The settings must offer HTTP/1.1 only.
    #[must_use]
    pub fn with_config(config: Arc<rustls::ClientConfig>) -> Self {
        Self {
            config: OnceLock::from(config),
        }
    }

    /// Makes the stream secure.
    ///
    /// # Errors
    /// No usable roots, a name that no certificate can carry, or a peer that fails the checks.
    pub async fn start(&self, host: &Host, tcp: TcpStream) -> io::Result<Box<dyn Stream>> {
        let config = match self.config.get() {
            Some(config) => config.clone(),
            None => {
                let made = Arc::new(system_config().map_err(io::Error::other)?);
                self.config.get_or_init(|| made).clone()
            }
        };
        let stream = TlsConnector::from(config).connect(server_name(host)?, tcp).await?;
        Ok(Box::new(stream))
    }
}

fn server_name(host: &Host) -> io::Result<ServerName<'static>> {
    match host {
        Host::Name(name) => ServerName::try_from(name.clone()).map_err(io::Error::other),
        Host::Address(ip) => Ok(ServerName::from(*ip)),
    }
}

fn system_config() -> Result<rustls::ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()?
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
