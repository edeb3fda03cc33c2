//! Backup, and a restore that cannot repeat what the lost tail may have done (F11).

use super::super::restore::{LEFT_OUT, LeftOut};
use super::*;
use crate::keys::{KeyRange, Kind, parse_key};
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
        job(6, once, JobState::Waiting, wait(NOW - 2)),
    ];
    let shard = shard();
    let mut writes: Vec<Write> = Vec::new();
    for job in jobs {
        match &job.place {
            // Due, it lies among the ready ones; its own row still says where it waited.
            Place::Wait { at, .. } if *at == StoreTime(NOW - 2) => {
                writes.push(put(Row::Ready(ReadyRow::of(shard, &job, *at))));
            }
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
        level: fencepost_core::level::FIRST,
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
    watched(from, to, generation, &mut |_| {})
}

fn watched(
    from: &Path,
    to: &Path,
    generation: u32,
    on_step: &mut dyn FnMut(RestoreStep),
) -> Result<Restored, BackupError> {
    let mut options = options();
    options.fresh.store = 77;
    restore(from, to, Generation(generation), options, on_step, &|| false)
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
            matches!(backup(&folder, &copy, &|| false), Err(BackupError::Start(_))),
            "the store is open"
        );
    }
    backup(&folder, &copy, &|| false).unwrap();
    let done = restored(&copy, &back, 0).unwrap();
    assert_eq!((done.generation, done.parked, done.unreadable), (Generation(5), 3, 0));
    let store = started(&back);
    assert_eq!(store.identity().store, 77);
    let cell = row(&store, &RowKey::Cell).await;
    assert!(
        matches!(&cell, Some(Row::Cell(row)) if row.generation == Generation(5)),
        "the generation did not rise: {cell:?}"
    );
    for (number, expected) in [
        (1, (JobState::Uncertain, 2)),
        (2, (JobState::Uncertain, 2)),
        (3, (JobState::Waiting, 1)),
        (4, (JobState::Succeeded, 1)),
        (5, (JobState::Ready, 1)),
        (6, (JobState::Uncertain, 2)),
    ] {
        assert_eq!(state(&store, number).await, expected, "job {number}");
    }
    for number in [1, 2, 6] {
        let parked = row(&store, &RowKey::Parked(id(number))).await;
        assert!(matches!(parked, Some(Row::Parked(ParkedRow { .. }))));
    }
    assert_eq!(
        row(&store, &RowKey::Wait(shard(), StoreTime(NOW - 1), id(2))).await,
        None
    );
    let ready = store.scan(KeyRange::kind(Kind::Ready).scan(10)).await.unwrap();
    let ready: Vec<_> = ready.iter().map(|(key, _)| parse_key(key).unwrap()).collect();
    assert!(
        matches!(&ready[..], [RowKey::Ready(row)] if row.id == id(5)),
        "what is parked is ready as well: {ready:?}"
    );
    assert_eq!(store.epoch(SCOPE).await, Ok(Epoch(2)), "an epoch did not rise");
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
    // Above the last one there is none: its tokens would come again.
    let (last, beyond) = (temp.path().join("last"), temp.path().join("beyond"));
    restored(&folder, &last, u32::MAX).unwrap();
    let refused = restored(&last, &beyond, 0);
    assert!(matches!(refused, Err(BackupError::Unreadable(_))), "{refused:?}");
    let nothing = backup(&temp.path().join("none"), &temp.path().join("x"), &|| false);
    assert!(matches!(nothing, Err(BackupError::NoStore(_))));
}

/// The cursor of a schedule whose jobs run at most once, its definition, and a backlog of it.
fn schedule_rows() -> Vec<Write> {
    let mut rows = crate::codec::samples::rows();
    rows.retain(|row| matches!(row, Row::Definition(_) | Row::Cursor(_) | Row::Backlog(_)));
    for row in &mut rows {
        match row {
            Row::Cursor(row) => (row.paused_at, row.finished_at, row.kept) = (None, None, None),
            Row::Backlog(row) => (row.open, row.backfill) = (None, None),
            _ => {}
        }
    }
    rows.into_iter().map(put).collect()
}

fn rows_of(store: &FjallStore, kind: crate::keys::Kind) -> Vec<Row> {
    let scan = crate::keys::KeyRange::kind(kind).scan(100);
    let rows = store.scan(scan).now_or_never().unwrap().unwrap();
    rows.iter()
        .map(|(key, value)| codec::decode_row(key, value).unwrap())
        .collect()
}

/// A closed store with jobs and a schedule.
async fn to_restore(folder: &Path) {
    let store = started(folder);
    let epoch = open(&store, 0).await;
    must_commit(&store, epoch, 1, &rows()).await;
    must_commit(&store, epoch, 2, &schedule_rows()).await;
}

#[tokio::test]
async fn f11_a_restore_holds_schedules_whose_jobs_run_at_most_once() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, back) = (temp.path().join("s"), temp.path().join("back"));
    to_restore(&folder).await;
    let done = restored(&folder, &back, 0).unwrap();
    assert_eq!(done.held, [fencepost_core::name::Name::new("nightly").unwrap()]);
    let store = started(&back);
    let cursors = rows_of(&store, crate::keys::Kind::Cursor);
    assert!(
        matches!(cursors.as_slice(), [Row::Cursor(row)] if row.paused_at.is_some()),
        "{cursors:?}"
    );
    assert!(rows_of(&store, crate::keys::Kind::Backlog).is_empty());
    let edits = rows_of(&store, crate::keys::Kind::Edit);
    let restored = fencepost_core::schedule::EditKind::Restored;
    assert!(
        matches!(edits.as_slice(), [Row::Edit(row)] if row.kind == restored),
        "{edits:?}"
    );
}

#[tokio::test]
async fn f11_a_restore_that_ends_between_any_two_steps_leaves_nothing_that_opens() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, back) = (temp.path().join("s"), temp.path().join("back"));
    to_restore(&folder).await;
    for last in super::super::restore::STEPS {
        let stopped = std::panic::catch_unwind(|| {
            watched(&folder, &back, 0, &mut |step| {
                assert!(step != last, "the test stops here");
            })
        });
        assert!(stopped.is_err(), "before {last:?}");
        let refused = FjallStore::start(&back, options()).err().unwrap();
        assert_eq!(refused.code(), "store_unfinished", "before {last:?}: {refused}");
        assert!(refused.to_string().contains("back") && refused.next_step().contains("again"));
        let copied = backup(&back, &temp.path().join("copy"), &|| false);
        assert!(
            matches!(copied, Err(BackupError::Start(StartError::Unfinished { .. }))),
            "{copied:?}"
        );
    }
    let done = restored(&folder, &back, 0).unwrap();
    assert_eq!(
        (done.generation, done.parked),
        (Generation(5), 3),
        "as if it were the first"
    );
    assert_eq!(started(&back).identity().store, 77);
    assert!(matches!(restored(&folder, &back, 0), Err(BackupError::Occupied(_))));
}

/// Each thing that a restore must do is left out once; one of the tests above must fail, and say why.
#[test]
fn f11_a_restore_that_leaves_something_undone_is_caught() {
    for (left_out, test, says) in [
        (
            LeftOut::Parking,
            f11_a_restore_raises_generation_and_epochs_and_parks_at_most_once_jobs as fn(),
            "(Generation(5), 0, 0)",
        ),
        (
            LeftOut::Generation,
            f11_a_restore_raises_generation_and_epochs_and_parks_at_most_once_jobs,
            "the generation did not rise",
        ),
        (
            LeftOut::Epochs,
            f11_a_restore_raises_generation_and_epochs_and_parks_at_most_once_jobs,
            "an epoch did not rise",
        ),
        (
            LeftOut::Holding,
            f11_a_restore_holds_schedules_whose_jobs_run_at_most_once,
            "nightly",
        ),
        (
            LeftOut::Mark,
            f11_a_restore_that_ends_between_any_two_steps_leaves_nothing_that_opens,
            "Option::unwrap()",
        ),
    ] {
        LEFT_OUT.set(Some(left_out));
        let caught = std::panic::catch_unwind(test);
        LEFT_OUT.set(None);
        let why = caught.expect_err("nothing noticed");
        let why = why.downcast_ref::<String>().cloned().unwrap_or_else(|| {
            let text = why.downcast_ref::<&str>();
            text.map_or_else(String::new, |text| (*text).to_owned())
        });
        assert!(why.contains(says), "{left_out:?}: {why}");
    }
}

#[tokio::test]
async fn half_a_backup_is_no_store_and_is_begun_anew() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, copy) = (temp.path().join("s"), temp.path().join("copy"));
    to_restore(&folder).await;
    let begun = super::super::unfinished::Unfinished::begin(&copy, super::super::unfinished::Work::Backup);
    std::fs::write(copy.join("IDENTITY"), "half").unwrap();
    let held = backup(&folder, &copy, &|| false);
    assert!(
        matches!(held, Err(BackupError::Start(StartError::Locked { .. }))),
        "{held:?}"
    );
    drop(begun);
    for refused in [
        FjallStore::start(&copy, options()).err().unwrap(),
        match restored(&copy, &temp.path().join("back"), 0) {
            Err(BackupError::Start(refused)) => refused,
            other => panic!("{other:?}"),
        },
    ] {
        assert_eq!(refused.code(), "store_unfinished", "{refused}");
    }
    let other = restored(&folder, &copy, 0);
    assert!(
        matches!(other, Err(BackupError::Occupied(_))),
        "of another work: {other:?}"
    );
    backup(&folder, &copy, &|| false).unwrap();
    assert!(matches!(
        backup(&folder, &copy, &|| false),
        Err(BackupError::Occupied(_))
    ));
}

/// F11: a backup that is started as it is has the generation, the epochs and the cursors of the store that went on:
/// what it fires again has the same job ids and tokens, and nothing is parked or held.
#[tokio::test]
async fn f11_a_backup_starts_as_no_store_and_is_restored_as_often_as_you_like() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, copy) = (temp.path().join("s"), temp.path().join("copy"));
    to_restore(&folder).await;
    backup(&folder, &copy, &|| false).unwrap();
    for back in ["one", "two"] {
        let refused = FjallStore::start(&copy, options()).err().unwrap();
        assert_eq!(refused.code(), "store_is_backup", "{refused}");
        let back = temp.path().join(back);
        restored(&copy, &back, 0).unwrap();
        drop(started(&back));
    }
    // A copy of a backup is one.
    let other = temp.path().join("other");
    backup(&copy, &other, &|| false).unwrap();
    let refused = FjallStore::start(&other, options()).err().unwrap();
    assert_eq!(refused.code(), "store_is_backup", "{refused}");
}

#[tokio::test]
async fn a_copy_goes_into_an_empty_folder_and_into_no_other() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, there) = (temp.path().join("s"), temp.path().join("there"));
    to_restore(&folder).await;
    std::fs::create_dir(&there).unwrap();
    std::fs::write(there.join("mine"), "kept").unwrap();
    assert!(matches!(restored(&folder, &there, 0), Err(BackupError::Occupied(_))));
    assert!(matches!(
        backup(&folder, &there, &|| false),
        Err(BackupError::Occupied(_))
    ));
    assert!(matches!(
        backup(&folder, &there.join("mine"), &|| false),
        Err(BackupError::Occupied(_))
    ));
    std::fs::remove_file(there.join("mine")).unwrap();
    restored(&folder, &there, 0).unwrap();
    drop(started(&there));
}

#[tokio::test]
async fn a_copy_that_is_stopped_before_any_file_or_page_is_no_store_until_it_is_made_anew() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("s");
    to_restore(&folder).await;
    for restores in [false, true] {
        let made = temp.path().join(format!("made-{restores}"));
        let run = |is_stopped: IsStopped<'_>| match restores {
            false => backup(&folder, &made, is_stopped),
            true => restore(&folder, &made, Generation(0), options(), &mut |_| {}, is_stopped).map(|_| ()),
        };
        for most in 0.. {
            let asked = std::cell::Cell::new(0);
            let done = run(&|| asked.replace(asked.get() + 1) >= most);
            let Err(stopped) = done else {
                assert!(most > 8, "asked {most} times");
                break;
            };
            assert!(matches!(stopped, BackupError::Stopped), "{stopped}");
            let refused = FjallStore::start(&made, options()).err().unwrap();
            assert_eq!(refused.code(), "store_unfinished", "{refused}");
        }
        match restores {
            false => assert_eq!(
                FjallStore::start(&made, options()).err().unwrap().code(),
                "store_is_backup"
            ),
            true => drop(started(&made)),
        }
    }
}

/// A copy into its own source would change what it copies, and clearing half of one would delete a source within.
#[tokio::test]
async fn no_copy_is_made_into_its_source_or_around_it() {
    let temp = tempfile::tempdir().unwrap();
    let path = |name: &str| temp.path().join(name);
    filled(&path("s/inner"), 3).await;
    // What an earlier copy left half-done is cleared.
    std::fs::write(path("s/COPYING"), "").unwrap();
    std::fs::write(path("s/RESTORING"), "").unwrap();
    std::os::unix::fs::symlink(path("s/inner"), path("link")).unwrap();
    let source = path("s/inner");
    for to in [
        "s",
        "s/inner",
        "s/inner/new",
        "s/inner/db/new",
        "link",
        "link/new",
        "other/../s/inner/new",
    ] {
        let (copied, made) = (backup(&source, &path(to), &|| false), restored(&source, &path(to), 0));
        assert!(matches!(copied, Err(BackupError::Nested { .. })), "{to}: {copied:?}");
        assert!(matches!(made, Err(BackupError::Nested { .. })), "{to}: {made:?}");
    }
    assert!(!source.join("new").exists() && !source.join("db/new").exists() && !path("other").exists());
    backup(&path("link"), &path("s/inner2"), &|| false).unwrap();
}
