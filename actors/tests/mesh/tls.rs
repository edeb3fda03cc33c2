//! Certificates between two nodes: who is taken, who is not and why, and files that change.
//!
//! Owns: the CAs and files of these tests. Next: `tls_strangers.rs` (what is no node at all).

use crate::hand_clock::HandClock;
use crate::pair::{CELL, ECHO, Echo, Listening, facts, listen, parts};
use fencepost::clock::{Clock, SharedClock, SystemClock};
use fencepost::mesh::dial::{dial, dial_for};
use fencepost::mesh::envelope::STORE;
use fencepost::mesh::identity::Identity;
use fencepost::mesh::peer::{CallError, Peer};
use fencepost::mesh::store_link::StoreService;
use fencepost::mesh::tls::make::{Made, Validity, make_ca, make_node};
use fencepost::mesh::tls::{Looked, MeshTls, TlsFiles};
use fencepost::mesh::{MeshParts, Roles};
use fencepost::process::serve::StoreTicks;
use fencepost_core::limits::MESH_FILES_LOOK_MS;
use fencepost_core::name::Name;
use fencepost_core::time::{Monotonic, Span};
use fencepost_storage::model::ModelStore;
use futures_util::future::BoxFuture;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

pub const WAIT: Span = Span::from_secs(20);
pub const DAY: u64 = 86_400;

/// A clock whose wall is off by some seconds.
struct Off(SystemClock, i64);

impl Clock for Off {
    fn wall(&self) -> i64 {
        self.0.wall() + self.1 * 1_000_000
    }

    fn mono(&self) -> Monotonic {
        self.0.mono()
    }

    fn sleep(&self, span: Span) -> BoxFuture<'static, ()> {
        self.0.sleep(span)
    }
}

pub fn clock(off_secs: i64) -> SharedClock {
    Arc::new(Off(SystemClock::new(), off_secs))
}

pub fn now() -> u64 {
    u64::try_from(SystemClock::new().wall()).unwrap() / 1_000_000
}

/// A CA and a folder for what it issues.
pub struct Ca {
    pub folder: tempfile::TempDir,
    pub made: Made,
    pub cell: u128,
}

impl Ca {
    pub fn new(cell: u128) -> Ca {
        Ca {
            folder: tempfile::tempdir().unwrap(),
            made: make_ca(cell, Validity::days(now(), 10)).unwrap(),
            cell,
        }
    }

    /// Writes files for a node; `ca` is what it trusts.
    fn write(&self, node: &str, roles: Roles, validity: Validity, ca: &str) -> TlsFiles {
        let identity = Identity {
            cell: self.cell,
            node: Name::new(node).unwrap(),
            roles,
        };
        let made = make_node(self.made.key.as_bytes(), &identity, validity).unwrap();
        let at = |name: &str| self.folder.path().join(format!("{node}-{name}"));
        let files = TlsFiles {
            ca: at("ca.pem"),
            cert: at("node.pem"),
            key: at("node-key.pem"),
        };
        put(&files.ca, ca, 0o644);
        put(&files.cert, &made.cert, 0o644);
        put(&files.key, &made.key, 0o600);
        files
    }

    pub fn files(&self, node: &str, roles: Roles) -> TlsFiles {
        self.write(node, roles, Validity::days(now(), 10), &self.made.cert)
    }

    pub fn tls(&self, node: &str, roles: Roles) -> Arc<MeshTls> {
        Arc::new(MeshTls::load(self.files(node, roles), clock(0)).unwrap())
    }
}

fn put(path: &Path, text: &str, mode: u32) {
    let _ = fs::remove_file(path);
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A listener under a certificate, with an echo.
pub async fn echoing(ca: &Ca) -> (Listening, Arc<Echo>) {
    let echo = Echo::new(usize::MAX >> 4);
    let plain = parts(Some(CELL), facts("listener", 1, Roles::STORE), &[(ECHO, echo.clone())]);
    let tls = Some(ca.tls("listener", Roles::STORE));
    (listen(MeshParts { tls, ..plain }).await, echo)
}

/// The parts of a node that dials under this certificate, and says this of itself.
fn dialer(tls: Arc<MeshTls>, node: &str, roles: Roles) -> Arc<MeshParts> {
    Arc::new(MeshParts {
        tls: Some(tls),
        ..parts(None, facts(node, 2, roles), &[])
    })
}

pub async fn connected(peer: &Peer) {
    assert_eq!(peer.call(ECHO, b"hello".to_vec(), WAIT).await, Ok(b"hello".to_vec()));
}

/// Waits until it holds; a failing test ends by this.
pub async fn until(mut holds: impl FnMut() -> bool) {
    let (clock, tick) = (SystemClock::new(), Span::from_millis(1));
    while !holds() {
        assert!(clock.mono().0 < WAIT.0 * 3, "it never came");
        clock.sleep(tick).await;
    }
}

/// A dialer that is not taken; both ends say why.
async fn not_taken(listening: &Listening, dialer: Arc<MeshParts>, listener_says: &str, dialer_says: &str) {
    let peer = dial(dialer.clone(), listening.address.to_string());
    let both = || {
        (
            dialer.counts.refused_for(dialer_says),
            listening.parts.counts.refused_for(listener_says),
        )
    };
    until(|| both().0 > 0 && both().1 > 0 || dialer.counts.refused.get() > 20).await;
    peer.close();
    let all = (&dialer.counts, &listening.parts.counts);
    assert!(both().0 > 0 && both().1 > 0, "{all:?}");
    assert_eq!(listening.parts.counts.opened.get(), 0);
    assert_eq!(dialer.counts.opened.get(), 0);
}

#[tokio::test]
async fn nodes_with_certificates_of_their_cell_call_each_other() {
    let ca = Ca::new(CELL);
    let (listening, echo) = echoing(&ca).await;
    // It says less of itself than it may.
    let roles = Roles::SCHEDULER.with(Roles::GATEWAY);
    let dialer = dialer(ca.tls("a", roles), "a", Roles::SCHEDULER);
    let peer = dial_for(dialer.clone(), listening.address.to_string(), Roles::STORE);
    connected(&peer).await;
    assert_eq!(peer.facts().unwrap().node.as_str(), "listener");
    let large: Vec<u8> = (0..3_000_000_u32).map(|byte| (byte % 251) as u8).collect();
    assert!(peer.call(ECHO, large.clone(), WAIT).await == Ok(large));
    assert_eq!(echo.seen.lock().unwrap().len(), 2);
    assert_eq!(dialer.counts.refused.get(), 0);
}

#[tokio::test]
async fn a_certificate_of_another_ca_is_refused() {
    let (ca, other) = (Ca::new(CELL), Ca::new(CELL));
    let (listening, _echo) = echoing(&ca).await;
    // It trusts the listener's CA, and shows a certificate of its own.
    let files = other.write(
        "a",
        Roles::SCHEDULER,
        Validity::days(now(), 10),
        &(ca.made.cert.clone() + &other.made.cert),
    );
    let tls = Arc::new(MeshTls::load(files, clock(0)).unwrap());
    let stranger = dialer(tls, "a", Roles::SCHEDULER);
    not_taken(&listening, stranger, "certificate-unknown-ca", "certificate-refused").await;
    // And one that does not know the listener's CA hangs up itself.
    let stranger = dialer(other.tls("b", Roles::SCHEDULER), "b", Roles::SCHEDULER);
    let peer = dial(stranger.clone(), listening.address.to_string());
    until(|| stranger.counts.refused_for("certificate-unknown-ca") > 0).await;
    peer.close();
}

#[tokio::test]
async fn a_node_of_another_cell_is_refused_where_both_cas_are_trusted() {
    let (ca, other) = (Ca::new(CELL), Ca::new(CELL + 1));
    let both = ca.made.cert.clone() + &other.made.cert;
    let valid = Validity::days(now(), 10);
    let files = ca.write("listener", Roles::STORE, valid, &both);
    let tls = Some(Arc::new(MeshTls::load(files, clock(0)).unwrap()));
    let plain = parts(Some(CELL), facts("listener", 1, Roles::STORE), &[]);
    let listening = listen(MeshParts { tls, ..plain }).await;
    let files = other.write("a", Roles::SCHEDULER, valid, &both);
    let stranger = dialer(Arc::new(MeshTls::load(files, clock(0)).unwrap()), "a", Roles::SCHEDULER);
    not_taken(&listening, stranger, "certificate-other-cell", "certificate-other-cell").await;
}

#[tokio::test]
async fn a_node_under_another_nodes_certificate_is_refused() {
    let ca = Ca::new(CELL);
    let (listening, _echo) = echoing(&ca).await;
    let liar = dialer(ca.tls("a", Roles::SCHEDULER), "b", Roles::SCHEDULER);
    not_taken(&listening, liar, "certificate-other-node", "certificate-other-node").await;
}

#[tokio::test]
async fn a_listener_under_another_nodes_certificate_is_refused() {
    let ca = Ca::new(CELL);
    let tls = Some(ca.tls("a", Roles::ALL));
    let liar = parts(Some(CELL), facts("listener", 1, Roles::STORE), &[]);
    let listening = listen(MeshParts { tls, ..liar }).await;
    let dialer = dialer(ca.tls("b", Roles::SCHEDULER), "b", Roles::SCHEDULER);
    let peer = dial(dialer.clone(), listening.address.to_string());
    until(|| dialer.counts.refused_for("certificate-other-node") > 0).await;
    peer.close();
    assert_eq!(dialer.counts.opened.get(), 0);
}

#[tokio::test]
async fn a_worker_reaches_no_store_whatever_it_says() {
    let ca = Ca::new(CELL);
    let ticking = clock(0);
    let sleeper = ticking.clone();
    let store = ModelStore::new(
        Arc::new(StoreTicks(ticking)),
        Arc::new(move |span: Span| sleeper.sleep(span)),
    );
    let service = Arc::new(StoreService::new(Arc::new(store), CELL));
    let plain = parts(Some(CELL), facts("store", 1, Roles::STORE), &[(STORE, service)]);
    let tls = Some(ca.tls("store", Roles::STORE));
    let listening = listen(MeshParts { tls, ..plain }).await;
    let tls = ca.tls("w", Roles::WORKER);
    let liar = dialer(tls.clone(), "w", Roles::WORKER.with(Roles::SCHEDULER));
    not_taken(&listening, liar, "certificate-role", "certificate-role").await;
    let honest = dialer(tls, "w", Roles::WORKER);
    let peer = dial(honest, listening.address.to_string());
    assert_eq!(peer.call(STORE, vec![0], WAIT).await, Err(CallError::NoService));
    assert_eq!(listening.parts.counts.forbidden.get(), 1);
}

#[tokio::test]
async fn a_node_that_is_no_store_gets_no_store_call() {
    let ca = Ca::new(CELL);
    let echo = Echo::new(usize::MAX >> 4);
    let plain = parts(Some(CELL), facts("w", 1, Roles::WORKER), &[(ECHO, echo.clone())]);
    let tls = Some(ca.tls("w", Roles::WORKER));
    let listening = listen(MeshParts { tls, ..plain }).await;
    let dialer = dialer(ca.tls("a", Roles::SCHEDULER), "a", Roles::SCHEDULER);
    let peer = dial_for(dialer.clone(), listening.address.to_string(), Roles::STORE);
    until(|| dialer.counts.refused_for("role-missing") > 0).await;
    peer.close();
    assert_eq!(dialer.counts.opened.get(), 0);
}

#[tokio::test]
async fn a_certificate_that_has_ended_is_refused_by_either_side() {
    let ca = Ca::new(CELL);
    let (listening, _echo) = echoing(&ca).await;
    let ended = Validity {
        from: now() - 3 * DAY,
        until: now() - DAY,
    };
    // Its own clock is two days behind: it takes the certificate for good.
    let files = ca.write("a", Roles::SCHEDULER, ended, &ca.made.cert);
    let late = Arc::new(MeshTls::load(files.clone(), clock(-2 * DAY as i64)).unwrap());
    assert_eq!(
        MeshTls::load(files, clock(0)).map(drop).unwrap_err().code,
        "mesh_certificate_refused"
    );
    let node = dialer(late.clone(), "a", Roles::SCHEDULER);
    // By that clock the listener's certificate has not begun.
    let peer = dial(node.clone(), listening.address.to_string());
    until(|| node.counts.refused_for("certificate-not-yet-valid") > 0).await;
    peer.close();
    let long = Validity {
        from: now() - 5 * DAY,
        until: now() + DAY,
    };
    let tls = MeshTls::load(ca.write("listener", Roles::STORE, long, &ca.made.cert), clock(0)).unwrap();
    let plain = parts(Some(CELL), facts("listener", 1, Roles::STORE), &[]);
    let listening = listen(MeshParts {
        tls: Some(Arc::new(tls)),
        ..plain
    })
    .await;
    not_taken(&listening, node, "certificate-expired", "certificate-refused").await;
    let tls = MeshTls::load(ca.files("b", Roles::SCHEDULER), clock(0)).unwrap();
    let ahead = ca.write("ahead", Roles::STORE, long, &ca.made.cert);
    let ahead = Arc::new(MeshTls::load(ahead, clock(0)).unwrap());
    let plain = parts(Some(CELL), facts("ahead", 1, Roles::STORE), &[]);
    let listening = listen(MeshParts {
        tls: Some(ahead),
        ..plain
    })
    .await;
    drop(tls);
    let later = MeshTls::load(
        ca.write("c", Roles::SCHEDULER, Validity::days(now(), 9), &ca.made.cert),
        clock(2 * DAY as i64),
    );
    let node = dialer(Arc::new(later.unwrap()), "c", Roles::SCHEDULER);
    let peer = dial(node.clone(), listening.address.to_string());
    until(|| node.counts.refused_for("certificate-expired") > 0).await;
    peer.close();
}

#[tokio::test]
async fn one_side_without_certificates_is_told_so() {
    let ca = Ca::new(CELL);
    let (secured, _echo) = echoing(&ca).await;
    let plain = Arc::new(parts(None, facts("a", 2, Roles::SCHEDULER), &[]));
    not_taken(&secured, plain, "tls-required", "tls-required").await;
    let open = listen(parts(Some(CELL), facts("open", 1, Roles::STORE), &[])).await;
    let node = dialer(ca.tls("a", Roles::SCHEDULER), "a", Roles::SCHEDULER);
    not_taken(&open, node, "tls-not-served", "tls-not-served").await;
}

#[tokio::test]
async fn new_files_count_for_new_connections_and_bad_ones_for_none() {
    let ca = Ca::new(CELL);
    let (listening, _echo) = echoing(&ca).await;
    let tls = ca.tls("a", Roles::SCHEDULER);
    let node = dialer(tls.clone(), "a", Roles::SCHEDULER);
    assert_eq!(tls.look(), Looked::Same);
    let before = tls.kit().expires_at();
    let files = ca.write("a", Roles::SCHEDULER, Validity::days(now(), 30), &ca.made.cert);
    assert_eq!(tls.look(), Looked::Taken);
    assert!(tls.kit().expires_at().as_secs() > before.as_secs() + 19 * DAY);
    let code = |looked| match looked {
        Looked::Kept(refusal) => refusal.code,
        other => panic!("{other:?}"),
    };
    let good = fs::read_to_string(&files.cert).unwrap();
    put(&files.cert, &good[..good.len() / 2], 0o644);
    assert_eq!(code(tls.look()), "mesh_certificate_invalid");
    assert_eq!(tls.look(), Looked::Same, "a bad file is told once");
    // The key of another certificate.
    let other = ca.files("z", Roles::SCHEDULER);
    put(&files.cert, &fs::read_to_string(&other.cert).unwrap(), 0o644);
    assert_eq!(code(tls.look()), "mesh_certificate_invalid");
    put(&files.key, &fs::read_to_string(&other.key).unwrap(), 0o600);
    assert_eq!(code(tls.look()), "mesh_certificate_other");
    fs::remove_file(&files.key).unwrap();
    assert_eq!(code(tls.look()), "mesh_file_unreadable");
    let peer = dial(node.clone(), listening.address.to_string());
    connected(&peer).await;
    put(&files.key, "", 0o604);
    assert_eq!(code(tls.look()), "mesh_key_mode");
    ca.write("a", Roles::SCHEDULER, Validity::days(now(), 40), &ca.made.cert);
    assert_eq!(tls.look(), Looked::Taken);
    connected(&dial(node, listening.address.to_string())).await;
}

#[tokio::test]
async fn a_ca_that_is_no_longer_trusted_shuts_out_what_it_issued() {
    let (old, new) = (Ca::new(CELL), Ca::new(CELL));
    let valid = Validity::days(now(), 10);
    let both = old.made.cert.clone() + &new.made.cert;
    let files = new.write("listener", Roles::STORE, valid, &both);
    let tls = Arc::new(MeshTls::load(files.clone(), clock(0)).unwrap());
    let echo = Echo::new(usize::MAX >> 4);
    let plain = parts(Some(CELL), facts("listener", 1, Roles::STORE), &[(ECHO, echo)]);
    let listening = listen(MeshParts {
        tls: Some(tls.clone()),
        ..plain
    })
    .await;
    let trusting = old.write("a", Roles::SCHEDULER, valid, &both);
    let node = dialer(
        Arc::new(MeshTls::load(trusting, clock(0)).unwrap()),
        "a",
        Roles::SCHEDULER,
    );
    connected(&dial(node.clone(), listening.address.to_string())).await;
    put(&files.ca, &new.made.cert, 0o644);
    assert_eq!(tls.look(), Looked::Taken);
    let peer = dial(node.clone(), listening.address.to_string());
    until(|| listening.parts.counts.refused_for("certificate-unknown-ca") > 0).await;
    peer.close();
}

/// Sleeps by hand; its wall is the machine's.
struct ByHand(Arc<HandClock>);

impl Clock for ByHand {
    fn wall(&self) -> i64 {
        SystemClock::new().wall()
    }

    fn mono(&self) -> Monotonic {
        self.0.mono()
    }

    fn sleep(&self, span: Span) -> BoxFuture<'static, ()> {
        self.0.sleep(span)
    }
}

#[tokio::test]
async fn a_node_at_work_finds_new_files_by_itself() {
    let (ca, hand) = (Ca::new(CELL), Arc::new(HandClock::default()));
    let files = ca.files("a", Roles::SCHEDULER);
    let tls = Arc::new(MeshTls::load(files.clone(), Arc::new(ByHand(hand.clone()))).unwrap());
    let watched = tls.clone();
    tokio::spawn(async move { watched.watch().await });
    let before = tls.kit().expires_at();
    for turn in 0..2 {
        until(|| hand.sleepers() == 1).await;
        match turn {
            0 => put(&files.cert, "half a file", 0o644),
            _ => drop(ca.write("a", Roles::SCHEDULER, Validity::days(now(), 30), &ca.made.cert)),
        }
        assert_eq!(tls.kit().expires_at(), before, "nobody has looked yet");
        hand.advance(Span::from_millis(MESH_FILES_LOOK_MS));
    }
    until(|| tls.kit().expires_at() > before).await;
}
