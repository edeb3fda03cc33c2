//! P8: nothing starts before it is due, by store time; by true time too while no clock lies.

use super::{Evidence, Subject, Verdict};
use crate::seen::{Call, Seen};
use fencepost_core::job::{AttemptRecord, Job, Origin};
use fencepost_core::row::Row;
use std::collections::BTreeMap;

/// How old the last statement of store time may be when a delay ends.
const STATED_AGO_MAX: i64 = 1_000_000;

/// Judges every job, every recorded attempt, every call.
pub fn check(evidence: &Evidence<'_>, verdict: &mut Verdict) {
    let mut due = BTreeMap::new();
    for job in evidence.jobs() {
        due.insert(job.id.to_string(), job.due_at.0);
        if let Origin::Occurrence { nominal, .. } = &job.origin {
            verdict.expect(job.created_at >= *nominal && job.due_at >= *nominal, || {
                format!("{} fired at {} for {}", job.id, job.created_at.0, nominal.0)
            });
        }
        for attempt in &job.attempts {
            let is_due = attempt.granted_at >= job.due_at
                || was_due(evidence.seen, job, attempt)
                || was_waited_out(evidence, job, attempt);
            verdict.expect_of(is_due, || {
                let about = Subject::job(job.id).with_token(attempt.token);
                let (granted, due) = (attempt.granted_at.0, job.due_at.0);
                (about, format!("{} granted at {granted}, due at {due}", job.id))
            });
        }
    }
    if evidence.setting.clocks_lie {
        return;
    }
    for call in &evidence.seen.calls {
        let at = evidence.setting.starts_at + call.at.cast_signed();
        if let Some(due) = due.get(&call.key) {
            verdict.expect_of(at >= *due, || {
                let early = due - at;
                (Subject::call(call), format!("{} called {early} us early", call.intent))
            });
        }
    }
}

/// Due by a time that the store once stated, and granted before it had come so far again (F20).
fn was_due(seen: &Seen, job: &Job, attempt: &AttemptRecord) -> bool {
    seen.again.iter().any(|again| {
        let stretch = again.from..again.to;
        stretch.contains(&attempt.granted_at.0) && job.due_at.0 <= again.to
    })
}

/// A delay is elapsed time: it ends while store time stands, and what came twice was waited out twice (F20 b). Of a
/// job that is over only its instants tell a delay from an instant: it was due after it was made. The time of a grant
/// is the last one stated, which may be older than the wait's end; the calls are judged by the run's own time. Where
/// words are late, or a node froze, nothing bounds that age: there the attempt's call counts, as far as clocks lie.
fn was_waited_out(evidence: &Evidence<'_>, job: &Job, attempt: &AttemptRecord) -> bool {
    let is_asked_for = matches!(job.origin, Origin::Request { .. }) && job.due_at > job.created_at;
    let (made, granted) = (job.created_at.0, attempt.granted_at.0);
    let passed = granted + STATED_AGO_MAX + evidence.seen.passed_unstated(made, granted);
    let is_called_early = |call: &Call| {
        let at = evidence.setting.starts_at + call.at.cast_signed();
        call.token == attempt.token.to_string() && at + evidence.setting.lies_max < job.due_at.0
    };
    let may_be_older = evidence.setting.words_are_late && !evidence.seen.calls.iter().any(is_called_early);
    is_asked_for && (passed >= job.due_at.0 || may_be_older)
}

/// In a run where store time came twice: attempts that may not start before their own due time all the same.
pub fn judged_beside(seen: &Seen, rows: &[Row]) -> usize {
    if !seen.again.iter().any(|again| again.from < again.to) {
        return 0;
    }
    let attempts = rows.iter().map(|row| match row {
        Row::Job(job) => job.attempts.iter().filter(|a| !was_due(seen, job, a)).count(),
        _ => 0,
    });
    attempts.sum()
}
