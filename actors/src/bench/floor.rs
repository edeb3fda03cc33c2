//! The floor: what the same disk and engine allow to a bare group-commit loop with comparable rows.
//!
//! Owns: rows of the same kinds and sizes as the product's, and the loops over them. Targets are ratios to
//! these figures in one run, since disks swing tenfold. Next: `beside.rs`,
//! `fencepost_storage::fjall_store::Floor`.

use crate::bench::disk::{SYNC_UNIT, sync_rate};
use crate::bench::figure::{Figure, per_second};
use crate::bench::{BenchOptions, rig};
use crate::chance::{SystemChance, draw_job_id, draw_u64};
use crate::clock::{Clock, SystemClock};
use fencepost_core::ids::{Epoch, JobId, ShardId, Token, WorkerId};
use fencepost_core::job::{Job, JobSpec, Origin};
use fencepost_core::name::Name;
use fencepost_core::row::{LeasedRow, ReadyRow, Row, RowKey};
use fencepost_core::time::{Span, StoreTime};
use fencepost_storage::codec::encode_row;
use fencepost_storage::fjall_store::{Floor, FloorWrite};
use fencepost_storage::keys::key_bytes;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const BATCH: usize = 1_000;
const SINGLES: usize = 64;
/// Jobs of one measurement; a rate needs no more.
const JOBS_MAX: usize = 200_000;
/// Stretches without and with the mark that take turns.
const TURNS: usize = 6;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Creation, 1,000 jobs a sync.
    Batches,
    /// Creation, 64 jobs a sync: as many as there are clients.
    Singles,
    /// Claim and end of stored jobs, 1,000 a sync, both stored.
    Drain,
    /// Creation and drain where the job lies in the due index and the claim is kept in memory: what a
    /// leaner layout would allow.
    LeanDrain,
}

/// Every figure of the floor, with the disk's own.
pub fn run(options: &BenchOptions) -> Result<Vec<Figure>, String> {
    let figure = |name, value| Figure::new("floor", name, value, "jobs/s");
    let cost = |name, value| Figure::new("floor", name, value, "% of the rate");
    Ok(vec![
        Figure::new("floor", "sync", sync_rate(options)?, SYNC_UNIT),
        figure("create-batch", rate_of(options, Kind::Batches)?),
        figure("create-single", rate_of(options, Kind::Singles)?),
        figure("drain", rate_of(options, Kind::Drain)?),
        figure("drain-lean", rate_of(options, Kind::LeanDrain)?),
        cost("mark-cost-batch", mark_cost(options, BATCH)?),
        cost("mark-cost-single", mark_cost(options, SINGLES)?),
    ])
}

/// Jobs per second of one kind, in a new database that is removed again.
pub fn rate_of(options: &BenchOptions, kind: Kind) -> Result<f64, String> {
    let bare = Bare::open(options)?;
    match kind {
        Kind::Batches => bare.create(bare.jobs(options.jobs), BATCH),
        Kind::Singles => bare.create(bare.jobs(options.jobs / 4), SINGLES),
        Kind::Drain => bare.drain(&bare.jobs(options.jobs), created, &[granted, ended]),
        Kind::LeanDrain => bare.drain(&bare.jobs(options.jobs), lean_created, &[lean_ended]),
    }
}

/// A bare database in a folder of its own.
struct Bare {
    floor: Option<Floor>,
    folder: PathBuf,
    clock: SystemClock,
    spec: Arc<JobSpec>,
}

/// Appends what one job writes.
type RowsOf = fn(&Job, &mut Vec<FloorWrite>);

impl Bare {
    fn open(options: &BenchOptions) -> Result<Bare, String> {
        let folder = options.folder.join(format!("floor-{:016x}", draw_u64(&SystemChance)));
        let name = |text| Name::new(text).map_err(|error| error.to_string());
        Ok(Bare {
            floor: Some(Floor::open(&folder)?),
            folder,
            clock: SystemClock::new(),
            spec: Arc::new(rig::noop_spec(&name("default")?, name("noop")?)),
        })
    }

    fn floor(&self) -> Result<&Floor, String> {
        self.floor.as_ref().ok_or_else(|| "the floor is closed".to_owned())
    }

    fn jobs(&self, count: usize) -> Vec<Job> {
        (0..count.clamp(1, JOBS_MAX)).map(|_| job(&self.spec)).collect()
    }

    fn create(&self, jobs: Vec<Job>, at_once: usize) -> Result<f64, String> {
        let began = self.clock.mono();
        for part in jobs.chunks(at_once) {
            self.floor()?.commit(&rows(part, created))?;
        }
        Ok(per_second(jobs.len(), self.since(began)))
    }

    fn drain(&self, jobs: &[Job], create: RowsOf, steps: &[RowsOf]) -> Result<f64, String> {
        for part in jobs.chunks(BATCH) {
            self.floor()?.commit(&rows(part, create))?;
        }
        let began = self.clock.mono();
        for part in jobs.chunks(BATCH) {
            for step in steps {
                self.floor()?.commit(&rows(part, *step))?;
            }
        }
        Ok(per_second(jobs.len(), self.since(began)))
    }

    fn since(&self, began: fencepost_core::time::Monotonic) -> Duration {
        self.clock.mono().since(began).to_std()
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        self.floor = None;
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// How much of the rate the high-water mark takes, in percent: creation with and without it, in turns.
fn mark_cost(options: &BenchOptions, at_once: usize) -> Result<f64, String> {
    let mut bare = Bare::open(options)?;
    let share = if at_once == BATCH {
        options.jobs
    } else {
        options.jobs / 4
    };
    let jobs = bare.jobs(share.div_ceil(TURNS));
    let mut took = [Duration::ZERO; 2];
    for turn in 0..TURNS {
        let began = bare.clock.mono();
        for part in jobs.chunks(at_once) {
            let writes = rows(part, created);
            match (turn % 2, &mut bare.floor) {
                (0, Some(floor)) => floor.commit(&writes)?,
                (_, Some(floor)) => floor.commit_marked(&writes)?,
                (_, None) => {}
            }
        }
        let spent = bare.since(began);
        if let Some(took) = took.get_mut(turn % 2) {
            *took += spent;
        }
    }
    let [plain, marked] = took.map(|took| took.as_secs_f64());
    Ok((1.0 - plain / marked.max(1e-6)) * 100.0)
}

fn rows(jobs: &[Job], of: RowsOf) -> Vec<FloorWrite> {
    let mut writes = Vec::with_capacity(2 * jobs.len());
    jobs.iter().for_each(|job| of(job, &mut writes));
    writes
}

fn job(spec: &Arc<JobSpec>) -> Job {
    let at = StoreTime::from_secs(1_800_000_000);
    let origin = Origin::Request { key: None };
    Job::due_at_once(draw_job_id(&SystemChance, None), spec.clone(), origin, at)
}

fn put(row: &Row) -> FloorWrite {
    (key_bytes(&row.key()), Some(value_of(row)))
}

fn value_of(row: &Row) -> Vec<u8> {
    let mut value = Vec::new();
    encode_row(row, &mut value);
    value
}

fn job_row(job: &Job) -> Row {
    Row::Job(Box::new(job.clone()))
}

fn ready_key(job: &Job) -> Vec<u8> {
    key_bytes(&RowKey::Ready(ready(job)))
}

fn ready(job: &Job) -> ReadyRow {
    ReadyRow::of(ShardId(0), job, job.due_at)
}

fn created(job: &Job, writes: &mut Vec<FloorWrite>) {
    writes.extend([put(&job_row(job)), put(&Row::Ready(ready(job)))]);
}

fn granted(job: &Job, writes: &mut Vec<FloorWrite>) {
    writes.extend([(ready_key(job), None), put(&Row::Leased(Box::new(lease(job.id))))]);
}

fn ended(job: &Job, writes: &mut Vec<FloorWrite>) {
    writes.extend([(key_bytes(&RowKey::Leased(job.id)), None), put(&job_row(job))]);
}

fn lean_created(job: &Job, writes: &mut Vec<FloorWrite>) {
    writes.push((ready_key(job), Some(value_of(&job_row(job)))));
}

fn lean_ended(job: &Job, writes: &mut Vec<FloorWrite>) {
    writes.extend([(ready_key(job), None), put(&job_row(job))]);
}

fn lease(id: JobId) -> LeasedRow {
    let node = Name::new("bench").expect("a name");
    LeasedRow {
        id,
        job_version: 1,
        attempt: 1,
        token: Token::default(),
        worker: WorkerId { node, boot: 1 },
        granted_at: StoreTime::from_secs(1_800_000_000),
        length: Span::from_secs(30),
        begun: false,
        seen: Epoch(1),
        unseen_starts: 0,
        order: StoreTime::from_secs(1_800_000_000),
    }
}
