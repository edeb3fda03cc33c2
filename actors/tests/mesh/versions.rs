//! Two nodes of which one is a version behind: they speak the older protocol, or are refused by name.
//!
//! Owns: the older node in this process, which is one that greets with the first version only. Next:
//! `../process/versions.rs` (whole processes), `../../src/mesh/greeting.rs`.

use crate::cluster_messages::requests;
use crate::pair::{CELL, ECHO, Echo, Listening, facts, listen, parts};
use fencepost::clock::{SharedClock, SystemClock};
use fencepost::cluster::board::{BoardService, board_over};
use fencepost::cluster::message::{BoardAnswer, BoardCall};
use fencepost::cluster::request::decode_request;
use fencepost::cluster::route::Router;
use fencepost::gateway::ShardRequest;
use fencepost::mesh::dial::dial;
use fencepost::mesh::envelope::{BOARD, REQUESTS, ServiceId};
use fencepost::mesh::{MeshParts, Roles, Service, Versions};
use fencepost_core::coordinator::board::Session;
use fencepost_core::ids::ShardId;
use fencepost_core::level::{self, Level};
use fencepost_core::name::Name;
use fencepost_core::time::{Monotonic, Span, StoreTime};
use fencepost_storage::model::ModelStore;
use futures_util::FutureExt;
use std::sync::Arc;

const WAIT: Span = Span::from_secs(20);

async fn listener(versions: Versions, services: &[(ServiceId, Arc<dyn Service>)]) -> Listening {
    let parts = parts(Some(CELL), facts("listener", 1, Roles::STORE), services);
    listen(MeshParts { versions, ..parts }).await
}

fn dialer(versions: Versions) -> Arc<MeshParts> {
    let parts = parts(None, facts("dialer", 2, Roles::SCHEDULER), &[]);
    Arc::new(MeshParts { versions, ..parts })
}

#[tokio::test]
async fn two_nodes_speak_the_newest_version_that_both_know() {
    for (theirs, ours, spoken) in [(1, 2, 1), (2, 1, 1), (1, 1, 1), (2, 2, 2)] {
        let echo = Echo::new(9);
        let listening = listener(Versions::up_to(theirs), &[(ECHO, echo)]).await;
        let peer = dial(dialer(Versions::up_to(ours)), listening.address.to_string());
        assert_eq!(peer.call(ECHO, b"hello".to_vec(), WAIT).await, Ok(b"hello".to_vec()));
        assert_eq!(peer.protocol(), Some(spoken), "{theirs} and {ours}");
    }
}

#[tokio::test]
async fn who_does_not_know_the_cells_level_is_refused_before_it_can_call() {
    let echo = Echo::new(9);
    let listening = listener(Versions::up_to(2).at_least(|| 2), &[(ECHO, echo.clone())]).await;
    let peer = dial(dialer(Versions::up_to(1)), listening.address.to_string());
    let called = peer.call(ECHO, b"x".to_vec(), WAIT);
    while listening.parts.counts.refused_for("protocol-version") == 0 {
        tokio::task::yield_now().await;
    }
    peer.close();
    assert!(called.await.is_err());
    assert!(echo.seen.lock().unwrap().is_empty());
    assert_eq!(peer.protocol(), None);
    let newer = dial(dialer(Versions::up_to(2)), listening.address.to_string());
    assert_eq!(newer.call(ECHO, b"x".to_vec(), WAIT).await, Ok(b"x".to_vec()));
}

/// A node of this version calls before there is a connection: what it says takes the form of the one that comes.
#[tokio::test]
async fn a_call_that_waits_for_a_connection_is_said_in_the_version_of_that_connection() {
    let delayed = requests().remove(0);
    for (theirs, is_delay_said) in [(1, false), (2, true)] {
        let echo = Echo::new(9);
        let parts = parts(
            Some(CELL),
            facts("owner", 1, Roles::SCHEDULER),
            &[(REQUESTS, echo.clone())],
        );
        let versions = Versions::up_to(theirs);
        let listening = listen(MeshParts { versions, ..parts }).await;
        let router = Router::new(dialer(Versions::up_to(2)));
        // The echo is no reply; what it was told is looked at.
        let reply = router.call(&listening.address.to_string().into(), ShardId(3), &delayed);
        assert_eq!(reply.await.unwrap_err().code, "outcome_unknown");
        let told = echo.seen.lock().unwrap().remove(0);
        let Ok((ShardId(3), ShardRequest::CreateJobs(items))) = decode_request(&told) else {
            panic!("not understood: {told:?}");
        };
        assert_eq!(items[0].delay.is_some(), is_delay_said, "to a node that knows {theirs}");
    }
}

struct Still;

impl fencepost_storage::clock::Clock for Still {
    fn wall(&self) -> StoreTime {
        StoreTime(1_700_000_000_000_000)
    }

    fn mono(&self) -> Monotonic {
        Monotonic(0)
    }
}

/// The board of a store, as a node of this version finds it.
async fn board_says(version: u16) -> (Result<BoardAnswer, String>, Result<BoardAnswer, String>) {
    let clock: SharedClock = Arc::new(SystemClock::new());
    let store = Arc::new(ModelStore::new(Arc::new(Still), Arc::new(|_| async {}.boxed())));
    let board = Arc::new(BoardService::beside(1, Span::from_secs(5), clock, Some(store)));
    let listening = listener(Versions::default(), &[(BOARD, board)]).await;
    let peer = dial(dialer(Versions::up_to(version)), listening.address.to_string());
    while peer.protocol().is_none() {
        tokio::task::yield_now().await;
    }
    let (board, node) = (board_over(peer), Name::new("dialer").unwrap());
    let session = Session {
        node: node.clone(),
        boot: 2,
        beat: 1,
        takes: false,
        coordinates: None,
        decided: 0,
        shards: Vec::new(),
        address: "".into(),
        level: level::NEWEST,
    };
    let posted = board(BoardCall::Post {
        session,
        seen: 0,
        wait_ms: 0,
    });
    (posted.await, board(BoardCall::Time { node, boot: 2 }).await)
}

#[tokio::test]
async fn the_board_takes_a_node_of_the_version_before_and_notes_that_it_is_one() {
    for version in [1, 2] {
        let (taken, time) = board_says(version).await;
        let Ok(BoardAnswer::Taken(view)) = taken else {
            panic!("{taken:?}");
        };
        assert_eq!(view.sessions[0].level, Level(version), "what is not said is the first");
        match version {
            1 => assert!(time.unwrap_err().contains("has no such call")),
            _ => assert_eq!(time, Ok(BoardAnswer::Stated(StoreTime(1_700_000_000_000_000)))),
        }
    }
}
