//! What a running store keeps, answers and reports.

use super::*;
use std::sync::atomic::{AtomicU64, Ordering};

#[tokio::test]
async fn a_restart_keeps_rows_epochs_and_time() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("store");
    filled(&folder, 20).await;
    let store = started(&folder);
    assert_eq!(store.epoch(SCOPE).await, Ok(Epoch(1)));
    for number in 0..20 {
        assert_eq!(instant(&store, number).await, Some(i64::from(number)));
    }
    let epoch = open(&store, 1).await;
    assert_eq!(epoch, Epoch(2));
    must_commit(&store, epoch, 1, &[letter(99, 99)]).await;
    assert_eq!(store.identity().cell, 2);
    assert_eq!(store.describe().high_water, 24);
    assert_eq!(store.describe().chain.len(), 64);
}

#[tokio::test]
async fn time_after_a_restart_lies_above_what_was_committed() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("store");
    filled(&folder, 50).await;
    let last = {
        let store = started(&folder);
        let epoch = open(&store, 1).await;
        let Committed::Committed(stated) = store.commit(commit(epoch, 1, &[], true)).await else {
            panic!("an empty batch was refused");
        };
        stated.time
    };
    let store = started(&folder);
    assert!(store.now(SCOPE).await.unwrap().time >= last);
}

#[tokio::test]
async fn the_folder_and_its_files_belong_to_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("store");
    filled(&folder, 1).await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for name in ["IDENTITY", "HIGHWATER", "LOCK"] {
        assert_eq!(mode(&folder.join(name)), 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_full_disk_refuses_creation_and_still_frees_work() {
    struct Told(Arc<AtomicU64>);
    impl FreeSpace for Told {
        fn free_bytes(&mut self) -> std::io::Result<u64> {
            Ok(self.0.load(Ordering::Relaxed))
        }
    }
    let temp = tempfile::tempdir().unwrap();
    let free = Arc::new(AtomicU64::new(u64::MAX));
    let mut options = options();
    options.free_space = Some(Box::new(Told(free.clone())));
    let store = FjallStore::start(&temp.path().join("store"), options).unwrap();
    let epoch = open(&store, 0).await;
    must_commit(&store, epoch, 1, &[letter(1, 1)]).await;
    free.store(1, Ordering::Relaxed);
    assert!(store.is_full());
    assert_eq!(
        store.commit(commit(epoch, 2, &[letter(2, 2)], true)).await,
        Committed::Full
    );
    let again = store.commit(commit(epoch, 1, &[letter(1, 1)], true)).await;
    assert!(matches!(again, Committed::Already(_)));
    let freed = store
        .commit(commit(epoch, 2, &[Write::Delete(RowKey::DeadLetter(id(1)))], false))
        .await;
    assert!(matches!(freed, Committed::Committed(_)));
    free.store(u64::MAX, Ordering::Relaxed);
    assert!(!store.is_full());
    must_commit(&store, epoch, 3, &[letter(2, 2)]).await;
}

#[tokio::test]
async fn a_broken_store_acknowledges_nothing_and_reports_once() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("store");
    filled(&folder, 3).await;
    let reports = Arc::new(AtomicU64::new(0));
    let seen = reports.clone();
    let mut options = options().on_broken(move |_| {
        seen.fetch_add(1, Ordering::Relaxed);
    });
    options.planted.fail_mark_at = Some(8);
    let store = FjallStore::start(&folder, options).unwrap();
    let epoch = open(&store, 1).await;
    must_commit(&store, epoch, 1, &[letter(7, 7)]).await;
    let answer = store.commit(commit(epoch, 2, &[letter(8, 8)], true)).await;
    assert!(matches!(answer, Committed::Unknown(_)), "{answer:?}");
    let later = store.commit(commit(epoch, 3, &[letter(9, 9)], true)).await;
    assert!(matches!(later, Committed::Unavailable(_)), "{later:?}");
    assert!(matches!(store.now(SCOPE).await, Err(StoreError::Broken(_))));
    assert!(matches!(store.epoch(SCOPE).await, Err(StoreError::Broken(_))));
    drop(store);
    assert_eq!(reports.load(Ordering::Relaxed), 1);
    // The commit whose mark failed is unknown: it may be there, what was acknowledged must be.
    let store = started(&folder);
    assert_eq!(instant(&store, 7).await, Some(7));
    assert_eq!(instant(&store, 9).await, None);
}

#[tokio::test]
async fn an_idle_store_reports_by_itself_that_its_folder_is_gone() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("store");
    let (tell, told) = std::sync::mpsc::channel();
    let options = options().on_broken(move |why| tell.send(why.to_owned()).unwrap());
    let store = FjallStore::start(&folder, options).unwrap();
    std::fs::rename(&folder, temp.path().join("elsewhere")).unwrap();
    let why = told.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
    assert!(why.starts_with("LOCK in the folder"), "{why}");
    assert!(matches!(store.now(SCOPE).await, Err(StoreError::Broken(_))));
    assert!(matches!(store.get(vec![vec![1]]).await, Err(StoreError::Broken(_))));
}

#[tokio::test]
async fn what_was_durable_before_is_not_said_again_of_a_folder_that_is_gone() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("store");
    filled(&folder, 1).await;
    let store = started(&folder);
    let epoch = open(&store, 1).await;
    let request = commit(epoch, 1, &[letter(1, 1)], true);
    assert!(matches!(store.commit(request.clone()).await, Committed::Committed(_)));
    assert!(matches!(store.commit(request.clone()).await, Committed::Already(_)));
    std::fs::rename(&folder, temp.path().join("elsewhere")).unwrap();
    let answer = store.commit(request).await;
    assert!(
        matches!(answer, Committed::Unknown(_) | Committed::Unavailable(_)),
        "{answer:?}"
    );
}

/// What became of the next commit after this was done to the folder of a running store: its answer, and the reports.
async fn commit_after(harm: impl FnOnce(&Path), size: usize) -> (Committed, Vec<String>) {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("store");
    filled(&folder, 1).await;
    let reports = Arc::new(Mutex::new(Vec::new()));
    let seen = reports.clone();
    let options = options().on_broken(move |why| locked(&seen).push(why.to_owned()));
    let store = FjallStore::start(&folder, options).unwrap();
    let epoch = open(&store, 1).await;
    must_commit(&store, epoch, 1, &[letter(1, 1)]).await;
    harm(&folder);
    let letters = (2..).take(size).map(|number| letter(number, 2));
    let answer = store.commit(commit(epoch, 2, &Vec::from_iter(letters), true)).await;
    let reports = locked(&reports).clone();
    (answer, reports)
}

#[tokio::test]
async fn nothing_is_acknowledged_into_a_folder_that_no_start_would_find() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 6] = [
        ("LOCK in the folder", |folder| std::fs::remove_dir_all(folder).unwrap()),
        ("LOCK in the folder", |folder| {
            std::fs::remove_file(folder.join("LOCK")).unwrap()
        }),
        ("HIGHWATER in the folder", |folder| {
            std::fs::copy(folder.join("HIGHWATER"), folder.join("new")).unwrap();
            std::fs::rename(folder.join("new"), folder.join("HIGHWATER")).unwrap();
        }),
        ("IDENTITY in the folder", |folder| {
            std::fs::remove_file(folder.join("IDENTITY")).unwrap();
        }),
        ("db in the folder", |folder| {
            std::fs::rename(folder.join("db"), folder.join("db.old")).unwrap();
        }),
        ("LOCK in the folder", |folder| {
            std::fs::rename(folder, folder.with_extension("moved")).unwrap();
            drop(started(folder));
        }),
    ];
    for (told, harm) in harms {
        // A small group is durable by its mark, a large one by the journal.
        for size in [1, 2_000] {
            let (answer, reports) = commit_after(harm, size).await;
            assert!(matches!(answer, Committed::Unknown(_)), "{told}: {answer:?}");
            assert!(
                matches!(reports.as_slice(), [why] if why.starts_with(told)),
                "{told}: {reports:?}"
            );
        }
    }
    let (answer, reports) = commit_after(|_| {}, 1).await;
    assert!(matches!(answer, Committed::Committed(_)), "{answer:?}");
    assert!(reports.is_empty(), "{reports:?}");
}

#[tokio::test]
async fn commits_of_many_scopes_share_groups() {
    let temp = tempfile::tempdir().unwrap();
    let store = started(&temp.path().join("store"));
    let epoch = open(&store, 0).await;
    let scopes: Vec<Scope> = (0..16).map(|shard| Scope::Shard(ShardId(shard))).collect();
    let assign = |scope: &Scope| Write::Put {
        row: Row::Assignment(AssignmentRow {
            scope: *scope,
            node: Name::new("a").unwrap(),
            version: 1,
        }),
        expect: Expect::Any,
    };
    must_commit(&store, epoch, 1, &scopes.iter().map(assign).collect::<Vec<_>>()).await;
    for scope in &scopes {
        let request = Open {
            scope: *scope,
            holder: Holder(7),
            expected: Epoch(0),
            node: Name::new("a").unwrap(),
        };
        assert_eq!(store.open(request).await.unwrap().epoch, Epoch(1));
    }
    let before = store.describe().high_water;
    for number in 1..=4 {
        // One of each scope at once: what shares a group is of several.
        let commits = scopes.iter().map(|scope| {
            let commit = commit(Epoch(1), number, &[letter(1, 1)], true);
            store.commit(Commit {
                scope: *scope,
                ..commit
            })
        });
        for answer in futures_util::future::join_all(commits.collect::<Vec<_>>()).await {
            assert!(matches!(answer, Committed::Committed(_)), "{answer:?}");
        }
    }
    let groups = store.describe().high_water - before;
    assert!(groups < 64, "64 commits of 16 scopes took {groups} syncs");
}
