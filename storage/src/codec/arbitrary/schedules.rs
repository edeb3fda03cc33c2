//! Strategies for what schedules store.
//!
//! Owns: definitions, cursors, backlogs, edits and fate spans. Next: `../arbitrary.rs`.

use super::{incarnation, job_id, name, span, spec, text, time};
use fencepost_core::fate::{FATE_KINDS, FateCounts, FateSpan, Lateness};
use fencepost_core::limits::EDIT_DROPS_MAX;
use fencepost_core::schedule::{
    BackfillMark, BacklogRow, CursorRow, DroppedOccurrence, EditKind, EditRow, Exclusion, GapPolicy, KeptOccurrence,
    MisfirePolicy, OverlapPolicy, PendingFate, RequestAnswer, RequestRow, Rule, ScheduleSpec,
};
use fencepost_core::time::Span;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

fn policies() -> BoxedStrategy<(GapPolicy, OverlapPolicy)> {
    (
        prop::sample::select(vec![GapPolicy::NextValid, GapPolicy::Skip]),
        prop::sample::select(vec![OverlapPolicy::First, OverlapPolicy::Second, OverlapPolicy::Both]),
    )
        .boxed()
}

fn rule() -> BoxedStrategy<Rule> {
    prop_oneof![
        (vec((text(), text()), 1..4), text(), policies()).prop_map(|(both, zone, (gap, overlap))| {
            let (expressions, resolved) = both.into_iter().unzip();
            Rule::Cron {
                expressions,
                resolved,
                zone,
                gap,
                overlap,
            }
        }),
        (1_u64.., time(), text()).prop_map(|(every, anchor, zone)| Rule::Interval {
            every: Span(every),
            anchor,
            zone
        }),
        (time(), of(text()), text(), policies()).prop_map(|(at, local, zone, (gap, overlap))| Rule::Once {
            at,
            local,
            zone,
            gap,
            overlap,
        }),
    ]
    .boxed()
}

pub(super) fn schedule_spec() -> BoxedStrategy<ScheduleSpec> {
    let exclusion = prop_oneof![
        (any::<i32>(), any::<i32>()).prop_map(|(a, b)| Exclusion::Dates {
            first: a.min(b),
            last: a.max(b)
        }),
        (0_u8..7).prop_map(Exclusion::Weekday),
    ];
    let misfire = prop_oneof![
        Just(MisfirePolicy::Latest),
        Just(MisfirePolicy::Coalesce),
        (any::<u32>(), any::<u32>()).prop_map(|(cap, rate)| MisfirePolicy::All { cap, rate }),
        Just(MisfirePolicy::Skip),
    ];
    (
        (rule(), of(time()), of(time()), of(any::<u64>()), vec(exclusion, 0..5)),
        (span(), misfire, span(), of(span()), spec()),
    )
        .prop_map(
            |((rule, starts_at, ends_at, count_max, exclusions), (jitter, misfire, tolerance, grace, job))| {
                ScheduleSpec {
                    rule,
                    starts_at,
                    ends_at,
                    count_max,
                    exclusions,
                    jitter,
                    misfire,
                    tolerance,
                    grace,
                    job,
                }
            },
        )
        .boxed()
}

pub(super) fn fate_span() -> BoxedStrategy<FateSpan> {
    let lateness = prop_oneof![
        Just(Lateness::default()),
        (any::<[u64; 10]>(), span()).prop_map(|(buckets, max)| Lateness { buckets, max }),
    ];
    let kind = prop::sample::select(FATE_KINDS.to_vec());
    ((time(), time()), kind, of(any::<u64>()), lateness, any::<u64>(), text())
        .prop_map(|((a, b), kind, count, lateness, definition, zone_version)| FateSpan {
            from: a.min(b),
            to: a.max(b),
            kind,
            count,
            lateness,
            definition,
            zone_version,
        })
        .boxed()
}

pub(super) fn cursor() -> BoxedStrategy<CursorRow> {
    let kept = (time(), time(), any::<u64>()).prop_map(|(nominal, due, definition)| KeptOccurrence {
        nominal,
        due,
        definition,
    });
    let dropped = (time(), any::<i32>()).prop_map(|(nominal, offset)| DroppedOccurrence { nominal, offset });
    let counts =
        vec(prop_oneof![Just(0_u64), any::<u64>()], 13).prop_map(|counts| FateCounts(counts.try_into().unwrap()));
    (
        (name(), name(), incarnation(), any::<u64>(), time(), time()),
        (
            any::<i32>(),
            text(),
            of(kept),
            vec(dropped, 0..=EDIT_DROPS_MAX),
            of(fate_span()),
        ),
        (
            of(time()),
            of(time()),
            any::<u64>(),
            counts,
            (any::<u32>(), vec(any::<u64>(), 0..4)),
        ),
    )
        .prop_map(
            |(
                (tenant, name, incarnation, definition, history_at, nominal),
                (offset, zone_version, kept, dropped, open),
                end,
            )| {
                CursorRow {
                    tenant,
                    name,
                    incarnation,
                    definition,
                    history_at,
                    nominal,
                    offset,
                    zone_version,
                    kept,
                    dropped,
                    open,
                    paused_at: end.0,
                    finished_at: end.1,
                    fired: end.2,
                    counts: end.3,
                    backlog_next: end.4.0,
                    requests: end.4.1,
                }
            },
        )
        .boxed()
}

pub(super) fn backlog() -> BoxedStrategy<BacklogRow> {
    let mark = (any::<u64>(), any::<u32>()).prop_map(|(request, cap)| BackfillMark { request, cap });
    (
        (name(), name(), incarnation(), any::<u32>(), any::<u64>()),
        (time(), time(), any::<u32>(), of(mark), any::<u64>(), of(fate_span())),
    )
        .prop_map(
            |((tenant, name, incarnation, number, definition), (a, b, rate, backfill, released, open))| BacklogRow {
                tenant,
                name,
                incarnation,
                number,
                definition,
                from: a.min(b),
                to: a.max(b),
                rate,
                backfill,
                released,
                open,
            },
        )
        .boxed()
}

pub(super) fn request() -> BoxedStrategy<RequestRow> {
    let backfill = (any::<[u64; 3]>(), vec(time(), 0..9)).prop_map(|(counts, instants)| RequestAnswer::Backfill {
        count: counts[0],
        instants,
        already_fired: counts[1],
        over_cap: counts[2],
    });
    (
        (name(), name(), incarnation(), any::<u64>(), any::<[u8; 32]>()),
        (time(), span(), any::<(u32, u32)>(), vec(job_id(), 0..5)),
        prop_oneof![job_id().prop_map(RequestAnswer::Ran), backfill],
    )
        .prop_map(
            |((tenant, name, incarnation, number, digest), (at, kept, backlogs, jobs), answer)| RequestRow {
                tenant,
                name,
                incarnation,
                number,
                digest,
                at,
                kept,
                answer,
                backlogs,
                jobs,
            },
        )
        .boxed()
}

pub(super) fn edit() -> BoxedStrategy<EditRow> {
    let kind = prop::sample::select(vec![
        EditKind::Created,
        EditKind::Edited,
        EditKind::Paused,
        EditKind::Resumed,
        EditKind::Deleted,
        EditKind::RunNow,
        EditKind::Backfilled,
        EditKind::ZoneData,
        EditKind::Restored,
    ]);
    let pending = prop::sample::select(vec![PendingFate::Keep, PendingFate::Retime, PendingFate::Drop]);
    (
        (name(), name(), incarnation(), time()),
        kind,
        any::<[u64; 2]>(),
        of((time(), pending)),
    )
        .prop_map(|((tenant, name, incarnation, at), kind, versions, pending)| EditRow {
            tenant,
            name,
            incarnation,
            at,
            kind,
            from_version: versions[0],
            to_version: versions[1],
            pending,
        })
        .boxed()
}
