//! A cell in two processes: one holds the store, the other has every other role.
//!
//! Owns: what either one's death may not do. Next: `../../src/process/roles.rs`, `../mesh/` for the same
//! without processes.

use crate::api::Api;
use crate::certs::secured;
use crate::pace::{self, until, until_true};
use crate::server::{Place, Server};
use crate::sink::{Guarded, Say, Sink};
use fencepost::api::token::{Kept, read_or_make};
use fencepost::chance::SystemChance;
use fencepost::clock::{SharedClock, SystemClock};
use fencepost::guard::Answer;
use fencepost::mesh::counts::MeshCounts;
use fencepost::mesh::envelope::{STORE, ServiceId};
use fencepost::mesh::listen::MeshListener;
use fencepost::mesh::peer::Peer;
use fencepost::mesh::store_link::StoreService;
use fencepost::mesh::{MeshParts, MeshSecret, NodeFacts, Roles, Service, Versions};
use fencepost::process::serve::StoreTicks;
use fencepost_core::name::Name;
use fencepost_storage::model::ModelStore;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::Duration;
use tokio::sync::watch;

pub const ROLES: &str = "scheduler,worker,gateway,coordinator";

/// The command of a store process below a folder, with a shard lease of one second.
pub fn store_command(folder: &Path, listen: SocketAddr) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    command.args([
        "serve",
        "--roles",
        "store",
        "--log-level",
        "warn",
        "--shard-lease",
        "1s",
        "--mesh-listen",
    ]);
    command.arg(listen.to_string()).arg("--data").arg(folder.join("store"));
    command
}

/// A store process of this command, and its address; under a certificate or by the secret that it makes.
pub fn store_on(folder: &Path, listen: SocketAddr, is_secured: bool) -> (Server, SocketAddr) {
    let mut command = store_command(folder, listen);
    if is_secured {
        command.args(secured(folder, "store", "store"));
    }
    Server::start_store(command, folder.join("store-said"))
}

/// A store process, a node process beside it, and a guarded target.
struct Split {
    folder: tempfile::TempDir,
    store: Option<Server>,
    at: SocketAddr,
    is_secured: bool,
    place: Place,
    sink: Sink,
    applied: Arc<Mutex<Vec<String>>>,
    is_slow: Arc<AtomicBool>,
}

impl Split {
    /// Under certificates.
    fn start() -> Split {
        Split::start_as(true)
    }

    fn start_as(is_secured: bool) -> Split {
        let folder = tempfile::tempdir().unwrap();
        let (store, at) = store_on(folder.path(), "127.0.0.1:0".parse().unwrap(), is_secured);
        let secret = folder.path().join("store/mesh-secret").display().to_string();
        let shown = match is_secured {
            true => secured(folder.path(), "local", ROLES),
            false => vec!["--mesh-secret".to_owned(), secret],
        };
        let at_text = at.to_string();
        let words = ["--roles", ROLES, "--store-at", &at_text].into_iter();
        let place = Place::new(&words.chain(shown.iter().map(String::as_str)).collect::<Vec<_>>());
        let guarded = Guarded::new();
        let (applied, is_slow) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (effects, slow) = (applied.clone(), is_slow.clone());
        let sink = Sink::start(move |arrival| {
            if slow.load(Ordering::SeqCst) {
                pace::reach(pace::from_now(Duration::from_millis(300)));
            }
            if matches!(guarded.apply(arrival), Answer::Applied(_)) {
                effects.lock().unwrap().push(arrival.key.clone());
            }
            Say::Status(200, "")
        });
        Split {
            folder,
            store: Some(store),
            at,
            is_secured,
            place,
            sink,
            applied,
            is_slow,
        }
    }

    fn kill_store(&mut self) {
        self.store.take().unwrap().kill();
    }

    fn start_store(&mut self) {
        let (store, at) = store_on(self.folder.path(), self.at, self.is_secured);
        assert_eq!(at, self.at);
        self.store = Some(store);
    }

    fn job(&self) -> Value {
        json!({"target": {"type": "http", "url": self.sink.url("/")}, "retry": {"attempts": 50}})
    }
}

fn create(api: &mut Api, body: &Value) -> String {
    let made = api.post("/v1/jobs", body).expect(201);
    made["id"].as_str().unwrap().to_owned()
}

fn run_one(api: &mut Api, split: &Split) -> Value {
    let id = create(api, &split.job());
    succeeded(api, &id)
}

fn succeeded(api: &mut Api, id: &str) -> Value {
    until(&format!("job {id} to succeed"), || {
        let answer = api.call("GET", &format!("/v1/jobs/{id}"), &[], None).ok()?;
        let job = (answer.status == 200).then(|| answer.expect(200))?;
        (job["state"] == "succeeded").then_some(job)
    })
}

#[test]
fn f02_a_store_that_is_killed_loses_nothing_and_all_goes_on_by_itself() {
    let mut split = Split::start();
    let mut server = split.place.start();
    let mut api = server.api();
    let body = split.job();
    let mut acknowledged = vec![create(&mut api, &body)];
    for _ in 0..3 {
        split.is_slow.store(true, Ordering::SeqCst);
        acknowledged.extend((0..20).map(|_| create(&mut api, &body)));
        split.kill_store();
        let (answer, took) = pace::took(|| api.post("/v1/jobs", &body));
        assert_eq!(answer.status, 503, "{}", answer.code());
        assert!(answer.header("retry-after").is_some());
        println!("figure: store killed, refused after {took:?}; the product's bound is 2 s");
        assert!(took < pace::LONG, "refused after {took:?}");
        until_true("its shard takes nothing any more", || {
            let again = api.post("/v1/jobs", &body);
            assert_eq!(again.status, 503, "{}", again.code());
            again.code() == "shard_unavailable"
        });
        split.is_slow.store(false, Ordering::SeqCst);
        split.start_store();
        until_true("work is taken again", || api.post("/v1/jobs", &body).status == 201);
    }
    for id in &acknowledged {
        let job = succeeded(&mut api, id);
        assert_eq!(job["attempt_count"], 1, "no lease was lost: {job}");
    }
    assert!(!server.has_ended(), "{}", server.said());
    let mut keys = split.applied.lock().unwrap().clone();
    let effects = keys.len();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), effects, "one effect per key");
}

#[test]
fn a_node_says_that_it_is_not_ready_while_its_store_is_gone() {
    let mut split = Split::start();
    let server = split.place.start();
    let mut api = server.api();
    let mut ready = |status: u16| {
        until(&format!("/readyz to answer {status}"), || {
            let answer = api.call("GET", "/readyz", &[], None).ok()?;
            (answer.status == status).then_some(answer.body)
        })
    };
    split.kill_store();
    let body = ready(503);
    let reasons = body["reasons"].as_array().unwrap();
    assert!(reasons.contains(&json!("the store does not answer")), "{body}");
    split.start_store();
    assert_eq!(ready(200)["reasons"], json!([]));
}

#[test]
fn f20_the_clock_of_the_store_is_confirmed_at_a_node_without_it() {
    let mut split = Split::start();
    let server = split.place.start();
    let confirmed = server.api().post("/v1/clock/confirm", &json!({})).expect(200);
    let doubt = (&confirmed["was_in_doubt"], &confirmed["clock_doubt"]);
    assert_eq!(doubt, (&json!(false), &json!(false)), "{confirmed}");
}

#[test]
fn a_node_that_is_killed_finds_its_work_in_the_store_again() {
    let mut split = Split::start();
    let server = split.place.start();
    let mut api = server.api();
    split.is_slow.store(true, Ordering::SeqCst);
    let ids: Vec<String> = (0..30).map(|_| create(&mut api, &split.job())).collect();
    server.kill();
    split.is_slow.store(false, Ordering::SeqCst);
    let mut server = split.place.start();
    let mut api = server.api();
    for id in &ids {
        succeeded(&mut api, id);
    }
    assert_eq!(split.applied.lock().unwrap().len(), ids.len(), "each effect once");
    assert_eq!(server.stop(), Some(0), "{}", server.said());
    assert_eq!(split.store.as_mut().unwrap().stop(), Some(0));
}

#[test]
fn f15_large_at_most_once_jobs_in_flight_when_a_node_dies_run_no_second_time() {
    let mut split = Split::start();
    let calls = Arc::new(Mutex::new(0));
    let seen = calls.clone();
    let silent = Sink::start(move |_| {
        *seen.lock().unwrap() += 1;
        Say::Silence
    });
    let server = split.place.start();
    let mut api = server.api();
    let target = json!({"type": "http", "url": silent.url("/")});
    let body = json!({"target": target, "delivery": "at-most-once", "payload": "x".repeat(900_000)});
    // In one shard, more than one read of the store's own bounds.
    let ids: Vec<String> = (0..20).map(|_| create(&mut api, &body)).collect();
    until_true("all begun", || *calls.lock().unwrap() == 20);
    server.kill();
    let begun = *calls.lock().unwrap();
    let server = split.place.start();
    let mut api = server.api();
    until_true("what had begun is uncertain", || {
        let parked = api.get("/v1/uncertain?limit=100").expect(200);
        parked["items"].as_array().unwrap().len() >= begun
    });
    assert_eq!(*calls.lock().unwrap(), ids.len(), "each once");
}

#[test]
fn f11_a_node_that_outlives_a_restore_of_its_store_starts_anew() {
    let mut split = Split::start();
    let mut server = split.place.start();
    let mut api = server.api();
    run_one(&mut api, &split);
    let backup = split.folder.path().join("backup");
    assert_eq!(split.store.as_mut().unwrap().stop(), Some(0));
    let store = split.folder.path().join("store");
    for (what, from, to) in [("backup", &store, &backup), ("restore", &backup, &store)] {
        if what == "restore" {
            std::fs::rename(&store, split.folder.path().join("lost")).unwrap();
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
        let done = command.args(["store", what]).arg(from).arg(to).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    split.start_store();
    until_true("the first commit to a shard shows it", || {
        let _ = api.call("POST", "/v1/jobs", &[], Some(&split.job()));
        server.has_ended()
    });
    assert_eq!(server.exit_code(), Some(70), "{}", server.said());
    assert!(server.said().contains("restored or exchanged"), "{}", server.said());
    let server = split.place.start();
    let mut api = server.api();
    run_one(&mut api, &split);
    let generation = api.get("/v1/facts").expect(200)["generation"].as_u64().unwrap();
    assert!(generation > 1_700_000_000, "it comes from the clock: {generation}");
}

#[test]
fn a_second_node_of_a_name_and_a_stranger_are_not_let_in() {
    let mut split = Split::start_as(false);
    let server = split.place.start();
    let at = split.at.to_string();
    let secret = split.folder.path().join("store/mesh-secret").display().to_string();
    let mut second = Place::new(&["--roles", ROLES, "--store-at", &at, "--mesh-secret", &secret]);
    let waiting = second.spawn();
    until_true("it waits", || {
        waiting.said().contains("another process of this node's name")
    });
    let other = split.folder.path().join("other-secret");
    std::fs::write(&other, "fp_0123456789abcdef0123456789abcdef").unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o600)).unwrap();
    let words = [
        "--roles",
        ROLES,
        "--store-at",
        &at,
        "--mesh-secret",
        &other.display().to_string(),
    ];
    let mut strange = Place::new(&words);
    let stranger = strange.spawn();
    until_true("it is told why", || stranger.said().contains("secret"));
    let mut api = server.api();
    run_one(&mut api, &split);
    assert!(!waiting.said().contains(" on http://") && !stranger.said().contains(" on http://"));
    drop(server);
    until_true("its turn comes", || waiting.said().contains(" on http://"));
}

#[test]
fn a_node_waits_for_a_store_that_comes_later() {
    let mut split = Split::start();
    split.kill_store();
    let server = split.place.spawn();
    until_true("it says what it waits for", || {
        server.said().contains("waiting for the store at")
    });
    split.start_store();
    until_true("it serves", || server.said().contains(" on http://"));
}

/// A store that says which cell it has and then answers nothing more.
struct Mute {
    store: StoreService,
    calls: Arc<AtomicUsize>,
}

impl Service for Mute {
    fn is_open_to(&self, roles: Roles) -> bool {
        self.store.is_open_to(roles)
    }

    fn call(&self, from: &NodeFacts, body: &[u8]) -> BoxFuture<'static, Vec<u8>> {
        match self.calls.fetch_add(1, Ordering::SeqCst) {
            0 => self.store.call(from, body),
            _ => std::future::pending().boxed(),
        }
    }

    fn tell(&self, _from: &NodeFacts, _back: &Peer, _body: &[u8]) {}
}

/// Where it is served, and how often it was called.
fn mute_store(secret: MeshSecret) -> (SocketAddr, Arc<AtomicUsize>) {
    let clock: SharedClock = Arc::new(SystemClock::new());
    let (ticks, sleeper) = (Arc::new(StoreTicks(clock.clone())), clock.clone());
    let store = Arc::new(ModelStore::new(ticks, Arc::new(move |span| sleeper.sleep(span))));
    let calls = Arc::new(AtomicUsize::new(0));
    let mute: Arc<dyn Service> = Arc::new(Mute {
        store: StoreService::new(store, 1),
        calls: calls.clone(),
    });
    (serve_here(secret, clock, BTreeMap::from([(STORE, mute)])), calls)
}

/// Serves these as a store's node does, on a thread of their own, for as long as the tests run; where.
pub fn serve_here(
    secret: MeshSecret,
    clock: SharedClock,
    services: BTreeMap<ServiceId, Arc<dyn Service>>,
) -> SocketAddr {
    let parts = MeshParts {
        cell: OnceLock::from(1),
        secret,
        tls: None,
        lone: Roles::default(),
        facts: NodeFacts {
            node: Name::new("mute").unwrap(),
            boot: 1,
            roles: Roles::STORE,
        },
        clock,
        chance: Arc::new(SystemChance),
        versions: Versions::default(),
        services,
        counts: MeshCounts::default(),
    };
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(async move {
            let listener = MeshListener::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
            tell.send(listener.address()).unwrap();
            let (_stop, stopped) = watch::channel(false);
            listener.serve(Arc::new(parts), stopped).await;
        });
    });
    told.recv().unwrap()
}

#[test]
fn a_node_that_starts_while_its_store_is_mute_stops_when_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("mesh-secret");
    let (at, calls) = mute_store(MeshSecret::of(
        &read_or_make(&Kept::MESH_SECRET, &secret, [1, 2]).unwrap(),
    ));
    let (at, secret) = (at.to_string(), secret.display().to_string());
    let mut place = Place::new(&["--roles", ROLES, "--store-at", &at, "--mesh-secret", &secret]);
    let mut server = place.spawn();
    until_true("it starts, and asks for more than the cell", || {
        calls.load(Ordering::SeqCst) > 1
    });
    assert_eq!(server.stop(), Some(0), "{}", server.said());
}

#[test]
fn roles_that_do_not_go_together_are_refused_with_a_place_and_a_hint() {
    for (words, place) in [
        (&["--roles", "store"][..], "--mesh-listen"),
        (&["--roles", ROLES], "--store-at"),
        (&["--roles", "store,worker"], "--roles"),
        (&["--mesh-listen", "127.0.0.1:0"], "--roles"),
    ] {
        let told = Command::new(env!("CARGO_BIN_EXE_fencepost"))
            .arg("serve")
            .args(words)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&told.stderr).into_owned();
        assert_eq!(told.status.code(), Some(2), "{said}");
        assert!(
            said.contains(&format!("[roles_invalid, {place}]")) && said.contains("hint: "),
            "{said}"
        );
    }
    let nowhere = ["serve", "--roles", ROLES, "--store-at", "nowhere"];
    let told = Command::new(env!("CARGO_BIN_EXE_fencepost"))
        .args(nowhere)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.status.code() == Some(2) && said.contains("--store-at"), "{said}");
}
