//! F6: open is a compare-and-set for the assigned node.
//!
//! Next: `rows.rs`.

use super::user::{SHARD, User, assign, letter, must_be, open_request, ready};
use super::{Rule, Verdict, hold, want};
use crate::store::{Committed, OpenError, Store};
use fencepost_core::ids::{Epoch, Holder, Scope, ShardId};
use fencepost_core::machine::Expect::Any;
use futures_util::FutureExt;
use futures_util::future::join;
use std::sync::Arc;

pub(super) const COMPARE_AND_SET: Rule = Rule {
    name: "f06_an_open_of_another_epoch_is_refused",
    run: |store| compare_and_set(store).boxed(),
};

async fn compare_and_set(store: Arc<dyn Store>) -> Verdict {
    assign(&store).await?;
    let early = User::try_open(&store, SHARD, 1, 1).await;
    want("an epoch ahead", &early, &Err(OpenError::Moved { current: Epoch(0) }))?;
    let mut first = User::open(&store, SHARD, 1, 0).await?;
    let again = User::try_open(&store, SHARD, 2, 0).await;
    want("an epoch gone by", &again, &Err(OpenError::Moved { current: Epoch(1) }))?;
    first.must_commit(vec![letter(1, 1, Any)]).await?;
    let second = User::open(&store, SHARD, 2, 1).await?;
    want("the next epoch", &second.epoch, &Epoch(2))?;
    let now = store.epoch(SHARD).await.map_err(|error| error.to_string())?;
    want("the epoch read", &now, &Epoch(2))
}

pub(super) const SAME_NONCE_SAME_ANSWER: Rule = Rule {
    name: "f06_a_delayed_open_does_not_raise_the_epoch_above_its_own_holder",
    run: |store| same_nonce(store).boxed(),
};

async fn same_nonce(store: Arc<dyn Store>) -> Verdict {
    let mut user = ready(&store).await?;
    let again = User::try_open(&store, SHARD, 1, 0).await;
    hold(
        "the same nonce got another answer",
        again.is_ok_and(|opened| opened.epoch == Epoch(1)),
    )?;
    user.must_commit(vec![letter(1, 1, Any)]).await?;
    let late = User::try_open(&store, SHARD, 1, 0).await;
    hold(
        "a late duplicate got another answer",
        late.is_ok_and(|opened| opened.epoch == Epoch(1)),
    )?;
    user.must_commit(vec![letter(1, 2, Any)]).await?;
    want("the row", &user.letter(1).await?, &Some(2))
}

pub(super) const ONLY_THE_ASSIGNED_NODE: Rule = Rule {
    name: "f06_only_the_node_that_the_assignment_names_may_open",
    run: |store| assigned(store).boxed(),
};

async fn assigned(store: Arc<dyn Store>) -> Verdict {
    let unassigned = User::try_open(&store, SHARD, 1, 0).await;
    want("no assignment at all", &unassigned, &Err(OpenError::NotAssigned))?;
    assign(&store).await?;
    let other = store.open(open_request(SHARD, 1, 0, "b")).await;
    want("another node", &other, &Err(OpenError::NotAssigned))?;
    let nobody = User::try_open(&store, Scope::Shard(ShardId(9)), 1, 0).await;
    want("a shard without assignment", &nobody, &Err(OpenError::NotAssigned))?;
    User::open(&store, SHARD, 1, 0).await.map(|_| ())
}

pub(super) const ONE_WINNER_OF_A_RACE: Rule = Rule {
    name: "f06_of_two_opens_at_once_one_wins",
    run: |store| race(store).boxed(),
};

async fn race(store: Arc<dyn Store>) -> Verdict {
    assign(&store).await?;
    for epoch in 0..20 {
        let (a, b) = join(
            User::try_open(&store, SHARD, 10 + u128::from(epoch) * 2, epoch),
            User::try_open(&store, SHARD, 11 + u128::from(epoch) * 2, epoch),
        )
        .await;
        let won = u32::from(a.is_ok()) + u32::from(b.is_ok());
        want("winners of the race", &won, &1)?;
    }
    Ok(())
}

pub(super) const NOTHING_OLD_FOLLOWS_AN_OPEN: Rule = Rule {
    name: "f05_a_batch_of_the_old_epoch_never_follows_the_open",
    run: |store| nothing_old(store).boxed(),
};

async fn nothing_old(store: Arc<dyn Store>) -> Verdict {
    let mut old = ready(&store).await?;
    for epoch in 1..20_u64 {
        let writes = vec![letter(1, i64::try_from(epoch).unwrap_or(0), Any)];
        // Sent together: whichever is first, the batch counts only if it came before the open.
        let (answer, opened) = join(
            old.send(1, writes),
            User::try_open(&store, SHARD, 1_000 + u128::from(epoch), epoch),
        )
        .await;
        let opened = opened.map_err(|error| format!("open {epoch}: {error:?}"))?;
        let seen = old.letter(1).await?;
        let is_there = seen == i64::try_from(epoch).ok();
        match answer {
            Committed::Committed(_) => hold("an accepted batch is not there", is_there)?,
            Committed::Stale => hold("a refused batch is there", !is_there)?,
            other => return Err(format!("the old batch was answered {other:?}")),
        }
        let after = old.send(2, vec![letter(1, -1, Any)]).await;
        must_be("an old batch after the open", &after, |answer| {
            *answer == Committed::Stale
        })?;
        old = User {
            epoch: opened.epoch,
            holder: Holder(1_000 + u128::from(epoch)),
            ..old
        };
    }
    Ok(())
}

pub(super) const CHECK_TELLS_THE_HOLDER: Rule = Rule {
    name: "a_check_is_true_for_the_holder_alone",
    run: |store| check(store).boxed(),
};

async fn check(store: Arc<dyn Store>) -> Verdict {
    let user = ready(&store).await?;
    for (holder, epoch, expected) in [(1, 1, true), (2, 1, false), (1, 2, false), (1, 0, false)] {
        let answer = store.check(user.scope, Holder(holder), Epoch(epoch)).await;
        want("the check", &answer, &Ok(expected))?;
    }
    let never = store.check(Scope::Shard(ShardId(4)), Holder(0), Epoch(0)).await;
    want("the check of a scope never opened", &never, &Ok(false))
}
