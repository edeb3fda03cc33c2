//! What two hundred seeds must at least have done, felt and seen: coverage must not vanish in silence.
//!
//! Owns: the floors, about a third of what is usual. Must never: be lowered to let a run pass that does
//! less. Next: `workers.rs`, `../world/planner.rs`.

/// A name as counted, and how often.
pub const FLOORS: &[(&str, u64)] = &[("crash", 1)];
