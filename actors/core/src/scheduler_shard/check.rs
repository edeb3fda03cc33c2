//! What must hold between any two steps.
//!
//! Owns: the assertions. Must never: repair. A failure is a contradiction of the machine with itself
//! and ends the process; a bad row never gets this far (it is put aside at open).

use super::SchedulerShard;
use super::live::Live;
use crate::limits::{BACKLOG_SPANS_MAX, REQUESTS_KEPT_MAX, SCHEDULES_PER_SHARD_MAX};

impl SchedulerShard {
    /// Panics if the machine contradicts itself.
    pub fn check(&self) {
        self.index.check();
        assert!(self.index.len() <= SCHEDULES_PER_SHARD_MAX, "all schedules fit");
        for live in self.index.all() {
            live.check();
        }
    }
}

impl Live {
    fn check(&self) {
        let cursor = &self.cursor;
        assert!(!self.dirty, "the cursor row is written in the step that changed it");
        assert!(cursor.history_at <= cursor.nominal, "history begins before the cursor");
        if let Some(open) = &cursor.open {
            assert!(
                open.from < open.to && open.to == cursor.nominal,
                "the open span ends at the cursor"
            );
        }
        if let Some(kept) = cursor.kept {
            assert!(kept.nominal > cursor.nominal, "a kept occurrence lies ahead");
        }
        let mut expected = None;
        if !self.is_at_rest() {
            expected = self.planned_after(cursor.nominal);
        }
        assert_eq!(self.plan, expected, "the plan follows from the rows");
        if let Some(plan) = self.plan {
            assert!(plan.nominal <= plan.due, "never due before the nominal instant");
            assert!(cursor.finished_at.is_none(), "a finished schedule plans nothing");
        }
        assert!(cursor.requests.len() <= REQUESTS_KEPT_MAX, "requests are bounded");
        self.check_backlogs();
    }

    fn check_backlogs(&self) {
        let misfires = self.backlogs.values().filter(|backlog| backlog.is_misfire()).count();
        assert!(misfires <= BACKLOG_SPANS_MAX, "backlogs are bounded");
        let mut spans = Vec::new();
        for (number, backlog) in &self.backlogs {
            assert!(*number < self.cursor.backlog_next, "numbers are not used twice");
            assert!(
                backlog.row.from <= backlog.row.to && backlog.row.to <= self.cursor.nominal,
                "a backlog is past"
            );
            if let Some(open) = &backlog.row.open {
                assert_eq!(open.to, backlog.row.from, "a backlog's open span ends at its progress");
            }
            if !backlog.is_rerun() {
                let begin = backlog.row.open.as_ref().map_or(backlog.row.from, |open| open.from);
                spans.push((begin, backlog.row.to));
            }
        }
        if let Some(open) = &self.cursor.open {
            spans.push((open.from, open.to));
        }
        spans.sort_unstable();
        for pair in spans.windows(2) {
            if let [first, second] = pair {
                assert!(first.1 <= second.0, "undecided spans do not overlap");
            }
        }
    }
}
