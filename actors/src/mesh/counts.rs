//! What happened on a node's connections, counted.
//!
//! Owns: the counters. Must never: decide anything. Next: `link.rs`.

use fencepost_core::limits::REFUSAL_TELL_MS;
use fencepost_core::time::{Monotonic, Span};
use metrics::counter;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// One count: of connections by what became of them, or of what was refused by reason.
#[derive(Debug)]
pub struct Count {
    so_far: AtomicU64,
    metric: &'static str,
    label: (&'static str, &'static str),
}

/// What came from other nodes and was not taken, by reason.
pub const REFUSED: &str = "fencepost_mesh_frames_refused_total";
/// What workers and owners of shards on other nodes said and was not taken, by reason.
pub const WORK_REFUSED: &str = "fencepost_mesh_work_refused_total";
/// Connections with other nodes.
pub const CONNECTIONS: &str = "fencepost_mesh_connections_total";

impl Count {
    const fn refused(reason: &'static str) -> Count {
        Count {
            so_far: AtomicU64::new(0),
            metric: REFUSED,
            label: ("reason", reason),
        }
    }

    pub(crate) const fn of_work(reason: &'static str) -> Count {
        Count {
            so_far: AtomicU64::new(0),
            metric: WORK_REFUSED,
            label: ("reason", reason),
        }
    }

    const fn connections(event: &'static str) -> Count {
        Count {
            so_far: AtomicU64::new(0),
            metric: CONNECTIONS,
            label: ("event", event),
        }
    }

    /// One more.
    pub fn add(&self) {
        self.so_far.fetch_add(1, Ordering::Relaxed);
        let (key, value) = self.label;
        counter!(self.metric, key => value).increment(1);
    }

    /// So far.
    pub fn get(&self) -> u64 {
        self.so_far.load(Ordering::Relaxed)
    }

    /// Shows it before it first happens.
    pub(crate) fn show(&self) {
        let (key, value) = self.label;
        counter!(self.metric, key => value).increment(0);
    }
}

/// Counts of all connections of a node since its start.
#[derive(Debug)]
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
    /// All of them.
    pub fn all(&self) -> [&Count; 10] {
        [
            &self.opened,
            &self.closed,
            &self.refused,
            &self.unreadable,
            &self.foreign,
            &self.repeated,
            &self.gaps,
            &self.unknown,
            &self.forbidden,
            &self.shed,
        ]
    }

    /// Counts a connection that was not made; whether its reason has not been told for a while.
    pub fn refuse(&self, code: &str, now: Monotonic) -> bool {
        let known = REASONS.iter().find(|known| **known == code);
        let reason = known.copied().unwrap_or("other");
        self.refused.add();
        counter!("fencepost_mesh_refused_total", "reason" => reason).increment(1);
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

impl Default for MeshCounts {
    fn default() -> MeshCounts {
        MeshCounts {
            opened: Count::connections("opened"),
            closed: Count::connections("closed"),
            refused: Count::connections("refused"),
            reasons: Mutex::default(),
            unreadable: Count::refused("unreadable"),
            foreign: Count::refused("foreign"),
            repeated: Count::refused("repeated"),
            gaps: Count::refused("gap"),
            unknown: Count::refused("unknown"),
            forbidden: Count::refused("forbidden"),
            shed: Count::refused("shed"),
        }
    }
}

#[cfg(all(test, not(madsim)))]
mod tests {
    use super::*;
    use metrics_exporter_prometheus::PrometheusBuilder;

    #[test]
    fn what_is_refused_is_on_the_page_of_metrics_by_reason() {
        let recorder = PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, || {
            let counts = MeshCounts::default();
            counts.all().into_iter().for_each(Count::show);
            counts.unreadable.add();
            counts.unreadable.add();
            counts.opened.add();
        });
        let page = recorder.handle().render();
        for line in [
            "fencepost_mesh_frames_refused_total{reason=\"unreadable\"} 2",
            "fencepost_mesh_frames_refused_total{reason=\"repeated\"} 0",
            "fencepost_mesh_connections_total{event=\"opened\"} 1",
            "fencepost_mesh_connections_total{event=\"refused\"} 0",
        ] {
            assert!(page.lines().any(|shown| shown == line), "{line} in {page}");
        }
    }
}
