//! How far a node's clock is from the store's, with bounds, and whether that is near enough to claim work.
//!
//! A question to the store is asked at one reading of this node's clocks and answered at another; the store stated
//! its time in between. So the true offset lies between the offsets at both ends, however long the way took each
//! way. Between measurements the bounds follow this node's own steps and grow by the drift that two clocks may
//! have. Two measurements are never combined: either clock may have been set between them.
//!
//! Owns: that interval and the verdict. A node whose offset is not proven to lie within the bound claims nothing:
//! it is not trusted. Must never: decide whether anything is due, or how long a lease is (no correctness rests on
//! a node's wall clock). Next: `fencepost`'s `node/trust.rs`, docs/decisions/0026.

use crate::limits::CLOCK_DRIFT_PPM;
use crate::time::{Monotonic, Span, StoreTime};

/// Both clocks of a node at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Microseconds since the Unix epoch, by its wall clock.
    pub wall: i64,
    /// Its monotonic clock.
    pub mono: Monotonic,
}

/// Where the offset of a node's clock lies: its wall clock less the store's time, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// At least.
    pub low: i64,
    /// At most.
    pub high: i64,
}

/// What is known of the offset, and the bound for it.
#[derive(Clone, Debug)]
pub struct ClockTrust {
    bound: Span,
    last: Option<(Offset, Reading)>,
}

impl Offset {
    /// The middle of the interval.
    pub fn middle(self) -> i64 {
        self.low.midpoint(self.high)
    }

    /// How far the truth may be from the middle.
    pub fn error(self) -> Span {
        Span(self.low.abs_diff(self.high).div_ceil(2))
    }

    /// Whether every offset that it may be is within the bound.
    pub fn is_within(self, bound: Span) -> bool {
        self.low.unsigned_abs() <= bound.0 && self.high.unsigned_abs() <= bound.0
    }
}

impl ClockTrust {
    /// Knows nothing yet.
    pub fn new(bound: Span) -> ClockTrust {
        ClockTrust { bound, last: None }
    }

    /// The store stated a time in answer to a question.
    pub fn measure(&mut self, asked: Reading, answered: Reading, stated: StoreTime) {
        let way = signed(answered.mono.since(asked.mono));
        // A wall clock that was set meanwhile may have stood at either side of its step.
        let first = asked.wall.min(answered.wall.saturating_sub(way));
        let last = answered.wall.max(asked.wall.saturating_add(way));
        // The store's clock went on meanwhile, at its own pace.
        let drift = drift_in(answered.mono.since(asked.mono));
        let offset = Offset {
            low: first.saturating_sub(stated.0).saturating_sub(drift),
            high: last.saturating_sub(stated.0).saturating_add(drift),
        };
        self.last = Some((offset, answered));
        self.check();
    }

    /// Where the offset lies now; `None` before the first measurement.
    pub fn offset(&self, now: Reading) -> Option<Offset> {
        let (offset, at) = self.last?;
        let passed = now.mono.since(at.mono);
        let moved = now.wall.saturating_sub(at.wall).saturating_sub(signed(passed));
        let drift = drift_in(passed);
        Some(Offset {
            low: offset.low.saturating_add(moved).saturating_sub(drift),
            high: offset.high.saturating_add(moved).saturating_add(drift),
        })
    }

    /// Whether it is proven that the offset is within the bound.
    pub fn is_trusted(&self, now: Reading) -> bool {
        self.offset(now).is_some_and(|offset| offset.is_within(self.bound))
    }

    /// The bound.
    pub fn bound(&self) -> Span {
        self.bound
    }

    /// Panics if it contradicts itself.
    pub fn check(&self) {
        if let Some((offset, _)) = self.last {
            assert!(offset.low <= offset.high, "an interval has its ends in order");
        }
    }
}

/// How far two clocks may drift apart in a stretch of time, begun seconds counted whole.
fn drift_in(passed: Span) -> i64 {
    match passed {
        Span::ZERO => 0,
        passed => signed(Span((passed.0 / 1_000_000 + 1) * CLOCK_DRIFT_PPM + 1)),
    }
}

fn signed(span: Span) -> i64 {
    i64::try_from(span.0).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "clock_trust_tests.rs"]
mod tests;
