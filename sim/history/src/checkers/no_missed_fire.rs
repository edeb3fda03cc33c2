//! P2: every occurrence has exactly one fate; fates and backlogs tile nominal time up to the cursor;
//! a fired occurrence has its job, and no other has one.
//!
//! Occurrences come from `world/rules.rs`, which shares nothing with the product. Next: `lives.rs`.

use super::lives::{Asked, Life, Tile, lives};
use super::no_double_fire::reruns;
use super::{Evidence, Subject, Verdict, aside};
use crate::spec::PlainSpec;
use fencepost_core::fate::FateKind;
use fencepost_core::job::{FireCause, Job, Origin};
use std::collections::BTreeMap;

/// Judges every life of every schedule.
pub fn check(evidence: &Evidence<'_>, verdict: &mut Verdict) {
    for life in lives(evidence) {
        let found = verdict.violations.len();
        for (version, (_, spec)) in &life.versions {
            verdict.expect(spec.is_some(), || {
                format!("{}: nobody asked for version {version}", life.name)
            });
        }
        check_tiling(&life, verdict);
        check_life(evidence, &life, verdict);
        if verdict.violations.len() > found {
            verdict.violations.push(life.story());
        }
    }
}

fn check_life(evidence: &Evidence<'_>, life: &Life<'_>, verdict: &mut Verdict) {
    let (name, asked) = (&life.name, life.asked());
    let decided = match life.cursor {
        Some(cursor) => cursor.nominal.0,
        None => life.deleted_at().unwrap_or(i64::MIN),
    };
    for (at, asked) in &asked {
        let tile = life.tiles.iter().find(|tile| tile.from < *at && *at <= tile.to);
        let is_rest = is_used_up(life) || life.cursor.is_none() && asked.is_excluded();
        let is_decided = tile.is_some() || *at > decided || asked.is_optional || is_rest;
        verdict.expect_of(is_decided, || {
            (Subject::occurrence(name, *at), format!("{name}: no fate for {at}"))
        });
        if let Some(tile) = tile {
            check_fate(evidence, life, (*at, asked), tile, verdict);
        }
    }
    for (at, jobs) in &life.jobs {
        verdict.expect_of(asked.contains_key(at), || {
            let text = format!("{name}: {} jobs for {at}, which nobody asked for", jobs.len());
            (about(name, *at, jobs), text)
        });
    }
    check_counts(life, &asked, verdict);
    check_rest(evidence, life, &asked, verdict);
}

/// One occurrence under its fate.
fn check_fate(
    evidence: &Evidence<'_>,
    life: &Life<'_>,
    (at, asked): (i64, &Asked),
    tile: &Tile,
    verdict: &mut Verdict,
) {
    let name = &life.name;
    let none = Vec::new();
    let jobs = life.jobs.get(&at).unwrap_or(&none);
    let Some(kind) = tile.kind else {
        return;
    };
    let (least, most) = match kind.is_fired() {
        true => (usize::from(!asked.is_optional), 1 + reruns(evidence, name, at)),
        false => (0, 0),
    };
    verdict.expect_of((least..=most).contains(&jobs.len()), || {
        let text = format!("{name}: {at} has fate {kind:?} and {} jobs", jobs.len());
        (about(name, at, jobs), text)
    });
    // An optional one may lie in a span of another version, which does not count it.
    let is_excluded = asked.by.get(&tile.definition).copied();
    verdict.expect(is_excluded.is_some() || asked.is_optional, || {
        format!(
            "{name}: {at} belongs to {:?}, its fate to version {}",
            asked.by, tile.definition
        )
    });
    let Some(is_excluded) = is_excluded else {
        return;
    };
    verdict.expect_of((kind == FateKind::Excluded) == is_excluded, || {
        let text = format!("{name}: {at} has fate {kind:?}; excluded by its calendar: {is_excluded}");
        (about(name, at, jobs), text)
    });
    let Some(spec) = life.spec(tile.definition) else {
        return;
    };
    verdict.expect_of(is_allowed(evidence, life, (tile.definition, spec), kind, at), || {
        let policy = spec.misfire;
        let text = format!("{name}: {at} has fate {kind:?}, which policy {policy} and what befell it do not explain");
        (about(name, at, jobs), text)
    });
    for job in jobs.iter().filter(|job| !is_by_hand(job)) {
        let late = job.created_at.0 - job.due_at.0;
        let fits = (late <= spec.tolerance) == (kind == FateKind::FiredOnTime);
        verdict.expect_of(fits, || {
            let text = format!("{name}: {at} fired {late} us late has fate {kind:?}");
            (about(name, at, jobs), text)
        });
    }
}

/// An occurrence, and the newest of its jobs.
fn about(name: &str, at: i64, jobs: &[&Job]) -> Subject {
    Subject {
        job: jobs.last().map(|job| job.id),
        ..Subject::occurrence(name, at)
    }
}

fn is_by_hand(job: &Job) -> bool {
    let Origin::Occurrence { cause, .. } = &job.origin else {
        return true;
    };
    *cause == FireCause::Backfill
}

fn check_tiling(life: &Life<'_>, verdict: &mut Verdict) {
    let name = &life.name;
    let begin = life.tiles.first().map_or(0, |tile| tile.from);
    let mut at = life.cursor.map_or(begin, |cursor| cursor.history_at.0);
    for tile in &life.tiles {
        verdict.expect_of(tile.from == at, || {
            let text = format!("{name}: fates end at {at}, the next begin at {}", tile.from);
            (Subject::occurrence(name, at), text)
        });
        at = tile.to;
    }
    if let Some(cursor) = life.cursor {
        verdict.expect(at == cursor.nominal.0, || {
            format!("{name}: fates end at {at}, the cursor stands at {}", cursor.nominal.0)
        });
    }
}

/// What a span counts is what was asked for in it.
fn check_counts(life: &Life<'_>, asked: &BTreeMap<i64, Asked>, verdict: &mut Verdict) {
    for tile in &life.tiles {
        let is_excluded = tile.kind == Some(FateKind::Excluded);
        let inside = asked.range(tile.from + 1..=tile.to.max(tile.from + 1));
        let counts = |asked: &Asked| asked.by.get(&tile.definition) == Some(&is_excluded);
        let inside: Vec<_> = inside.filter(|(_, asked)| counts(asked)).collect();
        let most = inside.len() as u64;
        let least = inside.iter().filter(|(_, asked)| !asked.is_optional).count() as u64;
        verdict.expect(tile.count.is_none_or(|count| (least..=most).contains(&count)), || {
            format!(
                "{}: ({}, {}] counts {:?}, {least} to {most} were asked for",
                life.name, tile.from, tile.to, tile.count
            )
        });
    }
}

/// What no fate was given yet: nothing, unless the count is used up or a deletion came.
fn check_rest(evidence: &Evidence<'_>, life: &Life<'_>, asked: &BTreeMap<i64, Asked>, verdict: &mut Verdict) {
    let fired = fired(life);
    let is_only = life.versions.len() == 1;
    let only = life.versions.values().next().and_then(|(_, spec)| *spec);
    if let Some(count) = only.filter(|_| is_only).and_then(|spec| spec.count) {
        verdict.expect(fired <= count, || {
            format!("{}: fired {fired} times of {count}", life.name)
        });
    }
    let Some(cursor) = life.cursor else {
        return;
    };
    let left = asked.range(cursor.nominal.0 + 1..);
    let left: Vec<i64> = left
        .filter(|(_, asked)| !asked.is_excluded() && !asked.is_optional)
        .map(|(at, _)| *at)
        .collect();
    let is_aside = aside::names(evidence.rows).any(|(name, _)| name == life.name);
    verdict.expect(
        left.is_empty() || is_used_up(life) || is_aside || evidence.unmet.is_some(),
        || {
            format!(
                "{}: the cursor stands at {} before {left:?}",
                life.name, cursor.nominal.0
            )
        },
    );
}

/// Fires that a count limits.
fn fired(life: &Life<'_>) -> u64 {
    life.jobs.values().flatten().filter(|job| !is_by_hand(job)).count() as u64
}

fn is_used_up(life: &Life<'_>) -> bool {
    let newest = life.versions.values().next_back();
    let count = newest.and_then(|(_, spec)| spec.and_then(|spec| spec.count));
    count.is_some_and(|count| fired(life) >= count)
}

/// Whether policy, requests and faults of the run allow this fate for the occurrence.
fn is_allowed(
    evidence: &Evidence<'_>,
    life: &Life<'_>,
    (version, spec): (u64, &PlainSpec),
    kind: FateKind,
    at: i64,
) -> bool {
    let seen = evidence.seen;
    let mut specs = life.versions.values().filter_map(|(_, spec)| *spec);
    let is_counted = specs.any(|spec| spec.count.is_some());
    let asked_at = life.asked_at(version);
    let by_policy = match kind {
        FateKind::FiredOnTime | FateKind::Excluded => return true,
        // A one-shot that was asked for after its instant counts as due then.
        // A schedule at rest, its count used up, gives all of that rest to a later pause.
        FateKind::Paused if is_counted => return seen.holds.iter().any(|hold| hold.name == life.name),
        FateKind::Paused => return is_held(evidence, &life.name, at.max(asked_at), spec.jitter),
        FateKind::WithdrawnEdit => return seen.drops.contains(&life.name),
        FateKind::WithdrawnDelete => return seen.deletes.contains(&life.name),
        FateKind::Expired => return spec.expires_at.is_some(),
        FateKind::FiredLate if is_backfilled(evidence, &life.name, at) => return true,
        // After an edit, what the old count left over.
        FateKind::SkippedCap if life.versions.len() > 1 && is_counted => return true,
        FateKind::SkippedCap => spec.misfire == "all" && (spec.cap > 0 || spec.count.is_some()),
        FateKind::FiredLate => true,
        FateKind::Coalesced => spec.misfire == "coalesce",
        FateKind::SkippedMisfire => matches!(spec.misfire, "latest" | "skip"),
        FateKind::SkippedGrace => spec.grace.is_some(),
        FateKind::Quarantined => return aside::is_explained(evidence, i64::MAX),
        FateKind::SkippedConcurrency => false,
    };
    let is_born_late = asked_at > at + spec.tolerance.min(spec.grace.unwrap_or(i64::MAX));
    by_policy && (is_born_late || is_disturbed(evidence, spec, at))
}

fn is_backfilled(evidence: &Evidence<'_>, name: &str, at: i64) -> bool {
    let mut asked = evidence.seen.backfills.iter();
    asked.any(|asked| asked.name == name && asked.from < at && at <= asked.to)
}

/// Whether the schedule may have been paused when an occurrence was due. What is cut off arrives late. On a full disk
/// a pause goes through though nothing due before it can fire: what waited for room is its own, too.
fn is_held(evidence: &Evidence<'_>, name: &str, at: i64, jitter: i64) -> bool {
    let lies = evidence.setting.lies_max;
    let since = at - evidence.setting.starts_at;
    let full = evidence.seen.disturbances.iter().filter(|one| one.kind == "full");
    let waits = full.filter(|full| full.from.cast_signed() <= since + jitter + lies);
    let room_at = waits
        .map(|full| full.to)
        .filter(|to| i64::try_from(*to).is_ok_and(|to| since <= to));
    let room_at = room_at.max().map_or(since, |to| since.max(to.cast_signed()));
    evidence.seen.holds.iter().any(|hold| {
        let to = if evidence.setting.words_are_late {
            i64::MAX
        } else {
            hold.to.cast_signed()
        };
        hold.name == name && hold.from.cast_signed() <= room_at + jitter + lies && since <= to.saturating_add(lies)
    })
}

/// Whether a healthy owner may have been missing in a stretch that ends within the tolerance after `at`,
/// or so that the occurrence was judged together with one that was missed.
fn is_disturbed(evidence: &Evidence<'_>, spec: &PlainSpec, at: i64) -> bool {
    if evidence.setting.store_is_unsure {
        return true;
    }
    let at = at - evidence.setting.starts_at;
    let around = spec.tolerance + spec.jitter + 3_000_000;
    evidence.seen.disturbances.iter().any(|disturbed| {
        if disturbed.kind == "clock" {
            return true;
        }
        let to = i64::try_from(disturbed.to).unwrap_or(i64::MAX);
        disturbed.from.cast_signed() <= at + around && at <= to.saturating_add(around)
    })
}
