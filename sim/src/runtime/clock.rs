//! A node's clocks: a wall clock that may lie, and a monotonic one that starts at each boot.
//!
//! Owns: offset and steps. Must never: be shared by two nodes. Implements the clock of the product
//! and of its store. Next: `node.rs`.

use super::wall_now;
use fencepost_core::time::{Monotonic, Span, StoreTime};
use futures_util::future::BoxFuture;
use std::sync::atomic::{AtomicI64, Ordering};

/// Clocks of one node.
#[derive(Debug)]
pub struct NodeClock {
    offset: AtomicI64,
    booted: AtomicI64,
}

impl NodeClock {
    pub(super) fn new() -> NodeClock {
        NodeClock {
            offset: AtomicI64::new(0),
            booted: AtomicI64::new(wall_now()),
        }
    }

    pub(super) fn reboot(&self) {
        self.booted.store(wall_now(), Ordering::SeqCst);
    }

    pub(super) fn set_offset(&self, ahead: i64) {
        self.offset.store(ahead, Ordering::SeqCst);
    }

    fn wall_micros(&self) -> i64 {
        wall_now() + self.offset.load(Ordering::SeqCst)
    }

    fn since_boot(&self) -> Monotonic {
        let since = wall_now() - self.booted.load(Ordering::SeqCst);
        Monotonic(u64::try_from(since).unwrap_or(0))
    }
}

impl fencepost::clock::Clock for NodeClock {
    fn wall(&self) -> i64 {
        self.wall_micros()
    }

    fn mono(&self) -> Monotonic {
        self.since_boot()
    }

    fn sleep(&self, span: Span) -> BoxFuture<'static, ()> {
        Box::pin(madsim::time::sleep(span.to_std()))
    }
}

impl fencepost_storage::clock::Clock for NodeClock {
    fn wall(&self) -> StoreTime {
        StoreTime(self.wall_micros())
    }

    fn mono(&self) -> Monotonic {
        self.since_boot()
    }
}
