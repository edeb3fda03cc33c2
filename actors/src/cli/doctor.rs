//! `fencepost doctor`: what stands in the way of a sound server, each line with a next step.
//!
//! Owns: the checks of folder, token, disk, sync, limits, clock and server. Must never: change a store, or
//! stop at the first trouble. Next: `client.rs`; `GET /v1/facts` for the server's own side.

use super::client::{Call, Client, DATA_DEFAULT, ServerArgs};
use super::failure::Failure;
use super::output::{Format, OutputArgs, cell, one_line, put, show_table};
use super::settings::FileArgs;
use crate::api::text;
use crate::api::token::{TOKEN_FILE, read_token};
use crate::clock::{Clock as _, SharedClock, SystemClock};
use crate::config::Setting;
use crate::config::file::Source;
use crate::config::table::{DATA, MESH_CA, MESH_CERT, MESH_KEY, MESH_STORE_AT};
use crate::mesh::tls::TlsFiles;
use crate::problem::{Exit, plain};
use clap::Args;
use fencepost_core::limits::{
    CERTIFICATE_WARN_DAYS, DISK_FREE_MIN_BYTES, DOCTOR_CLOCK_GAP_MS, DOCTOR_CONNECT_MS, DOCTOR_SYNC_COUNT,
    HTTP_CONNECTION_COUNT_MAX,
};
use fencepost_core::time::StoreTime;
use fencepost_core::zone::ZoneVersion;
use fencepost_storage::fjall_store::{FreeSpace as _, StatvfsProbe, glance};
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Folder of the store and the token; the file's, or ./fencepost-data, by default.
    #[arg(long, value_name = "FOLDER", env = "FENCEPOST_DATA", hide_env_values = true)]
    data: Option<PathBuf>,
    /// Where a node without the store role finds it; the file's by default.
    #[arg(long, value_name = "HOST:PORT", env = MESH_STORE_AT.env, hide_env_values = true)]
    store_at: Option<String>,
    /// Certificate of the cell's CA; with the other two, or the file's, this node's certificate is checked.
    #[arg(long, value_name = "FILE", env = MESH_CA.env, hide_env_values = true)]
    mesh_ca: Option<PathBuf>,
    /// Certificate of this node.
    #[arg(long, value_name = "FILE", env = MESH_CERT.env, hide_env_values = true)]
    mesh_cert: Option<PathBuf>,
    /// Its key.
    #[arg(long, value_name = "FILE", env = MESH_KEY.env, hide_env_values = true)]
    mesh_key: Option<PathBuf>,
    #[command(flatten)]
    file: FileArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    server: ServerArgs,
}

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Ok,
    Warn,
    Fail,
}

/// Where to look, and what was found on the way.
struct Told {
    data: PathBuf,
    store_at: Option<String>,
    certificate: Option<TlsFiles>,
    findings: Vec<Finding>,
}

/// One line of the report.
#[derive(Debug)]
struct Finding {
    check: &'static str,
    level: Level,
    detail: String,
    fix: &'static str,
}

fn ok(check: &'static str, detail: impl Into<String>) -> Finding {
    Finding {
        check,
        level: Level::Ok,
        detail: detail.into(),
        fix: "",
    }
}

fn warn(check: &'static str, detail: impl Into<String>, fix: &'static str) -> Finding {
    Finding {
        check,
        level: Level::Warn,
        detail: detail.into(),
        fix,
    }
}

fn fail(check: &'static str, detail: impl Into<String>, fix: &'static str) -> Finding {
    Finding {
        check,
        level: Level::Fail,
        detail: detail.into(),
        fix,
    }
}

impl DoctorArgs {
    /// The form of output that errors follow.
    pub fn format(&self) -> Format {
        self.output.output
    }

    /// Runs every check; exit code 1 if one of them failed.
    ///
    /// # Errors
    /// Standard output is gone.
    pub async fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let clock = SystemClock::new();
        let Told {
            data,
            mut store_at,
            certificate,
            mut findings,
        } = self.told()?;
        let (of_server, is_elsewhere) = self.ask_server(&data, &clock).await;
        findings.extend([check_folder(&data), check_token(&data, &self.server)]);
        if let Some(at) = &store_at {
            findings.push(check_address(at).await);
        }
        if is_elsewhere {
            store_at.get_or_insert_with(|| "another node's, says the server".to_owned());
        }
        if data.is_dir() {
            findings.push(check_store(&data, store_at.as_deref()));
            findings.extend([check_room(&data), check_sync(&data, &clock)]);
        }
        findings.extend([check_handles(), ok("zone data", ZoneVersion::bundled().to_string())]);
        findings.extend(certificate.map(|files| check_certificate(&files)));
        findings.extend(of_server);
        show(self.output.output, &findings, out)?;
        let failed = findings.iter().any(|finding| finding.level == Level::Fail);
        Ok(if failed { Exit::Failed } else { Exit::Ok })
    }

    /// What flags, variables and the file say of the folder and the store.
    fn told(&self) -> Result<Told, Failure> {
        let mut told = Told {
            data: PathBuf::from(DATA_DEFAULT),
            store_at: None,
            certificate: None,
            findings: Vec::new(),
        };
        let mut files = [None, None, None];
        if let Some(path) = &self.file.config {
            let said = Source::read(path).map_err(|error| Failure::file(path, &error))?.parse();
            let text = |setting: &Setting| said.values.get(setting.path).map(|(value, _)| value.to_string());
            told.data = text(&DATA).map_or(told.data, PathBuf::from);
            told.store_at = text(&MESH_STORE_AT);
            files = [&MESH_CA, &MESH_CERT, &MESH_KEY].map(|setting| text(setting).map(PathBuf::from));
            told.findings.push(match said.mistakes.len() {
                0 => ok("settings", path.display().to_string()),
                count => fail(
                    "settings",
                    format!("{count} mistakes in {}", path.display()),
                    "see them with 'fencepost config check'",
                ),
            });
        }
        told.data = self.data.clone().unwrap_or(told.data);
        told.store_at = self.store_at.clone().or(told.store_at);
        let [ca, cert, key] = files;
        let named = (
            self.mesh_ca.clone().or(ca),
            self.mesh_cert.clone().or(cert),
            self.mesh_key.clone().or(key),
        );
        if let (Some(ca), Some(cert), Some(key)) = named {
            told.certificate = Some(TlsFiles { ca, cert, key });
        }
        Ok(told)
    }

    /// What the server says, and whether its store is on another node.
    async fn ask_server(&self, data: &Path, clock: &SystemClock) -> (Vec<Finding>, bool) {
        let server = ServerArgs {
            token_file: self.server.token_file.clone().or_else(|| Some(data.join(TOKEN_FILE))),
            ..self.server.clone()
        };
        let facts = match Client::new(&server) {
            Ok(client) => client.call(Call::get("/v1/facts")).await,
            Err(failure) => Err(failure),
        };
        let now = StoreTime(clock.wall());
        let mut is_elsewhere = false;
        let findings = match facts {
            Ok(reply) => match serde_json::from_slice::<Value>(&reply.body) {
                Ok(facts) => {
                    is_elsewhere = cell(&facts, &["engine"]).starts_with("remote");
                    judge_server(&facts, now)
                }
                Err(error) => vec![fail(
                    "server",
                    format!("its answer cannot be read: {error}"),
                    "use the server's version",
                )],
            },
            Err(failure) if failure.exit == Exit::Unreachable => {
                let fix = "start it, or name it with --server, to have the store, the clock and the version checked";
                vec![warn("server", one_line(&failure.problem.detail), fix)]
            }
            Err(failure) => vec![fail(
                "server",
                one_line(&failure.problem.detail),
                "see the line above about the token",
            )],
        };
        (findings, is_elsewhere)
    }
}

/// Whether somebody listens where the store should be.
async fn check_address(at: &str) -> Finding {
    let fix = "start the process with the store, or correct --store-at";
    let connecting = tokio::net::TcpStream::connect(at);
    match tokio::time::timeout(Duration::from_millis(DOCTOR_CONNECT_MS), connecting).await {
        Ok(Ok(_)) => ok("store's address", format!("{at} takes connections")),
        Ok(Err(error)) => fail("store's address", format!("{at}: {}", plain(&error)), fix),
        Err(_) => fail("store's address", format!("{at} does not answer"), fix),
    }
}

fn check_folder(folder: &Path) -> Finding {
    let shown = folder.display();
    match fs::metadata(folder) {
        Err(error) => warn(
            "data folder",
            format!("{shown}: {}", plain(&error)),
            "start the server once, or name it with --data",
        ),
        Ok(meta) if !meta.is_dir() => fail(
            "data folder",
            format!("{shown} is no folder"),
            "name another with --data",
        ),
        Ok(meta) if meta.mode() & 0o077 != 0 => {
            let detail = format!("{shown} can be entered by others (mode {:o})", meta.mode() & 0o777);
            fail("data folder", detail, "chmod 700 it: it holds payloads and the token")
        }
        Ok(_) => ok("data folder", format!("{shown}, for its owner alone")),
    }
}

fn check_token(folder: &Path, server: &ServerArgs) -> Finding {
    let file = server.token_file.clone().unwrap_or_else(|| folder.join(TOKEN_FILE));
    match read_token(&file) {
        Ok(_) => ok("token", format!("{}, for its owner alone", file.display())),
        Err(refusal) if refusal.code == "token_file_mode" => fail("token", refusal.detail, "chmod 600 it"),
        Err(refusal) => warn(
            "token",
            refusal.detail,
            "start the server once, or name the file with --token-file",
        ),
    }
}

/// What a start would make of a node's certificate.
fn check_certificate(files: &TlsFiles) -> Finding {
    let clock: SharedClock = Arc::new(SystemClock::new());
    let kit = match files.load(&clock) {
        Ok(kit) => kit,
        Err(refusal) => {
            let detail = one_line(&format!("{} ({})", refusal.detail, refusal.code));
            let fix = "put good files there; a node that runs goes on with what it had, and would not start again";
            return fail("certificate", detail, fix);
        }
    };
    let days = kit.days_left(&clock);
    let detail = format!("{}, {days} days left", kit.identity());
    match days < CERTIFICATE_WARN_DAYS {
        true => warn("certificate", detail, "make a new one with 'fencepost certs node'"),
        false => ok("certificate", detail),
    }
}

/// What the small files beside the database say; the journal is judged by the next start.
fn check_store(folder: &Path, elsewhere: Option<&str>) -> Finding {
    match glance(folder) {
        Ok(Some(acknowledged)) => ok("store files", format!("whole, acknowledged up to {acknowledged}")),
        Ok(None) => match elsewhere {
            Some(at) => ok("store files", format!("none here; the store is {at}")),
            None => warn("store files", "no store is in this folder", "start the server once"),
        },
        Err(error) => fail("store files", format!("{error} ({})", error.code()), error.next_step()),
    }
}

fn check_room(folder: &Path) -> Finding {
    match StatvfsProbe::new(folder).free_bytes() {
        Err(error) => warn("disk", format!("its room is not known: {error}"), "look at the mount"),
        Ok(free) if free < DISK_FREE_MIN_BYTES => {
            let detail = format!("{} MiB free: the server refuses new jobs", free >> 20);
            fail("disk", detail, "free some room, or move the data folder")
        }
        Ok(free) if free < DISK_FREE_MIN_BYTES * 8 => {
            warn("disk", format!("{} MiB free", free >> 20), "free some room soon")
        }
        Ok(free) => ok("disk", format!("{} MiB free", free >> 20)),
    }
}

/// Times small synced writes beside the store; every acknowledgement waits for one such sync.
fn check_sync(folder: &Path, clock: &SystemClock) -> Finding {
    let path = folder.join(format!(".doctor-{}", std::process::id()));
    let times = probe_sync(&path, clock);
    let _ = fs::remove_file(&path);
    let mut times = match times {
        Ok(times) => times,
        Err(error) => {
            return fail(
                "sync",
                format!("a synced write failed: {error}"),
                "check the rights and the disk",
            );
        }
    };
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or(0);
    let worst = times.last().copied().unwrap_or(0);
    let detail = format!(
        "median {:.2} ms, worst {:.2} ms of {DOCTOR_SYNC_COUNT}",
        median as f64 / 1e3,
        worst as f64 / 1e3
    );
    match median {
        0..=19 => warn(
            "sync",
            detail,
            "too fast for a disk: memory, or a disk that acknowledges early; mind power loss",
        ),
        20..=50_000 => ok("sync", detail),
        _ => warn(
            "sync",
            detail,
            "every acknowledgement waits for a sync: use a faster disk",
        ),
    }
}

fn probe_sync(path: &Path, clock: &SystemClock) -> std::io::Result<Vec<u64>> {
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    (0..DOCTOR_SYNC_COUNT)
        .map(|_| {
            let began = clock.mono();
            file.write_all(&[0; 4_096])?;
            file.sync_data()?;
            Ok(clock.mono().since(began).0)
        })
        .collect()
}

fn check_handles() -> Finding {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let wanted = HTTP_CONNECTION_COUNT_MAX as u64 * 2;
    match limit {
        Some(limit) if limit < wanted => {
            let detail = format!("{limit} file handles, {wanted} wanted");
            warn("file handles", detail, "raise the limit (ulimit -n, LimitNOFILE)")
        }
        Some(limit) => ok("file handles", limit.to_string()),
        None => ok("file handles", "no limit"),
    }
}

/// Further apart than this, clocks are worth a look.
const CLOCK_GAP_MICROS: u64 = DOCTOR_CLOCK_GAP_MS * 1_000;

fn judge_server(facts: &Value, now: StoreTime) -> Vec<Finding> {
    let text = |key: &str| cell(facts, &[key]);
    let yes = |key: &str| facts.get(key) == Some(&Value::Bool(true));
    let mut findings = vec![
        match (yes("ready"), yes("draining")) {
            (true, false) => ok("server", "ready"),
            (_, true) => warn("server", "draining", "wait for its end, then start it again"),
            _ => warn("server", not_ready(facts), "see its log"),
        },
        match text("version") == env!("CARGO_PKG_VERSION") {
            true => ok("version", text("version")),
            false => warn(
                "version",
                format!("server {}", text("version")),
                "use a command line of the server's version",
            ),
        },
        ok("store", of_store(facts)),
    ];
    findings.push(judge_clock(&text("store_time"), yes("clock_doubt"), now));
    findings.push(judge_offset(facts));
    findings.push(match text("zone_version") == ZoneVersion::bundled().to_string() {
        true => ok("server's zone data", text("zone_version")),
        false => warn(
            "server's zone data",
            text("zone_version"),
            "previews here may differ from what fires there",
        ),
    });
    findings.push(match facts.get("quarantined").and_then(Value::as_u64) {
        Some(0) => ok("quarantine", "empty"),
        _ => fail(
            "quarantine",
            format!("{} rows", text("quarantined")),
            "see GET /v1/quarantine; edit or delete what it names",
        ),
    });
    findings
}

/// A node without the store knows of its sequence what it heard at its start, which says nothing now.
fn of_store(facts: &Value) -> String {
    let text = |key: &str| cell(facts, &[key]);
    let (engine, shards) = (text("engine"), text("shards"));
    let whose = format!("{engine} · cell {} · generation {}", text("cell"), text("generation"));
    match engine.starts_with("remote") {
        true => format!("{whose} · {shards} shards"),
        false => {
            let chain: String = text("chain").chars().take(16).collect();
            let high_water = text("high_water");
            format!("{whose} · {shards} shards · high water {high_water} · chain {chain}")
        }
    }
}

/// With the reasons that a server of this version gives.
fn not_ready(facts: &Value) -> String {
    let said = facts.get("reasons").and_then(Value::as_array);
    let reasons: Vec<&str> = said.into_iter().flatten().filter_map(Value::as_str).collect();
    match reasons.is_empty() {
        true => "not ready".to_owned(),
        false => format!("not ready: {}", reasons.join("; ")),
    }
}

fn judge_clock(stated: &str, doubt: bool, now: StoreTime) -> Finding {
    if doubt {
        let fix = "set the machine's clock right, or, if it is right now, run 'fencepost clock confirm'; the doubt \
                   ends by itself once the clock has run steadily for five minutes";
        return fail("clock", format!("in doubt at {stated}: nothing fires"), fix);
    }
    let gap = text::parse_instant(stated).map_or(u64::MAX, |at| at.0.abs_diff(now.0));
    match gap {
        0..=CLOCK_GAP_MICROS => ok("clock", format!("{stated}, {} ms from here", gap / 1_000)),
        _ => warn(
            "clock",
            format!("{stated}, {} s from here", gap / 1_000_000),
            "compare both machines with a time server",
        ),
    }
}

/// The server's own measure: with its bounds, unlike the one from here.
fn judge_offset(facts: &Value) -> Finding {
    let offset = |end: &str| facts.pointer(&format!("/clock_offset/{end}")).and_then(Value::as_i64);
    let Some((low, high)) = offset("low_ms").zip(offset("high_ms")) else {
        return warn("clock offset", "not measured", "see whether the store answers");
    };
    let most = facts.get("clock_offset_max_ms").and_then(Value::as_u64).unwrap_or(0);
    let detail = format!("{low} to {high} ms from the store's, at most {most}");
    match facts.get("clock_holds_back") == Some(&Value::Bool(true)) {
        false => ok("clock offset", detail),
        true => fail(
            "clock offset",
            format!("{detail}: this node takes and gives no work"),
            "set the clock of this machine, or of the store's; it goes on by itself",
        ),
    }
}

fn show(format: Format, findings: &[Finding], out: &mut dyn Write) -> Result<(), Failure> {
    let word = |level: Level| match level {
        Level::Ok => "ok",
        Level::Warn => "warn",
        Level::Fail => "fail",
    };
    let item = |finding: &Finding| json!({ "check": finding.check, "level": word(finding.level), "detail": finding.detail, "fix": finding.fix });
    match format {
        Format::Json => put(
            out,
            &Value::from(findings.iter().map(item).collect::<Vec<_>>()).to_string(),
        ),
        Format::Jsonl => findings
            .iter()
            .try_for_each(|finding| put(out, &item(finding).to_string())),
        Format::Text => {
            let row = |finding: &Finding| {
                let level = word(finding.level).to_owned();
                vec![
                    level,
                    finding.check.to_owned(),
                    finding.detail.clone(),
                    finding.fix.to_owned(),
                ]
            };
            show_table(
                out,
                vec!["", "CHECK", "FOUND", "NEXT STEP"],
                findings.iter().map(row).collect(),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(findings: &[Finding], check: &str) -> Option<Level> {
        findings
            .iter()
            .find(|finding| finding.check == check)
            .map(|finding| finding.level)
    }

    #[test]
    fn a_server_in_doubt_or_with_quarantined_rows_fails() {
        let now = text::parse_instant("2026-01-01T00:00:00Z").unwrap();
        let mut facts = json!({
            "version": env!("CARGO_PKG_VERSION"), "ready": true, "draining": false, "quarantined": 0, "clock_doubt": false,
            "store_time": "2026-01-01T00:00:01Z", "zone_version": ZoneVersion::bundled().to_string(),
            "clock_offset": {"low_ms": -1, "high_ms": 2}, "clock_offset_max_ms": 1_000, "clock_holds_back": false,
        });
        let good = judge_server(&facts, now);
        assert!(good.iter().all(|finding| finding.level == Level::Ok), "{good:?}");
        facts["quarantined"] = json!(2);
        facts["clock_doubt"] = json!(true);
        facts["clock_holds_back"] = json!(true);
        let bad = judge_server(&facts, now);
        assert_eq!(
            (level(&bad, "quarantine"), level(&bad, "clock")),
            (Some(Level::Fail), Some(Level::Fail))
        );
        assert_eq!(level(&bad, "clock offset"), Some(Level::Fail));
        facts["clock_offset"] = Value::Null;
        assert_eq!(level(&judge_server(&facts, now), "clock offset"), Some(Level::Warn));
        facts["clock_doubt"] = json!(false);
        facts["store_time"] = json!("2026-01-01T01:00:00Z");
        assert_eq!(level(&judge_server(&facts, now), "clock"), Some(Level::Warn));
    }

    #[test]
    fn an_open_folder_fails_and_a_private_one_does_not() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(check_folder(folder.path()).level, Level::Fail);
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(check_folder(folder.path()).level, Level::Ok);
        assert_ne!(check_sync(folder.path(), &SystemClock::new()).level, Level::Fail);
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            0,
            "the probe leaves nothing behind"
        );
    }
}
