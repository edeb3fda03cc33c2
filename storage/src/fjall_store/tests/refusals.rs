//! Folders that must not be opened, and what is said about them.

use super::super::folder::Folder;
use super::super::identity::Identity;
use super::*;
use fencepost_core::ids::Generation;
use fencepost_core::level::Level;
use fencepost_core::limits::MARK_SLOTS;
use fencepost_core::row::CellRow;
use std::fs;

fn refused(folder: &Path) -> StartError {
    match FjallStore::start(folder, options()) {
        Ok(_) => panic!("the store started"),
        Err(error) => error,
    }
}

/// The text of a refusal for damage.
fn damage(folder: &Path) -> String {
    let error = refused(folder);
    assert_eq!(error.code(), "store_damaged", "{error}");
    error.to_string()
}

fn listing(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn a_second_process_is_refused_with_the_first_ones_pid() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("store");
    let store = started(&folder);
    let error = refused(&folder);
    assert_eq!(error.code(), "store_locked");
    let text = error.to_string();
    assert!(text.contains(&std::process::id().to_string()), "{text}");
    assert!(text.contains(&folder.display().to_string()), "{text}");
    drop(store);
    started(&folder);
}

#[tokio::test]
async fn a_process_whose_lock_was_removed_is_said_to_hold_the_database() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("store");
    let store = started(&folder);
    fs::remove_file(folder.join("LOCK")).unwrap();
    let error = refused(&folder);
    assert_eq!(error.code(), "store_locked", "{error}");
    assert!(matches!(error, StartError::DatabaseLocked { .. }), "{error}");
    assert!(error.next_step().contains("stop it"), "{}", error.next_step());
    drop(store);
    started(&folder);
}

#[tokio::test]
async fn a_newer_format_is_refused_before_anything_is_written() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("store");
    filled(&folder, 3).await;
    let path = folder.join("IDENTITY");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("fencepost-store 2", "fencepost-store 3")).unwrap();
    fs::remove_file(folder.join("LOCK")).unwrap();
    let before = listing(&folder);
    let error = refused(&folder);
    assert_eq!(error.code(), "store_newer", "{error}");
    assert_eq!(listing(&folder), before);
}

#[tokio::test]
async fn the_format_of_a_folder_is_raised_before_the_first_row_of_a_higher_level() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("store");
    filled(&path, 1).await;
    // As the version before made it.
    let folder = Folder::new(&path);
    let made = Identity::read(&folder).unwrap().unwrap();
    Identity { format: 1, ..made }.write(&folder).unwrap();
    let format = || Identity::read(&folder).unwrap().unwrap().format;
    let cell = |level| Write::Put {
        row: Row::Cell(CellRow {
            cell: 2,
            generation: Generation(1),
            shards: 16,
            created_at: StoreTime(1),
            level,
        }),
        expect: Expect::Any,
    };
    let store = started(&path);
    let epoch = open(&store, 1).await;
    must_commit(&store, epoch, 1, &[cell(Level(1))]).await;
    assert_eq!(
        (store.level(), format()),
        (Level(1), 1),
        "a cell of the first level changes nothing"
    );
    must_commit(&store, epoch, 2, &[cell(Level(2))]).await;
    assert_eq!((store.level(), format()), (Level(2), 2));
    must_commit(&store, epoch, 3, &[letter(9, 9)]).await;
    drop(store);
    let store = started(&path);
    assert_eq!(store.level(), Level(2));
    assert_eq!(store.identity(), Identity { format: 2, ..made });
}

#[tokio::test]
async fn missing_files_are_named() {
    let cases = [
        ("IDENTITY", "IDENTITY"),
        ("HIGHWATER", "HIGHWATER"),
        ("db/version", "db/version"),
        ("db/keyspaces/0", "list of keyspaces"),
        ("db/keyspaces/1", "keyspace meta"),
        ("db/keyspaces/2", "keyspace schedules"),
        ("db/keyspaces/3", "keyspace jobs"),
        ("db/keyspaces/4", "keyspace places"),
        ("db/0.jnl", "journal"),
    ];
    for (path, named) in cases {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("store");
        filled(&folder, 5).await;
        let path = folder.join(path);
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap();
        } else {
            fs::remove_file(&path).unwrap();
        }
        for round in ["at first", "and again"] {
            let text = damage(&folder);
            assert!(text.contains(named), "{named} {round}: {text}");
        }
    }
}

/// Cuts the journal of a closed store.
fn cut_journal(folder: &Path, length: u64) {
    let journal = fs::OpenOptions::new().write(true).open(folder.join("db/0.jnl"));
    journal.unwrap().set_len(length).unwrap();
}

#[tokio::test]
async fn a_journal_cut_short_is_named_with_the_last_good_sequence() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("store");
    filled(&folder, 60).await;
    let ends = journal::batch_ends(&folder.join("db/0.jnl")).unwrap();
    // A byte more than the ring can make up for.
    cut_journal(&folder, ends[ends.len() - 1 - MARK_SLOTS as usize] - 1);
    let text = damage(&folder);
    assert!(
        text.contains("0.jnl") && text.contains("acknowledged up to sequence 46, found up to 45"),
        "{text}"
    );
    assert!(damage(&folder).contains("0.jnl"), "a second start must refuse as well");
}

#[tokio::test]
async fn groups_that_the_journal_lost_are_brought_back_from_the_ring() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("store");
    filled(&folder, 60).await;
    let ends = journal::batch_ends(&folder.join("db/0.jnl")).unwrap();
    let back = |groups: usize| ends[ends.len() - 1 - groups];
    // A byte, half a group, one, some, all that the ring holds: as a power loss may leave it.
    let half = back(1) + (back(0) - back(1)) / 2;
    for length in [back(0) - 1, half, back(1), back(7), back(MARK_SLOTS as usize)] {
        let copy = temp.path().join(format!("cut-{length}"));
        backup(&folder, &copy, &|| false).unwrap();
        std::fs::remove_file(copy.join("BACKUP")).unwrap();
        cut_journal(&copy, length);
        let store = started(&copy);
        assert_eq!(store.describe().high_water, 62);
        let epoch = open(&store, 1).await;
        must_commit(&store, epoch, 1, &[letter(99, 99)]).await;
        drop(store);
        let store = started(&copy);
        for number in (0..60).chain([99]) {
            assert_eq!(instant(&store, number).await, Some(i64::from(number)));
        }
    }
}

#[tokio::test]
async fn rows_beside_a_mark_that_the_journal_has_are_not_written_again() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("store");
    filled(&folder, 5).await;
    let journal = folder.join("db/0.jnl");
    let length = journal::batch_ends(&journal).unwrap().pop().unwrap();
    drop(started(&folder));
    assert_eq!(journal::batch_ends(&journal).unwrap().pop().unwrap(), length);
}

#[tokio::test]
async fn a_torn_write_that_nobody_was_told_of_is_cut_off() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("store");
    filled(&folder, 5).await;
    let path = folder.join("db/0.jnl");
    let whole = fs::read(&path).unwrap();
    let end = whole.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    // A batch with a wrong checksum, one that stops half-way, and plain rubbish.
    // The last batch: four chain rows, a scope row and a letter.
    let start = whole[..end]
        .windows(5)
        .rposition(|head| head == [1, 6, 0, 0, 0])
        .unwrap();
    let mut wrong = whole[start..end].to_vec();
    let middle = wrong.len() / 2;
    wrong[middle] ^= 0x40;
    for tail in [wrong, whole[start..start + 40].to_vec(), vec![0x77; 300]] {
        let mut bytes = whole[..end].to_vec();
        bytes.extend_from_slice(&tail);
        fs::write(&path, &bytes).unwrap();
        let store = started(&folder);
        for number in 0..5 {
            assert_eq!(instant(&store, number).await, Some(i64::from(number)));
        }
        drop(store);
        fs::write(&path, &whole[..end]).unwrap();
    }
}

#[tokio::test]
async fn a_mark_of_another_history_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let (one, two) = (temp.path().join("one"), temp.path().join("two"));
    filled(&one, 5).await;
    {
        let store = started(&two);
        let epoch = open(&store, 0).await;
        for number in 1..=6 {
            must_commit(&store, epoch, number, &[letter(1, 1)]).await;
        }
    }
    fs::copy(two.join("HIGHWATER"), one.join("HIGHWATER")).unwrap();
    let text = damage(&one);
    assert!(text.contains("different histories"), "{text}");
}

#[tokio::test]
async fn a_damaged_identity_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("store");
    filled(&folder, 1).await;
    let path = folder.join("IDENTITY");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("jobs=3", "jobs=4")).unwrap();
    assert!(damage(&folder).contains("IDENTITY"));
}

#[tokio::test]
async fn a_store_half_made_is_made_anew() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("store");
    filled(&folder, 1).await;
    fs::remove_file(folder.join("IDENTITY")).unwrap();
    fs::write(folder.join("CREATING"), b"").unwrap();
    let store = started(&folder);
    assert_eq!(instant(&store, 0).await, None);
    assert!(!folder.join("CREATING").exists());
}
