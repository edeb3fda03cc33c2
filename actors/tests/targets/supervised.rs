//! Nothing that a command started in its group outlives the server, the supervisor or the lease.
//!
//! The server that is killed is this test binary itself, run again for one inner test.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use fencepost::targets::{
    CancelSignal, HandlerRegistry, SUPERVISE, StopReason, TargetRunner, TargetsConfig, attempt_signal,
};
use fencepost_core::job::{EffectProof, RetryAdvice, Verdict};
use fencepost_core::target::Target;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::attempt;
use crate::command::{argv, runner, sh};
use crate::peers::until;

/// A script that forks a grandchild, both deaf to TERM, and writes their numbers. They would run for longer
/// than any test waits, but not for ever: a broken supervisor must not litter the machine.
fn two_deaf_processes(folder: &Path) -> String {
    let (part, whole) = (folder.join("part"), folder.join("pids"));
    let numbers = format!(
        "echo $$ $! > {part}; mv {part} {whole}",
        part = part.display(),
        whole = whole.display()
    );
    let deaf = "trap \"\" TERM; n=0; while [ $n -lt 1800 ]; do sleep 0.05; n=$((n+1)); done";
    format!("trap '' TERM; sh -c '{deaf}' & {numbers}; wait")
}

async fn wait_for_pids(folder: &Path) -> Vec<Pid> {
    let path = folder.join("pids");
    let read = || std::fs::read_to_string(&path).unwrap_or_default();
    until("the numbers of the processes", || read().ends_with('\n')).await;
    read()
        .split_whitespace()
        .map(|word| Pid::from_raw(word.parse().unwrap()).unwrap())
        .collect()
}

/// Gone, or dead and only waiting to be reaped by whoever inherited it.
fn is_gone(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    test_kill_process(pid).is_err() || stat.is_ok_and(|text| text.rsplit(") ").next().unwrap().starts_with('Z'))
}

async fn wait_until_gone(pids: &[Pid]) {
    until("the end of the processes", || pids.iter().all(|pid| is_gone(*pid))).await;
}

#[tokio::test]
async fn killing_the_server_ends_the_commands_group() {
    let folder = tempfile::tempdir().unwrap();
    let inner = "supervised::a_server_that_waits_to_be_killed";
    let mut server = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", inner])
        .env("FENCEPOST_TEST_FOLDER", folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pids = wait_for_pids(folder.path()).await;
    assert_eq!(pids.len(), 2);
    assert!(!pids.iter().any(|pid| is_gone(*pid)));
    server.kill().unwrap();
    server.wait().unwrap();
    wait_until_gone(&pids).await;
}

/// The inner half of the test above; does nothing when run by itself.
#[tokio::test]
async fn a_server_that_waits_to_be_killed() {
    let Some(folder) = std::env::var_os("FENCEPOST_TEST_FOLDER") else {
        return;
    };
    let mut target = sh(&two_deaf_processes(Path::new(&folder)));
    target.grace = fencepost_core::time::Span::from_millis(50);
    runner()
        .run(attempt(Target::Command(target)), CancelSignal::never())
        .await;
}

#[tokio::test]
async fn dropping_the_attempt_ends_the_commands_group() {
    let folder = tempfile::tempdir().unwrap();
    let mut target = sh(&two_deaf_processes(folder.path()));
    target.grace = fencepost_core::time::Span::from_millis(50);
    let running = tokio::spawn(async move {
        runner()
            .run(attempt(Target::Command(target)), CancelSignal::never())
            .await
    });
    wait_for_pids(folder.path()).await;
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    wait_until_gone(&wait_for_pids(folder.path()).await).await;
}

#[tokio::test]
async fn killing_the_supervisor_ends_the_commands_group() {
    let folder = tempfile::tempdir().unwrap();
    let script = two_deaf_processes(folder.path());
    let parent = folder.path().join("parent");
    let target = sh(&format!("echo $PPID > {}; {script}", parent.display()));
    let running = tokio::spawn(async move {
        runner()
            .run(attempt(Target::Command(target)), CancelSignal::never())
            .await
    });
    wait_for_pids(folder.path()).await;
    let supervisor: i32 = std::fs::read_to_string(parent).unwrap().trim().parse().unwrap();
    kill_process(Pid::from_raw(supervisor).unwrap(), Signal::KILL).unwrap();
    let outcome = running.await.unwrap();
    assert!(outcome.error.unwrap().starts_with("command_supervisor_lost: "));
    wait_until_gone(&wait_for_pids(folder.path()).await).await;
}

#[tokio::test]
async fn what_a_command_leaves_running_in_its_group_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let script = format!("sleep 90 & echo $! > {}", pids.display());
    let outcome = runner()
        .run(attempt(Target::Command(sh(&script))), CancelSignal::never())
        .await;
    assert_eq!(outcome.verdict, Verdict::Succeeded);
    wait_until_gone(&wait_for_pids(folder.path()).await).await;
}

#[tokio::test]
async fn a_process_that_left_the_group_does_not_hold_the_attempt_up() {
    let target = argv(&["setsid", "-f", "sleep", "2"]);
    let outcome = runner()
        .run(attempt(Target::Command(target)), CancelSignal::never())
        .await;
    assert_eq!(outcome.verdict, Verdict::Succeeded);
}

/// What a server finds that was stopped for a while and goes on: a reason to stop the attempt, seen before the pipe in
/// which the command's end lies.
#[tokio::test]
#[allow(
    clippy::disallowed_methods,
    reason = "the test holds its own thread, as a stopped server does"
)]
async fn f18_an_end_reported_before_the_stop_is_how_the_command_ended() {
    for (reason, code, want) in [
        (StopReason::LeaseLost, 0, Verdict::Succeeded),
        (StopReason::CancelRequested, 0, Verdict::Succeeded),
        (StopReason::Draining, 0, Verdict::Succeeded),
        (
            StopReason::LeaseLost,
            7,
            Verdict::Failed {
                retry: RetryAdvice::ByPolicy,
                effect: EffectProof::Unproven,
            },
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let shown = folder.path().display();
        let script = format!(
            "echo $PPID > {shown}/part; mv {shown}/part {shown}/pids; \
             while [ ! -e {shown}/on ]; do sleep 0.02; done; exit {code}"
        );
        let (control, cancel) = attempt_signal(None);
        let running = tokio::spawn(async move { runner().run(attempt(Target::Command(sh(&script))), cancel).await });
        let supervisor = wait_for_pids(folder.path()).await.remove(0);
        // From here on nothing but the command and its supervisor goes on, until both have ended.
        std::fs::write(folder.path().join("on"), "").unwrap();
        while !is_gone(supervisor) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        control.stop(reason);
        let outcome = running.await.unwrap();
        assert_eq!(outcome.verdict, want, "{reason:?} {:?}", outcome.error);
        assert_eq!(
            crate::command::code(&outcome),
            ["", "command_exit"][usize::from(code != 0)]
        );
    }
}

/// The supervisor itself, spoken to by hand.
struct Spoken {
    child: Child,
    reports: BufReader<std::process::ChildStdout>,
}

impl Spoken {
    fn start(args: &[&str], first: &[u8]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fencepost"))
            .arg(SUPERVISE)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let reports = BufReader::new(child.stdout.take().unwrap());
        let mut spoken = Self { child, reports };
        spoken.order(first);
        spoken
    }

    fn order(&mut self, bytes: &[u8]) {
        self.child.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn report(&mut self) -> String {
        let mut line = String::new();
        self.reports.read_line(&mut line).unwrap();
        line.trim_end().split(' ').next().unwrap().to_owned()
    }

    /// Closes the orders and returns all that is still reported.
    fn rest(mut self) -> (String, Option<i32>) {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        self.reports.read_to_string(&mut rest).unwrap();
        (rest, self.child.wait().unwrap().code())
    }
}

#[test]
fn the_end_of_the_orders_ends_the_program() {
    let mut spoken = Spoken::start(&["30000", "-", "--", "sleep", "90"], b"payload 0\ngo\n");
    assert_eq!(spoken.report(), "started");
    assert_eq!(spoken.rest(), ("signalled 15\n".to_owned(), Some(0)));
}

#[test]
fn an_order_that_cannot_be_read_ends_the_program() {
    let mut spoken = Spoken::start(&["30000", "-", "--", "sleep", "90"], b"payload 0\ngo\nlease soon\n");
    assert_eq!(spoken.report(), "started");
    assert_eq!(spoken.report(), "signalled");
}

#[test]
fn nothing_begins_without_the_word() {
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("begun");
    let args = ["30000", "-", "--", "touch", begun.to_str().unwrap()];
    for orders in [&b"payload 0\n"[..], b"payload 0\nstop\ngo\n", b"payload 3\ngo\n"] {
        let mut spoken = Spoken::start(&args, orders);
        assert_eq!(spoken.report(), "started");
        assert_eq!(
            spoken.rest(),
            ("not-started it was stopped before it began\n".to_owned(), Some(0))
        );
        assert!(!begun.exists());
    }
    let mut spoken = Spoken::start(&args, b"payload 0\ngo\n");
    assert_eq!(
        (spoken.report(), spoken.report()),
        ("started".to_owned(), "exited".to_owned())
    );
    assert!(begun.exists());
}

/// A supervisor that takes no payload holds an attempt no longer than its lease.
#[tokio::test]
async fn a_lease_that_ends_before_the_payload_is_taken_ends_the_attempt() {
    let runner = TargetRunner::new(
        TargetsConfig {
            // It reads nothing, whatever it is told.
            supervisor: Some("/usr/bin/yes".into()),
            ..TargetsConfig::for_dev()
        },
        HandlerRegistry::default(),
    );
    let (_control, cancel) = attempt_signal(Some(fencepost_core::time::Span::from_millis(50)));
    let mut attempt = attempt(Target::Command(sh("true")));
    attempt.timeout = fencepost_core::time::Span::from_secs(3_600);
    // More than a pipe holds.
    attempt.payload.bytes = vec![b' '; 400_000].into();
    let outcome = runner.run(attempt, cancel).await;
    assert!(outcome.error.unwrap().starts_with("command_lease_over: "));
}

/// The lease counts from the start of the supervisor: a payload that takes longer to come gets no second one.
#[test]
fn a_payload_that_comes_after_the_lease_begins_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("begun");
    let mut late = Spoken::start(
        &["30000", "100", "--", "touch", begun.to_str().unwrap()],
        b"payload 3\n",
    );
    // Another lease of the same length that began later is over.
    let mut other = Spoken::start(&["30000", "100", "--", "sleep", "90"], b"payload 0\ngo\n");
    assert_eq!(other.report(), "started");
    // On a machine that is slow enough even its word comes too late.
    assert!(["lease-over", "not-started"].contains(&other.report().as_str()));
    late.order(b"abcgo\n");
    assert_eq!(late.report(), "started");
    assert_eq!(late.report(), "not-started");
    assert!(!begun.exists());
}

/// What the server says of an extension stands behind the payload, and the supervisor hears it before it looks at its
/// own count of the lease.
#[test]
fn an_extension_that_comes_with_a_late_payload_is_heard_before_the_word() {
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("begun");
    let args = ["30000", "100", "--", "touch", begun.to_str().unwrap()];
    let mut late = Spoken::start(&args, b"payload 3\n");
    // Another lease of the same length that began later is over.
    let mut other = Spoken::start(&["30000", "100", "--", "sleep", "90"], b"payload 0\ngo\n");
    assert_eq!(other.report(), "started");
    assert!(["lease-over", "not-started"].contains(&other.report().as_str()));
    late.order(b"abc");
    assert_eq!(late.report(), "started");
    late.order(b"lease 60000\ngo\n");
    assert_eq!(late.report(), "exited");
    assert!(begun.exists());
}

/// The first line behind a payload that a supervisor was slow to take, with an extension while it was.
#[tokio::test]
async fn an_extension_while_the_payload_is_handed_over_is_told_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let shown = folder.path().display();
    // More than a pipe holds.
    let payload = vec![b' '; 400_000];
    let length = format!("payload {}\n", payload.len()).len() + payload.len();
    let script = format!(
        "#!/bin/sh\ntouch {shown}/up\nwhile [ ! -e {shown}/on ]; do sleep 0.02; done\n\
         head -c {length} > {shown}/payload\nhead -n 1 > {shown}/part\nmv {shown}/part {shown}/order\necho exited 0\n"
    );
    let supervisor = path("supervisor");
    std::fs::write(&supervisor, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&supervisor, mode).unwrap();
    let config = TargetsConfig {
        supervisor: Some(supervisor),
        ..TargetsConfig::for_dev()
    };
    let runner = TargetRunner::new(config, HandlerRegistry::default());
    let hour = fencepost_core::time::Span::from_secs(3_600);
    let (control, cancel) = attempt_signal(Some(hour));
    let mut attempt = attempt(Target::Command(sh("true")));
    attempt.timeout = hour;
    attempt.payload.bytes = payload.into();
    let running = tokio::spawn(async move { runner.run(attempt, cancel).await });
    until("the supervisor", || path("up").exists()).await;
    control.extend_lease(hour);
    // The attempt hears of it while it waits for the pipe.
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    std::fs::write(path("on"), "").unwrap();
    until("an order behind the payload", || path("order").exists()).await;
    let order = std::fs::read_to_string(path("order")).unwrap();
    let left: u64 = order.strip_prefix("lease ").unwrap().trim_end().parse().unwrap();
    assert!(left <= hour.as_millis() && left > 0, "{order}");
    assert_eq!(running.await.unwrap().verdict, Verdict::Succeeded);
}

#[test]
fn a_supervisor_called_wrongly_starts_nothing() {
    for args in [
        &[][..],
        &["x", "-", "--", "true"],
        &["1", "y", "--", "true"],
        &["1", "-", "true"],
        &["1", "-", "--"],
        &["gate"],
        &["gate", "x", "--", "true"],
        &["gate", "1", "--"],
    ] {
        assert_eq!(Spoken::start(args, b"").rest(), (String::new(), Some(2)), "{args:?}");
    }
    for first in [
        &b""[..],
        b"payload\n",
        b"payload -1\n",
        b"payload 9\nshort",
        b"payload 99999999999\n",
        b"stop\n",
    ] {
        let spoken = Spoken::start(&["1", "-", "--", "true"], first);
        assert_eq!(spoken.rest(), (String::new(), Some(2)), "{first:?}");
    }
}
