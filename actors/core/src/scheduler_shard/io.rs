//! Facts that the SchedulerShard is told and orders that it gives.
//!
//! Owns: the enums. Must never: hold logic. Next: `lease_manager/io.rs`, `shard.rs`.

use super::marks::Poison;
use crate::ids::{Incarnation, JobId};
use crate::job::{FireCause, JobSpec, Origin};
use crate::machine::ReplyTo;
use crate::name::Name;
use crate::refusal::Refusal;
use crate::row::RowKey;
use crate::schedule::{BacklogRow, CursorRow, PendingFate, RequestRow, ScheduleDefinition, ScheduleSpec};
use crate::time::StoreTime;
use std::sync::Arc;

/// A job that the version before made of a request, and when it ended.
pub type MadeBefore = (JobId, Option<StoreTime>);

/// The definition that an edit replaces, as its caller saw it. Each life of a name counts its versions from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Which life of the name; a node of the version before does not say.
    pub incarnation: Option<Incarnation>,
    /// Which version in it.
    pub version: u64,
}

/// A fact or request for the SchedulerShard.
#[derive(Clone, Debug)]
pub enum ScheduleInput {
    /// Make a schedule.
    Create {
        /// Whom to answer.
        reply: ReplyTo,
        /// Tenant and name.
        name: (Name, Name),
        /// What; validated by the gateway, checked again here.
        spec: Box<ScheduleSpec>,
        /// Made paused.
        paused: bool,
    },
    /// Replace a definition.
    Edit {
        /// Whom to answer.
        reply: ReplyTo,
        /// Tenant and name.
        name: (Name, Name),
        /// The definition the caller saw.
        if_match: Option<Seen>,
        /// What.
        spec: Box<ScheduleSpec>,
        /// What becomes of the planned fire.
        pending: PendingFate,
        /// Only show what would change.
        dry_run: bool,
    },
    /// Pause.
    Pause {
        /// Whom to answer.
        reply: ReplyTo,
        /// Tenant and name.
        name: (Name, Name),
    },
    /// Resume; what fell in the pause has fate *paused*.
    Resume {
        /// Whom to answer.
        reply: ReplyTo,
        /// Tenant and name.
        name: (Name, Name),
    },
    /// Delete the schedule. Jobs that wait already stay and run; the answer of the API says so.
    Delete {
        /// Whom to answer.
        reply: ReplyTo,
        /// Tenant and name.
        name: (Name, Name),
    },
    /// Fire once now, without moving the rule.
    RunNow {
        /// Whom to answer.
        reply: ReplyTo,
        /// Tenant and name.
        name: (Name, Name),
        /// Drawn by the gateway, or of the caller's key.
        request: u64,
        /// The row of this request, if it was carried out: `request_key` names it, the shell looks.
        seen: Option<Box<RequestRow>>,
        /// The job that the version before made of this request, if it is stored, and when it ended: `run_now_id`
        /// names it.
        made: Option<MadeBefore>,
    },
    /// Make up a past range.
    Backfill {
        /// Whom to answer.
        reply: ReplyTo,
        /// Tenant and name.
        name: (Name, Name),
        /// Exclusive.
        from: StoreTime,
        /// Inclusive, not after now.
        to: StoreTime,
        /// Most jobs.
        cap: u32,
        /// Also occurrences that fired already.
        rerun: bool,
        /// Drawn by the gateway, or of the caller's key.
        request: u64,
        /// The row of this request, if it was carried out.
        seen: Option<Box<RequestRow>>,
        /// Only show what would be made.
        dry_run: bool,
        /// Which life of the name the spans are of; `None` if there was no such schedule.
        life: Option<Incarnation>,
        /// Fate spans of the range, fetched by the shell, to leave out what fired already.
        fates: Vec<crate::fate::FateSpan>,
    },
    /// Rows that were asked for.
    Loaded(Loaded),
    /// A trial may be made: no other of this node is under way.
    TrialTurn,
    /// The mark of the trial is durable.
    TrialMarked,
    /// This owner was told to stop: its end is no death that a schedule is blamed for.
    Leaving,
    /// Time has passed.
    Tick,
}

/// A page of rows that was asked for.
#[derive(Clone, Debug)]
pub enum Loaded {
    /// A page of a schedule's closed fate spans, asked for by `LoadFates`.
    Fates {
        /// Tenant and name.
        name: (Name, Name),
        /// Which life of the name.
        incarnation: Incarnation,
        /// Closed spans that end after what was asked for, in order of their ends.
        fates: Vec<crate::fate::FateSpan>,
        /// No closed span ends after these.
        is_end: bool,
    },
    /// A page of requests that were carried out, asked for by `LoadRequests`.
    Requests {
        /// In key order.
        requests: Vec<SweptRequest>,
        /// Where the next page begins; `None` at the end.
        next: Option<RowKey>,
    },
    /// A page of the histories of edits, asked for by `LoadEdits`.
    Edits {
        /// Keys of entries, in their order.
        edits: Vec<RowKey>,
        /// The next page comes after it; `None` at the end.
        next: Option<RowKey>,
    },
}

impl ScheduleInput {
    /// Who waits for an answer.
    pub fn reply(&self) -> Option<ReplyTo> {
        match self {
            ScheduleInput::Create { reply, .. }
            | ScheduleInput::Edit { reply, .. }
            | ScheduleInput::Pause { reply, .. }
            | ScheduleInput::Resume { reply, .. }
            | ScheduleInput::Delete { reply, .. }
            | ScheduleInput::RunNow { reply, .. }
            | ScheduleInput::Backfill { reply, .. } => Some(*reply),
            ScheduleInput::Loaded(_)
            | ScheduleInput::TrialTurn
            | ScheduleInput::TrialMarked
            | ScheduleInput::Leaving
            | ScheduleInput::Tick => None,
        }
    }
}

/// A request that was carried out, and what became of its jobs.
#[derive(Clone, Debug)]
pub struct SweptRequest {
    /// Its row.
    pub row: RequestRow,
    /// When those of its jobs ended that are stored: `None` for one that has not.
    pub ends: Vec<Option<StoreTime>>,
}

/// Everything a SchedulerShard is told when its shard was opened.
#[derive(Clone, Debug, Default)]
pub struct ScheduleOpened {
    /// All definition versions of live schedules.
    pub definitions: Vec<ScheduleDefinition>,
    /// All cursors.
    pub cursors: Vec<CursorRow>,
    /// All backlogs.
    pub backlogs: Vec<BacklogRow>,
    /// What is known against versions of schedules (F9).
    pub poisons: Vec<Poison>,
    /// Instant of the newest entry in each living schedule's history of edits: a later one must not take
    /// its place, also when the store's clock is held over a restart.
    pub recorded: Vec<((Name, Name), StoreTime)>,
    /// Cursor rows that could not be read.
    pub lost: Vec<LostCursor>,
    /// Definition rows that could not be read: tenant, name, version, why.
    pub unreadable: Vec<(Name, Name, u64, Arc<str>)>,
    /// Owners before this one died young: schedules are tried one by one.
    pub is_careful: bool,
    /// The owner's mark was written; it is taken away once this owner has proven that it survives.
    pub is_marked: bool,
}

/// A schedule whose cursor row could not be read.
#[derive(Clone, Debug)]
pub struct LostCursor {
    /// Tenant.
    pub tenant: Name,
    /// Schedule.
    pub name: Name,
    /// Why.
    pub reason: Arc<str>,
    /// Begin of the first and end of the last closed fate span of its newest life.
    pub closed: Option<(StoreTime, StoreTime)>,
}

/// An order of the SchedulerShard.
#[derive(Clone, Debug)]
pub enum ScheduleEffect {
    /// Answers a client.
    Reply(ReplyTo, Result<ScheduleReply, Refusal>),
    /// Something fired, was skipped, and so on (for logs, metrics and the `dev` console).
    Note(FireNote),
    /// Read closed fate spans of a schedule and hand them in as `Loaded::Fates`.
    LoadFates {
        /// Tenant and name.
        name: (Name, Name),
        /// Which life of the name.
        incarnation: Incarnation,
        /// Only spans that end after it.
        after: StoreTime,
        /// At most this many.
        limit: usize,
    },
    /// Read requests of this shard's schedules that were carried out, with the ends of their jobs, and hand
    /// them in as `Loaded::Requests`.
    LoadRequests {
        /// Where the page begins; `None` for the first.
        from: Option<RowKey>,
        /// At most this many.
        limit: usize,
    },
    /// Read the keys of entries in the histories of edits of this shard's schedules and hand them in as
    /// `Loaded::Edits`.
    LoadEdits {
        /// The page comes after it; `None` for the first.
        after: Option<RowKey>,
        /// At most this many.
        limit: usize,
    },
    /// Answer with `TrialTurn` once no other trial of this node is under way.
    AskTrialTurn,
    /// The mark of a trial is durable: hand in `TrialMarked`.
    TrialMarked,
    /// The trial is over and its mark gone: the next may have the turn.
    EndTrialTurn,
    /// The auditor found a fault in a schedule's history: an operator must see it.
    AuditFault {
        /// Tenant and name.
        name: (Name, Name),
        /// What is wrong.
        fault: super::audit::AuditFault,
    },
}

/// An answer to a client.
#[derive(Clone, Debug)]
pub enum ScheduleReply {
    /// The schedule as it is now.
    Schedule(Box<ScheduleView>),
    /// Deleted.
    Deleted,
    /// The job a run-now made.
    Ran {
        /// The job.
        job: JobId,
        /// The request had made it before.
        replayed: bool,
    },
    /// What a backfill makes or would make.
    Backfill {
        /// Jobs in all.
        count: u64,
        /// The first instants, at most `PAGE_ITEMS_MAX`.
        instants: Vec<StoreTime>,
        /// Occurrences of the range left out because they fired already.
        already_fired: u64,
        /// Occurrences left out by the cap.
        over_cap: u64,
    },
    /// A dry run of an edit: coming fires before and after.
    EditPreview {
        /// Under the old definition.
        before: Vec<StoreTime>,
        /// Under the new one.
        after: Vec<StoreTime>,
        /// The planned fire and what would become of it.
        pending: Option<(StoreTime, PendingFate)>,
    },
}

/// A schedule as shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleView {
    /// Current definition.
    pub definition: ScheduleDefinition,
    /// Where it stands.
    pub cursor: CursorRow,
    /// Next nominal instant and its due instant.
    pub next: Option<(StoreTime, StoreTime)>,
    /// Why it is quarantined, if it is.
    pub quarantined: Option<Arc<str>>,
}

/// A job to be made by a fire: the one crossing to the LeaseManager, inserted only if absent.
#[derive(Clone, Debug)]
pub struct Fire {
    /// From the occurrence.
    pub id: JobId,
    /// What.
    pub spec: Arc<JobSpec>,
    /// Always `Origin::Occurrence`.
    pub origin: Origin,
    /// When it is due.
    pub due_at: StoreTime,
}

/// News of a schedule, for logs, metrics and the `dev` console.
#[derive(Clone, Debug)]
pub struct FireNote {
    /// Tenant and name.
    pub name: (Name, Name),
    /// Incarnation.
    pub incarnation: Incarnation,
    /// The fate decided.
    pub kind: crate::fate::FateKind,
    /// Nominal instant (the last, for a stretch).
    pub nominal: StoreTime,
    /// Due instant.
    pub due: StoreTime,
    /// Decided at.
    pub at: StoreTime,
    /// How many occurrences, when known.
    pub count: Option<u64>,
    /// The job, when one was made.
    pub job: Option<JobId>,
    /// How it came about.
    pub cause: Option<FireCause>,
}
