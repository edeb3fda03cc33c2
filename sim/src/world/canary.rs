//! The canaries: runs that must go wrong, so that the ways to tell of a failure are seen to work.
//!
//! Owns: a leak of the real world, which the determinism check must find, and an effect that is repeated in a fixed
//! share of seeds, which a report must count. Must never: act in a run that does not ask. Next: `../bugs.rs`.

use super::World;
use crate::bugs::{Canary, PlantedBug};
use crate::runtime::Stream;

/// Seeds in a hundred whose effect is repeated.
pub const SHARE: u64 = 10;

/// Lets the real world into the trace.
pub fn leak(world: &World) {
    if canary(world) == Some(Canary::LeaksTheRealWorld) {
        world.sim.record("canary", "process", &std::process::id().to_string());
    }
}

/// Whether this seed belongs to the share that fails.
pub fn is_chosen(seed: u64) -> bool {
    Stream::new(seed, "canary").percent(SHARE)
}

/// Applies the first effect of the run once more, in the share of seeds.
pub fn repeat_an_effect(world: &World) {
    if canary(world) != Some(Canary::RepeatsAnEffect) || !is_chosen(world.options.seed) {
        return;
    }
    let mut seen = world.history.lock();
    let Some(mut call) = seen.calls.iter().find(|call| call.applied).cloned() else {
        return;
    };
    let text = format!(
        "{} {} {} attempt {} applied true",
        call.intent, call.key, call.token, call.attempt
    );
    call.at = world.sim.now();
    world.sim.record("target", "call", &text);
    seen.calls.push(call);
}

fn canary(world: &World) -> Option<Canary> {
    world.options.bug.and_then(PlantedBug::canary)
}
