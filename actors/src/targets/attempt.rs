//! What a target is told of the attempt it carries out.
//!
//! Owns: the facts of one attempt and how they are written for the outside. Must never: hold anything that
//! changes while the attempt runs (see `signal`). Next: `http` (headers), `command` (environment), `handler`.

use chrono::{DateTime, SecondsFormat};
use fencepost_core::ids::{JobId, Token};
use fencepost_core::job::{EffectProof, Outcome, RetryAdvice, Verdict};
use fencepost_core::limits::ERROR_BYTES_MAX;
use fencepost_core::name::Name;
use fencepost_core::target::{Payload, Target};
use fencepost_core::time::{Span, StoreTime};

use super::signal::{StopReason, cut_text};
use super::tail::OutputTail;

/// The facts of one attempt.
#[derive(Clone, Debug)]
pub struct AttemptContext {
    /// The job; its text is the idempotency key, the same for every attempt.
    pub job: JobId,
    /// Owner of quotas.
    pub tenant: Name,
    /// The queue it waited in.
    pub queue: Name,
    /// The schedule whose occurrence it is, if it is one.
    pub schedule: Option<Name>,
    /// Fencing token of this attempt.
    pub token: Token,
    /// Counted from 1.
    pub attempt: u32,
    /// The nominal instant of the occurrence, or the due instant of a job asked for directly.
    pub scheduled_for: StoreTime,
    /// How long the attempt may take from now.
    pub timeout: Span,
    /// What to do.
    pub target: Target,
    /// Its input.
    pub payload: Payload,
}

impl AttemptContext {
    /// The idempotency key that the target sees: stable over attempts, never holding the attempt's number.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        #[cfg(madsim)]
        if crate::planted::is_planted(crate::planted::Bug::KeyPerAttempt) {
            return format!("{}-{}", self.job, self.attempt);
        }
        self.job.to_string()
    }

    /// `scheduled_for` as RFC 3339 in UTC.
    #[must_use]
    pub fn scheduled_for_text(&self) -> String {
        rfc3339(self.scheduled_for)
    }
}

/// An instant as RFC 3339 in UTC, with as many digits of a second as it needs.
#[must_use]
pub fn rfc3339(at: StoreTime) -> String {
    DateTime::from_timestamp_micros(at.0)
        .map(|at| at.to_rfc3339_opts(SecondsFormat::AutoSi, true))
        .unwrap_or_default()
}

/// The effect is there.
#[must_use]
pub fn succeeded(output: OutputTail) -> Outcome {
    Outcome {
        verdict: Verdict::Succeeded,
        error: None,
        output: output.into_output(),
    }
}

/// It failed: `error` is a stable code, a colon and a sentence for people.
#[must_use]
pub fn failed(retry: RetryAdvice, effect: EffectProof, error: &str, output: OutputTail) -> Outcome {
    with_error(Verdict::Failed { retry, effect }, error, output)
}

/// It ended because it was told to. Only a cancelled job's attempt is *cancelled*: one that lost its lease or
/// its node has failed, and the job goes on.
#[must_use]
pub fn stopped(reason: StopReason, effect: EffectProof, output: OutputTail) -> Outcome {
    let retry = RetryAdvice::ByPolicy;
    let (verdict, error) = match reason {
        StopReason::CancelRequested => (Verdict::Cancelled { effect }, "cancelled: stopped on request"),
        StopReason::LeaseLost => (
            Verdict::Failed { retry, effect },
            "lease_lost: stopped, the lease was over",
        ),
        StopReason::Draining => (
            Verdict::Failed { retry, effect },
            "drained: stopped, the worker went away",
        ),
    };
    with_error(verdict, error, output)
}

/// An outcome with an error text, cut to its limit.
#[must_use]
pub fn with_error(verdict: Verdict, error: &str, output: OutputTail) -> Outcome {
    let error = Some(cut_text(error, ERROR_BYTES_MAX).into());
    Outcome {
        verdict,
        error,
        output: output.into_output(),
    }
}
