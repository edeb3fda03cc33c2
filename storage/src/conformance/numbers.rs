//! F2: numbers, epochs, holders, and the time that commits state.
//!
//! Next: `opens.rs`.

use super::user::{SHARD, User, assign, is_already, letter, must_be, ready};
use super::{Rule, Verdict, hold, want};
use crate::store::{Committed, Store};
use fencepost_core::ids::{Epoch, Holder, Scope, ShardId};
use fencepost_core::machine::Expect::Any;
use futures_util::FutureExt;
use std::sync::Arc;

pub(super) const NEXT_NUMBER_ONLY: Rule = Rule {
    name: "f02_only_the_number_after_the_last_is_taken",
    run: |store| next_number_only(store).boxed(),
};

async fn next_number_only(store: Arc<dyn Store>) -> Verdict {
    let mut user = ready(&store).await?;
    for (number, what) in [(0, "zero"), (2, "a gap before the first"), (u64::MAX, "the largest")] {
        let answer = user.send(number, vec![letter(1, 1, Any)]).await;
        must_be(what, &answer, |answer| *answer == Committed::Stale)?;
    }
    user.must_commit(vec![letter(1, 1, Any)]).await?;
    let answer = user.send(3, vec![letter(1, 3, Any)]).await;
    must_be("a gap", &answer, |answer| *answer == Committed::Stale)?;
    user.must_commit(vec![letter(1, 2, Any)]).await?;
    want("the row", &user.letter(1).await?, &Some(2))
}

pub(super) const REPEATED_BATCH_IS_ALREADY: Rule = Rule {
    name: "f02_a_batch_sent_again_is_answered_and_not_applied_again",
    run: |store| repeated(store).boxed(),
};

async fn repeated(store: Arc<dyn Store>) -> Verdict {
    let mut user = ready(&store).await?;
    user.must_commit(vec![letter(1, 1, Any)]).await?;
    let at = user.must_commit(vec![letter(1, 2, Any)]).await?;
    let last = user.send(2, vec![letter(1, 2, Any)]).await;
    must_be("the last sent again", &last, is_already)?;
    if let Committed::Already(stated) = last {
        hold("the time of a repeated batch lies before its commit", stated.time >= at)?;
    }
    let older = user.send(1, vec![letter(1, 1, Any)]).await;
    must_be("an older one sent again", &older, is_already)?;
    want("the row after the repetition", &user.letter(1).await?, &Some(2))?;
    user.must_commit(vec![letter(1, 3, Any)]).await?;
    want("the row", &user.letter(1).await?, &Some(3))
}

pub(super) const OTHER_BYTES_UNDER_A_NUMBER: Rule = Rule {
    name: "f02_other_bytes_under_the_last_number_are_a_conflict",
    run: |store| other_bytes(store).boxed(),
};

async fn other_bytes(store: Arc<dyn Store>) -> Verdict {
    let mut user = ready(&store).await?;
    user.must_commit(vec![letter(1, 1, Any)]).await?;
    let answer = user.send(1, vec![letter(1, 9, Any)]).await;
    must_be("other bytes", &answer, |answer| {
        matches!(answer, Committed::Conflict(_))
    })?;
    want("the row", &user.letter(1).await?, &Some(1))
}

pub(super) const OLD_EPOCH_IS_STALE: Rule = Rule {
    name: "f02_an_old_epoch_writes_nothing",
    run: |store| old_epoch(store).boxed(),
};

async fn old_epoch(store: Arc<dyn Store>) -> Verdict {
    let mut old = ready(&store).await?;
    old.must_commit(vec![letter(1, 1, Any)]).await?;
    // The same holder again, so that only the epoch tells them apart.
    let mut new = User::open(&store, SHARD, 1, 1).await?;
    want("the epoch", &new.epoch, &Epoch(2))?;
    for number in 1..3 {
        let answer = old.send(number, vec![letter(1, 5, Any)]).await;
        must_be("the old epoch", &answer, |answer| *answer == Committed::Stale)?;
    }
    new.must_commit(vec![letter(2, 2, Any)]).await?;
    let mut ahead = new.clone();
    ahead.epoch = Epoch(3);
    let answer = ahead.send(2, vec![letter(1, 7, Any)]).await;
    must_be("an epoch that nobody opened", &answer, |answer| {
        *answer == Committed::Stale
    })?;
    want("the row", &new.letter(1).await?, &Some(1))
}

pub(super) const OTHER_HOLDER_IS_STALE: Rule = Rule {
    name: "f06_equal_epochs_of_two_holders_are_not_both_taken",
    run: |store| other_holder(store).boxed(),
};

async fn other_holder(store: Arc<dyn Store>) -> Verdict {
    let user = ready(&store).await?;
    let mut other = user.clone();
    other.holder = Holder(2);
    let answer = other.send(1, vec![letter(1, 1, Any)]).await;
    must_be("another holder", &answer, |answer| *answer == Committed::Stale)?;
    want("the row", &user.letter(1).await?, &None)
}

pub(super) const SCOPES_COUNT_APART: Rule = Rule {
    name: "scopes_have_their_own_epochs_and_numbers",
    run: |store| apart(store).boxed(),
};

async fn apart(store: Arc<dyn Store>) -> Verdict {
    assign(&store).await?;
    let mut one = User::open(&store, SHARD, 1, 0).await?;
    let mut two = User::open(&store, Scope::Shard(ShardId(2)), 1, 0).await?;
    for round in 1..4 {
        one.must_commit(vec![letter(1, round, Any)]).await?;
    }
    two.must_commit(vec![letter(2, 9, Any)]).await?;
    want("the other scope's last number", &two.last.0, &1)?;
    let never = store.epoch(Scope::Shard(ShardId(3))).await.map_err(|e| e.to_string())?;
    want("the epoch of a scope never opened", &never, &Epoch(0))
}

pub(super) const TIME_NEVER_GOES_BACK: Rule = Rule {
    name: "f20_stated_time_never_lies_below_what_was_stated",
    run: |store| time(store).boxed(),
};

async fn time(store: Arc<dyn Store>) -> Verdict {
    let mut user = ready(&store).await?;
    let mut floor = user.must_commit(vec![letter(1, 1, Any)]).await?;
    for round in 0..20 {
        let now = store.now(SHARD).await.map_err(|error| error.to_string())?.time;
        hold("now lies below the last commit", now >= floor)?;
        let next = user.must_commit(vec![letter(1, round, Any)]).await?;
        hold("a commit lies below now", next >= now)?;
        floor = next;
    }
    let opened = User::try_open(&store, SHARD, 2, 1)
        .await
        .map_err(|e| format!("{e:?}"))?;
    hold("an open lies below the last commit", opened.at >= floor)
}
