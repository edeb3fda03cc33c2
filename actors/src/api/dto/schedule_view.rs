//! A schedule, its fates and its edits as answers show them.
//!
//! Owns: the shapes. Must never: show a secret. Next: `schedule.rs` for the part that mirrors the request.

use super::rule::RuleBody;
use super::schedule::{PENDINGS, ScheduleBody};
use crate::api::text;
use crate::gateway::ScheduleFacts;
use fencepost_core::fate::{FATE_KINDS, FateCounts, FateSpan, LATENESS_BOUNDS_MS};
use fencepost_core::schedule::{BacklogRow, CursorRow, EditKind, EditRow, PendingFate, Rule};
use fencepost_core::scheduler_shard::io::ScheduleView;
use fencepost_core::time::StoreTime;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A schedule.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ScheduleAnswer {
    /// Its name.
    pub name: String,
    /// `active paused finished quarantined`.
    #[schema(value_type = String)]
    pub status: &'static str,
    /// Why it is quarantined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarantined: Option<String>,
    /// What the rule says, in one line.
    pub rule: String,
    /// The next occurrence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextAnswer>,
    /// Which life of the name.
    pub incarnation: String,
    /// Definition version of this life; the ETag, for If-Match, is VERSION-INCARNATION in quotes.
    pub version: u64,
    /// When this life began.
    pub created_at: String,
    /// Since when this version holds.
    pub effective_at: String,
    /// Since when it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<String>,
    /// When nothing was left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
    /// Every occurrence up to here has a fate or lies in a backlog.
    pub decided_until: String,
    /// Fates are kept from here on.
    pub history_from: String,
    /// Jobs made so far.
    pub fired: u64,
    /// Occurrences by fate.
    pub counts: BTreeMap<String, u64>,
    /// Missed stretches that are being made up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub backlogs: Vec<BacklogAnswer>,
    /// Version of the zone data in use.
    pub zone_version: String,
    /// Expressions with `H` resolved, when they differ from what was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved: Option<Vec<String>>,
    /// The definition, in the shape of a request.
    pub definition: ScheduleBody,
}

/// An occurrence to come.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NextAnswer {
    /// Nominal instant.
    pub nominal_at: String,
    /// Due instant: nominal plus jitter.
    pub due_at: String,
}

/// A missed stretch that is being made up.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BacklogAnswer {
    /// Undecided occurrences lie after this instant.
    pub from: String,
    /// … and up to this one.
    pub to: String,
    /// Jobs a second.
    pub rate: u32,
    /// Jobs made so far.
    pub released: u64,
    /// A person asked for it.
    pub backfill: bool,
}

/// A stretch of nominal time whose occurrences share one fate.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct FateAnswer {
    /// Exclusive.
    pub from: String,
    /// Inclusive.
    pub to: String,
    /// `fired_on_time fired_late coalesced skipped_misfire skipped_grace skipped_concurrency skipped_cap
    /// excluded expired paused withdrawn_edit withdrawn_delete quarantined`.
    #[schema(value_type = String)]
    pub fate: &'static str,
    /// Occurrences in it; missing until they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The latest of those that fired; missing for what a backfill made and what one has split.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness_max: Option<String>,
    /// Fired occurrences by lateness: upper bound in milliseconds (`beyond` for the rest) and count.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(required = false)]
    pub lateness: BTreeMap<String, u64>,
    /// Definition version.
    pub definition: u64,
    /// Zone data version.
    pub zone_version: String,
}

/// Something done to a schedule.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct EditAnswer {
    /// When it took effect.
    pub at: String,
    /// `created edited paused resumed deleted run_now backfilled zone_data restored`.
    #[schema(value_type = String)]
    pub kind: &'static str,
    /// Definition version before.
    pub from_version: u64,
    /// Definition version after.
    pub to_version: u64,
    /// The planned fire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_at: Option<String>,
    /// What became of it: `keep retime drop`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub pending: Option<&'static str>,
}

/// The dry run of an edit.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct EditPreviewAnswer {
    /// Always true.
    pub dry_run: bool,
    /// Coming fires under the present definition.
    pub before: Vec<String>,
    /// Coming fires under the new one.
    pub after: Vec<String>,
    /// The planned fire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_at: Option<String>,
    /// What would become of it: `keep retime drop`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub pending: Option<&'static str>,
}

/// What a backfill makes or would make.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BackfillAnswer {
    /// Nothing was made.
    pub dry_run: bool,
    /// Jobs in all.
    pub count: u64,
    /// The first nominal instants, at most 1,000.
    pub nominal_at: Vec<String>,
    /// Left out because they fired already.
    pub already_fired: u64,
    /// Left out by the cap.
    pub over_cap: u64,
    /// The range reaches further back than the schedule does: nothing before this instant can be made up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begins_at: Option<String>,
}

impl ScheduleAnswer {
    /// A schedule with its backlogs.
    pub fn of(facts: &ScheduleFacts) -> ScheduleAnswer {
        let mut answer = ScheduleAnswer::of_view(&facts.view);
        answer.backlogs = facts.backlogs.iter().map(backlog).collect();
        answer
    }

    /// A schedule as its owner answers.
    pub fn of_view(view: &ScheduleView) -> ScheduleAnswer {
        let (definition, cursor) = (&view.definition, &view.cursor);
        ScheduleAnswer {
            name: definition.name.to_string(),
            status: status(view),
            quarantined: view.quarantined.as_deref().map(str::to_owned),
            rule: RuleBody::line(&definition.spec.rule),
            next: view.next.filter(|_| cursor.paused_at.is_none()).map(next),
            incarnation: text::incarnation(definition.incarnation),
            version: definition.version,
            created_at: text::instant(definition.created_at),
            effective_at: text::instant(definition.effective_at),
            paused_at: cursor.paused_at.map(text::instant),
            finished_at: cursor.finished_at.map(text::instant),
            decided_until: text::instant(cursor.nominal),
            history_from: text::instant(cursor.history_at),
            fired: cursor.fired,
            counts: counts(cursor),
            backlogs: Vec::new(),
            zone_version: cursor.zone_version.to_string(),
            resolved: resolved(&definition.spec.rule),
            definition: ScheduleBody::of(&definition.spec),
        }
    }
}

/// The word for how a schedule stands.
pub fn status(view: &ScheduleView) -> &'static str {
    match (&view.quarantined, view.cursor.finished_at, view.cursor.paused_at) {
        (Some(_), ..) => "quarantined",
        (None, Some(_), _) => "finished",
        (None, None, Some(_)) => "paused",
        (None, None, None) => "active",
    }
}

fn next((nominal, due): (StoreTime, StoreTime)) -> NextAnswer {
    NextAnswer {
        nominal_at: text::instant(nominal),
        due_at: text::instant(due),
    }
}

fn counts(cursor: &CursorRow) -> BTreeMap<String, u64> {
    let counts: &FateCounts = &cursor.counts;
    let pairs = FATE_KINDS
        .iter()
        .map(|kind| (kind.as_str().to_owned(), counts.of(*kind)));
    pairs.filter(|(_, count)| *count > 0).collect()
}

fn resolved(rule: &Rule) -> Option<Vec<String>> {
    match rule {
        Rule::Cron {
            expressions, resolved, ..
        } if expressions != resolved => Some(resolved.iter().map(ToString::to_string).collect()),
        _ => None,
    }
}

fn backlog(row: &BacklogRow) -> BacklogAnswer {
    BacklogAnswer {
        from: text::instant(row.from),
        to: text::instant(row.to),
        rate: row.rate,
        released: row.released,
        backfill: row.backfill.is_some(),
    }
}

/// A fate span.
pub fn fate(span: &FateSpan) -> FateAnswer {
    let bounds = LATENESS_BOUNDS_MS.iter().map(|bound| format!("{bound:06}"));
    let names = bounds.chain(std::iter::once("beyond".to_owned()));
    let is_known = span.lateness.buckets.iter().any(|count| *count > 0);
    let lateness = names.zip(span.lateness.buckets).filter(|(_, count)| *count > 0);
    FateAnswer {
        from: text::instant(span.from),
        to: text::instant(span.to),
        fate: span.kind.as_str(),
        count: span.count,
        lateness_max: is_known.then(|| text::span(span.lateness.max)),
        lateness: lateness.collect(),
        definition: span.definition,
        zone_version: span.zone_version.to_string(),
    }
}

/// An edit record.
pub fn edit(row: &EditRow) -> EditAnswer {
    EditAnswer {
        at: text::instant(row.at),
        kind: match row.kind {
            EditKind::Created => "created",
            EditKind::Edited => "edited",
            EditKind::Paused => "paused",
            EditKind::Resumed => "resumed",
            EditKind::Deleted => "deleted",
            EditKind::RunNow => "run_now",
            EditKind::Backfilled => "backfilled",
            EditKind::ZoneData => "zone_data",
            EditKind::Restored => "restored",
        },
        from_version: row.from_version,
        to_version: row.to_version,
        pending_at: row.pending.map(|(at, _)| text::instant(at)),
        pending: row.pending.map(|(_, fate)| pending_word(fate)),
    }
}

/// The word for what becomes of a planned fire.
pub fn pending_word(fate: PendingFate) -> &'static str {
    PENDINGS
        .iter()
        .find(|(_, known)| *known == fate)
        .map_or("keep", |(word, _)| word)
}
