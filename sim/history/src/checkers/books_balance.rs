//! P2: jobs, outcomes and the target's ledger explain each other.

use super::{Evidence, Verdict};
use crate::seen::Honours;
use fencepost_core::job::JobState;
use std::collections::{BTreeMap, BTreeSet};

/// A succeeded job has its effect; a call at the target belongs to a job.
pub fn check(evidence: &Evidence<'_>, verdict: &mut Verdict) {
    let mut applied: BTreeMap<&str, u64> = BTreeMap::new();
    let mut may_repeat = BTreeSet::new();
    for call in &evidence.seen.calls {
        *applied.entry(call.key.as_str()).or_default() += u64::from(call.applied);
        // Of a user's service each effect is judged by its name (`no_double_effect`).
        if matches!(call.honours, Honours::Nothing | Honours::ItsOwn) {
            may_repeat.insert(call.key.as_str());
        }
        let known = fencepost_core::ids::JobId::parse(&call.key).and_then(|id| evidence.job(id));
        verdict.expect(known.is_some(), || {
            format!("a call for {} of no job: {}", call.intent, call.key)
        });
    }
    for job in evidence.jobs() {
        let key = job.id.to_string();
        let count = applied.get(key.as_str()).copied().unwrap_or(0);
        let fits = count == 1 || count > 1 && may_repeat.contains(key.as_str());
        let holds = job.state != JobState::Succeeded || fits;
        verdict.expect(holds, || {
            format!(
                "{} ({}) is {:?} with {count} effects",
                job.id,
                evidence.intent_of(job),
                job.state
            )
        });
    }
}
