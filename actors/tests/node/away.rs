//! A node whose store goes away and comes back (PROTOCOL F17).

use super::*;
use fencepost::gateway::JobView;
use fencepost::targets::HandlerContext;
use fencepost_core::refusal::RefusalKind;
use tokio::sync::{Semaphore, watch};

const LEASE: Span = Span::from_millis(2_500);

/// A node with a handler `held` that runs until it is let go.
struct Held {
    world: World,
    node: Node,
    begun: watch::Receiver<u32>,
    let_go: Arc<Semaphore>,
}

impl Held {
    /// The job once it has ended.
    async fn ended(&self, id: JobId) -> JobView {
        let waiting = self.node.gateway.wait_job(id, Span::from_secs(20));
        waiting.await.unwrap().unwrap()
    }
}

async fn held() -> Held {
    let world = World::new();
    let (begin, begun) = watch::channel(0);
    let let_go = Arc::new(Semaphore::new(0));
    let (begin, waits) = (Arc::new(begin), let_go.clone());
    let mut handlers = HandlerRegistry::default();
    handlers.register(name("held"), move |_: HandlerContext| {
        let (begin, waits) = (begin.clone(), waits.clone());
        async move {
            begin.send_modify(|count| *count += 1);
            waits.acquire().await.unwrap().forget();
            Ok(Vec::new())
        }
    });
    let mut config = world.config();
    config.lease = LEASE;
    config.heartbeat = Span::from_millis(250);
    let mut parts = world.parts();
    parts.runner = TargetRunner::new(TargetsConfig::for_dev(), handlers);
    let node = run_node(config, parts).await.unwrap();
    node.ready().await;
    Held {
        world,
        node,
        begun,
        let_go,
    }
}

async fn refused(node: &Node, id: JobId) -> &'static str {
    let shard = node.gateway.shard_map().shard_of(id.slot());
    let asked = ShardRequest::CreateJobs(vec![item(id, "noop")]);
    let refusal = node.gateway.call(shard, asked).await.unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Unavailable);
    refusal.code
}

#[test]
fn f17_while_the_store_is_away_leases_are_renewed_and_nothing_is_taken() {
    run(async {
        let mut held = held().await;
        let id = create(&held.node, item(fresh(&held.node), "held")).await;
        held.begun.wait_for(|count| *count == 1).await.unwrap();
        held.world.store.set_away(true);
        let mut told = Vec::new();
        for _ in 0..3 {
            let node = &held.node;
            // The shard of the job in flight, so that it is this owner that must go on.
            let mut other = fresh(node);
            while node.gateway.shard_map().shard_of(other.slot()) != node.gateway.shard_map().shard_of(id.slot()) {
                other = fresh(node);
            }
            told.push(refused(node, other).await);
            held.world.clock.sleep(Span(LEASE.0 / 2)).await;
        }
        assert_eq!(told[0], "outcome_unknown", "it was taken before anyone knew");
        assert_eq!(told[1..], ["shard_unavailable"; 2], "then nothing is taken at all");
        held.let_go.add_permits(8);
        held.world.store.set_away(false);
        let view = held.ended(id).await;
        assert_eq!(view.job.state, JobState::Succeeded);
        assert_eq!(
            view.job.attempts.len(),
            1,
            "the lease was kept: {:?}",
            view.job.attempts
        );
        let after = create(&held.node, item(fresh(&held.node), "noop")).await;
        let view = held.ended(after).await;
        assert_eq!(view.job.state, JobState::Succeeded, "all goes on by itself");
    });
}

#[test]
fn f18_work_that_finished_while_the_store_was_away_is_reported_after() {
    run(async {
        let mut held = held().await;
        let id = create(&held.node, item(fresh(&held.node), "held")).await;
        held.begun.wait_for(|count| *count == 1).await.unwrap();
        held.world.store.set_away(true);
        held.let_go.add_permits(8);
        held.world.clock.sleep(Span(LEASE.0 * 2)).await;
        held.world.store.set_away(false);
        let view = held.ended(id).await;
        assert_eq!(view.job.state, JobState::Succeeded);
        assert_eq!(view.job.attempts.len(), 1);
        assert_eq!(*held.begun.borrow(), 1, "it did not run again");
    });
}

#[test]
fn a_node_is_not_ready_while_its_store_is_away_and_ready_again_after() {
    run(async {
        let held = held().await;
        let gateway = &held.node.gateway;
        assert!(gateway.health().ready, "{:?}", gateway.health());
        held.world.store.set_away(true);
        while gateway.health().ready {
            held.world.clock.sleep(Span::from_millis(5)).await;
        }
        assert_eq!(gateway.health().reasons, ["the store does not answer"]);
        held.world.store.set_away(false);
        while !gateway.health().ready {
            held.world.clock.sleep(Span::from_millis(5)).await;
        }
        assert!(gateway.health().reasons.is_empty());
        held.node.drain().await;
        assert_eq!(gateway.health().reasons, ["draining"]);
    });
}

#[test]
fn facts_count_schedules_made_after_the_start() {
    run(async {
        let world = World::new();
        let node = world.start().await;
        assert_eq!(node.gateway.facts().await.unwrap().schedules, 0);
        let spec = Box::new(every(20, node.gateway.now()));
        ask(&node, ScheduleRequest::Create { spec, paused: true }).await;
        while node.gateway.facts().await.unwrap().schedules != 1 {
            world.clock.sleep(Span::from_millis(5)).await;
        }
    });
}
