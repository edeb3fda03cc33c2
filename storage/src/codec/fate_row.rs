//! Fate spans and their counts.
//!
//! Owns: the first format. The span's bounds of a closed row are in its key. Must never: accept a
//! span that ends before it begins. Next: `schedule_row.rs`.

use super::RowError;
use crate::wire::{In, Out};
use fencepost_core::fate::{FateCounts, FateKind, FateRow, FateSpan, Lateness};
use fencepost_core::ids::Incarnation;
use fencepost_core::limits::NAME_BYTES_MAX;
use fencepost_core::name::Name;
use fencepost_core::time::StoreTime;

/// The tenant and the name of a schedule.
pub(super) type ScheduleName = (Name, Name);

pub(super) fn put_fate(row: &FateRow, out: &mut Out<'_>) {
    put_span(&row.span, out);
}

pub(super) fn take_fate(
    name: ScheduleName,
    incarnation: Incarnation,
    bounds: (StoreTime, StoreTime),
    input: &mut In<'_>,
) -> Result<FateRow, RowError> {
    Ok(FateRow {
        tenant: name.0,
        name: name.1,
        incarnation,
        span: take_span(bounds, input)?,
    })
}

/// Without its bounds.
pub(super) fn put_span(span: &FateSpan, out: &mut Out<'_>) {
    out.put(span.kind.number());
    out.option(span.count, |out, count| {
        out.put(count);
    });
    let fired = span.lateness != Lateness::default();
    out.put(fired);
    if fired {
        for bucket in span.lateness.buckets {
            out.put(bucket);
        }
        out.span(span.lateness.max);
    }
    out.put(span.definition).text(&span.zone_version);
}

/// `bounds` are (from, to).
pub(super) fn take_span(bounds: (StoreTime, StoreTime), input: &mut In<'_>) -> Result<FateSpan, RowError> {
    if bounds.0 > bounds.1 || bounds.1 > StoreTime::MAX {
        return Err(RowError::Illegal("span"));
    }
    Ok(FateSpan {
        from: bounds.0,
        to: bounds.1,
        kind: FateKind::from_number(input.take()?).ok_or(RowError::Illegal("fate"))?,
        count: input.option(In::take)?,
        lateness: take_lateness(input)?,
        definition: input.take()?,
        zone_version: input.text(NAME_BYTES_MAX, "zone version")?,
    })
}

fn take_lateness(input: &mut In<'_>) -> Result<Lateness, RowError> {
    let mut lateness = Lateness::default();
    if input.flag()? {
        for bucket in &mut lateness.buckets {
            *bucket = input.take()?;
        }
        lateness.max = input.span()?;
    }
    Ok(lateness)
}

/// Kinds that never happened cost one byte in all.
pub(super) fn put_counts(counts: &FateCounts, out: &mut Out<'_>) {
    let present = counts.0.iter().enumerate().filter(|(_, count)| **count != 0);
    out.put(present.fold(0_u16, |mask, (place, _)| mask | 1 << place));
    for count in counts.0.iter().filter(|count| **count != 0) {
        out.put(*count);
    }
}

pub(super) fn take_counts(input: &mut In<'_>) -> Result<FateCounts, RowError> {
    let mask: u16 = input.take()?;
    let mut counts = FateCounts::default();
    if mask >> counts.0.len() != 0 {
        return Err(RowError::Illegal("fate counts"));
    }
    for (place, count) in counts.0.iter_mut().enumerate() {
        if mask & 1 << place != 0 {
            *count = input.take()?;
        }
    }
    Ok(counts)
}
