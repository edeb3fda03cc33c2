//! The bundle of a run: one JSON file from which it can be made again, looked at and shrunk.
//!
//! Owns: its name, its version, and what is said when it cannot be used. Must never: be written by a run that
//! passed, unless somebody asks. Next: `record.rs` (what is in it), `../cli/repro.rs`, `../cli/shrink.rs`.

use super::program::Program;
use super::record::Record;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What a bundle says that it is.
pub const FORMAT: &str = "fencepost-sim-bundle";
/// The version that this program writes and reads.
pub const VERSION: u32 = 1;
/// Where bundles lie unless somebody says otherwise.
pub const FOLDER: &str = "target/fencepost-sim";

#[derive(Serialize)]
struct Written<'a> {
    format: &'a str,
    version: u32,
    #[serde(flatten)]
    record: &'a Record,
}

#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
}

/// Writes the bundle of a run into a folder; the file's place.
///
/// # Errors
/// The folder or the file cannot be written.
pub fn write_into(folder: &Path, record: &Record) -> Result<PathBuf, String> {
    let path = folder.join(format!("{}.json", name(record)));
    write(&path, record)?;
    Ok(path)
}

/// What the files of a run are called.
pub fn name(record: &Record) -> String {
    let plant = record.plant.as_deref().map(|bug| format!("-{bug}")).unwrap_or_default();
    let part = if record.without.is_empty() { "" } else { "-part" };
    let story = record.scenario_path().map(story).unwrap_or_default();
    format!("{story}seed-{}{plant}{part}", record.seed)
}

/// A scenario by its folder and its name: two folders may have a file of one name.
fn story(path: &str) -> String {
    let path = Path::new(path);
    let folder = path.parent().and_then(Path::file_name);
    let names = folder.into_iter().chain(path.file_stem());
    names.map(|name| format!("{}-", name.to_string_lossy())).collect()
}

/// Writes the bundle of a run.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, record: &Record) -> Result<(), String> {
    let told = |error: &dyn std::fmt::Display| format!("{} cannot be written: {error}", path.display());
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| told(&error))?;
    }
    let written = Written {
        format: FORMAT,
        version: VERSION,
        record,
    };
    let text = serde_json::to_string(&written).map_err(|error| told(&error))?;
    std::fs::write(path, text).map_err(|error| told(&error))
}

/// Reads a bundle.
///
/// # Errors
/// There is no such file, it is no bundle, it is damaged, or another version wrote it.
pub fn read(path: &Path) -> Result<Record, String> {
    let place = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("the bundle {place} cannot be read: {error}"))?;
    let head: Head = serde_json::from_str(&text).map_err(|error| format!("{place} is not a whole bundle: {error}"))?;
    if head.format != FORMAT {
        return Err(format!(
            "{place} is no bundle: its format is {:?}, not {FORMAT:?}",
            head.format
        ));
    }
    if head.version != VERSION {
        return Err(format!(
            "the bundle {place} has version {}, this program knows version {VERSION}; use the program of its commit",
            head.version
        ));
    }
    serde_json::from_str(&text).map_err(|error| format!("{place} is not a whole bundle: {error}"))
}

/// What is to be said of a bundle that another program made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// This very program.
    Same,
    /// The same commit, built otherwise or with changes.
    OtherBuild,
    /// Another commit.
    OtherCommit,
}

/// Where a bundle comes from, seen from a program.
pub fn origin(bundle: &Program, this: &Program) -> Origin {
    match (bundle.commit == this.commit, bundle.digest == this.digest) {
        (_, true) => Origin::Same,
        (true, false) => Origin::OtherBuild,
        (false, false) => Origin::OtherCommit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_folder(name: &str, text: &str) -> Result<Record, String> {
        let path = std::env::temp_dir().join(format!("fencepost-bundle-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        let read = read(&path);
        std::fs::remove_file(&path).unwrap();
        read
    }

    #[test]
    fn a_bundle_that_cannot_be_used_says_why() {
        for (name, text, part) in [
            ("empty", "", "not a whole bundle"),
            ("garbled", "{\"format\": \"fencepost-sim-b", "not a whole bundle"),
            ("other", "{\"format\": \"x\", \"version\": 1}", "is no bundle"),
            (
                "newer",
                "{\"format\": \"fencepost-sim-bundle\", \"version\": 9}",
                "has version 9",
            ),
            (
                "short",
                "{\"format\": \"fencepost-sim-bundle\", \"version\": 1}",
                "missing field",
            ),
        ] {
            let why = in_folder(name, text).expect_err(name);
            assert!(why.contains(part), "{name}: {why}");
        }
        let why = read(Path::new("/nowhere/at-all.json")).expect_err("a missing file");
        assert!(why.contains("cannot be read"), "{why}");
    }

    #[test]
    fn what_is_written_is_read() {
        let record = Record {
            seed: 7,
            trace: vec![(1, "a".to_owned(), "b".to_owned(), "c".to_owned()).into()],
            ..Record::default()
        };
        let folder = std::env::temp_dir().join(format!("fencepost-bundles-{}", std::process::id()));
        let path = write_into(&folder, &record).unwrap();
        let back = read(&path).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!((back.seed, back.trace), (7, record.trace));
    }

    #[test]
    fn the_same_program_needs_no_commit() {
        let program = |commit: &str, digest: &str| Program {
            commit: commit.to_owned(),
            digest: digest.to_owned(),
        };
        let this = program("a", "1");
        assert_eq!(origin(&program("b", "1"), &this), Origin::Same);
        assert_eq!(origin(&program("a", "2"), &this), Origin::OtherBuild);
        assert_eq!(origin(&program("b", "2"), &this), Origin::OtherCommit);
    }
}
