//! P7: a bound that is not kept is noticed by its own test.
//!
//! Owns: taking one bound away at a time. Next: `missed.rs`, `due.rs`, `room.rs` (the tests that must fail then).

use super::{due, missed, room};
use crate::planted::Bug;

#[test]
fn p7_a_bound_that_is_not_kept_is_caught() {
    for (bound, test, says) in [
        (
            Bug::BacklogsUnmerged,
            missed::f24_backlogs_are_bounded as fn(),
            "more backlog rows than are ever made",
        ),
        (
            Bug::BudgetUnspent,
            due::no_step_fires_more_than_its_budget_and_the_next_follows_at_once,
            "fires of one step",
        ),
        (
            Bug::BytesUncounted,
            room::f33_the_fires_of_one_step_are_bounded_by_bytes,
            "20 in 1 steps",
        ),
    ] {
        let why = bound.noticed_by(test).expect("nothing noticed");
        assert!(why.contains(says), "{bound:?}: {why}");
    }
}
