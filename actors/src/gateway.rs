//! What the HTTP API asks of a node: calls to shard owners, reads of synced rows, health, facts.
//!
//! Owns: the one trait between the API and the rest, and the shapes that cross it. Must never: know
//! HTTP, JSON or an engine. Next: `api/` (the only caller), the node (the implementation).

use crate::desk::Desk;
use crate::node::trust::ClockFacts;
use fencepost_core::fate::FateSpan;
use fencepost_core::ids::{Generation, Incarnation, JobId, ShardId, ShardMap, Slot};
use fencepost_core::job::{AttemptRecord, Job};
use fencepost_core::lease_manager::io::{CancelAnswer, CreateItem, Created, Settlement};
use fencepost_core::level::Level;
use fencepost_core::name::Name;
use fencepost_core::refusal::Refusal;
use fencepost_core::row::{LeasedRow, QuarantineRow};
use fencepost_core::schedule::{BacklogRow, EditRow, PendingFate, ScheduleSpec};
use fencepost_core::scheduler_shard::io::{ScheduleReply, ScheduleView, Seen};
use fencepost_core::time::{Span, StoreTime};
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// An answer that comes later; a refusal is what the caller is told.
pub type Answer<T> = BoxFuture<'static, Result<T, Refusal>>;

/// A request for one shard's owner: the machines' inputs without whom to answer and without cold
/// rows (the shard's shell fetches those).
#[derive(Clone, Debug)]
pub enum ShardRequest {
    /// Make jobs; all of them live in this shard. `key_row` and `existing` are `None` here.
    CreateJobs(Vec<CreateItem>),
    /// Cancel a job.
    CancelJob(JobId),
    /// Send a dead job back.
    RetryDead(JobId),
    /// Settle an uncertain job.
    SettleUncertain(JobId, Settlement),
    /// Something about one schedule: (tenant, name), then what.
    Schedule((Name, Name), ScheduleRequest),
}

/// A request about one schedule.
#[derive(Clone, Debug)]
pub enum ScheduleRequest {
    /// Make it.
    Create {
        /// What.
        spec: Box<ScheduleSpec>,
        /// Made paused.
        paused: bool,
    },
    /// Replace its definition.
    Edit {
        /// The definition the caller saw.
        if_match: Option<Seen>,
        /// What.
        spec: Box<ScheduleSpec>,
        /// What becomes of the planned fire.
        pending: PendingFate,
        /// Only show what would change.
        dry_run: bool,
    },
    /// Pause it.
    Pause,
    /// Resume it.
    Resume,
    /// Delete it.
    Delete,
    /// Fire it once now.
    RunNow {
        /// Drawn by the API; repeating it returns the same job.
        request: u64,
    },
    /// Make up a past range.
    Backfill {
        /// Exclusive.
        from: StoreTime,
        /// Inclusive.
        to: StoreTime,
        /// Most jobs.
        cap: u32,
        /// Also occurrences that fired already.
        rerun: bool,
        /// Drawn by the API.
        request: u64,
        /// Only show what would be made.
        dry_run: bool,
    },
}

/// The answer of a shard's owner.
#[derive(Clone, Debug)]
pub enum ShardReply {
    /// To `CreateJobs`: one per item, in order.
    Created(Vec<Result<Created, Refusal>>),
    /// To `CancelJob`.
    Cancel(CancelAnswer),
    /// To `RetryDead` and `SettleUncertain`: the job as it is now.
    Job(Box<Job>),
    /// To `Schedule`.
    Schedule(ScheduleReply),
}

/// A job as read: its row, and the leased row beside it when an attempt is current.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobView {
    /// The job's row. Its state may say `Ready` while `leased` is there: then it runs.
    pub job: Arc<Job>,
    /// The current attempt.
    pub leased: Option<Arc<LeasedRow>>,
    /// How far that says it is, where it runs on this node.
    pub progress: Option<String>,
}

/// Which range of jobs a list walks; all are ordered by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobRange {
    /// Every job.
    All,
    /// Jobs of one slot (those that a schedule made live in the schedule's slot).
    Slot(Slot),
    /// Jobs given up.
    Dead,
    /// Jobs parked as uncertain.
    Uncertain,
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T, K> {
    /// In key order.
    pub items: Vec<T>,
    /// Key to go on after; `None` at the end of the range.
    pub next: Option<K>,
}

/// A schedule as a list or a look-up sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleFacts {
    /// Definition, cursor and next instants.
    pub view: ScheduleView,
    /// Missed spans being released.
    pub backlogs: Vec<BacklogRow>,
}

/// Which life of a schedule, and which stretch of nominal time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FateQuery {
    /// Tenant and name.
    pub name: (Name, Name),
    /// Which life; `None` for the living one.
    pub incarnation: Option<Incarnation>,
    /// Spans that end after this instant.
    pub from: Option<StoreTime>,
    /// Spans that begin before this instant.
    pub to: Option<StoreTime>,
    /// Go on after the span with this (end, start).
    pub after: Option<(StoreTime, StoreTime)>,
    /// Spans at most.
    pub limit: usize,
}

/// Whether the node is well, cheap enough to ask at each probe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Its shells step.
    pub live: bool,
    /// It takes requests: replay and self-audit are done, and it does not drain.
    pub ready: bool,
    /// It is shutting down: nothing new is taken.
    pub draining: bool,
    /// Why it is not ready, for people.
    pub reasons: Vec<String>,
}

/// Facts about the store, for `doctor` and `/v1/facts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    /// Drawn when the cell was made.
    pub cell: u128,
    /// Raised by restore and promotion.
    pub generation: Generation,
    /// The cell's level, as this node knows it.
    pub level: Level,
    /// Shards of the cell.
    pub shards: u16,
    /// `fjall`, `model`, …
    pub engine: String,
    /// Where it lies, when it lies on a disk.
    pub folder: Option<String>,
    /// Newest sequence that is durable.
    pub high_water: u64,
    /// Chain hash at that sequence, hexadecimal.
    pub chain: String,
    /// Store time as last stated.
    pub store_time: StoreTime,
    /// Clock doubt (F20).
    pub doubt: bool,
    /// This node's own clock against the store's.
    pub clock: ClockFacts,
    /// Version of the zone data.
    pub zone_version: String,
    /// Schedules that are alive.
    pub schedules: u64,
    /// Rows in quarantine.
    pub quarantined: u64,
}

/// Levels of a cell and its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelFacts {
    /// Of the cell.
    pub cell: Level,
    /// What this node knows.
    pub known: Level,
    /// What the store's node knows.
    pub of_store: Level,
    /// What each node on the board knows.
    pub nodes: Vec<(Name, Level)>,
}

/// A node as the API sees it.
pub trait Gateway: Send + Sync + 'static {
    /// How slots are cut into shards.
    fn shard_map(&self) -> ShardMap;
    /// Sends a request to a shard's owner. An answer means durable.
    fn call(&self, shard: ShardId, request: ShardRequest) -> Answer<ShardReply>;
    /// Store time as last stated: for delays that count from now.
    fn now(&self) -> StoreTime;
    /// 128 fresh bits of chance.
    fn draw(&self) -> u128;

    /// One job.
    fn job(&self, id: JobId) -> Answer<Option<JobView>>;
    /// The same once the job is finished or uncertain, at the latest after `timeout`.
    fn wait_job(&self, id: JobId, timeout: Span) -> Answer<Option<JobView>>;
    /// Jobs of a range after an id. At most `limit`, at most `SCAN_ROWS_MAX`; no filters (the API
    /// applies them to what was read, F35).
    fn jobs(&self, range: JobRange, after: Option<JobId>, limit: usize) -> Answer<Page<JobView, JobId>>;
    /// Ended attempts of a job after a number, oldest first. `None` where there is no such job.
    fn attempts(&self, id: JobId, after: u32, limit: usize) -> Answer<Option<Page<AttemptRecord, u32>>>;
    /// One schedule.
    fn schedule(&self, name: (Name, Name)) -> Answer<Option<ScheduleFacts>>;
    /// Schedules after (tenant, name) in key order (slot, tenant, name).
    fn schedules(&self, after: Option<(Name, Name)>, limit: usize) -> Answer<Page<ScheduleFacts, (Name, Name)>>;
    /// Fates in order of their end, the open span included as the last.
    fn fates(&self, query: FateQuery) -> Answer<Page<FateSpan, (StoreTime, StoreTime)>>;
    /// What was done to a schedule, oldest first, from a stored key on; all lives of the name when
    /// `incarnation` is `None`.
    fn edits(
        &self,
        name: (Name, Name),
        incarnation: Option<Incarnation>,
        from: Option<Vec<u8>>,
        limit: usize,
    ) -> Answer<Page<EditRow, Vec<u8>>>;
    /// Rows that could not be read or evaluated, over all shards, from a stored key on.
    fn quarantines(&self, from: Option<Vec<u8>>, limit: usize) -> Answer<Page<QuarantineRow, Vec<u8>>>;

    /// Where workers over HTTP claim jobs, if this node has such a place.
    fn desk(&self) -> Option<Arc<Desk>>;
    /// An operator says that the store's clock is right (F20). Whether it was in doubt.
    fn confirm_clock(&self) -> Answer<bool>;
    /// Levels of the cell and its nodes.
    fn level(&self) -> Answer<LevelFacts>;
    /// An operator ends an upgrade: the cell is raised to the level of this build.
    fn raise_level(&self) -> Answer<LevelFacts>;
    /// Whether the node is well.
    fn health(&self) -> Health;
    /// Facts about the store.
    fn facts(&self) -> Answer<NodeFacts>;
}
