//! Walks every history up to a depth, knowing states again.
//!
//! Owns: the walk. Must never: know what a world is made of. Next: `world.rs`.

use crate::events::Event;
use crate::scope::Scope;
use crate::wire::digest;
use crate::world::World;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What was walked.
#[derive(Debug, Default)]
pub struct Walk {
    /// Different states met.
    pub states: usize,
    /// Events applied.
    pub events: u64,
}

/// What broke, and the history that led there.
#[derive(Debug)]
pub struct Broken {
    /// Which invariant.
    pub what: String,
    /// One event a line, with the messages spelled out.
    pub history: Vec<String>,
}

struct Walker {
    /// Digest → depth that was left when it was met; met again with more left, it is walked again.
    met: BTreeMap<u64, u8>,
    history: Vec<Event>,
    events: u64,
}

/// Walks every history of a scope.
pub fn explore(scope: Scope) -> Result<Walk, Broken> {
    let world = World::new(scope);
    let mut walker = Walker {
        met: BTreeMap::new(),
        history: Vec::new(),
        events: 0,
    };
    match walker.walk(&world, scope.depth) {
        Ok(()) => Ok(Walk {
            states: walker.met.len(),
            events: walker.events,
        }),
        Err(what) => Err(Broken {
            what,
            history: retell(scope, &walker.history),
        }),
    }
}

/// Walks one history again, telling what happens.
fn retell(scope: Scope, history: &[Event]) -> Vec<String> {
    let mut world = World::new(scope);
    let tell = |event: &Event| {
        let told = world.tell(*event);
        let _ = catch_unwind(AssertUnwindSafe(|| world.apply(*event)));
        told
    };
    history.iter().map(tell).collect()
}

impl Walker {
    fn walk(&mut self, world: &World, left: u8) -> Result<(), String> {
        for event in world.events() {
            self.history.push(event);
            self.events += 1;
            let mut next = world.clone();
            // A machine that contradicts itself panics; here that is one more thing that broke.
            let applied = catch_unwind(AssertUnwindSafe(|| next.apply(event)));
            applied.unwrap_or_else(|panic| Err(words_of(panic.as_ref())))?;
            let place = self.met.entry(digest(&next)).or_insert(0);
            if *place < left {
                *place = left;
                if left > 1 {
                    self.walk(&next, left - 1)?;
                }
            }
            self.history.pop();
        }
        Ok(())
    }
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    format!("a machine contradicts itself: {}", text.unwrap_or_default())
}
