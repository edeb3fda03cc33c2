//! A damaged folder is read in a process of its own, since the engine may end the process that opens it.
//!
//! Owns: the child and what it says, in a file. fjall asserts on some bytes of its manifests and then
//! panics again while it cleans up, which no `catch_unwind` survives. Must never: judge. Next:
//! `main.rs`.

use crate::filled::{Checks, Refusal, Rows, read_all};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const FOLDER: &str = "FENCEPOST_DAMAGED_FOLDER";
const UNCHECKED: &str = "FENCEPOST_DAMAGED_UNCHECKED";

/// What the child said.
pub enum Said {
    /// The start was refused.
    Start(String),
    /// A read was refused.
    Read(String),
    /// It answered with rows of this hash.
    Rows(u64),
}

/// Reads the folder apart; `None` when the process ended without a word.
pub fn read_apart(folder: &Path, checks: Checks) -> Option<Said> {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", "apart::the_child_reads_its_folder"])
        .env(FOLDER, folder)
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if checks == Checks::Off {
        child.env(UNCHECKED, "1");
    }
    child.status().unwrap();
    let said = fs::read_to_string(word_of(folder)).ok()?;
    let (kind, text) = said.split_once('\n')?;
    Some(match kind {
        "start" => Said::Start(text.to_owned()),
        "read" => Said::Read(text.to_owned()),
        _ => Said::Rows(text.parse().unwrap()),
    })
}

/// A hash that both processes compute alike.
pub fn hash(rows: &Rows) -> u64 {
    let mut hasher = DefaultHasher::new();
    rows.hash(&mut hasher);
    hasher.finish()
}

fn word_of(folder: &Path) -> PathBuf {
    folder.with_extension("said")
}

/// Does nothing unless it is the child of `read_apart`.
#[test]
fn the_child_reads_its_folder() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    let unchecked = std::env::var_os(UNCHECKED).is_some();
    let checks = if unchecked { Checks::Off } else { Checks::On };
    let said = match read_all(&folder, checks) {
        Err(Refusal::Start(why)) => format!("start\n{why}"),
        Err(Refusal::Read(why)) => format!("read\n{why}"),
        Ok(rows) => format!("rows\n{}", hash(&rows)),
    };
    fs::write(word_of(&folder), said).unwrap();
}
