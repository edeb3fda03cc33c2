//! The self-audit of an opening: what no owner may build upon keeps its shard shut, by name, and the node
//! is not ready.
//!
//! Owns: rows that can be read and must not be true. Next: `rows.rs`.

use crate::harness::*;
use crate::requests::*;
use crate::rows::{delete, endless, fires_again, put_row, rows, tamper};
use fencepost::gateway::{Gateway, ScheduleRequest, ShardRequest};
use fencepost::node::notes::Notes;
use fencepost::node::{Node, run_node};
use fencepost_core::ids::{Epoch, Generation, Holder, JobId, Scope, ShardId, Slot, Token, WorkerId};
use fencepost_core::job::{Job, JobState};
use fencepost_core::name::Name;
use fencepost_core::row::{LeasedRow, Row, RowKey};
use fencepost_core::scheduler_shard::audit::{AuditFault, AuditFaultKind};
use fencepost_core::scheduler_shard::io::FireNote;
use fencepost_core::time::Span;
use fencepost_storage::store::{Open, Store};
use std::sync::{Arc, Mutex};

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

/// Hears what the auditor finds.
#[derive(Default)]
struct Heard(Mutex<Vec<(Name, AuditFault)>>);

impl Notes for Heard {
    fn job_changed(&self, _: &Job) {}
    fn attempt_ended(&self, _: &Job) {}
    fn job_purged(&self, _: JobId, _: JobState) {}
    fn fired(&self, _: &FireNote) {}

    fn audit_fault(&self, schedule: &Name, fault: &AuditFault) {
        self.0.lock().unwrap().push((schedule.clone(), fault.clone()));
    }
}

#[test]
fn p2_the_auditor_of_a_running_node_names_each_occurrence_without_a_fate() {
    run(async {
        let world = World::new();
        let node = world.start().await;
        let spec = Box::new(endless(&node));
        ask(&node, ScheduleRequest::Create { spec, paused: false }).await;
        fires_again(&world, &node).await;
        // What lies in the pause has a fate of its own, so that the one before it is a row.
        ask(&node, ScheduleRequest::Pause).await;
        world.clock.sleep(Span::from_millis(100)).await;
        ask(&node, ScheduleRequest::Resume).await;
        fires_again(&world, &node).await;
        node.drain().await;
        let lost = rows(&world).into_iter().find_map(|row| match row {
            Row::Fate(row) if row.span.kind.is_fired() => Some(row),
            _ => None,
        });
        let lost = lost.unwrap();
        tamper(&world, vec![delete(&Row::Fate(lost.clone()).key())]).await;
        let heard = Arc::new(Heard::default());
        let mut parts = world.parts();
        parts.notes.push(heard.clone());
        let node = run_node(world.config(), parts).await.unwrap();
        node.ready().await;
        while heard.0.lock().unwrap().is_empty() {
            world.clock.sleep(Span::from_millis(5)).await;
        }
        let (schedule, fault) = heard.0.lock().unwrap()[0].clone();
        assert_eq!((schedule, fault.kind), (name("tick"), AuditFaultKind::Hole));
        assert_eq!((fault.from, fault.to), (lost.span.from, lost.span.to));
        let count = u64::try_from(fault.instants.len()).unwrap();
        assert!(
            count >= 3 && lost.span.count.is_none_or(|known| known == count),
            "{fault:?}"
        );
        assert!(fault.instants.iter().all(|at| fault.from < *at && *at <= fault.to));
    });
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
