//! Levels: which formats of rows, and which protocol between nodes, a build knows; one number for both.
//!
//! Level 1: every row in its first format. Level 2: a job's row may say how long its key is kept, a schedule's cursor
//! row what edits dropped ahead of its time; a request about a schedule that was carried out has a row; commands stand
//! in lines of their own; nodes say their level on the board, the board states the store's time, and a job that is
//! passed on says its delay.
//! A cell has a level, too: nobody writes what is beyond it. It is raised by an operator, once every node knows the
//! higher one; from then on a build that does not is refused before it writes anything.
//! Owns: the numbers. Must never: know which level a cell has (its row says so). Next: `fencepost`'s `node/level.rs`,
//! docs/decisions/0027.

use crate::job::KEY_KEPT;
use crate::time::Span;
use std::fmt;

/// A level; also the format of a store's folder and the version of the protocol between nodes, which have its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(pub u16);

/// The first one: rows that do not say their level are of it.
pub const FIRST: Level = Level(1);
/// The level of this build, and of a cell that it makes.
pub const NEWEST: Level = Level(2);
/// The oldest level that this build works with: the version before.
pub const OLDEST: Level = Level(NEWEST.0 - 1);

/// The level that this process knows: that of its build, or of the one before where a test plays that.
pub fn known() -> Level {
    #[cfg(any(test, feature = "test-switches"))]
    if crate::planted::plays_older() {
        return OLDEST;
    }
    NEWEST
}

impl fmt::Display for Level {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// What may be written in a cell of this level. What is there is read whatever it is.
impl Level {
    /// How long keys of jobs that end now are kept: before level 2 rows have no place for another time than the usual
    /// one.
    pub fn key_kept(self, asked: Span) -> Span {
        if self.is_second() { asked } else { KEY_KEPT }
    }

    /// Whether cursor rows have a place for what edits dropped ahead of its time.
    pub fn marks_drops(self) -> bool {
        self.is_second()
    }

    /// Whether commands that are ready stand in lines of their own.
    pub fn has_command_lines(self) -> bool {
        self.is_second()
    }

    /// Whether an owner tells a late report that it noted from one that is recorded.
    pub fn hears_late_words(self) -> bool {
        self.is_second()
    }

    /// Whether requests about schedules have rows: before level 2 each schedule remembers the newest few of their
    /// numbers.
    pub fn has_request_rows(self) -> bool {
        self.is_second()
    }

    fn is_second(self) -> bool {
        #[cfg(test)]
        if crate::planted::Bug::AheadOfLevel.is_planted() {
            return true;
        }
        self >= Level(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted::Bug;
    use crate::scheduler_shard::tests as scheduler;

    #[test]
    fn what_a_level_has_no_place_for_is_not_asked_of_it() {
        let hour = Span::from_secs(3_600);
        assert_eq!((FIRST.key_kept(hour), Level(2).key_kept(hour)), (KEY_KEPT, hour));
        assert_eq!((FIRST.marks_drops(), Level(2).marks_drops()), (false, true));
        assert_eq!((FIRST.has_command_lines(), Level(2).has_command_lines()), (false, true));
        assert_eq!((FIRST.has_request_rows(), Level(2).has_request_rows()), (false, true));
    }

    #[test]
    fn a_gate_that_is_open_ahead_of_the_level_is_caught() {
        for test in [
            what_a_level_has_no_place_for_is_not_asked_of_it as fn(),
            scheduler::dropped::f25_where_rows_have_no_place_for_a_mark_a_drop_has_its_fate_ahead_of_its_time,
            scheduler::requests::f26_before_its_level_a_request_is_remembered_as_the_version_before_does_and_holds_after_it,
            scheduler::requests::f26_what_was_carried_out_before_the_raise_is_answered_until_its_key_is_over,
        ] {
            assert!(Bug::AheadOfLevel.noticed_by(test).is_some(), "nothing noticed");
        }
    }
}
