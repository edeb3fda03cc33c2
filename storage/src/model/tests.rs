//! The model's own powers: planned faults, crashes that keep a prefix, a full disk.

use super::*;
use crate::batch::{Batch, RawExpect, RawWrite};
use crate::conformance::tests::Ticking;
use fencepost_core::ids::BatchNo;
use fencepost_core::name::Name;
use std::collections::VecDeque;

/// Hands out the next planned fault to each commit.
struct Planned(VecDeque<Option<Fault>>);

impl FaultPlan for Planned {
    fn on_commit(&mut self, _request: &Commit) -> CallFate {
        CallFate {
            fault: self.0.pop_front().flatten(),
            ..CallFate::default()
        }
    }

    fn on_open(&mut self, _request: &Open) -> CallFate {
        CallFate::default()
    }

    fn on_read(&mut self) -> CallFate {
        CallFate::default()
    }
}

fn no_sleep() -> Sleep {
    Arc::new(|_| futures_util::future::ready(()).boxed())
}

fn request(number: u64, value: u8) -> Commit {
    let writes = vec![RawWrite::Put {
        key: Bytes::from([0x30, 1].as_slice()),
        value: Bytes::from([value].as_slice()),
        expect: RawExpect::Any,
    }];
    let (digest, bytes) = crate::codec::digest_of(&writes);
    Commit {
        scope: Scope::Coordinator,
        holder: Holder(1),
        epoch: Epoch(1),
        number: BatchNo(number),
        batch: Arc::new(Batch {
            writes,
            digest,
            bytes,
            creates: true,
        }),
    }
}

async fn opened(faults: &[Option<Fault>]) -> ModelStore {
    let store = ModelStore::new(Arc::new(Ticking::default()), no_sleep());
    let open = Open {
        scope: Scope::Coordinator,
        holder: Holder(1),
        expected: Epoch(0),
        node: Name::new("a").unwrap(),
    };
    store.open(open).await.unwrap();
    store.set_plan(Box::new(Planned(faults.iter().copied().collect())));
    store
}

async fn value(store: &ModelStore) -> Option<u8> {
    let values = store.get(vec![vec![0x30, 1]]).await.unwrap();
    values[0].as_ref().map(|value| value[0])
}

#[tokio::test]
async fn a_lost_request_was_not_applied_and_a_lost_answer_was() {
    let store = opened(&[Some(Fault::RequestLost), None, Some(Fault::AnswerLost), None]).await;
    assert!(matches!(store.commit(request(1, 1)).await, Committed::Unknown(_)));
    assert_eq!(value(&store).await, None);
    assert!(matches!(store.commit(request(1, 1)).await, Committed::Committed(_)));
    assert!(matches!(store.commit(request(2, 2)).await, Committed::Unknown(_)));
    assert_eq!(value(&store).await, Some(2));
    assert!(matches!(store.commit(request(2, 2)).await, Committed::Already(_)));
}

#[tokio::test]
async fn an_away_store_is_unavailable_and_comes_back() {
    let store = opened(&[Some(Fault::Unavailable)]).await;
    assert!(matches!(store.commit(request(1, 1)).await, Committed::Unavailable(_)));
    store.set_away(true);
    assert!(matches!(store.commit(request(1, 1)).await, Committed::Unavailable(_)));
    assert!(matches!(
        store.epoch(Scope::Coordinator).await,
        Err(StoreError::Unavailable(_))
    ));
    store.set_away(false);
    assert!(matches!(store.commit(request(1, 1)).await, Committed::Committed(_)));
}

#[tokio::test]
async fn a_failed_sync_breaks_the_store_until_it_crashes() {
    let store = opened(&[Some(Fault::SyncError)]).await;
    assert!(matches!(store.commit(request(1, 1)).await, Committed::Unknown(_)));
    assert!(matches!(store.commit(request(1, 1)).await, Committed::Unknown(_)));
    assert!(matches!(
        store.now(Scope::Coordinator).await,
        Err(StoreError::Broken(_))
    ));
    store.crash(Crash::Power { kept: 0 });
    assert_eq!(value(&store).await, None);
    assert!(matches!(store.commit(request(1, 1)).await, Committed::Committed(_)));
}

#[tokio::test]
async fn a_full_disk_refuses_creation_alone_and_answers_what_was_committed() {
    let store = opened(&[]).await;
    store.commit(request(1, 1)).await;
    store.set_full(true);
    assert!(store.is_full());
    assert!(matches!(store.commit(request(1, 1)).await, Committed::Already(_)));
    assert_eq!(store.commit(request(2, 2)).await, Committed::Full);
    let mut frees = request(2, 2);
    Arc::make_mut(&mut frees.batch).creates = false;
    assert!(matches!(store.commit(frees).await, Committed::Committed(_)));
}

#[tokio::test]
async fn power_loss_keeps_a_prefix_and_a_killed_process_keeps_all() {
    for (how, expected) in [
        (Crash::Process, Some(3)),
        (Crash::Power { kept: 0 }, None),
        (Crash::Power { kept: 2 }, Some(2)),
        (Crash::Power { kept: 9 }, Some(3)),
    ] {
        let never: Sleep = Arc::new(|_| futures_util::future::pending().boxed());
        let store = ModelStore::new(Arc::new(Ticking::default()), never);
        let open = Open {
            scope: Scope::Coordinator,
            holder: Holder(1),
            expected: Epoch(0),
            node: Name::new("a").unwrap(),
        };
        store.open(open).await.unwrap();
        store.set_plan(Box::new(Slow));
        for number in 1..=3 {
            let commit = store.commit(request(number, u8::try_from(number).unwrap()));
            assert!(commit.now_or_never().is_none());
        }
        assert_eq!((store.unsynced(), value(&store).await), (3, None));
        store.crash(how);
        assert_eq!((store.unsynced(), value(&store).await), (0, expected), "{how:?}");
    }
}

/// Syncs take forever.
struct Slow;

impl FaultPlan for Slow {
    fn on_commit(&mut self, _request: &Commit) -> CallFate {
        CallFate {
            sync_delay: Span(1),
            ..CallFate::default()
        }
    }

    fn on_open(&mut self, _request: &Open) -> CallFate {
        CallFate::default()
    }

    fn on_read(&mut self) -> CallFate {
        CallFate::default()
    }
}

#[test]
fn time_after_a_crash_goes_on_above_what_was_committed() {
    let store = ModelStore::new(Arc::new(Ticking::default()), no_sleep());
    let before = store.stated().time;
    store.crash(Crash::Process);
    assert!(store.stated().time >= before);
    assert_eq!(lock(&store.shared.disk).floor(), StoreTime(0));
}
