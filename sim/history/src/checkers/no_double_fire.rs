//! P3: one occurrence makes at most one job, and one more for each re-run that was asked for; by rows,
//! and by calls at the target without their ids.

use super::{Evidence, Verdict};
use fencepost_core::job::{FireCause, Origin};
use std::collections::{BTreeMap, BTreeSet};

/// Judges every occurrence that made a job.
pub fn check(evidence: &Evidence<'_>, verdict: &mut Verdict) {
    let mut jobs: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    let mut by_hand = BTreeSet::new();
    for job in evidence.jobs() {
        let Origin::Occurrence {
            schedule,
            incarnation,
            nominal,
            cause,
            ..
        } = &job.origin
        else {
            continue;
        };
        if *cause == FireCause::RunNow {
            by_hand.insert(job.id.to_string());
            continue;
        }
        let occurrence = (schedule.to_string(), *incarnation, nominal.0);
        jobs.entry(occurrence).or_default().insert(job.id.to_string());
    }
    for (occurrence, ids) in &jobs {
        let most = 1 + reruns(evidence, &occurrence.0, occurrence.2);
        verdict.expect(ids.len() <= most, || format!("{occurrence:?} made {ids:?}"));
    }
    check_calls(evidence, &by_hand, verdict);
}

/// A tag names one definition; two lives have it only when a lost answer made one of them.
fn check_calls(evidence: &Evidence<'_>, by_hand: &BTreeSet<String>, verdict: &mut Verdict) {
    let mut keys: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for call in &evidence.seen.calls {
        if !by_hand.contains(&call.key) {
            keys.entry(&call.intent).or_default().insert(&call.key);
        }
    }
    for (intent, keys) in &keys {
        let (name, at) = intent.split_once('.').unwrap_or((intent, ""));
        let is_of_schedule = at.contains('@');
        let most = if is_of_schedule {
            1 + evidence
                .seen
                .backfills
                .iter()
                .filter(|asked| asked.is_rerun && asked.name == name)
                .count()
        } else {
            1
        };
        verdict.expect(keys.len() <= most, || format!("{intent} was called under {keys:?}"));
    }
}

/// Re-runs that were asked for over an instant.
pub fn reruns(evidence: &Evidence<'_>, name: &str, at: i64) -> usize {
    let asked = evidence.seen.backfills.iter();
    asked
        .filter(|asked| asked.is_rerun && asked.name == name && asked.from < at && at <= asked.to)
        .count()
}
