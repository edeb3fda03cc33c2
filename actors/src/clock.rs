//! The one module that reads time, and the one that sleeps.
//!
//! Owns: a node's wall clock, its monotonic clock and sleeping. Must never: decide anything. The
//! simulator hands in clocks of its own. Next: `chance.rs`, `shell/`.

use fencepost_core::time::{Monotonic, Span};
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// A node's clocks.
pub trait Clock: Send + Sync + 'static {
    /// Microseconds since the Unix epoch, by this node's wall clock. Only a store may use it, and the
    /// measure of how far it is off.
    fn wall(&self) -> i64;
    /// Time since this node started.
    fn mono(&self) -> Monotonic;
    /// Wakes after `span` of this node's monotonic time.
    fn sleep(&self, span: Span) -> BoxFuture<'static, ()>;
    /// The same, for what is due at its end: as exactly as this node can.
    fn sleep_exactly(&self, span: Span) -> BoxFuture<'static, ()> {
        self.sleep(span)
    }
}

/// Shared clocks.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's own clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: std::time::Instant,
    #[cfg(not(madsim))]
    fine: Option<Arc<crate::process::fine_timer::FineTimer>>,
}

/// How much of an exact sleep is left to the fine timer: the runtime's own counts whole milliseconds.
#[cfg(not(madsim))]
const FINE: Span = Span::from_millis(2);

impl SystemClock {
    /// Starts counting now; sleeps by the runtime's timer alone.
    #[allow(clippy::disallowed_methods, reason = "this is the clock module")]
    pub fn new() -> SystemClock {
        SystemClock {
            start: std::time::Instant::now(),
            #[cfg(not(madsim))]
            fine: None,
        }
    }

    /// The same with a thread for exact sleeps, for a process that runs jobs.
    #[cfg(not(madsim))]
    pub fn with_fine_timer() -> SystemClock {
        SystemClock {
            fine: crate::process::fine_timer::FineTimer::start().map(Arc::new),
            ..SystemClock::new()
        }
    }
}

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the clock module")]
    fn wall(&self) -> i64 {
        match std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros),
        }
    }

    #[allow(clippy::disallowed_methods, reason = "this is the clock module")]
    fn mono(&self) -> Monotonic {
        Monotonic(u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    #[allow(clippy::disallowed_methods, reason = "this is the clock module")]
    fn sleep(&self, span: Span) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(span.to_std()))
    }

    #[cfg(not(madsim))]
    #[allow(clippy::disallowed_methods, reason = "this is the clock module")]
    fn sleep_exactly(&self, span: Span) -> BoxFuture<'static, ()> {
        let Some(fine) = self.fine.clone() else {
            return self.sleep(span);
        };
        let at = std::time::Instant::now() + span.to_std();
        let coarse = span - FINE;
        Box::pin(async move {
            if coarse > Span::ZERO {
                tokio::time::sleep(coarse.to_std()).await;
            }
            // An error means that the timer ended, and with it the process.
            let _ = fine.wake_at(at).await;
        })
    }
}
