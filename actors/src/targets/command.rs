//! Runs a program under a supervisor of its own.
//!
//! Owns: what the program is told and how its end is judged. Must never: start a program directly (it would
//! outlive a killed server), or wait without end. Next: `supervise`, the other end of the three pipes.

use fencepost_core::limits::LAST_OUTPUT_MS;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use fencepost_core::job::{EffectProof, Outcome, RetryAdvice, Verdict};
use fencepost_core::target::CommandTarget;
use fencepost_core::time::Span;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::attempt::{AttemptContext, failed, stopped, succeeded, with_error};
use super::check::check_command;
use super::signal::{CancelSignal, StopReason};
use super::supervise::{Report, SUPERVISE};
use super::tail::OutputTail;

/// What a program inherits from the server's environment, if it is there; nothing else.
const BASE_ENV: &[&str] = &[
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
];

/// How long output is awaited after the end: only what left the program's group can hold the pipe.
const LAST_OUTPUT: Duration = Duration::from_millis(LAST_OUTPUT_MS);

/// Why the program was told to stop.
#[derive(Clone, Copy)]
enum Stop {
    Asked(StopReason),
    TimedOut,
}

/// Carries out one attempt. Ends within the time-out plus the target's grace.
pub async fn run_command(
    supervisor: Option<&Path>,
    target: &CommandTarget,
    attempt: &AttemptContext,
    cancel: &CancelSignal,
) -> Outcome {
    if let Err(problem) = check_command(target) {
        return failed(
            RetryAdvice::Stop,
            EffectProof::NoEffect,
            &problem.to_string(),
            OutputTail::default(),
        );
    }
    if let Some(reason) = cancel.requested() {
        return stopped(reason, EffectProof::NoEffect, OutputTail::default());
    }
    let (lease_count, lease) = cancel.lease();
    match Supervised::start(supervisor, target, attempt, lease, lease_count) {
        Ok(run) => run.finish(target, attempt, cancel).await,
        Err(error) => {
            let error = format!("command_not_started: {}", error.kind());
            failed(
                RetryAdvice::ByPolicy,
                EffectProof::NoEffect,
                &error,
                OutputTail::default(),
            )
        }
    }
}

/// A running supervisor and the three pipes to it.
struct Supervised {
    child: Child,
    /// Orders; closing it ends the program.
    orders: Option<ChildStdin>,
    reports: Lines<BufReader<ChildStdout>>,
    output: Option<ChildStderr>,
    lease_count: u64,
    tail: OutputTail,
    group: Option<i32>,
}

impl Supervised {
    fn start(
        supervisor: Option<&Path>,
        target: &CommandTarget,
        attempt: &AttemptContext,
        lease: Option<Span>,
        lease_count: u64,
    ) -> std::io::Result<Self> {
        let mut command = Command::new(supervisor.unwrap_or(&this_program()?));
        command.arg0("command-supervisor").arg(SUPERVISE);
        command.arg(target.grace.as_millis().to_string());
        command.arg(lease.map_or_else(|| "-".to_owned(), |left| left.as_millis().to_string()));
        command.arg("--").args(words(target));
        command.env_clear().envs(environment(target, attempt));
        if let Some(directory) = &target.directory {
            command.current_dir(directory);
        }
        command
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let missing = || std::io::Error::other("a pipe is missing");
        let reports = BufReader::new(child.stdout.take().ok_or_else(missing)?).lines();
        let (orders, output) = (child.stdin.take(), child.stderr.take());
        Ok(Self {
            child,
            orders,
            reports,
            output,
            lease_count,
            tail: OutputTail::default(),
            group: None,
        })
    }

    async fn finish(mut self, target: &CommandTarget, attempt: &AttemptContext, cancel: &CancelSignal) -> Outcome {
        let payload = &attempt.payload.bytes;
        let mut first = format!("payload {}\n", payload.len()).into_bytes();
        first.extend_from_slice(payload);
        self.order(&first).await;
        let (report, stop) = self.watch(target, attempt, cancel).await;
        self.orders = None;
        if report.is_none() {
            self.kill_orphans();
        }
        self.read_last_output().await;
        // The supervisor has reported or is gone; reaping it cannot take long.
        tokio::time::timeout(LAST_OUTPUT, self.child.wait()).await.ok();
        judge(report, stop, self.tail)
    }

    /// Relays orders and output until the supervisor's last report; `None` if it ended without one.
    async fn watch(
        &mut self,
        target: &CommandTarget,
        attempt: &AttemptContext,
        cancel: &CancelSignal,
    ) -> (Option<Report>, Option<Stop>) {
        let mut stop = None;
        let timeout = tokio::time::timeout(attempt.timeout.to_std(), std::future::pending::<()>());
        // A supervisor that does not report after its own KILL is not waited for.
        let patience = attempt.timeout + target.grace + Span::from_millis(LAST_OUTPUT_MS * 10);
        let last = tokio::time::timeout(patience.to_std(), std::future::pending::<()>());
        let (mut timeout, mut last) = (std::pin::pin!(timeout), std::pin::pin!(last));
        let mut chunk = [0_u8; 8192];
        loop {
            tokio::select! {
                biased;
                line = self.reports.next_line() => match line.ok().flatten().as_deref().and_then(Report::parse) {
                    Some(Report::Started(group)) => self.group = Some(group),
                    ended => return (ended, stop),
                },
                reason = cancel.stopped(), if stop.is_none() => {
                    stop = Some(Stop::Asked(reason));
                    self.order(b"stop\n").await;
                }
                _ = &mut timeout, if stop.is_none() => {
                    stop = Some(Stop::TimedOut);
                    self.order(b"stop\n").await;
                }
                (count, left) = cancel.lease_extended(self.lease_count) => {
                    self.lease_count = count;
                    self.order(format!("lease {}\n", left.as_millis()).as_bytes()).await;
                }
                _ = &mut last => return (None, stop),
                // Last, so that endless output cannot keep an order waiting.
                read = read_some(&mut self.output, &mut chunk) => match read {
                    Some(count) => self.tail.push(chunk.get(..count).unwrap_or_default()),
                    None => self.output = None,
                },
            }
        }
    }

    /// A supervisor that is gone takes no orders; its end is seen on the reports.
    async fn order(&mut self, bytes: &[u8]) {
        if let Some(orders) = &mut self.orders {
            orders.write_all(bytes).await.ok();
        }
    }

    async fn read_last_output(&mut self) {
        let mut chunk = [0_u8; 8192];
        let (output, tail) = (&mut self.output, &mut self.tail);
        if output.is_none() {
            return;
        }
        let rest = async {
            while let Some(count) = read_some(output, &mut chunk).await {
                tail.push(chunk.get(..count).unwrap_or_default());
            }
        };
        tokio::time::timeout(LAST_OUTPUT, rest).await.ok();
    }

    /// The supervisor died under its program: end the program's group ourselves.
    fn kill_orphans(&self) {
        if let Some(group) = self.group.and_then(rustix::process::Pid::from_raw) {
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        }
    }
}

/// The next piece of output; `None` at its end, and for ever pending once the end was seen.
async fn read_some(output: &mut Option<ChildStderr>, chunk: &mut [u8]) -> Option<usize> {
    match output {
        None => std::future::pending().await,
        Some(pipe) => pipe.read(chunk).await.ok().filter(|count| *count > 0),
    }
}

/// This very program; on Linux also after its file was replaced by a newer one.
fn this_program() -> std::io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        Ok("/proc/self/exe".into())
    } else {
        std::env::current_exe()
    }
}

fn words(target: &CommandTarget) -> Vec<OsString> {
    if target.shell {
        vec!["/bin/sh".into(), "-c".into(), target.argv.join(" ").into()]
    } else {
        target.argv.iter().map(Into::into).collect()
    }
}

/// A cleaned base, the target's own variables, and last the facts, which nothing can overwrite.
fn environment(target: &CommandTarget, attempt: &AttemptContext) -> Vec<(OsString, OsString)> {
    let base = BASE_ENV
        .iter()
        .filter_map(|name| Some(((*name).into(), std::env::var_os(name)?)));
    let own = target.env.iter().map(|(name, value)| (name.into(), value.into()));
    let facts = [
        ("FENCEPOST_JOB", Some(attempt.job.to_string())),
        ("FENCEPOST_IDEMPOTENCY_KEY", Some(attempt.idempotency_key())),
        ("FENCEPOST_TOKEN", Some(attempt.token.to_string())),
        ("FENCEPOST_ATTEMPT", Some(attempt.attempt.to_string())),
        ("FENCEPOST_SCHEDULED_FOR", Some(attempt.scheduled_for_text())),
        ("FENCEPOST_SCHEDULE", attempt.schedule.as_ref().map(ToString::to_string)),
    ];
    let facts = facts
        .into_iter()
        .filter_map(|(name, value)| Some((name.into(), value?.into())));
    base.chain(own).chain(facts).collect()
}

fn judge(report: Option<Report>, stop: Option<Stop>, tail: OutputTail) -> Outcome {
    let effect = EffectProof::Unproven;
    let by_policy = RetryAdvice::ByPolicy;
    match (report, stop) {
        (Some(Report::NotStarted(why)), _) => failed(
            by_policy,
            EffectProof::NoEffect,
            &format!("command_not_started: {why}"),
            tail,
        ),
        (_, Some(Stop::Asked(reason))) => stopped(reason, effect, tail),
        (_, Some(Stop::TimedOut)) => with_error(
            Verdict::TimedOut { effect },
            "timed_out: the command was told to stop",
            tail,
        ),
        (Some(Report::Exited(0)), None) => succeeded(tail),
        (Some(Report::Exited(code)), None) => failed(
            by_policy,
            effect,
            &format!("command_exit: the command ended with exit code {code}"),
            tail,
        ),
        (Some(Report::Signalled(signal)), None) => failed(
            by_policy,
            effect,
            &format!("command_signal: the command was ended by signal {signal}"),
            tail,
        ),
        (Some(Report::LeaseOver), None) => failed(
            by_policy,
            effect,
            "command_lease_over: the lease ended and the command was stopped",
            tail,
        ),
        (Some(Report::Started(_)) | None, None) => failed(
            by_policy,
            effect,
            "command_supervisor_lost: the command's supervisor ended without a report",
            tail,
        ),
    }
}
