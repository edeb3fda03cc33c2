//! What a set of runs adds up to, and the summary that a person reads on a terminal.
//!
//! Owns: the sums. Must never: count a run that left no record as one that passed. Next: `junit.rs`, `json.rs`,
//! `github.rs`.

use super::record::Record;
use std::collections::BTreeMap;
use std::time::Duration;

/// One run of a set.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Its record, without events.
    pub record: Record,
    /// Where its bundle lies.
    pub bundle: Option<String>,
}

/// A set of runs.
#[derive(Clone, Debug, Default)]
pub struct Set {
    /// Commit of the program.
    pub commit: String,
    /// The runs, by seed.
    pub outcomes: Vec<Outcome>,
    /// What stayed below its floor.
    pub below: Vec<String>,
}

/// How a name in `felt` is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// A fault that had its effect.
    Fault,
    /// One of a scenario's own faults that had its effect, by its number in the file: counted as a fault already.
    Entry,
    /// A request that was carried out.
    Operation,
    /// A state that was met.
    State,
}

impl Counted {
    /// Which of them a name is, and what is left of it.
    pub fn of(name: &str) -> (Counted, &str) {
        match name.split_once(':') {
            Some(("op", rest)) => (Counted::Operation, rest),
            Some(("fault", rest)) => (Counted::Entry, rest),
            Some((_, rest)) => (Counted::State, rest),
            None => (Counted::Fault, name),
        }
    }
}

impl Set {
    /// Everything felt, done and seen.
    pub fn felt(&self) -> BTreeMap<String, u64> {
        sum(self.outcomes.iter().map(|outcome| &outcome.record.felt))
    }

    /// Of one sort, by what is left of their names.
    pub fn counted(&self, sort: Counted) -> BTreeMap<String, u64> {
        let felt = self.felt().into_iter();
        felt.filter_map(|(name, count)| match Counted::of(&name) {
            (found, rest) if found == sort => Some((rest.to_owned(), count)),
            _ => None,
        })
        .collect()
    }

    /// Things judged, by checker.
    pub fn evaluations(&self) -> BTreeMap<String, u64> {
        sum(self.outcomes.iter().map(|outcome| &outcome.record.evaluations))
    }

    /// Violations, by checker.
    pub fn violations(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for violation in self.outcomes.iter().flat_map(|outcome| &outcome.record.violations) {
            *counts.entry(violation.checker.clone()).or_default() += 1;
        }
        counts
    }

    /// Seeds that failed.
    pub fn failed(&self) -> Vec<u64> {
        let failed = self.outcomes.iter().filter(|outcome| !outcome.record.is_content());
        failed.map(|outcome| outcome.record.seed).collect()
    }

    /// Simulated microseconds in which something could happen: a day that is slept through is not among them.
    pub fn simulated_us(&self) -> u64 {
        self.outcomes.iter().map(|outcome| awake(&outcome.record)).sum()
    }

    /// Real milliseconds that the runs took, added up.
    pub fn wall_ms(&self) -> u64 {
        self.outcomes.iter().map(|outcome| outcome.record.wall_ms).sum()
    }

    /// How many times as fast as the clock on the wall one run goes.
    pub fn ratio(&self) -> u64 {
        self.simulated_us() / 1_000 / self.wall_ms().max(1)
    }
}

fn awake(record: &Record) -> u64 {
    record.simulated_us.saturating_sub(record.asleep_us)
}

fn sum<'a>(all: impl Iterator<Item = &'a BTreeMap<String, u64>>) -> BTreeMap<String, u64> {
    let mut totals = BTreeMap::new();
    for (name, count) in all.flatten() {
        *totals.entry(name.clone()).or_default() += count;
    }
    totals
}

/// The summary of a set that took this long in all.
pub fn text(set: &Set, took: Duration) -> String {
    let failed = set.failed();
    let passed = set.outcomes.len() - failed.len();
    let hours = set.simulated_us() / 36_000_000;
    let mut lines = vec![
        format!("{passed} seeds passed, {} failed: {failed:?}", failed.len()),
        format!(
            "simulated {}.{:02} h in {} s ({} s of runs, each {} times as fast as real time), commit {}",
            hours / 100,
            hours % 100,
            took.as_secs(),
            set.wall_ms() / 1_000,
            set.ratio(),
            set.commit
        ),
    ];
    for (title, sort) in [
        ("faults felt", Counted::Fault),
        ("operations", Counted::Operation),
        ("states seen", Counted::State),
    ] {
        let told: Vec<String> = set
            .counted(sort)
            .iter()
            .map(|(what, count)| format!("{what} {count}"))
            .collect();
        lines.extend(wrapped(title, &told));
    }
    let violations = set.violations();
    lines.push(format!("{:<18} {:>12} {:>11}", "checker", "evaluations", "violations"));
    for (checker, count) in set.evaluations() {
        let found = violations.get(&checker).copied().unwrap_or(0);
        lines.push(format!("{checker:<18} {count:>12} {found:>11}"));
    }
    if let Some(found) = violations.get("run") {
        lines.push(format!("{:<18} {:>12} {found:>11}", "run", "-"));
    }
    lines.join("\n")
}

/// Longest line of a list.
const WIDTH: usize = 110;

fn wrapped(title: &str, items: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = format!("{title:<12}");
    for item in items {
        if line.len() + item.len() + 3 > WIDTH {
            lines.push(line);
            line = " ".repeat(12);
        }
        if !line.ends_with("  ") && line.len() > 12 {
            line.push_str(" ·");
        }
        line.push(' ');
        line.push_str(item);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::record::Violation;
    use super::*;

    /// A set of two runs, the second of which failed.
    pub fn sample() -> Set {
        let violation = Violation {
            checker: "no_double_effect".to_owned(),
            what: "c0-3 was applied 2 times <&> \u{1}".to_owned(),
            job: Some("job_1".to_owned()),
            token: Some("0f".to_owned()),
            at: Some(1_500_000),
            ..Violation::default()
        };
        let record = |seed, violations: Vec<Violation>| Record {
            seed,
            options: "shards=1".to_owned(),
            hash: format!("hash{seed}"),
            simulated_us: 100_000_000 + 90_000_000_000,
            asleep_us: 90_000_000_000,
            wall_ms: 50,
            felt: [("crash", 2), ("fault:1-crash", 2), ("op:create", 3), ("seen:dead", 1)]
                .map(|(what, count)| (what.to_owned(), count))
                .into(),
            evaluations: [("no_double_effect".to_owned(), 9)].into(),
            violations,
            ..Record::default()
        };
        Set {
            commit: "abc".to_owned(),
            outcomes: vec![
                Outcome {
                    record: record(6, Vec::new()),
                    bundle: None,
                },
                Outcome {
                    record: record(7, vec![violation]),
                    bundle: Some("seed-7.json".to_owned()),
                },
            ],
            below: vec!["sick 0 of 23".to_owned()],
        }
    }

    #[test]
    fn the_summary_tells_time_faults_states_and_checkers() {
        let told = text(&sample(), Duration::from_secs(1));
        for part in [
            "1 seeds passed, 1 failed: [7]",
            "simulated 0.05 h in 1 s (0 s of runs, each 2000 times as fast as real time), commit abc",
            "faults felt  crash 4",
            "operations   create 6",
            "states seen  dead 2",
            "no_double_effect             18           1",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
}
