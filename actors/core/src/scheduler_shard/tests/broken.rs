//! A rule that is broken is noticed by its own tests (F25).
//!
//! Owns: breaking one at a time. Next: `dropped.rs` (the tests that must fail then).

use super::dropped;
use crate::planted::Bug;

#[test]
fn f25_a_drop_that_does_not_hold_is_caught() {
    for test in [
        dropped::f25_every_second_after_a_drop_fires_every_second_but_that_one as fn(),
        dropped::f25_what_was_dropped_stays_dropped_where_a_later_rule_asks_for_it_next,
        dropped::f25_what_a_dropped_one_shot_is_given_fires,
    ] {
        assert!(Bug::DropLifted.noticed_by(test).is_some());
    }
    for test in [
        dropped::f25_a_missed_set_leaves_out_what_was_dropped as fn(),
        dropped::f25_a_pause_over_a_dropped_instant_leaves_it_withdrawn,
    ] {
        assert!(Bug::DropMissed.noticed_by(test).is_some());
    }
}
