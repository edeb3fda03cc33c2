//! Power loss on a real folder: after the cut, only what was synced is there, and perhaps some
//! sectors of what was not.
//!
//! Owns: the cycles and their judgement. The power goes out in the middle of a sync that is drawn
//! from the seed; from then on every sync fails. The folder is rebuilt from what a disk may hold
//! (`shadow.rs`), the store starts on it, and every batch that was ever acknowledged must be there,
//! whole. The negative control answers before its sync and must be caught. Must never: look inside
//! the store. Next: `interposer.rs`, `load.rs`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod interposer;
mod load;
mod shadow;

use load::{Acknowledged, Clocks, Draw};
use shadow::Rebuild;
use std::path::{Path, PathBuf};

/// Cuts in all; each sequence of cuts goes on with one store.
const SEQUENCES: u64 = 5;
const CUTS_PER_SEQUENCE: u64 = 26;

/// What one sequence of cuts showed.
#[derive(Debug, Default)]
struct Verdict {
    cuts: u64,
    cuts_in_flight: u64,
    acknowledged: usize,
    lost: Vec<String>,
}

/// In memory where there is such a place: what the disk holds is the shadow's matter.
fn memory_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

/// Runs cuts on one store, each folder rebuilt from the one before.
fn run(seed: u64, cuts: u64, answer_before_sync: bool) -> Verdict {
    let mut draw = Draw::new(seed);
    let temp = memory_folder();
    let mut folder = temp.path().join("0/store");
    let mut acknowledged = Acknowledged::default();
    let mut verdict = Verdict::default();
    let clocks = Clocks::new();
    for cut in 1..=cuts {
        std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
        let report = cycle(&folder, &mut draw, &mut acknowledged, &clocks, answer_before_sync);
        verdict.cuts += 1;
        verdict.cuts_in_flight += u64::from(report.in_flight > 0);
        let how = if draw.below(2) == 0 {
            Rebuild::SyncedOnly
        } else {
            Rebuild::Torn
        };
        let next = temp.path().join(format!("{cut}/store"));
        report.shadow.rebuild(&next, how, &mut draw);
        let _ = std::fs::remove_dir_all(folder.parent().unwrap());
        verdict.lost.extend(judge(&next, &acknowledged, &clocks, cut));
        folder = next;
        if !verdict.lost.is_empty() {
            break;
        }
    }
    verdict.acknowledged = acknowledged.len();
    verdict
}

struct Report {
    shadow: shadow::Shadow,
    in_flight: usize,
}

/// Loads the store until the power goes out.
fn cycle(
    folder: &Path,
    draw: &mut Draw,
    acknowledged: &mut Acknowledged,
    clocks: &Clocks,
    answer_before_sync: bool,
) -> Report {
    interposer::watch(folder);
    // A store that never syncs is cut after some answers instead.
    let answers_max = if answer_before_sync {
        5 + draw.below(40)
    } else {
        u64::MAX
    };
    let syncs = if answer_before_sync {
        u64::MAX
    } else {
        1 + draw.below(150)
    };
    interposer::cut_after(syncs);
    let in_flight = load::run(
        folder,
        draw.next(),
        acknowledged,
        clocks,
        answers_max,
        answer_before_sync,
    );
    Report {
        shadow: interposer::take(),
        in_flight,
    }
}

/// What is missing or wrong, by name.
fn judge(folder: &Path, acknowledged: &Acknowledged, clocks: &Clocks, cut: u64) -> Vec<String> {
    match load::read_all(folder, clocks) {
        Ok(found) => acknowledged.missing(&found),
        Err(why) => vec![format!(
            "after cut {cut}, with {} acknowledged: {why}",
            acknowledged.len()
        )],
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_the_power_fails() {
    let mut total = Verdict::default();
    for sequence in 0..SEQUENCES {
        let verdict = run(0x5eed_0000 + sequence, CUTS_PER_SEQUENCE, false);
        assert_eq!(verdict.lost, Vec::<String>::new(), "sequence {sequence}");
        total.cuts += verdict.cuts;
        total.cuts_in_flight += verdict.cuts_in_flight;
        total.acknowledged += verdict.acknowledged;
    }
    println!(
        "{} cuts, {} with commits in flight, {} batches acknowledged, 0 lost",
        total.cuts, total.cuts_in_flight, total.acknowledged
    );
    assert!(total.cuts >= 100);
    assert!(total.cuts_in_flight * 10 >= total.cuts * 8, "{total:?}");
    assert!(total.acknowledged > 1_000, "{total:?}");
}

/// A disk that refuses syncs for a while, a restart on the same cache, work, and then the power goes out.
fn refused_and_cut(seed: u64, with_power: u64) -> (usize, Vec<String>) {
    let mut draw = Draw::new(seed);
    let temp = memory_folder();
    let folder = temp.path().join("store");
    let mut acknowledged = Acknowledged::default();
    let clocks = Clocks::new();
    interposer::watch(&folder);
    interposer::refuse_after(60 + draw.below(120));
    load::run(&folder, draw.next(), &mut acknowledged, &clocks, u64::MAX, false);
    interposer::relent();
    interposer::cut_after(with_power);
    load::run(&folder, draw.next(), &mut acknowledged, &clocks, u64::MAX, false);
    let next = temp.path().join("next/store");
    interposer::take().rebuild(&next, Rebuild::SyncedOnly, &mut draw);
    (acknowledged.len(), judge(&next, &acknowledged, &clocks, seed))
}

#[test]
fn nothing_acknowledged_rests_on_what_a_refused_sync_left_in_the_cache() {
    let mut acknowledged = 0;
    for seed in 0..12 {
        // From the middle of the start to long after the ring has been written over.
        let (count, lost) = refused_and_cut(0xcac4e + seed, 5 + seed * 20);
        assert_eq!(lost, Vec::<String>::new(), "seed {seed}");
        acknowledged += count;
    }
    println!("{acknowledged} batches acknowledged, 0 lost");
    assert!(acknowledged > 200, "{acknowledged}");
}

#[test]
fn a_page_that_a_sync_was_refused_for_is_durable_once_it_is_written_again() {
    use std::os::unix::fs::FileExt;
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("file");
    std::fs::write(&path, [1; 3 * 4_096]).unwrap();
    interposer::watch(&folder);
    interposer::refuse_after(0);
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&[2; 2 * 4_096], 0).unwrap();
    assert!(file.sync_data().is_err());
    interposer::relent();
    file.sync_data().unwrap();
    file.write_all_at(&[2; 1], 4_096).unwrap();
    file.sync_data().unwrap();
    let target: PathBuf = temp.path().join("after");
    interposer::take().rebuild(&target, Rebuild::SyncedOnly, &mut Draw::new(1));
    let pages = std::fs::read(target.join("file")).unwrap();
    assert_eq!((pages[0], pages[4_096], pages[2 * 4_096]), (1, 2, 1));
}

#[test]
fn a_store_that_answers_before_its_sync_is_caught() {
    let verdicts: Vec<Verdict> = (0..3).map(|seed| run(0xbad + seed, 6, true)).collect();
    let caught = verdicts.iter().filter(|verdict| !verdict.lost.is_empty()).count();
    assert!(caught > 0, "{verdicts:?}");
}

#[test]
fn the_shadow_forgets_what_was_not_synced() {
    use std::io::Write;
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("old"), b"old").unwrap();
    interposer::watch(&folder);
    interposer::cut_after(u64::MAX);
    let mut synced = std::fs::File::create(folder.join("synced")).unwrap();
    synced.write_all(b"kept").unwrap();
    synced.sync_data().unwrap();
    std::fs::File::open(&folder).unwrap().sync_all().unwrap();
    synced.write_all(b" and lost").unwrap();
    std::fs::write(folder.join("unsynced"), b"lost").unwrap();
    std::fs::write(folder.join("old"), b"new").unwrap();
    let target: PathBuf = temp.path().join("after");
    interposer::take().rebuild(&target, Rebuild::SyncedOnly, &mut Draw::new(1));
    assert_eq!(std::fs::read(target.join("synced")).unwrap(), b"kept");
    assert_eq!(std::fs::read(target.join("old")).unwrap(), b"old");
    assert!(!target.join("unsynced").exists());
}
