//! A node's clocks: a wall clock that may lie, and a monotonic one that starts at each boot.
//!
//! Owns: offset, steps and pace, and what tells whether a fault of it was felt: how often it was read while it lied or
//! drifted, and which sleeps are over that nobody woke from. Must never: be shared by two nodes. Implements the clock
//! of the product and of its store. Next: `node.rs`.

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
    pace: Mutex<Pace>,
    lies: AtomicU64,
    drifts: AtomicU64,
    asleep: Arc<Asleep>,
}

/// How a monotonic clock runs: what it showed at a true time, and how many millionths it is fast since.
#[derive(Clone, Copy, Debug)]
struct Pace {
    since: i64,
    shown: i64,
    ppm: i64,
}

impl Pace {
    fn shows(self, now: i64) -> i64 {
        let passed = now - self.since;
        self.shown + passed + passed * self.ppm / MILLION
    }

    /// How long it truly takes until so much has passed by it; never less.
    fn true_span(self, span: i64) -> i64 {
        match self.ppm {
            0 => span,
            ppm => i64::try_from(i128::from(span) * i128::from(MILLION) / i128::from(MILLION + ppm))
                .unwrap_or(i64::MAX)
                .saturating_add(1),
        }
    }
}

const MILLION: i64 = 1_000_000;

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
            pace: Mutex::new(Pace {
                since: wall_now(),
                shown: 0,
                ppm: 0,
            }),
            lies: AtomicU64::new(0),
            drifts: AtomicU64::new(0),
            asleep: Arc::default(),
        }
    }

    pub(super) fn reboot(&self) {
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        (pace.since, pace.shown) = (wall_now(), 0);
    }

    pub(super) fn set_pace(&self, ppm: i64) {
        let (mut pace, now) = (self.pace.lock().unwrap_or_else(PoisonError::into_inner), wall_now());
        *pace = Pace {
            since: now,
            shown: pace.shows(now),
            ppm,
        };
    }

    fn pace(&self) -> Pace {
        *self.pace.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// How often its monotonic clock was read while it did not run at the true pace.
    pub fn drifts(&self) -> u64 {
        self.drifts.load(Ordering::SeqCst)
    }

    /// Whether a sleep should have ended since then (true wall time) and nobody woke from it: its node is frozen.
    pub fn is_overdue(&self, since: i64) -> bool {
        let ends = self.asleep.0.lock().unwrap_or_else(PoisonError::into_inner);
        ends.range(since..wall_now()).next().is_some()
    }

    fn since_boot(&self) -> Monotonic {
        let pace = self.pace();
        self.drifts.fetch_add(u64::from(pace.ppm != 0), Ordering::SeqCst);
        Monotonic(u64::try_from(pace.shows(wall_now())).unwrap_or(0))
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
        let lasts = self.pace().true_span(i64::try_from(span.0).unwrap_or(i64::MAX));
        let ends_at = wall_now().saturating_add(lasts);
        let sleeper = Sleeper::new(&self.asleep, ends_at);
        let sleeping = madsim::time::sleep(Span(u64::try_from(lasts).unwrap_or(0)).to_std());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drifting_clock_goes_on_from_what_it_showed_and_its_sleeps_end_when_it_says_so() {
        let pace = Pace {
            since: 10_000_000,
            shown: 5_000_000,
            ppm: 50_000,
        };
        assert_eq!(pace.shows(10_000_000), 5_000_000);
        assert_eq!(pace.shows(12_000_000), 7_100_000);
        for ppm in [-100_000, -37, 0, 37, 100_000] {
            let pace = Pace { ppm, ..pace };
            for span in [0, 1, 999, 8_000_000] {
                let ends = pace.since + pace.true_span(span);
                let passed = pace.shows(ends) - pace.shown;
                assert!((span..=span + 2).contains(&passed), "{ppm} {span} {passed}");
            }
        }
    }
}
