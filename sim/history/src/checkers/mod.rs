//! The checkers: one promise each, judged from outside every node, on simulator time.
//!
//! Owns: their list. A checker counts what it judged; a run in which one never judged anything is
//! not green. Must never: call the product's deciding code (rows are decoded with its codec). Next: any of
//! them; whoever made the record calls `judge`.

mod acked_survives;
mod answers;
mod aside;
mod books_balance;
mod cancel_holds;
mod epochs_grow;
mod legal_moves;
mod lives;
mod never_early;
mod no_double_effect;
mod no_double_fire;
mod no_missed_fire;
mod one_authority;
mod settles;
mod subject;
mod windows;

pub use never_early::judged_beside;
pub use settles::unmet;
pub use subject::Subject;
pub use windows::{Window, windows};

use crate::seen::Seen;
use crate::setting::Setting;
use fencepost_core::ids::JobId;
use fencepost_core::job::{Job, JobSpec};
use fencepost_core::row::Row;
use std::collections::BTreeMap;

/// Everything that is left at the end of a run.
pub struct Evidence<'a> {
    /// In what circumstances.
    pub setting: Setting,
    /// What was seen.
    pub seen: &'a Seen,
    /// Every durable row.
    pub rows: &'a [Row],
    /// Why the run did not settle, if it did not.
    pub unmet: Option<&'a str>,
}

/// The judgement of one checker.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Things judged.
    pub evaluations: u64,
    /// What is wrong.
    pub violations: Vec<String>,
    /// What a violation is about, by its number, where its checker says so.
    pub subjects: BTreeMap<usize, Subject>,
}

type Check = fn(&Evidence<'_>, &mut Verdict);

const CHECKERS: &[(&str, Check)] = &[
    ("no_missed_fire", no_missed_fire::check),
    ("no_double_fire", no_double_fire::check),
    ("no_double_effect", no_double_effect::check),
    ("never_early", never_early::check),
    ("one_authority", one_authority::check),
    ("epochs_grow", epochs_grow::check),
    ("acked_survives", acked_survives::check),
    ("settles", settles::check),
    ("legal_moves", legal_moves::check),
    ("cancel_holds", cancel_holds::check),
    ("books_balance", books_balance::check),
    ("answers", answers::check),
];

/// The word for all of them, and their names.
pub const NAMES: &[&str] = &[
    "all",
    "no_missed_fire",
    "no_double_fire",
    "no_double_effect",
    "never_early",
    "one_authority",
    "epochs_grow",
    "acked_survives",
    "settles",
    "legal_moves",
    "cancel_holds",
    "books_balance",
    "answers",
];

/// Checkers that have something to judge only in some runs.
const SOMETIMES: &[&str] = &["cancel_holds"];

/// What is wrong with a checker that had nothing to judge.
pub const JUDGED_NOTHING: &str = "it judged nothing";

/// Names of all checkers, those that name the cause before those that add up.
pub fn names() -> impl Iterator<Item = &'static str> {
    CHECKERS.iter().map(|(name, _)| *name)
}

/// Judges a run by every checker.
pub fn judge(evidence: &Evidence<'_>) -> BTreeMap<&'static str, Verdict> {
    let mut verdicts = judge_by(evidence, &["all"]);
    for (name, verdict) in &mut verdicts {
        if verdict.evaluations == 0 && !SOMETIMES.contains(name) {
            verdict.violations.push(JUDGED_NOTHING.to_owned());
        }
    }
    verdicts
}

/// Judges a run by the checkers of these names. Whether one judged anything is for the set of runs to say.
pub fn judge_by(evidence: &Evidence<'_>, names: &[&str]) -> BTreeMap<&'static str, Verdict> {
    let mut verdicts = BTreeMap::new();
    let is_asked = |name: &str| names.contains(&"all") || names.contains(&name);
    for (name, check) in CHECKERS.iter().filter(|(name, _)| is_asked(name)) {
        let mut verdict = Verdict::default();
        check(evidence, &mut verdict);
        verdicts.insert(*name, verdict);
    }
    verdicts
}

impl Verdict {
    /// Judges one thing.
    pub fn expect(&mut self, holds: bool, what: impl FnOnce() -> String) {
        self.evaluations += 1;
        if !holds {
            self.violations.push(what());
        }
    }

    /// Judges one thing and says what it is about, so that a report can show the place.
    pub fn expect_of(&mut self, holds: bool, what: impl FnOnce() -> (Subject, String)) {
        let mut subject = None;
        self.expect(holds, || {
            let (about, text) = what();
            subject = Some(about);
            text
        });
        if let Some(about) = subject {
            self.subjects.insert(self.violations.len() - 1, about);
        }
    }
}

impl Evidence<'_> {
    /// Every job's row.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.rows.iter().filter_map(|row| match row {
            Row::Job(job) => Some(&**job),
            _ => None,
        })
    }

    /// One job's row.
    pub fn job(&self, id: JobId) -> Option<&Job> {
        self.jobs().find(|job| job.id == id)
    }

    /// What a job was asked for as: the intent in its payload, with the nominal instant for schedules.
    pub fn intent_of(&self, job: &Job) -> String {
        use fencepost_core::job::Origin;
        let intent = tag_of(&job.spec);
        match &job.origin {
            Origin::Occurrence { nominal, .. } => format!("{intent}@{}", nominal.0),
            Origin::Request { .. } => intent,
        }
    }
}

/// The intent in a job's payload.
pub fn tag_of(spec: &JobSpec) -> String {
    let payload = serde_json::from_slice::<serde_json::Value>(&spec.payload.bytes).unwrap_or_default();
    let intent = payload.get("intent").and_then(serde_json::Value::as_str);
    intent.unwrap_or("?").to_owned()
}

#[cfg(test)]
mod tests {
    use super::{CHECKERS, NAMES};

    #[test]
    fn every_checker_has_its_name_in_the_list() {
        let names: Vec<&str> = CHECKERS.iter().map(|(name, _)| *name).collect();
        assert_eq!(NAMES.iter().skip(1).copied().collect::<Vec<_>>(), names);
    }
}
