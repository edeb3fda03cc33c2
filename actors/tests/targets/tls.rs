//! TLS towards targets: a certificate of a private root passes where that root is trusted and nowhere else.
//!
//! `data/test-only-*.der` is a self-signed pair for `localhost` and `127.0.0.1`, made by
//! `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 36500` and known to everyone.

use std::sync::Arc;

use fencepost::targets::connector::Connector;
use fencepost::targets::tls::TlsClient;
use fencepost::targets::{CancelSignal, HandlerRegistry, TargetRunner, TargetsConfig};
use fencepost_core::job::{EffectProof, Outcome, RetryAdvice, Verdict};
use fencepost_core::target::{HttpTarget, Target};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::attempt;
use crate::peers::Scripted;

const CERTIFICATE: &[u8] = include_bytes!("data/test-only-certificate.der");
const KEY: &[u8] = include_bytes!("data/test-only-key.der");

/// Answers 204 to one secure request after another; stops with its handle.
async fn secure_peer() -> (u16, JoinHandle<()>) {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(KEY));
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(CERTIFICATE)], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let accepting = tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(tcp).await else {
                continue;
            };
            let mut chunk = [0; 8192];
            let _count = stream.read(&mut chunk).await;
            stream
                .write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
                .await
                .ok();
            stream.shutdown().await.ok();
        }
    });
    (port, accepting)
}

fn trusting() -> TlsClient {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from(CERTIFICATE)).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsClient::with_config(Arc::new(config))
}

async fn get(tls: TlsClient, url: &str) -> Outcome {
    let config = TargetsConfig::for_dev();
    let connector = Connector::with_resolver(config.connect.clone(), Scripted::new(&[&["127.0.0.1"]])).with_tls(tls);
    let runner = TargetRunner::with_connector(config, HandlerRegistry::default(), connector);
    let target = HttpTarget {
        method: "GET".into(),
        url: url.into(),
        headers: vec![],
    };
    runner.run(attempt(Target::Http(target)), CancelSignal::never()).await
}

fn refused(outcome: &Outcome) {
    assert!(
        outcome.error.as_deref().unwrap().starts_with("tls_failed: "),
        "{outcome:?}"
    );
    let verdict = Verdict::Failed {
        retry: RetryAdvice::ByPolicy,
        effect: EffectProof::NoEffect,
    };
    assert_eq!(outcome.verdict, verdict);
}

#[tokio::test]
async fn a_trusted_certificate_passes_by_name_and_by_address() {
    let (port, accepting) = secure_peer().await;
    for host in ["localhost", "127.0.0.1"] {
        let outcome = get(trusting(), &format!("https://{host}:{port}/")).await;
        assert_eq!(outcome.verdict, Verdict::Succeeded, "{outcome:?}");
    }
    accepting.abort();
}

#[tokio::test]
async fn an_unknown_root_a_wrong_name_and_no_tls_at_all_prove_no_effect() {
    let (port, accepting) = secure_peer().await;
    refused(&get(TlsClient::system(), &format!("https://localhost:{port}/")).await);
    refused(&get(trusting(), &format!("https://other.example:{port}/")).await);
    accepting.abort();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let accepting = tokio::spawn(async move {
        let (mut plain, _) = listener.accept().await.unwrap();
        plain.write_all(b"HTTP/1.1 400 no TLS here\r\n\r\n").await.ok();
    });
    refused(&get(trusting(), &format!("https://localhost:{port}/")).await);
    accepting.await.unwrap();
}
