//! Signals that ask a supervisor to end.
//!
//! Owns: that they end the command with its grace instead of the supervisor without it. Must never: end anything
//! itself. Next: `supervise`, which takes one as a reason to stop its program.

use std::io;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// From its making on, these signals no longer end the process, for as long as that lives.
pub(super) struct Asked {
    runtime: Runtime,
    hangup: Signal,
    interrupt: Signal,
    quit: Signal,
    terminate: Signal,
}

impl Asked {
    pub(super) fn listen() -> io::Result<Asked> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let inside = runtime.enter();
        let (hangup, interrupt) = (signal(SignalKind::hangup())?, signal(SignalKind::interrupt())?);
        let (quit, terminate) = (signal(SignalKind::quit())?, signal(SignalKind::terminate())?);
        drop(inside);
        Ok(Asked {
            runtime,
            hangup,
            interrupt,
            quit,
            terminate,
        })
    }

    /// Blocks until one has come.
    pub(super) fn wait(mut self) {
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                _ = self.hangup.recv() => {}
                _ = self.interrupt.recv() => {}
                _ = self.quit.recv() => {}
                _ = self.terminate.recv() => {}
            }
        });
    }
}
