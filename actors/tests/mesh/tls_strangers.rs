//! What is no node at all at a port under certificates: no certificate, an old TLS, noise, silence.

use crate::hand_clock::HandClock;
use crate::pair::{CELL, facts, listen, parts};
use crate::tls::{Ca, connected, echoing, until};
use fencepost::clock::SharedClock;
use fencepost::mesh::dial::dial;
use fencepost::mesh::tls::TlsFiles;
use fencepost::mesh::{MeshParts, Roles};
use fencepost_core::limits::GREETING_MS;
use fencepost_core::time::Span;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// A client of our making, with this version and maybe a certificate; what its first read brings. It asks for a
/// host's name, which no node has: it trusts nobody, and gets no further than its own check at best.
async fn try_tls(
    address: SocketAddr,
    ca: &Ca,
    version: &'static rustls::SupportedProtocolVersion,
    own: Option<&TlsFiles>,
) -> io::Error {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(ca.made.cert.as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[version])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(anyone::Anyone(provider)));
    let config = match own {
        None => builder.with_no_client_auth(),
        Some(files) => {
            let cert = CertificateDer::from_pem_file(&files.cert).unwrap();
            let key = PrivateKeyDer::from_pem_file(&files.key).unwrap();
            builder.with_client_auth_cert(vec![cert], key).unwrap()
        }
    };
    let tcp = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("node.example").unwrap();
    let mut stream = match TlsConnector::from(Arc::new(config)).connect(name, tcp).await {
        Ok(stream) => stream,
        Err(error) => return error,
    };
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.expect_err("it is not taken")
}

/// A verifier that takes every listener: these clients are the ones to be refused.
mod anyone {
    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::crypto::CryptoProvider;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use rustls::{DigitallySignedStruct, Error, SignatureScheme};
    use std::sync::Arc;

    #[derive(Debug)]
    pub struct Anyone(pub Arc<CryptoProvider>);

    impl ServerCertVerifier for Anyone {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, Error> {
            Ok(ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.0.signature_verification_algorithms.supported_schemes()
        }
    }
}

#[tokio::test]
async fn a_client_without_a_certificate_is_refused() {
    let ca = Ca::new(CELL);
    let (listening, _echo) = echoing(&ca).await;
    let error = try_tls(listening.address, &ca, &rustls::version::TLS13, None).await;
    assert!(error.to_string().contains("CertificateRequired"), "{error}");
    until(|| listening.parts.counts.refused_for("certificate-missing") == 1).await;
}

#[tokio::test]
async fn an_older_tls_is_refused_with_the_best_certificate() {
    let ca = Ca::new(CELL);
    let (listening, _echo) = echoing(&ca).await;
    let files = ca.files("a", Roles::ALL);
    let error = try_tls(listening.address, &ca, &rustls::version::TLS12, Some(&files)).await;
    assert!(error.to_string().contains("ProtocolVersion"), "{error}");
    until(|| listening.parts.counts.refused_for("tls-version") == 1).await;
}

#[tokio::test]
async fn noise_is_closed_and_nobody_else_notices() {
    let ca = Ca::new(CELL);
    let (listening, echo) = echoing(&ca).await;
    let record = |length: u16| [&[0x16, 3, 1][..], &length.to_be_bytes(), &[1, 0xff, 0xff, 0xff]].concat();
    let noises = [
        vec![0x16; 100],
        [record(0x3fff), vec![0; 2 << 20]].concat(),
        [record(0xffff), vec![0; 2 << 20]].concat(),
        [vec![0x16, 3, 3, 0, 2], vec![0xff; 200_000]].concat(),
        vec![0; 100],
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0xff; 2 << 20],
    ];
    let count = noises.len() as u64;
    for noise in noises {
        let mut stream = TcpStream::connect(listening.address).await.unwrap();
        // The other side closes before it has read so much.
        let _ = stream.write_all(&noise).await;
        let _ = stream.shutdown().await;
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
        assert!(rest.len() < 1_000, "an alert or a refusal at most");
    }
    until(|| listening.parts.counts.refused.get() == count).await;
    assert!(echo.seen.lock().unwrap().is_empty());
    let good = MeshParts {
        tls: Some(ca.tls("a", Roles::SCHEDULER)),
        ..parts(None, facts("a", 2, Roles::SCHEDULER), &[])
    };
    connected(&dial(Arc::new(good), listening.address.to_string())).await;
}

#[tokio::test]
async fn a_handshake_that_is_not_finished_in_time_is_closed() {
    let ca = Ca::new(CELL);
    let hand = Arc::new(HandClock::default());
    let plain = parts(Some(CELL), facts("listener", 1, Roles::STORE), &[]);
    let listening = listen(MeshParts {
        tls: Some(ca.tls("listener", Roles::STORE)),
        clock: hand.clone() as SharedClock,
        ..plain
    })
    .await;
    let mut silent = Vec::new();
    for start in [&b""[..], &[0x16], &[0x16, 3, 1, 2, 0], &[0]] {
        let mut stream = TcpStream::connect(listening.address).await.unwrap();
        stream.write_all(start).await.unwrap();
        silent.push(stream);
    }
    until(|| hand.sleepers() >= silent.len()).await;
    const { assert!(GREETING_MS <= 10_000) };
    hand.advance(Span::from_millis(GREETING_MS));
    for mut stream in silent {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    }
    until(|| listening.parts.counts.refused.get() == 4).await;
    assert_eq!(listening.parts.counts.refused_for("late"), 4);
}
