//! P1: everything acknowledged is there. A failed call means unknown, never absent.

use super::{Evidence, Verdict};
use fencepost_core::row::Row;
use std::collections::BTreeMap;

/// Judges every acknowledgement.
pub fn check(evidence: &Evidence<'_>, verdict: &mut Verdict) {
    let mut told = BTreeMap::new();
    for ack in &evidence.seen.acks {
        let first = *told.entry(ack.intent.clone()).or_insert(ack.job);
        verdict.expect(first == ack.job, || {
            format!("{} was told {first}, then {}", ack.intent, ack.job)
        });
        let found = evidence.job(ack.job).map(|job| evidence.intent_of(job));
        verdict.expect(found.as_ref() == Some(&ack.intent), || {
            format!("{} was acknowledged as {}; its row says {found:?}", ack.intent, ack.job)
        });
    }
    for name in &evidence.seen.schedules {
        let is_there = evidence
            .rows
            .iter()
            .any(|row| matches!(row, Row::Cursor(cursor) if cursor.name.as_str() == name));
        verdict.expect(is_there, || {
            format!("schedule {name} was acknowledged and is not there")
        });
    }
    for end in &evidence.seen.ends {
        let state = evidence
            .job(end.job)
            .map(|job| format!("{:?}", job.state).to_lowercase());
        verdict.expect(state.as_deref() == Some(&end.state), || {
            format!("{} was told to be {}; its row says {state:?}", end.job, end.state)
        });
    }
}
