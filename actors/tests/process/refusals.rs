//! Folders that a server must not open: in use, newer, damaged. It says so and ends with its own code.
//!
//! Owns: the words a person reads. Next: `storage`, which has every kind of damage.

use crate::pace::{until, until_true};
use crate::server::{Place, Server};
use fencepost_core::level::{Level, NEWEST};
use serde_json::json;
use std::path::{Path, PathBuf};

const REFUSED: Option<i32> = Some(72);

/// A folder with some jobs in it, its server stopped.
fn filled(kill: bool) -> Place {
    let mut place = Place::new(&[]);
    let mut server = place.start();
    let mut api = server.api();
    for n in 0..20 {
        let body = json!({"target": {"type": "handler", "name": "noop"}, "payload": n, "delay": "1h"});
        api.post("/v1/jobs", &body).expect(201);
    }
    if kill {
        server.kill();
    } else {
        assert_eq!(server.stop(), Some(0), "{}", server.said());
    }
    place
}

fn refused(place: &mut Place) -> String {
    let mut server: Server = place.spawn();
    assert_eq!(server.exit_code(), REFUSED, "{}", server.said());
    server.said()
}

#[test]
fn a_second_process_on_a_folder_is_refused_and_the_first_goes_on() {
    let mut place = Place::new(&[]);
    let server = place.start();
    let said = refused(&mut place);
    for word in ["[store_locked]", "in use by process", "hint: Stop the other process"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(said.contains(&server.pid().to_string()), "names the other: {said}");
    server.api().get("/readyz").expect(200);
}

#[test]
fn a_folder_of_a_newer_version_is_refused_untouched() {
    let mut place = filled(false);
    let identity = place.data().join("IDENTITY");
    let text = std::fs::read_to_string(&identity).unwrap();
    let says = |format: Level| format!("fencepost-store {format}");
    let newer = Level(NEWEST.0 + 1);
    assert!(text.contains(&says(NEWEST)), "{text}");
    std::fs::write(&identity, text.replace(&says(NEWEST), &says(newer))).unwrap();
    let said = refused(&mut place);
    for word in [
        "[store_newer]",
        &format!("has format {newer}"),
        "hint: Start the version that wrote it",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
    std::fs::write(&identity, text).unwrap();
    assert_eq!(job_count(&mut place), 20);
}

#[test]
fn a_journal_cut_short_is_refused_by_name_and_a_copy_put_back_opens() {
    let mut place = filled(true);
    let (data, copy) = (place.data(), place.path().join("copy"));
    copy_folder(&data, &copy);
    let journal = data.join("db/0.jnl");
    let whole = std::fs::read(&journal).unwrap();
    let end = whole.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    // The ring beside the journal makes up for the last few groups, not for more.
    for cut in [end / 10 * 9, end / 10 * 8] {
        std::fs::write(&journal, &whole[..end - cut]).unwrap();
        for word in ["store_damaged", "0.jnl", "acknowledged up to sequence"] {
            let said = refused(&mut place);
            assert!(said.contains(word), "{cut} bytes cut, {word}: {said}");
        }
        std::fs::remove_dir_all(&data).unwrap();
        copy_folder(&copy, &data);
    }
    std::fs::remove_file(&journal).unwrap();
    for round in ["at first", "and again"] {
        let said = refused(&mut place);
        assert!(
            said.contains("store_damaged") && said.contains("journal"),
            "{round}: {said}"
        );
    }
    std::fs::write(&journal, &whole).unwrap();
    assert_eq!(job_count(&mut place), 20);
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    std::fs::set_permissions(to, std::fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if path.is_dir() {
            copy_folder(&path, &to);
        } else {
            std::fs::copy(&path, &to).unwrap();
        }
    }
}

fn job_count(place: &mut Place) -> usize {
    let mut api_of = place.start();
    let page = api_of.api().get("/v1/jobs?limit=1000").expect(200);
    assert_eq!(api_of.stop(), Some(0));
    page["items"].as_array().unwrap().len()
}

#[test]
fn a_port_in_use_is_refused_with_its_own_code() {
    let mut first = Place::new(&[]);
    let server = first.start();
    let mut second = Place::new(&[]).listening_on(server.address());
    let mut other = second.spawn();
    assert_eq!(other.exit_code(), Some(73), "{}", other.said());
    for word in ["error: The address", "[listen_failed, listen]", "hint: Another server"] {
        assert!(other.said().contains(word), "{word}: {}", other.said());
    }
    until_true("the first", || server.api().get("/livez").status == 200);
}

/// The engine's own lists in a store: neither rows nor journals nor our files.
fn lists_of(folder: &Path) -> Vec<PathBuf> {
    let mut lists = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "tables" {
            lists.extend(lists_of(&path));
        } else if path.is_file() && !name.ends_with(".jnl") && name != "lock" {
            lists.push(path);
        }
    }
    lists.sort();
    lists
}

/// Starts on a damaged folder: refused in words, or all is well.
fn is_refused_in_words(place: &mut Place, what: &str) -> bool {
    let mut server = place.spawn();
    let code = until(what, || {
        if server.has_ended() {
            return Some(server.exit_code());
        }
        server.said().contains(" on http://").then_some(Some(0))
    });
    if code == Some(0) {
        server.kill();
        return false;
    }
    assert_eq!(code, REFUSED, "{what}: {}", server.said());
    let said = server.said();
    assert!(
        said.contains("(exit code 72)") && said.contains("store_"),
        "{what}: {said}"
    );
    true
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let copied = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &copied),
            false => drop(std::fs::copy(&path, &copied).unwrap()),
        }
    }
}

#[test]
fn damaged_lists_of_the_engine_are_refused_in_words() {
    let mut place = filled(false);
    let (data, whole) = (place.data(), place.path().join("whole"));
    copy(&data, &whole);
    let lists = lists_of(&data.join("db"));
    assert!(lists.len() > 3, "{lists:?}");
    let mut refused = 0;
    for list in lists.iter().step_by((lists.len() / 6).max(1)) {
        let length = std::fs::read(list).unwrap().len();
        for (at, bit) in [(0, 1), (length / 2, 0x40), (length.saturating_sub(1), 1)] {
            std::fs::remove_dir_all(&data).unwrap();
            copy(&whole, &data);
            let mut bytes = std::fs::read(list).unwrap();
            let Some(byte) = bytes.get_mut(at) else { continue };
            *byte ^= bit;
            std::fs::write(list, &bytes).unwrap();
            let what = format!("{} {at}", list.display());
            refused += usize::from(is_refused_in_words(&mut place, &what));
        }
    }
    assert!(refused > 0, "none of the damages mattered");
}

/// The words that a restore of this folder ends with, if it fails.
fn restore_refused(place: &Place, what: &str) -> Option<String> {
    let to = place.path().join("restored");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_fencepost"));
    let done = command
        .args(["store", "restore"])
        .args([&place.data(), &to])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let _ = std::fs::remove_dir_all(&to);
    match done.status.code() {
        Some(0) => None,
        code => {
            assert_eq!(code, Some(1), "{what}: {said}");
            Some(said)
        }
    }
}

#[test]
fn damaged_lists_of_the_engine_are_a_problem_to_a_restore_too() {
    let place = filled(false);
    let lists = lists_of(&place.data().join("db"));
    let mut refused = 0;
    for list in lists.iter().step_by((lists.len() / 8).max(1)) {
        let whole = std::fs::read(list).unwrap();
        for at in [0, whole.len() / 2, whole.len().saturating_sub(1)] {
            let mut bytes = whole.clone();
            let Some(byte) = bytes.get_mut(at) else { continue };
            *byte ^= 0x41;
            std::fs::write(list, &bytes).unwrap();
            let what = format!("{} {at}", list.display());
            if let Some(said) = restore_refused(&place, &what) {
                refused += 1;
                assert!(said.contains("store_") && !said.contains("panicked"), "{what}: {said}");
            }
        }
        std::fs::write(list, whole).unwrap();
    }
    assert!(refused > 0, "none of the damages mattered");
}
