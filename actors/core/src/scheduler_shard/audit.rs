//! The auditor: recomputes what should have happened and compares it with the fates.
//!
//! Owns: the comparison, from rows alone. Must never: use a running machine's memory, or repair. It
//! names any occurrence without a fate or with two, and fills in counts that nobody walked over.

use super::version::Version;
use crate::fate::{DEFINITION_UNKNOWN, FateCounts, FateKind, FateSpan};
use crate::limits::AUDIT_INSTANTS_MAX;
use crate::schedule::{BacklogRow, CursorRow, ScheduleDefinition};
use crate::time::StoreTime;
use std::collections::BTreeMap;

/// All rows of one incarnation, or a page of them.
#[derive(Clone, Copy, Debug)]
pub struct AuditInput<'a> {
    /// Every definition version.
    pub definitions: &'a [ScheduleDefinition],
    /// Versions up to this are not evaluated (F9); 0 for none.
    pub unevaluated: u64,
    /// Closed spans.
    pub fates: &'a [FateSpan],
    /// For a page of a history: where it begins, when that is not where the history does.
    pub begins_at: Option<StoreTime>,
    /// Where it stands; `None` once it is deleted, or if this page is not the last.
    pub cursor: Option<&'a CursorRow>,
    /// Backlogs.
    pub backlogs: &'a [BacklogRow],
}

/// What an audit found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditReport {
    /// Occurrences by fate, with those counted that the rows left uncounted.
    pub counts: FateCounts,
    /// Occurrences that lie in a backlog.
    pub pending: u64,
    /// Closed spans whose count was filled in, with that count.
    pub filled: Vec<(FateSpan, u64)>,
    /// Spans whose count is not known even now: too many to walk, or a rule that cannot be evaluated.
    pub uncounted: usize,
    /// What is wrong; empty on a sound history.
    pub faults: Vec<AuditFault>,
}

/// One thing wrong with a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditFault {
    /// What.
    pub kind: AuditFaultKind,
    /// Start of the stretch, exclusive.
    pub from: StoreTime,
    /// Its end, inclusive.
    pub to: StoreTime,
    /// The first occurrences in it, at most `AUDIT_INSTANTS_MAX`.
    pub instants: Vec<StoreTime>,
}

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditFaultKind {
    /// No span covers it.
    Hole,
    /// Two spans cover it.
    Overlap,
    /// A span counts other occurrences than the definition asks for.
    Count {
        /// As recorded.
        recorded: u64,
        /// As recomputed.
        expected: u64,
    },
    /// A span names a definition that is not there.
    DefinitionMissing,
    /// The schedule is in quarantine: nothing fires until someone edits, resumes or deletes it.
    Quarantined,
}

impl AuditFaultKind {
    /// The word shown to people.
    pub fn as_str(self) -> &'static str {
        match self {
            AuditFaultKind::Hole => "no_fate",
            AuditFaultKind::Overlap => "two_fates",
            AuditFaultKind::Count { .. } => "wrong_count",
            AuditFaultKind::DefinitionMissing => "definition_missing",
            AuditFaultKind::Quarantined => "quarantined",
        }
    }
}

struct Tile {
    span: FateSpan,
    is_closed: bool,
    is_pending: bool,
}

/// Compares a schedule's history with its definitions.
pub fn audit(input: AuditInput<'_>) -> AuditReport {
    let versions: BTreeMap<u64, Version> = input
        .definitions
        .iter()
        .map(|row| {
            (
                row.version,
                match row.version <= input.unevaluated {
                    true => Version::broken(row.clone()),
                    false => Version::compile(row.clone()).unwrap_or_else(|_| Version::broken(row.clone())),
                },
            )
        })
        .collect();
    let mut report = AuditReport::default();
    let mut tiles = tiles(input);
    tiles.sort_by_key(|tile| (tile.span.from, tile.span.to));
    check_cover(input, &tiles, &versions, &mut report);
    for tile in tiles {
        check_count(tile, &versions, &mut report);
    }
    report
}

fn tiles(input: AuditInput<'_>) -> Vec<Tile> {
    let tile = |span: &FateSpan, is_closed, is_pending| Tile {
        span: span.clone(),
        is_closed,
        is_pending,
    };
    let mut tiles: Vec<Tile> = input.fates.iter().map(|span| tile(span, true, false)).collect();
    tiles.extend(
        input
            .cursor
            .and_then(|cursor| cursor.open.as_ref())
            .map(|span| tile(span, false, false)),
    );
    for backlog in input.backlogs {
        if backlog.backfill.is_some_and(|mark| mark.request != 0) {
            continue;
        }
        tiles.extend(backlog.open.as_ref().map(|span| tile(span, false, false)));
        let rest = FateSpan {
            from: backlog.from,
            to: backlog.to,
            kind: FateKind::SkippedCap,
            count: None,
            lateness: Default::default(),
            definition: backlog.definition,
            zone_version: "".into(),
        };
        tiles.extend((rest.from < rest.to).then(|| tile(&rest, false, true)));
    }
    tiles
}

/// No hole, no overlap, from the begin of history up to the cursor.
fn check_cover(input: AuditInput<'_>, tiles: &[Tile], versions: &BTreeMap<u64, Version>, report: &mut AuditReport) {
    let first = tiles.first().map(|tile| tile.span.from);
    let history_at = input.cursor.map(|cursor| cursor.history_at);
    let Some(mut at) = input.begins_at.or(history_at).or(first) else {
        return;
    };
    let mut compare = |at: StoreTime, next: StoreTime| {
        let (kind, from, to) = match at.cmp(&next) {
            std::cmp::Ordering::Equal => return,
            std::cmp::Ordering::Less => (AuditFaultKind::Hole, at, next),
            std::cmp::Ordering::Greater => (AuditFaultKind::Overlap, next, at),
        };
        let instants = instants(versions, from, to);
        report.faults.push(AuditFault {
            kind,
            from,
            to,
            instants,
        });
    };
    for tile in tiles {
        compare(at, tile.span.from);
        at = at.max(tile.span.to);
    }
    if let Some(cursor) = input.cursor {
        compare(at, cursor.nominal);
    }
}

fn check_count(tile: Tile, versions: &BTreeMap<u64, Version>, report: &mut AuditReport) {
    let span = tile.span;
    if span.definition == DEFINITION_UNKNOWN {
        report.uncounted += 1;
        return;
    }
    let Some(version) = versions.get(&span.definition) else {
        let (kind, instants) = (AuditFaultKind::DefinitionMissing, Vec::new());
        report.faults.push(AuditFault {
            kind,
            from: span.from,
            to: span.to,
            instants,
        });
        return;
    };
    let expected = match version.is_broken() || span.kind == FateKind::Quarantined {
        true => None,
        false => expected(versions, &span),
    };
    match (expected, span.count) {
        _ if tile.is_pending => report.pending += expected.unwrap_or(0),
        (Some(expected), Some(recorded)) if expected != recorded => {
            report.counts.add(span.kind, recorded);
            report.faults.push(AuditFault {
                kind: AuditFaultKind::Count { recorded, expected },
                from: span.from,
                to: span.to,
                instants: instants(versions, span.from, span.to),
            });
        }
        (_, Some(recorded)) => report.counts.add(span.kind, recorded),
        (Some(expected), None) => {
            report.counts.add(span.kind, expected);
            if tile.is_closed {
                report.filled.push((span, expected));
            }
        }
        (None, None) => report.uncounted += 1,
    }
}

/// Occurrences that a span must count: those of its version, and those of older versions that its
/// stretch still holds from before the edits (only a pending one may be left there).
fn expected(versions: &BTreeMap<u64, Version>, span: &FateSpan) -> Option<u64> {
    let mut count = 0;
    let mut end = StoreTime::MAX;
    for (number, version) in versions.range(..=span.definition).rev() {
        let to = span.to.min(end);
        if to > span.from && (*number == span.definition || !version.is_broken()) {
            let included = version.timetable.count(span.from, to)?;
            count += match span.kind {
                FateKind::Excluded => version.timetable.count_raw(span.from, to)? - included,
                FateKind::FiredOnTime
                | FateKind::FiredLate
                | FateKind::Coalesced
                | FateKind::SkippedMisfire
                | FateKind::SkippedGrace
                | FateKind::SkippedConcurrency
                | FateKind::SkippedCap
                | FateKind::Expired
                | FateKind::Paused
                | FateKind::WithdrawnEdit
                | FateKind::WithdrawnDelete
                | FateKind::Quarantined => included,
            };
        }
        end = end.min(version.definition.effective_at);
    }
    Some(count)
}

/// The occurrences of a stretch, under whichever version reigned.
fn instants(versions: &BTreeMap<u64, Version>, from: StoreTime, to: StoreTime) -> Vec<StoreTime> {
    let mut found = Vec::new();
    let mut reigns = versions.values().peekable();
    while let Some(version) = reigns.next() {
        let end = reigns
            .peek()
            .map_or(StoreTime::MAX, |next| next.definition.effective_at)
            .min(to);
        let mut at = from;
        while let Some(next) = version.timetable.next_after(at).filter(|next| *next <= end)
            && found.len() < AUDIT_INSTANTS_MAX
        {
            at = next;
            found.push(next);
        }
    }
    found
}
