//! Tests of the combination: one batch, one step, one wake.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use crate::machine::{Expect, ReplyTo, Write};
use crate::row::Row;
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
