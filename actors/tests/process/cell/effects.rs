//! What the target of a cell saw and did.
//!
//! Owns: the ledger of effects, and the order of tokens as the target saw it, kept beside the guard. Must never: be
//! told by the product. Next: `verdict.rs`.

use super::record::Record;
use crate::pace;
use crate::sink::{Arrival, Guarded};
use fencepost::guard::Answer;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// The paths of schedules begin so; the rest is the schedule's name.
pub const TICK: &str = "/tick/";

/// Calls that arrived, and what each did.
#[derive(Default)]
pub struct Seen {
    /// Keys that arrived.
    pub held: BTreeSet<String>,
    /// Effects by key, of jobs that clients made.
    pub applied: BTreeMap<String, u32>,
    /// Effects by schedule and instant.
    pub fired_for: BTreeMap<(String, String), u32>,
    /// Keys of effects that an older attempt had after a newer one was seen.
    pub stale: Vec<String>,
    /// Calls of older attempts that were refused.
    pub refused: usize,
    newest: BTreeMap<String, String>,
}

/// A guarded target with a gate.
pub struct Effects {
    guarded: Guarded,
    seen: Mutex<Seen>,
    is_open: AtomicBool,
    /// How long each call takes.
    busy: Duration,
    /// For the checkers.
    pub record: Record,
}

impl Effects {
    pub fn open() -> Effects {
        Effects::lasting(Duration::ZERO)
    }

    pub fn shut() -> Effects {
        let effects = Effects::open();
        effects.is_open.store(false, Ordering::SeqCst);
        effects
    }

    /// Each call takes this long.
    pub fn lasting(busy: Duration) -> Effects {
        Effects {
            guarded: Guarded::new(),
            seen: Mutex::default(),
            is_open: AtomicBool::new(true),
            busy,
            record: Record::begin(),
        }
    }

    pub fn open_gate(&self) {
        self.is_open.store(true, Ordering::SeqCst);
    }

    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }

    /// How many jobs have arrived.
    pub fn held(&self) -> usize {
        self.seen().held.len()
    }

    /// Takes a call, once the gate lets it.
    pub fn take(&self, arrival: &Arrival) {
        let at = self.record.now();
        self.seen().held.insert(arrival.key.clone());
        // Whoever waits here at the end of a test is let through.
        let _ = pace::within(pace::LONG, || self.is_open.load(Ordering::SeqCst).then_some(()));
        if !self.busy.is_zero() {
            pace::reach(pace::from_now(self.busy));
        }
        let mut seen = self.seen();
        let answer = self.guarded.apply(arrival);
        // Tokens of fixed width are ordered as their text is.
        let newest = seen.newest.entry(arrival.key.clone()).or_default();
        let is_stale = arrival.token < *newest;
        if !is_stale {
            newest.clone_from(&arrival.token);
        }
        let applied = matches!(answer, Answer::Applied(_));
        self.record.called(arrival, at, applied);
        match answer {
            Answer::Applied(_) => seen.note(arrival, is_stale),
            Answer::Stale => seen.refused += 1,
            Answer::Already(_) | Answer::InProgress => {}
        }
    }
}

impl Seen {
    fn note(&mut self, arrival: &Arrival, is_stale: bool) {
        if is_stale {
            self.stale.push(arrival.key.clone());
        }
        let times = match arrival.path.strip_prefix(TICK) {
            Some(schedule) => {
                let instant = (schedule.to_owned(), arrival.scheduled_for.clone());
                self.fired_for.entry(instant).or_default()
            }
            None => self.applied.entry(arrival.key.clone()).or_default(),
        };
        *times += 1;
    }

    /// How many instants of a schedule had an effect.
    pub fn fires_of(&self, schedule: &str) -> usize {
        self.fired_for.keys().filter(|(name, _)| name == schedule).count()
    }
}
