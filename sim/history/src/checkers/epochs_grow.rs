//! P4: what the store accepts is one owner's per epoch, epochs and numbers only grow.

use super::{Evidence, Subject, Verdict};
use crate::seen::Accepted;
use std::collections::BTreeMap;

/// Judges every accepted batch in the order of acceptance.
pub fn check(evidence: &Evidence<'_>, verdict: &mut Verdict) {
    let mut last = BTreeMap::new();
    let mut accepted = evidence.seen.commits.clone();
    accepted.sort_by_key(|commit| {
        let is_after = is_after_lowering(evidence, commit);
        (is_after, commit.at, commit.epoch, commit.number)
    });
    for commit in &accepted {
        let now = (commit.epoch, commit.number, commit.holder);
        let before = last.insert(commit.scope, now);
        let holds = before.is_none_or(|(epoch, number, holder)| {
            commit.epoch > epoch || (commit.epoch == epoch && commit.number > number && commit.holder == holder)
        });
        verdict.expect_of(holds, || {
            let about = Subject::default().at(commit.told_at);
            (about, format!("{commit:?} was accepted after {before:?}"))
        });
    }
}

/// Whether it was accepted after the audited lowering of store time, which starts the order by time anew.
fn is_after_lowering(evidence: &Evidence<'_>, commit: &Accepted) -> bool {
    const ON_THE_WAY: u64 = 5_000_000;
    let Some((told_at, to)) = evidence.seen.lowered else {
        return false;
    };
    let passed = commit.told_at.saturating_sub(told_at) + ON_THE_WAY;
    commit.told_at >= told_at && commit.at.0 <= to.0 + passed.cast_signed()
}
