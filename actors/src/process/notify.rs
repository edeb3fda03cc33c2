//! Words for a service manager: ready, stopping, alive (`sd_notify`).
//!
//! Owns: the socket that the manager names, and when it is told what. The watchdog is fed only while every shard's
//! actor answers; what is wrong with a node that serves is told as a status and ends nothing. Must never: fail a
//! start because nobody listens. Next: `serve.rs`, `deploy/systemd/`.

use crate::clock::SharedClock;
use crate::net::rt::spawn_local;
use fencepost_core::limits::{MANAGER_BEATS, SERVICE_STATUS_MS, SERVICE_WAIT_MS};
use fencepost_core::time::Span;
use futures_util::future::{Either, select};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Pause between two looks at what there is to say.
const LOOK: Span = Span::from_millis(SERVICE_STATUS_MS);
/// A start that waits for another node has so long from each word of it.
const WAIT_MAX: Span = Span::from_millis(SERVICE_WAIT_MS);

/// Addresses without a file exist on Linux only.
#[cfg(target_os = "linux")]
fn abstract_address(name: &[u8]) -> std::io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt as _;
    SocketAddr::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn abstract_address(_: &[u8]) -> std::io::Result<SocketAddr> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// The way to the manager.
#[derive(Clone)]
pub(super) struct Manager {
    socket: Arc<UnixDatagram>,
    /// It ends a process that is silent for so long.
    patience: Option<Span>,
}

impl Manager {
    /// The manager that started this process, if it wants to be told.
    pub(super) fn of_environment() -> Option<Manager> {
        let name = std::env::var_os("NOTIFY_SOCKET")?;
        let address = match name.as_bytes().split_first()? {
            (b'@', name) => abstract_address(name),
            _ => SocketAddr::from_pathname(&name),
        };
        let socket = UnixDatagram::unbound().ok()?;
        socket.connect_addr(&address.ok()?).ok()?;
        socket.set_nonblocking(true).ok()?;
        Some(Manager {
            socket: Arc::new(socket),
            patience: patience(),
        })
    }

    /// The process serves; `Node::started` says when a node does.
    pub(super) fn ready(&self) {
        self.tell("READY=1");
    }

    /// A drain has begun.
    pub(super) fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    /// Gives signs of life from now on, for as long as it is so.
    pub(super) fn feed(&self, clock: SharedClock, is_alive: impl Fn() -> bool + 'static) {
        let Some(patience) = self.patience else { return };
        let manager = self.clone();
        spawn_local(async move {
            loop {
                if is_alive() {
                    manager.tell("WATCHDOG=1");
                }
                clock.sleep(Span(patience.0 / MANAGER_BEATS)).await;
            }
        });
    }

    /// Says how the process is, whenever that has changed, for as long as it runs.
    pub(super) fn follow(&self, clock: SharedClock, how: impl Fn() -> String + 'static) {
        let manager = self.clone();
        spawn_local(async move {
            let mut told = String::new();
            loop {
                let now = how();
                if now != told {
                    manager.tell(&format!("STATUS={now}"));
                    told = now;
                }
                clock.sleep(LOOK).await;
            }
        });
    }

    /// The start waits for somebody else: the manager's own patience counts from each word of it, until the
    /// answer is dropped.
    pub(super) fn waits(&self, clock: SharedClock, why: String) -> Waiting {
        let (waiting, mut over) = oneshot::channel();
        let manager = self.clone();
        spawn_local(async move {
            loop {
                manager.tell(&format!("STATUS={why}\nEXTEND_TIMEOUT_USEC={}", WAIT_MAX.0));
                let pause = Box::pin(clock.sleep(Span(WAIT_MAX.0 / MANAGER_BEATS)));
                let Either::Right(((), still)) = select(over, pause).await else {
                    return;
                };
                over = still;
            }
        });
        Waiting { _here: waiting }
    }

    fn tell(&self, word: &str) {
        // A full or closed socket is the manager's trouble.
        let _ = self.socket.send(word.as_bytes());
    }
}

/// A start that waits for another node, until this is dropped.
pub(super) struct Waiting {
    _here: oneshot::Sender<()>,
}

/// The same, where there is a manager.
pub(super) fn waits_for(clock: &SharedClock, why: impl FnOnce() -> String) -> Option<Waiting> {
    Manager::of_environment().map(|manager| manager.waits(clock.clone(), why()))
}

/// How long the manager waits for a sign of life of this process.
fn patience() -> Option<Span> {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    let is_meant = number("WATCHDOG_PID").is_none_or(|id| id == u64::from(std::process::id()));
    let micros = number("WATCHDOG_USEC").filter(|micros| *micros > 0)?;
    is_meant.then_some(Span(micros))
}
