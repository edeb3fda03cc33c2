//! Certificates for processes, made by the real command, and what it does with files that are there.
//!
//! Owns: one CA below a folder and a certificate for each node. Next: `split.rs`, `cluster.rs`.

use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn certs(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    command.arg("certs").args(words).output().unwrap()
}

fn made(words: &[&str]) {
    let done = certs(words);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Words for a process under a certificate of its name; it and the CA are made where they are not there yet.
pub fn secured(folder: &Path, node: &str, roles: &str) -> Vec<String> {
    let text = |path: PathBuf| path.display().to_string();
    let (ca, own) = (text(folder.join("ca")), folder.join(format!("certs-{node}")));
    if !folder.join("ca").exists() {
        made(&["ca", "--out", &ca]);
    }
    if !own.exists() {
        made(&[
            "node",
            "--ca",
            &ca,
            "--name",
            node,
            "--roles",
            roles,
            "--out",
            &text(own.clone()),
        ]);
    }
    let at = |name: &str| text(own.join(name));
    let words = ["--node", node, "--mesh-ca"].map(str::to_owned);
    let files = [
        at("ca.pem"),
        "--mesh-cert".to_owned(),
        at("node.pem"),
        "--mesh-key".to_owned(),
        at("node-key.pem"),
    ];
    words.into_iter().chain(files).collect()
}

fn shown(path: &Path) -> Value {
    let done = certs(&["show", &path.display().to_string(), "-o", "json"]);
    serde_json::from_slice(&done.stdout).unwrap()
}

#[test]
fn keys_are_for_their_owner_and_nothing_is_written_over_unasked() {
    let folder = tempfile::tempdir().unwrap();
    secured(folder.path(), "a", "store,scheduler");
    let (ca, own) = (folder.path().join("ca"), folder.path().join("certs-a"));
    for key in [ca.join("ca-key.pem"), own.join("node-key.pem")] {
        assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert!(!own.join("ca-key.pem").exists(), "a node never gets the CA's key");
    let [ca, out] = [&ca, &own].map(|path| path.display().to_string());
    let again = [
        "node", "--ca", &ca, "--name", "a", "--roles", "all", "--days", "7", "--out", &out,
    ];
    let before = std::fs::read(own.join("node.pem")).unwrap();
    let refused = certs(&again);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(5), "{said}");
    assert!(said.contains("[file_exists]") && said.contains("--force"), "{said}");
    assert_eq!(std::fs::read(own.join("node.pem")).unwrap(), before);
    assert_eq!(shown(&own.join("node.pem"))["roles"], "store,scheduler");
    made(&[&again[..], &["--force"]].concat());
    let now = shown(&own.join("node.pem"));
    assert_eq!(now["roles"], "store,scheduler,worker,gateway,coordinator");
    assert!(
        now["node"] == "a" && (6..=7).contains(&now["days_left"].as_u64().unwrap()),
        "{now}"
    );
    assert_eq!(now["cell"], shown(&own.join("ca.pem"))["cell"]);
    let key = own.join("node-key.pem");
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
}

/// Killed by its limit at the first byte of a file that it has just made.
#[test]
fn a_kill_between_making_a_file_and_writing_it_leaves_none_of_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("ca").display().to_string();
    let killed = Command::new("sh")
        .args(["-c", "ulimit -c 0; ulimit -f 0; exec \"$@\"", "sh"])
        .arg(env!("CARGO_BIN_EXE_fencepost"))
        .args(["certs", "ca", "--out", &out])
        .output()
        .unwrap();
    assert!(killed.status.signal().is_some(), "{killed:?}");
    assert!(folder.path().join("ca").is_dir(), "it came that far");
    made(&["ca", "--out", &out]);
    let left: Vec<_> = std::fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 2, "nothing is left of the first try: {left:?}");
}

#[test]
fn what_cannot_sign_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    secured(folder.path(), "a", "store");
    let other = folder.path().join("other");
    made(&[
        "ca",
        "--cell",
        "0000000000000000000000000000004d",
        "--out",
        &other.display().to_string(),
    ]);
    assert_eq!(shown(&other.join("ca.pem"))["cell"], "0000000000000000000000000000004d");
    // Another CA's key beside this one's certificate.
    std::fs::copy(folder.path().join("ca/ca-key.pem"), other.join("ca-key.pem")).unwrap();
    let [ca, own, out] =
        [other, folder.path().join("certs-a"), folder.path().join("out")].map(|path| path.display().to_string());
    for (ca, code) in [
        (&ca, "mesh_certificate_refused"),
        (&own, "file_unreadable"),
        (&out, "file_unreadable"),
    ] {
        let refused = certs(&[
            "node",
            "--ca",
            ca,
            "--name",
            "b",
            "--roles",
            "worker",
            "--out",
            &format!("{out}-{code}"),
        ]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains(code), "{said}");
    }
    for words in [["--roles", "boss"], ["--days", "0"], ["--name", "a/b"]] {
        let all = ["node", "--ca", &ca, "--name", "b", "--roles", "worker", "--out", &out];
        let mut all = all.to_vec();
        match all.iter().position(|word| *word == words[0]) {
            Some(at) => all[at + 1] = words[1],
            None => all.extend(words),
        }
        assert_eq!(certs(&all).status.code(), Some(2), "{words:?}");
    }
}
