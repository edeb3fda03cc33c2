//! Fate spans as they are written: one piece after the other, without hole or overlap (F23).
//!
//! Owns: growing the open span and closing it into a row. Must never: decide a fate. A tape belongs
//! to a live cursor or to one backlog.

use super::timetable::Timetable;
use crate::fate::{FateCounts, FateKind, FateRow, FateSpan, Lateness};
use crate::ids::Incarnation;
use crate::limits::FATE_PIECES_MAX;
use crate::machine::Out;
use crate::name::Name;
use crate::row::Row;
use crate::time::{Span, StoreTime};
use std::sync::Arc;

/// The end of the decided stretch of a cursor or a backlog.
pub(super) struct Tape<'a> {
    pub(super) owner: (&'a Name, &'a Name, Incarnation),
    pub(super) zone_version: &'a Arc<str>,
    /// Everything up to here is decided.
    pub(super) at: &'a mut StoreTime,
    /// Still grows; ends at `at`.
    pub(super) open: &'a mut Option<FateSpan>,
    pub(super) counts: &'a mut FateCounts,
}

/// The next piece of a tape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) to: StoreTime,
    pub(super) kind: FateKind,
    /// `None` if it was not worth counting.
    pub(super) count: Option<u64>,
    /// Lateness of a single fired occurrence.
    pub(super) late: Option<Span>,
    pub(super) definition: u64,
}

/// A stretch whose occurrences share a fate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bulk {
    pub(super) to: StoreTime,
    pub(super) kind: FateKind,
    pub(super) definition: u64,
}

impl Tape<'_> {
    /// Appends a piece: the open span grows, or is closed and another begins.
    pub(super) fn grow<E>(&mut self, piece: Piece, out: &mut Out<E>) {
        assert!(piece.to > *self.at, "a fate span moves forward");
        let from = std::mem::replace(self.at, piece.to);
        self.counts.add(piece.kind, piece.count.unwrap_or(0));
        if let Some(open) = self.open.as_mut().filter(|open| fits(open, &piece, self.zone_version)) {
            assert_eq!(open.to, from, "the open span ends where the tape stands");
            open.to = piece.to;
            open.count = open.count.zip(piece.count).map(|(a, b)| a + b);
            if let Some(late) = piece.late {
                open.lateness.add(late);
            }
            return;
        }
        self.close(out);
        let mut lateness = Lateness::default();
        if let Some(late) = piece.late {
            lateness.add(late);
        }
        *self.open = Some(FateSpan {
            from,
            to: piece.to,
            kind: piece.kind,
            count: piece.count,
            lateness,
            definition: piece.definition,
            zone_version: Arc::clone(self.zone_version),
        });
    }

    /// Gives all occurrences up to `to` one fate, without walking over them; those on excluded dates
    /// become *excluded*, piece by piece up to `FATE_PIECES_MAX`. Stops short of `to` where nothing is
    /// left to decide. Answers how many occurrences got `kind`, if that was counted.
    pub(super) fn pass<E>(&mut self, table: &Timetable, bulk: Bulk, out: &mut Out<E>) -> Option<u64> {
        let mut total = Some(0);
        for piece in 0..=FATE_PIECES_MAX {
            let Some(first) = table.next_raw(*self.at).filter(|first| *first <= bulk.to) else {
                break;
            };
            let whole = !table.has_exclusions() || piece == FATE_PIECES_MAX;
            let (kind, to) = match table.stretch(first) {
                _ if whole => (bulk.kind, bulk.to),
                stretch if stretch.excluded => (FateKind::Excluded, stretch.last.min(bulk.to)),
                stretch => (bulk.kind, stretch.last.min(bulk.to)),
            };
            let count = match whole {
                true => table.count(*self.at, to),
                false => table.count_raw(*self.at, to),
            };
            if kind == bulk.kind {
                total = total.zip(count).map(|(a, b)| a + b);
            }
            let definition = bulk.definition;
            self.grow(
                Piece {
                    to,
                    kind,
                    count,
                    late: None,
                    definition,
                },
                out,
            );
        }
        total
    }

    /// Gives the excluded occurrences before `nominal`, which is the next one, their fate.
    pub(super) fn pass_excluded<E>(
        &mut self,
        table: &Timetable,
        nominal: StoreTime,
        definition: u64,
        out: &mut Out<E>,
    ) {
        if !table.has_exclusions() {
            return;
        }
        if let Some(to) = table.prev_raw(nominal).filter(|to| *to > *self.at) {
            let kind = FateKind::Excluded;
            self.pass(table, Bulk { to, kind, definition }, out);
        }
    }

    /// Lets the open span reach up to `to`, where nothing is left to decide.
    pub(super) fn stretch_to(&mut self, to: StoreTime) {
        if let Some(open) = self.open.as_mut().filter(|_| to > *self.at) {
            open.to = to;
            *self.at = to;
        }
    }

    /// Makes a row of the open span.
    pub(super) fn close<E>(&mut self, out: &mut Out<E>) {
        let Some(span) = self.open.take() else {
            return;
        };
        out.put(row(self.owner, span));
    }
}

/// The row of a closed span.
pub(super) fn row(owner: (&Name, &Name, Incarnation), span: FateSpan) -> Row {
    assert!(span.from < span.to, "a fate span is not empty");
    Row::Fate(Box::new(FateRow {
        tenant: owner.0.clone(),
        name: owner.1.clone(),
        incarnation: owner.2,
        span,
    }))
}

fn fits(open: &FateSpan, piece: &Piece, zone_version: &Arc<str>) -> bool {
    open.kind == piece.kind && open.definition == piece.definition && open.zone_version == *zone_version
}
