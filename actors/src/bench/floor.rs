//! The floor: what the same disk and engine allow to a bare group-commit loop with comparable rows.
//!
//! Owns: rows of the same kinds and sizes as the product's. Targets are ratios to these figures in one
//! run, since disks swing tenfold. Next: `fencepost_storage::fjall_store::Floor`.

use crate::bench::{BenchOptions, Figure};
use crate::chance::{SystemChance, draw_job_id, draw_u64};
use crate::clock::{Clock, SystemClock};
use fencepost_core::ids::{Epoch, JobId, ShardId, Token, WorkerId};
use fencepost_core::job::{Job, JobSpec, JobState, Origin, Place};
use fencepost_core::name::Name;
use fencepost_core::row::{LeasedRow, ReadyRow, Row, RowKey};
use fencepost_core::time::{Span, StoreTime};
use fencepost_storage::codec::encode_row;
use fencepost_storage::fjall_store::{Floor, FloorWrite};
use fencepost_storage::keys::key_bytes;
use std::sync::Arc;

const BATCH: usize = 1_000;
const SINGLES: usize = 64;

pub fn run(options: &BenchOptions) -> Result<Vec<Figure>, String> {
    let folder = options.folder.join(format!("floor-{:016x}", draw_u64(&SystemChance)));
    let clock = SystemClock::new();
    let floor = Floor::open(&folder)?;
    let name = |text| Name::new(text).map_err(|error| error.to_string());
    let spec = Arc::new(crate::bench::rig::noop_spec(&name("default")?, name("noop")?));
    let jobs: Vec<Job> = (0..options.jobs).map(|_| job(&spec)).collect();
    let mut figures = Vec::new();
    let began = clock.mono();
    for part in jobs.chunks(BATCH) {
        floor.commit(&part.iter().flat_map(created).collect::<Vec<_>>())?;
    }
    figures.push(figure("create-batch", jobs.len(), clock.mono().since(began)));
    let began = clock.mono();
    for part in jobs.chunks(BATCH) {
        floor.commit(&part.iter().flat_map(granted).collect::<Vec<_>>())?;
        floor.commit(&part.iter().flat_map(ended).collect::<Vec<_>>())?;
    }
    figures.push(figure("drain", jobs.len(), clock.mono().since(began)));
    let few: Vec<Job> = (0..options.jobs / 4).map(|_| job(&spec)).collect();
    let began = clock.mono();
    for part in few.chunks(SINGLES) {
        floor.commit(&part.iter().flat_map(created).collect::<Vec<_>>())?;
    }
    figures.push(figure("create-single", few.len(), clock.mono().since(began)));
    drop(floor);
    let _ = std::fs::remove_dir_all(folder);
    Ok(figures)
}

fn figure(name: &'static str, count: usize, took: Span) -> Figure {
    Figure {
        bench: "floor",
        name,
        value: count as f64 / took.to_std().as_secs_f64(),
        unit: "jobs/s",
    }
}

fn job(spec: &Arc<JobSpec>) -> Job {
    let at = StoreTime::from_secs(1_800_000_000);
    Job {
        id: draw_job_id(&SystemChance, None),
        version: 1,
        spec: spec.clone(),
        origin: Origin::Request { key: None },
        created_at: at,
        due_at: at,
        state: JobState::Ready,
        reason: None,
        place: Place::Ready { order: at },
        charged: 0,
        refunded: 0,
        attempt_next: 1,
        attempts: Vec::new(),
        cancel_requested_at: None,
        ended_at: None,
    }
}

fn put(row: &Row) -> FloorWrite {
    let mut value = Vec::new();
    encode_row(row, &mut value);
    (key_bytes(&row.key()), Some(value))
}

fn ready(job: &Job) -> ReadyRow {
    ReadyRow::of(ShardId(0), job, job.due_at)
}

fn created(job: &Job) -> [FloorWrite; 2] {
    [put(&Row::Job(Box::new(job.clone()))), put(&Row::Ready(ready(job)))]
}

fn granted(job: &Job) -> [FloorWrite; 2] {
    [
        (key_bytes(&RowKey::Ready(ready(job))), None),
        put(&Row::Leased(Box::new(lease(job.id)))),
    ]
}

fn ended(job: &Job) -> [FloorWrite; 2] {
    [
        (key_bytes(&RowKey::Leased(job.id)), None),
        put(&Row::Job(Box::new(job.clone()))),
    ]
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
