//! The self-audit of an opening: what no owner may build upon keeps its shard shut, by name, and the node
//! is not ready.
//!
//! Owns: rows that can be read and must not be true. Next: `rows.rs`.

use crate::harness::*;
use crate::requests::*;
use crate::rows::{delete, put_row, rows, tamper};
use fencepost::gateway::Gateway;
use fencepost_core::ids::{Epoch, Generation, JobId, Slot, Token, WorkerId};
use fencepost_core::job::JobState;
use fencepost_core::row::{LeasedRow, Row, RowKey};
use fencepost_core::time::Span;

fn lease_of_the_future(id: JobId, world: &World) -> Row {
    let token = Token {
        generation: Generation(1),
        epoch: Epoch(1_000),
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
        seen: Epoch(1_000),
        unseen_starts: 0,
        order: at.unwrap(),
    }))
}

#[test]
fn p4_a_shard_that_fails_its_self_audit_is_named_and_the_node_is_not_ready() {
    run(async {
        let world = World::new();
        let node = world.start_idle().await;
        let id = create(&node, item(JobId::fresh(Slot::of(&[b"one"]), [1; 14]), "noop")).await;
        let shard = node.gateway.shard_map().shard_of(id.slot());
        node.drain().await;
        let places = rows(&world).into_iter().filter_map(|row| match row {
            Row::Ready(row) => Some(delete(&RowKey::Ready(row))),
            _ => None,
        });
        let mut writes: Vec<_> = places.collect();
        writes.push(put_row(&lease_of_the_future(id, &world)));
        tamper(&world, writes).await;
        let node = world.begin().await;
        let said = format!("shard {} failed its self-audit; the log says more", shard.0);
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
