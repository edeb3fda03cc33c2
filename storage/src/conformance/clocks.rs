//! F20: what a store states while its wall clock steps, and what a restart makes of it.
//!
//! Owns: the audited lowering as calls and answers. `Timed` is a store whose clocks the test sets. Must
//! never: wait for time. Next: `fencepost_core::store_clock` (the decisions).

use super::user::{SHARD, User, assign, letter};
use super::{Verdict, hold, want};
use crate::store::Store;
use fencepost_core::ids::{Scope, ShardId};
use fencepost_core::limits::CLOCK_DOUBT_MAX_MS;
use fencepost_core::machine::Expect::Any;
use fencepost_core::time::{Monotonic, Span, StoreTime};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// A store whose clocks the test sets.
pub trait Timed: Send + Sync {
    /// The store.
    fn store(&self) -> Arc<dyn Store>;
    /// What its machine's clocks show from now on.
    fn set(&self, wall: StoreTime, mono: Monotonic);
    /// Ends its process and starts it again; nobody holds the store meanwhile.
    fn restart(&self);
}

/// One rule about clocks.
#[derive(Clone, Copy)]
pub struct ClockRule {
    /// Its sentence.
    pub name: &'static str,
    /// Tries it on a fresh store.
    pub run: fn(Arc<dyn Timed>) -> BoxFuture<'static, Verdict>,
}

/// All rules that need clocks.
pub const CLOCK_RULES: &[ClockRule] = &[
    ClockRule {
        name: "f20_time_is_held_while_the_clock_lies_below_it_and_then_lowered",
        run: |timed| held_then_lowered(timed).boxed(),
    },
    ClockRule {
        name: "f20_a_lowered_time_is_not_raised_by_a_restart",
        run: |timed| lowered_for_good(timed).boxed(),
    },
    ClockRule {
        name: "f20_a_restart_while_time_is_held_holds_it_for_the_wait_and_no_longer",
        run: |timed| held_over_a_restart(timed).boxed(),
    },
    ClockRule {
        name: "f20_a_leap_is_doubt_until_an_operator_confirms_the_clock",
        run: |timed| confirmed(timed).boxed(),
    },
];

/// True time; the clock runs an hour ahead of it.
const NOON: StoreTime = StoreTime(1_795_000_000_000_000);
const HOUR: Span = Span::from_secs(3_600);
const HOLD: Span = Span::from_millis(CLOCK_DOUBT_MAX_MS);

async fn now(timed: &Arc<dyn Timed>) -> Result<StoreTime, String> {
    let stated = timed.store().now(SHARD).await.map_err(|error| error.to_string())?;
    hold("a clock set back is no doubt", !stated.doubt)?;
    Ok(stated.time)
}

/// Two shards of which one commits; the clock an hour ahead, then right again.
async fn set_back(timed: &Arc<dyn Timed>) -> Result<(User, User), String> {
    timed.set(NOON + HOUR, Monotonic(0));
    let store = timed.store();
    assign(&store).await?;
    let mut busy = User::open(&store, SHARD, 1, 0).await?;
    let mut idle = User::open(&store, Scope::Shard(ShardId(2)), 1, 0).await?;
    want(
        "ahead",
        &busy.must_commit(vec![letter(1, 1, Any)]).await?,
        &(NOON + HOUR),
    )?;
    idle.must_commit(vec![letter(2, 1, Any)]).await?;
    timed.set(NOON, Monotonic(0));
    want("set back", &now(timed).await?, &(NOON + HOUR))?;
    timed.set(NOON + (HOLD - Span(1)), Monotonic(0) + (HOLD - Span(1)));
    want("held", &now(timed).await?, &(NOON + HOUR))?;
    want(
        "a commit while held",
        &busy.must_commit(Vec::new()).await?,
        &(NOON + HOUR),
    )?;
    timed.set(NOON + HOLD, Monotonic(0) + HOLD);
    want("lowered", &now(timed).await?, &(NOON + HOLD))?;
    Ok((busy, idle))
}

async fn held_then_lowered(timed: Arc<dyn Timed>) -> Verdict {
    let (mut busy, mut idle) = set_back(&timed).await?;
    want(
        "a commit after it",
        &busy.must_commit(Vec::new()).await?,
        &(NOON + HOLD),
    )?;
    want("of the other", &idle.must_commit(Vec::new()).await?, &(NOON + HOLD))?;
    let later = HOLD + Span::from_secs(1);
    timed.set(NOON + later, Monotonic(0) + later);
    want("time goes on", &now(&timed).await?, &(NOON + later))
}

async fn lowered_for_good(timed: Arc<dyn Timed>) -> Verdict {
    let (mut busy, idle) = set_back(&timed).await?;
    busy.must_commit(vec![letter(1, 2, Any)]).await?;
    drop((busy, idle));
    timed.restart();
    let later = HOLD + Span::from_secs(1);
    timed.set(NOON + later, Monotonic(0));
    want("time after the restart", &now(&timed).await?, &(NOON + later))?;
    let opened = User::try_open(&timed.store(), Scope::Shard(ShardId(2)), 2, 1).await;
    let opened = opened.map_err(|error| format!("{error:?}"))?;
    want("an open after the restart", &opened.at, &(NOON + later))
}

async fn held_over_a_restart(timed: Arc<dyn Timed>) -> Verdict {
    timed.set(NOON + HOUR, Monotonic(0));
    let store = timed.store();
    assign(&store).await?;
    let mut user = User::open(&store, SHARD, 1, 0).await?;
    want("ahead", &user.must_commit(Vec::new()).await?, &(NOON + HOUR))?;
    timed.set(NOON, Monotonic(1));
    want("set back", &now(&timed).await?, &(NOON + HOUR))?;
    drop((user, store));
    timed.restart();
    let again = Monotonic(2);
    timed.set(NOON, again);
    want("after the restart", &now(&timed).await?, &(NOON + HOUR))?;
    timed.set(NOON + (HOLD - Span(1)), again + (HOLD - Span(1)));
    want("held", &now(&timed).await?, &(NOON + HOUR))?;
    timed.set(NOON + HOLD, again + HOLD);
    want("lowered", &now(&timed).await?, &(NOON + HOLD))?;
    let mut user = User::open(&timed.store(), SHARD, 2, 1).await?;
    want("a commit", &user.must_commit(Vec::new()).await?, &(NOON + HOLD))
}

async fn confirmed(timed: Arc<dyn Timed>) -> Verdict {
    timed.set(NOON, Monotonic(0));
    let store = timed.store();
    assign(&store).await?;
    let mut user = User::open(&store, SHARD, 1, 0).await?;
    let confirm = async || store.confirm_clock().await.map_err(|error| error.to_string());
    want("no doubt, nothing to confirm", &confirm().await?, &false)?;
    timed.set(NOON + HOUR, Monotonic(0));
    let stated = store.now(SHARD).await.map_err(|error| error.to_string())?;
    hold("a leap is doubt", stated.doubt)?;
    want("time in doubt", &stated.time, &NOON)?;
    want("there is doubt", &confirm().await?, &true)?;
    want("time once confirmed", &now(&timed).await?, &(NOON + HOUR))?;
    want("a commit", &user.must_commit(Vec::new()).await?, &(NOON + HOUR))?;
    want("it is over", &confirm().await?, &false)
}
