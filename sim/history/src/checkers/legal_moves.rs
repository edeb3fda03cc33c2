//! Every job's history is a path in the table of states; attempts stay within their policy.

use super::{Evidence, Verdict};
use fencepost_core::job::{Job, JobState};
use std::collections::BTreeMap;

/// Judges the news of each job in order, then each job's row.
pub fn check(evidence: &Evidence<'_>, verdict: &mut Verdict) {
    let mut last: BTreeMap<_, &Job> = BTreeMap::new();
    for job in &evidence.seen.moves {
        if let Some(before) = last.insert(job.id, job) {
            let is_sent_back = before.state == JobState::Dead && evidence.seen.retried.contains(&job.id);
            verdict.expect(may_follow(before, job, is_sent_back), || {
                format!(
                    "{}: {:?} v{} was told after {:?} v{}",
                    job.id, job.state, job.version, before.state, before.version
                )
            });
        }
    }
    for job in evidence.jobs() {
        let told = last.get(&job.id).is_none_or(|told| told.version <= job.version);
        verdict.expect(told, || format!("{}: news of a version beyond its row", job.id));
        check_attempts(job, verdict);
    }
}

/// Written from the documentation of states, not from the product's table: an end is an end, but for a
/// dead job that a person sent back.
fn may_follow(before: &Job, after: &Job, is_sent_back: bool) -> bool {
    let is_end = !is_sent_back
        && matches!(
            before.state,
            JobState::Succeeded | JobState::Cancelled | JobState::Expired | JobState::Dead
        );
    let is_same = before.version == after.version && before.state == after.state;
    is_same || (!is_end && after.version > before.version)
}

fn check_attempts(job: &Job, verdict: &mut Verdict) {
    let most = job.spec.retry.attempt_count_max;
    verdict.expect(job.charged <= most, || {
        format!("{}: {} attempts charged of {most}", job.id, job.charged)
    });
    for (earlier, later) in job.attempts.iter().zip(job.attempts.iter().skip(1)) {
        verdict.expect(earlier.no < later.no && earlier.token < later.token, || {
            format!(
                "{}: attempt {} with {} before attempt {} with {}",
                job.id, earlier.no, earlier.token, later.no, later.token
            )
        });
    }
}
