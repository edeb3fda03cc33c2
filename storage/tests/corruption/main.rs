//! Damage to every file of a real folder: the store recovers all that was acknowledged, or refuses.
//!
//! Owns: the sweep (bit flips, truncations, zeroed tails, deleted files and keyspaces, from a fixed
//! seed) and its judgement. A refusal may come at the start or when a damaged table is read; what
//! may never come is an answer without an acknowledged row. Must never: look inside the store.
//! Next: `filled.rs`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod apart;
mod filled;

use apart::{Said, read_apart};
use filled::{Checks, Filled, read_all};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Flips of one bit for each file.
const FLIPS: u64 = 10;

#[derive(Clone, Debug)]
enum Damage {
    Flip { at: u64, bit: u8 },
    CutOff { bytes: u64 },
    ZeroTail { bytes: u64 },
    Delete,
}

/// What became of one damaged folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Recovered,
    Refused,
    RefusedOnRead,
    /// The process ended without a word of ours: the engine asserted on its own manifest.
    EndedByEngine,
    /// Started and answered, with rows missing, altered or back from the dead.
    SilentlyWrong,
}

fn next(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 17
}

fn damages(length: u64, seed: u64) -> Vec<Damage> {
    let mut damages = vec![Damage::Delete];
    if length == 0 {
        return damages;
    }
    let mut state = seed;
    for _ in 0..FLIPS {
        let at = next(&mut state) % length;
        let bit = u8::try_from(next(&mut state) % 8).unwrap();
        damages.push(Damage::Flip { at, bit });
    }
    for at in [0, length - 1] {
        damages.push(Damage::Flip { at, bit: 0 });
    }
    for bytes in [1, 17, 1_000, length / 4, length / 2] {
        if (1..=length).contains(&bytes) {
            damages.push(Damage::CutOff { bytes });
            damages.push(Damage::ZeroTail { bytes });
        }
    }
    damages
}

fn inflict(path: &Path, damage: &Damage) {
    if matches!(damage, Damage::Delete) {
        return if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        };
    }
    let mut bytes = fs::read(path).unwrap();
    let length = bytes.len();
    match *damage {
        Damage::Flip { at, bit } => bytes[usize::try_from(at).unwrap()] ^= 1 << bit,
        Damage::CutOff { bytes: count } => bytes.truncate(length - usize::try_from(count).unwrap()),
        Damage::ZeroTail { bytes: count } => bytes[length - usize::try_from(count).unwrap()..].fill(0),
        Damage::Delete => unreachable!("handled above"),
    }
    fs::write(path, bytes).unwrap();
}

/// Copies the folder, damages one path of it, and sees what the store makes of it.
fn try_damage(filled: &Filled, relative: &Path, damage: &Damage, checks: Checks) -> Fate {
    let temp = filled::memory_folder();
    let folder = temp.path().join("store");
    filled::copy(&filled.folder, &folder);
    inflict(&folder.join(relative), damage);
    match read_apart(&folder, checks) {
        None => Fate::EndedByEngine,
        Some(Said::Start(why)) => {
            assert!(!why.contains('{'), "not a text for people: {why}");
            Fate::Refused
        }
        Some(Said::Read(why)) => {
            assert!(!why.is_empty());
            Fate::RefusedOnRead
        }
        Some(Said::Rows(hash)) if hash == apart::hash(&filled.rows) => Fate::Recovered,
        Some(Said::Rows(_)) => Fate::SilentlyWrong,
    }
}

fn sweep(filled: &Filled, paths: &[(PathBuf, Vec<Damage>)]) -> BTreeMap<Fate, u64> {
    let mut fates = BTreeMap::new();
    for (path, damages) in paths {
        for damage in damages {
            let fate = try_damage(filled, path, damage, Checks::On);
            assert_ne!(fate, Fate::SilentlyWrong, "{} {damage:?}", path.display());
            if fate == Fate::EndedByEngine {
                let table = path.components().any(|part| part.as_os_str() == "tables");
                let journal = path.extension().is_some_and(|end| end == "jnl");
                assert!(!table && !journal, "{} {damage:?} ended the process", path.display());
            }
            *fates.entry(fate).or_default() += 1;
        }
    }
    fates
}

#[test]
fn no_damage_to_any_file_loses_acknowledged_rows_in_silence() {
    let filled = filled::fill();
    let files = filled::files(&filled.folder);
    let paths: Vec<(PathBuf, Vec<Damage>)> = files
        .iter()
        .enumerate()
        .map(|(number, path)| {
            let length = fs::metadata(filled.folder.join(path)).unwrap().len();
            (path.clone(), damages(length, number as u64 + 1))
        })
        .collect();
    let fates = sweep(&filled, &paths);
    let total: u64 = fates.values().sum();
    println!("{} files, {total} damages: {fates:?}, 0 silent losses", files.len());
    assert!(total >= 300, "{total} damages");
    assert!(fates.get(&Fate::Refused).is_some_and(|count| *count > 100), "{fates:?}");
    assert!(fates.contains_key(&Fate::Recovered), "{fates:?}");
}

#[test]
fn a_deleted_keyspace_or_journal_is_refused() {
    let filled = filled::fill();
    for keyspace in 0..=4 {
        let path = PathBuf::from(format!("db/keyspaces/{keyspace}"));
        assert_eq!(
            try_damage(&filled, &path, &Damage::Delete, Checks::On),
            Fate::Refused,
            "{}",
            path.display()
        );
    }
    let journals = filled::files(&filled.folder);
    let journals = journals
        .iter()
        .filter(|path| path.extension().is_some_and(|end| end == "jnl"));
    for path in journals {
        assert_eq!(
            try_damage(&filled, path, &Damage::Delete, Checks::On),
            Fate::Refused,
            "{}",
            path.display()
        );
    }
}

#[test]
fn an_untouched_copy_has_every_row() {
    let filled = filled::fill();
    assert!(filled.rows.len() > 500);
    let files = filled::files(&filled.folder);
    let tables = files
        .iter()
        .filter(|path| path.components().any(|part| part.as_os_str() == "tables"));
    assert!(tables.count() > 3, "the sweep needs tables: {files:?}");
    let temp = filled::memory_folder();
    let folder = temp.path().join("store");
    filled::copy(&filled.folder, &folder);
    assert_eq!(read_all(&folder, Checks::On).ok().unwrap(), filled.rows);
}

#[test]
fn without_our_checks_the_sweep_finds_silent_losses() {
    let filled = filled::fill();
    let files = filled::files(&filled.folder);
    let journal = files
        .iter()
        .find(|path| path.extension().is_some_and(|end| end == "jnl"))
        .unwrap();
    let lost = [
        (journal.clone(), Damage::CutOff { bytes: 1_000 }),
        (journal.clone(), Damage::ZeroTail { bytes: 4_096 }),
        (journal.clone(), Damage::Delete),
        (PathBuf::from("db/keyspaces/4"), Damage::Delete),
    ];
    for (path, damage) in lost {
        let fate = try_damage(&filled, &path, &damage, Checks::Off);
        assert_eq!(fate, Fate::SilentlyWrong, "{} {damage:?}", path.display());
    }
}
