//! The command line as scripts use it: the real binary, its exit codes, and the page that describes it.
//!
//! Owns: what needs no server of ours. Next: `../http/` for commands against a running node.
#![cfg(not(madsim))]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

mod bench;
mod codes;
mod config;
mod config_page;
mod faults;
mod import;
mod kubernetes;
mod page;
#[path = "../support/problems.rs"]
mod problem_page;
mod problems;
mod server;
mod shape;
#[path = "../support/mod.rs"]
mod support;
#[cfg(target_os = "linux")]
mod terminal;
mod variables;

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The binary with these words, in a clean environment.
pub(crate) fn fencepost(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    command.args(words).current_dir(folder).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"FENCEPOST_") {
            command.env_remove(name);
        }
    }
    command
}

/// Exit code, standard output, standard error.
pub(crate) fn run(folder: &Path, words: &[&str]) -> (i32, String, String) {
    ended(fencepost(folder, words).output().unwrap())
}

pub(crate) fn ended(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (code, out, err) = (output.status.code().unwrap(), text(output.stdout), text(output.stderr));
    for problem in problems_in(&err) {
        problem_page::expect(problem, problem_page::EXIT, u32::try_from(code).unwrap());
    }
    (code, out, err)
}

/// The codes of what a person is told: `error: … [code, field]`.
fn problems_in(err: &str) -> impl Iterator<Item = &str> {
    let told = err.lines().filter_map(|line| line.strip_prefix("error: "));
    let places = told.filter_map(|line| line.strip_suffix(']')?.rsplit_once(" ["));
    places.map(|(_, place)| place.split(',').next().unwrap())
}

/// A folder with a token file that the owner alone can read.
pub(crate) fn folder_with_token() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("fencepost-data");
    std::fs::create_dir(&data).unwrap();
    let file = data.join("token");
    std::fs::write(&file, "fp_0123456789abcdef0123\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    folder
}

#[test]
fn a_wrong_command_line_exits_with_2_and_writes_nothing_to_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let cases: &[&[&str]] = &[
        &[],
        &["no-such-command"],
        &["job", "list", "--no-such-flag"],
        &["job", "list", "--limit", "0"],
        &["job", "create", "--http", "http://a/", "--handler", "noop"],
        &["job", "create", "--at", "x", "--delay", "1s", "--handler", "noop"],
        &["job", "create", "--handler", "noop", "--env", "A=B"],
        &["job", "create", "--handler", "noop", "--shell"],
        &["job", "create", "--http", "http://a/", "--directory", "/tmp"],
        &["job", "create", "--handler", "noop", "--method", "GET"],
        &["job", "create", "--header", "a:b", "--", "date"],
        &["schedule", "edit", "x"],
        &["schedule", "edit", "x", "--dry-run"],
        &["schedule", "create", "x", "--cron", "* * * * *", "--every", "1s"],
        &["job", "wait", "job_x", "--for", "1 month"],
        &["serve", "--key-retention", "59s"],
        &["dev", "--key-retention", "8d"],
    ];
    let preview = [
        "schedule",
        "preview",
        "* * * * *",
        "--after",
        "2026-01-01T00:00:00Z",
        "-n",
    ];
    let counts = ["0", "1001"].map(|count| [&preview[..], &[count]].concat());
    let cases = cases.iter().copied().chain(counts.iter().map(Vec::as_slice));
    for words in cases {
        let (code, out, err) = run(folder.path(), words);
        assert_eq!((code, out.as_str()), (2, ""), "{words:?}: {err}");
        let has_code = err
            .lines()
            .any(|line| line.starts_with("error: ") && line.contains('['));
        assert!(has_code, "{words:?}: {err}");
        assert!(!err.contains("; Give") && !err.contains("; Write"), "{words:?}: {err}");
    }
    let folder = folder_with_token();
    for server in [
        "ftp://127.0.0.1",
        "http://",
        "http://a b",
        "127.0.0.1:4480",
        "http://127.0.0.1:448000",
        "http://127.0.0.1:",
        "http://me:secret@127.0.0.1:4480",
    ] {
        let (code, out, err) = run(folder.path(), &["job", "list", "--server", server]);
        assert_eq!((code, out.as_str()), (2, ""), "{server}: {err}");
        assert!(err.contains("server_invalid"), "{err}");
    }
}

#[test]
fn words_that_are_no_utf8_exit_with_2_and_say_so() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let folder = tempfile::tempdir().unwrap();
    let odd = OsStr::from_bytes(b"caf\xe9");
    let cases: &[&[&str]] = &[
        &[],
        &["job", "show"],
        &["job", "create", "--handler"],
        &["schedule", "create"],
        &["serve", "--listen"],
    ];
    for words in cases {
        let (code, out, err) = ended(fencepost(folder.path(), words).arg(odd).output().unwrap());
        assert_eq!((code, out.as_str()), (2, ""), "{words:?}: {err}");
        let why = if words.is_empty() {
            "Unrecognized subcommand"
        } else {
            "UTF-8"
        };
        assert!(err.contains(why) && !err.contains("panicked"), "{words:?}: {err}");
    }
    let command = ["job", "create", "--", "echo"];
    let (code, out, err) = ended(fencepost(folder.path(), &command).arg(odd).output().unwrap());
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
}

#[test]
fn a_missing_or_open_token_file_exits_with_4() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (code, out, err) = run(folder.path(), &["job", "list"]);
    assert_eq!((code, out.as_str()), (4, ""), "{err}");
    assert!(err.contains("token_unreadable") && err.contains("hint: "), "{err}");
    let folder = folder_with_token();
    let file = folder.path().join("fencepost-data/token");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let (code, _, err) = run(folder.path(), &["job", "list", "-o", "json"]);
    let problem: serde_json::Value = serde_json::from_str(&err).unwrap();
    assert_eq!((code, problem["code"].as_str()), (4, Some("token_file_mode")));
    assert!(problem["hint"].as_str().unwrap().contains("chmod 600"), "{err}");
    assert_eq!(problem.get("status"), None, "no request was made: {err}");
}

#[test]
fn what_is_no_token_file_is_named_and_not_read_for_ever() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    };
    file("empty", b"\n");
    file("binary", b"fp_\xff\xfe\x00 0123456789abcdef");
    file("short", b"fp_1\n");
    file("large", &[b'a'; 5_000]);
    for (name, code, words) in [
        ("/tmp", "token_unreadable", "is a folder"),
        ("/dev/zero", "token_unreadable", "is a device"),
        ("missing", "token_unreadable", "No such file"),
        ("empty", "token_invalid", "it is empty"),
        ("binary", "token_invalid", "one line of letters"),
        ("short", "token_invalid", "too short"),
        ("large", "token_invalid", "too large"),
    ] {
        let (exit, out, err) = run(folder.path(), &["job", "list", "--token-file", name]);
        assert_eq!((exit, out.as_str()), (4, ""), "{name}: {err}");
        assert!(
            err.contains(&format!("[{code}]")) && err.contains(words),
            "{name}: {err}"
        );
        assert!(err.contains("hint: ") && !err.contains("chmod"), "{name}: {err}");
    }
}

#[test]
fn what_is_no_certificate_is_not_read_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let (code, out, err) = run(folder.path(), &["certs", "show", "/dev/zero"]);
    assert!(
        code == 8 && out.is_empty() && err.contains("[file_too_large]"),
        "{code}: {err}"
    );
}

#[test]
fn a_server_whose_file_of_settings_is_not_there_exits_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, err) = run(folder.path(), &["serve", "--config", "missing.toml"]);
    assert!(code == 2 && err.contains("[file_unreadable]"), "{code}: {err}");
}

#[test]
fn completion_scripts_are_written_for_every_shell() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, out, err) = run(folder.path(), &["completion", shell]);
        assert_eq!((code, err.as_str()), (0, ""), "{shell}");
        assert!(out.contains("fencepost") && out.contains("schedule"), "{shell}");
    }
}
