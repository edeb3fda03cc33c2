//! What became of occurrences: one fate each, stored as spans that tile nominal time.
//!
//! Owns: the kinds, the span and its counts. Must never: leave a hole or an overlap (checked where
//! spans are made, in `scheduler_shard/`). Next: `schedule.rs`.

use crate::ids::Incarnation;
use crate::name::Name;
use crate::time::{Span, StoreTime};
use std::sync::Arc;

/// What became of an occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FateKind {
    /// Made a job within the tolerance.
    FiredOnTime,
    /// Made a job later than the tolerance.
    FiredLate,
    /// Another occurrence's job stands for it.
    Coalesced,
    /// The misfire policy dropped it.
    SkippedMisfire,
    /// Later than the grace.
    SkippedGrace,
    /// The concurrency policy dropped it.
    SkippedConcurrency,
    /// Beyond the cap of policy `all`, or after the schedule's count was used up.
    SkippedCap,
    /// On an excluded date.
    Excluded,
    /// Its job's expiry had passed already.
    Expired,
    /// Fell in a pause.
    Paused,
    /// An edit withdrew it.
    WithdrawnEdit,
    /// The schedule was deleted.
    WithdrawnDelete,
    /// It could not be evaluated; see the quarantine row.
    Quarantined,
}

/// Every kind, in order of its number.
pub const FATE_KINDS: [FateKind; 13] = [
    FateKind::FiredOnTime,
    FateKind::FiredLate,
    FateKind::Coalesced,
    FateKind::SkippedMisfire,
    FateKind::SkippedGrace,
    FateKind::SkippedConcurrency,
    FateKind::SkippedCap,
    FateKind::Excluded,
    FateKind::Expired,
    FateKind::Paused,
    FateKind::WithdrawnEdit,
    FateKind::WithdrawnDelete,
    FateKind::Quarantined,
];

/// In place of a version in a span of which nobody can say what was decided in it: the row that knew is lost.
pub const DEFINITION_UNKNOWN: u64 = 0;

/// Upper bounds of the lateness buckets: 1, 5, 10, 50, 100 ms, 1, 10, 60 s, 10 min, and beyond.
pub const LATENESS_BOUNDS_MS: [u64; 9] = [1, 5, 10, 50, 100, 1_000, 10_000, 60_000, 600_000];

/// Fired occurrences by lateness.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// One count per bucket of `LATENESS_BOUNDS_MS`, the last for beyond.
    pub buckets: [u64; 10],
    /// The latest.
    pub max: Span,
}

/// A stretch of nominal time, `(from, to]`, whose occurrences share one fate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FateSpan {
    /// Exclusive.
    pub from: StoreTime,
    /// Inclusive; for the open span of a cursor it follows the cursor.
    pub to: StoreTime,
    /// The fate.
    pub kind: FateKind,
    /// Occurrences in it; `None` until the auditor has counted (spans that needed no enumeration).
    pub count: Option<u64>,
    /// Of those that fired.
    pub lateness: Lateness,
    /// Definition version, or `DEFINITION_UNKNOWN`.
    pub definition: u64,
    /// Zone data version.
    pub zone_version: Arc<str>,
}

impl FateSpan {
    /// Whether its occurrences have jobs, as far as anybody can say.
    pub fn may_have_fired(&self) -> bool {
        self.kind.is_fired() || self.definition == DEFINITION_UNKNOWN
    }
}

/// A closed span as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FateRow {
    /// Tenant.
    pub tenant: Name,
    /// Schedule.
    pub name: Name,
    /// Which life of the name.
    pub incarnation: Incarnation,
    /// The span; the key orders by its end.
    pub span: FateSpan,
}

/// Occurrences by fate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FateCounts(pub [u64; 13]);

impl FateKind {
    /// Its number, for ever.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// From its number.
    pub fn from_number(number: u8) -> Option<FateKind> {
        FATE_KINDS.get(usize::from(number)).copied()
    }

    /// Whether it made a job.
    pub fn is_fired(self) -> bool {
        matches!(self, FateKind::FiredOnTime | FateKind::FiredLate)
    }

    /// The word shown to people and used in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            FateKind::FiredOnTime => "fired_on_time",
            FateKind::FiredLate => "fired_late",
            FateKind::Coalesced => "coalesced",
            FateKind::SkippedMisfire => "skipped_misfire",
            FateKind::SkippedGrace => "skipped_grace",
            FateKind::SkippedConcurrency => "skipped_concurrency",
            FateKind::SkippedCap => "skipped_cap",
            FateKind::Excluded => "excluded",
            FateKind::Expired => "expired",
            FateKind::Paused => "paused",
            FateKind::WithdrawnEdit => "withdrawn_edit",
            FateKind::WithdrawnDelete => "withdrawn_delete",
            FateKind::Quarantined => "quarantined",
        }
    }
}

impl FateCounts {
    /// Adds `count` to `kind`.
    pub fn add(&mut self, kind: FateKind, count: u64) {
        if let Some(cell) = self.0.get_mut(usize::from(kind.number())) {
            *cell = cell.saturating_add(count);
        }
    }

    /// Takes `count` from `kind`, for occurrences that are decided anew.
    pub fn subtract(&mut self, kind: FateKind, count: u64) {
        if let Some(cell) = self.0.get_mut(usize::from(kind.number())) {
            *cell = cell.saturating_sub(count);
        }
    }

    /// Occurrences with this fate.
    pub fn of(&self, kind: FateKind) -> u64 {
        self.0.get(usize::from(kind.number())).copied().unwrap_or(0)
    }
}

impl Lateness {
    /// Counts one fired occurrence.
    pub fn add(&mut self, late: Span) {
        let millis = late.0.div_ceil(1_000);
        let bucket = LATENESS_BOUNDS_MS
            .iter()
            .position(|bound| millis <= *bound)
            .unwrap_or(LATENESS_BOUNDS_MS.len());
        if let Some(cell) = self.buckets.get_mut(bucket) {
            *cell += 1;
        }
        self.max = self.max.max(late);
    }
}
