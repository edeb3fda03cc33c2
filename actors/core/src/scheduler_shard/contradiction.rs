//! What the rows of one schedule cannot say together: asked before anything of it is evaluated (PROTOCOL F9).
//!
//! Owns: the part of an opening's self-audit that needs no rule. Must never: evaluate, or look at another
//! schedule. All that `check.rs` asserts and rows alone decide is here. Next: `open.rs`, `audit.rs`.

use crate::limits::{BACKLOG_ROWS_MAX, EDIT_DROPS_MAX, REQUESTS_KEPT_MAX};
use crate::schedule::{BacklogRow, CursorRow};
use crate::time::StoreTime;

/// What is wrong with rows that were read, if anything is.
pub(super) fn contradiction(cursor: &CursorRow, backlogs: &[BacklogRow]) -> Option<&'static str> {
    let open = cursor.open.as_ref();
    let is_odd = |row: &BacklogRow| !is_sound(row) || row.to > cursor.nominal || row.number >= cursor.backlog_next;
    if open.is_some_and(|open| open.to != cursor.nominal || open.from >= open.to) {
        return Some("the open fate span of its cursor row does not end at the cursor");
    }
    let is_kept_past = cursor.kept.is_some_and(|kept| kept.nominal <= cursor.nominal);
    if is_kept_past
        || is_dropped_odd(cursor)
        || cursor.history_at > cursor.nominal
        || cursor.requests.len() > REQUESTS_KEPT_MAX
    {
        return Some("its cursor row contradicts itself");
    }
    if backlogs.iter().any(is_odd) {
        return Some("a backlog row of it contradicts itself");
    }
    let misfires = backlogs.iter().filter(|row| row.backfill.is_none()).count();
    if misfires > BACKLOG_ROWS_MAX {
        return Some("it has more backlog rows than are ever made");
    }
    overlaps(cursor, backlogs).then_some("two of its rows decide the same stretch of time")
}

/// Whether what edits dropped does not lie ahead of the cursor, in order and apart from what is kept.
pub(super) fn is_dropped_odd(cursor: &CursorRow) -> bool {
    let instants: Vec<StoreTime> = cursor.dropped.iter().map(|dropped| dropped.nominal).collect();
    let is_past = instants.iter().any(|at| *at <= cursor.nominal);
    let is_kept = cursor.kept.is_some_and(|kept| instants.contains(&kept.nominal));
    let is_in_order = instants.is_sorted_by(|first, second| first < second);
    is_past || is_kept || !is_in_order || instants.len() > EDIT_DROPS_MAX
}

/// Whether a backlog row's open span ends at its progress, and its progress before its end.
pub(super) fn is_sound(row: &BacklogRow) -> bool {
    let ends_at_progress = row
        .open
        .as_ref()
        .is_none_or(|open| open.to == row.from && open.from < open.to);
    row.from < row.to && ends_at_progress
}

/// Fates are exactly one only if no instant lies in two undecided spans (P2, P3).
fn overlaps(cursor: &CursorRow, backlogs: &[BacklogRow]) -> bool {
    let is_rerun = |row: &BacklogRow| row.backfill.is_some_and(|mark| mark.request != 0);
    let decide = backlogs.iter().filter(|row| !is_rerun(row));
    let mut spans: Vec<(StoreTime, StoreTime)> = decide
        .map(|row| (row.open.as_ref().map_or(row.from, |open| open.from), row.to))
        .collect();
    spans.extend(cursor.open.as_ref().map(|open| (open.from, open.to)));
    spans.sort_unstable();
    spans
        .windows(2)
        .any(|pair| matches!(pair, [first, second] if first.1 > second.0))
}
