//! A row as one kind, or nothing.
//!
//! Owns: the only place where all other kinds may be passed over, for readers of a range or key that holds
//! one kind. Must never: serve where kinds are told apart; such a match names every kind, so that a new one
//! is considered. Next: `row.rs`.

use crate::fate::FateRow;
use crate::job::Job;
use crate::row::{
    AssignmentRow, AttemptsRow, CellRow, KeyRow, LeasedRow, MarkRow, QuarantineRow, ReadyRow, Row, WaitRow,
};
use crate::schedule::{BacklogRow, CursorRow, EditRow, RequestRow, ScheduleDefinition};

macro_rules! kinds {
    ($($take:ident $kind:ident $inner:ty, $what:literal;)*) => {
        impl Row {
            $(
                #[doc = concat!("The row as ", $what, ", if it is one.")]
                pub fn $take(self) -> Option<$inner> {
                    let Row::$kind(row) = self else { return None };
                    Some(row)
                }
            )*
        }
    };
}

kinds! {
    into_cell Cell CellRow, "the facts of the cell";
    into_assignment Assignment AssignmentRow, "an assignment";
    into_definition Definition Box<ScheduleDefinition>, "a definition";
    into_cursor Cursor Box<CursorRow>, "a cursor";
    into_backlog Backlog Box<BacklogRow>, "a backlog";
    into_fate Fate Box<FateRow>, "a closed fate span";
    into_edit Edit Box<EditRow>, "an edit record";
    into_job Job Box<Job>, "a job";
    into_wait Wait WaitRow, "a wait";
    into_ready Ready ReadyRow, "a ready row";
    into_leased Leased Box<LeasedRow>, "a lease";
    into_key Key Box<KeyRow>, "an idempotency key";
    into_attempts Attempts Box<AttemptsRow>, "a page of attempts";
    into_mark Mark MarkRow, "a low-water mark";
    into_quarantine Quarantine Box<QuarantineRow>, "a quarantine";
    into_request Request Box<RequestRow>, "a request about a schedule";
}
