//! Every kind of durable row: one writing machine each, keyed so that a scan finds every duty.
//!
//! Owns: which rows exist and how they are named. Must never: encode (see `fencepost-storage`).
//! Next: `machine.rs`.

use crate::fate::FateRow;
use crate::ids::{BatchNo, Epoch, Generation, Holder, Incarnation, JobId, Scope, ShardId, Slot, Token, WorkerId};
use crate::job::{AttemptRecord, Job};
use crate::level::Level;
use crate::limits::ATTEMPT_PAGE_RECORDS;
use crate::name::Name;
use crate::schedule::{BacklogRow, CursorRow, EditRow, RequestRow, ScheduleDefinition};
use crate::time::{Span, StoreTime};
use std::sync::Arc;

/// A durable row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// Facts of the cell (writer: the cell's maker, then restore).
    Cell(CellRow),
    /// Which node may open a scope (writer: coordinator).
    Assignment(AssignmentRow),
    /// A definition version (writer: SchedulerShard).
    Definition(Box<ScheduleDefinition>),
    /// Where a schedule stands (writer: SchedulerShard).
    Cursor(Box<CursorRow>),
    /// A missed span being released (writer: SchedulerShard).
    Backlog(Box<BacklogRow>),
    /// A closed fate span (writer: SchedulerShard).
    Fate(Box<FateRow>),
    /// An edit record (writer: SchedulerShard).
    Edit(Box<EditRow>),
    /// A job (inserted by a fire or a request; writer: LeaseManager).
    Job(Box<Job>),
    /// Waits for its time (writer: LeaseManager).
    Wait(WaitRow),
    /// May be granted (writer: LeaseManager).
    Ready(ReadyRow),
    /// An attempt is current (writer: LeaseManager).
    Leased(Box<LeasedRow>),
    /// Uncertain, for a human (writer: LeaseManager).
    Parked(ParkedRow),
    /// An idempotency key (writer: LeaseManager).
    Key(Box<KeyRow>),
    /// A job given up (writer: LeaseManager).
    DeadLetter(DeadLetterRow),
    /// Ended attempts for which the job's row has no room any more (writer: LeaseManager).
    Attempts(Box<AttemptsRow>),
    /// A low-water mark (writer: the range's own).
    Mark(MarkRow),
    /// A row that could not be read or evaluated, or a mark of an owner's start (writer: the one that met it).
    Quarantine(Box<QuarantineRow>),
    /// A request about a schedule that was carried out (writer: SchedulerShard).
    Request(Box<RequestRow>),
}

/// The name of a row. Its order is the order of its bytes within one kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowKey {
    /// One per cell.
    Cell,
    /// One per scope.
    Assignment(Scope),
    /// Slot, tenant, name, incarnation, version.
    Definition(Slot, Name, Name, Incarnation, u64),
    /// Slot, tenant, name.
    Cursor(Slot, Name, Name),
    /// Slot, tenant, name, incarnation, number.
    Backlog(Slot, Name, Name, Incarnation, u32),
    /// Slot, tenant, name, incarnation, end of the span, start of the span.
    Fate(Slot, Name, Name, Incarnation, StoreTime, StoreTime),
    /// Slot, tenant, name, incarnation, instant, version after.
    Edit(Slot, Name, Name, Incarnation, StoreTime, u64),
    /// The id begins with the slot.
    Job(JobId),
    /// By time within the shard.
    Wait(ShardId, StoreTime, JobId),
    /// By class, priority and order within the shard.
    Ready(ReadyRow),
    /// By id.
    Leased(JobId),
    /// By id.
    Parked(JobId),
    /// Slot, tenant, key.
    Key(Slot, Name, Arc<str>),
    /// By id.
    DeadLetter(JobId),
    /// Job and page.
    Attempts(JobId, u32),
    /// By shard and range.
    Mark(ShardId, MarkRange),
    /// By shard and the raw key of the row it names.
    Quarantine(ShardId, Arc<[u8]>),
    /// Slot, tenant, name, incarnation, number of the request.
    Request(Slot, Name, Name, Incarnation, u64),
}

/// Facts of the cell, fixed when it is made; only the generation grows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CellRow {
    /// Drawn when the cell is made.
    pub cell: u128,
    /// Raised by restore and promotion.
    pub generation: Generation,
    /// Fixed (F28).
    pub shards: u16,
    /// When it was made.
    pub created_at: StoreTime,
    /// Nothing beyond it is in its rows; raised once every node knows the higher one (`level.rs`).
    pub level: Level,
}

/// Which node may open a scope.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AssignmentRow {
    /// The scope.
    pub scope: Scope,
    /// The node.
    pub node: Name,
    /// Grows with each change.
    pub version: u64,
}

/// The store's own record of a scope; written by the store with each commit, never by a machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScopeRow {
    /// The scope.
    pub scope: Scope,
    /// Current epoch.
    pub epoch: Epoch,
    /// Who opened it.
    pub holder: Holder,
    /// Last batch committed in this epoch, 0 for none.
    pub batch: BatchNo,
    /// Digest of that batch's bytes.
    pub digest: [u8; 32],
    /// Store time of that commit: the scope's floor.
    pub at: StoreTime,
}

/// A job that waits for its time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WaitRow {
    /// Shard.
    pub shard: ShardId,
    /// Due.
    pub at: StoreTime,
    /// Job.
    pub id: JobId,
    /// Set for a delay and for the wait between attempts: its full length, to clamp what is left after a load.
    pub length: Option<Span>,
}

/// A job that may be granted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadyRow {
    /// Shard.
    pub shard: ShardId,
    /// Class: queue.
    pub queue: Name,
    /// Class: tenant.
    pub tenant: Name,
    /// 0 first.
    pub priority: u8,
    /// When it became ready (due instant).
    pub order: StoreTime,
    /// Job.
    pub id: JobId,
}

/// The current attempt of a job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeasedRow {
    /// Job.
    pub id: JobId,
    /// Version of the job row at the grant.
    pub job_version: u64,
    /// Attempt number.
    pub attempt: u32,
    /// Fencing token.
    pub token: Token,
    /// Who holds it.
    pub worker: WorkerId,
    /// When it was granted.
    pub granted_at: StoreTime,
    /// Full length of the lease.
    pub length: Span,
    /// At-most-once: the worker has begun (F15).
    pub begun: bool,
    /// The epoch that last saw a heartbeat of it (F16).
    pub seen: crate::ids::Epoch,
    /// Owner starts since then (F16).
    pub unseen_starts: u32,
    /// Its ready row, deleted at the grant; needed to put it back.
    pub order: StoreTime,
}

/// A job parked as uncertain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ParkedRow {
    /// Job.
    pub id: JobId,
    /// Since when.
    pub at: StoreTime,
}

/// An idempotency key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyRow {
    /// Tenant.
    pub tenant: Name,
    /// The key.
    pub key: Arc<str>,
    /// The job it made.
    pub job: JobId,
    /// Digest of the request as parsed, before defaults.
    pub digest: [u8; 32],
    /// When.
    pub created_at: StoreTime,
}

/// A job given up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeadLetterRow {
    /// Job.
    pub id: JobId,
    /// When.
    pub at: StoreTime,
}

/// Ended attempts of a job, written once when the job's row is full and deleted with the job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AttemptsRow {
    /// Job.
    pub id: JobId,
    /// Which numbers: see `page_of`.
    pub page: u32,
    /// Oldest first, at most `ATTEMPT_PAGE_RECORDS`.
    pub records: Vec<AttemptRecord>,
}

impl AttemptsRow {
    /// The page on which an attempt of this number lies, once it is not in the job's row.
    pub fn page_of(no: u32) -> u32 {
        no.saturating_sub(1) / ATTEMPT_PAGE_RECORDS
    }

    /// How many pages may lie beside a job's row: those before its oldest record.
    pub fn count_of(job: &Job) -> u32 {
        job.attempts.first().map_or(0, |oldest| AttemptsRow::page_of(oldest.no))
    }
}

/// Ranges with a low-water mark.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MarkRange {
    /// The wait range.
    Wait,
    /// The ready range of one class (queue, tenant).
    Ready(Name, Name),
}

/// A remembered place from which a range may be scanned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MarkRow {
    /// Shard.
    pub shard: ShardId,
    /// Range.
    pub range: MarkRange,
    /// No row of the range lies below this key.
    pub from: RowKey,
}

/// A row that could not be read or evaluated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuarantineRow {
    /// Shard.
    pub shard: ShardId,
    /// Raw key of the row.
    pub key: Arc<[u8]>,
    /// Why, for people.
    pub reason: Arc<str>,
    /// When.
    pub at: StoreTime,
    /// "Trying" marks survive a crash; what dies twice is quarantined.
    pub deaths: u32,
}

impl ReadyRow {
    /// The key of a job's ready row, in each line in which it may lie.
    pub fn each_of(shard: ShardId, job: &Job, order: StoreTime) -> impl Iterator<Item = ReadyRow> {
        job.spec.lines().map(move |queue| ReadyRow {
            queue,
            ..ReadyRow::of(shard, job, order)
        })
    }

    /// The key of a job's ready row, in the line of the first level.
    pub fn of(shard: ShardId, job: &Job, order: StoreTime) -> ReadyRow {
        ReadyRow {
            shard,
            queue: job.spec.line(),
            tenant: job.spec.tenant.clone(),
            priority: job.spec.priority,
            order,
            id: job.id,
        }
    }
}

impl Row {
    /// The row's name.
    pub fn key(&self) -> RowKey {
        let slot = |tenant: &Name, name: &Name| Slot::of_schedule(tenant, name);
        match self {
            Row::Cell(_) => RowKey::Cell,
            Row::Assignment(r) => RowKey::Assignment(r.scope),
            Row::Definition(r) => RowKey::Definition(
                slot(&r.tenant, &r.name),
                r.tenant.clone(),
                r.name.clone(),
                r.incarnation,
                r.version,
            ),
            Row::Cursor(r) => RowKey::Cursor(slot(&r.tenant, &r.name), r.tenant.clone(), r.name.clone()),
            Row::Backlog(r) => RowKey::Backlog(
                slot(&r.tenant, &r.name),
                r.tenant.clone(),
                r.name.clone(),
                r.incarnation,
                r.number,
            ),
            Row::Fate(r) => RowKey::Fate(
                slot(&r.tenant, &r.name),
                r.tenant.clone(),
                r.name.clone(),
                r.incarnation,
                r.span.to,
                r.span.from,
            ),
            Row::Edit(r) => RowKey::Edit(
                slot(&r.tenant, &r.name),
                r.tenant.clone(),
                r.name.clone(),
                r.incarnation,
                r.at,
                r.to_version,
            ),
            Row::Job(r) => RowKey::Job(r.id),
            Row::Wait(r) => RowKey::Wait(r.shard, r.at, r.id),
            Row::Ready(r) => RowKey::Ready(r.clone()),
            Row::Leased(r) => RowKey::Leased(r.id),
            Row::Parked(r) => RowKey::Parked(r.id),
            Row::Key(r) => RowKey::Key(Slot::of_key(&r.tenant, &r.key), r.tenant.clone(), r.key.clone()),
            Row::DeadLetter(r) => RowKey::DeadLetter(r.id),
            Row::Attempts(r) => RowKey::Attempts(r.id, r.page),
            Row::Mark(r) => RowKey::Mark(r.shard, r.range.clone()),
            Row::Quarantine(r) => RowKey::Quarantine(r.shard, r.key.clone()),
            Row::Request(r) => RowKey::Request(
                slot(&r.tenant, &r.name),
                r.tenant.clone(),
                r.name.clone(),
                r.incarnation,
                r.number,
            ),
        }
    }
}
