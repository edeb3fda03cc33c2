//! Pages of the requests about a shard's schedules that were carried out, for the walk that drops old ones.
//!
//! Owns: reading their rows with the ends of their jobs, corrected by the overlay. Must never: decide which is
//! old. Next: `sweep.rs`, `fencepost_core::scheduler_shard` (requests).

use crate::shell::fetch::{PageRead, SharedStore, read_page, read_rows_within};
use crate::shell::inbox::Waiting;
use crate::shell::overlay::FetchId;
use crate::shell::shard_actor::ShardActor;
use actix::Context;
use fencepost_core::ids::JobId;
use fencepost_core::limits::SCAN_BYTES_MAX;
use fencepost_core::row::{Row, RowKey};
use fencepost_core::scheduler_shard::io::{Loaded, ScheduleInput, SweptRequest};
use fencepost_core::shard::ShardInput;
use fencepost_core::time::StoreTime;
use fencepost_storage::keys::{KeyRange, Kind, parse_key};
use fencepost_storage::store::StoreError;
use std::collections::BTreeMap;

/// A page being read.
pub(crate) struct RequestsRead {
    read: PageRead,
    /// Jobs that are stored, and those that could not be read: when they ended.
    ends: BTreeMap<JobId, Option<StoreTime>>,
    fetch: FetchId,
}

impl ShardActor {
    pub(crate) fn load_requests(&mut self, from: Option<RowKey>, limit: usize, ctx: &mut Context<ShardActor>) {
        let plan = &self.parts.plan;
        let whole = KeyRange::of_slots(Kind::Request, plan.map.slots_of(plan.shard));
        let range = match from {
            Some(key) => whole.starting_at_row(&key),
            None => whole,
        };
        let Some(open) = self.open.as_mut() else { return };
        let fetch = open.overlay.begin_fetch();
        let store = self.parts.store.clone();
        let reading = async move {
            let mut read = read_page(&store, range, limit).await?;
            let ends = read_ends(&store, &mut read).await?;
            Ok(RequestsRead { read, ends, fetch })
        };
        let hand_in = |shard: &mut ShardActor, read, ctx: &mut Context<ShardActor>| {
            shard.take_up_later(Waiting::Requests(Box::new(read)), ctx);
        };
        self.read_aside(reading, hand_in, ctx);
    }

    pub(crate) fn on_requests(&mut self, mut read: RequestsRead, ctx: &mut Context<ShardActor>) {
        self.quarantine(std::mem::take(&mut read.read.bad));
        let Some(open) = self.open.as_mut() else { return };
        open.sync_overlay();
        let building = open.log.building();
        let mut requests = Vec::new();
        for (_, row) in read.read.rows {
            let key = row.key();
            // One that a stamped batch changed is met again in the next round.
            let Some(row) = row
                .into_request()
                .filter(|_| open.overlay.lookup(building, &key).is_none())
            else {
                continue;
            };
            let end = |id: &JobId| match open.overlay.lookup(building, &RowKey::Job(*id)) {
                Some(stamped) => stamped.and_then(ended_at),
                None => read.ends.get(id).copied(),
            };
            let ends = row.jobs.iter().filter_map(end).collect();
            requests.push(SweptRequest { row: *row, ends });
        }
        let next = read.read.next.and_then(|key| parse_key(&key).ok());
        open.overlay.end_fetch(read.fetch);
        self.step_now(
            ShardInput::Schedule(ScheduleInput::Loaded(Loaded::Requests { requests, next })),
            ctx,
        );
    }
}

/// Of a page's jobs only this is held, however large they are.
async fn read_ends(store: &SharedStore, read: &mut PageRead) -> Result<BTreeMap<JobId, Option<StoreTime>>, StoreError> {
    let rows = read.rows.iter().map(|(_, row)| row);
    let ids = rows.flat_map(|row| match row {
        Row::Request(row) => row.jobs.clone(),
        _ => Vec::new(),
    });
    let ids: Vec<JobId> = ids.collect();
    let keys: Vec<RowKey> = ids.iter().copied().map(RowKey::Job).collect();
    let (mut ends, mut at) = (BTreeMap::new(), 0);
    while let Some(rest) = keys.get(at..).filter(|rest| !rest.is_empty()) {
        let part = read_rows_within(store, rest, SCAN_BYTES_MAX).await?;
        at += part.count;
        ends.extend(part.rows.values().filter_map(|row| {
            let Row::Job(job) = row.as_ref()? else { return None };
            Some((job.id, job.ended_at))
        }));
        // Unreadable is not absent: it has not ended.
        ends.extend(part.bad.iter().filter_map(|row| match parse_key(&row.key) {
            Ok(RowKey::Job(id)) => Some((id, None)),
            _ => None,
        }));
        read.bad.extend(part.bad);
    }
    Ok(ends)
}

fn ended_at(row: &Row) -> Option<Option<StoreTime>> {
    let Row::Job(job) = row else { return None };
    Some(job.ended_at)
}
