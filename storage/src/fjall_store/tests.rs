//! The embedded store: starting, refusing, breaking, filling up, backup and restore.

mod clock;
mod journals;
mod refusals;
mod restoring;
mod running;

use super::*;
use crate::codec::encode_batch;
use crate::conformance::tests::Ticking;
use fencepost_core::ids::{BatchNo, JobId, ShardId, Slot};
use fencepost_core::machine::{Expect, Write};
use fencepost_core::name::Name;
use fencepost_core::row::{AssignmentRow, DeadLetterRow, Row, RowKey};
use fencepost_core::time::StoreTime;

pub(super) const SCOPE: Scope = Scope::Coordinator;

pub(super) fn options() -> Options {
    Options::new(NewStore { store: 1, cell: 2 }, Arc::new(Ticking::default()))
}

pub(crate) fn started(folder: &Path) -> FjallStore {
    FjallStore::start(folder, options()).unwrap()
}

pub(super) fn id(number: u32) -> JobId {
    let mut chance = [0; 14];
    chance[..4].copy_from_slice(&number.to_be_bytes());
    JobId::fresh(Slot::new(3).unwrap(), chance)
}

pub(super) fn letter(number: u32, at: i64) -> Write {
    Write::Put {
        row: Row::DeadLetter(DeadLetterRow {
            id: id(number),
            at: StoreTime(at),
        }),
        expect: Expect::Any,
    }
}

/// Opens the coordinator's scope at this epoch.
pub(super) async fn open(store: &FjallStore, expected: u64) -> Epoch {
    let request = Open {
        scope: SCOPE,
        holder: Holder(7),
        expected: Epoch(expected),
        node: Name::new("a").unwrap(),
    };
    store.open(request).await.unwrap().epoch
}

pub(super) fn commit(epoch: Epoch, number: u64, writes: &[Write], creates: bool) -> Commit {
    Commit {
        scope: SCOPE,
        holder: Holder(7),
        epoch,
        number: BatchNo(number),
        batch: Arc::new(encode_batch(writes, creates).unwrap()),
    }
}

pub(super) async fn must_commit(store: &FjallStore, epoch: Epoch, number: u64, writes: &[Write]) {
    let answer = store.commit(commit(epoch, number, writes, true)).await;
    assert!(matches!(answer, Committed::Committed(_)), "{answer:?}");
}

pub(super) async fn row(store: &FjallStore, key: &RowKey) -> Option<Row> {
    let key = crate::keys::key_bytes(key);
    let value = store.get(vec![key.clone()]).await.unwrap().pop().flatten()?;
    Some(codec::decode_row(&key, &value).unwrap())
}

pub(super) async fn instant(store: &FjallStore, number: u32) -> Option<i64> {
    match row(store, &RowKey::DeadLetter(id(number))).await? {
        Row::DeadLetter(row) => Some(row.at.0),
        other => panic!("{other:?}"),
    }
}

/// A store with an assignment and `count` committed letters, closed again.
pub(super) async fn filled(folder: &Path, count: u32) {
    let store = started(folder);
    let epoch = open(&store, 0).await;
    let assignment = Write::Put {
        row: Row::Assignment(AssignmentRow {
            scope: Scope::Shard(ShardId(0)),
            node: Name::new("a").unwrap(),
            version: 1,
        }),
        expect: Expect::Any,
    };
    must_commit(&store, epoch, 1, &[assignment]).await;
    for number in 0..count {
        must_commit(
            &store,
            epoch,
            u64::from(number) + 2,
            &[letter(number, i64::from(number))],
        )
        .await;
    }
}
