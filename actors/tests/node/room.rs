//! A node whose store is full: what is due waits, what frees work goes on, no shard is lost over it.

use super::*;
use fencepost_core::ids::{BatchNo, Epoch, Holder, Scope};
use fencepost_core::level;
use fencepost_core::machine::{Expect, Write};
use fencepost_core::refusal::RefusalKind;
use fencepost_core::row::{CellRow, Row};
use fencepost_storage::codec::encode_batch;
use fencepost_storage::store::{Commit, Committed, Open, Store as _};

/// Every shard is still in the epoch that the node opened first.
async fn none_was_reopened(world: &World, node: &Node) {
    for shard in 0..node.gateway.shard_map().count() {
        let scope = Scope::Shard(fencepost_core::ids::ShardId(shard));
        assert_eq!(world.store.epoch(scope).await.unwrap(), Epoch(1), "shard {shard}");
    }
}

/// A node with the schedule `tick`, overdue by half a minute, on a full store.
async fn overdue(world: &World) -> Node {
    let node = world.start().await;
    let spec = Box::new(every(100, node.gateway.now()));
    ask(&node, ScheduleRequest::Create { spec, paused: false }).await;
    world.store.set_full(true);
    world.store_clock.pass(Span::from_secs(30));
    world.settle().await;
    node
}

async fn refusal(node: &Node, request: ShardRequest, slot: Slot) -> RefusalKind {
    let shard = node.gateway.shard_map().shard_of(slot);
    node.gateway.call(shard, request).await.unwrap_err().kind
}

/// The cell is one of the version before again.
async fn lowered(world: &World) -> Node {
    let node = world.start().await;
    let cell = CellRow {
        level: level::FIRST,
        ..node.cell.clone()
    };
    node.drain().await;
    let (scope, holder) = (Scope::Coordinator, Holder(5));
    let request = Open {
        scope,
        holder,
        expected: world.store.epoch(scope).await.unwrap(),
        node: name("local"),
    };
    let epoch = world.store.open(request).await.unwrap().epoch;
    let write = Write::Put {
        row: Row::Cell(cell),
        expect: Expect::Any,
    };
    let committed = world.store.commit(Commit {
        scope,
        holder,
        epoch,
        number: BatchNo(1),
        batch: Arc::new(encode_batch(&[write], false).unwrap()),
    });
    assert!(matches!(committed.await, Committed::Committed(_)));
    world.start().await
}

#[test]
fn on_a_full_store_an_upgrade_is_not_finished_and_can_be_once_there_is_room() {
    run(async {
        let world = World::new();
        let node = lowered(&world).await;
        let coordinated = world.store.epoch(Scope::Coordinator).await.unwrap();
        world.store.set_full(true);
        for _ in 0..2 {
            let refusal = node.gateway.raise_level().await.unwrap_err();
            assert_eq!((refusal.kind, refusal.code), (RefusalKind::StorageFull, "storage_full"));
            assert_eq!(node.gateway.level().await.unwrap().cell, level::FIRST);
            assert_eq!(node.gateway.facts().await.unwrap().level, level::FIRST);
        }
        assert_eq!(world.store.epoch(Scope::Coordinator).await.unwrap(), coordinated);
        world.store.set_full(false);
        assert_eq!(node.gateway.raise_level().await.unwrap().cell, level::NEWEST);
        assert_eq!(node.gateway.facts().await.unwrap().level, level::NEWEST);
    });
}

#[test]
fn on_a_full_store_an_overdue_schedule_can_be_paused_and_fires_once_there_is_room() {
    run(async {
        let world = World::new();
        let node = overdue(&world).await;
        let slot = Slot::of_schedule(&name("default"), &name("tick"));
        let run_now = ShardRequest::Schedule((name("default"), name("tick")), ScheduleRequest::RunNow { request: 1 });
        assert_eq!(refusal(&node, run_now, slot).await, RefusalKind::StorageFull);
        let id = fresh(&node);
        let create = ShardRequest::CreateJobs(vec![item(id, "noop")]);
        assert_eq!(refusal(&node, create, id.slot()).await, RefusalKind::StorageFull);
        let paused = view(ask(&node, ScheduleRequest::Pause).await);
        assert!(paused.cursor.paused_at.is_some());
        none_was_reopened(&world, &node).await;
        world.store.set_full(false);
        let resumed = view(ask(&node, ScheduleRequest::Resume).await);
        assert!(resumed.cursor.counts.of(FateKind::Paused) >= 290);
        assert_eq!(clock::finished(&world, &node).await, 5);
        none_was_reopened(&world, &node).await;
    });
}

#[test]
fn on_a_full_store_an_overdue_schedule_can_be_deleted() {
    run(async {
        let world = World::new();
        let node = overdue(&world).await;
        assert!(matches!(
            ask(&node, ScheduleRequest::Delete).await,
            ScheduleReply::Deleted
        ));
        none_was_reopened(&world, &node).await;
    });
}

#[test]
fn what_was_overdue_on_a_full_store_fires_when_there_is_room_again() {
    run(async {
        let world = World::new();
        let node = overdue(&world).await;
        // A message that lets the shard step while it is full.
        let noone = JobId::fresh(Slot::of_schedule(&name("default"), &name("tick")), [9; 14]);
        let cancel = ShardRequest::CancelJob(noone);
        assert_eq!(refusal(&node, cancel, noone.slot()).await, RefusalKind::NotFound);
        world.store.set_full(false);
        world.store_clock.pass(Span::from_secs(10));
        assert_eq!(clock::finished(&world, &node).await, 5);
        none_was_reopened(&world, &node).await;
    });
}

#[test]
fn f26_a_run_now_that_comes_again_after_many_others_answers_its_job() {
    run(async {
        let world = World::new();
        let node = world.start().await;
        let mut spec = every(3_600_000, node.gateway.now());
        spec.count_max = None;
        let spec = Box::new(spec);
        ask(&node, ScheduleRequest::Create { spec, paused: false }).await;
        let mut made = Vec::new();
        for request in (1..=20).chain([1, 20]) {
            match ask(&node, ScheduleRequest::RunNow { request }).await {
                ScheduleReply::Ran { job, .. } => made.push(job),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((made[20], made[21]), (made[0], made[19]));
        none_was_reopened(&world, &node).await;
    });
}

#[test]
fn f33_more_bytes_than_a_page_holds_come_page_by_page_and_all_run() {
    run(async {
        let world = World::new();
        let node = world.start().await;
        let mut large = (*spec("noop")).clone();
        large.payload = Payload {
            kind: fencepost_core::target::PayloadKind::Bytes,
            bytes: vec![7; 700_000].into(),
        };
        let large = Arc::new(large);
        let due = node.gateway.now() + Span::from_secs(20);
        let mut ids = Vec::new();
        for _ in 0..24 {
            let mut job = item(fresh(&node), "noop");
            (job.spec, job.due_at) = (large.clone(), Some(due));
            ids.push(create(&node, job).await);
        }
        let mut listed = Vec::new();
        let mut after = None;
        loop {
            let page = node.gateway.jobs(JobRange::All, after, 64).await.unwrap();
            assert!(page.items.len() <= 4, "a page of a list is bounded in bytes");
            listed.extend(page.items.iter().map(|view| view.job.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        ids.sort();
        assert_eq!(listed, ids);
        world.store_clock.pass(Span::from_secs(21));
        world.settle().await;
        // A message lets each shard ask for the time at once.
        for id in &ids {
            let shard = node.gateway.shard_map().shard_of(id.slot());
            let dead = ShardRequest::RetryDead(*id);
            node.gateway.call(shard, dead).await.unwrap_err();
        }
        node.drain().await;
        let node = world.start().await;
        for id in ids {
            let view = node.gateway.wait_job(id, Span::from_secs(20)).await.unwrap().unwrap();
            assert_eq!(view.job.state, JobState::Succeeded);
        }
    });
}
