//! Ends a process whose simulation takes too long by the real clock.
//!
//! Owns: one real thread outside the simulation. Must never: be started inside one. Next: `../cli/`.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Barks unless dropped in time.
pub struct Watchdog {
    _alive: Sender<()>,
}

impl Watchdog {
    /// After `limit`, `bark` is called once, in another thread.
    pub fn start(limit: Duration, bark: impl FnOnce() + Send + 'static) -> Watchdog {
        let (alive, watched) = channel();
        #[allow(clippy::disallowed_methods, reason = "real time, outside the simulation")]
        let watching = std::thread::Builder::new().name("watchdog".into()).spawn(move || {
            if watched.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                bark();
            }
        });
        debug_assert!(watching.is_ok(), "a thread for the watchdog");
        Watchdog { _alive: alive }
    }
}
