//! Tests of the combination: one batch, one step, one wake.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use crate::ids::{Epoch, JobId, Slot, Token, WorkerId};
use crate::job::{Job, Origin};
use crate::machine::{Expect, ReplyTo, Write};
use crate::row::{LeasedRow, Row};
use crate::scheduler_shard::tests::world::{HOUR, MINUTE, NOON, at, cron, facts, name};
use crate::time::{Monotonic, StoreTime};

fn now(seconds: i64) -> Now {
    Now {
        store: at(seconds),
        mono: Monotonic((seconds - NOON) as u64 * 1_000_000),
        doubt: false,
    }
}

fn shard_with_a_schedule() -> Shard {
    let mut shard = Shard::open(facts(1), ShardOpened::default(), now(NOON), &mut Out::default()).unwrap();
    let input = ScheduleInput::Create {
        reply: ReplyTo(1),
        name: name("report"),
        spec: Box::new(cron("* * * * *")),
        paused: false,
    };
    shard.step(now(NOON), ShardInput::Schedule(input), &mut Out::default());
    shard.check();
    shard
}

fn kinds(out: &Out<ShardEffect>) -> Vec<&'static str> {
    let kind = |write: &Write| match write {
        Write::Put {
            row: Row::Cursor(_), ..
        } => "cursor",
        Write::Put {
            row: Row::Job(_),
            expect: Expect::Absent,
        } => "job",
        Write::Put { row: Row::Ready(_), .. } => "ready",
        _ => "other",
    };
    out.writes.iter().map(kind).collect()
}

#[test]
fn f01_a_fire_is_one_batch_of_cursor_job_and_ready_row() {
    let mut shard = shard_with_a_schedule();
    assert_eq!(shard.next_wake().store, Some(at(NOON + MINUTE)));
    let mut out = Out::default();
    shard.step(now(NOON + MINUTE), ShardInput::Tick, &mut out);
    shard.check();
    assert_eq!(kinds(&out), ["cursor", "job", "ready"]);
}

#[test]
fn f01_a_fire_found_by_any_request_for_schedules_crosses_in_the_same_step() {
    let mut shard = shard_with_a_schedule();
    let mut out = Out::default();
    let input = ScheduleInput::Pause {
        reply: ReplyTo(2),
        name: name("report"),
    };
    shard.step(now(NOON + MINUTE), ShardInput::Schedule(input), &mut out);
    shard.check();
    assert!(kinds(&out).contains(&"job"), "due before the pause");
}

#[test]
fn a_shard_at_rest_writes_nothing() {
    let mut shard = shard_with_a_schedule();
    let mut out = Out::default();
    shard.step(now(NOON + 1), ShardInput::Tick, &mut out);
    assert!(out.writes.is_empty());
    assert!(shard.next_wake().store.unwrap() < StoreTime::from_secs(NOON + HOUR));
}

/// A lease of an earlier owner, or of one that must not be.
fn leased(no: u8, epoch: u64, sequence: u64) -> (LeasedRow, Job) {
    let id = JobId::fresh(Slot::new(0).unwrap(), [no; 14]);
    let token = Token {
        generation: facts(1).generation,
        epoch: Epoch(epoch),
        sequence,
    };
    let row = LeasedRow {
        id,
        job_version: 1,
        attempt: 1,
        token,
        worker: WorkerId {
            node: name("node").1,
            boot: 1,
        },
        granted_at: at(NOON),
        length: Span::from_secs(30),
        begun: true,
        seen: Epoch(epoch),
        unseen_starts: 0,
        order: at(NOON),
    };
    let job = Job::due_at_once(id, cron("* * * * *").job, Origin::Request { key: None }, at(NOON));
    (row, job)
}

fn open_with(leased: Vec<(LeasedRow, Job)>) -> Result<Shard, OpenRefused> {
    open_at(3, leased)
}

fn open_at(epoch: u64, leased: Vec<(LeasedRow, Job)>) -> Result<Shard, OpenRefused> {
    let mut opened = ShardOpened::default();
    opened.leases.leased = leased;
    Shard::open(facts(epoch), opened, now(NOON), &mut Out::default())
}

#[test]
fn p4_no_number_of_starts_keeps_a_sound_shard_shut() {
    let mut left = Vec::new();
    for epoch in 1..=60_u8 {
        let opened = open_at(u64::from(epoch), left.clone());
        assert!(opened.is_ok(), "epoch {epoch} finds what its predecessors granted");
        left.push(leased(epoch, u64::from(epoch), 1));
    }
    // An owner whose load failed had its epoch too, and granted nothing.
    assert!(open_at(99, left).is_ok());
}

#[test]
fn p4_a_lease_that_is_not_before_its_owner_keeps_the_shard_shut() {
    assert!(open_with(vec![leased(1, 2, 9), leased(2, 2, 10)]).is_ok());
    for epoch in [3, 4] {
        let refused = open_with(vec![leased(1, 2, 9), leased(2, epoch, 1)]).unwrap_err();
        let is_it = matches!(refused, OpenRefused::SelfAudit(SelfAuditFault::LaterToken { .. }));
        assert!(is_it, "{refused}");
    }
}

#[test]
fn p4_two_leases_with_one_token_keep_the_shard_shut() {
    let refused = open_with(vec![leased(1, 2, 9), leased(2, 2, 9)]).unwrap_err();
    let is_it = matches!(refused, OpenRefused::SelfAudit(SelfAuditFault::SharedToken { .. }));
    assert!(is_it, "{refused}");
}

#[test]
fn f27_a_life_that_is_not_before_its_owner_keeps_the_shard_shut() {
    let (mut shard, mut out) = (open_with(Vec::new()).unwrap(), Out::default());
    let input = ScheduleInput::Create {
        reply: ReplyTo(1),
        name: name("report"),
        spec: Box::new(cron("* * * * *")),
        paused: false,
    };
    shard.step(now(NOON), ShardInput::Schedule(input), &mut out);
    let mut opened = ShardOpened::default();
    for write in out.writes {
        match write {
            Write::Put {
                row: Row::Cursor(row), ..
            } => opened.schedules.cursors.push(*row),
            Write::Put {
                row: Row::Definition(row),
                ..
            } => opened.schedules.definitions.push(*row),
            _ => {}
        }
    }
    assert!(Shard::open(facts(4), opened.clone(), now(NOON), &mut Out::default()).is_ok());
    let refused = Shard::open(facts(3), opened, now(NOON), &mut Out::default()).unwrap_err();
    let is_it = matches!(refused, OpenRefused::SelfAudit(SelfAuditFault::LaterLife { .. }));
    assert!(is_it, "{refused}");
}

#[test]
fn an_opening_is_replayed_when_its_first_pages_are_in() {
    let mut shard = open_with(Vec::new()).unwrap();
    shard.step(now(NOON), ShardInput::Tick, &mut Out::default());
    assert!(!shard.is_replayed());
    let (rows, end, horizon) = (Vec::new(), true, None);
    let page = LeaseInput::WaitLoaded { rows, end, horizon };
    shard.step(now(NOON), ShardInput::Lease(page), &mut Out::default());
    assert!(shard.is_replayed());
    assert_eq!(shard.self_audit(), Ok(()));
}
