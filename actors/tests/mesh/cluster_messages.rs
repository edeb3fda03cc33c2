//! The messages of a cell of several nodes: golden bytes, and bytes that are none.
//!
//! Owns: the comparison with `golden-cluster-v1.hex`, and with `golden-board-v2.hex` for what a second version has.
//! Must never: know a connection. Next: `../../src/cluster/message.rs`, `../../src/cluster/request.rs`.

use crate::written::{Written, are_golden, are_strict};
use fencepost::cluster::message::{BoardAnswer, BoardCall};
use fencepost::cluster::request::{Reply, decode_reply, decode_request, encode_reply, encode_request};
use fencepost::gateway::{ScheduleRequest, ShardReply, ShardRequest};
use fencepost_core::coordinator::board::{BoardView, Hold, Session, ShardReport};
use fencepost_core::ids::{Epoch, JobId, ShardId, Slot};
use fencepost_core::job::{Delivery, JobSpec, JobState, RetryPolicy};
use fencepost_core::lease_manager::io::{CancelAnswer, CreateItem, Created, Settlement};
use fencepost_core::level::{self, Level};
use fencepost_core::name::Name;
use fencepost_core::refusal::{Refusal, RefusalKind};
use fencepost_core::schedule::{GapPolicy, MisfirePolicy, OverlapPolicy, PendingFate, Rule, ScheduleSpec};
use fencepost_core::scheduler_shard::io::{ScheduleReply, Seen};
use fencepost_core::target::{Payload, Target};
use fencepost_core::time::{Span, StoreTime};
use std::sync::Arc;

const GOLDEN: &str = include_str!("golden-cluster-v1.hex");
const GOLDEN_BOARD: &str = include_str!("golden-board-v2.hex");

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn id(number: u8) -> JobId {
    JobId::fresh(Slot::new(77).unwrap(), [number; 14])
}

fn session() -> Session {
    let report = |version, hold| ShardReport {
        version,
        hold,
        progress: 9,
    };
    Session {
        node: name("a"),
        boot: 1 << 60,
        beat: 300,
        takes: true,
        coordinates: Some(Epoch(4)),
        decided: 5,
        shards: vec![
            report(0, Hold::Idle),
            report(1, Hold::Claiming),
            report(2, Hold::Held),
            report(3, Hold::Leaving),
        ],
        address: "127.0.0.1:4482".into(),
        level: level::FIRST,
    }
}

fn job() -> Arc<JobSpec> {
    Arc::new(JobSpec {
        tenant: name("default"),
        queue: name("mail"),
        target: Target::Handler(name("send")),
        payload: Payload::empty(),
        priority: 5,
        tags: Vec::new(),
        timeout: Span::from_secs(10),
        retry: RetryPolicy {
            attempt_count_max: 2,
            backoff_first: Span::from_millis(1),
            backoff_cap: Span::from_millis(2),
        },
        delivery: Delivery::AtLeastOnce,
        expires_at: None,
    })
}

fn schedule() -> Box<ScheduleSpec> {
    Box::new(ScheduleSpec {
        rule: Rule::Cron {
            expressions: vec!["H 4 * * *".into()],
            resolved: Vec::new(),
            zone: "Europe/Berlin".into(),
            gap: GapPolicy::NextValid,
            overlap: OverlapPolicy::First,
        },
        starts_at: None,
        ends_at: Some(StoreTime(7)),
        count_max: Some(5),
        exclusions: Vec::new(),
        jitter: Span::ZERO,
        misfire: MisfirePolicy::Latest,
        tolerance: Span::from_secs(60),
        grace: None,
        job: job(),
    })
}

pub fn requests() -> Vec<ShardRequest> {
    let about = |asked| ShardRequest::Schedule((name("default"), name("nightly")), asked);
    let item = CreateItem {
        id: id(1),
        resent: true,
        spec: job(),
        due_at: Some(StoreTime(5)),
        delay: Some(Span(6)),
        grace: Some(Span(6)),
        key: Some(("order-7".into(), [3; 32])),
        key_row: None,
        existing: None,
    };
    vec![
        ShardRequest::CreateJobs(vec![item]),
        ShardRequest::CancelJob(id(2)),
        ShardRequest::RetryDead(id(3)),
        ShardRequest::SettleUncertain(id(4), Settlement::Retry),
        about(ScheduleRequest::Create {
            spec: schedule(),
            paused: true,
        }),
        about(ScheduleRequest::Edit {
            if_match: Some(Seen {
                incarnation: None,
                version: 3,
            }),
            spec: schedule(),
            pending: PendingFate::Retime,
            dry_run: false,
        }),
        about(ScheduleRequest::Pause),
        about(ScheduleRequest::Resume),
        about(ScheduleRequest::Delete),
        about(ScheduleRequest::RunNow { request: 11 }),
        about(ScheduleRequest::Backfill {
            from: StoreTime(1),
            to: StoreTime(2),
            cap: 3,
            rerun: true,
            request: 12,
            dry_run: true,
        }),
    ]
}

fn replies() -> Vec<Reply> {
    let refusal = || {
        let refusal = Refusal::new(RefusalKind::Conflict, "no_such_thing_before", "why", "what next");
        refusal.at("schedule.cron[0]")
    };
    let created = Created {
        id: id(1),
        replayed: true,
    };
    vec![
        Err(refusal()),
        Ok(ShardReply::Created(vec![Ok(created), Err(refusal())])),
        Ok(ShardReply::Cancel(CancelAnswer::Cancelled)),
        Ok(ShardReply::Cancel(CancelAnswer::Running { attempt: 300 })),
        Ok(ShardReply::Cancel(CancelAnswer::Finished(JobState::Dead))),
        Ok(ShardReply::Schedule(ScheduleReply::Deleted)),
        Ok(ShardReply::Schedule(ScheduleReply::Ran {
            job: id(5),
            replayed: false,
        })),
        Ok(ShardReply::Schedule(ScheduleReply::Backfill {
            count: 9,
            instants: vec![StoreTime(1)],
            already_fired: 2,
            over_cap: 3,
        })),
        Ok(ShardReply::Schedule(ScheduleReply::EditPreview {
            before: vec![StoreTime(1)],
            after: Vec::new(),
            pending: Some((StoreTime(4), PendingFate::Drop)),
        })),
    ]
}

fn calls(level: Level) -> Vec<BoardCall> {
    let session = Session { level, ..session() };
    vec![
        BoardCall::Post {
            session,
            seen: 7,
            wait_ms: 1_000,
        },
        BoardCall::Leave {
            node: name("a"),
            boot: 9,
        },
    ]
}

fn answers(level: Level) -> Vec<BoardAnswer> {
    let view = BoardView {
        board: 3,
        number: 4,
        is_young: true,
        length: Span::from_secs(5),
        sessions: vec![Session { level, ..session() }],
    };
    vec![
        BoardAnswer::Taken(view),
        BoardAnswer::Old,
        BoardAnswer::NameTaken,
        BoardAnswer::Left,
        BoardAnswer::NotUnderstood,
    ]
}

fn written() -> Written {
    let mut all: Vec<(&str, Vec<u8>)> = Vec::new();
    all.extend(calls(level::FIRST).iter().map(|call| ("call", call.encode(1))));
    all.extend(answers(level::FIRST).iter().map(|answer| ("answer", answer.encode(1))));
    all.extend(
        requests()
            .iter()
            .map(|request| ("request", encode_request(ShardId(3), request, 1))),
    );
    all.extend(replies().iter().map(|reply| ("reply", encode_reply(reply, 1))));
    all
}

/// What is on the board, in its second version.
fn written_second() -> Written {
    let (mut calls, mut answers) = (calls(level::NEWEST), answers(level::NEWEST));
    let (node, boot) = (name("a"), 9);
    calls.push(BoardCall::Time { node, boot });
    answers.push(BoardAnswer::Stated(StoreTime(1_700_000_000_000_000)));
    let calls = calls.iter().map(|call| ("call", call.encode(2)));
    calls
        .chain(answers.iter().map(|answer| ("answer", answer.encode(2))))
        .collect()
}

/// The same message again, if these bytes are one.
fn again(what: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    match what {
        "call" => BoardCall::decode(bytes).ok().map(|call| call.encode(bytes[0])),
        "answer" => BoardAnswer::decode(bytes).ok().map(|answer| answer.encode(bytes[0])),
        "request" => decode_request(bytes)
            .ok()
            .map(|(shard, request)| encode_request(shard, &request, u16::from(bytes[0]))),
        _ => decode_reply(bytes).ok().map(|reply| encode_reply(&reply, bytes[0])),
    }
}

#[test]
fn messages_between_nodes_are_written_as_they_always_were() {
    are_golden(GOLDEN, &written());
    are_golden(GOLDEN_BOARD, &written_second());
}

#[test]
fn messages_between_nodes_come_back_as_they_were() {
    for (what, bytes) in written().into_iter().chain(written_second()) {
        assert_eq!(again(what, &bytes).as_ref(), Some(&bytes), "{what}");
    }
    for request in requests() {
        let (shard, read) = decode_request(&encode_request(ShardId(3), &request, 2)).unwrap();
        assert_eq!((shard, format!("{read:?}")), (ShardId(3), format!("{request:?}")));
    }
    let again = Ok(ShardReply::Schedule(ScheduleReply::Ran {
        job: id(5),
        replayed: true,
    }));
    for reply in replies().into_iter().chain([again]) {
        let read = decode_reply(&encode_reply(&reply, 2)).unwrap();
        assert_eq!(format!("{read:?}"), format!("{reply:?}"));
    }
}

#[test]
fn what_is_cut_off_longer_or_of_another_version_is_no_message() {
    are_strict(&written(), again);
}
