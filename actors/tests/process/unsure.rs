//! Starts and nodes that are refused for their certificates, each with a code and a next step.
//!
//! Owns: what a process says of it. Next: `../mesh/tls.rs` for the connections themselves.

use crate::certs::secured;
use crate::pace::until_true;
use crate::server::Place;
use crate::split::{ROLES, store_on};
use std::path::Path;
use std::process::Command;

fn refused(folder: &Path, words: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    let done = command.args(words).current_dir(folder).output().unwrap();
    (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
}

#[test]
fn a_listener_beyond_loopback_without_certificates_is_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let start = [
        "serve",
        "--roles",
        "store",
        "--mesh-listen",
        "0.0.0.0:0",
        "--data",
        "store",
    ];
    let (code, said) = refused(folder.path(), &start);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("[mesh_without_certificates, --mesh-listen]"), "{said}");
    assert!(said.contains("hint: ") && said.contains("fencepost certs"), "{said}");
    assert!(!folder.path().join("store").exists());
    let file = "roles = [\"store\"]\n\n[mesh]\nlisten = \"0.0.0.0:4481\"\n";
    std::fs::write(folder.path().join("f.toml"), file).unwrap();
    let (code, said) = refused(folder.path(), &["config", "check", "f.toml"]);
    assert_eq!(code, Some(8), "{said}");
    assert!(
        said.contains("f.toml:4:1: ") && said.contains("[mesh_without_certificates, mesh.listen]"),
        "{said}"
    );
    let file = "roles = [\"store\"]\n\n[mesh]\nlisten = \"0.0.0.0:4481\"\nca = \"ca.pem\"\nkey = \"k.pem\"\n";
    std::fs::write(folder.path().join("f.toml"), file).unwrap();
    let (code, said) = refused(folder.path(), &["config", "check", "f.toml"]);
    assert_eq!(code, Some(8), "{said}");
    assert!(
        said.contains("mesh.cert is missing") && said.contains("mesh_certificates_incomplete"),
        "{said}"
    );
    let nowhere = [
        "serve",
        "--roles",
        ROLES,
        "--store-at",
        "a:1",
        "--mesh-listen",
        "0.0.0.0:1",
        "--data",
        "n",
    ];
    let files = ["--mesh-ca", "a", "--mesh-cert", "b", "--mesh-key", "c"];
    let (code, said) = refused(folder.path(), &[&nowhere[..], &files].concat());
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("[mesh_address_unspecified, --mesh-listen]"), "{said}");
    let told = |more: &[&str]| refused(folder.path(), &[&nowhere[..], &files, more].concat()).1;
    for address in ["0.0.0.0:4482", "127.0.0.1:0", "node.example:0"] {
        let said = told(&["--mesh-advertise", address]);
        assert!(said.contains("[mesh_address_unspecified, --mesh-advertise]"), "{said}");
    }
    let long = format!("{}:1", "n".repeat(300));
    assert!(told(&["--mesh-advertise", &long]).contains("[mesh_address_too_long, --mesh-advertise]"));
    // With one that others can come to, the start goes on to its certificate.
    let said = told(&["--mesh-advertise", "node.example:4482"]);
    assert!(!said.contains("unspecified") && said.contains("(exit code"), "{said}");
}

#[test]
fn a_store_beyond_loopback_serves_under_a_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, at) = store_on(folder.path(), "0.0.0.0:0".parse().unwrap(), true);
    assert!(at.ip().is_unspecified());
    let at = format!("127.0.0.1:{}", at.port());
    let words = secured(folder.path(), "n", ROLES);
    let words = ["--roles", ROLES, "--store-at", &at]
        .into_iter()
        .chain(words.iter().map(String::as_str));
    let mut place = Place::new(&words.collect::<Vec<_>>());
    let mut node = place.start();
    assert_eq!((node.stop(), store.stop()), (Some(0), Some(0)));
}

#[test]
fn a_start_says_what_is_wrong_with_its_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let base = [
        "serve",
        "--roles",
        "store",
        "--mesh-listen",
        "127.0.0.1:0",
        "--data",
        "store",
    ];
    let own = secured(folder.path(), "store", "store");
    let with = |words: &[String], change: &dyn Fn(&mut Vec<String>)| {
        let mut words: Vec<String> = base
            .iter()
            .map(|word| (*word).to_owned())
            .chain(words.to_vec())
            .collect();
        change(&mut words);
        refused(folder.path(), &words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let after = |words: &mut Vec<String>, flag: &str, value: String| {
        let at = words.iter().position(|word| word == flag).unwrap();
        words[at + 1] = value;
    };
    let other = secured(folder.path(), "worker", "worker");
    let file = |name: &str| folder.path().join(name).display().to_string();
    let cases: &[(&str, &[String], &str, String)] = &[
        ("mesh_certificate_node", &own, "--node", "other".to_owned()),
        ("mesh_certificate_roles", &other, "--node", "worker".to_owned()),
        (
            "mesh_certificate_invalid",
            &own,
            "--mesh-key",
            file("certs-worker/node-key.pem"),
        ),
        (
            "mesh_certificate_invalid",
            &own,
            "--mesh-cert",
            file("certs-worker/node-key.pem"),
        ),
        ("mesh_file_unreadable", &own, "--mesh-ca", file("nothing.pem")),
    ];
    for (code, words, flag, value) in cases {
        let (exit, said) = with(words, &|words| after(words, flag, value.clone()));
        assert_eq!(exit, Some(73), "{said}");
        assert!(said.contains(code), "{code}: {said}");
    }
    assert!(!folder.path().join("store").exists(), "nothing was made");
    // A store of a cell, and a CA made for another one.
    let (mut store, _) = store_on(folder.path(), "127.0.0.1:0".parse().unwrap(), true);
    assert_eq!(store.stop(), Some(0));
    std::fs::rename(folder.path().join("ca"), folder.path().join("ca-before")).unwrap();
    std::fs::rename(folder.path().join("certs-store"), folder.path().join("before")).unwrap();
    let (exit, said) = with(&secured(folder.path(), "store", "store"), &|_| {});
    assert_eq!(exit, Some(73), "{said}");
    assert!(
        said.contains("mesh_certificate_cell") && said.contains("fencepost certs ca --cell"),
        "{said}"
    );
}

#[test]
fn a_node_without_a_certificate_does_not_reach_a_store_under_one() {
    let folder = tempfile::tempdir().unwrap();
    let (store, at) = store_on(folder.path(), "127.0.0.1:0".parse().unwrap(), true);
    let at = at.to_string();
    let secret = folder.path().join("mesh-secret");
    std::fs::write(&secret, "fp_0123456789abcdef0123456789abcdef").unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut plain = Place::new(&[
        "--roles",
        ROLES,
        "--store-at",
        &at,
        "--mesh-secret",
        &secret.display().to_string(),
    ]);
    let node = plain.spawn();
    until_true("it is told what to do", || node.said().contains("tls-required"));
    until_true("and so is the store's log", || store.said().contains("tls-required"));
    assert!(!node.said().contains(" on http://"));
}

#[test]
fn a_store_at_work_keeps_its_certificate_when_new_files_are_no_good_and_takes_up_good_ones() {
    let folder = tempfile::tempdir().unwrap();
    let (store, at) = store_on(folder.path(), "127.0.0.1:0".parse().unwrap(), true);
    let cert = folder.path().join("certs-store/node.pem");
    let good = std::fs::read(&cert).unwrap();
    std::fs::write(&cert, &good[..good.len() / 2]).unwrap();
    until_true("it says that it keeps the one before", || {
        store.said().contains("the certificate before goes on")
    });
    let words = secured(folder.path(), "n", ROLES);
    let at = at.to_string();
    let words = ["--roles", ROLES, "--store-at", &at]
        .into_iter()
        .chain(words.iter().map(String::as_str));
    let mut place = Place::new(&words.collect::<Vec<_>>());
    let mut node = place.start();
    let page = node.api().call("GET", "/metrics", &[], None).unwrap().body.to_string();
    assert!(
        page.contains("fencepost_mesh_certificate_expires_timestamp_seconds"),
        "{page}"
    );
    assert_eq!(node.stop(), Some(0));
}
