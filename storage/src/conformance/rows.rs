//! F4 and the rest of a commit: expectations, atomicity, reads and scans.
//!
//! Next: `crashes.rs`.

use super::user::{User, assign, delete_letter, job, job_id, letter, must_be, ready};
use super::{Rule, Verdict, hold, want};
use crate::batch::{Batch, RawExpect, RawWrite};
use crate::keys::{KeyRange, Kind, key_bytes, scope_key};
use crate::store::{Bytes, Commit, Committed, Store};
use fencepost_core::ids::{BatchNo, Scope, ShardId};
use fencepost_core::machine::Expect::{Absent, Any, Version};
use fencepost_core::machine::Write;
use fencepost_core::row::RowKey;
use futures_util::FutureExt;
use futures_util::future::join_all;
use std::sync::Arc;

fn is_conflict(answer: &Committed) -> bool {
    matches!(answer, Committed::Conflict(_))
}

pub(super) const ABSENT_MEANS_ABSENT: Rule = Rule {
    name: "f01_an_insert_of_a_row_that_is_there_is_a_conflict",
    run: |store| absent(store).boxed(),
};

async fn absent(store: Arc<dyn Store>) -> Verdict {
    let mut user = ready(&store).await?;
    user.must_commit(vec![letter(1, 1, Absent)]).await?;
    let answer = user.commit(vec![letter(1, 2, Absent)]).await;
    must_be("a second insert", &answer, is_conflict)?;
    want("the row", &user.letter(1).await?, &Some(1))?;
    user.must_commit(vec![delete_letter(1)]).await?;
    want("the row after its delete", &user.letter(1).await?, &None)?;
    user.must_commit(vec![letter(1, 3, Absent)]).await?;
    want("the row", &user.letter(1).await?, &Some(3))
}

pub(super) const VERSION_MEANS_VERSION: Rule = Rule {
    name: "f04_a_put_over_another_version_is_a_conflict",
    run: |store| version(store).boxed(),
};

async fn version(store: Arc<dyn Store>) -> Verdict {
    let mut user = ready(&store).await?;
    let none = user.commit(vec![job(1, 2, Version(1))]).await;
    must_be("a put over no row", &none, is_conflict)?;
    user.must_commit(vec![job(1, 1, Absent)]).await?;
    user.must_commit(vec![job(1, 2, Version(1))]).await?;
    let stale = user.commit(vec![job(1, 3, Version(1))]).await;
    must_be("a put over a version gone by", &stale, is_conflict)?;
    let other = user.commit(vec![letter(1, 1, Version(0))]).await;
    must_be("a version of a row that has none", &other, is_conflict)?;
    user.must_commit(vec![job(1, 3, Version(2))]).await.map(|_| ())
}

pub(super) const EXPECTATIONS_SEE_THEIR_OWN_BATCH: Rule = Rule {
    name: "expectations_see_earlier_writes_of_their_batch",
    run: |store| own_batch(store).boxed(),
};

async fn own_batch(store: Arc<dyn Store>) -> Verdict {
    let mut user = ready(&store).await?;
    user.must_commit(vec![job(1, 1, Absent), job(1, 2, Version(1)), job(1, 3, Version(2))])
        .await?;
    user.must_commit(vec![Write::Delete(RowKey::Job(job_id(1))), job(1, 1, Absent)])
        .await?;
    let twice = user.commit(vec![letter(1, 1, Absent), letter(1, 2, Absent)]).await;
    must_be("two inserts of a row in one batch", &twice, is_conflict)?;
    want("the row", &user.letter(1).await?, &None)
}

pub(super) const REFUSED_BATCH_LEAVES_NO_TRACE: Rule = Rule {
    name: "a_refused_batch_leaves_no_row_and_uses_no_number",
    run: |store| no_trace(store).boxed(),
};

async fn no_trace(store: Arc<dyn Store>) -> Verdict {
    let mut user = ready(&store).await?;
    user.must_commit(vec![letter(1, 1, Any)]).await?;
    let writes = vec![
        letter(2, 2, Any),
        delete_letter(1),
        job(1, 5, Version(4)),
        letter(3, 3, Any),
    ];
    let answer = user.commit(writes).await;
    must_be("a batch with one unmet expectation", &answer, is_conflict)?;
    for (id, expected) in [(1, Some(1)), (2, None), (3, None)] {
        want("a row of the refused batch", &user.letter(id).await?, &expected)?;
    }
    user.must_commit(vec![letter(4, 4, Any)]).await?;
    want("its number", &user.last.0, &2)
}

pub(super) const SCANS_ARE_ORDERED_AND_BOUNDED: Rule = Rule {
    name: "scans_give_rows_in_key_order_within_bounds_and_limit",
    run: |store| scans(store).boxed(),
};

async fn scans(store: Arc<dyn Store>) -> Verdict {
    let mut user = ready(&store).await?;
    let writes = [5, 3, 9, 1, 7].map(|id| letter(id, i64::from(id), Any));
    user.must_commit(writes.into_iter().chain([job(4, 1, Any)]).collect())
        .await?;
    let key = |id: u8| key_bytes(&RowKey::DeadLetter(job_id(id)));
    let all = || KeyRange::kind(Kind::DeadLetter);
    let cases = [
        (all().scan(100), vec![1, 3, 5, 7, 9]),
        (all().scan(2), vec![1, 3]),
        (all().scan(0), vec![]),
        (all().scan_back(2), vec![9, 7]),
        (all().scan_page(100, 1), vec![1, 3]),
        (all().scan_page(1, 1), vec![1]),
        (all().scan_page(100, 1 << 20), vec![1, 3, 5, 7, 9]),
        (all().starting_at(&key(3)).before(&key(9)).scan(100), vec![3, 5, 7]),
        (all().after(&key(3)).scan(1), vec![5]),
        (all().starting_at(&key(4)).before(&key(5)).scan(100), vec![]),
        (all().starting_at(&key(9)).before(&key(3)).scan(100), vec![]),
    ];
    for (scan, expected) in cases {
        let rows = store.scan(scan.clone()).await.map_err(|error| error.to_string())?;
        let found: Vec<Vec<u8>> = rows.iter().map(|(key, _)| key.to_vec()).collect();
        let expected: Vec<Vec<u8>> = expected.into_iter().map(key).collect();
        want("the keys of a scan", &found, &expected)?;
    }
    for (most, expected) in [(0, 1), (1, 1), (1 << 20, 3)] {
        let keys = [1, 4, 9].map(key).to_vec();
        let values = store.get_within(keys, most).await.map_err(|error| error.to_string())?;
        want("the values within a bound", &values.len(), &expected)?;
    }
    let across = KeyRange {
        from: vec![Kind::Assignment.byte()],
        to: vec![u8::MAX],
    };
    for scan in [across.clone().scan(100), across.scan_back(100)] {
        let is_backwards = scan.backwards;
        let rows = store.scan(scan).await.map_err(|error| error.to_string())?;
        let ordered = rows.is_sorted_by(|(a, _), (b, _)| if is_backwards { a > b } else { a < b });
        hold("a scan over several kinds is out of order", ordered)?;
        want("its rows", &rows.len(), &10)?;
    }
    Ok(())
}

pub(super) const COMMITTED_IS_READ: Rule = Rule {
    name: "f05_what_was_committed_is_read",
    run: |store| committed_is_read(store).boxed(),
};

async fn committed_is_read(store: Arc<dyn Store>) -> Verdict {
    let mut user = ready(&store).await?;
    for round in 0..50 {
        user.must_commit(vec![letter(1, round, Any)]).await?;
        want("the row just committed", &user.letter(1).await?, &Some(round))?;
    }
    let keys = [1, 2, 1].map(|id| key_bytes(&RowKey::DeadLetter(job_id(id)))).to_vec();
    let values = store.get(keys).await.map_err(|error| error.to_string())?;
    let there: Vec<bool> = values.iter().map(Option::is_some).collect();
    want("values in the order of their keys", &there, &vec![true, false, true])
}

pub(super) const STORES_OWN_ROWS_ARE_ITS_OWN: Rule = Rule {
    name: "a_batch_cannot_write_the_stores_own_rows",
    run: |store| own_rows(store).boxed(),
};

async fn own_rows(store: Arc<dyn Store>) -> Verdict {
    let user = ready(&store).await?;
    for key in [
        scope_key(user.scope),
        vec![Kind::Chain.byte(), 0],
        vec![0xee],
        vec![],
        vec![Kind::Job.byte(); 9_000],
    ] {
        let writes = vec![RawWrite::Put {
            key: Bytes::from(key),
            value: Bytes::from([1].as_slice()),
            expect: RawExpect::Any,
        }];
        let (digest, bytes) = crate::codec::digest_of(&writes);
        let request = Commit {
            scope: user.scope,
            holder: user.holder,
            epoch: user.epoch,
            number: BatchNo(1),
            batch: Arc::new(Batch {
                writes,
                digest,
                bytes,
                creates: false,
            }),
        };
        must_be(
            "a write of the store's own row",
            &store.commit(request).await,
            is_conflict,
        )?;
    }
    let check = store.check(user.scope, user.holder, user.epoch).await;
    want("the holder's check", &check, &Ok(true))
}

pub(super) const MANY_WRITERS_AT_ONCE: Rule = Rule {
    name: "writers_of_many_scopes_at_once_do_not_disturb_each_other",
    run: |store| many(store).boxed(),
};

async fn many(store: Arc<dyn Store>) -> Verdict {
    assign(&store).await?;
    let writers = (1..=4_u8).map(|shard| {
        let store = store.clone();
        async move {
            let mut user = User::open(&store, Scope::Shard(ShardId(u16::from(shard))), 5, 0).await?;
            for round in 0..25 {
                user.must_commit(vec![letter(shard, round, Any)]).await?;
                // One of the four also sends what is refused.
                if shard == 2 {
                    let refused = user.commit(vec![job(99, 2, Version(1))]).await;
                    must_be("a refused batch in a shared group", &refused, is_conflict)?;
                }
            }
            want("the writer's last row", &user.letter(shard).await?, &Some(24))
        }
    });
    join_all(writers).await.into_iter().collect()
}
