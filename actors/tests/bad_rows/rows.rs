//! Rows that cannot be read (PROTOCOL F9): what they belong to is shown, told and released; nobody else
//! notices.

use crate::harness::*;
use crate::requests::*;
use fencepost::chance::draw_holder;
use fencepost::gateway::{FateQuery, Gateway, JobRange, ScheduleRequest, ShardRequest};
use fencepost::node::Node;
use fencepost_core::fate::FateKind;
use fencepost_core::ids::{BatchNo, JobId, Scope, Slot};
use fencepost_core::job::JobState;
use fencepost_core::name::Name;
use fencepost_core::row::{Row, RowKey};
use fencepost_core::schedule::{GapPolicy, OverlapPolicy, PendingFate, Rule, ScheduleSpec};
use fencepost_core::time::{Span, StoreTime};
use fencepost_storage::batch::{Batch, RawExpect, RawWrite};
use fencepost_storage::codec::{decode_row, digest_of, encode_row};
use fencepost_storage::keys::{key_bytes, parse_key};
use fencepost_storage::store::{Commit, Committed, Open, Store};
use std::sync::Arc;

/// Bytes that no row has.
const GARBAGE: [u8; 4] = [1, 0xff, 0xff, 0xff];

pub fn put(key: &RowKey, value: &[u8]) -> RawWrite {
    RawWrite::Put {
        key: key_bytes(key).into(),
        value: value.into(),
        expect: RawExpect::Any,
    }
}

pub fn delete(key: &RowKey) -> RawWrite {
    RawWrite::Delete {
        key: key_bytes(key).into(),
    }
}

pub fn put_row(row: &Row) -> RawWrite {
    let mut value = Vec::new();
    encode_row(row, &mut value);
    put(&row.key(), &value)
}

/// Writes past all machines, while no node runs.
pub async fn tamper(world: &World, writes: Vec<RawWrite>) {
    let (scope, holder) = (Scope::Coordinator, draw_holder(&SystemChance));
    let expected = world.store.epoch(scope).await.unwrap();
    let node = name("local");
    let opened = world.store.open(Open {
        scope,
        holder,
        expected,
        node,
    });
    let (digest, bytes) = digest_of(&writes);
    let batch = Arc::new(Batch {
        writes,
        digest,
        bytes,
        creates: false,
    });
    let commit = Commit {
        scope,
        holder,
        epoch: opened.await.unwrap().epoch,
        number: BatchNo(1),
        batch,
    };
    let committed = world.store.commit(commit).await;
    assert!(matches!(committed, Committed::Committed(_)), "{committed:?}");
}

/// The rows that are there, as far as they can be read.
pub fn rows(world: &World) -> Vec<Row> {
    let pairs = world.store.durable_rows().into_iter();
    pairs.filter_map(|(key, value)| decode_row(&key, &value).ok()).collect()
}

fn key_of(world: &World, is_it: impl Fn(&RowKey) -> bool) -> RowKey {
    let pairs = world.store.durable_rows().into_iter();
    let mut keys = pairs.filter_map(|(key, _)| parse_key(&key).ok());
    keys.find(is_it).unwrap()
}

fn tick() -> (Name, Name) {
    (name("default"), name("tick"))
}

pub fn endless(node: &Node) -> ScheduleSpec {
    ScheduleSpec {
        count_max: None,
        ..every(20, node.gateway.now())
    }
}

async fn fired(node: &Node) -> u64 {
    node.gateway.schedule(tick()).await.unwrap().unwrap().view.cursor.fired
}

/// A drained node that had a schedule `tick` which fired.
async fn ticked(world: &World) {
    let node = world.start().await;
    let spec = Box::new(endless(&node));
    ask(&node, ScheduleRequest::Create { spec, paused: false }).await;
    while fired(&node).await < 3 {
        world.clock.sleep(Span::from_millis(5)).await;
    }
    node.drain().await;
}

pub async fn fires_again(world: &World, node: &Node) {
    let before = fired(node).await;
    while fired(node).await < before + 3 {
        world.clock.sleep(Span::from_millis(5)).await;
    }
}

#[test]
fn f9_a_schedule_whose_cursor_cannot_be_read_is_shown_and_a_resume_brings_it_back() {
    run(async {
        let world = World::new();
        ticked(&world).await;
        let cursor = key_of(&world, |key| matches!(key, RowKey::Cursor(..)));
        tamper(&world, vec![put(&cursor, &GARBAGE)]).await;
        let node = world.start().await;
        let shown = node.gateway.schedule(tick()).await.unwrap().unwrap().view;
        let reason = shown.quarantined.unwrap();
        assert!(reason.contains("its cursor row cannot be read"), "{reason}");
        let list = node.gateway.schedules(None, 10).await.unwrap().items;
        assert!(list[0].view.quarantined.is_some());
        let aside = node.gateway.quarantines(None, 10).await.unwrap().items;
        assert_eq!(aside.len(), 1, "{aside:?}");
        assert_eq!(node.gateway.facts().await.unwrap().quarantined, 1);
        let query = FateQuery {
            name: tick(),
            incarnation: None,
            from: None,
            to: None,
            after: None,
            limit: 100,
        };
        let fates = node.gateway.fates(query).await.unwrap().items;
        assert_eq!(fates.last().unwrap().kind, FateKind::Quarantined, "{fates:?}");
        assert!(view(ask(&node, ScheduleRequest::Resume).await).quarantined.is_none());
        fires_again(&world, &node).await;
        assert!(node.gateway.quarantines(None, 10).await.unwrap().items.is_empty());
    });
}

#[test]
fn f9_a_definition_that_cannot_be_read_spoils_no_list_and_an_edit_replaces_it() {
    run(async {
        let world = World::new();
        ticked(&world).await;
        let definition = key_of(&world, |key| matches!(key, RowKey::Definition(..)));
        tamper(&world, vec![put(&definition, &GARBAGE)]).await;
        let node = world.start().await;
        node.gateway.schedules(None, 10).await.unwrap();
        let refused = node.gateway.schedule(tick()).await.unwrap_err();
        assert_eq!(refused.code, "row_unreadable");
        let aside = node.gateway.quarantines(None, 10).await.unwrap().items;
        assert!(
            aside
                .iter()
                .any(|row| row.reason.contains("its definition cannot be read")),
            "{aside:?}"
        );
        let edit = ScheduleRequest::Edit {
            if_match: None,
            spec: Box::new(endless(&node)),
            pending: PendingFate::Retime,
            dry_run: false,
        };
        assert!(view(ask(&node, edit).await).quarantined.is_none());
        fires_again(&world, &node).await;
    });
}

#[test]
fn f9_a_key_row_that_cannot_be_read_makes_no_twin() {
    run(async {
        let world = World::new();
        let node = world.start().await;
        let key: Arc<str> = "k".into();
        let keyed = |node: &Node| {
            let drawn = node.gateway.draw().to_be_bytes();
            let mut chance = [0; 14];
            chance.copy_from_slice(&drawn[..14]);
            let mut item = item(JobId::fresh(Slot::of_key(&name("default"), &key), chance), "noop");
            item.key = Some((key.clone(), [7; 32]));
            item
        };
        create(&node, keyed(&node)).await;
        node.drain().await;
        let row = key_of(&world, |key| matches!(key, RowKey::Key(..)));
        tamper(&world, vec![put(&row, &GARBAGE)]).await;
        let node = world.start().await;
        let again = keyed(&node);
        let shard = node.gateway.shard_map().shard_of(again.id.slot());
        let refused = node.gateway.call(shard, ShardRequest::CreateJobs(vec![again])).await;
        assert_eq!(refused.unwrap_err().code, "row_unreadable");
        let jobs = node.gateway.jobs(JobRange::All, None, 10).await.unwrap();
        assert_eq!(jobs.items.len(), 1);
        while node.gateway.quarantines(None, 10).await.unwrap().items.is_empty() {
            world.clock.sleep(Span::from_millis(5)).await;
        }
    });
}

#[test]
fn f9_a_lease_that_cannot_be_read_is_not_taken_for_absent() {
    run(async {
        let world = World::fast(200);
        let node = world.start_idle().await;
        let slot = Slot::of(&[b"one"]);
        let made = |number: u8| item(JobId::fresh(slot, [number; 14]), "noop");
        let leased = create(&node, made(1)).await;
        let stranded = create(&node, made(2)).await;
        node.drain().await;
        // One was granted, and its lease is garbage; the other lost its place row, which the sweep mends.
        let places = rows(&world).into_iter().filter_map(|row| match row {
            Row::Ready(row) => Some(delete(&RowKey::Ready(row))),
            _ => None,
        });
        let mut writes: Vec<_> = places.collect();
        assert_eq!(writes.len(), 2);
        writes.push(put(&RowKey::Leased(leased), &GARBAGE));
        tamper(&world, writes).await;
        let node = world.start().await;
        let view = node
            .gateway
            .wait_job(stranded, Span::from_secs(600))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(view.job.state, JobState::Succeeded, "the sweep came by");
        let view = node.gateway.job(leased).await.unwrap().unwrap();
        assert_eq!((view.job.state, view.job.attempts.len()), (JobState::Ready, 0));
        assert_eq!(node.gateway.quarantines(None, 10).await.unwrap().items.len(), 1);
    });
}

/// Its one occurrence is an hour ahead.
fn once(at: StoreTime, node: &Node) -> ScheduleSpec {
    let rule = Rule::Once {
        at,
        local: None,
        zone: "UTC".into(),
        gap: GapPolicy::NextValid,
        overlap: OverlapPolicy::First,
    };
    ScheduleSpec {
        rule,
        ..every(20, node.gateway.now())
    }
}

#[test]
fn f9_a_shard_that_fails_at_each_load_is_opened_ever_more_rarely() {
    run(async {
        let world = World::fast(200);
        let node = world.start_idle().await;
        let at = node.gateway.now() + Span::from_secs(20);
        let spec = Box::new(once(at, &node));
        let made = view(ask(&node, ScheduleRequest::Create { spec, paused: false }).await);
        let other = create(&node, item(fresh(&node), "noop")).await;
        node.drain().await;
        // The job of its occurrence is there already: every owner that fires it is refused.
        let definition = made.definition;
        let id = JobId::of_occurrence(
            Slot::of_schedule(&definition.tenant, &definition.name),
            (&definition.tenant, &definition.name),
            definition.incarnation,
            at,
            &[],
        );
        let mut job = node.gateway.job(other).await.unwrap().unwrap().job.as_ref().clone();
        job.id = id;
        tamper(&world, vec![put_row(&Row::Job(Box::new(job)))]).await;
        let _node = world.begin().await;
        while !world.has_slept(Span::from_millis(1_280)) {
            world.clock.sleep(Span::from_millis(100)).await;
        }
        assert!(world.has_slept(Span::from_millis(640)));
    });
}
