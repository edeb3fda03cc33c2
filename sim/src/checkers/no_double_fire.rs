//! P3: one occurrence makes at most one job, by rows and by calls at the target.

use super::{Evidence, Verdict};
use fencepost_core::job::{FireCause, Origin};
use std::collections::{BTreeMap, BTreeSet};

/// Judges every occurrence that made a job.
pub fn check(evidence: &Evidence<'_>, verdict: &mut Verdict) {
    let mut jobs: BTreeMap<(String, i64), BTreeSet<String>> = BTreeMap::new();
    for job in evidence.jobs() {
        if let Origin::Occurrence {
            schedule,
            nominal,
            cause,
            ..
        } = &job.origin
            && *cause != FireCause::RunNow
        {
            let occurrence = (schedule.to_string(), nominal.0);
            jobs.entry(occurrence).or_default().insert(job.id.to_string());
        }
    }
    for (occurrence, ids) in &jobs {
        verdict.expect(ids.len() == 1, || format!("{occurrence:?} made {ids:?}"));
    }
    let mut keys: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for call in &evidence.seen.calls {
        let occurrence = (call.intent.as_str(), call.scheduled_for.as_str());
        keys.entry(occurrence).or_default().insert(&call.key);
    }
    for (occurrence, keys) in &keys {
        verdict.expect(keys.len() == 1, || format!("{occurrence:?} was called under {keys:?}"));
    }
}
