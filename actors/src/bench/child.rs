//! A whole server in a process of its own, on a folder that a rig has filled.
//!
//! Owns: starting this same binary with `serve`, and what the kernel says about it. Linux only, as it
//! reads `/proc`. Must never: outlive the bench. Next: `pending.rs`.

use crate::api::text::parse_instant;
use crate::api::token::{TOKEN_FILE, read_token};
use crate::bench::http::{Connection, Peer};
use crate::bench::rig::NODE;
use crate::clock::{Clock, SystemClock};
use crate::config::SETTINGS;
use crate::config::table::FILE_VARIABLE;
use fencepost_core::time::{Monotonic, Span};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

/// How long a fire is waited for.
const PATIENCE: Span = Span::from_secs(60);
/// What a server says once it serves, before its address.
const SERVES: &str = "on http://";

/// A running server.
pub struct ServerProcess {
    child: Child,
    clock: SystemClock,
    /// By the wall clock, as the store's is.
    spawned_at: i64,
    spawned: Monotonic,
    /// From there until it was ready.
    pub until_ready: Span,
    connection: Connection,
    _said: BufReader<ChildStderr>,
}

impl ServerProcess {
    /// Starts it and waits until it is ready.
    pub async fn start(folder: &Path, lanes: usize) -> Result<ServerProcess, String> {
        let clock = SystemClock::new();
        let (spawned_at, spawned) = (clock.wall(), clock.mono());
        let child = spawn(folder, lanes).map_err(|error| format!("the server process did not start: {error}"))?;
        let mut child = Reaped(Some(child));
        let (said, address) = child.until_it_serves()?;
        let until_ready = clock.mono().since(spawned);
        let token = read_token(&folder.join(TOKEN_FILE)).map_err(|refusal| refusal.to_string())?;
        let address = address.parse().map_err(|_| format!("the server named {address}"))?;
        let connection = Connection::open(Peer { address, token }).await?;
        let child = child.0.take().ok_or("the server process is gone")?;
        Ok(ServerProcess {
            child,
            clock,
            spawned_at,
            spawned,
            until_ready,
            connection,
            _said: said,
        })
    }

    /// From the start of the process to the instant at which the schedule's job was made.
    pub async fn first_fire(&mut self, schedule: &str) -> Result<Span, String> {
        let path = format!("/v1/jobs?schedule={schedule}");
        loop {
            let (status, body) = self.connection.get(&path).await?;
            let page: serde_json::Value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
            if let Some(at) = page.pointer("/items/0/created_at").and_then(|at| at.as_str()) {
                let at = parse_instant(at).map_err(|refusal| refusal.to_string())?;
                let micros = at.0 - self.spawned_at;
                return u64::try_from(micros)
                    .map(Span)
                    .map_err(|_| "the schedule fired before the server started".to_owned());
            }
            if !status.is_success() || self.clock.mono().since(self.spawned) > PATIENCE {
                return Err(format!("{schedule} did not fire; {path} was answered with {status}"));
            }
            self.clock.sleep(Span::from_millis(5)).await;
        }
    }

    /// Resident memory now and at its most, in MiB.
    pub fn memory(&self) -> Result<(f64, f64), String> {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let mib = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field));
            let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
            kib.map(|kib| kib / 1_024.0)
                .ok_or_else(|| format!("{path} lacks {field}"))
        };
        Ok((mib("VmRSS:")?, mib("VmHWM:")?))
    }

    /// Share of a core that it uses in the time to come.
    pub async fn share_of_a_core(&self, time: Span) -> Result<f64, String> {
        let (before, began) = (self.processor_ns()?, self.clock.mono());
        self.clock.sleep(time).await;
        let spent = self.processor_ns()? - before;
        Ok(spent / 1e9 / self.clock.mono().since(began).to_std().as_secs_f64())
    }

    /// Nanoseconds on a processor, over all its threads.
    fn processor_ns(&self) -> Result<f64, String> {
        let folder = format!("/proc/{}/task", self.child.id());
        let failed = |error: std::io::Error| format!("{folder}: {error}");
        let mut sum = 0.0;
        for thread in std::fs::read_dir(&folder).map_err(failed)? {
            let path = thread.map_err(failed)?.path().join("schedstat");
            let text = std::fs::read_to_string(path).unwrap_or_default();
            sum += text
                .split_whitespace()
                .next()
                .and_then(|ns| ns.parse::<f64>().ok())
                .unwrap_or(0.0);
        }
        Ok(sum)
    }

    /// Lets it drain and end.
    pub fn stop(mut self) -> Result<(), String> {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            kill_process(pid, Signal::TERM).map_err(|error| error.to_string())?;
        }
        let ended = self.child.wait().map_err(|error| error.to_string())?;
        if ended.success() {
            return Ok(());
        }
        Err(format!("the server process ended with {ended}"))
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Killed unless it is taken out.
struct Reaped(Option<Child>);

impl Reaped {
    /// Reads what it says until it names its address.
    fn until_it_serves(&mut self) -> Result<(BufReader<ChildStderr>, String), String> {
        let said = self.0.as_mut().and_then(|child| child.stderr.take());
        let mut said = BufReader::new(said.ok_or("the server process has no standard error")?);
        let mut all = String::new();
        loop {
            let start = all.len();
            let read = said.read_line(&mut all).map_err(|error| error.to_string())?;
            let line = all.get(start..).unwrap_or_default();
            if let Some((_, address)) = line.split_once(SERVES) {
                return Ok((said, address.trim().to_owned()));
            }
            if read == 0 {
                return Err(format!("the server process ended: {all}"));
            }
        }
    }
}

impl Drop for Reaped {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn spawn(folder: &Path, lanes: usize) -> std::io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("serve").arg("--data").arg(folder);
    command.args(["--listen", "127.0.0.1:0", "--log-level", "error", "--node", NODE]);
    command.arg("--threads").arg(lanes.to_string());
    let settings = SETTINGS.iter().map(|setting| setting.env);
    for name in settings.chain([FILE_VARIABLE, "FENCEPOST_LOG"]) {
        command.env_remove(name);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command.spawn()
}
