//! A whole node on the model store: from a request to a recorded outcome, and over a restart.
//!
//! Owns: the shell, the worker and the gateway together. Next: `sim/` for the same under faults.
#![cfg(not(madsim))]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test"
)]

use fencepost::chance::SystemChance;
use fencepost::clock::{SharedClock, SystemClock};
use fencepost::gateway::{FateQuery, Gateway, JobRange, ScheduleRequest, ShardReply, ShardRequest};
use fencepost::node::lanes::local_lane;
use fencepost::node::{Node, NodeConfig, NodeParts, run_node};
use fencepost::targets::{HandlerRegistry, TargetRunner, TargetsConfig};
use fencepost_core::fate::FateKind;
use fencepost_core::ids::{JobId, Slot};
use fencepost_core::job::JobState;
use fencepost_core::lease_manager::io::{CancelAnswer, CreateItem};
use fencepost_core::scheduler_shard::io::ScheduleReply;
use fencepost_core::target::Payload;
use fencepost_core::time::{Span, StoreTime};
use fencepost_storage::model::ModelStore;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

#[path = "node/away.rs"]
mod away;
#[path = "node/claims.rs"]
mod claims;
#[path = "node/clock.rs"]
mod clock;
#[path = "node/commands.rs"]
mod commands;
#[path = "node/crowd.rs"]
mod crowd;
#[path = "node/draining.rs"]
mod draining;
#[path = "node/figures.rs"]
mod figures;
#[path = "node/flights.rs"]
mod flights;
#[path = "node/losses.rs"]
mod losses;
#[path = "node/opening.rs"]
mod opening;
#[path = "mesh/pair.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod pair;
#[path = "support/requests.rs"]
mod requests;
#[path = "node/room.rs"]
mod room;
#[path = "support/stoppable.rs"]
mod stoppable;
#[path = "node/trust.rs"]
mod trust;
#[path = "node/two_nodes.rs"]
mod two_nodes;
#[path = "node/two_owners.rs"]
mod two_owners;

use requests::{ask, create, every, fresh, item, name, run, spec, view};

struct World {
    clock: SharedClock,
    store: ModelStore,
    store_clock: Arc<StoreClock>,
}

/// The store's clocks: those of the node, stepped as a test likes.
struct StoreClock {
    clock: SharedClock,
    wall_ahead: AtomicI64,
    mono_ahead: AtomicU64,
}

impl StoreClock {
    /// Puts the wall clock ahead of the node's by this many seconds.
    fn set_wall(&self, seconds: i64) {
        self.wall_ahead.store(seconds * 1_000_000, Ordering::SeqCst);
    }

    /// Lets time go by on both clocks, as far as the store can tell.
    fn pass(&self, span: Span) {
        self.wall_ahead
            .fetch_add(i64::try_from(span.0).unwrap(), Ordering::SeqCst);
        self.mono_ahead.fetch_add(span.0, Ordering::SeqCst);
    }
}

impl fencepost_storage::clock::Clock for StoreClock {
    fn wall(&self) -> StoreTime {
        StoreTime(self.clock.wall() + self.wall_ahead.load(Ordering::SeqCst))
    }

    fn mono(&self) -> fencepost_core::time::Monotonic {
        self.clock.mono() + Span(self.mono_ahead.load(Ordering::SeqCst))
    }
}

impl World {
    fn new() -> World {
        let clock: SharedClock = Arc::new(SystemClock::new());
        let sleeper = clock.clone();
        let store_clock = Arc::new(StoreClock {
            clock: clock.clone(),
            wall_ahead: AtomicI64::new(0),
            mono_ahead: AtomicU64::new(0),
        });
        let store = ModelStore::new(store_clock.clone(), Arc::new(move |span| sleeper.sleep(span)));
        World {
            clock,
            store,
            store_clock,
        }
    }

    async fn start(&self) -> Node {
        let node = run_node(self.config(), self.parts()).await.unwrap();
        node.ready().await;
        node
    }

    /// After a step of the store's clock: longer than a shard goes on with what was stated before it.
    async fn settle(&self) {
        self.clock.sleep(Span::from_millis(5)).await;
    }

    fn config(&self) -> NodeConfig {
        let mut config = NodeConfig::new(name("local"));
        config.shards = 4;
        config
    }

    fn parts(&self) -> NodeParts {
        NodeParts {
            store: Arc::new(self.store.clone()),
            cell: 1,
            clock: self.clock.clone(),
            chance: Arc::new(SystemChance),
            runner: TargetRunner::new(TargetsConfig::for_dev(), HandlerRegistry::default()),
            lanes: vec![local_lane()],
            notes: Vec::new(),
            fatal: Arc::new(|reason| panic!("the store broke: {reason}")),
        }
    }
}

#[test]
fn a_job_runs_and_its_outcome_is_recorded() {
    run(async {
        let node = World::new().start().await;
        let id = create(&node, item(fresh(&node), "noop")).await;
        let view = node.gateway.wait_job(id, Span::from_secs(10)).await.unwrap().unwrap();
        assert_eq!(view.job.state, JobState::Succeeded);
        assert_eq!(view.job.attempts.len(), 1);
        assert_eq!(view.job.attempts[0].no, 1);
    });
}

#[test]
fn f26_a_creation_sent_again_without_a_key_ends_no_owner() {
    run(async {
        let world = World::new();
        let node = world.start().await;
        let first = item(fresh(&node), "noop");
        let id = create(&node, first.clone()).await;
        node.gateway.wait_job(id, Span::from_secs(10)).await.unwrap().unwrap();
        node.drain().await;
        // Another owner, which remembers nothing.
        let node = world.start().await;
        let again = CreateItem { resent: true, ..first };
        let shard = node.gateway.shard_map().shard_of(id.slot());
        let mut other = again.clone();
        other.spec = spec("another");
        let asked = ShardRequest::CreateJobs(vec![again, other]);
        let ShardReply::Created(answers) = node.gateway.call(shard, asked).await.unwrap() else {
            panic!("not created");
        };
        assert!(answers[0].as_ref().unwrap().replayed);
        assert_eq!(answers[1].as_ref().unwrap_err().code, "job_id_taken");
        let scope = fencepost_core::ids::Scope::Shard(shard);
        let epoch = fencepost_storage::store::Store::epoch(&world.store, scope)
            .await
            .unwrap();
        assert_eq!(epoch, fencepost_core::ids::Epoch(2), "no reload");
    });
}

#[test]
fn f26_a_creation_whose_end_its_owner_does_not_know_is_sent_again_by_the_gateway() {
    run(async {
        let world = World::new();
        let node = world.start().await;
        let first = item(fresh(&node), "noop");
        let shard = node.gateway.shard_map().shard_of(first.id.slot());
        // Another opens the scope: the owner's next batch is refused, and it opens anew.
        let scope = fencepost_core::ids::Scope::Shard(shard);
        let store = &world.store;
        let stolen = fencepost_storage::store::Open {
            scope,
            holder: fencepost_core::ids::Holder(7),
            expected: fencepost_storage::store::Store::epoch(store, scope).await.unwrap(),
            node: name("local"),
        };
        fencepost_storage::store::Store::open(store, stolen).await.unwrap();
        let asked = ShardRequest::CreateJobs(vec![first.clone()]);
        let ShardReply::Created(answers) = node.gateway.call(shard, asked).await.unwrap() else {
            panic!("not created");
        };
        let made = answers[0].as_ref().unwrap();
        assert_eq!((made.id, made.replayed), (first.id, false));
        let view = node
            .gateway
            .wait_job(first.id, Span::from_secs(10))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(view.job.attempts.len(), 1);
    });
}

#[test]
fn a_job_without_a_handler_is_tried_by_its_policy_and_then_dead() {
    run(async {
        let node = World::new().start().await;
        let id = create(&node, item(fresh(&node), "missing")).await;
        let view = node.gateway.wait_job(id, Span::from_secs(10)).await.unwrap().unwrap();
        assert_eq!(view.job.state, JobState::Dead);
        assert_eq!(view.job.attempts.len(), 2);
        let dead = node.gateway.jobs(JobRange::Dead, None, 10).await.unwrap();
        assert_eq!(dead.items.len(), 1);
    });
}

#[test]
fn same_key_makes_one_job_also_when_all_ask_at_once() {
    run(async {
        let node = World::new().start().await;
        let asked = (0..50).map(|_| {
            let key: Arc<str> = "k".into();
            let slot = Slot::of_key(&name("default"), &key);
            let drawn = node.gateway.draw().to_be_bytes();
            let mut chance = [0; 14];
            chance.copy_from_slice(&drawn[..14]);
            let mut item = item(JobId::fresh(slot, chance), "noop");
            item.key = Some((key, [7; 32]));
            create(&node, item)
        });
        let ids = futures_util::future::join_all(asked).await;
        assert!(ids.iter().all(|id| *id == ids[0]), "50 at once: one job");
    });
}

#[test]
fn f26_an_end_promises_the_key_the_time_that_the_node_was_told() {
    run(async {
        let world = World::new();
        let hour = Span::from_secs(3_600);
        let config = NodeConfig {
            key_kept: hour,
            ..world.config()
        };
        let node = run_node(config, world.parts()).await.unwrap();
        node.ready().await;
        let key: Arc<str> = "k".into();
        let mut item = item(JobId::fresh(Slot::of_key(&name("default"), &key), [1; 14]), "noop");
        item.key = Some((key, [7; 32]));
        let id = create(&node, item).await;
        let ended = node.gateway.wait_job(id, Span::from_secs(10)).await.unwrap().unwrap();
        assert_eq!(ended.job.key_kept, Some(hour));
    });
}

#[test]
fn a_cancelled_job_never_starts() {
    run(async {
        let node = World::new().start().await;
        let mut late = item(fresh(&node), "noop");
        late.due_at = Some(node.gateway.now() + Span::from_secs(3_600));
        let id = create(&node, late).await;
        let shard = node.gateway.shard_map().shard_of(id.slot());
        let answer = node.gateway.call(shard, ShardRequest::CancelJob(id)).await.unwrap();
        assert!(matches!(answer, ShardReply::Cancel(CancelAnswer::Cancelled)));
        let view = node.gateway.job(id).await.unwrap().unwrap();
        assert_eq!(view.job.state, JobState::Cancelled);
        assert!(view.job.attempts.is_empty());
    });
}

#[test]
fn a_schedule_fires_each_occurrence_once_and_its_fates_tile() {
    run(async {
        let world = World::new();
        let node = world.start().await;
        let schedule = (name("default"), name("tick"));
        let shard = node
            .gateway
            .shard_map()
            .shard_of(Slot::of_schedule(&schedule.0, &schedule.1));
        let spec = Box::new(every(20, node.gateway.now()));
        let create = ScheduleRequest::Create { spec, paused: false };
        node.gateway
            .call(shard, ShardRequest::Schedule(schedule.clone(), create))
            .await
            .unwrap();
        let facts = loop {
            let facts = node.gateway.schedule(schedule.clone()).await.unwrap().unwrap();
            if facts.view.cursor.finished_at.is_some() {
                break facts;
            }
            world.clock.sleep(Span::from_millis(5)).await;
        };
        assert_eq!(facts.view.cursor.fired, 5);
        let query = FateQuery {
            name: schedule.clone(),
            incarnation: None,
            from: None,
            to: None,
            after: None,
            limit: 100,
        };
        let fates = node.gateway.fates(query).await.unwrap().items;
        let fired: u64 = fates
            .iter()
            .filter(|span| span.kind == FateKind::FiredOnTime)
            .filter_map(|s| s.count)
            .sum();
        assert_eq!(fired, 5, "{fates:?}");
        let slot = Slot::of_schedule(&schedule.0, &schedule.1);
        let jobs = node.gateway.jobs(JobRange::Slot(slot), None, 100).await.unwrap();
        assert_eq!(jobs.items.len(), 5);
    });
}

#[test]
fn a_backfill_makes_up_a_pause_whose_fate_is_a_stored_row() {
    run(async {
        let world = World::new();
        let node = world.start().await;
        let begin = node.gateway.now();
        let spec = Box::new(every(20, begin));
        ask(&node, ScheduleRequest::Create { spec, paused: true }).await;
        while node.gateway.now() < begin + Span::from_millis(100) {
            world.clock.sleep(Span::from_millis(5)).await;
        }
        let paused = view(ask(&node, ScheduleRequest::Resume).await)
            .cursor
            .counts
            .of(FateKind::Paused);
        assert!(paused >= 4);
        // Five fires close the span of the pause into a row.
        let schedule = (name("default"), name("tick"));
        while node
            .gateway
            .schedule(schedule.clone())
            .await
            .unwrap()
            .unwrap()
            .view
            .cursor
            .fired
            < 5
        {
            world.clock.sleep(Span::from_millis(5)).await;
        }
        // The schedule may have been made at the very instant of its first occurrence, and `from` is exclusive.
        let backfill = ScheduleRequest::Backfill {
            from: StoreTime(begin.0 - 1),
            to: node.gateway.now(),
            cap: 100,
            rerun: false,
            request: 1,
            dry_run: true,
        };
        let ScheduleReply::Backfill {
            count, already_fired, ..
        } = ask(&node, backfill).await
        else {
            panic!("not a backfill");
        };
        assert_eq!((count, already_fired), (paused, 5));
    });
}

#[test]
fn what_waited_runs_after_a_drain_and_a_new_start() {
    run(async {
        let world = World::new();
        let node = world.start().await;
        let mut late = item(fresh(&node), "noop");
        late.due_at = Some(node.gateway.now() + Span::from_millis(50));
        node.drain().await;
        assert!(!node.gateway.health().ready);
        let node = world.start().await;
        late.due_at = Some(node.gateway.now() + Span::from_millis(50));
        let id = create(&node, late).await;
        node.drain().await;
        let node = world.start().await;
        let view = node.gateway.wait_job(id, Span::from_secs(10)).await.unwrap().unwrap();
        assert_eq!(view.job.state, JobState::Succeeded);
    });
}

#[test]
fn f28_another_number_of_shards_is_refused_and_an_unnamed_one_is_the_cells_own() {
    run(async {
        let world = World::new();
        world.start().await.drain().await;
        let mut config = world.config();
        (config.shards, config.shards_asked) = (8, true);
        let refused = run_node(config.clone(), world.parts()).await.err().unwrap();
        assert!(refused.to_string().contains("made with 4 shards"), "{refused}");
        config.shards_asked = false;
        let node = run_node(config, world.parts()).await.unwrap();
        node.ready().await;
        assert_eq!(node.cell.shards, 4);
        assert_eq!(node.gateway.shard_map().count(), 4);
        node.drain().await;
    });
}
