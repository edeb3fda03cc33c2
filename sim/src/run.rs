//! One seed from beginning to verdict: warm up, faults, heal, settle, judge.
//!
//! Owns: the stages and the report. Must never: draw chance itself. Next: `world/`, `checkers/`.

use crate::bugs::PlantedBug;
use crate::options::Options;
use crate::runtime::{Sim, SimConfig, simulate};
use crate::trace::{Digest, Event, Trace};
use crate::world::director::direct;
use crate::world::far_worker;
use crate::world::faults::{Beside, heal, inject, mind_ended};
use crate::world::links::Hold;
use crate::world::machine::Machines;
use crate::world::server::Server;
use crate::world::{Felt, World, asked, canary, clients, next_day, planner, target};
use fencepost::net::seam;
use fencepost_core::fate::FateKind;
use fencepost_core::job::{JobState, Origin};
use fencepost_core::row::Row;
use fencepost_core::schedule::PendingFate;
use fencepost_history::checkers::{
    Evidence, JUDGED_NOTHING, Subject, Window, judge, judge_by, judged_beside, tag_of, unmet, windows,
};
use fencepost_history::seen::{Call, Seen};
use fencepost_storage::codec::decode_row;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Longest time from the healing to quiescence, in simulated microseconds.
const SETTLES_WITHIN: u64 = 240_000_000;
/// A clock that lies beyond the limit of doubt is believed only after it ran steadily for five minutes.
const SETTLES_IN_DOUBT_WITHIN: u64 = 700_000_000;
/// Longest simulated time of a run, a day beside.
const RUN_MAX: Duration = Duration::from_secs(1_800 + 26 * 3_600);

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Events and hash.
    pub digest: Digest,
    /// What the seed drew, as printed first.
    pub options: String,
    /// True wall time at the beginning, in microseconds since the Unix epoch.
    pub starts_at: i64,
    /// What is wrong.
    pub violations: Vec<Found>,
    /// Things judged, by checker.
    pub evaluations: BTreeMap<String, u64>,
    /// Faults felt, by kind.
    pub felt: Felt,
    /// Simulated microseconds.
    pub simulated: u64,
    /// Of these, how many every node slept through.
    pub asleep: u64,
    /// What each job was asked for as, by its id.
    pub intents: BTreeMap<String, String>,
    /// Attempts that have ended, by the rows of their jobs: job, token, result, and store time of the end.
    pub ended: Vec<(String, String, String, i64)>,
    /// Occurrences that schedules asked for.
    pub windows: Vec<Window>,
    /// The last events.
    pub last: Vec<String>,
    /// All events, when they were kept.
    pub all: Vec<Event>,
}

/// Something that is wrong.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Whose promise.
    pub checker: String,
    /// What.
    pub what: String,
    /// What it is about, as far as the checker said.
    pub subject: Subject,
}

impl Found {
    /// The run itself went wrong.
    pub fn in_run(why: String) -> Found {
        Found {
            checker: "run".to_owned(),
            what: why,
            subject: Subject::default(),
        }
    }
}

/// Runs one seed into a trace. Must be the only run of its process to be comparable with others.
pub fn run_seed(options: Options, trace: &Trace) -> Report {
    if let Some(bug) = options.bug.and_then(PlantedBug::in_product) {
        fencepost::planted::plant(bug);
    }
    let config = SimConfig {
        seed: options.seed,
        starts_at: options.starts_at,
        limit: RUN_MAX,
        latency: (200, options.latency),
    };
    let (drawn, starts_at) = (options.to_string(), options.starts_at);
    let ran = simulate(config, trace.clone(), move |sim| run_world(sim, options));
    let mut report = ran.unwrap_or_else(|why| Report {
        violations: vec![Found::in_run(why)],
        simulated: trace.ends_at(),
        ..Report::default()
    });
    report.options = drawn;
    report.starts_at = starts_at;
    report.digest = trace.digest();
    report.last = trace.last();
    report.all = trace.all();
    report
}

async fn run_world(sim: Sim, options: Options) -> Report {
    let world = World::new(sim, options);
    seam::set(Some(Rc::new(Hold(world.clone()))));
    let (server, ended) = Server::new(&world);
    mind_ended(&world, &server, ended);
    canary::leak(&world);
    target::start(&world);
    let beside = Beside::new(&world, &server);
    server.store_up();
    server.up();
    beside.up();
    match world.options.plan.clone() {
        Some(plan) => {
            asked::start(&world, &plan);
            let machines = Machines::of(&world, &server, &beside);
            direct(&world, &server, machines, &plan).await;
        }
        None => {
            planner::start(&world);
            clients::start(&world);
            inject(&world, &server, &beside).await;
        }
    }
    heal(&world, &server, &beside);
    let mut unmet = settle(&world, &server).await;
    let mut asleep = 0;
    if unmet.is_none() && world.options.next_day {
        asleep = next_day::DAY;
        next_day::pass(&world, &server, &beside).await;
        unmet = settle(&world, &server).await;
    }
    let rows = rows(&server);
    for row in server.store.model.durable_rows() {
        let digest = blake3::hash(&[&row.0[..], &row.1[..]].concat());
        world
            .sim
            .record("end", "row", digest.to_hex().get(..16).unwrap_or_default());
    }
    canary::repeat_an_effect(&world);
    let seen = world.history.lock();
    let evidence = Evidence {
        setting: world.options.setting(),
        seen: &seen,
        rows: &rows,
        unmet: unmet.as_deref(),
    };
    note_states(&world, &seen, &rows);
    let mut report = Report {
        felt: std::mem::take(&mut *world.felt.lock().unwrap_or_else(PoisonError::into_inner)),
        simulated: world.sim.now(),
        asleep,
        intents: evidence
            .jobs()
            .map(|job| (job.id.to_string(), evidence.intent_of(job)))
            .collect(),
        ended: ended_by_rows(&rows),
        windows: windows(&evidence),
        ..Report::default()
    };
    take_verdicts(&world, &evidence, &mut report);
    seam::set(None);
    report
}

/// What every checker that is asked has to say.
fn take_verdicts(world: &World, evidence: &Evidence<'_>, report: &mut Report) {
    let verdicts = match &world.options.plan {
        Some(plan) => judge_by(evidence, &plan.invariants),
        None => judge(evidence),
    };
    for (checker, mut verdict) in verdicts {
        report.evaluations.insert(checker.to_owned(), verdict.evaluations);
        let found = verdict.violations.into_iter().enumerate().map(|(number, what)| Found {
            checker: checker.to_owned(),
            what,
            subject: verdict.subjects.remove(&number).unwrap_or_default(),
        });
        // Where work is left out, there may be nothing left to judge.
        let is_whole = world.options.without.is_empty();
        let counts = |found: &Found| is_whole || found.what != JUDGED_NOTHING;
        report.violations.extend(found.filter(counts));
    }
}

fn ended_by_rows(rows: &[Row]) -> Vec<(String, String, String, i64)> {
    let mut ended = Vec::new();
    for row in rows {
        let Row::Job(job) = row else { continue };
        let told = job.attempts.iter().map(|one| {
            let result = format!("{:?}", one.result);
            (job.id.to_string(), one.token.to_string(), result, one.ended_at.0)
        });
        ended.extend(told);
    }
    ended
}

/// Fates that a set of runs must have seen.
const FATES: &[(FateKind, &str)] = &[
    (FateKind::FiredLate, "seen:fired-late"),
    (FateKind::SkippedMisfire, "seen:skipped"),
    (FateKind::SkippedGrace, "seen:beyond-grace"),
    (FateKind::Coalesced, "seen:coalesced"),
    (FateKind::SkippedCap, "seen:beyond-cap"),
    (FateKind::Excluded, "seen:excluded"),
    (FateKind::Expired, "seen:fire-expired"),
    (FateKind::Paused, "seen:paused"),
    (FateKind::WithdrawnEdit, "seen:withdrawn-by-edit"),
    (FateKind::WithdrawnDelete, "seen:withdrawn-by-delete"),
];

/// States of jobs that a set of runs must have seen.
const STATES: &[(JobState, &str)] = &[
    (JobState::Dead, "seen:dead"),
    (JobState::Expired, "seen:expired"),
    (JobState::Uncertain, "seen:uncertain"),
    (JobState::Cancelled, "seen:job-cancelled"),
];

/// Counts states that a set of runs must have seen, or its faults did not bite.
fn note_states(world: &World, seen: &Seen, rows: &[Row]) {
    let note = |is_seen: bool, what| {
        if is_seen {
            world.feel(what);
        }
    };
    let later = |call: &&Call| call.attempt > 1;
    note(seen.acks.iter().any(|ack| ack.replayed), "seen:key-replayed");
    note(seen.calls.iter().any(|call| later(&call)), "seen:later-attempt");
    let is_there = seen.calls.iter().filter(later).any(|call| !call.applied);
    note(is_there, "seen:effect-already-there");
    let is_cancelled = seen.cancels.iter().any(|cancel| cancel.result == "cancelled");
    note(is_cancelled, "seen:cancelled");
    note(
        seen.cancels.iter().any(|cancel| cancel.result == "running"),
        "seen:cancelled-while-running",
    );
    for (kind, what) in FATES {
        note(rows.iter().any(|row| holds_fate(row, *kind)), what);
    }
    for (state, what) in STATES {
        note(seen.moves.iter().any(|job| job.state == *state), what);
    }
    note(world.options.change.is_some(), "seen:clock-change-of-a-zone");
    let moved = |row: &Row| matches!(row, Row::Assignment(row) if row.version > 1);
    note(rows.iter().any(moved), "seen:shard-moved");
    let kept = |row: &Row| matches!(row, Row::Edit(edit) if matches!(edit.pending, Some((_, PendingFate::Keep))));
    note(rows.iter().any(kept), "seen:fire-kept");
    let by_far = |row: &Row| matches!(row, Row::Job(job) if job.attempts.iter().any(|one| one.worker.node.as_str().starts_with(far_worker::NAME)));
    let again = |row: &Row| matches!(row, Row::Job(job) if job.attempts.windows(2).any(|pair| matches!(pair, [one, other] if one.worker != other.worker)));
    note(rows.iter().any(again), "seen:job-reassigned");
    note_zones(world, seen, rows);
    note(rows.iter().any(by_far), "seen:worked-elsewhere");
    let lost = |row: &Row| if let Row::Job(job) = row { job.workers_lost() } else { 0 };
    let lost_most = rows.iter().map(lost).max().unwrap_or(0);
    note(lost_most > 0, "seen:worker-lost");
    note(lost_most > 1, "seen:worker-lost-twice");
    note(
        seen.again.iter().any(|again| again.from < again.to),
        "seen:store-time-twice",
    );
    for _ in 0..judged_beside(seen, rows) {
        world.feel("seen:store-time-twice-grant-judged");
    }
}

/// Fires that only clock changes make: after a gap, and in an hour that comes twice.
fn note_zones(world: &World, seen: &Seen, rows: &[Row]) {
    for row in rows {
        let Row::Job(job) = row else { continue };
        let Origin::Occurrence { nominal, .. } = &job.origin else {
            continue;
        };
        let Some(rule) = seen.specs.get(&tag_of(&job.spec)).map(|spec| &spec.rule) else {
            continue;
        };
        let zone = rule.zone();
        if zone.is_twice(nominal.0) {
            world.feel("seen:fired-in-repeated-hour");
        }
        if rule.is_after_gap(nominal.0) {
            world.feel("seen:fired-after-gap");
        }
    }
}

fn holds_fate(row: &Row, kind: FateKind) -> bool {
    match row {
        Row::Fate(fate) => fate.span.kind == kind,
        Row::Cursor(cursor) => cursor.open.as_ref().is_some_and(|span| span.kind == kind),
        _ => false,
    }
}

/// Waits for quiescence; the unmet clause when the bound passes.
async fn settle(world: &World, server: &Server) -> Option<String> {
    // From behind to ahead is a leap of twice the lie.
    let usual = match 2 * world.options.lies_max() > 60_000_000 {
        true => SETTLES_IN_DOUBT_WITHIN,
        false => SETTLES_WITHIN,
    };
    let asked = world.options.plan.as_ref().and_then(|plan| plan.settles_within);
    let within = asked.unwrap_or(usual);
    let until = world.sim.now() + within;
    loop {
        world.sim.sleep(1_000_000).await;
        let unmet = unmet(&rows(server), world.open.load(Ordering::SeqCst));
        if unmet.is_none() || world.sim.now() >= until {
            return unmet;
        }
    }
}

/// What a power loss would keep, decoded. A row that cannot be read is a panic: nothing here damages rows.
fn rows(server: &Server) -> Vec<Row> {
    let rows = server.store.model.durable_rows();
    rows.iter()
        .map(|(key, value)| match decode_row(key, value) {
            Ok(row) => row,
            Err(error) => panic!("an unreadable row: {error}"),
        })
        .collect()
}
