//! A stretch of time in which one UTC offset holds.
//!
//! Owns: the only place where instants become local times and back.
//! Must never: look past its own two ends.

use super::{LocalSeconds, UnixSeconds};

/// The instants from `start` up to, but not including, `end`; `offset` holds in all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The clock change that begins it, or `UnixSeconds::BEGIN`.
    pub start: UnixSeconds,
    /// The clock change that ends it, or `UnixSeconds::END`.
    pub end: UnixSeconds,
    /// Seconds east of UTC.
    pub offset: i32,
}

impl Segment {
    /// Whether the offset of this segment holds at an instant.
    pub fn contains(&self, at: UnixSeconds) -> bool {
        self.start <= at && at < self.end
    }

    /// What clocks show at an instant of this segment.
    pub fn local_of(&self, at: UnixSeconds) -> LocalSeconds {
        LocalSeconds(at.0 + i64::from(self.offset))
    }

    /// The instant at which clocks of this segment show a local time.
    pub fn instant_of(&self, local: LocalSeconds) -> UnixSeconds {
        UnixSeconds(local.0 - i64::from(self.offset))
    }

    /// The first local time shown.
    pub fn local_start(&self) -> LocalSeconds {
        self.local_of(self.start)
    }

    /// The local time that would be shown at the end, were it not for the change.
    pub fn local_end(&self) -> LocalSeconds {
        self.local_of(self.end)
    }
}
