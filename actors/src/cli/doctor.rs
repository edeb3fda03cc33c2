//! `fencepost doctor`: what stands in the way of a sound server, each line with a next step.
//!
//! Owns: the checks of folder, token, disk, sync, limits, clock and server. Must never: change a store, or
//! stop at the first trouble. Next: `client.rs`; `GET /v1/facts` for the server's own side.

use super::client::{Call, Client, ServerArgs, given_token};
use super::doctor_node::{NodeArgs, Part, Told};
use super::doctor_server::{Keeps, judge_server, keeps};
use super::failure::Failure;
use super::output::{Format, OutputArgs, one_line, put, show_table};
use crate::api::token::{TOKEN_FILE, read_token};
use crate::clock::{Clock as _, SharedClock, SystemClock};
use crate::mesh::tls::TlsFiles;
use crate::problem::{Exit, plain};
use clap::Args;
use fencepost_core::limits::{
    CERTIFICATE_WARN_DAYS, DISK_FREE_MIN_BYTES, DOCTOR_CONNECT_MS, DOCTOR_SYNC_COUNT, HTTP_CONNECTION_COUNT_MAX,
};
use fencepost_core::time::StoreTime;
use fencepost_core::zone::ZoneVersion;
use fencepost_storage::fjall_store::{FreeSpace as _, StatvfsProbe, glance};
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Other than for commands that know nothing of a node.
pub(super) const SERVER_HELP: &str = "Where the node's server listens; by default where its settings \
                                      (FENCEPOST_LISTEN or the file) put it, else http://127.0.0.1:4480";
pub(super) const TOKEN_HELP: &str = "File with the node's token; the file token in its folder by default";

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    server: ServerArgs,
}

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Ok,
    Warn,
    Fail,
}

/// One line of the report.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) level: Level,
    detail: String,
    fix: &'static str,
}

pub(super) fn ok(check: &'static str, detail: impl Into<String>) -> Finding {
    Finding {
        check,
        level: Level::Ok,
        detail: detail.into(),
        fix: "",
    }
}

pub(super) fn warn(check: &'static str, detail: impl Into<String>, fix: &'static str) -> Finding {
    Finding {
        check,
        level: Level::Warn,
        detail: detail.into(),
        fix,
    }
}

pub(super) fn fail(check: &'static str, detail: impl Into<String>, fix: &'static str) -> Finding {
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
    /// Standard output is gone, or the file of settings cannot be read.
    pub async fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let clock = SystemClock::new();
        let mut told = self.node.told()?;
        let mut findings: Vec<_> = told.settings.take().into_iter().collect();
        let (of_api, keeps) = self.check_api(&told, &clock).await;
        let has_folder = told.part != Part::Worker && keeps != Keeps::InMemory;
        if has_folder {
            findings.push(check_folder(&told.data));
        }
        if told.part == Part::WithApi && (has_folder || given_token().is_some()) {
            findings.push(check_token(&told.data, &self.server));
        }
        if let Some(at) = &told.store_at {
            findings.push(check_address("store's address", at, STORE_SILENT).await);
        }
        if keeps == Keeps::Elsewhere {
            told.store_at
                .get_or_insert_with(|| "another node's, says the server".to_owned());
        }
        if has_folder && told.data.is_dir() {
            findings.push(check_store(&told.data, told.store_at.as_deref()));
            findings.extend([check_room(&told.data), check_sync(&told.data, &clock)]);
        }
        findings.extend([check_handles(), ok("zone data", ZoneVersion::bundled().to_string())]);
        findings.extend(told.certificate.as_ref().map(check_certificate));
        findings.extend(of_api);
        show(self.output.output, &findings, out)?;
        let failed = findings.iter().any(|finding| finding.level == Level::Fail);
        Ok(if failed { Exit::Failed } else { Exit::Ok })
    }

    /// What the node's server says, and where it keeps what it knows. A node without an API is judged by
    /// what it has.
    async fn check_api(&self, told: &Told, clock: &SystemClock) -> (Vec<Finding>, Keeps) {
        match told.part {
            Part::WithApi => self.ask_server(told, clock).await,
            Part::Worker => (
                vec![ok("server", "none: a node that only works has no API")],
                Keeps::Here,
            ),
            Part::Store => {
                let none = "none: the store alone has no API; the cell's other nodes say what they hear from it";
                let mut findings = Vec::new();
                if let Some(at) = &told.mesh_listen {
                    let mut listener = check_address("listener for nodes", at, STORE_STOPPED).await;
                    // As with a server that does not run: that may be meant.
                    if listener.level == Level::Fail {
                        listener.level = Level::Warn;
                    }
                    findings.push(listener);
                }
                findings.push(ok("server", none));
                (findings, Keeps::Here)
            }
        }
    }

    /// Where the server is, and its token: as flags say, else as the node was told.
    fn server(&self, told: &Told) -> ServerArgs {
        let of_node = told.api.as_ref().map(|at| format!("http://{at}"));
        ServerArgs {
            server: self.server.server.clone().or(of_node),
            token_file: self
                .server
                .token_file
                .clone()
                .or_else(|| Some(told.data.join(TOKEN_FILE))),
            ..self.server.clone()
        }
    }

    async fn ask_server(&self, told: &Told, clock: &SystemClock) -> (Vec<Finding>, Keeps) {
        let server = self.server(told);
        let facts = match Client::new(&server) {
            Ok(client) => client.call(Call::get("/v1/facts")).await,
            Err(failure) if *failure.problem.code == *"token_unreadable" => Err(nobody_or(&server, failure).await),
            Err(failure) => Err(failure),
        };
        let now = StoreTime(clock.wall());
        match facts {
            Ok(reply) => match serde_json::from_slice::<Value>(&reply.body) {
                Ok(facts) => (judge_server(server.at(), &facts, now), keeps(&facts)),
                Err(error) => {
                    let detail = format!("its answer cannot be read: {error}");
                    (vec![fail("server", detail, "use the server's version")], Keeps::Here)
                }
            },
            Err(failure) => (vec![unasked(&failure)], Keeps::Here),
        }
    }
}

const STORE_SILENT: &str = "start the process with the store, or correct --store-at";
const STORE_STOPPED: &str = "start it, or correct --mesh-listen";

/// Without a token: before the first start there is neither a token nor a server.
async fn nobody_or(server: &ServerArgs, failure: Failure) -> Failure {
    match Client::without_token(server) {
        Ok(client) => client.answer(Call::get("/readyz")).await.err().unwrap_or(failure),
        Err(wrong) => wrong,
    }
}

/// Why a server was not asked.
fn unasked(failure: &Failure) -> Finding {
    let detail = one_line(&failure.problem.detail);
    match failure.exit {
        Exit::Unreachable => {
            let fix = "start it, or name it with --server, to have the store, the clock and the version checked";
            warn("server", detail, fix)
        }
        Exit::Permission if &*failure.problem.code == "token_wrong" => {
            let fix = "name that server's own with --token-file, or --data; or another server with --server";
            fail("server", detail, fix)
        }
        Exit::Permission => fail("server", detail, "see the line above about the token"),
        _ => fail("server", detail, "correct --server, or look at the server's log"),
    }
}

/// Whether somebody listens where somebody should.
async fn check_address(check: &'static str, at: &str, fix: &'static str) -> Finding {
    let connecting = tokio::net::TcpStream::connect(at);
    match tokio::time::timeout(Duration::from_millis(DOCTOR_CONNECT_MS), connecting).await {
        Ok(Ok(_)) => ok(check, format!("{at} takes connections")),
        Ok(Err(error)) => fail(check, format!("{at}: {}", plain(&error)), fix),
        Err(_) => fail(check, format!("{at} does not answer"), fix),
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
    if given_token().is_some() {
        return ok("token", "from FENCEPOST_TOKEN");
    }
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
        Ok(Some(seen)) => {
            let detail = format!(
                "whole · cell {:032x} · acknowledged up to {}",
                seen.cell, seen.acknowledged
            );
            ok("store files", detail)
        }
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
