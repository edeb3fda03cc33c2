//! Calls between two nodes: order, breaks, refusals, bounds.

use crate::pair::{CELL, ECHO, Echo, echo_pair, facts, listen, parts};
use crate::proxy::Proxy;
use crate::tls::until;
use fencepost::mesh::Roles;
use fencepost::mesh::dial::dial;
use fencepost::mesh::envelope::{STORE, ServiceId};
use fencepost::mesh::peer::{CallError, Peer};
use fencepost_core::time::Span;
use std::sync::Arc;

const WAIT: Span = Span::from_secs(20);

/// Until a call goes through.
async fn connected(peer: &Peer) {
    assert_eq!(peer.call(ECHO, b"hello".to_vec(), WAIT).await, Ok(b"hello".to_vec()));
}

#[tokio::test]
async fn a_call_is_answered_and_both_sides_know_each_other() {
    let (listening, echo, dialer) = echo_pair(usize::MAX >> 4).await;
    let peer = dial(dialer, listening.address.to_string());
    connected(&peer).await;
    assert_eq!(peer.facts().unwrap().node.as_str(), "listener");
    assert!(peer.tell(ECHO, b"hint".to_vec()));
    until(|| echo.told.lock().unwrap().len() == 1).await;
    assert_eq!(listening.parts.counts.opened.get(), 1);
}

#[tokio::test]
async fn calls_reach_the_service_in_the_order_they_were_made() {
    let (listening, echo, dialer) = echo_pair(usize::MAX >> 4).await;
    let peer = dial(dialer, listening.address.to_string());
    let calls: Vec<_> = (0..3_000_u32)
        .map(|number| peer.call(ECHO, number.to_be_bytes().to_vec(), WAIT))
        .collect();
    for (number, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await, Ok(u32::try_from(number).unwrap().to_be_bytes().to_vec()));
    }
    let seen = echo.seen.lock().unwrap();
    assert!(seen.is_sorted() && seen.len() == 3_000);
}

#[tokio::test]
async fn a_large_call_goes_both_ways() {
    let (listening, _echo, dialer) = echo_pair(usize::MAX >> 4).await;
    let peer = dial(dialer, listening.address.to_string());
    let body: Vec<u8> = (0..20_000_000_u32).map(|byte| (byte % 251) as u8).collect();
    assert!(peer.call(ECHO, body.clone(), WAIT).await == Ok(body));
}

#[tokio::test]
async fn a_break_leaves_sent_calls_without_an_answer_and_the_rest_goes_over_the_next_connection() {
    let (listening, echo, dialer) = echo_pair(1).await;
    let proxy = Proxy::to(listening.address).await;
    let peer = dial(dialer, proxy.address.to_string());
    connected(&peer).await;
    let sent = tokio::spawn(peer.call(ECHO, b"sent".to_vec(), WAIT));
    until(|| echo.seen.lock().unwrap().len() == 2).await;
    proxy.cut();
    assert!(matches!(sent.await.unwrap(), Err(CallError::NoAnswer(_))));
    until(|| peer.facts().is_none()).await;
    let waiting = tokio::spawn(peer.call(ECHO, b"waiting".to_vec(), WAIT));
    echo.may_answer.add_permits(10);
    proxy.heal();
    assert_eq!(waiting.await.unwrap(), Ok(b"waiting".to_vec()));
    let seen = echo.seen.lock().unwrap();
    assert_eq!(
        seen.iter().filter(|body| *body == b"sent").count(),
        1,
        "nothing is sent twice"
    );
}

#[tokio::test]
async fn a_call_that_never_left_says_so() {
    let (listening, _echo, dialer) = echo_pair(0).await;
    let proxy = Proxy::to(listening.address).await;
    proxy.cut();
    let peer = dial(dialer, proxy.address.to_string());
    let answer = peer.call(ECHO, b"x".to_vec(), Span::from_millis(20)).await;
    assert!(matches!(answer, Err(CallError::NotSent(_))), "{answer:?}");
    peer.close();
    let answer = peer.call(ECHO, b"x".to_vec(), WAIT).await;
    assert!(matches!(answer, Err(CallError::NotSent(_))), "{answer:?}");
}

#[tokio::test]
async fn a_call_without_an_answer_in_time_says_that_it_may_have_arrived() {
    let (listening, echo, dialer) = echo_pair(1).await;
    let peer = dial(dialer, listening.address.to_string());
    connected(&peer).await;
    let call = peer.call(ECHO, b"x".to_vec(), Span::from_millis(200));
    assert!(matches!(call.await, Err(CallError::NoAnswer(_))));
    until(|| echo.seen.lock().unwrap().len() == 2).await;
}

#[tokio::test]
async fn unknown_services_and_roles_that_are_not_allowed_are_refused_and_counted() {
    let (listening, echo, dialer) = echo_pair(usize::MAX >> 4).await;
    let peer = dial(dialer, listening.address.to_string());
    let answer = peer.call(ServiceId(9), Vec::new(), WAIT).await;
    assert_eq!(answer, Err(CallError::NoService));
    assert_eq!(peer.call(STORE, Vec::new(), WAIT).await, Err(CallError::NoService));
    connected(&peer).await;
    assert_eq!(listening.parts.counts.unknown.get(), 2);
    let worker = Arc::new(parts(Some(CELL), facts("worker", 3, Roles::WORKER), &[]));
    let peer = dial(worker, listening.address.to_string());
    let answer = peer.call(ECHO, b"scheduler's words".to_vec(), WAIT).await;
    assert_eq!(answer, Err(CallError::NoService));
    peer.tell(ECHO, b"and hints".to_vec());
    until(|| listening.parts.counts.forbidden.get() == 2).await;
    assert!(echo.told.lock().unwrap().is_empty());
    assert_eq!(echo.seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_node_of_another_cell_is_not_taken() {
    let echo = Echo::new(0);
    let listening = listen(parts(Some(CELL), facts("a", 1, Roles::STORE), &[(ECHO, echo)])).await;
    let stranger = Arc::new(parts(Some(CELL + 1), facts("b", 2, Roles::SCHEDULER), &[]));
    let peer = dial(stranger, listening.address.to_string());
    until(|| listening.parts.counts.refused.get() >= 2).await;
    assert!(peer.facts().is_none());
    assert_eq!(listening.parts.counts.opened.get(), 0);
}

#[tokio::test]
async fn a_listener_beyond_loopback_is_refused() {
    use fencepost::mesh::listen::{ListenError, MeshListener};
    let bound = MeshListener::bind("0.0.0.0:0".parse().unwrap()).await;
    assert!(matches!(bound, Err(ListenError::Beyond(_))));
}
