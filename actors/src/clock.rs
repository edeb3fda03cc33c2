//! The one module that reads time, and the one that sleeps.
//!
//! Owns: a node's wall clock, its monotonic clock and sleeping. Must never: decide anything. The
//! simulator hands in clocks of its own. Next: `chance.rs`, `shell/`.

use fencepost_core::time::{Monotonic, Span};
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// A node's clocks.
pub trait Clock: Send + Sync + 'static {
    /// Microseconds since the Unix epoch, by this node's wall clock. Only a store may use it.
    fn wall(&self) -> i64;
    /// Time since this node started.
    fn mono(&self) -> Monotonic;
    /// Wakes after `span` of this node's monotonic time.
    fn sleep(&self, span: Span) -> BoxFuture<'static, ()>;
}

/// Shared clocks.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's own clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: std::time::Instant,
}

impl SystemClock {
    /// Starts counting now.
    #[allow(clippy::disallowed_methods, reason = "this is the clock module")]
    pub fn new() -> SystemClock {
        SystemClock {
            start: std::time::Instant::now(),
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
}
