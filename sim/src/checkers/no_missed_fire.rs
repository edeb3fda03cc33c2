//! P2: every occurrence has exactly one fate; fates and backlogs tile nominal time up to the cursor;
//! a fired occurrence has its job, and no other has one.
//!
//! Occurrences come from `world/rules.rs`, which shares nothing with the product.

use super::{Evidence, Verdict};
use crate::world::rules::PlainRule;
use crate::world::timetable::Planned;
use fencepost_core::fate::{FateKind, FateSpan};
use fencepost_core::job::{FireCause, Origin};
use fencepost_core::row::Row;
use fencepost_core::schedule::CursorRow;
use std::collections::BTreeMap;

/// A stretch `(from, to]` and its fate; `None` while a backlog holds it.
struct Tile {
    from: i64,
    to: i64,
    kind: Option<FateKind>,
    count: Option<u64>,
}

/// Judges every schedule.
pub fn check(evidence: &Evidence<'_>, verdict: &mut Verdict) {
    for plan in evidence.plans {
        let cursor = evidence.rows.iter().find_map(|row| match row {
            Row::Cursor(cursor) if cursor.name.as_str() == plan.name => Some(&**cursor),
            _ => None,
        });
        if let Some(cursor) = cursor {
            check_schedule(evidence, plan, cursor, verdict);
        }
    }
}

fn check_schedule(evidence: &Evidence<'_>, plan: &Planned, cursor: &CursorRow, verdict: &mut Verdict) {
    let tiles = tiles(evidence, cursor);
    let name = &plan.name;
    check_tiling(name, cursor, &tiles, verdict);
    // A one-shot that was made after its instant is due at creation: outside the line of nominal time.
    if matches!(plan.rule, PlainRule::Once { at } if at <= cursor.history_at.0) {
        return;
    }
    let mut jobs = jobs_of(evidence, name);
    let decided = plan.ends_at.min(cursor.nominal.0);
    for at in plan.rule.instants(cursor.history_at.0, decided) {
        let tile = tiles.iter().find(|tile| tile.from < at && at <= tile.to);
        let made = jobs.remove(&at).unwrap_or(0);
        let kind = tile.and_then(|tile| tile.kind);
        let is_backlog = tile.is_some_and(|tile| tile.kind.is_none());
        verdict.expect(tile.is_some(), || format!("{name}: no fate for {at}"));
        let wanted = u64::from(kind.is_some_and(FateKind::is_fired));
        verdict.expect(is_backlog || made == wanted, || {
            format!("{name}: {at} has fate {kind:?} and {made} jobs")
        });
        verdict.expect(kind.is_none_or(|kind| is_allowed(evidence, plan, kind, at)), || {
            format!(
                "{name}: {at} has fate {kind:?}, which policy {} and the faults do not explain",
                plan.misfire
            )
        });
    }
    verdict.expect(jobs.is_empty(), || {
        format!("{name}: jobs for instants nobody asked for: {jobs:?}")
    });
    let left = plan.rule.instants(decided, plan.ends_at);
    verdict.expect(left.is_empty() || evidence.unmet.is_some(), || {
        format!("{name}: the cursor stands at {} before {left:?}", cursor.nominal.0)
    });
    for tile in &tiles {
        let asked = plan.rule.instants(tile.from, tile.to.min(plan.ends_at)).len() as u64;
        verdict.expect(tile.count.is_none_or(|count| count == asked), || {
            format!(
                "{name}: ({}, {}] counts {:?}, {asked} were asked for",
                tile.from, tile.to, tile.count
            )
        });
    }
}

fn tiles(evidence: &Evidence<'_>, cursor: &CursorRow) -> Vec<Tile> {
    let mut tiles: Vec<Tile> = Vec::new();
    for row in evidence.rows {
        match row {
            Row::Fate(fate) if fate.name == cursor.name => tiles.push(tile(&fate.span)),
            Row::Backlog(backlog) if backlog.name == cursor.name => {
                tiles.extend(backlog.open.as_ref().map(tile));
                tiles.push(Tile {
                    from: backlog.from.0,
                    to: backlog.to.0,
                    kind: None,
                    count: None,
                });
            }
            _ => {}
        }
    }
    tiles.extend(cursor.open.as_ref().map(tile));
    tiles.sort_by_key(|tile| (tile.from, tile.to));
    tiles
}

fn tile(span: &FateSpan) -> Tile {
    Tile {
        from: span.from.0,
        to: span.to.0,
        kind: Some(span.kind),
        count: span.count,
    }
}

fn check_tiling(name: &str, cursor: &CursorRow, tiles: &[Tile], verdict: &mut Verdict) {
    let mut at = cursor.history_at.0;
    for tile in tiles {
        verdict.expect(tile.from == at, || {
            format!("{name}: fates end at {at}, the next begin at {}", tile.from)
        });
        at = tile.to;
    }
    verdict.expect(at == cursor.nominal.0, || {
        format!("{name}: fates end at {at}, the cursor stands at {}", cursor.nominal.0)
    });
}

fn jobs_of(evidence: &Evidence<'_>, name: &str) -> BTreeMap<i64, u64> {
    let mut jobs = BTreeMap::new();
    for job in evidence.jobs() {
        if let Origin::Occurrence {
            schedule,
            nominal,
            cause,
            ..
        } = &job.origin
            && schedule.as_str() == name
            && *cause != FireCause::RunNow
        {
            *jobs.entry(nominal.0).or_default() += 1;
        }
    }
    jobs
}

/// Whether the policy and the faults of the run allow this fate for the occurrence.
fn is_allowed(evidence: &Evidence<'_>, plan: &Planned, kind: FateKind, at: i64) -> bool {
    let by_policy = match kind {
        FateKind::FiredOnTime => return true,
        FateKind::FiredLate => true,
        FateKind::Coalesced => plan.misfire == "coalesce",
        FateKind::SkippedMisfire => matches!(plan.misfire, "latest" | "skip"),
        FateKind::Paused => return evidence.options.faults.hands,
        FateKind::SkippedCap => plan.misfire == "all" && plan.cap > 0,
        _ => false,
    };
    by_policy && is_disturbed(evidence, plan, at)
}

/// Whether a healthy owner may have been missing in a stretch that ends within the tolerance after `at`,
/// or so that the occurrence was judged together with one that was missed.
fn is_disturbed(evidence: &Evidence<'_>, plan: &Planned, at: i64) -> bool {
    let faults = evidence.options.faults;
    if faults.slow || faults.unknown || faults.sick {
        return true;
    }
    let at = at - evidence.options.starts_at;
    let around = plan.tolerance + 3_000_000;
    evidence.seen.disturbances.iter().any(|disturbed| {
        let to = i64::try_from(disturbed.to).unwrap_or(i64::MAX);
        disturbed.from.cast_signed() <= at + around && at <= to.saturating_add(around)
    })
}
