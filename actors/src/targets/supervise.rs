//! The supervisor of one command: a small process between server and program.
//!
//! Owns: that the program's group ends when its lease is over or the server is gone, even by `kill -9`.
//! Must never: begin the program before the server knows its group, log, or outlive its program. Orders come on
//! stdin (`payload N`, then `go`, `lease MS` and `stop`; its end means the server is gone), reports go out on
//! stdout, and the program's output, both kinds in one order, on stderr. Next: `gate`, which becomes the program;
//! `asked` for signals; `leavers` for what left the group; `supervised`, the server's end.

#![allow(
    clippy::disallowed_methods,
    reason = "a process of its own, outside the simulator: plain threads and the system's monotonic clock"
)]

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ExitCode, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use fencepost_core::limits::PAYLOAD_BYTES_MAX;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpgid, kill_process, kill_process_group, waitid};

use super::asked::Asked;
use super::gate::{self, GATE, GO, gate_main, why_not};
use super::leavers;

/// The first argument that makes the program a supervisor.
pub const SUPERVISE: &str = "__supervise";

/// What the supervisor tells the server, a line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The program will run in the process group of this number, once it is told to go.
    Started(i32),
    /// It never ran: why.
    NotStarted(String),
    /// It ended by itself.
    Exited(i32),
    /// A signal ended it.
    Signalled(i32),
    /// It was ended because its lease was over.
    LeaseOver,
    /// It was ended because a signal asked the supervisor to end.
    Interrupted,
}

impl Report {
    /// Reads a line.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "started" => rest.parse().ok().map(Self::Started),
            "not-started" => Some(Self::NotStarted(rest.to_owned())),
            "exited" => rest.parse().ok().map(Self::Exited),
            "signalled" => rest.parse().ok().map(Self::Signalled),
            "lease-over" => Some(Self::LeaseOver),
            "interrupted" => Some(Self::Interrupted),
            _ => None,
        }
    }

    fn line(&self) -> String {
        match self {
            Self::Started(group) => format!("started {group}\n"),
            Self::NotStarted(why) => format!("not-started {why}\n"),
            Self::Exited(code) => format!("exited {code}\n"),
            Self::Signalled(signal) => format!("signalled {signal}\n"),
            Self::LeaseOver => "lease-over\n".to_owned(),
            Self::Interrupted => "interrupted\n".to_owned(),
        }
    }

    /// A server that is gone reads no report; the supervisor's work goes on without it.
    fn send(&self) {
        let mut out = io::stdout().lock();
        out.write_all(self.line().as_bytes()).and_then(|()| out.flush()).ok();
    }
}

/// What happened, as the main thread sees it.
enum Event {
    Go,
    Lease(Duration),
    Stop,
    ServerGone,
    Interrupted,
    Ended,
}

/// Why the program is being ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Told,
    LeaseOver,
    Interrupted,
}

/// Runs the supervisor. The program's `main` calls it when its first argument is [`SUPERVISE`].
#[must_use]
pub fn supervise_main() -> ExitCode {
    let mut args = std::env::args_os().skip(2).peekable();
    if args.next_if(|word| word == GATE).is_some() {
        return gate_main(args);
    }
    let Some(order) = Order::from_args(args) else {
        return ExitCode::from(2);
    };
    // A name of its own keeps `killall` of the server from taking the supervisors along.
    fs::write("/proc/self/comm", "cmd-supervisor").ok();
    // A supervisor that its command has stopped goes on when the server is gone, and finds the orders' end. The
    // others have only the hang-up of POSIX: it wakes a stopped group that lost its last parent in the session.
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::CONT)).ok();
    leavers::inherit();
    let asked = Asked::listen();
    let mut orders = BufReader::new(io::stdin());
    let Some(payload) = read_payload(&mut orders) else {
        return ExitCode::from(2);
    };
    match asked.and_then(|asked| Ok((asked, gate::start(&order.program, &order.args)?))) {
        Ok((asked, child)) => run(&order, child, payload, orders, asked),
        Err(error) => {
            Report::NotStarted(why_not(&error)).send();
            ExitCode::SUCCESS
        }
    }
}

/// What is asked for, from the arguments.
struct Order {
    grace: Duration,
    /// When the lease is over: it counts from the start of this process, and not from when the payload is in.
    lease_end: Option<Instant>,
    program: OsString,
    args: Vec<OsString>,
}

impl Order {
    fn from_args(mut args: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut next = || args.next();
        let grace = millis(next()?.to_str()?)?;
        let lease = next()?;
        let lease = if lease == "-" {
            None
        } else {
            Some(millis(lease.to_str()?)?)
        };
        if next()? != "--" {
            return None;
        }
        Some(Self {
            grace,
            lease_end: lease.map(after),
            program: next()?,
            args: args.collect(),
        })
    }
}

fn millis(text: &str) -> Option<Duration> {
    text.parse().ok().map(Duration::from_millis)
}

fn read_payload(orders: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = String::new();
    orders.take(64).read_line(&mut line).ok()?;
    let length: usize = line.strip_prefix("payload ")?.trim_end().parse().ok()?;
    if length > PAYLOAD_BYTES_MAX {
        return None;
    }
    let mut payload = vec![0; length];
    orders.read_exact(&mut payload).ok()?;
    Some(payload)
}

fn run(order: &Order, mut child: Child, payload: Vec<u8>, orders: BufReader<io::Stdin>, asked: Asked) -> ExitCode {
    let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return ExitCode::FAILURE;
    };
    Report::Started(group.as_raw_nonzero().get()).send();
    let reasons = child.stdout.take();
    let not_started = thread::spawn(move || reasons.and_then(|pipe| io::read_to_string(pipe).ok()));
    let (tell, events) = channel();
    watch_end(group, tell.clone());
    watch_signals(asked, tell.clone());
    thread::spawn(move || read_orders(orders, &tell));
    let mut held = child.stdin.take().map(|stdin| (stdin, payload));
    let ending = wait(order, group, &events, &mut held);
    // The unreaped leader still holds the group's number: no stranger can get this signal.
    send(group, Signal::KILL);
    if ending.is_some() {
        leavers::end();
    }
    let status = child.wait();
    let why = not_started.join().ok().flatten().unwrap_or_default();
    let report = match (ending, status) {
        _ if !why.is_empty() => Report::NotStarted(why),
        _ if held.is_some() => Report::NotStarted("it was stopped before it began".to_owned()),
        (Some(Ending::LeaseOver), _) => Report::LeaseOver,
        (Some(Ending::Interrupted), _) => Report::Interrupted,
        (_, Ok(status)) => report_of(status),
        (_, Err(_)) => return ExitCode::FAILURE,
    };
    report.send();
    ExitCode::SUCCESS
}

/// Signals the group, and its leader if that has gone over to another.
fn send(group: Pid, signal: Signal) {
    kill_process_group(group, signal).ok();
    if getpgid(Some(group)) != Ok(group) {
        kill_process(group, signal).ok();
    }
}

fn report_of(status: ExitStatus) -> Report {
    match (status.code(), status.signal()) {
        (Some(code), _) => Report::Exited(code),
        (None, signal) => Report::Signalled(signal.unwrap_or_default()),
    }
}

/// Gives the word and writes the payload; a program that does not read it is no failure.
fn feed((mut stdin, payload): (ChildStdin, Vec<u8>)) {
    thread::spawn(move || stdin.write_all(GO).and_then(|()| stdin.write_all(&payload)).ok());
}

fn watch_signals(asked: Asked, tell: Sender<Event>) {
    thread::spawn(move || {
        asked.wait();
        tell.send(Event::Interrupted).ok();
    });
}

/// Sees the end without reaping, so that the group's number stays taken. What else ends is reaped.
fn watch_end(group: Pid, tell: Sender<Event>) {
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    thread::spawn(move || {
        while matches!(waitid(WaitId::Pid(group), ended | WaitIdOptions::NOHANG), Ok(None)) {
            if waitid(WaitId::All, ended).is_ok() && leavers::reap(group) {
                continue;
            }
            // It was the program, or one that the system does not list and would show again at once, for ever.
            while matches!(waitid(WaitId::Pid(group), ended), Err(Errno::INTR)) {}
        }
        tell.send(Event::Ended).ok();
    });
}

fn read_orders(orders: impl BufRead, tell: &Sender<Event>) {
    for line in orders.lines() {
        let event = match line.as_deref().map(|line| line.split_once(' ')) {
            Ok(Some(("lease", left))) => millis(left).map(Event::Lease),
            Ok(_) if line.as_deref().is_ok_and(|line| line == "go") => Some(Event::Go),
            Ok(_) if line.as_deref().is_ok_and(|line| line == "stop") => Some(Event::Stop),
            Ok(_) => None,
            Err(_) => break,
        };
        // An order that cannot be read is no reason to let the program run on.
        if tell.send(event.unwrap_or(Event::Stop)).is_err() {
            return;
        }
    }
    tell.send(Event::ServerGone).ok();
}

/// Waits for the program's end: by itself, or by TERM, grace and KILL once a reason to end it has come. What is
/// `held` goes to the program when it is told to go, and is still there if it never was.
fn wait(
    order: &Order,
    group: Pid,
    events: &Receiver<Event>,
    held: &mut Option<(ChildStdin, Vec<u8>)>,
) -> Option<Ending> {
    let mut lease_end = order.lease_end;
    let mut ending: Option<(Ending, Instant)> = None;
    loop {
        // Nothing runs before the word, and an extension may stand before it among the orders.
        let runs_until = lease_end.filter(|_| held.is_none());
        let deadline = ending.map(|(_, kill_at)| kill_at).or(runs_until);
        let why = match next_event(events, deadline) {
            Some(Event::Ended) => return ending.map(|(why, _)| why),
            // A word that came late finds no lease any more.
            Some(Event::Go) if lease_end.is_some_and(|end| Instant::now() >= end) => Ending::LeaseOver,
            Some(Event::Go) => {
                if let Some(held) = held.take_if(|_| ending.is_none()) {
                    feed(held);
                }
                continue;
            }
            Some(Event::Lease(left)) => {
                lease_end = lease_end.map(|_| after(left));
                continue;
            }
            Some(Event::Stop | Event::ServerGone) => Ending::Told,
            Some(Event::Interrupted) => Ending::Interrupted,
            None if ending.is_some() => {
                send(group, Signal::KILL);
                // Nothing survives this signal; the end will be told.
                ending = ending.map(|(why, _)| (why, after(order.grace.max(Duration::from_secs(1)))));
                continue;
            }
            None => Ending::LeaseOver,
        };
        if ending.is_none() {
            send(group, Signal::TERM);
            send(group, Signal::CONT);
            ending = Some((why, after(order.grace)));
        }
    }
}

fn after(span: Duration) -> Instant {
    let now = Instant::now();
    // Beyond what the clock can say is as good as never: a year.
    now.checked_add(span).unwrap_or(now + Duration::from_secs(31_536_000))
}

/// The next event, or `None` at the deadline.
fn next_event(events: &Receiver<Event>, deadline: Option<Instant>) -> Option<Event> {
    let Some(deadline) = deadline else {
        return Some(events.recv().unwrap_or(Event::Ended));
    };
    match events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        Ok(event) => Some(event),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(Event::Ended),
    }
}
