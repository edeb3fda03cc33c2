//! The trace: every event in order, folded into one hash.
//!
//! Owns: the rolling hash, its checkpoints, the last events for a failure's report, and all of them where somebody
//! asks. Must never: influence a run. Two runs of one seed are the same when their hashes are. Next: `run.rs`,
//! `report/`.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Events between two checkpoints.
pub const CHECKPOINT_EVERY: u64 = 256;
const LAST_KEPT: usize = 40;

/// A shared trace.
#[derive(Clone, Default)]
pub struct Trace {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    hasher: blake3::Hasher,
    events: u64,
    ends_at: u64,
    checkpoints: Vec<String>,
    last: VecDeque<String>,
    all: Option<Vec<Event>>,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, String, String, String)", into = "(u64, String, String, String)")]
pub struct Event {
    /// When, in simulated microseconds since the run began.
    pub at: u64,
    /// Where: a machine, or the world around them.
    pub node: String,
    /// What happened.
    pub kind: String,
    /// Its facts, words with spaces between.
    pub payload: String,
}

impl From<(u64, String, String, String)> for Event {
    fn from((at, node, kind, payload): (u64, String, String, String)) -> Event {
        Event {
            at,
            node,
            kind,
            payload,
        }
    }
}

impl From<Event> for (u64, String, String, String) {
    fn from(event: Event) -> (u64, String, String, String) {
        (event.at, event.node, event.kind, event.payload)
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.at, self.node, self.kind, self.payload)
    }
}

/// What is left of a trace at the end.
#[derive(Clone, Debug, Default)]
pub struct Digest {
    /// Events in it.
    pub events: u64,
    /// Over all events and the final state.
    pub hash: String,
    /// The hash after each `CHECKPOINT_EVERY` events.
    pub checkpoints: Vec<String>,
}

impl Trace {
    /// An empty trace; `keeps_all` keeps every event for a report or a comparison.
    pub fn new(keeps_all: bool) -> Trace {
        let trace = Trace::default();
        trace.lock().all = keeps_all.then(Vec::new);
        trace
    }

    /// Folds in one event: when (simulated microseconds), where, what, and its payload.
    pub fn record(&self, at: u64, node: &str, kind: &str, payload: &str) {
        let line = format!("{at} {node} {kind} {payload}");
        let mut inner = self.lock();
        inner.hasher.update(line.as_bytes());
        inner.hasher.update(b"\n");
        inner.events += 1;
        inner.ends_at = at;
        if inner.events.is_multiple_of(CHECKPOINT_EVERY) {
            let hash = short(&inner.hasher);
            inner.checkpoints.push(hash);
        }
        if inner.last.len() == LAST_KEPT {
            inner.last.pop_front();
        }
        if let Some(all) = &mut inner.all {
            all.push((at, node.to_owned(), kind.to_owned(), payload.to_owned()).into());
        }
        inner.last.push_back(line);
    }

    /// The digest so far.
    pub fn digest(&self) -> Digest {
        let inner = self.lock();
        Digest {
            events: inner.events,
            hash: short(&inner.hasher),
            checkpoints: inner.checkpoints.clone(),
        }
    }

    /// When the last event was.
    pub fn ends_at(&self) -> u64 {
        self.lock().ends_at
    }

    /// The last events, oldest first.
    pub fn last(&self) -> Vec<String> {
        self.lock().last.iter().cloned().collect()
    }

    /// All events, when they were kept.
    pub fn all(&self) -> Vec<Event> {
        self.lock().all.clone().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn short(hasher: &blake3::Hasher) -> String {
    hasher.finalize().to_hex().get(..32).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_an_event_counts() {
        let hash = |at, node, kind, payload| {
            let trace = Trace::new(false);
            trace.record(at, node, kind, payload);
            trace.digest().hash
        };
        let one = hash(1, "n", "k", "p");
        for other in [
            hash(2, "n", "k", "p"),
            hash(1, "m", "k", "p"),
            hash(1, "n", "l", "p"),
            hash(1, "n", "k", "q"),
        ] {
            assert_ne!(one, other);
        }
        assert_eq!(one, hash(1, "n", "k", "p"));
    }

    #[test]
    fn a_kept_event_is_the_line_that_was_hashed() {
        let trace = Trace::new(true);
        trace.record(7, "server", "job", "a b");
        let lines: Vec<String> = trace.all().iter().map(ToString::to_string).collect();
        assert_eq!(lines, trace.last());
    }

    #[test]
    fn checkpoints_come_at_their_interval() {
        let trace = Trace::new(false);
        for at in 0..CHECKPOINT_EVERY * 3 {
            trace.record(at, "n", "k", "");
        }
        assert_eq!(trace.digest().checkpoints.len(), 3);
        assert_eq!(trace.last().len(), LAST_KEPT);
    }
}
