//! What a timeline shows, taken from a run's record.
//!
//! Owns: lanes, leases, calls, occurrence windows, marks, and what of it a violation is about. Must never: decide
//! how it looks (`draw.js`), or what is wrong (the checkers). Next: `states.rs`.

use super::states::{State, states};
use crate::report::promises::promise;
use crate::report::record::{Fault, Record};
use crate::trace::Event;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Everything on the page.
#[derive(Clone, Debug, Serialize)]
pub struct Timeline {
    seed: u64,
    options: String,
    commit: String,
    command: String,
    hash: String,
    /// True wall time at the beginning, in microseconds since the Unix epoch.
    starts_at_us: i64,
    /// When everything was healed, if that came; all times are simulated microseconds since the run began.
    healed_at: Option<u64>,
    ends_at: u64,
    checkers: Vec<Checker>,
    /// Machines, in the order shown.
    lanes: Vec<String>,
    states: Vec<State>,
    faults: Vec<Fault>,
    /// Faults that are drawn call by call: when, and what.
    felt: Vec<(u64, String)>,
    /// Every lease.
    pub leases: Vec<Lease>,
    /// Every call at the target.
    pub calls: Vec<Call>,
    windows: Vec<Window>,
    marks: Vec<Mark>,
    intents: BTreeMap<String, String>,
    /// As the record has them: by checker, in the order of time.
    pub violations: Vec<Shown>,
}

#[derive(Clone, Debug, Serialize)]
struct Checker {
    name: String,
    promise: &'static str,
    evaluations: u64,
    violations: usize,
}

/// A lease as the store kept it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lease {
    /// The machine that held it.
    pub lane: String,
    /// Job.
    pub job: String,
    /// Attempt number.
    pub attempt: String,
    /// Token.
    pub token: String,
    /// Granted.
    pub from: u64,
    /// Over; the end of the run while nothing ended it.
    pub to: u64,
    /// How the attempt ended.
    pub result: Option<String>,
    /// Where the job stood then.
    pub state: Option<String>,
    /// A violation is about it.
    pub wrong: bool,
}

/// A call at the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Call {
    /// When.
    pub at: u64,
    /// Job, as its key says.
    pub job: String,
    /// Token.
    pub token: String,
    /// Attempt number.
    pub attempt: String,
    /// Whether it had its effect.
    pub applied: bool,
    /// A violation is about it.
    pub wrong: bool,
}

#[derive(Clone, Debug, Serialize)]
struct Window {
    schedule: String,
    at: i64,
    until: i64,
    fate: Option<String>,
    jobs: Vec<String>,
    wrong: bool,
}

/// Something that a client was told, or that a machine said.
#[derive(Clone, Debug, Serialize)]
struct Mark {
    at: u64,
    lane: String,
    text: String,
    job: Option<String>,
}

/// A violation with the promise that it breaks.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// Whose promise.
    pub checker: String,
    promise: &'static str,
    what: String,
    /// Job.
    pub job: Option<String>,
    /// Token.
    pub token: Option<String>,
    at: u64,
    schedule: Option<String>,
    /// Nominal instant of the occurrence, since the run began.
    nominal: Option<i64>,
}

/// What the names of machines begin with that are shown, in this order, where the run has them.
const LANES: &[&str] = &["store", "server", "second", "third", "worker", "target", "client"];

/// What the page of a run shows.
pub fn of(record: &Record) -> Timeline {
    let trace = &record.trace;
    let wrong = Wrong::of(record);
    let first = |kind: &str| trace.iter().find(|event| event.kind == kind).map(|event| event.at);
    Timeline {
        seed: record.seed,
        options: record.options.clone(),
        commit: record.program.commit.clone(),
        command: record.story().command(),
        hash: record.hash.clone(),
        starts_at_us: record.starts_at,
        healed_at: first("healed"),
        ends_at: record.simulated_us,
        checkers: checkers(record),
        lanes: lanes(trace),
        states: states(trace, record.simulated_us),
        faults: record.faults.clone(),
        felt: felt(trace),
        leases: end_by_rows(leases(trace, record.simulated_us, &wrong), record),
        calls: calls(trace, &wrong),
        windows: windows(record, &wrong),
        marks: trace.iter().filter_map(mark).collect(),
        intents: record.intents.clone(),
        violations: violations(record),
    }
}

/// What violations are about.
struct Wrong {
    /// Job and token: shards give tokens of their own, and two may be alike.
    leases: BTreeSet<(String, String)>,
    calls: BTreeSet<(u64, String)>,
    occurrences: BTreeSet<(String, i64)>,
    jobs: BTreeSet<String>,
}

impl Wrong {
    fn of(record: &Record) -> Wrong {
        let found = || record.violations.iter();
        Wrong {
            leases: found()
                .filter_map(|found| found.job.clone().zip(found.token.clone()))
                .collect(),
            calls: found().filter_map(|found| found.at.zip(found.token.clone())).collect(),
            occurrences: found()
                .filter_map(|found| found.schedule.clone().zip(found.nominal))
                .collect(),
            jobs: found().filter_map(|found| found.job.clone()).collect(),
        }
    }
}

fn checkers(record: &Record) -> Vec<Checker> {
    let count = |name: &str| record.violations.iter().filter(|found| found.checker == name).count();
    let mut all: Vec<Checker> = record
        .evaluations
        .iter()
        .map(|(name, evaluations)| Checker {
            name: name.clone(),
            promise: promise(name),
            evaluations: *evaluations,
            violations: count(name),
        })
        .collect();
    if count("run") > 0 {
        all.push(Checker {
            name: "run".to_owned(),
            promise: promise("run"),
            evaluations: 1,
            violations: count("run"),
        });
    }
    all
}

fn lanes(trace: &[Event]) -> Vec<String> {
    let there: BTreeSet<&str> = trace.iter().map(|event| event.node.as_str()).collect();
    // Clients speak with one voice, whatever their machines are called.
    let is_its = |lane: &str, name: &str| name.starts_with(lane) && !name.starts_with("client-");
    let named = |lane: &&'static str| {
        let lane = *lane;
        there
            .iter()
            .filter(move |name| is_its(lane, name))
            .map(|name| (*name).to_owned())
    };
    LANES.iter().flat_map(named).collect()
}

fn felt(trace: &[Event]) -> Vec<(u64, String)> {
    let felt = trace.iter().filter(|event| event.kind == "felt");
    felt.map(|event| (event.at, event.payload.clone())).collect()
}

fn leases(trace: &[Event], end: u64, wrong: &Wrong) -> Vec<Lease> {
    let mut leases: Vec<Lease> = Vec::new();
    // By job, its lease that is not over.
    let mut open: BTreeMap<String, usize> = BTreeMap::new();
    let mut known = BTreeSet::new();
    for event in trace {
        let mut words = event.payload.split(' ').map(str::to_owned);
        let mut word = || words.next().unwrap_or_default();
        match event.kind.as_str() {
            "lease" => {
                let (job, attempt, token) = (word(), word(), word());
                let lease = (job.clone(), token.clone());
                if known.insert(lease.clone()) {
                    open.insert(job.clone(), leases.len());
                    leases.push(Lease {
                        lane: event.node.clone(),
                        wrong: wrong.leases.contains(&lease),
                        job,
                        attempt,
                        token,
                        from: event.at,
                        to: end,
                        result: None,
                        state: None,
                    });
                }
            }
            "lease over" => {
                if let Some(lease) = open.remove(&word()).and_then(|at| leases.get_mut(at)) {
                    lease.to = event.at;
                }
            }
            "attempt" => {
                let (job, _, token, result, state) = (word(), word(), word(), word(), word());
                // The news of an attempt comes with the end of its lease, before or after it in the batch.
                let is_its = |lease: &&mut Lease| lease.job == job && lease.token == token && lease.result.is_none();
                if let Some(lease) = leases.iter_mut().rfind(is_its) {
                    lease.result = Some(result);
                    lease.state = Some(state);
                }
            }
            _ => {}
        }
    }
    leases
}

/// A lease whose end nobody was told of, as when the answer to its commit was lost: as the job's row tells it.
fn end_by_rows(mut leases: Vec<Lease>, record: &Record) -> Vec<Lease> {
    let told: BTreeMap<_, _> = record.ended.iter().map(|one| ((&one.job, &one.token), one)).collect();
    for lease in leases.iter_mut().filter(|lease| lease.result.is_none()) {
        if let Some(ended) = told.get(&(&lease.job, &lease.token)) {
            lease.result = Some(ended.result.clone());
            let at = u64::try_from(ended.at).unwrap_or(0);
            lease.to = lease.to.min(at.max(lease.from));
        }
    }
    leases
}

fn calls(trace: &[Event], wrong: &Wrong) -> Vec<Call> {
    let calls = trace
        .iter()
        .filter(|event| event.node == "target" && event.kind == "call");
    calls
        .filter_map(|event| {
            // Intent, key, token, `attempt`, number, `applied`, whether.
            let words: Vec<&str> = event.payload.split(' ').collect();
            let [_, job, token, _, attempt, _, applied] = words.as_slice() else {
                return None;
            };
            Some(Call {
                at: event.at,
                job: job_in(job).unwrap_or(*job).to_owned(),
                token: (*token).to_owned(),
                attempt: (*attempt).to_owned(),
                applied: *applied == "true",
                wrong: wrong.calls.contains(&(event.at, (*token).to_owned())),
            })
        })
        .collect()
}

fn windows(record: &Record, wrong: &Wrong) -> Vec<Window> {
    let is_wrong = |window: &crate::report::record::Window| {
        let occurrence = (window.schedule.clone(), window.at + record.starts_at);
        wrong.occurrences.contains(&occurrence) || window.jobs.iter().any(|job| wrong.jobs.contains(job))
    };
    let windows = record.windows.iter();
    windows
        .map(|window| Window {
            schedule: window.schedule.clone(),
            at: window.at,
            until: window.until,
            fate: window.fate.clone(),
            jobs: window.jobs.clone(),
            wrong: is_wrong(window),
        })
        .collect()
}

/// What clients heard, what fired, and what machines said of themselves.
fn mark(event: &Event) -> Option<Mark> {
    let is_said = matches!(
        event.kind.as_str(),
        "fired" | "start refused" | "no listener" | "ends" | "crash" | "lowered" | "ready" | "healed"
    );
    if event.node != "client" && !is_said {
        return None;
    }
    let text = match event.kind.as_str() {
        "acked" if event.payload.ends_with("true") => "was told again that the job is made".to_owned(),
        "acked" => "was told that the job is made".to_owned(),
        "fired" => format!("decided {}", event.payload),
        kind => format!("{kind} {}", event.payload).trim_end().to_owned(),
    };
    Some(Mark {
        at: event.at,
        lane: event.node.clone(),
        text,
        job: job_in(&event.payload).map(str::to_owned),
    })
}

/// The first job id in a text.
fn job_in(text: &str) -> Option<&str> {
    let from = text.find("job_")?;
    text.get(from..from + "job_".len() + 32)
}

fn violations(record: &Record) -> Vec<Shown> {
    let found = record.violations.iter();
    found
        .map(|found| Shown {
            checker: found.checker.clone(),
            promise: promise(&found.checker),
            what: found.what.clone(),
            job: found.job.clone(),
            token: found.token.clone(),
            at: found.at.unwrap_or(record.simulated_us),
            schedule: found.schedule.clone(),
            nominal: found.nominal.map(|nominal| nominal - record.starts_at),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::{Ended, Violation};

    fn record(events: &[(u64, &str, &str, &str)], violations: Vec<Violation>) -> Record {
        let event = |(at, node, kind, payload): &(u64, &str, &str, &str)| {
            Event::from((*at, (*node).to_owned(), (*kind).to_owned(), (*payload).to_owned()))
        };
        Record {
            trace: events.iter().map(event).collect(),
            simulated_us: 100,
            violations,
            ..Record::default()
        }
    }

    #[test]
    fn a_lease_lasts_from_its_grant_to_its_end_and_is_told_once() {
        let timeline = of(&record(
            &[
                (1, "server", "lease", "job_a 1 t1 5000"),
                (2, "server", "lease", "job_a 1 t1 5000"),
                (7, "store", "lease over", "job_a"),
                (7, "store", "attempt", "job_a 1 t1 WorkerLost Waiting"),
                (9, "second", "lease", "job_a 2 t2 5000"),
            ],
            Vec::new(),
        ));
        let told: Vec<_> = timeline
            .leases
            .iter()
            .map(|one| (one.lane.as_str(), one.from, one.to, one.result.as_deref()))
            .collect();
        assert_eq!(told, [("server", 1, 7, Some("WorkerLost")), ("second", 9, 100, None)]);
    }

    #[test]
    fn an_end_that_nobody_was_told_of_is_in_the_row() {
        let mut record = record(&[(5, "server", "lease", "job_a 1 t1 5000")], Vec::new());
        record.ended.push(Ended {
            job: "job_a".to_owned(),
            token: "t1".to_owned(),
            result: "Failed".to_owned(),
            at: 9,
        });
        let lease = of(&record).leases.remove(0);
        assert_eq!((lease.from, lease.to, lease.result.as_deref()), (5, 9, Some("Failed")));
    }

    #[test]
    fn what_a_violation_is_about_is_marked() {
        let violation = Violation {
            checker: "no_double_effect".to_owned(),
            job: Some("job_a".to_owned()),
            token: Some("t2".to_owned()),
            at: Some(8),
            ..Violation::default()
        };
        let timeline = of(&record(
            &[
                (3, "target", "call", "c0-1 job_a t1 attempt 1 applied true"),
                (5, "server", "lease", "job_a 2 t2 5000"),
                (8, "target", "call", "c0-1 job_a t2 attempt 2 applied true"),
            ],
            vec![violation],
        ));
        let wrong: Vec<bool> = timeline.calls.iter().map(|call| call.wrong).collect();
        assert_eq!(wrong, [false, true]);
        assert!(timeline.leases.iter().all(|lease| lease.wrong));
        assert_eq!(timeline.violations.len(), 1);
    }
}
