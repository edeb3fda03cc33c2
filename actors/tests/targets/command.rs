//! Commands through the real supervisor: what they see, how their ends are judged, how they are stopped.

use fencepost::targets::{CancelSignal, HandlerRegistry, StopReason, TargetRunner, TargetsConfig, attempt_signal};
use fencepost_core::job::{EffectProof, Outcome, RetryAdvice, Verdict};
use fencepost_core::limits::{OUTPUT_TAIL_BYTES_MAX, PAYLOAD_BYTES_MAX};
use fencepost_core::target::{CommandTarget, Payload, PayloadKind, Target};
use fencepost_core::time::Span;

use crate::peers::until;
use crate::{attempt, text};

pub fn runner() -> TargetRunner {
    let supervisor = Some(env!("CARGO_BIN_EXE_fencepost").into());
    TargetRunner::new(
        TargetsConfig {
            supervisor,
            ..TargetsConfig::for_dev()
        },
        HandlerRegistry::default(),
    )
}

pub fn argv(words: &[&str]) -> CommandTarget {
    CommandTarget {
        argv: words.iter().map(ToString::to_string).collect(),
        shell: false,
        env: vec![],
        directory: None,
        grace: Span::from_secs(30),
    }
}

pub fn sh(script: &str) -> CommandTarget {
    CommandTarget {
        shell: true,
        ..argv(&[script])
    }
}

async fn run(target: CommandTarget) -> Outcome {
    runner()
        .run(attempt(Target::Command(target)), CancelSignal::never())
        .await
}

pub fn code(outcome: &Outcome) -> &str {
    outcome
        .error
        .as_deref()
        .unwrap_or_default()
        .split(':')
        .next()
        .unwrap_or_default()
}

const UNPROVEN: EffectProof = EffectProof::Unproven;

#[tokio::test]
async fn a_command_sees_its_facts_its_payload_and_little_else() {
    let outcome = run(CommandTarget {
        env: vec![("MINE".into(), "my own".into())],
        ..sh("cat; echo; env")
    })
    .await;
    assert_eq!(outcome.verdict, Verdict::Succeeded);
    let mut lines: Vec<&str> = text(&outcome.output).lines().collect();
    assert_eq!(lines.remove(0), r#"{"amount":7}"#);
    for fact in [
        "FENCEPOST_JOB=job_01010101010101010101010101010101",
        "FENCEPOST_IDEMPOTENCY_KEY=job_01010101010101010101010101010101",
        "FENCEPOST_TOKEN=0000000100000000000000020000000000000003",
        "FENCEPOST_ATTEMPT=2",
        "FENCEPOST_SCHEDULED_FOR=2026-01-01T00:00:00.500Z",
        "FENCEPOST_SCHEDULE=nightly",
        "MINE=my own",
    ] {
        assert!(lines.contains(&fact), "{fact}: {lines:?}");
    }
    let known = [
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "MINE",
        // What the shell sets by itself.
        "PWD", "OLDPWD", "SHLVL", "_",
    ];
    for line in lines {
        let name = line.split('=').next().unwrap();
        assert!(
            known.contains(&name) || name.starts_with("FENCEPOST_"),
            "leaked: {line}"
        );
    }
}

#[tokio::test]
async fn no_shell_reads_the_words_unless_asked() {
    let plain = run(argv(&["echo", "$HOME", "; exit 3", "*"])).await;
    assert_eq!(text(&plain.output), "$HOME ; exit 3 *\n");
    let shell = run(CommandTarget {
        shell: true,
        ..argv(&["echo", "one;", "exit", "3"])
    })
    .await;
    assert_eq!((text(&shell.output), code(&shell)), ("one\n", "command_exit"));
}

#[tokio::test]
async fn ends_are_judged() {
    let by_policy = |effect| Verdict::Failed {
        retry: RetryAdvice::ByPolicy,
        effect,
    };
    for (target, verdict, error) in [
        (argv(&["true"]), Verdict::Succeeded, ""),
        (
            argv(&["false"]),
            by_policy(UNPROVEN),
            "command_exit: the command ended with exit code 1",
        ),
        (
            sh("exit 255"),
            by_policy(UNPROVEN),
            "command_exit: the command ended with exit code 255",
        ),
        (
            sh("kill -9 $$"),
            by_policy(UNPROVEN),
            "command_signal: the command was ended by signal 9",
        ),
        (
            argv(&["/nowhere/at/all"]),
            by_policy(EffectProof::NoEffect),
            "command_not_started: there is no such program, or no such folder to run it in",
        ),
        (
            argv(&["/"]),
            by_policy(EffectProof::NoEffect),
            "command_not_started: the program may not be executed, or its folder not be entered, by the server's user",
        ),
        (
            CommandTarget {
                directory: Some("/nowhere".into()),
                ..argv(&["true"])
            },
            by_policy(EffectProof::NoEffect),
            "command_not_started: there is no such program, or no such folder to run it in",
        ),
    ] {
        let outcome = run(target).await;
        assert_eq!(
            (outcome.verdict, outcome.error.as_deref().unwrap_or_default()),
            (verdict, error)
        );
    }
}

#[tokio::test]
async fn a_command_runs_in_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap().to_str().unwrap().to_owned();
    let outcome = run(CommandTarget {
        directory: Some(path.clone()),
        ..argv(&["pwd"])
    })
    .await;
    assert_eq!(text(&outcome.output).trim_end(), path);
}

#[tokio::test]
async fn both_outputs_are_merged_in_order_and_cut_to_their_tail() {
    let outcome = run(sh("echo a; echo b >&2; echo c; echo d >&2")).await;
    assert_eq!(text(&outcome.output), "a\nb\nc\nd\n");
    let outcome = run(sh("head -c 3000000 /dev/zero | tr '\\0' x; echo the end")).await;
    assert_eq!(outcome.output.len(), OUTPUT_TAIL_BYTES_MAX);
    assert!(text(&outcome.output).ends_with("xthe end\n"));
}

#[tokio::test]
async fn a_large_payload_is_read_or_ignored_without_harm() {
    let payload = Payload {
        kind: PayloadKind::Bytes,
        bytes: vec![b'p'; PAYLOAD_BYTES_MAX].into(),
    };
    for (script, want) in [("wc -c", "1048576"), ("echo done", "done")] {
        let attempt = fencepost::targets::AttemptContext {
            payload: payload.clone(),
            ..attempt(Target::Command(sh(script)))
        };
        let outcome = runner().run(attempt, CancelSignal::never()).await;
        assert_eq!(outcome.verdict, Verdict::Succeeded);
        assert_eq!(text(&outcome.output).trim(), want);
    }
}

#[tokio::test]
async fn a_timeout_sends_term_and_keeps_the_last_words() {
    let target = sh("trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done");
    let attempt = fencepost::targets::AttemptContext {
        timeout: Span::from_millis(1_500),
        ..attempt(Target::Command(target))
    };
    let outcome = runner().run(attempt, CancelSignal::never()).await;
    assert_eq!(outcome.verdict, Verdict::TimedOut { effect: UNPROVEN });
    let output = text(&outcome.output);
    assert!(output.starts_with("up\n") && output.ends_with("bye\n"), "{output}");
}

#[tokio::test]
async fn what_ignores_term_is_killed_after_the_grace() {
    let target = CommandTarget {
        grace: Span::from_millis(50),
        ..sh("trap '' TERM; echo up; while :; do sleep 0.05; done")
    };
    let attempt = fencepost::targets::AttemptContext {
        timeout: Span::from_millis(200),
        ..attempt(Target::Command(target))
    };
    let outcome = runner().run(attempt, CancelSignal::never()).await;
    assert_eq!(outcome.verdict, Verdict::TimedOut { effect: UNPROVEN });
}

#[tokio::test]
async fn a_stop_is_a_cancelled_attempt_whatever_the_exit_code() {
    let (control, cancel) = attempt_signal(None);
    let folder = tempfile::tempdir().unwrap();
    let up = folder.path().join("up");
    let script = format!("trap 'exit 0' TERM; : > {}; while :; do sleep 0.05; done", up.display());
    let running = tokio::spawn({
        let attempt = attempt(Target::Command(sh(&script)));
        async move { runner().run(attempt, cancel).await }
    });
    until("the command is up", || up.exists()).await;
    control.stop(StopReason::CancelRequested);
    assert_eq!(running.await.unwrap().verdict, Verdict::Cancelled { effect: UNPROVEN });
}

#[tokio::test]
async fn a_stop_before_the_start_starts_nothing() {
    let (control, cancel) = attempt_signal(None);
    control.stop(StopReason::Draining);
    let outcome = runner().run(attempt(Target::Command(argv(&["true"]))), cancel).await;
    assert_eq!(
        outcome.verdict,
        Verdict::Failed {
            retry: RetryAdvice::ByPolicy,
            effect: EffectProof::NoEffect
        }
    );
}

#[tokio::test]
async fn a_lease_that_is_not_extended_ends_the_command() {
    let (_control, cancel) = attempt_signal(Some(Span::from_millis(200)));
    let outcome = runner()
        .run(attempt(Target::Command(sh("echo up; sleep 90"))), cancel)
        .await;
    assert_eq!(code(&outcome), "command_lease_over");
}

#[tokio::test]
async fn an_extended_lease_lets_the_command_finish() {
    let (control, cancel) = attempt_signal(Some(Span::from_secs(2)));
    let folder = tempfile::tempdir().unwrap();
    let up = folder.path().join("up");
    let script = format!(": > {}; sleep 2.2; echo done", up.display());
    let running = tokio::spawn({
        let attempt = attempt(Target::Command(sh(&script)));
        async move { runner().run(attempt, cancel).await }
    });
    until("the command is up", || up.exists()).await;
    control.extend_lease(Span::from_secs(600));
    let outcome = running.await.unwrap();
    assert_eq!(outcome.verdict, Verdict::Succeeded, "{outcome:?}");
    assert_eq!(text(&outcome.output), "done\n");
}

#[tokio::test]
async fn commands_are_off_until_allowed() {
    let runner = TargetRunner::new(TargetsConfig::default(), HandlerRegistry::default());
    let outcome = runner
        .run(attempt(Target::Command(argv(&["true"]))), CancelSignal::never())
        .await;
    assert_eq!(code(&outcome), "command_not_allowed");
    assert_eq!(
        outcome.verdict,
        Verdict::Failed {
            retry: RetryAdvice::ByPolicy,
            effect: EffectProof::NoEffect
        }
    );
}
