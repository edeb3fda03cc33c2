//! Runs a program under a supervisor of its own.
//!
//! Owns: what the program is told and how its end is judged. Must never: start a program directly (it would
//! outlive a killed server). Next: `supervised`, the server's hand on it.

use std::ffi::OsString;
use std::path::Path;

use fencepost_core::job::{EffectProof, Outcome, RetryAdvice, Verdict};
use fencepost_core::target::CommandTarget;

use super::attempt::{AttemptContext, failed, stopped, succeeded, with_error};
use super::check::check_command;
use super::gate::why_not;
use super::signal::CancelSignal;
use super::supervise::Report;
use super::supervised::{End, Start, Stop, Supervised};
use super::tail::OutputTail;

/// What a program inherits from the server's environment, if it is there; nothing else.
const BASE_ENV: &[&str] = &[
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
];

/// Carries out one attempt. Ends within the time-out plus the target's grace and a little.
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
    let start = Start {
        supervisor,
        words: words(target),
        environment: environment(target, attempt),
        directory: target.directory.as_deref(),
        grace: target.grace,
        timeout: attempt.timeout,
    };
    match Supervised::start(&start, cancel) {
        Ok(run) => judge(run.finish(attempt, cancel).await),
        Err(error) => {
            let error = format!("command_not_started: {}", why_not(&error));
            failed(
                RetryAdvice::ByPolicy,
                EffectProof::NoEffect,
                &error,
                OutputTail::default(),
            )
        }
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

fn judge(end: End) -> Outcome {
    let End {
        report,
        stop,
        began,
        tail,
    } = end;
    let effect = match report {
        Some(Report::NotStarted(_)) => EffectProof::NoEffect,
        _ if !began => EffectProof::NoEffect,
        _ => EffectProof::Unproven,
    };
    let error = match (report, stop) {
        (_, Some(Stop::Asked(reason))) => return stopped(reason, effect, tail),
        (_, Some(Stop::TimedOut)) => {
            let error = "timed_out: the command was told to stop";
            return with_error(Verdict::TimedOut { effect }, error, tail);
        }
        (_, Some(Stop::LeaseOver)) | (Some(Report::LeaseOver), None) => {
            "command_lease_over: the lease ended and the command was stopped".to_owned()
        }
        (Some(Report::NotStarted(why)), None) => format!("command_not_started: {why}"),
        (Some(Report::Exited(0)), None) => return succeeded(tail),
        (Some(Report::Exited(code)), None) => format!("command_exit: the command ended with exit code {code}"),
        (Some(Report::Signalled(signal)), None) => format!("command_signal: the command was ended by signal {signal}"),
        (Some(Report::Interrupted), None) => {
            "command_interrupted: a signal asked the command's supervisor to end, and the command was stopped"
                .to_owned()
        }
        (Some(Report::Started(_)) | None, None) => {
            "command_supervisor_lost: the command's supervisor ended without a report".to_owned()
        }
    };
    failed(RetryAdvice::ByPolicy, effect, &error, tail)
}
