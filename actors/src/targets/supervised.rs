//! The server's hand on one supervisor: its pipes, its process and the group of its command.
//!
//! Owns: that the command's group ends, also when its supervisor is dead, stopped or late. Must never: wait
//! without end, or let the command begin before its group is known. Next: `supervise`, the other end of the
//! pipes; `command`, which judges what came out.

use std::ffi::OsString;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use fencepost_core::limits::{LAST_OUTPUT_MS, SUPERVISOR_LATE_MS};
use fencepost_core::time::Span;
use futures_util::future::BoxFuture;
use rustix::io::ioctl_fionread;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::attempt::AttemptContext;
use super::gate::this_program;
use super::group::{Group, is_stopped_or_dead};
use super::signal::{CancelSignal, StopReason};
use super::supervise::{Report, SUPERVISE};
use super::tail::OutputTail;
use crate::clock::{Clock as _, SystemClock};

/// How long output is awaited after the end: only what left the program's group can hold the pipe.
const LAST_OUTPUT: Duration = Duration::from_millis(LAST_OUTPUT_MS);

/// How long a supervisor may take to do what it is told.
const LATE: Duration = Duration::from_millis(SUPERVISOR_LATE_MS);

/// What a supervisor is started with.
pub(super) struct Start<'a> {
    /// Its program; `None` is this very one.
    pub(super) supervisor: Option<&'a Path>,
    /// The command.
    pub(super) words: Vec<OsString>,
    /// All variables of the command.
    pub(super) environment: Vec<(OsString, OsString)>,
    /// Its folder.
    pub(super) directory: Option<&'a str>,
    /// Between TERM and KILL.
    pub(super) grace: Span,
    /// Limit of the attempt; it counts from the start, as the lease does, and not from the hand-over of the payload.
    pub(super) timeout: Span,
}

/// Why the program was told to stop.
#[derive(Clone, Copy)]
pub(super) enum Stop {
    Asked(StopReason),
    TimedOut,
    LeaseOver,
}

/// How it ended.
pub(super) struct End {
    /// The supervisor's last report; `None` if it ended without one, or had to be ended.
    pub(super) report: Option<Report>,
    pub(super) stop: Option<Stop>,
    /// The program was let run.
    pub(super) began: bool,
    pub(super) tail: OutputTail,
}

/// A running supervisor and the three pipes to it.
pub(super) struct Supervised {
    child: Child,
    /// Orders; closing it ends the program.
    orders: Option<ChildStdin>,
    reports: Lines<BufReader<ChildStdout>>,
    output: Option<ChildStderr>,
    grace: Duration,
    time_out: BoxFuture<'static, ()>,
    lease_count: u64,
    lease_over: BoxFuture<'static, ()>,
    clock: SystemClock,
    tail: OutputTail,
    group: Option<Group>,
    began: bool,
    ended: bool,
}

impl Supervised {
    pub(super) fn start(start: &Start<'_>, cancel: &CancelSignal) -> std::io::Result<Self> {
        let (lease_count, lease_left) = cancel.lease();
        let time_out = alarm(start.timeout.to_std());
        let lease_over = lease_left.map_or_else(never, |left| alarm(left.to_std()));
        let program = start
            .supervisor
            .map_or_else(this_program, |path| Ok(PathBuf::from(path)))?;
        let mut command = Command::new(program);
        command.arg0("command-supervisor").arg(SUPERVISE);
        command.arg(start.grace.as_millis().to_string());
        command.arg(lease_left.map_or_else(|| "-".to_owned(), |left| left.as_millis().to_string()));
        command.arg("--").args(&start.words);
        command.env_clear().envs(start.environment.iter().cloned());
        if let Some(directory) = start.directory {
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
            grace: start.grace.to_std(),
            time_out,
            lease_count,
            lease_over,
            clock: SystemClock::new(),
            tail: OutputTail::default(),
            group: None,
            began: false,
            ended: false,
        })
    }

    /// Sees the command to its end.
    pub(super) async fn finish(mut self, attempt: &AttemptContext, cancel: &CancelSignal) -> End {
        let (report, stop) = match self.hand_over(attempt, cancel).await {
            Some(stop) => (None, Some(stop)),
            None => self.watch(cancel).await,
        };
        self.orders = None;
        if report.is_none() {
            self.end_by_force();
        }
        self.read_last_output().await;
        // The supervisor has reported or is gone; reaping it cannot take long, unless somebody stopped it.
        if timeout(LAST_OUTPUT, self.child.wait()).await.is_err() {
            self.end_by_force();
            timeout(LAST_OUTPUT, self.child.wait()).await.ok();
        }
        self.ended = true;
        End {
            report,
            stop,
            began: self.began,
            tail: std::mem::take(&mut self.tail),
        }
    }

    /// Writes the payload. A stop that comes meanwhile is answered: nothing has begun yet. Of an extension the
    /// supervisor hears behind the payload, less the time since: its own count would end before the next one comes.
    async fn hand_over(&mut self, attempt: &AttemptContext, cancel: &CancelSignal) -> Option<Stop> {
        let payload = &attempt.payload.bytes;
        let mut first = format!("payload {}\n", payload.len()).into_bytes();
        first.extend_from_slice(payload);
        let mut ends_at = None;
        {
            let mut writing = pin!(self.orders.as_mut()?.write_all(&first));
            loop {
                tokio::select! {
                    biased;
                    // A supervisor that is gone takes no orders; its end is seen on the reports.
                    _ = &mut writing => break,
                    reason = cancel.stopped() => return Some(Stop::Asked(reason)),
                    () = &mut self.time_out => return Some(Stop::TimedOut),
                    () = &mut self.lease_over => return Some(Stop::LeaseOver),
                    (count, left) = cancel.lease_extended(self.lease_count) => {
                        self.lease_count = count;
                        self.lease_over = alarm(left.to_std());
                        ends_at = Some(self.clock.mono() + left);
                    }
                }
            }
        }
        if let Some(ends_at) = ends_at {
            self.order_lease(ends_at.since(self.clock.mono())).await;
        }
        None
    }

    /// Relays orders and output until the supervisor's last report; `None` if it ended without one, or is too late
    /// with its own KILL.
    async fn watch(&mut self, cancel: &CancelSignal) -> (Option<Report>, Option<Stop>) {
        let mut stop = None;
        let mut late = never();
        let mut chunk = [0_u8; 8192];
        loop {
            let why = tokio::select! {
                biased;
                line = self.reports.next_line() => match line.ok().flatten().as_deref().and_then(Report::parse) {
                    Some(Report::Started(group)) => {
                        self.begin(group, stop.is_none()).await;
                        continue;
                    }
                    ended => return (ended, stop),
                },
                reason = cancel.stopped(), if stop.is_none() => Stop::Asked(reason),
                () = &mut self.time_out, if stop.is_none() => Stop::TimedOut,
                () = &mut self.lease_over, if stop.is_none() => Stop::LeaseOver,
                (count, left) = cancel.lease_extended(self.lease_count) => {
                    self.lease_count = count;
                    self.lease_over = alarm(left.to_std());
                    self.order_lease(left).await;
                    continue;
                }
                () = &mut late => return (None, stop),
                // Last, so that endless output cannot keep an order waiting.
                read = read_some(&mut self.output, &mut chunk) => {
                    match read {
                        Some(count) => self.tail.push(chunk.get(..count).unwrap_or_default()),
                        None => self.output = None,
                    }
                    continue;
                }
            };
            if let Some(ended) = self.end_before_stop().await {
                return (Some(ended), stop);
            }
            stop = Some(why);
            late = alarm(self.grace + LATE);
            self.order(b"stop\n").await;
        }
    }

    /// The end that was reported before a stop is ordered: nobody stopped that program. When this process goes on after
    /// it was stopped for a while, its timers are over before its pipes are looked at.
    async fn end_before_stop(&mut self) -> Option<Report> {
        let seen = async {
            while self.is_reported() {
                let line = self.reports.next_line().await.ok().flatten()?;
                match Report::parse(&line)? {
                    Report::Started(group) => self.begin(group, false).await,
                    ended => return Some(ended),
                }
            }
            None
        };
        // A supervisor reports in whole lines; what is less must not keep the order waiting.
        timeout(LAST_OUTPUT, seen).await.ok().flatten()
    }

    /// Whether a report is there, by the pipe itself.
    fn is_reported(&mut self) -> bool {
        let reports = self.reports.get_ref();
        !reports.buffer().is_empty() || ioctl_fionread(reports.get_ref()).is_ok_and(|bytes| bytes > 0)
    }

    /// The program may begin: from here on its group can be ended without its supervisor. Only the first report is
    /// believed, it came before the program could send one.
    async fn begin(&mut self, number: i32, is_wanted: bool) {
        if self.group.is_some() {
            return;
        }
        self.group = Group::led_by(number);
        if is_wanted && self.group.is_some() {
            self.began = true;
            self.order(b"go\n").await;
        }
    }

    /// The lease goes on for this long from now.
    async fn order_lease(&mut self, left: Span) {
        self.order(format!("lease {}\n", left.as_millis()).as_bytes()).await;
    }

    /// Gives an order. A supervisor that its command has stopped is let go on; one that takes no orders for long is
    /// told by their end.
    async fn order(&mut self, bytes: &[u8]) {
        self.wake();
        if let Some(orders) = &mut self.orders
            && !matches!(timeout(LATE, orders.write_all(bytes)).await, Ok(Ok(())))
        {
            self.orders = None;
        }
    }

    /// The supervisor, as long as it is not reaped: until then its number is nobody else's.
    fn supervisor(&self) -> Option<Pid> {
        self.child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw)
    }

    fn wake(&self) {
        if let Some(supervisor) = self.supervisor() {
            kill_process(supervisor, Signal::CONT).ok();
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
        timeout(LAST_OUTPUT, rest).await.ok();
    }

    /// The supervisor is dead, stopped or late: ends the group, then the supervisor, whose unreaped child held the
    /// group's number till then.
    fn end_by_force(&mut self) {
        if let Some(group) = &self.group {
            group.kill();
        }
        self.child.start_kill().ok();
    }
}

impl Drop for Supervised {
    /// A supervisor at work sees the end of its orders and gives the command its grace. One that cannot is not
    /// waited for: whoever stopped it has no claim to a grace.
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        self.orders = None;
        if self.supervisor().is_none_or(is_stopped_or_dead) {
            self.end_by_force();
        } else {
            self.wake();
        }
    }
}

/// The next piece of output; `None` at its end, and for ever pending once the end was seen.
async fn read_some(output: &mut Option<ChildStderr>, chunk: &mut [u8]) -> Option<usize> {
    match output {
        None => pending().await,
        Some(pipe) => pipe.read(chunk).await.ok().filter(|count| *count > 0),
    }
}

/// Comes once, after this long from now on, however late it is first looked at.
fn alarm(after: Duration) -> BoxFuture<'static, ()> {
    let over = timeout(after, pending::<()>());
    Box::pin(async move {
        over.await.ok();
    })
}

fn never() -> BoxFuture<'static, ()> {
    Box::pin(pending())
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn an_alarm_counts_from_when_it_is_set() {
        let after = Duration::from_millis(20);
        let first = alarm(after);
        alarm(after).await;
        assert!(first.now_or_never().is_some(), "nobody has looked at it so far");
    }
}
