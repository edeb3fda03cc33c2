//! P8: nothing starts before it is due, by store time; by true time too while no clock lies.

use super::{Evidence, Verdict};
use fencepost_core::job::Origin;
use std::collections::BTreeMap;

/// Judges every job, every recorded attempt, every call.
pub fn check(evidence: &Evidence<'_>, verdict: &mut Verdict) {
    let mut due = BTreeMap::new();
    let is_back = evidence.seen.forgot_time && evidence.options.faults.clock;
    let may_be_lower = evidence.seen.lowered.is_some() || is_back;
    for job in evidence.jobs() {
        due.insert(job.id.to_string(), job.due_at.0);
        if let Origin::Occurrence { nominal, .. } = &job.origin {
            verdict.expect(job.created_at >= *nominal && job.due_at >= *nominal, || {
                format!("{} fired at {} for {}", job.id, job.created_at.0, nominal.0)
            });
        }
        // What was due by store time before that was lowered may start once it is (F20). The same where it was
        // due by a time that its store stated, died, and has not reached again.
        for attempt in job.attempts.iter().filter(|_| !may_be_lower) {
            verdict.expect(attempt.granted_at >= job.due_at, || {
                format!(
                    "{} granted at {}, due at {}",
                    job.id, attempt.granted_at.0, job.due_at.0
                )
            });
        }
    }
    if evidence.options.faults.clock {
        return;
    }
    for call in &evidence.seen.calls {
        let at = evidence.options.starts_at + call.at.cast_signed();
        if let Some(due) = due.get(&call.key) {
            verdict.expect(at >= *due, || format!("{} called {} us early", call.intent, due - at));
        }
    }
}
