//! Where a person has to look for a violation: job, token and moment, from what its checker says and from its words.
//!
//! Owns: completing what a checker left open. Must never: change what is wrong. Next: `record.rs`.

use super::record::{Record, Violation};
use crate::run::Found;
use crate::trace::Event;

/// A violation with all that is known of its place.
pub fn complete(found: &Found, record: &Record) -> Violation {
    let about = &found.subject;
    let (schedule, nominal) = about.occurrence.clone().unzip();
    let mut violation = Violation {
        checker: found.checker.clone(),
        what: found.what.clone(),
        job: about.job.map(|job| job.to_string()),
        token: about.token.clone(),
        at: about.at,
        schedule,
        nominal,
    };
    if violation.schedule.is_none() {
        find_job(&mut violation, record);
    }
    find_token(&mut violation, record);
    find_moment(&mut violation, record);
    violation
}

/// A job that the words name, by id or by what it was asked for as.
fn find_job(violation: &mut Violation, record: &Record) {
    if violation.job.is_some() {
        return;
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '@' | ':');
    let words = || {
        violation
            .what
            .split(|c| !is_part(c))
            .map(|word| word.trim_end_matches(':'))
    };
    let by_id = words().find(|word| word.starts_with("job_") && word.len() == 36);
    let by_intent = || {
        let named = |word: &str| record.intents.iter().find(|(_, intent)| intent.as_str() == word);
        words().find_map(named).map(|(job, _)| job.clone())
    };
    violation.job = by_id.map(str::to_owned).or_else(by_intent);
}

/// The token of the job's newest lease.
fn find_token(violation: &mut Violation, record: &Record) {
    let Some(job) = violation.job.as_deref().filter(|_| violation.token.is_none()) else {
        return;
    };
    let leases = record.trace.iter().filter(|event| event.kind == "lease");
    let mut of_job = leases.map(|event| event.payload.split(' ').collect::<Vec<_>>());
    let last = of_job.rfind(|words| words.first() == Some(&job));
    violation.token = last.and_then(|words| words.get(2).map(|token| (*token).to_owned()));
}

/// The grant under the token, else the last that is told of the job, else the occurrence's instant, else the end.
fn find_moment(violation: &mut Violation, record: &Record) {
    if violation.at.is_some() {
        return;
    }
    let told_of = |kind: &str, what: &Option<String>| {
        let what = what.as_deref()?;
        let kinds = record
            .trace
            .iter()
            .filter(|event| kind.is_empty() || event.kind == kind);
        kinds
            .filter(|event| event.payload.contains(what))
            .map(|event| event.at)
            .next_back()
    };
    let granted = || {
        let (job, token) = (violation.job.as_deref()?, violation.token.as_deref()?);
        let is_its = |event: &&Event| {
            let mut words = event.payload.split(' ');
            event.kind == "lease" && words.next() == Some(job) && words.nth(1) == Some(token)
        };
        record.trace.iter().find(is_its).map(|event| event.at)
    };
    let nominal = violation
        .nominal
        .map(|nominal| u64::try_from(nominal - record.starts_at).unwrap_or(0));
    let found = nominal.or_else(granted).or_else(|| told_of("", &violation.job));
    violation.at = Some(found.unwrap_or(record.simulated_us));
}
