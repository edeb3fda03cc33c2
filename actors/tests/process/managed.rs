//! A server under a service manager and as the first process of a container; the unit and the image that ship.
//!
//! Owns: `deploy/` as far as it can be tried here. Next: `../../src/process/notify.rs`, `../../src/process/init.rs`.

use crate::closed_shard::{place_with_a_shut_shard, runs_a_job};
use crate::pace::{until, until_true};
use crate::server::{Place, Server};
use fencepost::process::exit::{PANIC, STORE_BROKEN};
use fencepost_core::limits::SERVICE_READY_MS;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

fn deploy(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(name)
}

fn is_there(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}

/// A manager's end of its socket, which lies in the folder, and what names it to a server.
fn manager() -> (tempfile::TempDir, UnixDatagram, String) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("notify");
    let manager = UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let named = format!("NOTIFY_SOCKET={}", socket.display());
    (folder, manager, named)
}

/// A server that is told of a manager.
fn managed(variables: &[&str]) -> (tempfile::TempDir, UnixDatagram, Server) {
    let (folder, manager, named) = manager();
    let words = [&["env", &named], variables].concat();
    let server = Place::new(&[]).started_by(&words).start();
    (folder, manager, server)
}

/// The next word that the manager is told.
fn hear_all(manager: &UnixDatagram) -> String {
    let mut word = [0; 1_024];
    let length = manager.recv(&mut word).expect("a word within the time-out");
    String::from_utf8_lossy(&word[..length]).into_owned()
}

/// The same without words for people.
fn hear(manager: &UnixDatagram) -> String {
    loop {
        let word = hear_all(manager);
        if !word.starts_with("STATUS=") {
            return word;
        }
    }
}

#[test]
fn a_manager_is_told_of_readiness_life_and_the_end() {
    let (_folder, manager, mut server) = managed(&["WATCHDOG_USEC=300000"]);
    let mut heard = Vec::new();
    until_true("readiness, and a sign of life after it", || {
        heard.push(hear(&manager));
        heard.iter().any(|word| word == "READY=1") && heard.ends_with(&["WATCHDOG=1".to_owned()])
    });
    server.terminate();
    until_true("the word about the end", || hear(&manager) == "STOPPING=1");
    assert_eq!(server.exit_code(), Some(0));
}

#[test]
fn signs_of_life_for_another_process_are_not_given() {
    let (_folder, manager, mut server) = managed(&["WATCHDOG_USEC=1000", "WATCHDOG_PID=1"]);
    assert_eq!(server.stop(), Some(0));
    assert_eq!([hear(&manager), hear(&manager)], ["READY=1", "STOPPING=1"]);
}

#[test]
fn a_shard_that_stays_shut_is_told_and_keeps_no_node_from_being_ready() {
    let (_folder, manager, named) = manager();
    let mut place = place_with_a_shut_shard().started_by(&["env", &named]);
    let mut server = place.spawn();
    let mut heard = Vec::new();
    let is_told = |word: &String| word.starts_with("STATUS=15 of 16 shards are open; shard ");
    while !(heard.iter().any(|word| word == "READY=1") && heard.iter().any(is_told)) {
        heard.push(hear_all(&manager));
    }
    assert!(server.said().contains(" on http://"), "{}", server.said());
    let mut api = server.api();
    runs_a_job(&mut api);
    let answer = api.get("/readyz");
    assert_eq!(answer.status, 503, "the shard is still shut: {}", answer.body);
    let reasons = &api.get("/v1/facts").expect(200)["reasons"];
    assert_eq!(*reasons, answer.body["reasons"], "doctor says so too");
    assert_eq!(server.stop(), Some(0), "{}", server.said());
}

#[test]
fn a_node_that_waits_for_its_store_asks_the_manager_for_time() {
    let (folder, manager, named) = manager();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = nobody.local_addr().unwrap().to_string();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "0123456789abcdef").unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let secret = secret.display().to_string();
    for roles in [crate::split::ROLES, "worker"] {
        let words = ["--roles", roles, "--store-at", &at, "--mesh-secret", &secret];
        let mut place = Place::new(&words).started_by(&["env", &named]);
        let mut server = place.spawn();
        let word = hear_all(&manager);
        assert!(
            word.starts_with("STATUS=waiting for the ") && word.contains(&at),
            "{word}"
        );
        assert!(word.contains("\nEXTEND_TIMEOUT_USEC=30000000"), "{word}");
        assert_eq!(server.stop(), Some(0), "{}", server.said());
    }
}

/// Children of a process.
fn children(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

fn is_zombie(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'))
}

#[test]
fn the_first_process_of_a_container_buries_orphans_and_passes_signals_on() {
    let unshare = ["unshare", "--pid", "--fork", "--mount-proc"];
    let tried = Command::new(unshare[0]).args(&unshare[1..]).arg("true").output();
    if !tried.is_ok_and(|output| output.status.success()) {
        return println!("not run: process namespaces are not allowed here");
    }
    let mut place = Place::new(&[]).started_by(&unshare);
    let mut server = place.start();
    let first = until("the first process", || children(server.pid()).first().copied());
    let child = until("the server under it", || children(first).first().copied());
    let mut api = server.api();
    // What leaves its group is not killed with it, and loses its parent.
    let leave = json!({"target": {"type": "command", "argv": ["setsid sleep 0.1 & sleep 0.3"], "shell": true}});
    let id = api.post("/v1/jobs", &leave).expect(201)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let done = api.get(&format!("/v1/jobs/{id}/wait?timeout=60")).expect(200);
    assert_eq!(done["state"], "succeeded", "{done}");
    until_true("no orphan is left", || {
        let left = children(first);
        left == [child] && !left.iter().any(|pid| is_zombie(*pid))
    });
    let health = Command::new(env!("CARGO_BIN_EXE_fencepost"))
        .args(["health", "--server", &server.url()])
        .output()
        .unwrap();
    assert!(health.status.success(), "{health:?}");
    kill_process(Pid::from_raw(i32::try_from(first).unwrap()).unwrap(), Signal::TERM).unwrap();
    assert_eq!(server.exit_code(), Some(0), "{}", server.said());
}

#[test]
fn health_tells_a_server_from_none() {
    let mut place = Place::new(&[]);
    let server: Server = place.start();
    let ask = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
        command.args(["health", "--server", &server.url()]).args(words);
        command.env_remove("FENCEPOST_TOKEN").output().unwrap().status.code()
    };
    assert_eq!((ask(&[]), ask(&["--live"])), (Some(0), Some(0)), "without any token");
    server.freeze(true);
    assert_eq!(ask(&["--timeout", "1s"]), Some(6));
    server.freeze(false);
}

#[test]
fn the_unit_is_sound() {
    let unit = std::fs::read_to_string(deploy("systemd/fencepost.service")).unwrap();
    for line in [
        "Type=notify",
        "WatchdogSec=60",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "DynamicUser=yes",
    ] {
        assert!(unit.lines().any(|found| found == line), "{line}");
    }
    let hides = |line: &str| line.starts_with("ProcSubset=");
    assert!(!unit.lines().any(hides), "the time since the boot is read from /proc");
    let start = unit.lines().find_map(|line| line.strip_prefix("TimeoutStartSec="));
    let start: u64 = start.unwrap().parse().unwrap();
    assert!(
        start * 1_000 > 2 * SERVICE_READY_MS,
        "it is ready long before it is given up"
    );
    if !is_there("systemd-analyze") {
        return println!("not run: systemd-analyze is not there");
    }
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("fencepost.service");
    std::fs::write(
        &copy,
        unit.replace("/usr/local/bin/fencepost", env!("CARGO_BIN_EXE_fencepost")),
    )
    .unwrap();
    let offline = ["security", "--offline=true", "--threshold=20", "--no-pager"];
    let rated = Command::new("systemd-analyze")
        .args(offline)
        .arg(&copy)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&rated.stdout).into_owned() + &String::from_utf8_lossy(&rated.stderr);
    if text.contains("nknown option") || text.contains("unrecognized option") {
        return println!("not run: this systemd-analyze cannot rate a file");
    }
    println!("{}", text.lines().last().unwrap_or_default());
    assert!(rated.status.success(), "exposure is above 2.0:\n{text}");
}

#[test]
fn what_a_person_has_to_mend_is_not_started_again_and_again() {
    let unit = std::fs::read_to_string(deploy("systemd/fencepost.service")).unwrap();
    let list = unit
        .lines()
        .find_map(|line| line.strip_prefix("RestartPreventExitStatus="));
    let prevented: Vec<u8> = list.unwrap().split(' ').map(|code| code.parse().unwrap()).collect();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("wrong.toml"), "lisen = 1").unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    for (words, code, says) in [
        (&["--config", "missing.toml"][..], 2, "[file_unreadable]"),
        (&["--no-such-flag"], 2, "[usage, --no-such-flag]"),
        (&["--config", "wrong.toml"], 8, "[config_key_unknown, lisen]"),
        (&["--listen", "127.0.0.1:0", "--data", "file"], 72, "[store_io]"),
        (&["--listen", "0.0.0.0:0"], 73, ", listen]"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
        let ended = command.arg("serve").args(words).current_dir(&folder).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(i32::from(code)), "{words:?}: {said}");
        assert!(prevented.contains(&code), "{code}");
        let mut lines = said.lines().skip_while(|line| !line.starts_with("error: "));
        let (error, hint) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        assert!(error.ends_with(says) && hint.starts_with("hint: "), "{words:?}: {said}");
    }
    for code in [STORE_BROKEN, PANIC] {
        assert!(
            !prevented.contains(&code),
            "{code}: nothing would fire until somebody looks"
        );
    }
}

#[test]
fn the_image_runs_without_root_and_with_a_probe() {
    let file = std::fs::read_to_string(deploy("container/Containerfile")).unwrap();
    let last = file.rsplit_once("\nFROM ").unwrap().1;
    for line in [
        "USER 65532:65532",
        "STOPSIGNAL SIGTERM",
        "VOLUME [\"/var/lib/fencepost\"]",
        "ENV FENCEPOST_TOKEN_FILE=/var/lib/fencepost/token",
    ] {
        assert!(last.lines().any(|found| found == line), "{line}");
    }
    assert!(last.contains("HEALTHCHECK") && last.contains("\"health\""));
    assert!(!last.contains("ADD ") && !last.contains(":latest") && !last.contains("RUN "));
}
