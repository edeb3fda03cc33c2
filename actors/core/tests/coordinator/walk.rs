//! Every history from a settled cell up to a depth, each state once.
//!
//! Owns: the search. Must never: use chance. Next: `events.rs`, `rules.rs`.

use crate::events::{Budget, Event, happen, possible};
use crate::rules::broken;
use crate::world::{Setup, World};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

pub struct Broken {
    pub what: &'static str,
    pub history: Vec<Event>,
}

enum Trail {
    Start,
    Then(Arc<Trail>, Event),
}

/// How many states there are, or the shortest history that breaks a rule.
pub fn explore(setup: Setup, budget: Budget, depth: usize) -> Result<usize, Broken> {
    let mut world = World::new(setup);
    for number in 0..setup.nodes {
        world.host(number, fencepost_core::coordinator::host::io::HostInput::Tick);
    }
    world.run(2 * (setup.length + setup.margin));
    assert!(world.owners().iter().all(Option::is_some), "settled");
    let mut seen = BTreeSet::new();
    let mut layer = vec![(world, budget, Arc::new(Trail::Start))];
    for _ in 0..depth {
        let mut next = Vec::new();
        for (world, budget, trail) in layer {
            for event in possible(&world, &budget) {
                let (mut world, mut budget) = (world.clone(), budget);
                happen(&mut world, &mut budget, event);
                let trail = Arc::new(Trail::Then(trail.clone(), event));
                if let Some(what) = broken(&world) {
                    let history = told(&trail);
                    return Err(Broken { what, history });
                }
                let mut hasher = DefaultHasher::new();
                (&world, &budget).hash(&mut hasher);
                if seen.insert(hasher.finish()) {
                    next.push((world, budget, trail));
                }
            }
        }
        layer = next;
    }
    Ok(seen.len())
}

fn told(mut trail: &Arc<Trail>) -> Vec<Event> {
    let mut events = Vec::new();
    while let Trail::Then(before, event) = &**trail {
        events.push(*event);
        trail = before;
    }
    events.reverse();
    events
}
