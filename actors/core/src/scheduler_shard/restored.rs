//! A schedule in a store that was restored from a backup (PROTOCOL F11).
//!
//! Owns: what is written so that occurrences that fired after the backup do not fire again where a second
//! run is worse than none: a schedule of at-most-once jobs is paused, and what its backlogs still owe gets
//! the fate *paused*. A person resumes it, and asks for what has not run with a backfill. Must never:
//! evaluate a rule: one that ends the process must not stop a restore. Next: `hold.rs`, `tape.rs`.

use super::contradiction::is_sound;
use super::tape::{Piece, Tape};
use crate::fate::FateKind;
use crate::job::Delivery;
use crate::machine::{Out, Write};
use crate::row::Row;
use crate::schedule::{BacklogRow, CursorRow, EditKind, EditRow, ScheduleDefinition};
use crate::time::{Span, StoreTime};

/// What holds a schedule; nothing if a second run of all that it may owe does no harm. `recorded_at` is the
/// instant of the newest entry in its history of edits, whose place must not be taken.
pub fn hold_restored(
    mut cursor: CursorRow,
    definitions: &[ScheduleDefinition],
    backlogs: Vec<BacklogRow>,
    (recorded_at, now): (Option<StoreTime>, StoreTime),
) -> Vec<Write> {
    let is_once = |version: u64| {
        let mut named = definitions.iter().filter(|row| row.version == version);
        named.any(|row| row.spec.job.delivery == Delivery::AtMostOnce)
    };
    let mut out: Out<()> = Out::default();
    for backlog in backlogs
        .into_iter()
        .filter(|row| is_once(row.definition) && is_sound(row))
    {
        close(&mut cursor, backlog, &mut out);
    }
    let is_live = cursor.finished_at.is_none();
    if is_live && (is_once(cursor.definition) || cursor.kept.is_some_and(|kept| is_once(kept.definition))) {
        cursor.paused_at.get_or_insert(now);
    } else if out.writes.is_empty() {
        return Vec::new();
    }
    out.put(Row::Edit(Box::new(EditRow {
        tenant: cursor.tenant.clone(),
        name: cursor.name.clone(),
        incarnation: cursor.incarnation,
        at: recorded_at.map_or(now, |last| now.max(last + Span(1))),
        kind: EditKind::Restored,
        from_version: cursor.definition,
        to_version: cursor.definition,
        pending: None,
    })));
    out.put(Row::Cursor(Box::new(cursor)));
    out.writes
}

/// Ends a backlog; the auditor counts what was left of it.
fn close(cursor: &mut CursorRow, mut backlog: BacklogRow, out: &mut Out<()>) {
    out.delete(Row::Backlog(Box::new(backlog.clone())).key());
    if backlog.backfill.is_some_and(|mark| mark.request != 0) {
        return;
    }
    let mut tape = Tape {
        owner: (&cursor.tenant, &cursor.name, cursor.incarnation),
        zone_version: &cursor.zone_version,
        at: &mut backlog.from,
        open: &mut backlog.open,
        counts: &mut cursor.counts,
    };
    let rest = Piece {
        to: backlog.to,
        kind: FateKind::Paused,
        count: None,
        late: None,
        definition: backlog.definition,
    };
    tape.grow(rest, out);
    tape.close(out);
}
