//! What befalls calls of the store and of the target while a scenario's faults last.
//!
//! Owns: the spells that are on, and that each is felt by the calls that it meets. Must never: draw beside the
//! stream that asks. Next: `director.rs` (begins and ends them), `store.rs`, `target.rs` (ask).

use super::World;
use crate::runtime::Stream;
use crate::scenario::plan::{Between, Fault};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of a fault that no file has.
pub const UNNUMBERED: usize = 0;

/// The spells that are on. Clones share them.
#[derive(Clone, Default)]
pub struct Weather(Arc<Mutex<Vec<Spell>>>);

/// One fault of calls, while it lasts.
#[derive(Clone)]
struct Spell {
    fault: usize,
    kind: &'static str,
    percent: u64,
    slower: Between,
    counted: String,
}

impl Weather {
    fn lock(&self) -> MutexGuard<'_, Vec<Spell>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A fault's spell begins.
    pub fn begin(&self, fault: &Fault) {
        self.lock().push(Spell {
            fault: fault.number,
            kind: fault.kind,
            percent: fault.percent,
            slower: fault.slower,
            counted: fault.counted(),
        });
    }

    /// A spell of every call begins that no file names; it is felt under its own name.
    pub fn begin_named(&self, kind: &'static str, counted: &str) {
        self.lock().push(Spell {
            fault: UNNUMBERED,
            kind,
            percent: 100,
            slower: (0, 0),
            counted: counted.to_owned(),
        });
    }

    /// It ends; whether it was on.
    pub fn end(&self, fault: usize) -> bool {
        let mut spells = self.lock();
        let before = spells.len();
        spells.retain(|spell| spell.fault != fault);
        spells.len() < before
    }

    /// All of them end.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn on(&self, kind: &str) -> Vec<Spell> {
        self.lock().iter().filter(|spell| spell.kind == kind).cloned().collect()
    }

    /// Whether a call meets a spell of this kind; how much slower it makes things, in microseconds.
    pub fn meets(&self, world: &World, kind: &'static str, stream: &mut Stream) -> Option<u64> {
        let mut met = None;
        for spell in self.on(kind) {
            if stream.percent(spell.percent) {
                world.feel(spell.counted);
                met = Some(stream.between(spell.slower.0, spell.slower.1));
            }
        }
        met
    }

    /// Every call meets a spell of this kind, once: it is over then.
    pub fn meets_once(&self, world: &World, kind: &'static str) -> bool {
        let on = self.on(kind);
        for spell in &on {
            world.feel(spell.counted.clone());
            self.end(spell.fault);
        }
        !on.is_empty()
    }

    /// A call met what every call meets while it is on.
    pub fn is_felt(&self, world: &World, kind: &'static str) {
        for spell in self.on(kind) {
            world.feel(spell.counted);
        }
    }
}
