//! P7: a bound that is not kept is noticed by its own test.
//!
//! Owns: taking one bound away at a time. Next: `missed.rs`, `due.rs`, `room.rs` (the tests that must fail then).

use super::{due, missed, room};
use crate::planted::{UNBOUNDED, Unbounded};

#[test]
fn p7_a_bound_that_is_not_kept_is_caught() {
    for (bound, test, says) in [
        (
            Unbounded::Backlogs,
            missed::f24_backlogs_are_bounded as fn(),
            "more backlog rows than are ever made",
        ),
        (
            Unbounded::Budget,
            due::no_step_fires_more_than_its_budget_and_the_next_follows_at_once,
            "fires of one step",
        ),
        (
            Unbounded::Bytes,
            room::f33_the_fires_of_one_step_are_bounded_by_bytes,
            "20 in 1 steps",
        ),
    ] {
        UNBOUNDED.set(Some(bound));
        let caught = std::panic::catch_unwind(test);
        UNBOUNDED.set(None);
        let why = caught.expect_err("nothing noticed");
        let why = why.downcast_ref::<String>().cloned().unwrap_or_default();
        assert!(why.contains(says), "{bound:?}: {why}");
    }
}
