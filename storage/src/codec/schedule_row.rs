//! Definitions, cursors, backlogs, edits of schedules and requests about them.
//!
//! Owns: their first format, and the second of a cursor. Must never: accept a rule that could not have been made (no
//! expression, zero interval). Next: `fate_row.rs`, `spec.rs`.

use super::RowError;
use super::fate_row::{ScheduleName, put_counts, put_span, take_counts, take_span};
use super::spec::{put_spec, take_shared_spec};
use crate::wire::{In, Out, within};
use fencepost_core::fate::FateSpan;
use fencepost_core::ids::{Incarnation, JobId};
use fencepost_core::limits::{
    BACKFILL_SPANS_MAX, EDIT_DROPS_MAX, EXCLUSION_COUNT_MAX, EXPRESSION_BYTES_MAX, EXPRESSION_COUNT_MAX,
    NAME_BYTES_MAX, PAGE_ITEMS_MAX, REQUESTS_KEPT_MAX,
};
use fencepost_core::schedule::{
    BackfillMark, BacklogRow, CursorRow, DroppedOccurrence, EditKind, EditRow, Exclusion, GapPolicy, KeptOccurrence,
    MisfirePolicy, OverlapPolicy, PendingFate, RequestAnswer, RequestRow, Rule, ScheduleDefinition, ScheduleSpec,
};
use fencepost_core::time::{Span, StoreTime};

pub(super) fn put_definition(row: &ScheduleDefinition, out: &mut Out<'_>) {
    out.time(row.created_at).time(row.effective_at);
    let spec = &row.spec;
    put_rule(&spec.rule, out);
    out.option(spec.starts_at, |out, at| {
        out.time(at);
    });
    out.option(spec.ends_at, |out, at| {
        out.time(at);
    });
    out.option(spec.count_max, |out, count| {
        out.put(count);
    });
    out.list(&spec.exclusions, |out, exclusion| match exclusion {
        Exclusion::Dates { first, last } => {
            out.put(0_u8).put(*first).put(*last);
        }
        Exclusion::Weekday(day) => {
            out.put(1_u8).put(*day);
        }
    });
    out.span(spec.jitter);
    match spec.misfire {
        MisfirePolicy::Latest => out.put(0_u8),
        MisfirePolicy::Coalesce => out.put(1_u8),
        MisfirePolicy::All { cap, rate } => out.put(2_u8).put(cap).put(rate),
        MisfirePolicy::Skip => out.put(3_u8),
    };
    out.span(spec.tolerance).option(spec.grace, |out, grace| {
        out.span(grace);
    });
    put_spec(&spec.job, out);
}

pub(super) fn take_definition(
    name: ScheduleName,
    incarnation: Incarnation,
    version: u64,
    input: &mut In<'_>,
) -> Result<ScheduleDefinition, RowError> {
    Ok(ScheduleDefinition {
        tenant: name.0,
        name: name.1,
        incarnation,
        version,
        created_at: input.time()?,
        effective_at: input.time()?,
        spec: ScheduleSpec {
            rule: take_rule(input)?,
            starts_at: input.option(In::time)?,
            ends_at: input.option(In::time)?,
            count_max: input.option(In::take)?,
            exclusions: input.list(EXCLUSION_COUNT_MAX, "exclusions", take_exclusion)?,
            jitter: input.span()?,
            misfire: match input.take::<u8>()? {
                0 => MisfirePolicy::Latest,
                1 => MisfirePolicy::Coalesce,
                2 => MisfirePolicy::All {
                    cap: input.take()?,
                    rate: input.take()?,
                },
                3 => MisfirePolicy::Skip,
                _ => return Err(RowError::Illegal("misfire policy")),
            },
            tolerance: input.span()?,
            grace: input.option(In::span)?,
            job: take_shared_spec(input)?,
        },
    })
}

fn take_exclusion(input: &mut In<'_>) -> Result<Exclusion, RowError> {
    match input.take::<u8>()? {
        0 => {
            let (first, last): (i32, i32) = (input.take()?, input.take()?);
            if first > last {
                return Err(RowError::Illegal("excluded dates"));
            }
            Ok(Exclusion::Dates { first, last })
        }
        1 => Ok(Exclusion::Weekday(within(input.take()?, 0, 6, "weekday")?)),
        _ => Err(RowError::Illegal("exclusion")),
    }
}

fn put_rule(rule: &Rule, out: &mut Out<'_>) {
    match rule {
        Rule::Cron {
            expressions,
            resolved,
            zone,
            gap,
            overlap,
        } => {
            out.put(0_u8);
            for list in [expressions, resolved] {
                out.list(list, |out, expression| {
                    out.text(expression);
                });
            }
            out.text(zone);
            put_policies(*gap, *overlap, out);
        }
        Rule::Interval { every, anchor, zone } => {
            out.put(1_u8).span(*every).time(*anchor).text(zone);
        }
        Rule::Once {
            at,
            local,
            zone,
            gap,
            overlap,
        } => {
            out.put(2_u8).time(*at).option(local.as_deref(), |out, local| {
                out.text(local);
            });
            out.text(zone);
            put_policies(*gap, *overlap, out);
        }
    }
}

fn take_rule(input: &mut In<'_>) -> Result<Rule, RowError> {
    match input.take::<u8>()? {
        0 => take_cron(input),
        1 => Ok(Rule::Interval {
            every: Span(within(input.take()?, 1, u64::MAX, "interval")?),
            anchor: input.time()?,
            zone: input.text(NAME_BYTES_MAX, "zone")?,
        }),
        2 => {
            let at = input.time()?;
            let local = input.option(|input| input.text(NAME_BYTES_MAX, "local time"))?;
            let zone = input.text(NAME_BYTES_MAX, "zone")?;
            let (gap, overlap) = take_policies(input)?;
            Ok(Rule::Once {
                at,
                local,
                zone,
                gap,
                overlap,
            })
        }
        _ => Err(RowError::Illegal("rule")),
    }
}

fn take_cron(input: &mut In<'_>) -> Result<Rule, RowError> {
    let mut list = |bytes_max: usize| {
        input.list(EXPRESSION_COUNT_MAX, "expressions", |input| {
            input.text(bytes_max, "expression")
        })
    };
    let expressions = list(EXPRESSION_BYTES_MAX)?;
    let resolved = list(EXPRESSION_BYTES_MAX * 4)?;
    if expressions.is_empty() || expressions.len() != resolved.len() {
        return Err(RowError::Illegal("expressions"));
    }
    let zone = input.text(NAME_BYTES_MAX, "zone")?;
    let (gap, overlap) = take_policies(input)?;
    Ok(Rule::Cron {
        expressions,
        resolved,
        zone,
        gap,
        overlap,
    })
}

fn put_policies(gap: GapPolicy, overlap: OverlapPolicy, out: &mut Out<'_>) {
    out.put(match gap {
        GapPolicy::NextValid => 0_u8,
        GapPolicy::Skip => 1,
    });
    out.put(match overlap {
        OverlapPolicy::First => 0_u8,
        OverlapPolicy::Second => 1,
        OverlapPolicy::Both => 2,
    });
}

fn take_policies(input: &mut In<'_>) -> Result<(GapPolicy, OverlapPolicy), RowError> {
    let gap = match input.take::<u8>()? {
        0 => GapPolicy::NextValid,
        1 => GapPolicy::Skip,
        _ => return Err(RowError::Illegal("gap policy")),
    };
    let overlap = match input.take::<u8>()? {
        0 => OverlapPolicy::First,
        1 => OverlapPolicy::Second,
        2 => OverlapPolicy::Both,
        _ => return Err(RowError::Illegal("overlap policy")),
    };
    Ok((gap, overlap))
}

pub(super) fn put_cursor(row: &CursorRow, out: &mut Out<'_>) {
    out.incarnation(&row.incarnation).put(row.definition);
    out.time(row.history_at).time(row.nominal).put(row.offset);
    out.text(&row.zone_version);
    out.option(row.kept, |out, kept| {
        out.time(kept.nominal).time(kept.due).put(kept.definition);
    });
    put_open(row.open.as_ref(), out);
    out.option(row.paused_at, |out, at| {
        out.time(at);
    });
    out.option(row.finished_at, |out, at| {
        out.time(at);
    });
    out.put(row.fired);
    put_counts(&row.counts, out);
    out.put(row.backlog_next).list(&row.requests, |out, request| {
        out.put(*request);
    });
    if !row.dropped.is_empty() {
        out.list(&row.dropped, |out, dropped| {
            out.time(dropped.nominal).put(dropped.offset);
        });
    }
}

/// What a cursor row of the second format says behind the first.
pub(super) fn take_dropped(input: &mut In<'_>) -> Result<Vec<DroppedOccurrence>, RowError> {
    let dropped = input.list(EDIT_DROPS_MAX, "dropped occurrences", |input| {
        Ok::<_, RowError>(DroppedOccurrence {
            nominal: input.time()?,
            offset: input.take()?,
        })
    })?;
    match dropped.is_empty() {
        true => Err(RowError::Illegal("dropped occurrences")),
        false => Ok(dropped),
    }
}

pub(super) fn take_cursor(name: ScheduleName, input: &mut In<'_>) -> Result<CursorRow, RowError> {
    Ok(CursorRow {
        tenant: name.0,
        name: name.1,
        incarnation: input.incarnation()?,
        definition: input.take()?,
        history_at: input.time()?,
        nominal: input.time()?,
        offset: input.take()?,
        zone_version: input.text(NAME_BYTES_MAX, "zone version")?,
        kept: input.option(|input| {
            Ok::<_, RowError>(KeptOccurrence {
                nominal: input.time()?,
                due: input.time()?,
                definition: input.take()?,
            })
        })?,
        dropped: Vec::new(),
        open: take_open(input)?,
        paused_at: input.option(In::time)?,
        finished_at: input.option(In::time)?,
        fired: input.take()?,
        counts: take_counts(input)?,
        backlog_next: input.take()?,
        requests: input.list(REQUESTS_KEPT_MAX, "requests", In::take)?,
    })
}

pub(super) fn put_backlog(row: &BacklogRow, out: &mut Out<'_>) {
    out.put(row.definition).time(row.from).time(row.to).put(row.rate);
    out.option(row.backfill, |out, mark| {
        out.put(mark.request).put(mark.cap);
    });
    out.put(row.released);
    put_open(row.open.as_ref(), out);
}

/// A span that still grows, with its bounds.
fn put_open(open: Option<&FateSpan>, out: &mut Out<'_>) {
    out.option(open, |out, span| {
        out.time(span.from).time(span.to);
        put_span(span, out);
    });
}

fn take_open(input: &mut In<'_>) -> Result<Option<FateSpan>, RowError> {
    input.option(|input| {
        let bounds = (input.time()?, input.time()?);
        take_span(bounds, input)
    })
}

pub(super) fn take_backlog(
    name: ScheduleName,
    incarnation: Incarnation,
    number: u32,
    input: &mut In<'_>,
) -> Result<BacklogRow, RowError> {
    let row = BacklogRow {
        tenant: name.0,
        name: name.1,
        incarnation,
        number,
        definition: input.take()?,
        from: input.time()?,
        to: input.time()?,
        rate: input.take()?,
        backfill: input.option(|input| {
            Ok::<_, RowError>(BackfillMark {
                request: input.take()?,
                cap: input.take()?,
            })
        })?,
        released: input.take()?,
        open: take_open(input)?,
    };
    if row.from > row.to {
        return Err(RowError::Illegal("backlog span"));
    }
    Ok(row)
}

pub(super) fn put_request(row: &RequestRow, out: &mut Out<'_>) {
    out.put(row.digest).time(row.at).span(row.kept);
    match &row.answer {
        RequestAnswer::Ran(id) => {
            out.put(0_u8).put(*id.as_bytes());
        }
        RequestAnswer::Backfill {
            count,
            instants,
            already_fired,
            over_cap,
        } => {
            out.put(1_u8).put(*count).put(*already_fired).put(*over_cap);
            out.list(instants, |out, at| {
                out.time(*at);
            });
        }
    }
    out.put(row.backlogs.0).put(row.backlogs.1);
    out.list(&row.jobs, |out, id| {
        out.put(*id.as_bytes());
    });
}

pub(super) fn take_request(
    name: ScheduleName,
    (incarnation, number): (Incarnation, u64),
    input: &mut In<'_>,
) -> Result<RequestRow, RowError> {
    Ok(RequestRow {
        tenant: name.0,
        name: name.1,
        incarnation,
        number,
        digest: input.fixed()?,
        at: input.time()?,
        kept: input.span()?,
        answer: match input.take::<u8>()? {
            0 => RequestAnswer::Ran(take_id(input)?),
            1 => RequestAnswer::Backfill {
                count: input.take()?,
                already_fired: input.take()?,
                over_cap: input.take()?,
                instants: input.list(PAGE_ITEMS_MAX, "instants", In::time)?,
            },
            _ => return Err(RowError::Illegal("answer to a request")),
        },
        backlogs: (input.take()?, input.take()?),
        jobs: input.list(BACKFILL_SPANS_MAX, "jobs", take_id)?,
    })
}

fn take_id(input: &mut In<'_>) -> Result<JobId, RowError> {
    JobId::from_bytes(input.fixed()?).ok_or(RowError::Illegal("job id"))
}

pub(super) fn put_edit(row: &EditRow, out: &mut Out<'_>) {
    out.put(match row.kind {
        EditKind::Created => 0_u8,
        EditKind::Edited => 1,
        EditKind::Paused => 2,
        EditKind::Resumed => 3,
        EditKind::Deleted => 4,
        EditKind::RunNow => 5,
        EditKind::Backfilled => 6,
        EditKind::ZoneData => 7,
        EditKind::Restored => 8,
    });
    out.put(row.from_version).option(row.pending, |out, (at, fate)| {
        out.time(at).put(match fate {
            PendingFate::Keep => 0_u8,
            PendingFate::Retime => 1,
            PendingFate::Drop => 2,
        });
    });
}

pub(super) fn take_edit(
    name: ScheduleName,
    incarnation: Incarnation,
    (at, to_version): (StoreTime, u64),
    input: &mut In<'_>,
) -> Result<EditRow, RowError> {
    Ok(EditRow {
        tenant: name.0,
        name: name.1,
        incarnation,
        at,
        kind: match input.take::<u8>()? {
            0 => EditKind::Created,
            1 => EditKind::Edited,
            2 => EditKind::Paused,
            3 => EditKind::Resumed,
            4 => EditKind::Deleted,
            5 => EditKind::RunNow,
            6 => EditKind::Backfilled,
            7 => EditKind::ZoneData,
            8 => EditKind::Restored,
            _ => return Err(RowError::Illegal("edit kind")),
        },
        from_version: input.take()?,
        to_version,
        pending: input.option(|input| {
            let at = input.time()?;
            let fate = match input.take::<u8>()? {
                0 => PendingFate::Keep,
                1 => PendingFate::Retime,
                2 => PendingFate::Drop,
                _ => return Err(RowError::Illegal("pending fate")),
            };
            Ok((at, fate))
        })?,
    })
}
