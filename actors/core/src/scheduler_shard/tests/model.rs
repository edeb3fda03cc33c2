//! A slow model of what should have happened: every second of the stretch is tried against each
//! definition with arithmetic of its own, and compared with fates, backlogs and jobs.

use super::world::*;
use crate::fate::FateKind;
use crate::job::FireCause;
use crate::row::Row;
use crate::schedule::{Exclusion, PendingFate, Rule, ScheduleDefinition};
use crate::time::StoreTime;
use std::collections::{BTreeMap, BTreeSet};

/// Whether a definition asks for a second, and whether that day is excluded.
fn asks(definition: &ScheduleDefinition, second: i64) -> Option<bool> {
    let spec = &definition.spec;
    let hit = match &spec.rule {
        Rule::Interval { every, anchor, .. } => (second - anchor.secs()).rem_euclid((every.0 / 1_000_000) as i64) == 0,
        Rule::Once { at, .. } => at.secs() == second,
        // The tests below use `*/n * * * *` and `m h * * *` only.
        Rule::Cron { expressions, .. } => expressions.iter().any(|text| cron_asks(text, second)),
    };
    let within =
        spec.starts_at.is_none_or(|start| start <= at(second)) && spec.ends_at.is_none_or(|end| at(second) <= end);
    if !hit || !within || at(second) <= definition.effective_at {
        return None;
    }
    let day = second.div_euclid(DAY);
    Some(spec.exclusions.iter().any(|exclusion| match exclusion {
        Exclusion::Weekday(weekday) => (day + 4).rem_euclid(7) == i64::from(*weekday),
        Exclusion::Dates { first, last } => (i64::from(*first)..=i64::from(*last)).contains(&day),
    }))
}

fn cron_asks(text: &str, second: i64) -> bool {
    let fields: Vec<&str> = text.split(' ').collect();
    let (minute, hour) = (
        second.div_euclid(60).rem_euclid(60),
        second.div_euclid(HOUR).rem_euclid(24),
    );
    let fits = |field: &str, value: i64| match field.strip_prefix("*/") {
        Some(step) => value % step.parse::<i64>().unwrap() == 0,
        None => field == "*" || field.parse::<i64>().unwrap() == value,
    };
    second.rem_euclid(60) == 0 && fits(fields[0], minute) && fits(fields[1], hour)
}

/// All that the rows say of one incarnation.
struct History {
    definitions: Vec<ScheduleDefinition>,
    /// (from, to, kind or pending, count)
    tiles: Vec<(StoreTime, StoreTime, Option<FateKind>, Option<u64>)>,
    /// Nominal instants that an edit kept or dropped beyond the edit.
    exceptions: BTreeSet<StoreTime>,
}

fn history(world: &World, text: &str) -> History {
    let cursor = world.cursor(text);
    let mine = |row: &Row| match row {
        Row::Definition(row) if row.incarnation == cursor.incarnation => Some((**row).clone()),
        _ => None,
    };
    let kept = |row: &Row| match row {
        Row::Edit(row) if row.incarnation == cursor.incarnation => {
            row.pending.map(|(nominal, _): (_, PendingFate)| nominal)
        }
        _ => None,
    };
    let mut tiles: Vec<_> = world.closed(text).into_iter().chain(cursor.open.clone()).collect();
    let mut pending = Vec::new();
    for row in world.backlogs() {
        if row.backfill.is_none_or(|mark| mark.request == 0) {
            tiles.extend(row.open.clone());
            pending.push((row.from, row.to, None, None));
        }
    }
    let decided = tiles
        .into_iter()
        .map(|span| (span.from, span.to, Some(span.kind), span.count));
    let mut tiles: Vec<_> = decided.chain(pending).collect();
    tiles.sort_by_key(|tile| (tile.0, tile.1));
    History {
        definitions: world.rows.values().filter_map(mine).collect(),
        tiles,
        exceptions: world.rows.values().filter_map(kept).collect(),
    }
}

/// Panics unless fates, backlogs and jobs are what the definitions ask for.
pub fn compare(world: &World, text: &str) {
    let cursor = world.cursor(text);
    let history = history(world, text);
    let mut at_tile = cursor.history_at;
    for tile in &history.tiles {
        assert_eq!(tile.0, at_tile, "no hole, no overlap");
        at_tile = tile.1;
    }
    assert_eq!(at_tile, cursor.nominal, "up to the cursor");
    let jobs = jobs(world, text);
    let mut found: BTreeMap<usize, u64> = BTreeMap::new();
    let mut last_due = None;
    for second in cursor.history_at.secs()..=world.now.store.secs().max(cursor.nominal.secs()) {
        let Some(excluded) = reigning(&history.definitions, second).and_then(|definition| asks(definition, second))
        else {
            continue;
        };
        let is_counted = reigning(&history.definitions, second).is_some_and(|d| d.spec.count_max.is_some());
        last_due = Some(at(second)).filter(|_| !excluded && !is_counted).or(last_due);
        let index = history.tiles.partition_point(|tile| tile.1 < at(second));
        let Some(tile) = history.tiles.get(index).filter(|tile| tile.0 < at(second)) else {
            continue;
        };
        compare_one(tile.2, excluded, jobs.contains(&at(second)), at(second));
        *found.entry(index).or_default() += u64::from(excluded == (tile.2 == Some(FateKind::Excluded)));
    }
    compare_counts(&history, &found);
    let known = |nominal: &StoreTime| {
        let asked = reigning(&history.definitions, nominal.secs()).and_then(|d| asks(d, nominal.secs()));
        asked == Some(false) || history.exceptions.contains(nominal)
    };
    assert!(jobs.iter().all(known), "every job has an occurrence");
    compare_progress(world, text, last_due);
}

fn compare_one(kind: Option<FateKind>, excluded: bool, has_job: bool, nominal: StoreTime) {
    match kind {
        Some(FateKind::Excluded) => assert!(excluded && !has_job, "{nominal:?} is not excluded"),
        Some(kind) => assert!(
            has_job == kind.is_fired() || excluded,
            "{nominal:?} is {kind:?}, job {has_job}"
        ),
        None => assert!(!has_job, "{nominal:?} is pending and has a job"),
    }
}

fn compare_counts(history: &History, found: &BTreeMap<usize, u64>) {
    for (index, tile) in history.tiles.iter().enumerate() {
        let (Some(count), Some(_)) = (tile.3, tile.2) else {
            continue;
        };
        let found = found.get(&index).copied().unwrap_or(0);
        let exceptions = history
            .exceptions
            .iter()
            .filter(|at| **at > tile.0 && **at <= tile.1)
            .count() as u64;
        assert!(
            found.abs_diff(count) <= exceptions,
            "{tile:?} holds {found}, with {exceptions} exceptions"
        );
    }
}

/// Nothing due stays undecided without a reason.
fn compare_progress(world: &World, text: &str, last_due: Option<StoreTime>) {
    let cursor = world.cursor(text);
    let rests = world.now.doubt || cursor.paused_at.is_some() || cursor.finished_at.is_some();
    let wake = world.machine.next_wake();
    if !rests && wake.store.is_none_or(|due| due > world.now.store) && wake.mono.is_none_or(|at| at > world.now.mono) {
        let jitter = world
            .opened()
            .definitions
            .iter()
            .map(|row| row.spec.jitter)
            .max()
            .unwrap_or_default();
        let is_behind = last_due.is_some_and(|due| due > cursor.nominal && due + jitter < world.now.store);
        assert!(!is_behind, "decided up to {:?}, due {last_due:?}", cursor.nominal);
    }
}

fn reigning(definitions: &[ScheduleDefinition], second: i64) -> Option<&ScheduleDefinition> {
    definitions
        .iter()
        .rev()
        .find(|definition| definition.effective_at < at(second))
}

/// Nominal instants with a job of the occurrence itself.
fn jobs(world: &World, text: &str) -> BTreeSet<StoreTime> {
    let incarnation = world.cursor(text).incarnation;
    let mut jobs = BTreeSet::new();
    for fire in &world.jobs {
        let crate::job::Origin::Occurrence {
            incarnation: of,
            nominal,
            cause,
            ..
        } = &fire.origin
        else {
            continue;
        };
        if *of == incarnation && *cause != FireCause::RunNow {
            jobs.insert(*nominal);
        }
    }
    jobs
}
