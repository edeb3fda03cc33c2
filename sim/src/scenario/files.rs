//! Scenario files on disk: found by path, a folder standing for all in it, read and judged.
//!
//! Owns: the order of files and the bound of their size. Must never: skip what cannot be read. Next: `mod.rs`.

use super::{Mistakes, Scenario};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Largest file.
const BYTES_MAX: u64 = 256 << 10;
/// Deepest folder below the one that was named.
const DEPTH_MAX: u32 = 8;

/// Every scenario file that these paths name, in order of their names.
///
/// # Errors
/// A path that is not there, cannot be read, or names no scenario.
pub fn find(paths: &[String]) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for path in paths {
        let before = found.len();
        let path = Path::new(path);
        match path.is_dir() {
            true => walk(path, 0, &mut found)?,
            false if path.exists() => found.push(path.to_owned()),
            false => return Err(format!("there is no file {}", path.display())),
        }
        if found.len() == before {
            return Err(format!("there is no scenario (*.toml) in {}", path.display()));
        }
    }
    Ok(found)
}

fn walk(folder: &Path, depth: u32, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let unread = |error: std::io::Error| format!("{} cannot be read: {error}", folder.display());
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unread)? {
        entries.push(entry.map_err(unread)?.path());
    }
    entries.sort();
    for path in entries {
        match path.is_dir() {
            true if depth < DEPTH_MAX => walk(&path, depth + 1, found)?,
            true => return Err(format!("{} lies too deep", path.display())),
            false if path.extension().is_some_and(|ending| ending == "toml") => found.push(path),
            false => {}
        }
    }
    Ok(())
}

/// Reads a file.
///
/// # Errors
/// Every mistake in it; one when it cannot be read.
pub fn read(path: &Path) -> Result<Scenario, Mistakes> {
    let name = path.display().to_string();
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path);
    let read = file.and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes));
    if let Err(error) = read {
        return Err(Mistakes::unreadable(
            &name,
            &format!("the file cannot be read: {error}"),
        ));
    }
    if bytes.len() as u64 > BYTES_MAX {
        let why = format!("the file is larger than {} KiB", BYTES_MAX >> 10);
        return Err(Mistakes::unreadable(&name, &why));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Scenario::parse(&name, &text),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let good = error.as_bytes().get(..at).unwrap_or_default();
            let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
            Err(Mistakes::unreadable(&name, &format!("line {line} is not UTF-8")))
        }
    }
}
