//! Backup, and a restore that cannot repeat what the lost tail may have done (F11).

use super::*;
use fencepost_core::ids::Generation;
use fencepost_core::job::{Delivery, Job, JobState, Place};
use fencepost_core::row::{CellRow, ParkedRow, ReadyRow, WaitRow};
use fencepost_core::time::Span;

const NOW: i64 = 1_795_000_000_000_000;
const SHARDS: u16 = 16;

fn job(number: u32, delivery: Delivery, state: JobState, place: Place) -> Job {
    let mut job = crate::codec::samples::small_job(0);
    job.id = id(number);
    let spec = Arc::make_mut(&mut job.spec);
    spec.delivery = delivery;
    job.state = state;
    job.place = place;
    job
}

fn put(row: Row) -> Write {
    Write::Put {
        row,
        expect: Expect::Any,
    }
}

/// Jobs by number: 1 ready, 2 waits and is due, 3 waits for later, 4 is done, 5 is ready and may run
/// twice; all but 5 at most once.
fn rows() -> Vec<Write> {
    let once = Delivery::AtMostOnce;
    let wait = |at: i64| Place::Wait {
        at: StoreTime(at),
        length: Span::ZERO,
    };
    let ready = Place::Ready { order: StoreTime(5) };
    let jobs = [
        job(1, once, JobState::Ready, ready.clone()),
        job(2, once, JobState::Waiting, wait(NOW - 1)),
        job(3, once, JobState::Waiting, wait(NOW + 3_600_000_000)),
        job(4, once, JobState::Succeeded, Place::None),
        job(5, Delivery::AtLeastOnce, JobState::Ready, ready),
    ];
    let shard = shard();
    let mut writes: Vec<Write> = Vec::new();
    for job in jobs {
        match &job.place {
            Place::Wait { at, .. } => writes.push(put(Row::Wait(WaitRow {
                shard,
                at: *at,
                id: job.id,
                length: None,
            }))),
            Place::Ready { order } => writes.push(put(Row::Ready(ReadyRow::of(shard, &job, *order)))),
            _ => {}
        }
        writes.push(put(Row::Job(Box::new(job))));
    }
    writes.push(put(Row::Cell(CellRow {
        cell: 2,
        generation: Generation(4),
        shards: SHARDS,
        created_at: StoreTime(1),
    })));
    writes
}

fn shard() -> ShardId {
    fencepost_core::ids::ShardMap::new(SHARDS)
        .unwrap()
        .shard_of(id(1).slot())
}

async fn state(store: &FjallStore, number: u32) -> (JobState, u64) {
    match row(store, &RowKey::Job(id(number))).await {
        Some(Row::Job(job)) => (job.state, job.version),
        other => panic!("{other:?}"),
    }
}

fn restored(from: &Path, to: &Path, generation: u32) -> Result<Restored, BackupError> {
    let mut options = options();
    options.fresh.store = 77;
    let (from, to) = (from.to_path_buf(), to.to_path_buf());
    restore(&from, &to, Generation(generation), options)
}

#[tokio::test]
async fn f11_a_restore_raises_generation_and_epochs_and_parks_at_most_once_jobs() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, copy, back) = (
        temp.path().join("s"),
        temp.path().join("copy"),
        temp.path().join("back"),
    );
    {
        let store = started(&folder);
        let epoch = open(&store, 0).await;
        must_commit(&store, epoch, 1, &rows()).await;
        assert!(
            matches!(backup(&folder, &copy), Err(BackupError::Start(_))),
            "the store is open"
        );
    }
    backup(&folder, &copy).unwrap();
    let done = restored(&copy, &back, 0).unwrap();
    assert_eq!((done.generation, done.parked, done.unreadable), (Generation(5), 2, 0));
    let store = started(&back);
    assert_eq!(store.identity().store, 77);
    for (number, expected) in [
        (1, (JobState::Uncertain, 2)),
        (2, (JobState::Uncertain, 2)),
        (3, (JobState::Waiting, 1)),
        (4, (JobState::Succeeded, 1)),
        (5, (JobState::Ready, 1)),
    ] {
        assert_eq!(state(&store, number).await, expected, "job {number}");
    }
    for number in [1, 2] {
        let parked = row(&store, &RowKey::Parked(id(number))).await;
        assert!(matches!(parked, Some(Row::Parked(ParkedRow { .. }))));
    }
    assert_eq!(
        row(&store, &RowKey::Wait(shard(), StoreTime(NOW - 1), id(2))).await,
        None
    );
    assert_eq!(store.epoch(SCOPE).await, Ok(Epoch(2)));
    let stale = store.commit(commit(Epoch(1), 2, &[letter(1, 1)], true)).await;
    assert_eq!(stale, Committed::Stale);
    open(&store, 2).await;
}

#[tokio::test]
async fn a_restore_rises_above_the_generation_it_is_told() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, back) = (temp.path().join("s"), temp.path().join("back"));
    {
        let store = started(&folder);
        let epoch = open(&store, 0).await;
        must_commit(&store, epoch, 1, &rows()).await;
    }
    assert_eq!(restored(&folder, &back, 40).unwrap().generation, Generation(40));
    let again = restored(&folder, &back, 40);
    assert!(matches!(again, Err(BackupError::Occupied(_))), "{again:?}");
    let nothing = backup(&temp.path().join("none"), &temp.path().join("x"));
    assert!(matches!(nothing, Err(BackupError::NoStore(_))));
}
