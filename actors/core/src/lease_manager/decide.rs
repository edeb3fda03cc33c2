//! What an ended attempt means for its job: pure rules, in one place.
//!
//! Owns: F15's table, the retry rule, the backoff. Must never: write. Next: `outcomes.rs`.

use crate::ids::{JobId, hash64};
use crate::job::{AttemptResult, Delivery, EffectProof, Job, RetryAdvice, RetryPolicy, Verdict};
use crate::limits::{BACKOFF_CAP_MS_MAX, SUPERVISOR_LATE_MS, WORKER_LOST_WAIT_MS};
use crate::target::Target;
use crate::time::Span;

/// Reason of a job whose target said never again.
pub(super) const STOPPED_BY_TARGET: &str = "stopped by target";
/// Reason of a job that failed as often as it may.
pub(super) const ATTEMPTS_USED_UP: &str = "attempts used up";
/// Reason of a job whose worker was lost.
pub(super) const WORKER_LOST: &str = "worker lost";
/// Reason of a job that may have had its effect.
pub(super) const OUTCOME_UNPROVEN: &str = "outcome unproven";
/// Reason of a job that someone cancelled.
pub(super) const CANCELLED: &str = "cancelled on request";

/// What becomes of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Next {
    /// Done.
    Succeed,
    /// Another attempt after this long.
    RetryAfter(Span),
    /// Cancelled instead of another attempt.
    Cancel,
    /// Given up.
    GiveUp(&'static str),
    /// Uncertain, for a human.
    Park(&'static str),
}

/// After an outcome; `job` has this attempt charged already.
pub(super) fn decide_after_outcome(job: &Job, verdict: Verdict) -> Next {
    let (advice, effect) = match verdict {
        Verdict::Succeeded => return Next::Succeed,
        Verdict::Failed { retry, effect } => (retry, effect),
        Verdict::TimedOut { effect } | Verdict::Cancelled { effect } => (RetryAdvice::ByPolicy, effect),
    };
    if job.spec.delivery == Delivery::AtMostOnce && effect == EffectProof::Unproven {
        return Next::Park(OUTCOME_UNPROVEN);
    }
    if job.cancel_requested_at.is_some() {
        return Next::Cancel;
    }
    let wait = backoff(job.id, &job.spec.retry, job.charged);
    match advice {
        RetryAdvice::Stop => Next::GiveUp(STOPPED_BY_TARGET),
        _ if is_used_up(job) => Next::GiveUp(ATTEMPTS_USED_UP),
        RetryAdvice::ByPolicy => Next::RetryAfter(wait),
        RetryAdvice::After(span) => Next::RetryAfter(span.min(Span::from_millis(BACKOFF_CAP_MS_MAX)).max(wait)),
    }
}

/// After its lease ended or its worker died; `job` has this attempt charged already.
pub(super) fn decide_after_loss(job: &Job, begun: bool) -> Next {
    if job.spec.delivery == Delivery::AtMostOnce && begun {
        return Next::Park(WORKER_LOST);
    }
    if job.cancel_requested_at.is_some() {
        return Next::Cancel;
    }
    if is_used_up(job) {
        return Next::GiveUp(WORKER_LOST);
    }
    // What ended with its worker comes back together, or what was there first would meet the others again (BEH-R02).
    // What may have outlived it comes later.
    Next::RetryAfter(Span::from_millis(WORKER_LOST_WAIT_MS).max(outlived_by(job)))
}

/// For how long what an attempt began may outlive its worker. A call ends with the process that makes it; a command is
/// told to end by its supervisor and has its grace for that. An at-most-once job comes here only if nothing began.
fn outlived_by(job: &Job) -> Span {
    match (&job.spec.target, job.spec.delivery) {
        (Target::Command(command), Delivery::AtLeastOnce) => command.grace + Span::from_millis(SUPERVISOR_LATE_MS),
        (Target::Command(_) | Target::Http(_) | Target::Handler(_) | Target::Remote(_), _) => Span::ZERO,
    }
}

/// How an attempt with this verdict is written down.
pub(super) fn result_of(verdict: Verdict) -> AttemptResult {
    match verdict {
        Verdict::Succeeded => AttemptResult::Succeeded,
        Verdict::Failed { .. } => AttemptResult::Failed,
        Verdict::TimedOut { .. } => AttemptResult::TimedOut,
        Verdict::Cancelled { .. } => AttemptResult::Cancelled,
    }
}

/// The wait after the `nth` charged attempt: doubles from the first delay up to the cap, of which the
/// upper half is jitter. A pure function of job and attempt: a restart does not draw it anew.
pub fn backoff(id: JobId, policy: &RetryPolicy, nth: u32) -> Span {
    let doubled = nth.saturating_sub(1).min(62);
    let factor = 1_u64 << doubled;
    let full = policy.backoff_first.0.saturating_mul(factor).min(policy.backoff_cap.0);
    let floor = full / 2;
    let chance = hash64("backoff", &[id.as_bytes(), &nth.to_be_bytes()]);
    Span(floor + chance % (full - floor + 1))
}

fn is_used_up(job: &Job) -> bool {
    job.charged >= job.spec.retry.attempt_count_max
}
