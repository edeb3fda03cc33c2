//! What happened on a node's connections, counted.
//!
//! Owns: the counters. Must never: decide anything. Next: `link.rs`.

use std::sync::atomic::{AtomicU64, Ordering};

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
