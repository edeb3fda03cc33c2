//! Who may use the services of workers and the board, over real sockets between two nodes.
//!
//! Owns: access, and what is refused and counted. Must never: start an owner. Next: `work_messages.rs`,
//! `../process/workers.rs` (whole processes).

use crate::pair::{CELL, Echo, Listening, facts, listen, parts};
use fencepost::clock::{SharedClock, SystemClock};
use fencepost::cluster::board::{BoardService, board_over};
use fencepost::cluster::message::{BoardAnswer, BoardCall};
use fencepost::cluster::order::decode_order;
use fencepost::cluster::report::encode_report;
use fencepost::cluster::work::ReportService;
use fencepost::mesh::Roles;
use fencepost::mesh::dial::dial;
use fencepost::mesh::envelope::{BOARD, ORDERS, REPORTS};
use fencepost::mesh::peer::Peer;
use fencepost::shell::messages::FromWorker;
use fencepost_core::coordinator::board::{Session, ShardReport};
use fencepost_core::ids::{Epoch, ShardId, WorkerId};
use fencepost_core::name::Name;
use fencepost_core::time::Span;
use fencepost_core::worker::io::WorkerInput;
use std::sync::Arc;

async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        tokio::task::yield_now().await;
    }
}

fn worker(node: &str, boot: u64) -> WorkerId {
    WorkerId {
        node: Name::new(node).unwrap(),
        boot,
    }
}

fn hand_back(worker: &WorkerId) -> Vec<u8> {
    encode_report(ShardId(1), worker, &FromWorker::HandBack { items: Vec::new() })
}

/// An owner of shards that has none yet, and a worker's node that shows which orders reached it.
async fn owner_and_worker(roles: Roles) -> (Listening, Arc<ReportService>, Arc<Echo>, Peer) {
    let reports = Arc::new(ReportService::default());
    let owner = facts("owner", 1, Roles::SCHEDULER);
    let listening = listen(parts(Some(CELL), owner, &[(REPORTS, reports.clone())])).await;
    let orders = Echo::new(0);
    let dialer = parts(None, facts("w1", 2, roles), &[(ORDERS, orders.clone())]);
    let peer = dial(Arc::new(dialer), listening.address.to_string());
    until(|| peer.facts().is_some()).await;
    (listening, reports, orders, peer)
}

#[tokio::test]
async fn f14_a_report_that_finds_no_shard_is_answered_over_its_own_connection() {
    let (_listening, reports, orders, peer) = owner_and_worker(Roles::WORKER).await;
    assert!(peer.tell(REPORTS, hand_back(&worker("w1", 7))));
    until(|| orders.told.lock().unwrap().len() == 1).await;
    let told = decode_order(&orders.told.lock().unwrap()[0]).unwrap();
    assert!(matches!(told, WorkerInput::ShardAway(ShardId(1))), "{told:?}");
    assert_eq!(reports.counts.dropped.get(), 1, "and the worker says it again");
}

#[tokio::test]
async fn f14_a_report_of_no_kind_or_in_another_name_is_refused_and_counted() {
    let (_listening, reports, orders, peer) = owner_and_worker(Roles::WORKER).await;
    let mut unknown = hand_back(&worker("w1", 7));
    let kind = unknown.len() - 2;
    unknown[kind] = 99;
    assert!(peer.tell(REPORTS, unknown));
    assert!(peer.tell(REPORTS, vec![0xff; 64]));
    until(|| reports.counts.unreadable.get() == 2).await;
    assert!(peer.tell(REPORTS, hand_back(&worker("w2", 7))));
    until(|| reports.counts.foreign.get() == 1).await;
    assert!(peer.tell(REPORTS, hand_back(&worker("w1", 7))));
    assert!(peer.tell(REPORTS, hand_back(&worker("w1", 8))), "a second worker");
    until(|| reports.counts.foreign.get() == 2).await;
    assert!(peer.facts().is_some(), "never fatal for the connection");
    until(|| !orders.told.lock().unwrap().is_empty()).await;
    assert_eq!(reports.counts.dropped.get(), 1, "only one of them was for a shard");
}

#[tokio::test]
async fn a_node_without_the_role_of_a_worker_reports_nothing() {
    let (listening, reports, _orders, peer) = owner_and_worker(Roles::SCHEDULER.with(Roles::GATEWAY)).await;
    assert!(peer.tell(REPORTS, hand_back(&worker("w1", 7))));
    until(|| listening.parts.counts.forbidden.get() == 1).await;
    assert_eq!(reports.counts.dropped.get(), 0);
}

fn session(node: &str, boot: u64) -> Session {
    Session {
        node: Name::new(node).unwrap(),
        boot,
        beat: 1,
        takes: false,
        coordinates: None,
        decided: 0,
        shards: Vec::new(),
        address: "".into(),
    }
}

#[tokio::test]
async fn a_worker_is_on_the_board_and_can_say_of_nothing_that_it_owns_or_decides_it() {
    let clock: SharedClock = Arc::new(SystemClock::new());
    let board = Arc::new(BoardService::new(1, Span::from_secs(5), clock));
    let listening = listen(parts(Some(CELL), facts("store", 1, Roles::STORE), &[(BOARD, board)])).await;
    let dialer = Arc::new(parts(None, facts("w1", 2, Roles::WORKER), &[]));
    let board = board_over(dial(dialer, listening.address.to_string()));
    let post = |session| BoardCall::Post {
        session,
        seen: 0,
        wait_ms: 0,
    };
    let plain = session("w1", 2);
    let lies = [
        Session {
            takes: true,
            ..plain.clone()
        },
        Session {
            coordinates: Some(Epoch(9)),
            ..plain.clone()
        },
        Session {
            shards: vec![ShardReport::default()],
            ..plain.clone()
        },
        session("someone", 2),
    ];
    for lie in lies {
        assert_eq!(board(post(lie)).await, Ok(BoardAnswer::NotUnderstood));
    }
    let taken = board(post(plain)).await;
    assert!(
        matches!(&taken, Ok(BoardAnswer::Taken(view)) if view.sessions.len() == 1),
        "{taken:?}"
    );
}
