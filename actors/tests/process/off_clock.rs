//! A real node whose clock is not that of its store: it takes and gives no work, says so, and goes on by itself.
//!
//! Owns: a store in the test's own process, whose wall clock the test sets back. Next: `split.rs`,
//! `../../src/node/trust.rs`.

use crate::pace::{until, until_true};
use crate::server::Place;
use crate::sink::{Say, Sink};
use crate::split::{ROLES, serve_here};
use fencepost::api::token::{Kept, read_or_make};
use fencepost::clock::{SharedClock, SystemClock};
use fencepost::cluster::board::BoardService;
use fencepost::mesh::envelope::{BOARD, STORE};
use fencepost::mesh::store_link::StoreService;
use fencepost::mesh::{MeshSecret, Service};
use fencepost_core::time::{Monotonic, Span, StoreTime};
use fencepost_storage::model::ModelStore;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// The machine's clock, set back by so many microseconds.
struct SetBack(SharedClock, Arc<AtomicI64>);

impl fencepost_storage::clock::Clock for SetBack {
    fn wall(&self) -> StoreTime {
        StoreTime(self.0.wall() - self.1.load(Ordering::SeqCst))
    }

    fn mono(&self) -> Monotonic {
        self.0.mono()
    }
}

fn store_with(secret: MeshSecret, back: &Arc<AtomicI64>) -> SocketAddr {
    let clock: SharedClock = Arc::new(SystemClock::new());
    let sleeper = clock.clone();
    let ticks = Arc::new(SetBack(clock.clone(), back.clone()));
    let store = Arc::new(ModelStore::new(ticks, Arc::new(move |span| sleeper.sleep(span))));
    let board: Arc<dyn Service> = Arc::new(BoardService::new(1, Span::from_secs(1), clock.clone()));
    let store: Arc<dyn Service> = Arc::new(StoreService::new(store, 1));
    serve_here(secret, clock, BTreeMap::from([(STORE, store), (BOARD, board)]))
}

#[test]
fn a_node_whose_clock_is_not_its_stores_begins_nothing_until_it_is_again() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("mesh-secret");
    let back = Arc::new(AtomicI64::new(0));
    let at = store_with(
        MeshSecret::of(&read_or_make(&Kept::MESH_SECRET, &secret, [1, 2]).unwrap()),
        &back,
    )
    .to_string();
    let secret = secret.display().to_string();
    let words = ["--roles", ROLES, "--store-at", &at, "--mesh-secret", &secret];
    let mut place = Place::new(&[&words[..], &["--clock-offset-max", "2s"]].concat());
    let server = place.start();
    let sink = Sink::start(|_| Say::Status(200, ""));
    let mut api = server.api();
    let job = json!({"target": {"type": "http", "url": sink.url("/")}});
    let made = |api: &mut crate::api::Api| {
        api.post("/v1/jobs", &job).expect(201)["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let first = made(&mut api);
    let state = |api: &mut crate::api::Api, id: &str| api.get(&format!("/v1/jobs/{id}")).expect(200);
    until_true("the first runs", || state(&mut api, &first)["state"] == "succeeded");
    let facts: Value = api.get("/v1/facts").expect(200);
    assert_eq!(facts["clock_holds_back"], false, "{facts}");
    assert!(
        facts["clock_offset"]["low_ms"].as_i64().unwrap().abs() < 2_000,
        "{facts}"
    );

    // Store time stands until its clock is past it again: the node's gets ever further ahead.
    back.store(3_600_000_000, Ordering::SeqCst);
    let facts = until("the node holds back", || {
        let facts = api.get("/v1/facts").expect(200);
        (facts["clock_holds_back"] == true).then_some(facts)
    });
    assert!(facts["clock_offset"]["high_ms"].as_i64().unwrap() > 2_000, "{facts}");
    let page = api.get("/metrics");
    assert!(
        page.status == 200 && server.said().contains("takes and gives no work"),
        "{}",
        server.said()
    );
    let waits = made(&mut api);
    let doctor = Command::new(env!("CARGO_BIN_EXE_fencepost"))
        .args(["doctor", "--server", &server.url(), "--data"])
        .arg(place.data())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(
        said.contains("clock offset") && said.contains("takes and gives no work"),
        "{said}"
    );
    assert_eq!(state(&mut api, &waits)["state"], "ready");

    back.store(0, Ordering::SeqCst);
    until_true("it goes on by itself", || {
        state(&mut api, &waits)["state"] == "succeeded"
    });
}
