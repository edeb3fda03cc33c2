//! The settings of connections between nodes, made from the contents of three files.
//!
//! Owns: what is demanded of a certificate, our own as well as another node's: issued by the CA, in its time,
//! fit for both ends, naming a node of a cell. A name of a host is not asked for: nodes are known by cell, name
//! and roles, wherever they are reached. Must never: read a file, or take TLS before 1.3. Next: `mod.rs`.

use super::refusal::reason;
use super::refuse;
use crate::clock::SharedClock;
use crate::mesh::identity::Identity;
use fencepost_core::refusal::Refusal;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::time_provider::TimeProvider;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig, SignatureScheme,
};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The contents of the files.
pub struct Pem {
    /// Certificates of CAs.
    pub ca: Vec<u8>,
    /// The node's certificate, and any between it and a CA.
    pub cert: Vec<u8>,
    /// Its key.
    pub key: Vec<u8>,
}

impl Pem {
    pub(super) fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        for part in [&self.ca, &self.cert, &self.key] {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        *hasher.finalize().as_bytes()
    }
}

/// Settings for connections in both directions.
pub struct Kit {
    pub(super) connector: TlsConnector,
    pub(super) acceptor: TlsAcceptor,
    identity: Identity,
    expires_at: UnixTime,
}

/// Whom a certificate names: one identity, and no second one.
pub fn identity_of(certificate: &CertificateDer<'_>) -> Option<Identity> {
    let parsed = webpki::EndEntityCert::try_from(certificate).ok()?;
    let mut named = parsed.valid_uri_names().filter_map(Identity::parse);
    let first = named.next()?;
    named.next().is_none().then_some(first)
}

/// The certificates in a file.
///
/// # Errors
/// There is none, or it is damaged.
pub fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Refusal> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match read {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(unfit("A file of certificates holds none, or is damaged.")),
    }
}

/// Where a file is named.
pub(super) const CA: &str = "mesh.ca";
pub(super) const CERT: &str = "mesh.cert";
pub(super) const KEY: &str = "mesh.key";

/// What settings cannot be made of, as one sentence and the file that is to blame.
fn broken(error: &Error) -> Refusal {
    match error {
        Error::InconsistentKeys(_) => unfit("The key is not the certificate's own.").at(KEY),
        Error::InvalidCertificate(_) => unfit(format!("The certificate cannot be used: {}.", reason(error))).at(CERT),
        _ => unfit("The certificate or its key is of a kind that nodes do not use.").at(KEY),
    }
}

fn unfit(detail: impl Into<String>) -> Refusal {
    refuse(
        "mesh_certificate_invalid",
        detail,
        "Name the three files that 'fencepost certs node' makes: ca.pem, node.pem and node-key.pem.",
    )
}

impl Kit {
    /// Checks them as another node would, and makes the settings.
    ///
    /// # Errors
    /// They cannot be read, do not belong together, or would be refused by every other node.
    pub fn of(pem: &Pem, clock: &SharedClock) -> Result<Kit, Refusal> {
        let mut roots = RootCertStore::empty();
        let no_ca = |why: &str| unfit(format!("The CA's certificate cannot be used: {why}.")).at(CA);
        for root in certificates(&pem.ca).map_err(|refusal| refusal.at(CA))? {
            roots.add(root).map_err(|error| no_ca(reason(&error)))?;
        }
        let roots = Arc::new(roots);
        let chain = certificates(&pem.cert).map_err(|refusal| refusal.at(CERT))?;
        let key = PrivateKeyDer::from_pem_slice(&pem.key);
        let key = key.map_err(|_| unfit("The file of the key holds no key.").at(KEY))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let broken = |error: Error| broken(&error);
        let clients = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone()).build();
        let clients = clients.map_err(|_| no_ca("there is none"))?;
        let nodes = Arc::new(AnyNode {
            roots,
            provider: provider.clone(),
        });
        let time = Arc::new(WallTime(clock.clone()));
        let expires_at = judge(&chain, (&nodes, &*clients), time.now())?;
        let identity = chain.first().and_then(identity_of);
        let identity = identity.ok_or_else(|| unfit("The certificate names no node of a cell.").at(CERT))?;
        let only = &[&rustls::version::TLS13];
        let mut server = ServerConfig::builder_with_details(provider.clone(), time.clone())
            .with_protocol_versions(only)
            .map_err(broken)?
            .with_client_cert_verifier(clients)
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(broken)?;
        // Every connection is proven anew: nothing of an earlier one is taken up.
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        let mut client = ClientConfig::builder_with_details(provider, time)
            .with_protocol_versions(only)
            .map_err(broken)?
            .dangerous()
            .with_custom_certificate_verifier(nodes)
            .with_client_auth_cert(chain, key)
            .map_err(broken)?;
        client.resumption = Resumption::disabled();
        client.enable_sni = false;
        Ok(Kit {
            connector: TlsConnector::from(Arc::new(client)),
            acceptor: TlsAcceptor::from(Arc::new(server)),
            identity,
            expires_at,
        })
    }

    /// Whom it names.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// When it ends.
    pub fn expires_at(&self) -> UnixTime {
        self.expires_at
    }

    /// Whole days until then.
    pub fn days_left(&self, clock: &SharedClock) -> u64 {
        let now = WallTime(clock.clone()).now();
        self.expires_at.as_secs().saturating_sub(now.as_secs()) / 86_400
    }

    /// Whether a running node may go on with this in place of another one.
    ///
    /// # Errors
    /// It is for another cell or node, or takes a role away.
    pub(super) fn continues(&self, before: &Kit) -> Result<(), Refusal> {
        let (new, old) = (&self.identity, &before.identity);
        if new.cell == old.cell && new.node == old.node && new.roles.has_all(old.roles) {
            return Ok(());
        }
        Err(refuse(
            "mesh_certificate_other",
            format!("The new certificate is for {new}, this node runs as {old}."),
            "Make one for this node, or start the node anew as the other.",
        ))
    }
}

/// Checks our own certificate for both ends of a connection; when it ends.
fn judge(
    chain: &[CertificateDer<'static>],
    (nodes, clients): (&AnyNode, &dyn ClientCertVerifier),
    now: UnixTime,
) -> Result<UnixTime, Refusal> {
    let Some((own, between)) = chain.split_first() else {
        return Err(unfit("A file of certificates holds none."));
    };
    let as_server = nodes.verify(own, between, now);
    let as_client = clients.verify_client_cert(own, between, now).map(drop);
    as_server.and(as_client).map_err(|error| {
        refuse(
            "mesh_certificate_refused",
            format!("Other nodes would refuse this node's certificate: {}.", reason(&error)),
            "Make a new one: fencepost certs node --ca FOLDER --name NAME --roles ROLES --out FOLDER.",
        )
        .at(CERT)
    })?;
    Ok(ends_at(own))
}

/// When a certificate ends: what is said of it by those who check it at the end of time.
pub fn ends_at(certificate: &CertificateDer<'_>) -> UnixTime {
    let far = UnixTime::since_unix_epoch(Duration::from_secs(FAR_SECS));
    let nobody = AnyNode {
        roots: Arc::new(RootCertStore::empty()),
        provider: Arc::new(rustls::crypto::ring::default_provider()),
    };
    match nobody.verify(certificate, &[], far) {
        Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => not_after,
        _ => far,
    }
}

/// The year 9999: no certificate reaches beyond it.
const FAR_SECS: u64 = 253_402_300_800;

/// Any node whose certificate the CA issued; which one it is decides the greeting.
struct AnyNode {
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl fmt::Debug for AnyNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyNode")
    }
}

impl AnyNode {
    fn verify(&self, own: &CertificateDer<'_>, between: &[CertificateDer<'_>], now: UnixTime) -> Result<(), Error> {
        let parsed = ParsedCertificate::try_from(own)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, between, now, algorithms)
    }
}

impl ServerCertVerifier for AnyNode {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verify(own, between, now).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::PeerIncompatible(
            rustls::PeerIncompatible::Tls12NotOfferedOrEnabled,
        ))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// The node's wall clock, for the dates in certificates and nothing else.
struct WallTime(SharedClock);

impl fmt::Debug for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WallTime")
    }
}

impl WallTime {
    fn now(&self) -> UnixTime {
        let micros = u64::try_from(self.0.wall()).unwrap_or(0);
        UnixTime::since_unix_epoch(Duration::from_micros(micros))
    }
}

impl TimeProvider for WallTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(self.now())
    }
}
