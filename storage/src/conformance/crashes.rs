//! What a crash may and may not take: for stores that can be crashed by the test.
//!
//! Owns: durability as calls and answers. `Mortal` is a store whose power the test can cut; between
//! `hold_syncs` and `release_syncs` no sync finishes. Next: `mod.rs`.

use super::user::{SHARD, User, assign, letter};
use super::{Verdict, want};
use crate::store::{Committed, Store};
use fencepost_core::machine::Expect::Any;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, poll_fn};
use std::sync::Arc;
use std::task::Poll;

/// A store that can be crashed.
pub trait Mortal: Send + Sync {
    /// The store.
    fn store(&self) -> Arc<dyn Store>;
    /// Cuts the power; unsynced bytes are gone. The store is back at once.
    fn cut_power(&self);
    /// Kills the process; what was written stays. The store is back at once.
    fn kill(&self);
    /// From now on syncs do not finish.
    fn hold_syncs(&self);
    /// Syncs finish again.
    fn release_syncs(&self);
}

/// One rule about crashes.
#[derive(Clone, Copy)]
pub struct CrashRule {
    /// Its sentence.
    pub name: &'static str,
    /// Tries it on a fresh store.
    pub run: fn(Arc<dyn Mortal>) -> BoxFuture<'static, Verdict>,
}

/// All rules that need a crash.
pub const CRASH_RULES: &[CrashRule] = &[
    CrashRule {
        name: "p1_what_was_acknowledged_survives_power_loss",
        run: |mortal| acknowledged_survives(mortal).boxed(),
    },
    CrashRule {
        name: "f05_what_was_read_survives_power_loss",
        run: |mortal| read_survives(mortal).boxed(),
    },
    CrashRule {
        name: "f02_an_unknown_commit_is_settled_by_sending_it_again",
        run: |mortal| unknown_is_settled(mortal).boxed(),
    },
    CrashRule {
        name: "f05_an_open_survives_power_loss_with_its_epoch",
        run: |mortal| open_survives(mortal).boxed(),
    },
];

async fn ready(mortal: &Arc<dyn Mortal>) -> Result<User, String> {
    let store = mortal.store();
    assign(&store).await?;
    User::open(&store, SHARD, 1, 0).await
}

/// Lets the commit get as far as its held sync; `Some` if it was answered all the same.
async fn poll_some<T>(future: &mut BoxFuture<'static, T>) -> Option<T> {
    let mut polls = 0;
    poll_fn(|context| {
        polls += 1;
        if let Poll::Ready(answer) = future.poll_unpin(context) {
            return Poll::Ready(Some(answer));
        }
        if polls > 10 {
            return Poll::Ready(None);
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

async fn acknowledged_survives(mortal: Arc<dyn Mortal>) -> Verdict {
    let mut user = ready(&mortal).await?;
    for round in 0..10 {
        user.must_commit(vec![letter(1, round, Any)]).await?;
        mortal.cut_power();
        want("the acknowledged row", &user.letter(1).await?, &Some(round))?;
    }
    mortal.hold_syncs();
    let mut pending = mortal.store().commit(user.request(11, &[letter(1, 99, Any)]));
    let answer = poll_some(&mut pending).await;
    mortal.cut_power();
    mortal.release_syncs();
    let seen = user.letter(1).await?;
    match answer {
        Some(Committed::Committed(_)) => want("the row acknowledged before its sync", &seen, &Some(99)),
        Some(other) => Err(format!("a commit without a sync was answered {other:?}")),
        None => want("the row whose sync was cut", &seen, &Some(9)),
    }
}

async fn read_survives(mortal: Arc<dyn Mortal>) -> Verdict {
    let mut user = ready(&mortal).await?;
    user.must_commit(vec![letter(1, 1, Any)]).await?;
    mortal.hold_syncs();
    let mut pending = mortal.store().commit(user.request(2, &[letter(1, 2, Any)]));
    let _ = poll_some(&mut pending).await;
    let seen = user.letter(1).await?;
    let epoch = mortal.store().epoch(SHARD).await;
    mortal.cut_power();
    mortal.release_syncs();
    want(
        "a row that was read before the power loss",
        &user.letter(1).await?,
        &seen,
    )?;
    want("an epoch that was read", &mortal.store().epoch(SHARD).await, &epoch)
}

async fn unknown_is_settled(mortal: Arc<dyn Mortal>) -> Verdict {
    let mut user = ready(&mortal).await?;
    user.must_commit(vec![letter(1, 1, Any)]).await?;
    for (round, is_power) in [(2, true), (3, false), (4, true)] {
        let request = user.request(round, &[letter(1, i64::try_from(round).unwrap_or(0), Any)]);
        mortal.hold_syncs();
        let mut pending = mortal.store().commit(request.clone());
        let early = poll_some(&mut pending).await;
        if is_power {
            mortal.cut_power();
        } else {
            mortal.kill();
        }
        mortal.release_syncs();
        let first = match early {
            Some(answer) => answer,
            None => pending.await,
        };
        let again = mortal.store().commit(request).await;
        let is_settled = matches!(again, Committed::Committed(_) | Committed::Already(_));
        if !is_settled {
            return Err(format!("answered {first:?}, then {again:?} when sent again"));
        }
        want(
            "the row once settled",
            &user.letter(1).await?,
            &i64::try_from(round).ok(),
        )?;
    }
    Ok(())
}

async fn open_survives(mortal: Arc<dyn Mortal>) -> Verdict {
    let mut old = ready(&mortal).await?;
    old.must_commit(vec![letter(1, 1, Any)]).await?;
    let mut new = User::open(&mortal.store(), SHARD, 2, 1).await?;
    mortal.cut_power();
    want(
        "the old holder",
        &old.commit(vec![letter(1, 5, Any)]).await,
        &Committed::Stale,
    )?;
    new.must_commit(vec![letter(1, 2, Any)]).await?;
    want("the row", &new.letter(1).await?, &Some(2))
}
