//! What a worker must do, case by case.
//!
//! Owns: the rules as they can be seen from outside. Must never: depend on how fast a worker is. Next: `world.rs`.

use super::proxy::TICK;
use super::world::{LEASE, World};
use fencepost_core::job::JobState;
use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use serde_json::json;

type Played<'a> = LocalBoxFuture<'a, Result<(), String>>;

/// One case.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) rule: &'static str,
    pub(super) play: fn(&mut World) -> Played<'_>,
}

const CLAIM: &str = "/v1/worker/claim";
const HEARTBEAT: &str = "/v1/worker/heartbeat";
const FINISH: &str = "/v1/worker/finish";

/// In this order; the last one stops the worker.
pub(super) const CASES: &[Case] = &[
    Case {
        name: "success",
        rule: "reports what a job returned as its output",
        play: |world| success(world).boxed_local(),
    },
    Case {
        name: "failure",
        rule: "reports a failure with its error, and takes the next attempt",
        play: |world| failure(world).boxed_local(),
    },
    Case {
        name: "permanent failure",
        rule: "says that trying again cannot help",
        play: |world| permanent(world).boxed_local(),
    },
    Case {
        name: "heartbeat",
        rule: "keeps an attempt alive for longer than its lease",
        play: |world| heartbeat(world).boxed_local(),
    },
    Case {
        name: "lost heartbeats",
        rule: "lives through heartbeats whose answers are lost",
        play: |world| lost_heartbeats(world).boxed_local(),
    },
    Case {
        name: "cancel",
        rule: "stops a cancelled attempt and reports it as cancelled",
        play: |world| cancel(world).boxed_local(),
    },
    Case {
        name: "lost claim",
        rule: "sends a claim without an answer again under its number",
        play: |world| lost_claim(world).boxed_local(),
    },
    Case {
        name: "lost report",
        rule: "sends a report without an answer again",
        play: |world| lost_report(world).boxed_local(),
    },
    Case {
        name: "refused report",
        rule: "sends a report that was answered with 503 again",
        play: |world| refused_report(world).boxed_local(),
    },
    Case {
        name: "fence",
        rule: "stops by itself when its lease ends and the server cannot be reached",
        play: |world| fence(world).boxed_local(),
    },
    Case {
        name: "stop",
        rule: "ends after SIGTERM with exit code 0, its attempts ended or given back",
        play: |world| stop(world).boxed_local(),
    },
];

async fn success(world: &mut World) -> Result<(), String> {
    let id = world.make(&json!({ "do": "succeed", "output": "grün ✓" }), 1).await?;
    world.expect(id, JobState::Succeeded, 1).await?;
    let output = world.attempts(id).await?.pop().map(|record| record.output);
    match output.as_deref() == Some("grün ✓".as_bytes()) {
        true => Ok(()),
        false => Err("the output came as something else".to_owned()),
    }
}

async fn failure(world: &mut World) -> Result<(), String> {
    let id = world.make(&json!({ "do": "fail", "error": "no luck" }), 2).await?;
    world.expect(id, JobState::Dead, 2).await?;
    let error = world.attempts(id).await?.pop().and_then(|record| record.error);
    match error.is_some_and(|error| error.contains("no luck")) {
        true => Ok(()),
        false => Err("the error's text is missing".to_owned()),
    }
}

async fn permanent(world: &mut World) -> Result<(), String> {
    let id = world.make(&json!({ "do": "fail", "permanent": true }), 5).await?;
    world.expect(id, JobState::Dead, 1).await.map(|_| ())
}

async fn heartbeat(world: &mut World) -> Result<(), String> {
    let id = world
        .make(&json!({ "do": "work", "ms": 2 * LEASE.as_millis() }), 1)
        .await?;
    world.expect(id, JobState::Succeeded, 1).await.map(|_| ())
}

async fn lost_heartbeats(world: &mut World) -> Result<(), String> {
    world.network.lose_answers(HEARTBEAT, 1);
    let id = world
        .make(&json!({ "do": "work", "ms": 2 * LEASE.as_millis() }), 1)
        .await?;
    world.expect(id, JobState::Succeeded, 1).await?;
    world
        .until("a heartbeat", |world| world.network.is_spent(HEARTBEAT))
        .await
}

async fn cancel(world: &mut World) -> Result<(), String> {
    let id = world.make(&json!({ "do": "work", "ms": 60_000 }), 1).await?;
    world.until_running(id).await?;
    if !world.cancel(id).await? {
        return Err("the attempt had ended before it was cancelled".to_owned());
    }
    world.expect(id, JobState::Cancelled, 1).await.map(|_| ())
}

async fn lost_claim(world: &mut World) -> Result<(), String> {
    world.network.lose_answers(CLAIM, 1);
    let id = world.make(&json!({ "do": "succeed" }), 1).await?;
    world.expect(id, JobState::Succeeded, 1).await?;
    world.is_alive()
}

async fn lost_report(world: &mut World) -> Result<(), String> {
    world.network.lose_answers(FINISH, 1);
    let id = world.make(&json!({ "do": "succeed" }), 1).await?;
    world.expect(id, JobState::Succeeded, 1).await?;
    let next = world.make(&json!({ "do": "succeed" }), 1).await?;
    world.expect(next, JobState::Succeeded, 1).await?;
    world.is_alive()
}

async fn refused_report(world: &mut World) -> Result<(), String> {
    world.network.refuse(FINISH, 2);
    let id = world.make(&json!({ "do": "succeed" }), 1).await?;
    world.expect(id, JobState::Succeeded, 1).await?;
    world.is_alive()
}

async fn fence(world: &mut World) -> Result<(), String> {
    let wish = json!({ "do": "tick", "url": world.url(TICK), "ms": 4 * LEASE.as_millis() });
    // Attempts that come while nothing passes are lost, too.
    let id = world.make(&wish, 50).await?;
    world.until("a tick", |world| !world.network.ticks().is_empty()).await?;
    world.network.cut(true);
    // The node takes the attempt back when its worker is silent; only then may another begin.
    let first = world.network.ticks().first().cloned();
    world.until_ended(id).await?;
    let before = world.network.ticks().len();
    world.network.cut(false);
    world
        .until("a tick of the next attempt", |world| {
            world.network.ticks().last() != first.as_ref()
        })
        .await?;
    let late = world
        .network
        .ticks()
        .iter()
        .skip(before)
        .filter(|token| Some(*token) == first.as_ref())
        .count();
    match late {
        0 => Ok(()),
        late => Err(format!("{late} ticks of an attempt that was taken back already")),
    }
}

async fn stop(world: &mut World) -> Result<(), String> {
    let id = world.make(&json!({ "do": "work", "ms": 700 }), 1).await?;
    world.until_running(id).await?;
    let status = world.stop_worker().await?;
    if !status.success() {
        return Err(super::ended(status));
    }
    let records = world.attempts(id).await?;
    match records.is_empty() {
        true => Err("it ended with an attempt that it neither reported nor gave back".to_owned()),
        false => Ok(()),
    }
}
