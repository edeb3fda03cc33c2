//! P4: no attempt starts after the answer "cancelled".

use super::{Evidence, Subject, Verdict};
use fencepost_core::job::JobState;

/// A call that left before the answer may still be on its way.
const ON_THE_WAY: u64 = 100_000;

/// Judges every answer to a cancel.
pub fn check(evidence: &Evidence<'_>, verdict: &mut Verdict) {
    for cancel in &evidence.seen.cancels {
        let state = evidence.job(cancel.job).map(|job| job.state);
        let key = cancel.job.to_string();
        if cancel.result == "cancelled" {
            verdict.expect_of(state == Some(JobState::Cancelled), || {
                let about = Subject::job(cancel.job).at(cancel.at);
                (about, format!("{key} was cancelled and ended as {state:?}"))
            });
            let late = evidence
                .seen
                .calls
                .iter()
                .find(|call| call.key == key && call.at > cancel.at + ON_THE_WAY);
            verdict.expect_of(late.is_none(), || {
                let about = late.map_or_else(Subject::default, Subject::call);
                (about, format!("{key} was called after it was cancelled: {late:?}"))
            });
        } else {
            let is_ended = state.is_some_and(|state| state.is_finished() || state == JobState::Uncertain);
            verdict.expect(is_ended || evidence.unmet.is_some(), || {
                format!("{key}, told {}, ended as {state:?}", cancel.result)
            });
        }
    }
}
