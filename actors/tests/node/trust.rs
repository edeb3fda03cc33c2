//! A node whose own clock is off: it measures that, shows it, and takes and gives no work beyond the bound.
//!
//! Owns: a store that is elsewhere, and a wall clock that the test sets. Next: `../../src/node/trust.rs`.

use super::*;
use fencepost::clock::Clock;
use fencepost::node::trust::ClockFacts;
use fencepost_core::time::Monotonic;
use fencepost_storage::remote::serve::Serving;
use fencepost_storage::remote::{LinkError, RemoteStore, StoreLink};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

const BOUND: Span = Span::from_secs(2);

/// The node's clocks, with a wall clock that is off.
struct Off {
    clock: SharedClock,
    ahead: AtomicI64,
}

impl Off {
    fn set(&self, seconds: i64) {
        self.ahead.store(seconds * 1_000_000, Ordering::SeqCst);
    }
}

impl Clock for Off {
    fn wall(&self) -> i64 {
        self.clock.wall() + self.ahead.load(Ordering::SeqCst)
    }

    fn mono(&self) -> Monotonic {
        self.clock.mono()
    }

    fn sleep(&self, span: Span) -> BoxFuture<'static, ()> {
        self.clock.sleep(span)
    }
}

/// A way to a store that takes a moment.
struct Elsewhere(Serving);

impl StoreLink for Elsewhere {
    fn call(&self, call: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, LinkError>> {
        let answering = self.0.answer(&call);
        async move {
            tokio::task::yield_now().await;
            Ok(answering.await)
        }
        .boxed()
    }
}

async fn started(world: &World, is_far: bool) -> (Node, Arc<Off>) {
    let off = Arc::new(Off {
        clock: world.clock.clone(),
        ahead: AtomicI64::new(0),
    });
    let mut config = world.config();
    config.clock_offset_max = BOUND;
    let mut parts = world.parts();
    parts.clock = off.clone();
    if is_far {
        let serving = Serving::new(Arc::new(world.store.clone()), 1);
        parts.store = Arc::new(RemoteStore::new(Arc::new(Elsewhere(serving))));
    }
    let node = run_node(config, parts).await.unwrap();
    node.ready().await;
    (node, off)
}

async fn facts_once(world: &World, node: &Node, is_so: impl Fn(&ClockFacts) -> bool) -> ClockFacts {
    loop {
        let facts = node.gateway.facts().await.unwrap().clock;
        if is_so(&facts) {
            return facts;
        }
        world.clock.sleep(Span::from_millis(5)).await;
    }
}

#[test]
fn a_node_whose_clock_is_beyond_the_bound_takes_and_gives_no_work_until_it_is_back() {
    run(async {
        let world = World::new();
        let (node, off) = started(&world, true).await;
        let fine = facts_once(&world, &node, |facts| facts.offset.is_some()).await;
        assert!(fine.offset.unwrap().is_within(BOUND) && !fine.holds_back, "{fine:?}");
        let first = create(&node, item(fresh(&node), "noop")).await;
        node.gateway
            .wait_job(first, Span::from_secs(10))
            .await
            .unwrap()
            .unwrap();

        off.set(-10);
        let beyond = facts_once(&world, &node, |facts| facts.holds_back).await;
        let offset = beyond.offset.unwrap();
        assert!(offset.low <= -10_000_000 && -10_000_000 <= offset.high, "{offset:?}");
        let waits = create(&node, item(fresh(&node), "noop")).await;
        // Longer than a worker is silent.
        world.clock.sleep(Span::from_millis(1_500)).await;
        let held_until = node.gateway.now();
        let view = node.gateway.job(waits).await.unwrap().unwrap();
        assert_eq!((view.job.state, view.job.attempt_next), (JobState::Ready, 1));

        off.set(0);
        let view = node
            .gateway
            .wait_job(waits, Span::from_secs(20))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(view.job.state, JobState::Succeeded, "it goes on by itself");
        assert!(view.job.attempts[0].granted_at >= held_until);
        facts_once(&world, &node, |facts| !facts.holds_back).await;
    });
}

#[test]
fn a_node_with_its_store_in_one_process_has_the_stores_clock_and_is_not_held_back() {
    run(async {
        let world = World::new();
        let (node, off) = started(&world, false).await;
        off.set(-3_600);
        facts_once(&world, &node, |facts| {
            facts.offset.is_some_and(|offset| offset.high < 0)
        })
        .await;
        let id = create(&node, item(fresh(&node), "noop")).await;
        let view = node.gateway.wait_job(id, Span::from_secs(10)).await.unwrap().unwrap();
        assert_eq!(view.job.state, JobState::Succeeded);
    });
}
