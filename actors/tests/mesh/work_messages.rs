//! What workers and shards on different nodes say: golden bytes, and bytes that are none.
//!
//! Owns: the comparison with `golden-work-v1.hex` (a node's own worker) and `golden-work-v2.hex` (those beside it).
//! Must never: know a connection. Next: `../../src/cluster/report.rs`, `../../src/cluster/order.rs`.

use crate::written::{Written, are_golden, are_strict};
use fencepost::cluster::order::{decode_order, encode_order};
use fencepost::cluster::report::{decode_report, encode_gone, encode_report, encode_report_in};
use fencepost::mesh::frame::{PROTOCOL, PROTOCOL_OLDEST};
use fencepost::shell::messages::FromWorker;
use fencepost_core::ids::{BeatId, Epoch, Generation, JobId, OfferId, ShardId, ShardOwner, Slot, Token, WorkerId};
use fencepost_core::job::{Delivery, EffectProof, Job, JobSpec, Origin, Outcome, RetryAdvice, RetryPolicy, Verdict};
use fencepost_core::lease_manager::io::{Grant, Recorded, Renewal, Suspect};
use fencepost_core::name::Name;
use fencepost_core::target::{Payload, Target};
use fencepost_core::time::{Span, StoreTime};
use fencepost_core::worker::io::WorkerInput;
use std::cmp::Reverse;
use std::sync::Arc;

const GOLDEN: &str = include_str!("golden-work-v1.hex");
const GOLDEN_BESIDE: &str = include_str!("golden-work-v2.hex");
const SHARD: ShardId = ShardId(3);

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn id(number: u8) -> JobId {
    JobId::fresh(Slot::new(77).unwrap(), [number; 14])
}

fn token(sequence: u64) -> Token {
    Token {
        generation: Generation(1),
        epoch: Epoch(300),
        sequence,
    }
}

fn worker() -> WorkerId {
    WorkerId {
        node: name("w1"),
        boot: 1 << 60,
    }
}

fn beside() -> WorkerId {
    worker().beside(6)
}

fn outcome(verdict: Verdict) -> Outcome {
    Outcome {
        verdict,
        error: matches!(verdict, Verdict::Failed { .. }).then(|| "refused".into()),
        output: b"tail".as_slice().into(),
    }
}

fn outcomes() -> Vec<(JobId, Token, Outcome)> {
    let (proven, unproven) = (EffectProof::NoEffect, EffectProof::Unproven);
    let failed = |retry, effect| Verdict::Failed { retry, effect };
    let verdicts = [
        Verdict::Succeeded,
        failed(RetryAdvice::ByPolicy, unproven),
        failed(RetryAdvice::After(Span::from_secs(9)), proven),
        failed(RetryAdvice::Stop, proven),
        Verdict::TimedOut { effect: unproven },
        Verdict::Cancelled { effect: proven },
    ];
    let numbered = verdicts.into_iter().zip(1_u8..);
    numbered
        .map(|(verdict, number)| (id(number), token(u64::from(number)), outcome(verdict)))
        .collect()
}

fn reports() -> Vec<FromWorker> {
    vec![
        FromWorker::Offer {
            offer: OfferId(7),
            slots: 64,
            queues: vec![name("mail"), name("default")],
            waits: true,
            apart: 2,
            commands: true,
        },
        FromWorker::Heartbeat {
            beat: BeatId(8),
            held: vec![(id(1), token(1)), (id(2), token(2))],
        },
        FromWorker::Begin {
            id: id(3),
            token: token(3),
        },
        FromWorker::Outcomes { items: outcomes() },
        FromWorker::HandBack {
            items: vec![(id(4), token(4))],
        },
    ]
}

fn owner() -> ShardOwner {
    ShardOwner {
        shard: SHARD,
        generation: Generation(1),
        epoch: Epoch(301),
    }
}

fn grant() -> Grant {
    let spec = JobSpec {
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
        delivery: Delivery::AtMostOnce,
        expires_at: None,
    };
    let key = Origin::Request {
        key: Some("order-7".into()),
    };
    Grant {
        job: Arc::new(Job::due_at_once(id(1), Arc::new(spec), key, StoreTime(5))),
        attempt: 2,
        token: token(9),
        length: Span::from_secs(30),
        granted_at: StoreTime(6),
    }
}

fn orders() -> Vec<WorkerInput> {
    let from = owner();
    vec![
        WorkerInput::ReadyHint(SHARD),
        WorkerInput::Granted {
            from,
            offer: OfferId(7),
            grants: vec![grant()],
            waited: Span::from_millis(40),
            more: true,
            apart: Some(Suspect {
                lost: 2,
                unevenness: Reverse(Span(11)),
                granted_at: StoreTime(12),
            }),
        },
        WorkerInput::Renewed {
            from,
            beat: BeatId(8),
            held: vec![Renewal {
                id: id(1),
                token: token(1),
                length: Span::from_secs(30),
            }],
        },
        WorkerInput::Lost {
            from,
            lost: vec![(id(2), token(2))],
        },
        WorkerInput::CancelRequested {
            from,
            id: id(3),
            token: token(3),
        },
        WorkerInput::Begun {
            id: id(4),
            token: token(4),
        },
        WorkerInput::Recorded {
            from,
            items: vec![
                (id(5), token(5), Recorded::Recorded),
                (id(6), token(6), Recorded::Stale),
            ],
        },
        WorkerInput::Reconcile {
            from,
            items: vec![(id(7), token(7))],
        },
        WorkerInput::ShardAway(SHARD),
        WorkerInput::ShardHere(SHARD),
    ]
}

fn offer_for_lines() -> FromWorker {
    FromWorker::Offer {
        offer: OfferId(7),
        slots: 2,
        queues: vec![name("mail").remote_line()],
        waits: false,
        apart: 0,
        commands: true,
    }
}

fn written_of(worker: &WorkerId, reports: &[FromWorker]) -> Written {
    let mut all: Vec<(&str, Vec<u8>)> = Vec::new();
    all.extend(
        reports
            .iter()
            .map(|report| ("report", encode_report(SHARD, worker, report))),
    );
    all.extend(
        orders()
            .iter()
            .map(|order| ("order", encode_order(worker, order).unwrap())),
    );
    all
}

fn written() -> Written {
    written_of(&worker(), &reports())
}

fn written_beside() -> Written {
    let mut reports = reports();
    reports.push(offer_for_lines());
    let mut all = written_of(&beside(), &reports);
    all.push(("report", encode_gone(&beside())));
    all
}

/// The same message again, if these bytes are one.
fn again(what: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    match what {
        "report" => decode_report(bytes).ok().map(|(shard, worker, report)| match report {
            Some(report) => encode_report_in(PROTOCOL, shard, &worker, &report),
            None => encode_gone(&worker),
        }),
        _ => decode_order(bytes)
            .ok()
            .and_then(|(to, order)| encode_order(&to.unwrap_or(worker()), &order)),
    }
}

#[test]
fn f14_messages_of_workers_and_shards_are_written_as_they_always_were() {
    are_golden(GOLDEN, &written());
    are_golden(GOLDEN_BESIDE, &written_beside());
}

#[test]
fn f14_messages_of_workers_and_shards_come_back_as_they_were() {
    for worker in [worker(), beside()] {
        for report in reports() {
            let (shard, from, read) = decode_report(&encode_report(SHARD, &worker, &report)).unwrap();
            assert_eq!((shard, &from), (SHARD, &worker));
            assert_eq!(format!("{:?}", read.unwrap()), format!("{report:?}"));
        }
        for order in orders() {
            let (to, read) = decode_order(&encode_order(&worker, &order).unwrap()).unwrap();
            assert_eq!(to, worker.is_beside().then(|| worker.clone()));
            assert_eq!(format!("{read:?}"), format!("{order:?}"));
        }
    }
    let (_, from, gone) = decode_report(&encode_gone(&beside())).unwrap();
    assert!(from == beside() && gone.is_none());
}

/// What an owner of the version before cannot read is said to it as ever: it grants as it always did.
#[test]
fn a_worker_that_runs_no_commands_says_so_where_that_is_known() {
    let without = FromWorker::Offer {
        offer: OfferId(7),
        slots: 2,
        queues: Vec::new(),
        waits: true,
        apart: 1,
        commands: false,
    };
    let (first, newest) = (
        encode_report_in(PROTOCOL_OLDEST, SHARD, &worker(), &without),
        encode_report_in(PROTOCOL, SHARD, &worker(), &without),
    );
    let says = |bytes: &[u8]| match decode_report(bytes).unwrap().2 {
        Some(FromWorker::Offer { commands, .. }) => commands,
        other => panic!("{other:?}"),
    };
    assert_eq!((says(&first), says(&newest)), (true, false));
    let differ: Vec<usize> = (0..first.len()).filter(|at| first[*at] != newest[*at]).collect();
    assert_eq!((first.len(), differ.len()), (newest.len(), 1), "only its kind");
    assert_eq!((first[differ[0]], newest[differ[0]]), (1, 7));
    for report in reports() {
        let forms = [PROTOCOL_OLDEST, PROTOCOL].map(|protocol| encode_report_in(protocol, SHARD, &worker(), &report));
        assert_eq!(forms[0], forms[1], "all else is said alike");
    }
}

/// An owner of the first version takes nothing of a claim's: it would mistake it for the node's own worker.
#[test]
fn f14_the_first_version_is_only_for_a_nodes_own_worker() {
    let in_first = |mut bytes: Vec<u8>| {
        bytes[0] = 1;
        decode_report(&bytes).is_err()
    };
    assert!(in_first(encode_report(SHARD, &beside(), &reports()[0])));
    assert!(in_first(encode_gone(&beside())));
    let lines = encode_report(SHARD, &worker(), &offer_for_lines());
    assert!(decode_report(&lines).is_err(), "nor does it name lines");
}

#[test]
fn what_only_a_node_tells_its_own_worker_is_no_message() {
    let own = [WorkerInput::Drain, WorkerInput::DrainExpired, WorkerInput::Tick];
    assert!(own.iter().all(|input| encode_order(&worker(), input).is_none()));
    let ended = WorkerInput::AttemptsFinished { items: outcomes() };
    assert!(
        encode_order(&worker(), &ended).is_none(),
        "a shard cannot say how a run ended"
    );
}

#[test]
fn what_is_cut_off_longer_of_another_version_or_unknown_is_refused() {
    are_strict(&written(), again);
    are_strict(&written_beside(), again);
    assert!(decode_order(&[1, 11]).is_err(), "a kind of a later build");
}
