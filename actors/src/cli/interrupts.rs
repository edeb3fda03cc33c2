//! Ctrl-C for work that waits for nothing: it asks now and then.
//!
//! Owns: the runtime that hears the signal. Must never: end the process. Next: `store.rs`.

use std::cell::RefCell;
use std::io;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Hears Ctrl-C from now on.
pub struct Interrupts {
    runtime: Runtime,
    signal: RefCell<Signal>,
}

impl Interrupts {
    /// Starts to listen.
    ///
    /// # Errors
    /// There is no runtime, or no signal can be heard.
    pub fn listen() -> io::Result<Interrupts> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let guard = runtime.enter();
        let signal = RefCell::new(signal(SignalKind::interrupt())?);
        drop(guard);
        Ok(Interrupts { runtime, signal })
    }

    /// Whether it came since this was asked last.
    pub fn came(&self) -> bool {
        let Ok(mut signal) = self.signal.try_borrow_mut() else {
            return false;
        };
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                heard = signal.recv() => heard.is_some(),
                // One turn of the runtime, which looks for signals.
                () = tokio::task::yield_now() => false,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Signal, getpid, kill_process};

    #[test]
    fn an_interrupt_is_heard_by_who_asks_and_once() {
        let interrupts = Interrupts::listen().unwrap();
        assert!(!interrupts.came());
        kill_process(getpid(), Signal::INT).unwrap();
        while !interrupts.came() {}
        assert!(!interrupts.came());
    }
}
