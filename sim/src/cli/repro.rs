//! `repro`: a bundle's run once more, and whether the same came out.
//!
//! Owns: the comparison, and whether a bundle of another program may be used. Must never: call two different
//! verdicts the same. Next: `shrink.rs`, `../report/bundle.rs`.

use super::arguments::OfBundle;
use super::child::run_child;
use super::report::{complain, say, seconds};
use super::{NOT_DETERMINISTIC, PASS, USAGE, VIOLATION};
use crate::report::bundle::{self, Origin};
use crate::report::program::Program;
use crate::report::record::Record;
use crate::report::timeline;
use std::collections::BTreeSet;
use std::path::Path;

/// Runs a bundle again. The code is that of the run; 3 when this very program made something else of it.
pub fn repro(asked: &OfBundle) -> u8 {
    let (bundle, origin) = match open(asked) {
        Ok(read) => read,
        Err(why) => {
            complain(&format!("fencepost-sim: {why}"));
            return USAGE;
        }
    };
    say(&format!("seed {}: {}", bundle.seed, bundle.options));
    say(&format!("the bundle: {}", verdict(&bundle)));
    let ran = run_child(&bundle.story(), &["--bundles", "none"]);
    let again = &ran.left.record;
    say(&format!("this run:   {}", verdict(again)));
    if let Some(folder) = &asked.html {
        match timeline::write_into(Path::new(folder), &bundle) {
            Ok(path) => say(&format!("the bundle's timeline: {}", path.display())),
            Err(why) => {
                complain(&format!("fencepost-sim: {why}"));
                return USAGE;
            }
        }
    }
    let same_verdict = wrong(again) == wrong(&bundle);
    let same_hash = again.hash == bundle.hash;
    say(match (same_verdict, same_hash) {
        (true, true) => "the same verdict and the same hash came out",
        (true, false) => "the same verdict came out, with another hash",
        (false, true) => "another verdict came out, with the same hash",
        (false, false) => "another verdict and another hash came out",
    });
    if !(same_verdict && same_hash) && origin == Origin::Same {
        complain("the program is the same: the run is not deterministic");
        return NOT_DETERMINISTIC;
    }
    if again.is_content() { PASS } else { VIOLATION }
}

/// Reads a bundle that may be used here.
///
/// # Errors
/// It cannot be read, or another commit made it and nobody said that this is fine.
pub fn open(asked: &OfBundle) -> Result<(Record, Origin), String> {
    let mut record = bundle::read(Path::new(&asked.path))?;
    take_scenario(&mut record, &asked.path)?;
    let this = Program::this();
    let origin = bundle::origin(&record.program, &this);
    let (theirs, ours) = (&record.program.commit, &this.commit);
    match origin {
        Origin::Same => {}
        Origin::OtherBuild => complain(&format!(
            "warning: another build of commit {ours} made the bundle; its hash may differ"
        )),
        Origin::OtherCommit => {
            let both = format!("the bundle is of commit {theirs}, this program of {ours}");
            if !asked.any_commit {
                return Err(format!(
                    "{both}: the same seed may tell another story; check out {theirs}, or go on with --any-commit"
                ));
            }
            complain(&format!("warning: {both}"));
        }
    }
    Ok((record, origin))
}

/// The scenario as the bundle has it: beside the bundle, where its own file is gone or says something else by now.
fn take_scenario(record: &mut Record, bundle: &str) -> Result<(), String> {
    let Some(scenario) = &mut record.scenario else {
        return Ok(());
    };
    if std::fs::read_to_string(&scenario.path).is_ok_and(|text| text == scenario.text) {
        return Ok(());
    }
    let path = format!("{}.toml", bundle.strip_suffix(".json").unwrap_or(bundle));
    std::fs::write(&path, &scenario.text).map_err(|error| format!("{path} cannot be written: {error}"))?;
    complain(&format!(
        "{} is not as it was; the bundle's is in {path}",
        scenario.path
    ));
    scenario.path = path;
    Ok(())
}

/// What is wrong, whatever is known of the place: a run that keeps no events knows less of it.
fn wrong(record: &Record) -> BTreeSet<(&str, &str)> {
    let found = record.violations.iter();
    found
        .map(|found| (found.checker.as_str(), found.what.as_str()))
        .collect()
}

/// In a line: what came out.
pub fn verdict(record: &Record) -> String {
    let hash = &record.hash;
    match record.violations.first() {
        None => format!("every checker was content, hash {hash}"),
        Some(first) => {
            let at = first.at.map(|at| format!(" at {}", seconds(at))).unwrap_or_default();
            let about = first.job.as_deref().map(|job| format!(" ({job})")).unwrap_or_default();
            let what = first.what.lines().next().unwrap_or_default();
            format!("{}: {what}{about}{at}, hash {hash}", record.checkers().join(", "))
        }
    }
}
