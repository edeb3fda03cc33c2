//! The one module that draws chance.
//!
//! Owns: fresh ids' random parts and nonces. Must never: decide. The simulator hands in a seeded
//! source. Next: `clock.rs`.

use fencepost_core::ids::{Holder, JobId, Slot};
use std::sync::Arc;

/// A source of chance.
pub trait Chance: Send + Sync + 'static {
    /// Fills `bytes`.
    fn fill(&self, bytes: &mut [u8]);
}

/// A shared source.
pub type SharedChance = Arc<dyn Chance>;

/// The system's source.
#[derive(Debug, Default)]
pub struct SystemChance;

impl Chance for SystemChance {
    #[allow(clippy::disallowed_methods, reason = "this is the chance module")]
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the system's source of randomness works");
    }
}

/// A random number.
pub fn draw_u64(chance: &dyn Chance) -> u64 {
    let mut bytes = [0; 8];
    chance.fill(&mut bytes);
    u64::from_be_bytes(bytes)
}

/// A nonce for a scope's holder.
pub fn draw_holder(chance: &dyn Chance) -> Holder {
    let mut bytes = [0; 16];
    chance.fill(&mut bytes);
    Holder(u128::from_be_bytes(bytes))
}

/// A fresh job id in `slot`, or in a slot drawn too.
pub fn draw_job_id(chance: &dyn Chance, slot: Option<Slot>) -> JobId {
    let mut bytes = [0; 14];
    chance.fill(&mut bytes);
    let slot = slot.unwrap_or_else(|| Slot::of(&[&bytes]));
    JobId::fresh(slot, bytes)
}
