//! Strategies for every row, for the property tests of keys and codec.
//!
//! Owns: legal values in their whole width. Next: `schedules.rs`, `tests.rs`.

mod schedules;

use fencepost_core::fate::FateRow;
use fencepost_core::ids::{Epoch, Generation, Incarnation, JobId, Scope, ShardId, Slot, Token, WorkerId};
use fencepost_core::job::{
    AttemptRecord, AttemptResult, Delivery, FireCause, Job, JobSpec, JobState, Origin, Place, RetryPolicy,
};
use fencepost_core::level::Level;
use fencepost_core::name::Name;
use fencepost_core::row::{
    AssignmentRow, AttemptsRow, CellRow, DeadLetterRow, KeyRow, LeasedRow, MarkRange, MarkRow, ParkedRow,
    QuarantineRow, ReadyRow, Row, RowKey, WaitRow,
};
use fencepost_core::schedule::ScheduleDefinition;
use fencepost_core::target::{CommandTarget, HttpTarget, Payload, PayloadKind, Target};
use fencepost_core::time::{Span, StoreTime};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use schedules::{backlog, cursor, edit, fate_span, request, schedule_spec};
use std::sync::Arc;

pub(crate) fn name() -> BoxedStrategy<Name> {
    prop_oneof![
        2 => Just("default".to_owned()),
        1 => Just("noop".to_owned()),
        3 => "[a-c]{1,3}",
        1 => "[A-Za-z0-9][A-Za-z0-9._-]{0,127}",
    ]
    .prop_map(|text| Name::new(&text).unwrap())
    .boxed()
}

pub(crate) fn time() -> BoxedStrategy<StoreTime> {
    prop_oneof![
        0_i64..100,
        1_790_000_000_000_000_i64..1_800_000_000_000_000,
        i64::MIN..=StoreTime::MAX.0,
        Just(StoreTime::MAX.0),
    ]
    .prop_map(StoreTime)
    .boxed()
}

fn span() -> BoxedStrategy<Span> {
    prop_oneof![0_u64..3, Just(300_000_000), any::<u64>()]
        .prop_map(Span)
        .boxed()
}

fn text() -> BoxedStrategy<Arc<str>> {
    "\\PC{0,40}".prop_map(|text| Arc::from(text.as_str())).boxed()
}

fn slot() -> BoxedStrategy<Slot> {
    prop_oneof![0_u16..3, 0_u16..16_384]
        .prop_map(|number| Slot::new(number).unwrap())
        .boxed()
}

pub(crate) fn job_id() -> BoxedStrategy<JobId> {
    (slot(), any::<[u8; 14]>())
        .prop_map(|(slot, chance)| JobId::fresh(slot, chance))
        .boxed()
}

fn shard() -> BoxedStrategy<ShardId> {
    prop_oneof![0_u16..3, any::<u16>()].prop_map(ShardId).boxed()
}

fn incarnation() -> BoxedStrategy<Incarnation> {
    (any::<u32>(), any::<u64>(), any::<u64>(), any::<u32>())
        .prop_map(|(generation, epoch, batch, place)| Incarnation {
            generation: Generation(generation),
            epoch: Epoch(epoch),
            batch,
            place,
        })
        .boxed()
}

fn token() -> BoxedStrategy<Token> {
    (any::<u32>(), any::<u64>(), any::<u64>())
        .prop_map(|(generation, epoch, sequence)| Token {
            generation: Generation(generation),
            epoch: Epoch(epoch),
            sequence,
        })
        .boxed()
}

fn worker() -> BoxedStrategy<WorkerId> {
    (name(), any::<u64>())
        .prop_map(|(node, boot)| WorkerId { node, boot })
        .boxed()
}

fn pairs() -> BoxedStrategy<Vec<(String, String)>> {
    vec(("[a-z-]{1,9}", "\\PC{0,20}"), 0..4).boxed()
}

fn target() -> BoxedStrategy<Target> {
    prop_oneof![
        2 => Just(Target::Handler(Name::new("noop").unwrap())),
        1 => name().prop_map(Target::Handler),
        1 => name().prop_map(Target::Remote),
        1 => (text(), text(), pairs()).prop_map(|(method, url, headers)| Target::Http(HttpTarget { method, url, headers })),
        1 => (vec("\\PC{0,9}", 0..5), any::<bool>(), pairs(), of("\\PC{0,9}"), span()).prop_map(
            |(argv, shell, env, directory, grace)| Target::Command(CommandTarget { argv, shell, env, directory, grace })
        ),
    ]
    .boxed()
}

fn payload() -> BoxedStrategy<Payload> {
    prop_oneof![
        Just(Payload::empty()),
        (any::<bool>(), vec(any::<u8>(), 0..200)).prop_map(|(json, bytes)| Payload {
            kind: if json { PayloadKind::Json } else { PayloadKind::Bytes },
            bytes: Arc::from(bytes),
        }),
    ]
    .boxed()
}

fn retry() -> BoxedStrategy<RetryPolicy> {
    let usual = RetryPolicy {
        attempt_count_max: 5,
        backoff_first: Span::from_secs(1),
        backoff_cap: Span::from_secs(3_600),
    };
    prop_oneof![
        Just(usual),
        (1_u32..=1_000, span(), span()).prop_map(|(attempt_count_max, backoff_first, backoff_cap)| RetryPolicy {
            attempt_count_max,
            backoff_first,
            backoff_cap,
        }),
    ]
    .boxed()
}

pub(crate) fn spec() -> BoxedStrategy<Arc<JobSpec>> {
    (
        (name(), name(), target(), payload(), 0_u8..=9),
        (vec(name(), 0..4), span(), retry(), any::<bool>(), of(time())),
    )
        .prop_map(
            |((tenant, queue, target, payload, priority), (tags, timeout, retry, once, expires_at))| {
                Arc::new(JobSpec {
                    tenant,
                    queue,
                    target,
                    payload,
                    priority,
                    tags,
                    timeout,
                    retry,
                    delivery: if once {
                        Delivery::AtMostOnce
                    } else {
                        Delivery::AtLeastOnce
                    },
                    expires_at,
                })
            },
        )
        .boxed()
}

fn cause() -> BoxedStrategy<FireCause> {
    prop_oneof![
        Just(FireCause::Due),
        Just(FireCause::CatchUp),
        Just(FireCause::RunNow),
        Just(FireCause::Backfill),
        (time(), any::<u64>()).prop_map(|(first, count)| FireCause::Coalesced { first, count }),
    ]
    .boxed()
}

fn origin() -> BoxedStrategy<Origin> {
    prop_oneof![
        of(text()).prop_map(|key| Origin::Request { key }),
        (name(), incarnation(), any::<u64>(), time(), cause()).prop_map(
            |(schedule, incarnation, definition, nominal, cause)| Origin::Occurrence {
                schedule,
                incarnation,
                definition,
                nominal,
                cause,
            }
        ),
    ]
    .boxed()
}

fn place() -> BoxedStrategy<Place> {
    prop_oneof![
        (time(), span()).prop_map(|(at, length)| Place::Wait { at, length }),
        time().prop_map(|order| Place::Ready { order }),
        Just(Place::Leased),
        Just(Place::Parked),
        time().prop_map(|at| Place::DeadLetter { at }),
        Just(Place::None),
    ]
    .boxed()
}

fn attempt() -> BoxedStrategy<AttemptRecord> {
    let result = prop::sample::select(vec![
        AttemptResult::Succeeded,
        AttemptResult::Failed,
        AttemptResult::TimedOut,
        AttemptResult::WorkerLost,
        AttemptResult::HandedBack,
        AttemptResult::Cancelled,
    ]);
    (
        any::<u32>(),
        token(),
        worker(),
        (time(), time()),
        result,
        of(text()),
        vec(any::<u8>(), 0..90),
    )
        .prop_map(
            |(no, token, worker, (granted_at, ended_at), result, error, output)| AttemptRecord {
                no,
                token,
                worker,
                granted_at,
                ended_at,
                result,
                error,
                output: Arc::from(output),
            },
        )
        .boxed()
}

pub(crate) fn job() -> BoxedStrategy<Job> {
    let state = prop::sample::select(vec![
        JobState::Waiting,
        JobState::Ready,
        JobState::Leased,
        JobState::Uncertain,
        JobState::Succeeded,
        JobState::Cancelled,
        JobState::Dead,
        JobState::Expired,
    ]);
    (
        (job_id(), any::<u64>(), spec(), origin(), time(), time()),
        (state, of(text()), place(), any::<[u32; 3]>(), vec(attempt(), 0..4)),
        (of(time()), of(time()), of(span())),
    )
        .prop_map(
            |((id, version, spec, origin, created_at, due_at), (state, reason, place, counts, attempts), ends)| Job {
                id,
                version,
                spec,
                origin,
                created_at,
                due_at,
                state,
                reason,
                place,
                charged: counts[0],
                refunded: counts[1],
                attempt_next: counts[2],
                attempts,
                cancel_requested_at: ends.0,
                ended_at: ends.1,
                key_kept: ends.2,
            },
        )
        .boxed()
}

fn leased() -> BoxedStrategy<LeasedRow> {
    (
        (job_id(), any::<u64>(), any::<u32>(), token(), worker()),
        (time(), span(), any::<bool>(), any::<u64>(), any::<u32>(), time()),
    )
        .prop_map(
            |((id, job_version, attempt, token, worker), (granted_at, length, begun, seen, starts, order))| LeasedRow {
                id,
                job_version,
                attempt,
                token,
                worker,
                granted_at,
                length,
                begun,
                seen: Epoch(seen),
                unseen_starts: starts,
                order,
            },
        )
        .boxed()
}

pub(crate) fn ready() -> BoxedStrategy<ReadyRow> {
    (shard(), name(), name(), any::<u8>(), time(), job_id())
        .prop_map(|(shard, queue, tenant, priority, order, id)| ReadyRow {
            shard,
            queue,
            tenant,
            priority,
            order,
            id,
        })
        .boxed()
}

fn scope() -> BoxedStrategy<Scope> {
    prop_oneof![Just(Scope::Coordinator), shard().prop_map(Scope::Shard)].boxed()
}

fn range() -> BoxedStrategy<MarkRange> {
    prop_oneof![
        Just(MarkRange::Wait),
        (name(), name()).prop_map(|(q, t)| MarkRange::Ready(q, t))
    ]
    .boxed()
}

fn small() -> BoxedStrategy<Row> {
    let facts = (any::<u128>(), any::<u32>(), 1_u16..=256, time());
    let key = ((name(), text(), job_id()), any::<[u8; 32]>(), time());
    let from = prop_oneof![
        (shard(), time(), job_id()).prop_map(|(s, t, j)| RowKey::Wait(s, t, j)),
        ready().prop_map(RowKey::Ready),
    ];
    prop_oneof![
        (facts, (1..=2_u16).prop_map(Level)).prop_map(|((cell, generation, shards, created_at), level)| Row::Cell(
            CellRow {
                cell,
                generation: Generation(generation),
                shards,
                created_at,
                level,
            }
        )),
        (scope(), name(), any::<u64>())
            .prop_map(|(scope, node, version)| { Row::Assignment(AssignmentRow { scope, node, version }) }),
        (shard(), time(), job_id(), of(span())).prop_map(|(shard, at, id, length)| Row::Wait(WaitRow {
            shard,
            at,
            id,
            length
        })),
        ready().prop_map(Row::Ready),
        leased().prop_map(|row| Row::Leased(Box::new(row))),
        (job_id(), time()).prop_map(|(id, at)| Row::Parked(ParkedRow { id, at })),
        (job_id(), time()).prop_map(|(id, at)| Row::DeadLetter(DeadLetterRow { id, at })),
        (job_id(), any::<u32>(), vec(attempt(), 1..9))
            .prop_map(|(id, page, records)| Row::Attempts(Box::new(AttemptsRow { id, page, records }))),
        key.prop_map(|((tenant, key, job), digest, created_at)| {
            Row::Key(Box::new(KeyRow {
                tenant,
                key,
                job,
                digest,
                created_at,
            }))
        }),
        (shard(), range(), from).prop_map(|(shard, range, from)| Row::Mark(MarkRow { shard, range, from })),
        (shard(), vec(any::<u8>(), 0..40), text(), time(), any::<u32>()).prop_map(
            |(shard, key, reason, at, deaths)| {
                Row::Quarantine(Box::new(QuarantineRow {
                    shard,
                    key: Arc::from(key),
                    reason,
                    at,
                    deaths,
                }))
            }
        ),
    ]
    .boxed()
}

/// A row of any kind.
pub(crate) fn row() -> BoxedStrategy<Row> {
    let definition = (
        (name(), name(), incarnation(), any::<u64>()),
        (time(), time()),
        schedule_spec(),
    )
        .prop_map(
            |((tenant, name, incarnation, version), (created_at, effective_at), spec)| {
                Row::Definition(Box::new(ScheduleDefinition {
                    tenant,
                    name,
                    incarnation,
                    version,
                    created_at,
                    effective_at,
                    spec,
                }))
            },
        );
    let fate = (name(), name(), incarnation(), fate_span()).prop_map(|(tenant, name, incarnation, span)| {
        Row::Fate(Box::new(FateRow {
            tenant,
            name,
            incarnation,
            span,
        }))
    });
    prop_oneof![
        6 => small(),
        3 => job().prop_map(|row| Row::Job(Box::new(row))),
        1 => definition,
        1 => fate,
        1 => cursor().prop_map(|row| Row::Cursor(Box::new(row))),
        1 => backlog().prop_map(|row| Row::Backlog(Box::new(row))),
        1 => edit().prop_map(|row| Row::Edit(Box::new(row))),
        1 => request().prop_map(|row| Row::Request(Box::new(row))),
    ]
    .boxed()
}
