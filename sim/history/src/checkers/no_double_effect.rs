//! P5: at most one effect per wish at a target that honours keys, or tokens with sealing; at one that honours
//! neither, for a job that is delivered at most once; a wish has one key; a later attempt carries a greater token.

use super::{Evidence, Subject, Verdict};
use crate::seen::{Call, Honours};
use fencepost_core::ids::JobId;
use std::collections::{BTreeMap, BTreeSet};

/// Judges the calls of each wish. What a client wants is known by its payload, whatever key came with
/// it; what an occurrence makes, by the job that its key names, since a re-run makes another.
pub fn check(evidence: &Evidence<'_>, verdict: &mut Verdict) {
    let mut wishes: BTreeMap<String, Vec<&Call>> = BTreeMap::new();
    for call in &evidence.seen.calls {
        let wish = match call.intent.contains('@') {
            true => format!("{} {}", call.intent, call.key),
            false => call.intent.clone(),
        };
        wishes.entry(wish).or_default().push(call);
    }
    for (intent, calls) in wishes {
        let applied: Vec<&&Call> = calls.iter().filter(|call| call.applied).collect();
        let may_repeat = calls.iter().any(|call| may_repeat(evidence, call));
        verdict.expect_of(applied.len() <= 1 || may_repeat, || {
            let again = applied.get(1).map_or_else(Subject::default, |call| Subject::call(call));
            (again, format!("{intent} was applied {} times", applied.len()))
        });
        let keys: BTreeSet<&str> = calls.iter().map(|call| call.key.as_str()).collect();
        verdict.expect_of(keys.len() == 1, || {
            let other = calls
                .iter()
                .find(|call| calls.first().is_some_and(|first| first.key != call.key));
            let about = other.map_or_else(Subject::default, |call| Subject::call(call));
            (about, format!("{intent} came under several keys: {keys:?}"))
        });
        let names_job = |key: &&str| JobId::parse(key).is_some();
        verdict.expect(keys.iter().all(names_job), || {
            format!("{intent} came under a key that is no job: {keys:?}")
        });
        check_tokens(&intent, &calls, verdict);
    }
}

/// At least once, at a target that honours nothing: that it may be applied twice was chosen. What was asked for counts,
/// which the payload says, and not what the product made of it.
fn may_repeat(evidence: &Evidence<'_>, call: &Call) -> bool {
    let job = JobId::parse(&call.key).and_then(|id| evidence.job(id));
    call.honours == Honours::Nothing && job.is_some_and(|job| !is_once(&job.spec.payload.bytes))
}

fn is_once(payload: &[u8]) -> bool {
    let payload = serde_json::from_slice::<serde_json::Value>(payload).unwrap_or_default();
    payload
        .get("once")
        .and_then(serde_json::Value::as_bool)
        .unwrap_or_default()
}

fn check_tokens(intent: &str, calls: &[&Call], verdict: &mut Verdict) {
    let mut by_attempt: BTreeMap<u64, BTreeSet<&str>> = BTreeMap::new();
    for call in calls {
        by_attempt.entry(call.attempt).or_default().insert(&call.token);
    }
    let mut highest = "";
    for (attempt, tokens) in by_attempt {
        let lowest = tokens.first().copied().unwrap_or_default();
        verdict.expect_of(tokens.len() == 1 && lowest > highest, || {
            let first = calls.iter().find(|call| call.attempt == attempt);
            let about = first.map_or_else(Subject::default, |call| Subject::call(call));
            (
                about,
                format!("{intent}: attempt {attempt} came with {tokens:?} after {highest}"),
            )
        });
        highest = tokens.last().copied().unwrap_or_default();
    }
}
