//! A real server process: files it makes, refusals before it serves, its end, backup and restore.

use crate::support::server::Server;
use crate::{fencepost, run};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// A server that works in this folder, with these words more.
pub(crate) fn start(folder: &Path, more: &[&str]) -> Server {
    let words = ["serve", "--listen", "127.0.0.1:0", "--shards", "2"];
    let words: Vec<_> = words.iter().chain(more).copied().collect();
    let token = folder.join("fencepost-data/token");
    Server::start(fencepost(folder, &words), folder.join("said"), token)
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_server_keeps_its_files_private_serves_and_drains_on_term() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(folder.path(), &[]);
    let data = folder.path().join("fencepost-data");
    assert_eq!((mode(&data), mode(&data.join("token"))), (0o700, 0o600));
    let ask = |words: &[&str]| {
        let mut command = fencepost(folder.path(), words);
        crate::ended(command.env("FENCEPOST_SERVER", server.url()).output().unwrap())
    };
    let (code, id, err) = ask(&["job", "create", "--handler", "noop"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(ask(&["job", "wait", id.trim()]).0, 0);
    let words = ["schedule", "create", "s", "--cron", "0 3 * * *", "--handler", "noop"];
    assert_eq!(ask(&words).0, 0);
    let words = [
        "schedule",
        "create",
        "p",
        "--every",
        "1h",
        "--paused",
        "--handler",
        "noop",
    ];
    assert_eq!(ask(&words).1, "p  paused\n");
    let words = [
        "schedule",
        "create",
        "past",
        "--at-local",
        "2026-01-01T00:00:00",
        "--handler",
        "noop",
    ];
    let (code, _, err) = ask(&words);
    assert!(code == 0 && err.contains("note: that instant has passed"), "{err}");
    let (code, out, err) = ask(&["schedule", "edit", "s", "--cron", "0 4 * * *", "--dry-run"]);
    let first = out.lines().next().unwrap_or_default();
    let pair = first.split_once('\t').unwrap_or_else(|| panic!("{out}{err}"));
    assert!(
        code == 0 && pair.0.ends_with("T03:00:00Z") && pair.1.ends_with("T04:00:00Z"),
        "before and after, side by side: {out}{err}"
    );
    assert!(err.contains("nothing was changed"), "{err}");
    let refused = ask(&["job", "create", "--", "true"]);
    assert_eq!(refused.0, 4, "command targets are off until allowed: {}", refused.2);
    assert!(refused.2.contains("command_not_allowed"), "{}", refused.2);
    let (code, out, err) = ask(&["doctor", "-o", "jsonl"]);
    assert!(code == 0 && out.contains("\"check\":\"store\""), "{out}{err}");
    let mut other = fencepost(folder.path(), &["job", "list"]);
    other
        .env("FENCEPOST_SERVER", server.url())
        .env("FENCEPOST_TOKEN", "another-servers-token");
    let (code, _, err) = crate::ended(other.output().unwrap());
    assert!(code == 4 && err.contains("It is from FENCEPOST_TOKEN"), "{err}");
    let (code, out, err) = ask(&["clock", "confirm", "-o", "json"]);
    assert!(code == 0 && out.contains("\"was_in_doubt\":false"), "{out}{err}");
    let second = fencepost(folder.path(), &["serve", "--listen", "127.0.0.1:0"])
        .output()
        .unwrap();
    assert_eq!(
        second.status.code(),
        Some(72),
        "a second process is refused by the lock"
    );
    assert!(String::from_utf8_lossy(&second.stderr).contains("fencepost: "));
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn logs_and_metrics_hold_no_secrets_and_no_endless_labels() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(
        folder.path(),
        &["--log", "json", "--log-level", "trace", "--allow-authorization"],
    );
    let token = std::fs::read_to_string(folder.path().join("fencepost-data/token")).unwrap();
    let ask = |words: &[&str]| {
        let mut command = fencepost(folder.path(), words);
        crate::ended(command.env("FENCEPOST_SERVER", server.url()).output().unwrap())
    };
    let (code, id, err) = ask(&["job", "create", "--handler", "noop", "--payload", "\"s3cr3t-payload\""]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(ask(&["job", "wait", id.trim()]).0, 0);
    let create = [
        "job",
        "create",
        "--http",
        "http://example.org/",
        "--header",
        "authorization: s3cr3t-header",
        "--delay",
        "1h",
    ];
    assert_eq!(ask(&create).0, 0);
    assert_eq!(ask(&["job", "show", "job_x"]).0, 3);
    let address = server.address();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let request =
        format!("GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {token}");
    let request = request.trim_end().to_owned() + "\r\n\r\n";
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    let mut page = String::new();
    std::io::Read::read_to_string(&mut stream, &mut page).unwrap();
    for name in [
        "fencepost_http_request_duration_seconds",
        "fencepost_attempts_total",
        "fencepost_start_delay_seconds",
    ] {
        assert!(page.contains(name), "{name}: {page}");
    }
    assert!(
        page.contains("route=\"/v1/jobs/{id}\"") && !page.contains(id.trim()),
        "{page}"
    );
    assert_eq!(server.stop(), Some(0));
    let log = server.said();
    let lines: Vec<_> = log.lines().collect();
    assert!(lines.len() > 3, "{log}");
    for said in [" on http://", "store: ", "fencepost: stopping"] {
        assert!(log.contains(said), "{said}: {log}");
    }
    for line in &lines {
        let event: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        assert!(event["level"].is_string() && event["timestamp"].is_string(), "{line}");
    }
    assert!(
        log.contains("\"code\":\"job_not_found\"") && log.contains("req_"),
        "{log}"
    );
    for secret in [token.trim(), "s3cr3t"] {
        assert!(!log.contains(secret) && !page.contains(secret), "{secret} leaked");
    }
}

#[test]
fn a_level_leaves_lines_of_the_log_out_and_not_where_the_server_is() {
    let folder = tempfile::tempdir().unwrap();
    let log = |level: &str| {
        let mut server = start(folder.path(), &["--log", "json", "--log-level", level]);
        assert_eq!(server.stop(), Some(0));
        server.said()
    };
    let (loud, quiet) = (log("info"), log("error"));
    assert!(loud.contains("\"message\":\"ready\""), "{loud}");
    assert!(!quiet.contains("\"message\":\"ready\""), "{quiet}");
    assert!(quiet.contains(" on http://127.0.0.1:"), "{quiet}");
}

#[test]
fn a_server_that_does_not_start_says_why_in_the_form_of_its_log() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let words = ["serve", "--listen", "127.0.0.1:0", "--log", "json", "--data", "file"];
    let (code, out, err) = run(folder.path(), &words);
    assert_eq!((code, out.as_str()), (72, ""), "{err}");
    let last: serde_json::Value = serde_json::from_str(err.lines().last().unwrap()).unwrap();
    let message = last["message"].as_str().unwrap();
    assert!(
        last["level"] == "ERROR" && message.contains("not started (exit code 72)"),
        "{err}"
    );
    assert!(err.contains("Cannot use file: it is not a folder"), "{err}");
}

#[test]
fn a_store_is_backed_up_and_restored_with_a_new_generation() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(folder.path(), &[]);
    let url = server.url();
    let create = [
        "job",
        "create",
        "--handler",
        "noop",
        "--delay",
        "1h",
        "--delivery",
        "at-most-once",
        "--server",
        &url,
    ];
    let (code, id, err) = run(folder.path(), &create);
    assert_eq!(code, 0, "{err}");
    assert_eq!(server.stop(), Some(0));
    let store = |words: &[&str]| run(folder.path(), &[&["store"], words].concat());
    assert_eq!(store(&["backup", "fencepost-data", "copy"]).0, 0);
    assert_eq!(
        store(&["backup", "fencepost-data", "copy"]).0,
        5,
        "never over what is there"
    );
    assert_eq!(store(&["backup", "none", "other"]).0, 3);
    let (code, out, err) = store(&["restore", "copy", "restored", "-o", "json"]);
    assert_eq!(code, 0, "{err}");
    let done: serde_json::Value = serde_json::from_str(&out).unwrap();
    let generation = done["generation"].as_u64().unwrap();
    // The seconds since 1970, far beyond what restores count up to.
    assert!(generation > 1_700_000_000, "{done}");
    assert_eq!(done["unreadable"].as_u64(), Some(0), "{done}");
    let named = store(&["restore", "copy", "named", "--generation", "40", "-o", "json"]).1;
    assert!(named.contains("\"generation\":40"), "{named}");
    let mut server = start(folder.path(), &["--data", "restored"]);
    let url = server.url();
    let token = folder.path().join("restored/token");
    let show = [
        "job",
        "show",
        id.trim(),
        "--server",
        &url,
        "--token-file",
        token.to_str().unwrap(),
        "-o",
        "json",
    ];
    let (code, out, err) = run(folder.path(), &show);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains(id.trim()), "{out}");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn an_address_beyond_loopback_and_a_damaged_folder_are_refused_with_codes_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, err) = run(folder.path(), &["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(code, 73, "{err}");
    assert!(err.contains("loopback") || err.contains("encryption"), "{err}");
    let data = folder.path().join("bad");
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::write(data.join("IDENTITY"), "rubbish").unwrap();
    let (code, _, err) = run(folder.path(), &["serve", "--data", "bad", "--listen", "127.0.0.1:0"]);
    assert_eq!(code, 72, "{err}");
}

#[test]
fn a_start_that_cannot_listen_has_made_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let owner = [
        "serve",
        "--roles",
        "scheduler,worker,gateway,coordinator",
        "--store-at",
        "127.0.0.1:1",
    ];
    let starts: &[&[&str]] = &[
        &["serve", "--listen", &taken],
        &["dev", "--listen", &taken],
        &["serve", "--listen", "0.0.0.0:0"],
        &["serve", "--roles", "store", "--mesh-listen", &taken],
        &[&owner[..], &["--listen", &taken]].concat(),
        &[&owner[..], &["--listen", "127.0.0.1:0", "--mesh-listen", &taken]].concat(),
    ];
    for words in starts {
        let mut command = fencepost(folder.path(), words);
        command.env("FENCEPOST_MESH_SECRET", "a-secret-for-the-test");
        let (code, _, err) = crate::ended(command.output().unwrap());
        assert_eq!(code, 73, "{words:?}: {err}");
        assert!(
            !err.contains("os error") && !err.contains(".:") && !err.contains(". ("),
            "{err}"
        );
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert!(left.is_empty(), "{words:?} left {left:?}");
    }
}

#[test]
fn doctor_works_without_a_server_and_fails_on_an_open_folder() {
    let folder = crate::folder_with_token();
    let data = folder.path().join("fencepost-data");
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o700)).unwrap();
    let words = ["doctor", "--server", "http://127.0.0.1:1", "-o", "json"];
    let (code, out, err) = run(folder.path(), &words);
    assert_eq!(code, 0, "{err}{out}");
    let lines: serde_json::Value = serde_json::from_str(&out).unwrap();
    for line in lines.as_array().unwrap() {
        let fixed = line["level"] == "ok" || !line["fix"].as_str().unwrap().is_empty();
        assert!(fixed && line["level"] != "fail", "{line}");
    }
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(run(folder.path(), &words).0, 1);
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::write(data.join("IDENTITY"), "rubbish").unwrap();
    let (code, out, _) = run(folder.path(), &words);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("store_damaged"), "{out}");
}

/// What doctor found of a check: exit code, level, words.
fn found(folder: &Path, words: &[&str], check: &str) -> (i32, String, String) {
    let (code, out, err) = run(folder, &[&["doctor", "-o", "jsonl"], words].concat());
    let mut lines = out
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let line = lines.find(|line| line["check"] == check);
    let line = line.unwrap_or_else(|| panic!("no {check}: {out}{err}"));
    let text = |key: &str| line[key].as_str().unwrap().to_owned();
    (code, text("level"), text("detail"))
}

#[test]
fn doctor_finds_the_server_where_the_file_of_settings_puts_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(folder.path(), &[]);
    let settings = format!("[api]\nlisten = \"{}\"\n", server.address());
    std::fs::write(folder.path().join("node.toml"), settings).unwrap();
    let (code, level, detail) = found(folder.path(), &["--config", "node.toml"], "server");
    assert_eq!((code, level.as_str()), (0, "ok"), "{detail}");
    assert_eq!(detail, format!("ready at {}", server.url()));
    let elsewhere = ["--config", "node.toml", "--server", "http://127.0.0.1:1"];
    assert_eq!(found(folder.path(), &elsewhere, "server").1, "warn", "a flag wins");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn doctor_judges_a_store_alone_by_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let write = |at: &str| {
        let settings = format!("roles = [\"store\"]\ndata = \"store\"\n[mesh]\nlisten = \"{at}\"\n");
        std::fs::write(folder.path().join("store.toml"), settings).unwrap();
    };
    write("127.0.0.1:0");
    let words = ["--config", "store.toml"];
    assert_eq!(
        found(folder.path(), &words, "data folder").0,
        0,
        "before its first start"
    );
    let serve = fencepost(folder.path(), &["serve", "--config", "store.toml"]);
    let (mut store, at) = Server::start_store(serve, folder.path().join("said"));
    write(&at.to_string());
    let (code, level, detail) = found(folder.path(), &words, "listener for nodes");
    assert_eq!((code, level.as_str()), (0, "ok"), "{detail}");
    let (_, _, detail) = found(folder.path(), &words, "store files");
    assert!(
        detail.contains(" · cell ") && detail.contains("acknowledged up to"),
        "{detail}"
    );
    for told in [&words[..], &["--data", "store"]] {
        let (code, level, detail) = found(folder.path(), told, "server");
        assert_eq!((code, level.as_str()), (0, "ok"), "{told:?}: {detail}");
    }
    assert_eq!(store.stop(), Some(0));
    let (code, level, _) = found(folder.path(), &words, "listener for nodes");
    assert_eq!((code, level.as_str()), (0, "warn"));
}

#[test]
fn doctor_knows_a_node_whose_store_is_elsewhere() {
    let folder = crate::folder_with_token();
    let data = folder.path().join("fencepost-data");
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o700)).unwrap();
    let store = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = store.local_addr().unwrap().to_string();
    let settings = format!("roles = [\"scheduler\"]\n[mesh]\nstore_at = \"{at}\"\n");
    std::fs::write(folder.path().join("node.toml"), settings).unwrap();
    let found = |more: &[&str], check: &str| {
        let words = [&["--server", "http://127.0.0.1:1"], more].concat();
        let (code, level, _) = found(folder.path(), &words, check);
        (code, level)
    };
    assert_eq!(found(&[], "store files"), (0, "warn".into()));
    for more in [&["--store-at", at.as_str()][..], &["--config", "node.toml"]] {
        assert_eq!(found(more, "store files"), (0, "ok".into()), "{more:?}");
        assert_eq!(found(more, "store's address"), (0, "ok".into()), "{more:?}");
    }
    drop(store);
    assert_eq!(found(&["--store-at", &at], "store's address"), (1, "fail".into()));
}
