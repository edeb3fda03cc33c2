//! Several journals: a loss in the middle is as much a loss as one at the end.

use super::*;
use std::fs;

const LETTERS: u32 = 12;
/// Batches that stay in the first journal.
const KEPT: usize = 7;

/// A closed store whose history lies in two journals, as after a rotation.
async fn split(folder: &Path) -> Vec<u64> {
    filled(folder, LETTERS).await;
    let (first, second) = (folder.join("db/0.jnl"), folder.join("db/1.jnl"));
    let ends = journal::batch_ends(&first).unwrap();
    let bytes = fs::read(&first).unwrap();
    let at = usize::try_from(ends[KEPT - 1]).unwrap();
    let end = usize::try_from(*ends.last().unwrap()).unwrap();
    fs::write(&second, &bytes[at..end]).unwrap();
    fs::write(&first, &bytes[..at]).unwrap();
    ends
}

fn refusal(folder: &Path) -> String {
    let error = FjallStore::start(folder, options()).err().expect("the store started");
    assert_eq!(error.code(), "store_damaged", "{error}");
    error.to_string()
}

#[tokio::test]
async fn a_history_in_two_journals_is_whole() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("store");
    split(&folder).await;
    let store = started(&folder);
    for number in 0..LETTERS {
        assert_eq!(instant(&store, number).await, Some(i64::from(number)));
    }
}

#[tokio::test]
async fn a_batch_lost_at_the_end_of_a_sealed_journal_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("store");
    let ends = split(&folder).await;
    let file = fs::OpenOptions::new()
        .write(true)
        .open(folder.join("db/0.jnl"))
        .unwrap();
    file.set_len(ends[KEPT - 2]).unwrap();
    for _ in 0..2 {
        assert!(refusal(&folder).contains("1.jnl"));
    }
}

#[tokio::test]
async fn a_deleted_sealed_journal_is_refused_at_every_start() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("store");
    split(&folder).await;
    fs::remove_file(folder.join("db/0.jnl")).unwrap();
    for _ in 0..3 {
        assert!(refusal(&folder).contains("a journal is missing"));
    }
    // A copy would have the damage, but not the note.
    let error = backup(&folder, &temp.path().join("copy"), &|| false).expect_err("the copy was made");
    assert!(error.to_string().contains("a journal is missing"), "{error}");
}

#[tokio::test]
async fn batches_that_the_tables_hold_are_not_needed_but_the_journal_is() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("store");
    filled(&folder, LETTERS).await;
    started(&folder).compact().unwrap();
    let path = folder.join("db/0.jnl");
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(0).unwrap();
    {
        let store = started(&folder);
        for number in 0..LETTERS {
            assert_eq!(instant(&store, number).await, Some(i64::from(number)));
        }
        let epoch = open(&store, 1).await;
        must_commit(&store, epoch, 1, &[letter(0, 99)]).await;
        assert_eq!(instant(&store, 0).await, Some(99));
        store.compact().unwrap();
    }
    // The engine would start here and see nothing.
    fs::remove_file(&path).unwrap();
    assert!(refusal(&folder).contains("the journal (db/*.jnl) is missing"));
}
