//! Signals: the first asks for a drain, a second ends the process at once.
//!
//! Owns: SIGTERM and SIGINT. Must never: drain by itself. Next: `serve.rs`.

use crate::process::exit;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens from now on.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Starts to listen; a signal that comes later is not lost.
    pub fn listen() -> std::io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        futures_util::future::select(Box::pin(self.terminate.recv()), Box::pin(self.interrupt.recv())).await;
    }

    /// From now on any signal ends the process.
    pub async fn end_on_next(mut self) {
        self.next().await;
        exit::end_now(exit::SECOND_SIGNAL, "stopped at once by a second signal");
    }
}
