//! P1: everything acknowledged is there. A failed call means unknown, never absent.

use super::{Evidence, Subject, Verdict, tag_of};
use fencepost_core::ids::Incarnation;
use fencepost_core::row::Row;
use std::collections::{BTreeMap, BTreeSet};

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
    check_schedules(evidence, verdict);
    check_shown(evidence, verdict);
    check_reported(evidence, verdict);
    // A dead job may have been sent back since.
    let ends = evidence.seen.ends.iter();
    for end in ends.filter(|end| !evidence.seen.retried.contains(&end.job)) {
        let state = evidence
            .job(end.job)
            .map(|job| format!("{:?}", job.state).to_lowercase());
        verdict.expect(state.as_deref() == Some(&end.state), || {
            format!("{} was told to be {}; its row says {state:?}", end.job, end.state)
        });
    }
}

/// A report that was answered as recorded is the end of its attempt.
fn check_reported(evidence: &Evidence<'_>, verdict: &mut Verdict) {
    let mut ends = BTreeMap::new();
    for row in evidence.rows {
        let (job, records) = match row {
            Row::Job(job) => (job.id, &job.attempts),
            Row::Attempts(page) => (page.id, &page.records),
            _ => continue,
        };
        let told = records
            .iter()
            .map(|record| ((job, record.token.to_string()), record.result));
        ends.extend(told);
    }
    for told in &evidence.seen.reported {
        let end = ends
            .get(&(told.job, told.token.clone()))
            .map(|result| format!("{result:?}").to_lowercase());
        verdict.expect_of(end.as_deref() == Some(told.result), || {
            let what = format!(
                "{}: attempt {} was answered as recorded, {}; its row says {end:?}",
                told.job, told.token, told.result
            );
            (Subject::job(told.job).at(told.at), what)
        });
    }
}

/// What a list showed was durable: the job is there, and an end that was shown stands.
fn check_shown(evidence: &Evidence<'_>, verdict: &mut Verdict) {
    let states: BTreeMap<_, _> = evidence
        .jobs()
        .map(|job| (job.id, format!("{:?}", job.state)))
        .collect();
    for (job, end) in &evidence.seen.shown {
        let state = states.get(job).map(|state| state.to_lowercase());
        verdict.expect(state.is_some(), || {
            format!("{job} was shown in a list and is not there")
        });
        let may_move = end.is_none() || state.is_none() || evidence.seen.retried.contains(job);
        verdict.expect(may_move || *end == state, || {
            format!("{job} was shown as {end:?}; its row says {state:?}")
        });
    }
}

/// A definition that was acknowledged is there for ever; its schedule, while nobody asks to delete it;
/// a life that was told to be over has no cursor.
fn check_schedules(evidence: &Evidence<'_>, verdict: &mut Verdict) {
    let mut tags = BTreeSet::new();
    let mut cursors = BTreeMap::new();
    for row in evidence.rows {
        match row {
            Row::Definition(row) => {
                tags.insert(tag_of(&row.spec.job));
            }
            Row::Cursor(row) => {
                cursors.insert(row.name.to_string(), incarnation(row.incarnation));
            }
            _ => {}
        }
    }
    for made in &evidence.seen.made {
        verdict.expect(tags.contains(&made.tag), || {
            format!("definition {} was acknowledged and is not there", made.tag)
        });
        let may_be_gone = evidence.seen.deletes.contains(&made.name);
        verdict.expect(may_be_gone || cursors.contains_key(&made.name), || {
            format!("schedule {} was acknowledged and is not there", made.name)
        });
    }
    for (name, life) in &cursors {
        verdict.expect(!evidence.seen.deleted.contains(&format!("{name} {life}")), || {
            format!("schedule {name}: life {life} was deleted and is there")
        });
    }
}

/// As the API shows it.
fn incarnation(life: Incarnation) -> String {
    life.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}
