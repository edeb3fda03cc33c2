//! Clients get only answers that a well-formed request may get, and what an answer says holds.

use super::{Evidence, Verdict};
use crate::seen::Answered;
use fencepost_core::ids::JobId;
use std::collections::BTreeMap;

/// What else than success an operation may be answered with: status and code (`""` is any).
const ALSO: &[(&str, u16, &str)] = &[
    // A job with a limit of its own may arrive too late.
    ("op:create-limited", 400, "too_late"),
    ("op:create-limited", 400, "already_expired"),
    ("op:schedule", 409, "schedule_exists"),
    // Counted against what the planner knew.
    ("op:schedule", 400, "schedule_never_fires"),
    ("op:edit", 400, "schedule_never_fires"),
    ("op:edit", 400, "once_decided"),
    ("op:edit-preview", 400, "once_decided"),
    ("op:edit-preview", 400, "schedule_never_fires"),
    ("op:edit", 412, "version_differs"),
    ("op:edit-preview", 412, "version_differs"),
    // A clock that is behind takes the recent past for the future.
    ("op:backfill", 400, "backfill_future"),
    ("op:backfill-preview", 400, "backfill_future"),
    ("op:backfill", 409, "backfill_range_changed"),
    ("op:backfill-preview", 409, "backfill_range_changed"),
    ("op:backfill", 400, "backfill_scattered"),
    ("op:backfill-preview", 400, "backfill_scattered"),
    // An earlier send, whose answer was lost, has done it.
    ("op:retry", 409, "job_not_dead"),
    ("op:settle", 409, "job_not_uncertain"),
    // What has been given to another since, or whose server was started anew.
    ("op:finish", 409, "attempt_lost"),
    ("op:release", 409, "attempt_lost"),
];

/// What must be refused, and with what.
const REFUSED: &[(&str, u16)] = &[("op:reuse", 422), ("op:edit-stale", 412)];

/// Operations on a schedule that may be gone.
const ON_SCHEDULE: &[&str] = &[
    "op:edit",
    "op:edit-stale",
    "op:edit-preview",
    "op:pause",
    "op:resume",
    "op:delete",
    "op:run-now",
    "op:backfill",
    "op:backfill-preview",
    "op:read",
    "op:fates",
];

/// Judges every answer, and every answer's word.
pub fn check(evidence: &Evidence<'_>, verdict: &mut Verdict) {
    let seen = evidence.seen;
    let may_be_gone = !seen.deletes.is_empty() || seen.refused > 0;
    let mut never_fire = 0;
    for answer in &seen.answers {
        never_fire += u64::from(answer.code == "schedule_never_fires");
        let is_gone = answer.status == 404 && may_be_gone && ON_SCHEDULE.contains(&answer.op);
        verdict.expect(is_legal(answer) || is_gone, || {
            format!("{} was answered {} {}", answer.op, answer.status, answer.code)
        });
    }
    verdict.expect(never_fire <= seen.refused, || {
        format!(
            "{never_fire} schedules were refused as never firing, {} could be",
            seen.refused
        )
    });
    for what in &seen.odd {
        verdict.expect(false, || what.clone());
    }
    check_runs(evidence, verdict);
}

fn is_legal(answer: &Answered) -> bool {
    if matches!(answer.status, 408 | 429 | 503 | 507) {
        return true;
    }
    if let Some((_, status)) = REFUSED.iter().find(|(op, _)| *op == answer.op) {
        return answer.status == *status || answer.code == "schedule_never_fires";
    }
    let fits = |(op, status, code): &&(&str, u16, &str)| {
        *op == answer.op && *status == answer.status && (code.is_empty() || *code == answer.code)
    };
    matches!(answer.status, 200 | 201) || ALSO.iter().any(|also| fits(&also))
}

/// A run-now that comes again tells the same job, however many others came in between.
fn check_runs(evidence: &Evidence<'_>, verdict: &mut Verdict) {
    let mut told: BTreeMap<_, JobId> = BTreeMap::new();
    for ran in &evidence.seen.ran {
        let first = *told.entry((&ran.life, &ran.key)).or_insert(ran.job);
        verdict.expect(first == ran.job, || {
            format!("run-now {} of {} was told {first}, then {}", ran.key, ran.life, ran.job)
        });
        verdict.expect(evidence.job(ran.job).is_some(), || {
            format!("run-now {} was told {}, which is not there", ran.key, ran.job)
        });
    }
}
