//! Commands that turn against their supervisor: none outlives its lease, its stop or its server.
//!
//! Every process of one attempt carries the same mark in its environment, the supervisor's too: what is left is
//! found by it, whatever it became. Scripts run longer than any test waits, but not for ever.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fencepost::targets::{
    AttemptControl, CancelSignal, HandlerRegistry, StopReason, TargetRunner, TargetsConfig, attempt_signal,
};
use fencepost_core::job::{EffectProof, Outcome, RetryAdvice, Verdict};
use fencepost_core::target::{CommandTarget, Target};
use fencepost_core::time::Span;
use rustix::process::{Pid, Signal, kill_process};
use tokio::task::JoinHandle;

use crate::command::{argv, code, runner, sh};
use crate::peers::until;
use crate::{attempt, text};

const DEAF: &str = "trap '' TERM; n=0; while [ $n -lt 1800 ]; do sleep 0.05; n=$((n+1)); done";

/// A script of its own mark and short grace, in a folder of its own.
struct Marked {
    folder: tempfile::TempDir,
    target: CommandTarget,
}

impl Marked {
    /// `UP` in the script stands for a file that it makes when it has done its worst.
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let target = marked(folder.path(), script);
        Self { folder, target }
    }

    fn start(&self, lease: Option<Span>) -> (AttemptControl, JoinHandle<Outcome>) {
        let (control, cancel) = attempt_signal(lease);
        let attempt = attempt(Target::Command(self.target.clone()));
        (
            control,
            tokio::spawn(async move { runner().run(attempt, cancel).await }),
        )
    }

    async fn up(&self) {
        let up = up(self.folder.path());
        until("the script is up", || up.exists()).await;
    }

    async fn nothing_is_left(&self) {
        nothing_is_left(self.folder.path()).await;
    }
}

fn up(folder: &Path) -> PathBuf {
    folder.join("up")
}

fn marked(folder: &Path, script: &str) -> CommandTarget {
    CommandTarget {
        env: vec![("MARK".into(), folder.to_str().unwrap().into())],
        grace: Span::from_millis(50),
        ..sh(&script.replace("UP", up(folder).to_str().unwrap()))
    }
}

/// The processes that carry a folder's mark. What is dead has no environment any more.
fn left(folder: &Path) -> Vec<i32> {
    let mark = format!("MARK={}", folder.display());
    let is_marked = |pid: &i32| {
        let variables = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        variables.split(|byte| *byte == 0).any(|one| one == mark.as_bytes())
    };
    let names = std::fs::read_dir("/proc")
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse().ok());
    pids.filter(is_marked).collect()
}

async fn nothing_is_left(folder: &Path) {
    until("the end of every process", || left(folder).is_empty()).await;
}

#[tokio::test]
async fn a_command_that_kills_its_supervisor_at_once_leaves_nothing() {
    let mut runs = Vec::new();
    for round in 0..20 {
        let script = [
            format!("kill -9 $PPID; {DEAF}"),
            format!("({DEAF}) & kill -9 $PPID; wait"),
            format!("(kill -9 $PPID; {DEAF}) & exit 0"),
        ];
        let run = Marked::new(&script[round % 3]);
        let (_, running) = run.start(None);
        runs.push((run, running));
    }
    for (run, running) in runs {
        let outcome = running.await.unwrap();
        assert!(matches!(code(&outcome), "command_supervisor_lost" | ""), "{outcome:?}");
        if outcome.error.is_some() {
            assert_eq!(outcome.verdict, unproven());
        }
        run.nothing_is_left().await;
    }
}

fn unproven() -> Verdict {
    Verdict::Failed {
        retry: RetryAdvice::ByPolicy,
        effect: EffectProof::Unproven,
    }
}

#[tokio::test]
async fn a_command_that_stops_its_supervisor_ends_on_request_and_with_its_lease() {
    let script = format!("kill -STOP $PPID; : > UP; {DEAF}");
    let lease = Some(Span::from_millis(1_000));
    let (unlimited, late) = (Marked::new(&script), Marked::new(&script));
    let (_control, running_late) = late.start(lease);
    for (reason, want) in [
        (StopReason::CancelRequested, "cancelled"),
        (StopReason::Draining, "drained"),
        (StopReason::LeaseLost, "lease_lost"),
    ] {
        let (control, running) = unlimited.start(None);
        unlimited.up().await;
        control.stop(reason);
        assert_eq!(code(&running.await.unwrap()), want);
        unlimited.nothing_is_left().await;
        std::fs::remove_file(up(unlimited.folder.path())).unwrap();
    }
    let outcome = running_late.await.unwrap();
    assert_eq!((code(&outcome), outcome.verdict), ("command_lease_over", unproven()));
    late.nothing_is_left().await;
}

#[tokio::test]
async fn a_command_that_stops_its_supervisor_again_and_again_ends_by_force() {
    let again = "n=0; while [ $n -lt 9000000 ]; do kill -STOP $PPID; n=$((n+1)); done";
    let run = Marked::new(&format!("trap '' TERM; kill -STOP $PPID; : > UP; {again}"));
    let (control, running) = run.start(None);
    run.up().await;
    control.stop(StopReason::CancelRequested);
    let effect = EffectProof::Unproven;
    assert_eq!(running.await.unwrap().verdict, Verdict::Cancelled { effect });
    run.nothing_is_left().await;
}

#[tokio::test]
async fn a_supervisor_that_was_stopped_once_still_gives_the_grace() {
    let mut run = Marked::new("trap 'echo bye; exit 0' TERM; kill -STOP $PPID; : > UP; while :; do sleep 0.05; done");
    run.target.grace = Span::from_secs(30);
    let (control, running) = run.start(None);
    run.up().await;
    control.stop(StopReason::CancelRequested);
    let outcome = running.await.unwrap();
    let effect = EffectProof::Unproven;
    assert_eq!(outcome.verdict, Verdict::Cancelled { effect });
    assert!(text(&outcome.output).ends_with("bye\n"), "{outcome:?}");
}

#[tokio::test]
async fn dropping_the_attempt_of_a_stopped_supervisor_leaves_nothing() {
    let run = Marked::new(&format!("kill -STOP $PPID; : > UP; {DEAF}"));
    let (_control, running) = run.start(None);
    run.up().await;
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    run.nothing_is_left().await;
}

#[tokio::test]
async fn a_killed_server_leaves_nothing_under_a_stopped_supervisor() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "escapes::a_server_with_a_stopped_supervisor"])
        .env("FENCEPOST_TEST_STOPPED", folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let up = up(folder.path());
    until("the script is up", || up.exists()).await;
    assert!(left(folder.path()).len() >= 2);
    server.kill().unwrap();
    server.wait().unwrap();
    nothing_is_left(folder.path()).await;
}

/// The inner half of the test above; does nothing when run by itself.
#[tokio::test]
async fn a_server_with_a_stopped_supervisor() {
    let Some(folder) = std::env::var_os("FENCEPOST_TEST_STOPPED") else {
        return;
    };
    let script = format!("({DEAF}) & kill -STOP $PPID; : > UP; {DEAF}");
    let target = marked(Path::new(&folder), &script);
    runner()
        .run(attempt(Target::Command(target)), CancelSignal::never())
        .await;
}

#[tokio::test]
async fn a_signal_to_the_supervisor_gives_the_command_its_grace() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT] {
        let script = "trap 'echo bye; exit 0' TERM; echo $PPID > UP.part; mv UP.part UP; while :; do sleep 0.05; done";
        let mut run = Marked::new(script);
        run.target.grace = Span::from_secs(30);
        let (_control, running) = run.start(None);
        run.up().await;
        let supervisor = std::fs::read_to_string(up(run.folder.path())).unwrap();
        kill_process(Pid::from_raw(supervisor.trim().parse().unwrap()).unwrap(), signal).unwrap();
        let outcome = running.await.unwrap();
        assert_eq!(code(&outcome), "command_interrupted", "{signal:?}");
        assert_eq!(outcome.verdict, unproven());
        assert!(text(&outcome.output).ends_with("bye\n"), "{outcome:?}");
        run.nothing_is_left().await;
    }
}

#[tokio::test]
async fn a_supervisor_that_is_lost_before_the_command_began_proves_that_nothing_happened() {
    let supervisor = Some("/bin/true".into());
    let config = TargetsConfig {
        supervisor,
        ..TargetsConfig::for_dev()
    };
    let outcome = TargetRunner::new(config, HandlerRegistry::default())
        .run(attempt(Target::Command(argv(&["true"]))), CancelSignal::never())
        .await;
    assert_eq!(code(&outcome), "command_supervisor_lost");
    let (retry, effect) = (RetryAdvice::ByPolicy, EffectProof::NoEffect);
    assert_eq!(outcome.verdict, Verdict::Failed { retry, effect });
}

#[tokio::test]
async fn what_left_the_group_ends_with_a_command_that_is_told_to_end() {
    let run = Marked::new("trap '' TERM; setsid -f sh -c \"setsid -f sleep 90; : > UP; sleep 90\"; sleep 90");
    let (control, running) = run.start(None);
    run.up().await;
    control.stop(StopReason::CancelRequested);
    assert_eq!(code(&running.await.unwrap()), "cancelled");
    run.nothing_is_left().await;
}

#[tokio::test]
async fn what_left_the_group_stays_when_the_command_ends_by_itself() {
    let run = Marked::new("setsid -f sh -c ': > UP; exec sleep 90'; until [ -e UP ]; do sleep 0.01; done");
    let (_control, running) = run.start(None);
    assert_eq!(running.await.unwrap().verdict, Verdict::Succeeded);
    let stays = left(run.folder.path());
    assert_eq!(stays.len(), 1, "{stays:?}");
    kill_process(Pid::from_raw(stays[0]).unwrap(), Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_supervisor_reaps_what_it_inherits() {
    let orphans = "n=0; while [ $n -lt 20 ]; do (true &); n=$((n+1)); done";
    let only_one = "until [ $(cat /proc/$PPID/task/*/children | wc -w) = 1 ]; do sleep 0.01; done";
    let run = Marked::new(&format!("{orphans}; {only_one}"));
    let (_control, running) = run.start(None);
    assert_eq!(running.await.unwrap().verdict, Verdict::Succeeded);
}
