//! Clients get only answers that a well-formed request may get.

use super::{Evidence, Verdict};

/// Judges every status. 409 is the answer to a schedule that an earlier send has made; a schedule that
/// could be made only after its last occurrence is refused.
pub fn check(evidence: &Evidence<'_>, verdict: &mut Verdict) {
    let mut refused = evidence.seen.refused;
    for (status, code) in &evidence.seen.answers {
        if *status == 400 && code == "schedule_never_fires" && refused > 0 {
            refused -= 1;
            continue;
        }
        let is_legal = matches!(status, 200 | 201 | 408 | 409 | 429 | 503 | 507);
        verdict.expect(is_legal, || format!("an answer {status} {code}"));
    }
}
