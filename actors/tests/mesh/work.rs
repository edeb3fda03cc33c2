//! Who may use the services of workers and the board, over real sockets between two nodes.
//!
//! Owns: access, and what is refused and counted. Must never: start an owner. Next: `work_messages.rs`,
//! `../process/workers.rs` (whole processes).

use crate::pair::{CELL, Echo, Listening, facts, listen, parts};
use crate::tls::until;
use fencepost::clock::{SharedClock, SystemClock};
use fencepost::cluster::board::{BoardService, board_over};
use fencepost::cluster::far_workers::ReportService;
use fencepost::cluster::message::{BoardAnswer, BoardCall};
use fencepost::cluster::near_workers::OrderService;
use fencepost::cluster::order::{decode_order, encode_order};
use fencepost::cluster::report::{decode_report, encode_gone, encode_report};
use fencepost::mesh::Roles;
use fencepost::mesh::dial::{dial, dial_for};
use fencepost::mesh::envelope::{BOARD, ORDERS, REPORTS};
use fencepost::mesh::peer::Peer;
use fencepost::shell::messages::FromWorker;
use fencepost_core::coordinator::board::{Session, ShardReport};
use fencepost_core::ids::{Epoch, JobId, ShardId, ShardOwner, Slot, Token, WorkerId};
use fencepost_core::limits::LINK_WORKERS_MAX;
use fencepost_core::name::Name;
use fencepost_core::time::Span;
use fencepost_core::worker::io::WorkerInput;
use std::sync::{Arc, Mutex};

/// The worker of a node's start.
fn worker(node: &str, start: u64) -> WorkerId {
    WorkerId::of_start(Name::new(node).unwrap(), start << 40)
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
    let (to, told) = decode_order(&orders.told.lock().unwrap()[0]).unwrap();
    assert!(matches!(told, WorkerInput::ShardAway(ShardId(1))), "{told:?}");
    assert_eq!(to, None, "the node's own");
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
    assert!(peer.tell(REPORTS, hand_back(&worker("w1", 8))), "of another start");
    until(|| reports.counts.foreign.get() == 2).await;
    assert!(peer.facts().is_some(), "never fatal for the connection");
    until(|| !orders.told.lock().unwrap().is_empty()).await;
    assert_eq!(reports.counts.dropped.get(), 1, "only one of them was for a shard");
}

#[tokio::test]
async fn f14_a_connection_speaks_for_a_nodes_own_worker_and_for_the_claims_beside_it() {
    let (listening, reports, orders, peer) = owner_and_worker(Roles::GATEWAY).await;
    let own = worker("w1", 7);
    let said = [own.clone(), own.beside(1), own.beside(2)];
    for each in &said {
        assert!(peer.tell(REPORTS, hand_back(each)));
    }
    until(|| orders.told.lock().unwrap().len() == 3).await;
    let told = orders.told.lock().unwrap().clone();
    let to: Vec<_> = told.iter().map(|bytes| decode_order(bytes).unwrap().0).collect();
    assert_eq!(to, [None, Some(own.beside(1)), Some(own.beside(2))], "each is answered");
    assert_eq!(reports.link_count(), 3);
    assert!(peer.tell(REPORTS, encode_gone(&own.beside(1))));
    until(|| reports.link_count() == 2).await;
    peer.close();
    until(|| reports.link_count() == 0).await;
    assert_eq!(reports.counts.foreign.get() + listening.parts.counts.forbidden.get(), 0);
}

#[tokio::test]
async fn p7_the_claims_of_one_connection_are_bounded_and_the_silent_go_first() {
    let (_listening, reports, orders, peer) = owner_and_worker(Roles::WORKER).await;
    let own = worker("w1", 7);
    let count = LINK_WORKERS_MAX as u64 + 10;
    for number in 1..=count {
        assert!(peer.tell(REPORTS, hand_back(&own.beside(number))));
        // The first one is heard again and again: it is none of the silent.
        assert!(peer.tell(REPORTS, hand_back(&own.beside(1))));
        until(|| orders.told.lock().unwrap().len() as u64 == 2 * number).await;
    }
    assert_eq!(reports.link_count(), LINK_WORKERS_MAX);
    orders.told.lock().unwrap().clear();
    assert!(peer.tell(REPORTS, hand_back(&own.beside(1))));
    until(|| !orders.told.lock().unwrap().is_empty()).await;
    assert_eq!(reports.link_count(), LINK_WORKERS_MAX);
}

/// The node of a claim that has ended: what an owner says to it all the same.
#[tokio::test]
async fn f14_a_grant_for_a_claim_that_is_gone_is_given_back_and_its_owner_is_told() {
    let orders = Arc::new(OrderService::default());
    let given: Arc<Mutex<Vec<(JobId, Token)>>> = Arc::default();
    let taken = given.clone();
    orders.give_back_by(Box::new(move |items| taken.lock().unwrap().extend(items)));
    let node = facts("w1", 1, Roles::ALL);
    let listening = listen(parts(Some(CELL), node, &[(ORDERS, orders.clone())])).await;
    let reports = Echo::new(0);
    let owner = parts(None, facts("owner", 2, Roles::SCHEDULER), &[(REPORTS, reports.clone())]);
    let peer = dial_for(Arc::new(owner), listening.address.to_string(), Roles::WORKER);
    until(|| peer.facts().is_some()).await;
    let gone = worker("w1", 7).beside(4);
    let from = ShardOwner {
        shard: ShardId(3),
        ..ShardOwner::default()
    };
    let asked = WorkerInput::Reconcile {
        from,
        items: vec![(id(1), Token::default()), (id(2), Token::default())],
    };
    assert!(peer.tell(ORDERS, encode_order(&gone, &asked).unwrap()));
    until(|| reports.told.lock().unwrap().len() == 1).await;
    let told = reports.told.lock().unwrap().clone();
    let (_, who, nothing) = decode_report(&told[0]).unwrap();
    assert!(who == gone && nothing.is_none(), "it is gone");
    until(|| given.lock().unwrap().len() == 2).await;
    assert_eq!(
        given.lock().unwrap()[..],
        [(id(1), Token::default()), (id(2), Token::default())]
    );
    assert_eq!(orders.counts.gone.get(), 1);
}

fn id(number: u8) -> JobId {
    JobId::fresh(Slot::new(7).unwrap(), [number; 14])
}

#[tokio::test]
async fn a_node_without_workers_and_claims_reports_nothing() {
    let (listening, reports, _orders, peer) = owner_and_worker(Roles::SCHEDULER.with(Roles::COORDINATOR)).await;
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
        level: fencepost_core::level::FIRST,
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
