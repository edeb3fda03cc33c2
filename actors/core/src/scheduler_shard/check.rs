//! What must hold between any two steps.
//!
//! Owns: the assertions. Must never: repair. A failure is a contradiction of the machine with itself
//! and ends the process; a bad row never gets this far (it is put aside at open, `contradiction.rs`).

use super::SchedulerShard;
use super::contradiction::contradiction;
use super::live::Live;
use crate::limits::SCHEDULES_PER_SHARD_MAX;
use crate::schedule::BacklogRow;

impl SchedulerShard {
    /// Panics if the machine contradicts itself.
    pub fn check(&self) {
        self.index.check();
        if let Err(what) = self.find_contradiction() {
            panic!("{what}");
        }
        for live in self.index.all() {
            live.check();
        }
    }

    /// What is wrong in memory, as far as no rule need be asked.
    pub(crate) fn find_contradiction(&self) -> Result<(), &'static str> {
        if self.index.len() > SCHEDULES_PER_SHARD_MAX {
            return Err("there are more schedules than a shard may have");
        }
        self.index.all().try_for_each(Live::find_contradiction)
    }
}

impl Live {
    fn find_contradiction(&self) -> Result<(), &'static str> {
        if self.dirty {
            return Err("a cursor row is written in the step that changed it");
        }
        // What is aside was read like that, and is not built upon.
        if self.quarantined.is_some() {
            return Ok(());
        }
        let backlogs: Vec<BacklogRow> = self.backlogs.values().map(|backlog| backlog.row.clone()).collect();
        contradiction(&self.cursor, &backlogs).map_or(Ok(()), Err)
    }

    fn check(&self) {
        let cursor = &self.cursor;
        let mut expected = None;
        if !self.is_at_rest() {
            expected = self.planned_after(cursor.nominal);
        }
        assert_eq!(self.plan, expected, "the plan follows from the rows");
        if let Some(plan) = self.plan {
            assert!(plan.nominal <= plan.due, "never due before the nominal instant");
            assert!(cursor.finished_at.is_none(), "a finished schedule plans nothing");
        }
        if let Some(open) = &cursor.open {
            assert!(open.to == cursor.nominal, "the open span ends at the cursor");
        }
    }
}
