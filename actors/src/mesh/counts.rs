//! What happened on a node's connections, counted.
//!
//! Owns: the counters. Must never: decide anything. Next: `link.rs`.

use fencepost_core::limits::REFUSAL_TELL_MS;
use fencepost_core::time::{Monotonic, Span};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// One count.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// One more.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// So far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts of all connections of a node since its start.
#[derive(Debug, Default)]
pub struct MeshCounts {
    /// Connections that were greeted and taken.
    pub opened: Count,
    /// Connections that ended after that.
    pub closed: Count,
    /// Connections that ended before: refused, silent, or not of this protocol.
    pub refused: Count,
    /// The same by reason, and when each was last told.
    reasons: Mutex<BTreeMap<&'static str, (u64, Monotonic)>>,
    /// Frames that could not be read: too long, damaged, cut off, another version.
    pub unreadable: Count,
    /// Frames of another cell, process or connection.
    pub foreign: Count,
    /// Frames that came again.
    pub repeated: Count,
    /// Connections closed for a gap in the sequence.
    pub gaps: Count,
    /// Frames, calls and messages of a kind that this build does not know.
    pub unknown: Count,
    /// Calls and messages that their sender's roles do not allow.
    pub forbidden: Count,
    /// Messages dropped because too many waited.
    pub shed: Count,
}

/// Every reason that is counted by itself. What another node says beside them is one more: its words make no
/// series of ours.
const REASONS: &[&str] = &[
    "bad-greeting",
    "certificate-expired",
    "certificate-invalid",
    "certificate-missing",
    "certificate-not-yet-valid",
    "certificate-other-cell",
    "certificate-other-node",
    "certificate-refused",
    "certificate-role",
    "certificate-unknown-ca",
    "ended",
    "late",
    "not-proven",
    "other-cell",
    "protocol-version",
    "role-missing",
    "role-taken",
    "tls-failed",
    "tls-not-served",
    "tls-required",
    "tls-version",
    "unreadable",
];

impl MeshCounts {
    /// Counts a connection that was not made; whether its reason has not been told for a while.
    pub fn refuse(&self, code: &str, now: Monotonic) -> bool {
        let known = REASONS.iter().find(|known| **known == code);
        let reason = known.copied().unwrap_or("other");
        self.refused.add();
        metrics::counter!("fencepost_mesh_refused_total", "reason" => reason).increment(1);
        let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, told_at) = reasons.entry(reason).or_default();
        *count += 1;
        let is_news = *count == 1 || now.since(*told_at) >= Span::from_millis(REFUSAL_TELL_MS);
        if is_news {
            *told_at = now;
        }
        is_news
    }

    /// Connections that were not made for this reason.
    pub fn refused_for(&self, reason: &str) -> u64 {
        let reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        reasons.get(reason).map_or(0, |(count, _)| *count)
    }
}
