//! A schedule: the durable rule, its cursor and its backlogs, as every part sees them.
//!
//! Owns: the types. Must never: decide what fires (see `scheduler_shard/`) or evaluate a rule (see
//! `cron/`, `interval.rs`, `calendar.rs`). Next: `fate.rs`, `scheduler_shard/io.rs`.

use crate::fate::{FateCounts, FateSpan};
use crate::ids::{Incarnation, JobId};
use crate::job::JobSpec;
use crate::name::Name;
use crate::time::{Span, StoreTime};
use std::sync::Arc;

/// What the user asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleSpec {
    /// When.
    pub rule: Rule,
    /// Occurrences before it do not exist.
    pub starts_at: Option<StoreTime>,
    /// Occurrences after it do not exist.
    pub ends_at: Option<StoreTime>,
    /// After this many fires the schedule is finished.
    pub count_max: Option<u64>,
    /// Local dates on which nothing fires.
    pub exclusions: Vec<Exclusion>,
    /// Spread each due instant over this window.
    pub jitter: Span,
    /// What to do with occurrences found late.
    pub misfire: MisfirePolicy,
    /// At most this late is on time.
    pub tolerance: Span,
    /// Later than this (edge inclusive) never fires.
    pub grace: Option<Span>,
    /// What each fire makes.
    pub job: Arc<JobSpec>,
}

/// When a schedule asks for an occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// One or more cron expressions in one zone.
    Cron {
        /// As the user wrote them, at least one.
        expressions: Vec<Arc<str>>,
        /// With `H` resolved once; same order and length.
        resolved: Vec<Arc<str>>,
        /// IANA zone name.
        zone: Arc<str>,
        /// Local times that do not exist.
        gap: GapPolicy,
        /// Local times that exist twice.
        overlap: OverlapPolicy,
    },
    /// Absolute cadence: anchor + k × every.
    Interval {
        /// At least a millisecond.
        every: Span,
        /// One of its instants.
        anchor: StoreTime,
        /// Zone for exclusions and display.
        zone: Arc<str>,
    },
    /// Once, at an instant; a past one is its one occurrence, due at creation.
    Once {
        /// The instant.
        at: StoreTime,
        /// The local time it was given as, when it was (`2026-03-29T02:30:00`).
        local: Option<Arc<str>>,
        /// Zone for the local form, exclusions and display.
        zone: Arc<str>,
        /// Local times that do not exist.
        gap: GapPolicy,
        /// Local times that exist twice.
        overlap: OverlapPolicy,
    },
}

/// What becomes of a local time that does not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GapPolicy {
    /// The first real instant after the gap.
    #[default]
    NextValid,
    /// No occurrence.
    Skip,
}

/// What becomes of a local time that exists twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OverlapPolicy {
    /// The first pass.
    #[default]
    First,
    /// The second pass.
    Second,
    /// Both.
    Both,
}

/// Local dates on which nothing fires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// Days from 1970-01-01 of the first and the last excluded local date (one date: both equal).
    Dates {
        /// First.
        first: i32,
        /// Last, not before the first.
        last: i32,
    },
    /// A weekday, 0 Sunday to 6 Saturday.
    Weekday(u8),
}

/// What to do with occurrences found later than the tolerance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MisfirePolicy {
    /// One job for the newest, the others skipped.
    Latest,
    /// One job for the newest that carries first, last and count.
    Coalesce,
    /// Each, the newest `cap` kept, at most `rate` jobs a second.
    All {
        /// Most occurrences kept.
        cap: u32,
        /// Jobs a second.
        rate: u32,
    },
    /// Drop those beyond tolerance, fire the rest.
    Skip,
}

/// A version of a schedule's definition. Old versions stay while a fate, backlog or job names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleDefinition {
    /// Tenant.
    pub tenant: Name,
    /// Unique within the tenant.
    pub name: Name,
    /// Which life of the name.
    pub incarnation: Incarnation,
    /// From 1; an edit adds one; If-Match sees only this.
    pub version: u64,
    /// Creation of this incarnation.
    pub created_at: StoreTime,
    /// Nominal instants after it belong to this version.
    pub effective_at: StoreTime,
    /// What the user asked for.
    pub spec: ScheduleSpec,
}

/// Where a schedule stands. One row per live schedule, rewritten by each fire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorRow {
    /// Tenant.
    pub tenant: Name,
    /// Schedule.
    pub name: Name,
    /// Which life of the name.
    pub incarnation: Incarnation,
    /// Current definition version.
    pub definition: u64,
    /// Start of history: creation, later moved by purges. Fates tile (history_at, nominal].
    pub history_at: StoreTime,
    /// All nominal instants up to here have a fate or lie in a backlog.
    pub nominal: StoreTime,
    /// Offset east of UTC in seconds at `nominal`, as the zone data then said (F22).
    pub offset: i32,
    /// Version of the zone data that `nominal` was computed with.
    pub zone_version: Arc<str>,
    /// An occurrence that an edit kept: (nominal, due, definition version it belongs to).
    pub kept: Option<KeptOccurrence>,
    /// What edits dropped and what lies after `nominal`, in order, at most `EDIT_DROPS_MAX`.
    pub dropped: Vec<DroppedOccurrence>,
    /// The fate span that still grows; its end is `nominal`.
    pub open: Option<FateSpan>,
    /// Set while paused.
    pub paused_at: Option<StoreTime>,
    /// Set when no occurrence is left.
    pub finished_at: Option<StoreTime>,
    /// Fires of this incarnation, for `count_max`.
    pub fired: u64,
    /// All fates of this incarnation so far, by kind.
    pub counts: FateCounts,
    /// Next free number of a backlog row.
    pub backlog_next: u32,
    /// Newest request numbers of run-now and backfill, oldest first, at most `REQUESTS_KEPT_MAX`: of a cell before
    /// level 2, which has no `RequestRow`. Each gets one once the cell is raised.
    pub requests: Vec<u64>,
}

/// An occurrence planned under an older version that an edit kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptOccurrence {
    /// Nominal instant.
    pub nominal: StoreTime,
    /// When it is due.
    pub due: StoreTime,
    /// Definition version.
    pub definition: u64,
}

/// A planned occurrence that an edit dropped ahead of its time. It does not fire, whichever rule asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DroppedOccurrence {
    /// Nominal instant.
    pub nominal: StoreTime,
    /// Offset east of UTC in seconds then, in the zone of the current definition (F22).
    pub offset: i32,
}

/// A missed span that is released bit by bit, beside the live cursor (F24).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BacklogRow {
    /// Tenant.
    pub tenant: Name,
    /// Schedule.
    pub name: Name,
    /// Which life of the name.
    pub incarnation: Incarnation,
    /// Number within the incarnation.
    pub number: u32,
    /// Definition version the span belongs to.
    pub definition: u64,
    /// Undecided nominal instants lie in (from, to]; `from` moves forward with progress.
    pub from: StoreTime,
    /// End, inclusive.
    pub to: StoreTime,
    /// Jobs a second.
    pub rate: u32,
    /// Jobs are made by a person's backfill request rather than a misfire.
    pub backfill: Option<BackfillMark>,
    /// Jobs released so far.
    pub released: u64,
    /// The fate span that still grows with the progress; its end is `from`.
    pub open: Option<FateSpan>,
}

/// Marks a backlog that a backfill request made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackfillMark {
    /// Discriminator of the request; zero means "the occurrence's own id" (never fired before).
    pub request: u64,
    /// Released at most.
    pub cap: u32,
}

/// A request to run now or to make up a range that was carried out: sent again, it gets the same answer (F26).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRow {
    /// Tenant.
    pub tenant: Name,
    /// Schedule.
    pub name: Name,
    /// Which life of the name.
    pub incarnation: Incarnation,
    /// Of its key, or as drawn for it.
    pub number: u64,
    /// Digest of the request as parsed, before defaults; zero of one that the version before carried out.
    pub digest: [u8; 32],
    /// When it was carried out; or when the number that the version before kept became this row.
    pub at: StoreTime,
    /// How long it is kept after the end of what it made.
    pub kept: Span,
    /// What it was answered.
    pub answer: RequestAnswer,
    /// Number of the first backlog that it made, and how many it made.
    pub backlogs: (u32, u32),
    /// The job that it made, or the last one of each stretch that it makes up.
    pub jobs: Vec<JobId>,
}

/// What a request that makes jobs was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestAnswer {
    /// To run now: the job.
    Ran(JobId),
    /// To a backfill; see `ScheduleReply::Backfill`.
    Backfill {
        /// Jobs in all.
        count: u64,
        /// The first instants.
        instants: Vec<StoreTime>,
        /// Left out because they fired already.
        already_fired: u64,
        /// Left out by the cap.
        over_cap: u64,
    },
}

/// What an edit did, kept for the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditRow {
    /// Tenant.
    pub tenant: Name,
    /// Schedule.
    pub name: Name,
    /// Which life of the name.
    pub incarnation: Incarnation,
    /// When it took effect.
    pub at: StoreTime,
    /// What happened.
    pub kind: EditKind,
    /// Definition versions before and after (equal when the definition did not change).
    pub from_version: u64,
    /// See `from_version`.
    pub to_version: u64,
    /// The pending occurrence and what became of it.
    pub pending: Option<(StoreTime, PendingFate)>,
}

/// Kinds of entries in a schedule's edit history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditKind {
    /// Made.
    Created,
    /// Definition replaced.
    Edited,
    /// Paused.
    Paused,
    /// Resumed.
    Resumed,
    /// Deleted.
    Deleted,
    /// Fired by hand.
    RunNow,
    /// A past range was asked for.
    Backfilled,
    /// Newer zone data moved what was planned.
    ZoneData,
    /// A restore from a backup held it: what fell after the backup may have fired (F11).
    Restored,
}

/// What an edit does to the fire that was planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PendingFate {
    /// Fires as it was planned.
    Keep,
    /// Planned anew under the new definition.
    Retime,
    /// Withdrawn.
    Drop,
}
