//! Cron: from text to the instants at which a schedule asks for a fire.
//!
//! Owns: the grammar, the resolution of `H`, the wildcard/fixed-time distinction and the mapping
//! of local times to instants under a gap and an overlap policy.
//! Must never: read a clock, loop without a bound, or hand text to croner that our own tokenizer
//! has not taken apart (see docs/decisions/0002-croner-under-our-tokenizer.md).
//! Next: `token` and `item` (the grammar), `hash` (`H`), `days` (which dates; the one user of
//! croner), `dates` and `times`,
//! `rule` (one expression on local time), `plan` (several, in a zone).

mod dates;
mod days;
mod error;
mod field;
mod hash;
mod item;
mod plan;
mod rule;
mod times;
mod token;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

pub use error::{CronError, CronErrorKind};
pub use field::CronField;
pub use hash::{HashSeed, has_h};
pub use plan::CronPlan;
pub use rule::CronRule;

/// The first year with occurrences.
pub const YEAR_MIN: i32 = 1970;
/// The last year with occurrences.
pub const YEAR_MAX: i32 = 9998;
