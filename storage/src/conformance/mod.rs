//! One suite for every store: each rule is a function from a fresh, empty store to a verdict.
//!
//! Owns: what PROTOCOL F2, F4, F5 and F6 mean, in calls and answers. A rule says what it found
//! instead of panicking, so that tests can show that a store with a planted bug fails it. Must
//! never: know which store it talks to. Next: `numbers.rs`, `opens.rs`, `rows.rs`, `crashes.rs`,
//! `clocks.rs`.

mod clocks;
mod crashes;
mod numbers;
mod opens;
mod rows;
#[cfg(test)]
pub(crate) mod tests;
mod user;

pub use clocks::{CLOCK_RULES, ClockRule, Timed};
pub use crashes::{CRASH_RULES, CrashRule, Mortal};

use crate::store::Store;
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// What a rule found wrong.
pub type Verdict = Result<(), String>;

/// One rule.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Its sentence.
    pub name: &'static str,
    /// Tries it on a fresh store.
    pub run: fn(Arc<dyn Store>) -> BoxFuture<'static, Verdict>,
}

/// All rules that need no crash.
pub const RULES: &[Rule] = &[
    numbers::NEXT_NUMBER_ONLY,
    numbers::REPEATED_BATCH_IS_ALREADY,
    numbers::OTHER_BYTES_UNDER_A_NUMBER,
    numbers::OLD_EPOCH_IS_STALE,
    numbers::OTHER_HOLDER_IS_STALE,
    numbers::SCOPES_COUNT_APART,
    numbers::TIME_NEVER_GOES_BACK,
    opens::COMPARE_AND_SET,
    opens::SAME_NONCE_SAME_ANSWER,
    opens::ONLY_THE_ASSIGNED_NODE,
    opens::ONE_WINNER_OF_A_RACE,
    opens::NOTHING_OLD_FOLLOWS_AN_OPEN,
    opens::CHECK_TELLS_THE_HOLDER,
    rows::ABSENT_MEANS_ABSENT,
    rows::VERSION_MEANS_VERSION,
    rows::EXPECTATIONS_SEE_THEIR_OWN_BATCH,
    rows::REFUSED_BATCH_LEAVES_NO_TRACE,
    rows::SCANS_ARE_ORDERED_AND_BOUNDED,
    rows::COMMITTED_IS_READ,
    rows::STORES_OWN_ROWS_ARE_ITS_OWN,
    rows::MANY_WRITERS_AT_ONCE,
];

/// A failed comparison as a verdict.
pub(crate) fn want<T: PartialEq + std::fmt::Debug>(what: &str, got: &T, expected: &T) -> Verdict {
    if got == expected {
        Ok(())
    } else {
        Err(format!("{what}: got {got:?}, expected {expected:?}"))
    }
}

/// A failed condition as a verdict.
pub(crate) fn hold(what: &str, holds: bool) -> Verdict {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}
