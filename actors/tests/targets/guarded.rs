//! The connector's guard: spellings, names that lead inside, rebinding, own ports, proxy variables.

use std::process::Command;
use std::sync::Arc;

use fencepost::targets::address::{AddressPolicy, AddressRange};
use fencepost::targets::connector::{ConnectPolicy, Resolve};
use fencepost::targets::{CancelSignal, HandlerRegistry, TargetRunner, TargetsConfig};
use fencepost_core::job::{EffectProof, Outcome, RetryAdvice, Verdict};
use fencepost_core::target::{HttpTarget, Target};

use crate::attempt;
use crate::peers::{Peer, Scripted};

fn get(url: &str) -> Target {
    Target::Http(HttpTarget {
        method: "GET".into(),
        url: url.into(),
        headers: vec![],
    })
}

async fn call(config: TargetsConfig, resolver: Arc<dyn Resolve>, url: &str) -> Outcome {
    let runner = TargetRunner::with_resolver(config, HandlerRegistry::default(), resolver);
    runner.run(attempt(get(url)), CancelSignal::never()).await
}

fn code(outcome: &Outcome) -> &str {
    outcome
        .error
        .as_deref()
        .unwrap_or_default()
        .split(':')
        .next()
        .unwrap_or_default()
}

fn not_allowed(outcome: &Outcome) {
    assert_eq!(code(outcome), "address_not_allowed", "{outcome:?}");
    let verdict = Verdict::Failed {
        retry: RetryAdvice::ByPolicy,
        effect: EffectProof::NoEffect,
    };
    assert_eq!(outcome.verdict, verdict);
}

#[tokio::test]
async fn no_spelling_reaches_loopback() {
    let peer = Peer::saying("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let port = peer.address.port();
    for host in [
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0x0.0x0.0x1",
        "0177.0.0.1",
        "017700000001",
        "127.1",
        "127.0.0.1.",
        "\u{2460}\u{2461}\u{2466}.\u{24ea}.\u{24ea}.\u{2460}",
        "127\u{3002}0\u{3002}0\u{3002}1",
        "%31%32%37.0.0.1",
        "a@127.0.0.1",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "0",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[2002:7f00:1::]",
        "localhost",
        "LOCALHOST",
        "127.255.255.254",
    ] {
        let runner = TargetRunner::new(TargetsConfig::default(), HandlerRegistry::default());
        let outcome = runner
            .run(attempt(get(&format!("http://{host}:{port}/"))), CancelSignal::never())
            .await;
        let refused = ["address_not_allowed", "url_host", "url_characters", "url_user_info"];
        assert!(refused.contains(&code(&outcome)), "{host}: {outcome:?}");
    }
    assert_eq!(peer.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn names_that_lead_inside_are_refused_also_when_mixed() {
    let config = TargetsConfig::default();
    for answers in [
        &["10.0.0.1"][..],
        &["169.254.169.254"],
        &["fd00:ec2::254"],
        &["8.8.8.8", "10.0.0.1"],
        &["2606:4700::1111", "::1"],
        &["::ffff:169.254.169.254"],
        &["0.0.0.0"],
    ] {
        not_allowed(&call(config.clone(), Scripted::new(&[answers]), "http://innocent.example/").await);
    }
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_judged_each_time() {
    let peer = Peer::saying("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let config = TargetsConfig::for_dev();
    let resolver = Scripted::new(&[&["127.0.0.1"], &["169.254.169.254"]]);
    let url = format!("http://rebind.example:{}/", peer.address.port());
    assert_eq!(
        call(config.clone(), resolver.clone(), &url).await.verdict,
        Verdict::Succeeded
    );
    not_allowed(&call(config, resolver, &url).await);
    assert_eq!(peer.requests().len(), 1);
}

#[tokio::test]
async fn a_name_with_no_or_too_many_addresses_is_refused() {
    let none = call(TargetsConfig::for_dev(), Scripted::new(&[&[]]), "http://a.example/").await;
    assert_eq!(code(&none), "address_count");
    let many = vec!["127.0.0.1"; 65];
    let many = call(TargetsConfig::for_dev(), Scripted::new(&[&many]), "http://a.example/").await;
    assert_eq!(code(&many), "address_count");
}

#[tokio::test]
async fn the_resolvers_port_is_not_believed() {
    struct OtherPort(std::net::SocketAddr);
    impl Resolve for OtherPort {
        fn resolve<'a>(
            &'a self,
            _: &'a str,
            _: u16,
        ) -> futures_util::future::BoxFuture<'a, std::io::Result<Vec<std::net::SocketAddr>>> {
            let address = self.0;
            Box::pin(async move { Ok(vec![address]) })
        }
    }
    let (wanted, other) = (Peer::saying("HTTP/1.1 204 X\r\n\r\n").await, Peer::saying("").await);
    let url = format!("http://a.example:{}/", wanted.address.port());
    let outcome = call(TargetsConfig::for_dev(), Arc::new(OtherPort(other.address)), &url).await;
    assert_eq!(outcome.verdict, Verdict::Succeeded);
    assert_eq!((wanted.requests().len(), other.requests().len()), (1, 0));
}

#[tokio::test]
async fn own_ports_are_refused_even_where_loopback_is_allowed() {
    let peer = Peer::saying("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let config = TargetsConfig::for_dev().with_own_ports([peer.address.port()]);
    let outcome = call(config, Scripted::new(&[&["127.0.0.1"]]), &peer.url()).await;
    assert_eq!(code(&outcome), "port_not_allowed");
    assert_eq!(
        outcome.verdict,
        Verdict::Failed {
            retry: RetryAdvice::Stop,
            effect: EffectProof::NoEffect
        }
    );
    assert!(peer.requests().is_empty());
}

/// The address this host would use towards the world, if it has one; asking sends nothing.
fn own_address() -> Option<std::net::IpAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("8.8.8.8:9").ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[tokio::test]
async fn an_address_of_this_host_is_refused_until_it_is_named_itself() {
    let Some(own) = own_address().filter(|ip| !ip.is_loopback()) else {
        // A host without a route has no address of its own beyond loopback, which other tests cover.
        return;
    };
    let url = format!("http://{own}:9999/");
    not_allowed(&call(TargetsConfig::default(), Scripted::new(&[&[]]), &url).await);
    let named: AddressRange = format!("{own}/32").parse().unwrap();
    let allowed = call(TargetsConfig::default().allowing([named]), Scripted::new(&[&[]]), &url).await;
    assert_eq!(code(&allowed), "connection_failed");
}

#[test]
fn dev_opens_loopback_only() {
    let dev = TargetsConfig::for_dev();
    assert_eq!(
        dev.connect,
        ConnectPolicy {
            addresses: AddressPolicy::allowing_loopback(),
            own_ports: Default::default()
        }
    );
    assert!(dev.commands && !TargetsConfig::default().commands);
}

/// Runs the test below in a process whose environment names a proxy.
#[test]
fn proxy_variables_change_nothing() {
    let test = "guarded::a_direct_call_under_proxy_variables";
    let mut inner = Command::new(std::env::current_exe().unwrap());
    inner.args(["--exact", test]).env("FENCEPOST_TEST_PROXY", "1");
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy"] {
        inner.env(name, "http://127.0.0.1:1/");
    }
    let output = inner.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}

#[tokio::test]
async fn a_direct_call_under_proxy_variables() {
    let peer = Peer::saying("HTTP/1.1 204 X\r\n\r\n").await;
    let runner = TargetRunner::new(TargetsConfig::for_dev(), HandlerRegistry::default());
    let outcome = runner.run(attempt(get(&peer.url())), CancelSignal::never()).await;
    assert_eq!(outcome.verdict, Verdict::Succeeded);
    assert_eq!(peer.requests().len(), 1);
}
