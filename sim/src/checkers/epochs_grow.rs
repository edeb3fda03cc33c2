//! P4: what the store accepts is one owner's per epoch, epochs and numbers only grow.

use super::{Evidence, Verdict};
use std::collections::BTreeMap;

/// Judges every accepted batch in the order of acceptance.
pub fn check(evidence: &Evidence<'_>, verdict: &mut Verdict) {
    let mut last = BTreeMap::new();
    let mut accepted = evidence.seen.commits.clone();
    accepted.sort_by_key(|commit| (commit.at, commit.epoch, commit.number));
    for commit in &accepted {
        let now = (commit.epoch, commit.number, commit.holder);
        let before = last.insert(commit.scope, now);
        let holds = before.is_none_or(|(epoch, number, holder)| {
            commit.epoch > epoch || (commit.epoch == epoch && commit.number > number && commit.holder == holder)
        });
        verdict.expect(holds, || format!("{commit:?} was accepted after {before:?}"));
    }
}
