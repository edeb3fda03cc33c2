//! P6: after the last fault heals, everything due is done within a bound, with no help.
//!
//! Owns: the predicate of quiescence; it names the clause that is not met. What owners died of waits for a person
//! by rule, and must have been killed often enough.

use super::{Evidence, Verdict, aside};
use fencepost_core::row::Row;

/// The clause of quiescence that these rows do not meet, if any.
pub fn unmet(rows: &[Row], open_work: u64) -> Option<String> {
    if open_work > 0 {
        return Some(format!("{open_work} clients still wait for an answer"));
    }
    let is_aside = |name: &str| aside::names(rows).any(|(aside, _)| aside == name);
    rows.iter().find_map(|row| match row {
        Row::Wait(row) => Some(format!("{} still waits for {}", row.id, row.at.0)),
        Row::Ready(row) => Some(format!("{} is ready and not granted", row.id)),
        Row::Leased(row) => Some(format!("{} is held by {}", row.id, row.worker)),
        Row::Backlog(row) => Some(format!("schedule {} has a backlog", row.name)),
        Row::Cursor(row) if row.finished_at.is_none() && !is_aside(row.name.as_str()) => {
            Some(format!("schedule {} is not finished", row.name))
        }
        Row::Quarantine(row) if aside::name_of(row).is_none() => {
            Some(format!("a row is in quarantine: {}", row.reason))
        }
        _ => None,
    })
}

/// Judges the end of the run, and that every job has ended.
pub fn check(evidence: &Evidence<'_>, verdict: &mut Verdict) {
    let unmet = evidence.unmet;
    verdict.expect(unmet.is_none(), || {
        format!("not settled in time: {}", unmet.unwrap_or_default())
    });
    for (name, row) in aside::names(evidence.rows) {
        verdict.expect(aside::is_explained(evidence, row.at.0), || {
            format!(
                "schedule {name} was put aside though too few owners had died: {}",
                row.reason
            )
        });
    }
    for job in evidence.jobs() {
        use fencepost_core::job::{Delivery, JobState};
        let may_park = job.spec.delivery == Delivery::AtMostOnce && job.state == JobState::Uncertain;
        verdict.expect(unmet.is_some() || job.state.is_finished() || may_park, || {
            format!("{} has no place row and is {:?}", job.id, job.state)
        });
    }
}
