//! The verdict against histories that are known to be bad, one broken promise each, and one good one.
//!
//! Owns: the proof that the verdict can be "no".

use crate::history::{End, EndFate, EndJob, EndSchedule, Event};
use crate::verdict::{Fault, effect_of, judge};

const SECOND: i64 = 1_000_000;

fn sent(key: &str) -> Event {
    Event::Sent {
        client: 0,
        key: key.into(),
    }
}

fn acknowledged(key: &str, id: &str) -> Event {
    Event::Acknowledged {
        client: 0,
        key: key.into(),
        id: id.into(),
    }
}

fn unanswered(key: &str) -> Event {
    Event::Unanswered {
        client: 0,
        key: key.into(),
    }
}

fn seen(key: &str, state: &str) -> Event {
    Event::Seen {
        key: key.into(),
        state: state.into(),
    }
}

fn arrived(effect: &str, token: &str) -> Event {
    Event::Arrived {
        effect: effect.into(),
        token: token.into(),
    }
}

fn applied(effect: &str) -> Event {
    Event::Applied { effect: effect.into() }
}

fn job(id: &str) -> EndJob {
    EndJob {
        id: id.into(),
        state: "succeeded".into(),
        occurrence: None,
    }
}

fn fired(id: &str, at: i64) -> EndJob {
    EndJob {
        occurrence: Some(("tick".into(), at)),
        ..job(id)
    }
}

fn fate(from: i64, to: i64, kind: &str, count: u64) -> EndFate {
    EndFate {
        from,
        to,
        kind: kind.into(),
        count: Some(count),
    }
}

/// A run in which everything went well: two jobs, one of them over a kill, and a schedule of 1 s from
/// 0.5 s to 4.5 s whose third occurrence was skipped.
fn good() -> (Vec<Event>, End) {
    let mut events = vec![
        sent("a"),
        acknowledged("a", "1"),
        sent("b"),
        Event::Kill,
        unanswered("b"),
        sent("b"),
        acknowledged("b", "2"),
        arrived("a", "01"),
        applied("a"),
        seen("a", "running"),
        seen("a", "succeeded"),
        arrived("b", "02"),
        applied("b"),
        arrived("b", "03"),
        Event::Already { effect: "b".into() },
        arrived("a", "01"),
        Event::Already { effect: "a".into() },
    ];
    let nominals = [SECOND, 2 * SECOND, 4 * SECOND];
    events.extend(nominals.map(|at| applied(&effect_of("tick", at))));
    let mut jobs = vec![job("1"), job("2")];
    jobs.extend(nominals.map(|at| fired(&at.to_string(), at)));
    let half = SECOND / 2;
    let schedule = EndSchedule {
        name: "tick".into(),
        every: SECOND,
        created_at: half,
        asked_at: 4 * SECOND + 1,
        decided_until: 4 * SECOND + half,
        fates: vec![
            fate(half, 2 * SECOND, "fired_on_time", 2),
            fate(2 * SECOND, 3 * SECOND, "skipped_misfire", 1),
            fate(3 * SECOND, 4 * SECOND + half, "fired_late", 1),
        ],
    };
    let end = End {
        jobs,
        schedules: vec![schedule],
    };
    (events, end)
}

fn faults(change: impl FnOnce(&mut Vec<Event>, &mut End)) -> Vec<Fault> {
    let (mut events, mut end) = good();
    change(&mut events, &mut end);
    judge(&events, &end).0
}

#[test]
fn a_good_run_has_no_fault_and_is_tallied() {
    assert_eq!(faults(|_, _| ()), []);
    let (events, end) = good();
    let tally = judge(&events, &end).1;
    assert_eq!((tally.kills, tally.kills_in_flight, tally.unanswered), (1, 1, 1));
    assert_eq!((tally.acknowledged, tally.applied, tally.repeated_calls), (2, 5, 2));
}

#[test]
fn a_kill_with_nothing_in_flight_does_not_count_as_one_with() {
    let (mut events, end) = good();
    events.push(Event::Kill);
    events.extend([
        sent("a"),
        acknowledged("a", "1"),
        Event::Kill,
        sent("a"),
        unanswered("a"),
    ]);
    events.extend([sent("b"), Event::Kill, unanswered("b")]);
    let tally = judge(&events, &end).1;
    assert_eq!(
        (tally.kills, tally.kills_in_flight),
        (4, 1),
        "repeats of what is known do not count"
    );
}

#[test]
fn a_lost_acknowledgement_is_found() {
    let found = faults(|_, end| end.jobs.retain(|job| job.id != "1"));
    assert_eq!(found, [Fault::AcknowledgedLost { key: "a".into() }]);
}

#[test]
fn a_key_that_made_two_jobs_is_found() {
    let found = faults(|events, end| {
        events.push(acknowledged("a", "9"));
        end.jobs.push(job("9"));
    });
    assert_eq!(found, [Fault::TwoJobsForKey { key: "a".into() }]);
}

#[test]
fn a_run_that_leaves_a_key_unsettled_is_not_whole() {
    let found = faults(|events, _| events.extend([sent("c"), unanswered("c")]));
    assert_eq!(found, [Fault::NeverSettled { key: "c".into() }]);
}

#[test]
fn a_job_that_did_not_end_well_is_found() {
    let found = faults(|_, end| end.jobs[1].state = "dead".into());
    let wanted = Fault::NotSucceeded {
        what: "2".into(),
        state: "dead".into(),
    };
    assert_eq!(found, [wanted]);
}

#[test]
fn a_double_effect_is_found() {
    let found = faults(|events, _| events.push(applied("b")));
    assert_eq!(found, [Fault::EffectTwice { effect: "b".into() }]);
}

#[test]
fn a_success_without_its_effect_is_found() {
    let found = faults(|events, _| events.retain(|event| *event != applied("b")));
    assert_eq!(found, [Fault::EffectMissing { effect: "b".into() }]);
}

#[test]
fn a_reverted_completion_is_found_however_it_shows() {
    let reverted = [Fault::Reverted { key: "a".into() }];
    assert_eq!(
        faults(|events, _| events.push(seen("a", "ready"))),
        reverted,
        "read again"
    );
    assert_eq!(
        faults(|events, _| events.push(arrived("a", "02"))),
        reverted,
        "tried again"
    );
    let listed = faults(|_, end| end.jobs[0].state = "waiting".into());
    assert!(listed.contains(&reverted[0]), "listed at the end: {listed:?}");
}

#[test]
fn a_missing_fate_is_found() {
    let found = faults(|_, end| drop(end.schedules[0].fates.remove(1)));
    let at = 3 * SECOND;
    let schedule = || "tick".to_owned();
    let wanted = [
        Fault::NotTiled {
            schedule: schedule(),
            at,
        },
        Fault::FateMissing {
            schedule: schedule(),
            at,
        },
    ];
    assert_eq!(found, wanted);
}

#[test]
fn a_double_fate_is_found() {
    let found = faults(|_, end| {
        end.schedules[0].fates[1].from -= SECOND;
        end.schedules[0].fates[1].count = Some(2);
    });
    let schedule = || "tick".to_owned();
    let wanted = [
        Fault::NotTiled {
            schedule: schedule(),
            at: SECOND,
        },
        Fault::FateTwice {
            schedule: schedule(),
            at: 2 * SECOND,
        },
    ];
    assert_eq!(found, wanted);
}

#[test]
fn fates_that_end_early_or_count_wrong_are_found() {
    let schedule = || "tick".to_owned();
    let found = faults(|_, end| end.schedules[0].fates[0].count = Some(3));
    let wanted = Fault::CountWrong {
        schedule: schedule(),
        at: SECOND / 2,
    };
    assert_eq!(found, [wanted]);
    let found = faults(|_, end| end.schedules[0].asked_at = 5 * SECOND);
    let wanted = Fault::DecidedTooLittle {
        schedule: schedule(),
        until: 4 * SECOND + SECOND / 2,
    };
    assert_eq!(found, [wanted]);
}

#[test]
fn fires_and_jobs_must_match_one_to_one() {
    let schedule = || "tick".to_owned();
    let at = 2 * SECOND;
    let found = faults(|_, end| end.jobs.retain(|job| job.occurrence != Some((schedule(), at))));
    assert_eq!(
        found,
        [Fault::FiredWithoutJob {
            schedule: schedule(),
            at
        }]
    );
    let found = faults(|_, end| end.jobs.push(fired("twin", at)));
    assert_eq!(
        found,
        [Fault::FiredTwice {
            schedule: schedule(),
            at
        }]
    );
    for at in [3 * SECOND, 3 * SECOND + 1] {
        let found = faults(|events, end| {
            events.push(applied(&effect_of("tick", at)));
            end.jobs.push(fired("stray", at));
        });
        assert_eq!(
            found,
            [Fault::JobWithoutFire {
                schedule: schedule(),
                at
            }]
        );
    }
}
