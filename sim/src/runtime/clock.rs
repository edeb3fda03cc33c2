//! A node's clocks: a wall clock that may lie, and a monotonic one that starts at each boot.
//!
//! Owns: offset and steps, and what tells whether a fault of it was felt: how often it was read while it lied, and
//! which sleeps are over that nobody woke from. Must never: be shared by two nodes. Implements the clock of the
//! product and of its store. Next: `node.rs`.

use super::wall_now;
use fencepost_core::time::{Monotonic, Span, StoreTime};
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Clocks of one node.
#[derive(Debug)]
pub struct NodeClock {
    offset: AtomicI64,
    booted: AtomicI64,
    lies: AtomicU64,
    asleep: Arc<Asleep>,
}

/// Sleeps by the true time of their ends.
#[derive(Debug, Default)]
struct Asleep(Mutex<BTreeMap<i64, u64>>);

/// One of them, until it ends or is given up.
struct Sleeper {
    among: Arc<Asleep>,
    ends_at: i64,
}

impl Asleep {
    fn change(&self, change: impl FnOnce(&mut BTreeMap<i64, u64>)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Sleeper {
    fn new(among: &Arc<Asleep>, ends_at: i64) -> Sleeper {
        among.change(|ends| *ends.entry(ends_at).or_default() += 1);
        let among = among.clone();
        Sleeper { among, ends_at }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.among.change(|ends| {
            let left = ends.get(&self.ends_at).map_or(0, |count| count.saturating_sub(1));
            match left {
                0 => ends.remove(&self.ends_at),
                left => ends.insert(self.ends_at, left),
            };
        });
    }
}

impl NodeClock {
    pub(super) fn new() -> NodeClock {
        NodeClock {
            offset: AtomicI64::new(0),
            booted: AtomicI64::new(wall_now()),
            lies: AtomicU64::new(0),
            asleep: Arc::default(),
        }
    }

    pub(super) fn reboot(&self) {
        self.booted.store(wall_now(), Ordering::SeqCst);
    }

    pub(super) fn set_offset(&self, ahead: i64) {
        self.offset.store(ahead, Ordering::SeqCst);
    }

    fn wall_micros(&self) -> i64 {
        let ahead = self.offset.load(Ordering::SeqCst);
        self.lies.fetch_add(u64::from(ahead != 0), Ordering::SeqCst);
        wall_now() + ahead
    }

    /// How often it has told a wrong time.
    pub fn lies(&self) -> u64 {
        self.lies.load(Ordering::SeqCst)
    }

    /// Whether a sleep should have ended since then (true wall time) and nobody woke from it: its node is frozen.
    pub fn is_overdue(&self, since: i64) -> bool {
        let ends = self.asleep.0.lock().unwrap_or_else(PoisonError::into_inner);
        ends.range(since..wall_now()).next().is_some()
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
        let ends_at = wall_now().saturating_add(i64::try_from(span.0).unwrap_or(i64::MAX));
        let sleeper = Sleeper::new(&self.asleep, ends_at);
        let sleeping = madsim::time::sleep(span.to_std());
        Box::pin(async move {
            sleeping.await;
            drop(sleeper);
        })
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
