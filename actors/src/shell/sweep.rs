//! Pages of a shard's job range for the LeaseManager's slow sweep.
//!
//! Owns: reading jobs with the rows that belong to them, corrected by the overlay. Must never: decide
//! what is old or wrong. Next: `window.rs`, `fencepost_core::lease_manager` (the sweep).

use crate::shell::fetch::{PageRead, SharedStore, read_all, read_page, read_rows};
use crate::shell::inbox::Waiting;
use crate::shell::overlay::FetchId;
use crate::shell::shard_actor::ShardActor;
use actix::Context;
use fencepost_core::ids::{JobId, ShardId};
use fencepost_core::job::Job;
use fencepost_core::lease_manager::io::{LeaseInput, SweptJob};
use fencepost_core::lease_manager::sweep_keys;
use fencepost_core::row::{Row, RowKey};
use fencepost_core::shard::ShardInput;
use fencepost_storage::keys::{KeyRange, key_bytes, parse_key};
use fencepost_storage::store::{Bytes, StoreError};
use std::collections::{BTreeMap, BTreeSet};

/// A page being read.
pub(crate) struct Swept {
    read: PageRead,
    rows: BTreeMap<RowKey, Option<Row>>,
    fetch: FetchId,
}

impl ShardActor {
    pub(crate) fn load_sweep(&mut self, from: Option<JobId>, limit: usize, ctx: &mut Context<ShardActor>) {
        let plan = &self.parts.plan;
        let shard = plan.shard;
        let whole = KeyRange::jobs(plan.map.slots_of(shard));
        let range = match from {
            Some(id) => whole.starting_at_row(&RowKey::Job(id)),
            None => whole,
        };
        let Some(open) = self.open.as_mut() else { return };
        let fetch = open.overlay.begin_fetch();
        let store = self.parts.store.clone();
        let reading = async move {
            let mut read = read_page(&store, range, limit).await?;
            let rows = read_related(&store, shard, &mut read).await?;
            Ok(Swept { read, rows, fetch })
        };
        let hand_in = |shard: &mut ShardActor, swept, ctx: &mut Context<ShardActor>| {
            shard.take_up_later(Waiting::Swept(Box::new(swept)), ctx);
        };
        self.read_aside(reading, hand_in, ctx);
    }

    pub(crate) fn on_swept(&mut self, mut swept: Swept, ctx: &mut Context<ShardActor>) {
        let unread: BTreeSet<Bytes> = swept.read.bad.iter().map(|row| row.key.clone()).collect();
        self.quarantine(std::mem::take(&mut swept.read.bad));
        let shard = self.parts.plan.shard;
        let Some(open) = self.open.as_mut() else { return };
        open.sync_overlay();
        let building = open.log.building();
        let mut rows = Vec::new();
        for (_, row) in swept.read.rows {
            let Some(read) = job_of(&row) else { continue };
            // A job that a stamped batch changed is met again in the next round.
            if open.overlay.lookup(building, &RowKey::Job(read.id)).is_some() {
                continue;
            }
            // A row that could not be read is not absent: what it says of the job is not known (F9).
            let keys = sweep_keys(shard, read);
            if keys.iter().any(|key| unread.contains(key_bytes(key).as_slice())) {
                continue;
            }
            let look = |key: RowKey| match open.overlay.lookup(building, &key) {
                Some(stamped) => stamped.cloned(),
                None => swept.rows.get(&key).cloned().flatten(),
            };
            let related = keys.into_iter().filter_map(look).collect();
            rows.push(SweptJob {
                job: read.clone(),
                rows: related,
            });
        }
        let next = swept.read.next.and_then(|key| match parse_key(&key) {
            Ok(RowKey::Job(id)) => Some(id),
            _ => None,
        });
        open.overlay.end_fetch(swept.fetch);
        self.step_now(ShardInput::Lease(LeaseInput::SweepPage { rows, next }), ctx);
    }
}

/// The rows of `sweep_keys` for the jobs of a page. Kinds that hardly a job has, and that lie by id, are read as
/// a range: most pages have none of them, and asking for each job alone was most of what a server at rest did.
async fn read_related(
    store: &SharedStore,
    shard: ShardId,
    read: &mut PageRead,
) -> Result<BTreeMap<RowKey, Option<Row>>, StoreError> {
    let jobs = || read.rows.iter().filter_map(|(_, row)| job_of(row));
    let Some((first, last)) = jobs().next().zip(jobs().next_back()) else {
        return Ok(BTreeMap::new());
    };
    let ranges = [RowKey::Leased, RowKey::Parked, RowKey::DeadLetter]
        .map(|name| KeyRange::up_to_row(&name(first.id), &name(last.id)));
    let lies_by_id = |key: &RowKey| matches!(key, RowKey::Leased(_) | RowKey::Parked(_) | RowKey::DeadLetter(_));
    let keys = jobs().flat_map(|job| sweep_keys(shard, job));
    let keys: Vec<RowKey> = keys.filter(|key| !lies_by_id(key)).collect();
    let (mut rows, bad) = read_rows(store, &keys).await?;
    read.bad.extend(bad);
    for range in ranges {
        let found = read_all(store, range, &mut read.bad).await?;
        rows.extend(found.into_iter().map(|row| (row.key(), Some(row))));
    }
    Ok(rows)
}

fn job_of(row: &Row) -> Option<&Job> {
    let Row::Job(job) = row else { return None };
    Some(job)
}
