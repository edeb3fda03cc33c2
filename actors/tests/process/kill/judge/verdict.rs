//! The verdict over a run: nothing acknowledged lost, nothing reverted, no effect twice, one fate each.
//!
//! Owns: the rules, from the records alone. Must never: talk to a server. Next: `verdict_tests.rs` shows
//! each rule a history that it must refuse.

use crate::history::{End, EndFate, EndSchedule, Event};
use std::collections::{BTreeMap, BTreeSet};

/// One broken promise.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A key's creation was acknowledged and no such job is there.
    AcknowledgedLost { key: String },
    /// One key was acknowledged as two jobs.
    TwoJobsForKey { key: String },
    /// A key was sent and never settled: the run itself is not whole.
    NeverSettled { key: String },
    /// A job did not end well although it may try for ever.
    NotSucceeded { what: String, state: String },
    /// A job succeeded and its effect is not there.
    EffectMissing { effect: String },
    /// An effect was applied more than once.
    EffectTwice { effect: String },
    /// A job was seen finished, and then another state or a newer attempt of it.
    Reverted { key: String },
    /// Fates leave a hole or overlap at this instant.
    NotTiled { schedule: String, at: i64 },
    /// Decided time ends before the last occurrence before the test asked.
    DecidedTooLittle { schedule: String, until: i64 },
    /// An occurrence without a fate.
    FateMissing { schedule: String, at: i64 },
    /// An occurrence with more than one fate.
    FateTwice { schedule: String, at: i64 },
    /// A stretch counts other occurrences than the rule has.
    CountWrong { schedule: String, at: i64 },
    /// Fate fired, and no job.
    FiredWithoutJob { schedule: String, at: i64 },
    /// A job, and its occurrence does not exist or has another fate.
    JobWithoutFire { schedule: String, at: i64 },
    /// More than one job for an occurrence.
    FiredTwice { schedule: String, at: i64 },
}

/// What a run was like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub kills: usize,
    /// Kills that left at least one creation of a new job without an answer.
    pub kills_in_flight: usize,
    /// Jobs, not answers.
    pub acknowledged: usize,
    pub unanswered: usize,
    pub applied: usize,
    pub repeated_calls: usize,
}

/// Every broken promise, and what the run was like.
pub fn judge(events: &[Event], end: &End) -> (Vec<Fault>, Tally) {
    let mut faults = Vec::new();
    let acknowledged = check_keys(events, &mut faults);
    check_jobs(&acknowledged, end, &mut faults);
    let applied = check_effects(events, &mut faults);
    check_wanted_effects(&acknowledged, end, &applied, &mut faults);
    check_reverted(events, &acknowledged, end, &mut faults);
    for schedule in &end.schedules {
        check_tiles(schedule, &mut faults);
        check_occurrences(schedule, end, &mut faults);
    }
    faults.sort();
    faults.dedup();
    (faults, tally(events))
}

/// How an effect of an occurrence is named.
pub fn effect_of(schedule: &str, at: i64) -> String {
    format!("{schedule}@{at}")
}

/// Key to id, as acknowledged.
fn check_keys<'a>(events: &'a [Event], faults: &mut Vec<Fault>) -> BTreeMap<&'a str, &'a str> {
    let mut sent = BTreeSet::new();
    let mut acknowledged = BTreeMap::new();
    for event in events {
        match event {
            Event::Sent { key, .. } => drop(sent.insert(key.as_str())),
            Event::Acknowledged { key, id, .. } => {
                let known = acknowledged.entry(key.as_str()).or_insert(id.as_str());
                if *known != id.as_str() {
                    faults.push(Fault::TwoJobsForKey { key: key.clone() });
                }
            }
            _ => {}
        }
    }
    for key in sent.into_iter().filter(|key| !acknowledged.contains_key(key)) {
        faults.push(Fault::NeverSettled { key: key.into() });
    }
    acknowledged
}

fn check_jobs(acknowledged: &BTreeMap<&str, &str>, end: &End, faults: &mut Vec<Fault>) {
    let ids: BTreeSet<&str> = end.jobs.iter().map(|job| job.id.as_str()).collect();
    for (key, _) in acknowledged.iter().filter(|(_, id)| !ids.contains(*id)) {
        faults.push(Fault::AcknowledgedLost { key: (*key).into() });
    }
    for job in end.jobs.iter().filter(|job| job.state != "succeeded") {
        faults.push(Fault::NotSucceeded {
            what: job.id.clone(),
            state: job.state.clone(),
        });
    }
}

fn check_effects(events: &[Event], faults: &mut Vec<Fault>) -> BTreeSet<String> {
    let mut applied = BTreeSet::new();
    for event in events {
        if let Event::Applied { effect } = event
            && !applied.insert(effect.clone())
        {
            faults.push(Fault::EffectTwice { effect: effect.clone() });
        }
    }
    applied
}

fn check_wanted_effects(
    acknowledged: &BTreeMap<&str, &str>,
    end: &End,
    applied: &BTreeSet<String>,
    faults: &mut Vec<Fault>,
) {
    let fired = end.jobs.iter().filter_map(|job| job.occurrence.as_ref());
    let fired = fired.map(|(schedule, at)| effect_of(schedule, *at));
    let wanted = acknowledged.keys().map(|key| (*key).to_owned()).chain(fired);
    for effect in wanted.filter(|effect| !applied.contains(effect)) {
        faults.push(Fault::EffectMissing { effect });
    }
}

const FINISHED: &[&str] = &["succeeded", "cancelled", "dead", "expired"];

/// Once seen finished: no other state, and no attempt newer than those known by then.
fn check_reverted(events: &[Event], acknowledged: &BTreeMap<&str, &str>, end: &End, faults: &mut Vec<Fault>) {
    let mut newest: BTreeMap<&str, &str> = BTreeMap::new();
    let mut finished: BTreeMap<&str, &str> = BTreeMap::new();
    for event in events {
        match event {
            Event::Seen { key, state } => {
                let is_finished = FINISHED.contains(&state.as_str());
                match finished.get(key.as_str()) {
                    Some(known) if known != state => faults.push(Fault::Reverted { key: key.clone() }),
                    None if is_finished => drop(finished.insert(key, state)),
                    Some(_) | None => {}
                }
            }
            Event::Arrived { effect, token } => {
                let known = newest.entry(effect.as_str()).or_default();
                if token.as_str() > *known {
                    *known = token;
                    if finished.contains_key(effect.as_str()) {
                        faults.push(Fault::Reverted { key: effect.clone() });
                    }
                }
            }
            _ => {}
        }
    }
    let states: BTreeMap<&str, &str> = end.jobs.iter().map(|job| (&*job.id, &*job.state)).collect();
    for (key, seen) in finished {
        let state = acknowledged.get(key).and_then(|id| states.get(id));
        if state.is_some_and(|state| *state != seen) {
            faults.push(Fault::Reverted { key: key.into() });
        }
    }
}

fn check_tiles(schedule: &EndSchedule, faults: &mut Vec<Fault>) {
    let name = &schedule.name;
    let last_before = schedule.asked_at.div_euclid(schedule.every) * schedule.every;
    if schedule.decided_until < last_before.max(schedule.created_at) {
        faults.push(Fault::DecidedTooLittle {
            schedule: name.clone(),
            until: schedule.decided_until,
        });
    }
    let mut at = schedule.created_at;
    for fate in &schedule.fates {
        if fate.from != at || fate.to <= fate.from {
            faults.push(Fault::NotTiled {
                schedule: name.clone(),
                at: fate.from,
            });
        }
        let nominals = fate.to.div_euclid(schedule.every) - fate.from.div_euclid(schedule.every);
        if fate.count.is_some_and(|count| count as i64 != nominals) {
            faults.push(Fault::CountWrong {
                schedule: name.clone(),
                at: fate.from,
            });
        }
        at = fate.to;
    }
    if at != schedule.decided_until {
        faults.push(Fault::NotTiled {
            schedule: name.clone(),
            at,
        });
    }
}

/// The test's own enumeration of what the rule asks for, each against fates and jobs.
fn check_occurrences(schedule: &EndSchedule, end: &End, faults: &mut Vec<Fault>) {
    let mut jobs: BTreeMap<i64, usize> = BTreeMap::new();
    let made = end.jobs.iter().filter_map(|job| job.occurrence.as_ref());
    for (_, at) in made.filter(|(name, _)| *name == schedule.name) {
        *jobs.entry(*at).or_default() += 1;
    }
    let name = || schedule.name.clone();
    let first = schedule.created_at.div_euclid(schedule.every) + 1;
    let last = schedule.decided_until.div_euclid(schedule.every);
    for at in (first..=last).map(|n| n * schedule.every) {
        let fates: Vec<&EndFate> = schedule.fates.iter().filter(|f| f.from < at && at <= f.to).collect();
        let made = jobs.remove(&at).unwrap_or(0);
        match fates.as_slice() {
            [] => faults.push(Fault::FateMissing { schedule: name(), at }),
            [fate] if fate.kind.starts_with("fired_") && made == 0 => {
                faults.push(Fault::FiredWithoutJob { schedule: name(), at });
            }
            [fate] if !fate.kind.starts_with("fired_") && made > 0 => {
                faults.push(Fault::JobWithoutFire { schedule: name(), at });
            }
            [_] => {}
            _ => faults.push(Fault::FateTwice { schedule: name(), at }),
        }
        if made > 1 {
            faults.push(Fault::FiredTwice { schedule: name(), at });
        }
    }
    for at in jobs.into_keys() {
        faults.push(Fault::JobWithoutFire { schedule: name(), at });
    }
}

fn tally(events: &[Event]) -> Tally {
    let mut tally = Tally::default();
    let mut known: BTreeSet<&str> = BTreeSet::new();
    let mut open: BTreeSet<usize> = BTreeSet::new();
    let mut at_kill: BTreeSet<usize> = BTreeSet::new();
    for event in events {
        match event {
            Event::Kill => {
                tally.kills += 1;
                at_kill = open.clone();
            }
            Event::Sent { key, .. } if known.contains(key.as_str()) => {}
            Event::Sent { client, .. } => drop(open.insert(*client)),
            Event::Acknowledged { client, key, .. } => {
                tally.acknowledged += usize::from(known.insert(key));
                open.remove(client);
                at_kill.remove(client);
            }
            Event::Refused { client, .. } => {
                open.remove(client);
                at_kill.remove(client);
            }
            Event::Unanswered { client, .. } => {
                tally.unanswered += 1;
                open.remove(client);
                if at_kill.remove(client) {
                    tally.kills_in_flight += 1;
                    at_kill.clear();
                }
            }
            Event::Applied { .. } => tally.applied += 1,
            Event::Already { .. } | Event::Stale { .. } => tally.repeated_calls += 1,
            Event::Seen { .. } | Event::Arrived { .. } => {}
        }
    }
    tally
}
