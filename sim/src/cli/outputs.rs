//! The reports of a set of runs, where they were asked for.
//!
//! Owns: writing them. Must never: turn a failure into a pass: a report that cannot be written is a mistake of its own.
//! Next: `../report/`.

use super::arguments::Seeds;
use super::child::Ran;
use super::report::{complain, say};
use super::{PASS, USAGE};
use crate::report::program::commit;
use crate::report::summary::{Outcome, Set};
use crate::report::{github, index, json, junit};
use std::path::Path;

/// Writes what was asked for; the code of the whole.
pub fn write(seeds: &Seeds, all: &[Ran], below: &[String], code: u8) -> u8 {
    let indexed = seeds.html.as_ref().filter(|_| seeds.is_set || all.len() > 1);
    if seeds.junit.is_none() && seeds.json.is_none() && !seeds.annotates && indexed.is_none() {
        return code;
    }
    let set = set(all, below);
    if let Some(folder) = indexed
        && let Err(why) = index::write_into(Path::new(folder), &set)
    {
        complain(&format!("fencepost-sim: {why}"));
        return if code == PASS { USAGE } else { code };
    }
    let mut texts = Vec::new();
    if let Some(path) = &seeds.junit {
        texts.push((path, junit::text(&set)));
    }
    if let Some(path) = &seeds.json {
        texts.push((path, json::text(&set)));
    }
    for (path, text) in texts {
        if let Err(error) = write_file(Path::new(path), &text) {
            complain(&format!("fencepost-sim: {path} could not be written: {error}"));
            return if code == PASS { USAGE } else { code };
        }
    }
    if seeds.annotates {
        github::lines(&set).iter().for_each(|line| say(line));
    }
    code
}

/// What runs add up to.
pub fn set(all: &[Ran], below: &[String]) -> Set {
    let outcomes = all.iter().map(|ran| Outcome {
        record: ran.left.record.clone(),
        bundle: ran.left.bundle.clone(),
    });
    Set {
        commit: commit(),
        outcomes: outcomes.collect(),
        below: below.to_vec(),
    }
}

fn write_file(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, text)
}
