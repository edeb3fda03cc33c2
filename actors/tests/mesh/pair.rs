//! Two nodes: one that listens and serves, one that dials.
//!
//! Owns: their parts and a service that shows what reached it. Next: `calls.rs`.

use fencepost::chance::SystemChance;
use fencepost::clock::{SharedClock, SystemClock};
use fencepost::mesh::counts::MeshCounts;
use fencepost::mesh::envelope::ServiceId;
use fencepost::mesh::listen::MeshListener;
use fencepost::mesh::peer::Peer;
use fencepost::mesh::{MeshParts, MeshSecret, NodeFacts, Roles, Service, Versions};
use fencepost_core::name::Name;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};
use tokio::sync::{Semaphore, watch};

pub const ECHO: ServiceId = ServiceId(200);
pub const CELL: u128 = 77;

/// Answers with what it was told, once it may; notes the order in which calls reached it.
pub struct Echo {
    pub seen: Mutex<Vec<Vec<u8>>>,
    pub told: Mutex<Vec<Vec<u8>>>,
    /// An answer takes one.
    pub may_answer: Arc<Semaphore>,
}

impl Echo {
    pub fn new(answers: usize) -> Arc<Echo> {
        Arc::new(Echo {
            seen: Mutex::default(),
            told: Mutex::default(),
            may_answer: Arc::new(Semaphore::new(answers)),
        })
    }
}

impl Service for Echo {
    fn is_open_to(&self, roles: Roles) -> bool {
        roles.has_any(Roles::SCHEDULER)
    }

    fn call(&self, _from: &NodeFacts, body: &[u8]) -> BoxFuture<'static, Vec<u8>> {
        self.seen.lock().unwrap().push(body.to_vec());
        let (may_answer, body) = (self.may_answer.clone(), body.to_vec());
        async move {
            may_answer.acquire_owned().await.unwrap().forget();
            body
        }
        .boxed()
    }

    fn tell(&self, _from: &NodeFacts, _back: &Peer, body: &[u8]) {
        self.told.lock().unwrap().push(body.to_vec());
    }
}

pub fn facts(node: &str, boot: u64, roles: Roles) -> NodeFacts {
    NodeFacts {
        node: Name::new(node).unwrap(),
        boot,
        roles,
    }
}

pub fn parts(cell: Option<u128>, facts: NodeFacts, services: &[(ServiceId, Arc<dyn Service>)]) -> MeshParts {
    MeshParts {
        cell: cell.map_or_else(OnceLock::new, OnceLock::from),
        secret: MeshSecret::of("secret"),
        tls: None,
        lone: Roles::default(),
        facts,
        clock: Arc::new(SystemClock::new()) as SharedClock,
        chance: Arc::new(SystemChance),
        versions: Versions::default(),
        services: services.iter().cloned().collect::<BTreeMap<_, _>>(),
        counts: MeshCounts::default(),
    }
}

/// A node that listens, until dropped.
pub struct Listening {
    pub address: SocketAddr,
    pub parts: Arc<MeshParts>,
    _stop: watch::Sender<bool>,
}

pub async fn listen(parts: MeshParts) -> Listening {
    let listener = MeshListener::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.address();
    let parts = Arc::new(parts);
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(listener.serve(parts.clone(), stopped));
    Listening {
        address,
        parts,
        _stop: stop,
    }
}

/// A listener with an echo, and the parts of a dialer.
pub async fn echo_pair(answers: usize) -> (Listening, Arc<Echo>, Arc<MeshParts>) {
    let echo = Echo::new(answers);
    let listening = listen(parts(
        Some(CELL),
        facts("listener", 1, Roles::STORE),
        &[(ECHO, echo.clone())],
    ))
    .await;
    let dialer = Arc::new(parts(None, facts("dialer", 2, Roles::SCHEDULER), &[]));
    (listening, echo, dialer)
}
