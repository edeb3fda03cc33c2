//! One fixed row of every kind, with every optional part present: the golden bytes' source.
//!
//! Owns: values that never change (a new field gets a new sample beside the old one). Next:
//! `golden.rs`.

use fencepost_core::fate::{FateCounts, FateKind, FateRow, FateSpan, Lateness};
use fencepost_core::ids::{
    BatchNo, Epoch, Generation, Holder, Incarnation, JobId, Scope, ShardId, Slot, Token, WorkerId,
};
use fencepost_core::job::{
    AttemptRecord, AttemptResult, Delivery, FireCause, Job, JobSpec, JobState, Origin, Place, RetryPolicy,
};
use fencepost_core::name::Name;
use fencepost_core::row::{
    AssignmentRow, AttemptsRow, CellRow, DeadLetterRow, KeyRow, LeasedRow, MarkRange, MarkRow, ParkedRow,
    QuarantineRow, ReadyRow, Row, RowKey, ScopeRow, WaitRow,
};
use fencepost_core::schedule::{
    BackfillMark, BacklogRow, CursorRow, DroppedOccurrence, EditKind, EditRow, Exclusion, GapPolicy, KeptOccurrence,
    MisfirePolicy, OverlapPolicy, PendingFate, RequestAnswer, RequestRow, Rule, ScheduleDefinition, ScheduleSpec,
};
use fencepost_core::target::{CommandTarget, HttpTarget, Payload, PayloadKind, Target};
use fencepost_core::time::{Span, StoreTime};
use std::sync::Arc;

const AT: StoreTime = StoreTime(1_795_000_000_123_456);

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn later(secs: u64) -> StoreTime {
    AT + Span::from_secs(secs)
}

fn id(byte: u8) -> JobId {
    JobId::fresh(Slot::new(4_097).unwrap(), [byte; 14])
}

fn life() -> Incarnation {
    Incarnation {
        generation: Generation(2),
        epoch: Epoch(7),
        batch: 300,
        place: 1,
    }
}

fn worker() -> WorkerId {
    WorkerId {
        node: name("node-1"),
        boot: 0x0123_4567_89ab_cdef,
    }
}

fn token() -> Token {
    Token {
        generation: Generation(2),
        epoch: Epoch(7),
        sequence: 70_000,
    }
}

/// A handler job at every default, with a payload of so many bytes.
pub(crate) fn small_job(payload: usize) -> Job {
    let spec = Arc::new(JobSpec {
        tenant: name("default"),
        queue: name("default"),
        target: Target::Handler(name("noop")),
        payload: Payload {
            kind: if payload == 0 {
                PayloadKind::Empty
            } else {
                PayloadKind::Json
            },
            bytes: Arc::from(vec![b'1'; payload]),
        },
        priority: 5,
        tags: Vec::new(),
        timeout: Span::from_secs(300),
        retry: RetryPolicy {
            attempt_count_max: 5,
            backoff_first: Span::from_secs(1),
            backoff_cap: Span::from_secs(3_600),
        },
        delivery: Delivery::AtLeastOnce,
        expires_at: None,
    });
    Job {
        due_at: later(3_600),
        state: JobState::Waiting,
        place: Place::Wait {
            at: later(3_600),
            length: Span::ZERO,
        },
        ..Job::due_at_once(id(1), spec, Origin::Request { key: None }, AT)
    }
}

/// The wait row of a job that waits for its first start.
pub(crate) fn wait_of(job: &Job) -> Row {
    Row::Wait(WaitRow {
        shard: ShardId(4),
        at: job.due_at,
        id: job.id,
        length: None,
    })
}

fn http_spec() -> JobSpec {
    JobSpec {
        tenant: name("acme"),
        queue: name("mail"),
        target: Target::Http(HttpTarget {
            method: "POST".into(),
            url: "https://example.com/hook".into(),
            headers: vec![("x-kind".into(), "bill".into())],
        }),
        payload: Payload {
            kind: PayloadKind::Bytes,
            bytes: Arc::from([0, 255, 7].as_slice()),
        },
        priority: 9,
        tags: vec![name("red"), name("blue")],
        timeout: Span::from_secs(9),
        retry: RetryPolicy {
            attempt_count_max: 3,
            backoff_first: Span::from_millis(5),
            backoff_cap: Span::from_secs(60),
        },
        delivery: Delivery::AtMostOnce,
        expires_at: Some(later(86_400)),
    }
}

fn attempt(no: u32, result: AttemptResult, error: Option<&str>) -> AttemptRecord {
    AttemptRecord {
        no,
        token: token(),
        worker: worker(),
        granted_at: later(1),
        ended_at: later(2),
        result,
        error: error.map(Arc::from),
        output: Arc::from(b"out".as_slice()),
    }
}

fn full_job() -> Job {
    Job {
        id: id(2),
        version: 0x0102_0304_0506_0708,
        spec: Arc::new(http_spec()),
        origin: Origin::Occurrence {
            schedule: name("nightly"),
            incarnation: life(),
            definition: 3,
            nominal: AT,
            cause: FireCause::Coalesced {
                first: StoreTime(AT.0 - 1),
                count: 2,
            },
        },
        created_at: AT,
        due_at: later(3),
        state: JobState::Dead,
        reason: Some("attempts used up".into()),
        place: Place::DeadLetter { at: later(5) },
        charged: 2,
        refunded: 1,
        attempt_next: 3,
        attempts: vec![
            attempt(1, AttemptResult::Failed, Some("500")),
            attempt(2, AttemptResult::WorkerLost, None),
        ],
        cancel_requested_at: Some(later(4)),
        ended_at: Some(later(5)),
        key_kept: None,
    }
}

/// A job whose end promised its key another time than usual.
pub(crate) fn keeping_job() -> Job {
    let origin = Origin::Request { key: Some("K".into()) };
    let mut job = Job::due_at_once(id(3), Arc::new(http_spec()), origin, AT);
    (job.state, job.place) = (JobState::Succeeded, Place::None);
    job.end(later(5), Span::from_secs(3_600));
    job
}

fn command_definition() -> ScheduleDefinition {
    let mut spec = http_spec();
    spec.target = Target::Command(CommandTarget {
        argv: vec!["/bin/echo".into(), "hi".into()],
        shell: true,
        env: vec![("LANG".into(), "C".into())],
        directory: Some("/tmp".into()),
        grace: Span::from_secs(5),
    });
    ScheduleDefinition {
        tenant: name("acme"),
        name: name("nightly"),
        incarnation: life(),
        version: 3,
        created_at: AT,
        effective_at: later(1),
        spec: ScheduleSpec {
            rule: Rule::Cron {
                expressions: vec!["H 3 * * *".into(), "@daily".into()],
                resolved: vec!["17 3 * * *".into(), "0 0 * * *".into()],
                zone: "Europe/Berlin".into(),
                gap: GapPolicy::Skip,
                overlap: OverlapPolicy::Both,
            },
            starts_at: Some(AT),
            ends_at: Some(later(99)),
            count_max: Some(1_000),
            exclusions: vec![
                Exclusion::Dates {
                    first: -3,
                    last: 20_000,
                },
                Exclusion::Weekday(6),
            ],
            jitter: Span::from_secs(30),
            misfire: MisfirePolicy::All { cap: 100, rate: 50 },
            tolerance: Span::from_secs(60),
            grace: Some(Span::from_secs(600)),
            job: Arc::new(spec),
        },
    }
}

fn fate_span() -> FateSpan {
    FateSpan {
        from: AT,
        to: later(60),
        kind: FateKind::FiredLate,
        count: Some(60),
        lateness: Lateness {
            buckets: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
            max: Span::from_secs(61),
        },
        definition: 3,
        zone_version: "2026c".into(),
    }
}

fn cursor() -> CursorRow {
    let mut counts = FateCounts::default();
    counts.add(FateKind::FiredOnTime, 500);
    counts.add(FateKind::Quarantined, 1);
    CursorRow {
        tenant: name("acme"),
        name: name("nightly"),
        incarnation: life(),
        definition: 3,
        history_at: AT,
        nominal: later(60),
        offset: -3_600,
        zone_version: "2026c".into(),
        kept: Some(KeptOccurrence {
            nominal: later(70),
            due: later(71),
            definition: 2,
        }),
        dropped: Vec::new(),
        open: Some(fate_span()),
        paused_at: Some(later(62)),
        finished_at: Some(later(63)),
        fired: 501,
        counts,
        backlog_next: 2,
        requests: vec![7, 70_000],
    }
}

/// Where a schedule stands of which edits dropped two fires that have not come yet.
pub(crate) fn dropping_cursor() -> CursorRow {
    let dropped = |seconds, offset| DroppedOccurrence {
        nominal: later(seconds),
        offset,
    };
    CursorRow {
        dropped: vec![dropped(80, 7_200), dropped(90, -3_600)],
        ..cursor()
    }
}

fn schedule_rows() -> Vec<Row> {
    let (tenant, schedule) = (name("acme"), name("nightly"));
    vec![
        Row::Definition(Box::new(command_definition())),
        Row::Cursor(Box::new(cursor())),
        Row::Backlog(Box::new(BacklogRow {
            tenant: tenant.clone(),
            name: schedule.clone(),
            incarnation: life(),
            number: 1,
            definition: 3,
            from: AT,
            to: later(60),
            rate: 50,
            backfill: Some(BackfillMark { request: 9, cap: 100 }),
            released: 17,
            open: Some(fate_span()),
        })),
        Row::Fate(Box::new(FateRow {
            tenant: tenant.clone(),
            name: schedule.clone(),
            incarnation: life(),
            span: fate_span(),
        })),
        Row::Edit(Box::new(EditRow {
            tenant,
            name: schedule,
            incarnation: life(),
            at: AT,
            kind: EditKind::Edited,
            from_version: 2,
            to_version: 3,
            pending: Some((later(70), PendingFate::Keep)),
        })),
    ]
}

fn place_rows() -> Vec<Row> {
    let ready = ReadyRow {
        shard: ShardId(4),
        queue: name("mail"),
        tenant: name("acme"),
        priority: 5,
        order: AT,
        id: id(1),
    };
    vec![
        Row::Wait(WaitRow {
            shard: ShardId(4),
            at: AT,
            id: id(1),
            length: Some(Span::from_secs(2)),
        }),
        Row::Ready(ready.clone()),
        Row::Leased(Box::new(LeasedRow {
            id: id(1),
            job_version: 4,
            attempt: 2,
            token: token(),
            worker: worker(),
            granted_at: AT,
            length: Span::from_secs(30),
            begun: true,
            seen: Epoch(7),
            unseen_starts: 1,
            order: later(1),
        })),
        Row::Parked(ParkedRow { id: id(1), at: AT }),
        Row::DeadLetter(DeadLetterRow { id: id(2), at: AT }),
        Row::Attempts(Box::new(AttemptsRow {
            id: id(2),
            page: 1,
            records: vec![
                attempt(9, AttemptResult::TimedOut, Some("too slow")),
                attempt(10, AttemptResult::HandedBack, None),
            ],
        })),
        Row::Mark(MarkRow {
            shard: ShardId(4),
            range: MarkRange::Ready(name("mail"), name("acme")),
            from: RowKey::Ready(ready),
        }),
    ]
}

/// One of every kind.
pub(crate) fn rows() -> Vec<Row> {
    let mut rows = vec![
        Row::Cell(CellRow {
            cell: 0x1234_5678_9abc_def0_0fed_cba9_8765_4321,
            generation: Generation(2),
            shards: 16,
            created_at: AT,
            level: fencepost_core::level::FIRST,
        }),
        Row::Assignment(AssignmentRow {
            scope: Scope::Shard(ShardId(4)),
            node: name("node-1"),
            version: 3,
        }),
        Row::Job(Box::new(small_job(2))),
        Row::Job(Box::new(full_job())),
        Row::Key(Box::new(KeyRow {
            tenant: name("acme"),
            key: "order 7/ä".into(),
            job: id(1),
            digest: [0xab; 32],
            created_at: AT,
        })),
        Row::Quarantine(Box::new(QuarantineRow {
            shard: ShardId(4),
            key: Arc::from([0x30, 1, 2].as_slice()),
            reason: "the row ends too early".into(),
            at: AT,
            deaths: 1,
        })),
    ];
    rows.extend(schedule_rows());
    rows.extend(place_rows());
    rows.extend(remote_rows());
    rows.extend(request_rows());
    rows
}

/// One answer of each kind.
fn request_rows() -> Vec<Row> {
    let row = |number, answer, backlogs, jobs| {
        Row::Request(Box::new(RequestRow {
            tenant: name("acme"),
            name: name("nightly"),
            incarnation: life(),
            number,
            digest: [0xef; 32],
            at: AT,
            kept: Span::from_secs(86_400),
            answer,
            backlogs,
            jobs,
        }))
    };
    let answer = RequestAnswer::Backfill {
        count: 2,
        instants: vec![AT, later(60)],
        already_fired: 300,
        over_cap: 1,
    };
    vec![
        row(9, RequestAnswer::Ran(id(1)), (4, 0), vec![id(1)]),
        row(u64::MAX - 1, answer, (5, 2), vec![id(1), id(2)]),
    ]
}

/// Work for a worker over HTTP, and its place in line.
fn remote_rows() -> Vec<Row> {
    let mut job = small_job(2);
    let mut spec = (*job.spec).clone();
    spec.target = Target::Remote(name("resize"));
    job.spec = Arc::new(spec);
    let shard = ShardId(4);
    vec![
        Row::Ready(ReadyRow::of(shard, &job, AT)),
        Row::Mark(MarkRow {
            shard,
            range: MarkRange::Ready(job.spec.line(), name("acme")),
            from: RowKey::Ready(ReadyRow::of(shard, &job, AT)),
        }),
        Row::Job(Box::new(job)),
    ]
}

/// The store's own.
pub(crate) fn scope() -> ScopeRow {
    ScopeRow {
        scope: Scope::Shard(ShardId(4)),
        epoch: Epoch(7),
        holder: Holder(0x00ff_00ff_00ff_00ff_1234_5678_9abc_def0),
        batch: BatchNo(300),
        digest: [0xcd; 32],
        at: AT,
    }
}
