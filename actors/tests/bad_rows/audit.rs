//! The self-audit of an opening: what no owner may build upon keeps its shard shut, by name, and the node
//! is not ready.
//!
//! Owns: rows that can be read and must not be true. Next: `rows.rs`.

use crate::harness::*;
use crate::requests::*;
use crate::rows::{delete, put_row, rows, tamper};
use fencepost::gateway::{Gateway, ShardRequest};
use fencepost::node::Node;
use fencepost_core::ids::{Epoch, Generation, Holder, JobId, Scope, ShardId, Slot, Token, WorkerId};
use fencepost_core::job::JobState;
use fencepost_core::row::{LeasedRow, Row, RowKey};
use fencepost_core::time::Span;
use fencepost_storage::store::{Open, Store};

fn lease_of_the_future(id: JobId, world: &World, epoch: Epoch) -> Row {
    let token = Token {
        generation: Generation(1),
        epoch,
        sequence: 1,
    };
    let at = rows(world).into_iter().find_map(|row| match row {
        Row::Job(job) if job.id == id => Some(job.created_at),
        _ => None,
    });
    Row::Leased(Box::new(LeasedRow {
        id,
        job_version: 1,
        attempt: 1,
        token,
        worker: WorkerId {
            node: name("other"),
            boot: 1,
        },
        granted_at: at.unwrap(),
        length: Span::from_secs(30),
        begun: true,
        seen: epoch,
        unseen_starts: 0,
        order: at.unwrap(),
    }))
}

/// Starts on a store where a job of this shard is leased under an epoch yet to come.
async fn begin_with_lease_of(epoch: Epoch, world: &World) -> (Node, ShardId) {
    let node = world.start_idle().await;
    let id = create(&node, item(JobId::fresh(Slot::of(&[b"one"]), [1; 14]), "noop")).await;
    let shard = node.gateway.shard_map().shard_of(id.slot());
    node.drain().await;
    lease_out(id, epoch, world).await;
    (world.begin().await, shard)
}

/// Past every owner, the one job is leased under this epoch.
async fn lease_out(id: JobId, epoch: Epoch, world: &World) {
    let places = rows(world).into_iter().filter_map(|row| match row {
        Row::Ready(row) => Some(delete(&RowKey::Ready(row))),
        _ => None,
    });
    let mut writes: Vec<_> = places.collect();
    writes.push(put_row(&lease_of_the_future(id, world, epoch)));
    tamper(world, writes).await;
}

fn said_of(shard: ShardId) -> String {
    format!("shard {} failed its self-audit; the log says more", shard.0)
}

#[test]
fn p4_a_shard_that_fails_its_self_audit_stays_shut_while_its_process_lives() {
    run(async {
        let world = World::new();
        // A few epochs ahead: as many openings would take it for one of the past.
        let (node, shard) = begin_with_lease_of(Epoch(4), &world).await;
        while !node.gateway.health().reasons.contains(&said_of(shard)) {
            assert!(!node.gateway.probe_shards().await, "it is not ready");
            world.clock.sleep(Span::from_millis(1)).await;
        }
        for _ in 0..7 {
            world.clock.sleep(Span::from_secs(1)).await;
            assert!(!node.gateway.probe_shards().await, "it is not ready");
            assert!(node.gateway.health().reasons.contains(&said_of(shard)), "it is named");
        }
    });
}

#[test]
fn p4_a_shard_that_fails_its_self_audit_is_named_and_the_node_is_not_ready() {
    run(async {
        let world = World::new();
        let (node, shard) = begin_with_lease_of(Epoch(1_000), &world).await;
        let said = said_of(shard);
        while !node.gateway.health().reasons.contains(&said) {
            assert!(!node.gateway.probe_shards().await, "it is not ready");
            world.clock.sleep(Span::from_millis(1)).await;
        }
        // The others work.
        let mut other = fresh(&node);
        while node.gateway.shard_map().shard_of(other.slot()) == shard {
            other = fresh(&node);
        }
        let other = create(&node, item(other, "noop")).await;
        let view = node
            .gateway
            .wait_job(other, Span::from_secs(60))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(view.job.state, JobState::Succeeded);
    });
}

#[test]
fn p4_a_shard_that_stays_shut_after_a_reload_makes_a_ready_node_not_ready() {
    run(async {
        let world = World::new();
        let node = world.start_idle().await;
        let id = create(&node, item(JobId::fresh(Slot::of(&[b"one"]), [1; 14]), "noop")).await;
        assert!(node.gateway.health().ready);
        let shard = node.gateway.shard_map().shard_of(id.slot());
        lease_out(id, Epoch(1_000), &world).await;
        // Somebody else opens it, so that its owner must load it again.
        let scope = Scope::Shard(shard);
        let taken = Open {
            scope,
            holder: Holder(7),
            expected: world.store.epoch(scope).await.unwrap(),
            node: name("local"),
        };
        world.store.open(taken).await.unwrap();
        let more = item(JobId::fresh(id.slot(), [2; 14]), "noop");
        let asked = node.gateway.call(shard, ShardRequest::CreateJobs(vec![more])).await;
        assert_eq!(asked.unwrap_err().code, "outcome_unknown");
        while !node.gateway.health().reasons.contains(&said_of(shard)) {
            world.clock.sleep(Span::from_millis(5)).await;
        }
        let health = node.gateway.health();
        assert!(
            !health.ready && health.reasons[0] == "3 of 4 shards are open",
            "{health:?}"
        );
    });
}
