//! Variables: every one that the program names is in a list, and one that is in none is told.
//!
//! Owns: the comparison with the sources. Next: `page.rs` and `config_page.rs`, which compare the lists with
//! the pages.

use crate::{ended, fencepost, run};
use fencepost::cli::variables::{CLIENT_VARIABLES, JOB_VARIABLES};
use fencepost::config::SETTINGS;
use std::collections::BTreeSet;
use std::path::Path;

/// Names in quotes in the sources below a folder.
fn named_in(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            named_in(&path, found);
            continue;
        }
        // The lists themselves, and names that are none.
        if path.ends_with("cli/variables.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for part in text.split("\"FENCEPOST_").skip(1) {
            let end = part.find(|c: char| !c.is_ascii_uppercase() && c != '_').unwrap();
            if part[end..].starts_with('"') {
                found.insert(format!("FENCEPOST_{}", &part[..end]));
            }
        }
    }
}

#[test]
fn every_variable_that_the_program_names_is_listed() {
    let mut named = BTreeSet::new();
    named_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut named);
    assert!(named.len() > 20 && named.contains("FENCEPOST_TOKEN"), "{named:?}");
    let lists = CLIENT_VARIABLES.iter().chain(JOB_VARIABLES);
    let listed: BTreeSet<_> = lists
        .map(|(name, _)| *name)
        .chain(SETTINGS.iter().map(|setting| setting.env))
        .collect();
    // Of tests alone, or no variable but a prefix.
    let exempt = |name: &str| name.starts_with("FENCEPOST_TEST_") || name.ends_with('_');
    let unlisted: Vec<_> = named
        .iter()
        .filter(|name| !exempt(name) && !listed.contains(name.as_str()))
        .collect();
    assert!(unlisted.is_empty(), "{unlisted:?}");
}

#[test]
fn a_misspelt_variable_is_told_and_the_command_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["schedule", "preview", "@daily", "-n", "1", "-o", "json"];
    let (code, plain, err) = run(folder.path(), &words);
    assert_eq!((code, err.as_str()), (0, ""));
    let told = fencepost(folder.path(), &words)
        .env("FENCEPOST_SERVR", "x")
        .output()
        .unwrap();
    let (code, out, err) = ended(told);
    assert_eq!((code, out.len()), (0, plain.len()));
    assert!(
        err.contains("FENCEPOST_SERVR") && err.contains("did you mean FENCEPOST_SERVER?"),
        "{err}"
    );
}
