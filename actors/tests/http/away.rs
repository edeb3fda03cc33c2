//! What callers are told while the store is away, and within what time by a clock that the test moves.
//!
//! Owns: the bound of issue 3: 503 and Retry-After within 2 s. Must never: measure real time. Next:
//! `../support/stoppable.rs`; `../process/split.rs` tells the same story with real processes, and its figure.

use super::{Reply, World, model_store, run};
use crate::stoppable::{Stoppable, rest};
use fencepost::api::server::HttpLimits;
use fencepost::clock::{SharedClock, SystemClock};
use fencepost_core::limits::STORE_CALL_MS;
use fencepost_core::time::Span;
use fencepost_storage::model::{CallFate, Fault, FaultPlan, ModelStore, NoFaults};
use fencepost_storage::store::{Commit, Open};
use futures_util::future::{Either, select};
use std::pin::pin;
use std::sync::Arc;

/// By a clock that stands while anything is computed; the rest of the 2 s is for that.
const BOUND: Span = Span::from_millis(1_900);
const STEP: Span = Span::from_millis(10);
const JOB: &str = r#"{"target":{"type":"handler","name":"echo"}}"#;

/// A store behind a network that is cut: each call waits as long as one may, and fails.
struct Silent;

impl Silent {
    fn fate() -> CallFate {
        CallFate {
            delay: Span::from_millis(STORE_CALL_MS),
            fault: Some(Fault::Unavailable),
            ..CallFate::default()
        }
    }
}

impl FaultPlan for Silent {
    fn on_commit(&mut self, _: &Commit) -> CallFate {
        Silent::fate()
    }

    fn on_open(&mut self, _: &Open) -> CallFate {
        Silent::fate()
    }

    fn on_read(&mut self) -> CallFate {
        Silent::fate()
    }
}

/// Sends a creation once the store is away, and lets no more than the bound go by.
async fn answer_while(go_away: impl Fn(&ModelStore), come_back: impl Fn(&ModelStore)) {
    let clock = Stoppable::new(Arc::new(SystemClock::new()));
    let shared: SharedClock = clock.clone();
    let store = model_store(&shared);
    let world = World::on(shared, store.clone(), HttpLimits::default()).await;
    clock.stop();
    go_away(&store);
    // The first is told what it is to wait for, the second what a node says that knows already.
    for _ in 0..2 {
        let reply = within_bound(&clock, &world).await;
        let (status, code) = reply.problem();
        assert_eq!(status, 503, "{code}");
        assert_eq!(reply.headers["retry-after"], "1", "{code}");
    }
    come_back(&store);
    let made = loop {
        let reply = within_bound(&clock, &world).await;
        if reply.status != 503 {
            break reply;
        }
    };
    assert_eq!(made.status, 201, "all goes on by itself: {made:?}");
}

async fn within_bound(clock: &Stoppable, world: &World) -> Reply {
    let asked = pin!(world.post("/v1/jobs", JOB));
    let passing = pin!(async {
        let mut passed = Span::ZERO;
        rest().await;
        while passed < BOUND {
            clock.advance(STEP);
            passed = passed + STEP;
            rest().await;
        }
    });
    match select(asked, passing).await {
        Either::Left((reply, _)) => reply,
        Either::Right(_) => panic!("no answer within {BOUND:?}"),
    }
}

#[test]
fn a_creation_is_refused_within_2_s_while_the_store_says_that_it_is_away() {
    run(answer_while(
        |store| store.set_away(true),
        |store| store.set_away(false),
    ));
}

#[test]
fn a_creation_is_refused_within_2_s_while_the_store_says_nothing() {
    run(answer_while(
        |store| store.set_plan(Box::new(Silent)),
        |store| store.set_plan(Box::new(NoFaults)),
    ));
}
