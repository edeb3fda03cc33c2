//! Reads for the API: rows as the store shows them, synced and no other (PROTOCOL F35).
//!
//! Owns: views of jobs, schedules and fates. Must never: feed a decision of a machine. Next:
//! `gateway.rs`.

use crate::desk::Desk;
use crate::gateway::{
    Answer, FateQuery, Gateway, Health, JobRange, JobView, LevelFacts, NodeFacts, Page, ScheduleFacts, ShardReply,
    ShardRequest,
};
use crate::node::gateway::NodeGateway;
use crate::shell::fetch::{BadRow, SharedStore, read_all, read_page, read_rows, read_rows_within};
use crate::targets::running::Running;
use fencepost_core::fate::FateSpan;
use fencepost_core::ids::{Incarnation, JobId, ShardId, ShardMap, Slot};
use fencepost_core::job::{AttemptRecord, JobState};
use fencepost_core::limits;
use fencepost_core::limits::WAIT_LOOK_PAUSE_MS;
use fencepost_core::name::Name;
use fencepost_core::refusal::{Refusal, RefusalKind};
use fencepost_core::row::{AttemptsRow, LeasedRow, QuarantineRow, Row, RowKey};
use fencepost_core::schedule::{CursorRow, EditRow, ScheduleDefinition};
use fencepost_core::scheduler_shard::marks::{is_mark, quarantine_key};
use fencepost_core::scheduler_shard::view_of;
use fencepost_core::time::{Span, StoreTime};
use fencepost_storage::keys::{KeyRange, Kind, key_bytes};
use fencepost_storage::store::StoreError;
use std::sync::Arc;

/// A page of a range, from a stored key on.
async fn read_from<T>(
    store: &SharedStore,
    range: KeyRange,
    from: Option<Vec<u8>>,
    limit: usize,
    take: impl Fn(Row) -> Option<T>,
) -> Result<Page<T, Vec<u8>>, Refusal> {
    let range = match from {
        Some(from) => range.starting_at(&from),
        None => range,
    };
    let page = read_page(store, range, limit.min(limits::SCAN_ROWS_MAX))
        .await
        .map_err(away)?;
    Ok(Page {
        items: page.rows.into_iter().filter_map(|(_, row)| take(row)).collect(),
        next: page.next,
    })
}

/// Pause between two looks at a job that another node runs.
const LOOK_PAUSE: Span = Span::from_millis(WAIT_LOOK_PAUSE_MS);

impl NodeGateway {
    /// Nobody tells of what happens on another node: the row is read again and again.
    fn wait_elsewhere(&self, id: JobId, timeout: Span) -> Answer<Option<JobView>> {
        let (store, clock, running) = (self.store.clone(), self.clock.clone(), self.running.clone());
        let until = clock.mono() + timeout;
        Box::pin(async move {
            loop {
                let view = read_views(&store, &running, &mut vec![id]).await?.into_iter().next();
                if view.as_ref().is_none_or(has_ended) || clock.mono() >= until {
                    return Ok(view);
                }
                clock.sleep(LOOK_PAUSE.min(until.since(clock.mono()))).await;
            }
        })
    }
}

fn has_ended(view: &JobView) -> bool {
    view.job.state.is_finished() || view.job.state == JobState::Uncertain
}

impl Gateway for NodeGateway {
    fn shard_map(&self) -> ShardMap {
        self.map
    }

    fn call(&self, shard: ShardId, request: ShardRequest) -> Answer<ShardReply> {
        self.call_shard(shard, request)
    }

    fn now(&self) -> StoreTime {
        self.stated().time
    }

    fn draw(&self) -> u128 {
        self.draw_128()
    }

    fn desk(&self) -> Option<Arc<Desk>> {
        self.desk.clone()
    }

    fn job(&self, id: JobId) -> Answer<Option<JobView>> {
        let (store, running) = (self.store.clone(), self.running.clone());
        Box::pin(async move { Ok(read_views(&store, &running, &mut vec![id]).await?.into_iter().next()) })
    }

    fn wait_job(&self, id: JobId, timeout: Span) -> Answer<Option<JobView>> {
        let (store, running) = (self.store.clone(), self.running.clone());
        let waiters = self.waiters.clone();
        if !self.is_here(self.map.shard_of(id.slot())) {
            return self.wait_elsewhere(id, timeout);
        }
        let told = waiters.wait(id);
        let limit = self.clock.sleep(timeout);
        Box::pin(async move {
            let before = read_views(&store, &running, &mut vec![id]).await?.into_iter().next();
            if before.as_ref().is_none_or(has_ended) {
                waiters.forget(id);
                return Ok(before);
            }
            futures_util::future::select(told, limit).await;
            waiters.forget(id);
            Ok(read_views(&store, &running, &mut vec![id]).await?.into_iter().next())
        })
    }

    fn jobs(&self, range: JobRange, after: Option<JobId>, limit: usize) -> Answer<Page<JobView, JobId>> {
        let (store, running) = (self.store.clone(), self.running.clone());
        Box::pin(async move { read_job_page((&store, &running), range, after, limit.min(limits::SCAN_ROWS_MAX)).await })
    }

    fn attempts(&self, id: JobId, after: u32, limit: usize) -> Answer<Option<Page<AttemptRecord, u32>>> {
        let store = self.store.clone();
        Box::pin(async move { read_attempts(&store, id, after, limit).await })
    }

    fn schedule(&self, name: (Name, Name)) -> Answer<Option<ScheduleFacts>> {
        let (store, map) = (self.store.clone(), self.map);
        Box::pin(async move {
            let slot = Slot::of_schedule(&name.0, &name.1);
            let key = RowKey::Cursor(slot, name.0.clone(), name.1.clone());
            match read_one(&store, key).await?.and_then(Row::into_cursor) {
                Some(cursor) => match read_schedule(&store, map, *cursor).await? {
                    Some(facts) => Ok(Some(facts)),
                    None => Err(no_definition()),
                },
                None => Ok(None),
            }
        })
    }

    fn schedules(&self, after: Option<(Name, Name)>, limit: usize) -> Answer<Page<ScheduleFacts, (Name, Name)>> {
        let (store, map) = (self.store.clone(), self.map);
        Box::pin(async move {
            let whole = KeyRange::cursors(all_slots());
            let range = match &after {
                Some((tenant, name)) => {
                    let slot = Slot::of_schedule(tenant, name);
                    whole.after(&key_bytes(&RowKey::Cursor(slot, tenant.clone(), name.clone())))
                }
                None => whole,
            };
            let page = read_page(&store, range, limit.min(limits::SCAN_ROWS_MAX))
                .await
                .map_err(away)?;
            let mut items = Vec::with_capacity(page.rows.len());
            let (mut last, mut bytes, mut goes_on) = (None, 0, page.next.is_some());
            for (_, row) in page.rows {
                let Row::Cursor(cursor) = row else { continue };
                if bytes >= limits::BODY_BYTES_MAX {
                    goes_on = true;
                    break;
                }
                last = Some((cursor.tenant.clone(), cursor.name.clone()));
                let found = read_schedule(&store, map, *cursor).await?;
                bytes += found
                    .as_ref()
                    .map_or(0, |facts| facts.view.definition.spec.job.weight());
                items.extend(found);
            }
            Ok(Page {
                items,
                next: last.filter(|_| goes_on),
            })
        })
    }

    fn fates(&self, query: FateQuery) -> Answer<Page<FateSpan, (StoreTime, StoreTime)>> {
        let store = self.store.clone();
        Box::pin(async move { read_fates(&store, query).await })
    }

    fn edits(
        &self,
        name: (Name, Name),
        incarnation: Option<Incarnation>,
        from: Option<Vec<u8>>,
        limit: usize,
    ) -> Answer<Page<EditRow, Vec<u8>>> {
        let range = match &incarnation {
            Some(life) => KeyRange::of_life(Kind::Edit, &name.0, &name.1, life),
            None => KeyRange::of_schedule(Kind::Edit, &name.0, &name.1),
        };
        let edit = |row: Row| row.into_edit().map(|edit| *edit);
        let store = self.store.clone();
        Box::pin(async move { read_from(&store, range, from, limit, edit).await })
    }

    fn quarantines(&self, from: Option<Vec<u8>>, limit: usize) -> Answer<Page<QuarantineRow, Vec<u8>>> {
        let quarantine = |row: Row| row.into_quarantine().map(|row| *row).filter(|row| !is_mark(row));
        let store = self.store.clone();
        Box::pin(async move { read_from(&store, KeyRange::kind(Kind::Quarantine), from, limit, quarantine).await })
    }

    fn confirm_clock(&self) -> Answer<bool> {
        let confirming = self.store.confirm_clock();
        let looking = self.look_at_clock();
        Box::pin(async move {
            let was_in_doubt = confirming.await.map_err(away)?;
            looking.await;
            Ok(was_in_doubt)
        })
    }

    fn level(&self) -> Answer<LevelFacts> {
        self.read_level()
    }

    fn raise_level(&self) -> Answer<LevelFacts> {
        NodeGateway::raise_level(self)
    }

    fn health(&self) -> Health {
        let reasons = self.why_not_ready();
        Health {
            live: true,
            ready: reasons.is_empty(),
            draining: self.is_draining(),
            reasons,
        }
    }

    fn facts(&self) -> Answer<NodeFacts> {
        let stated = self.stated();
        let schedules = self.last_probes().iter().map(|probe| probe.schedules).sum();
        let quarantined = self.quarantines(None, limits::PAGE_ITEMS_MAX);
        let store = self.store.describe();
        let facts = NodeFacts {
            cell: self.cell,
            generation: self.generation,
            level: self.level.get(),
            shards: self.map.count(),
            engine: store.engine,
            folder: store.folder,
            high_water: store.high_water,
            chain: store.chain,
            store_time: stated.time,
            doubt: stated.doubt,
            clock: self.trust.facts(),
            zone_version: fencepost_core::zone::ZoneVersion::bundled().as_str().to_owned(),
            schedules,
            quarantined: 0,
        };
        Box::pin(async move {
            Ok(NodeFacts {
                quarantined: quarantined.await?.items.len() as u64,
                ..facts
            })
        })
    }
}

async fn read_job_page(
    (store, running): (&SharedStore, &Running),
    range: JobRange,
    after: Option<JobId>,
    limit: usize,
) -> Result<Page<JobView, JobId>, Refusal> {
    let (whole, key): (KeyRange, fn(JobId) -> RowKey) = match range {
        JobRange::All => (KeyRange::jobs(all_slots()), RowKey::Job),
        JobRange::Slot(slot) => {
            let first = u32::from(slot.number());
            (KeyRange::jobs((first, first + 1)), RowKey::Job)
        }
        JobRange::Dead => (KeyRange::dead_letters(all_slots()), RowKey::DeadLetter),
        JobRange::Uncertain => (KeyRange::parked(all_slots()), RowKey::Parked),
    };
    let range = match after {
        Some(id) => whole.after(&key_bytes(&key(id))),
        None => whole,
    };
    let page = read_page(store, range, limit).await.map_err(away)?;
    let mut ids: Vec<JobId> = page.rows.iter().filter_map(|(_, row)| id_of(row)).collect();
    drop(page.rows);
    let found = ids.len();
    let items = read_views(store, running, &mut ids).await?;
    let goes_on = page.next.is_some() || ids.len() < found;
    Ok(Page {
        items,
        next: ids.last().copied().filter(|_| goes_on),
    })
}

/// The job's row first: a record that moves to a page meanwhile is in both and shown once.
async fn read_attempts(
    store: &SharedStore,
    id: JobId,
    after: u32,
    limit: usize,
) -> Result<Option<Page<AttemptRecord, u32>>, Refusal> {
    let Some(Row::Job(job)) = read_one(store, RowKey::Job(id)).await? else {
        return Ok(None);
    };
    let range = KeyRange::attempts(id, AttemptsRow::page_of(after.saturating_add(1)));
    let pages = limit.div_ceil(limits::ATTEMPT_PAGE_RECORDS as usize) + 1;
    let page = read_page(store, range, pages.min(limits::SCAN_ROWS_MAX))
        .await
        .map_err(away)?;
    let pages = page.rows.into_iter().filter_map(|(_, row)| row.into_attempts());
    let older = pages.flat_map(|row| row.records);
    let mut items: Vec<AttemptRecord> = older.filter(|record| record.no > after).collect();
    if page.next.is_none() {
        let newest = items.last().map_or(after, |record| record.no);
        items.extend(job.attempts.into_iter().filter(|record| record.no > newest));
    }
    let is_cut = items.len() > limit || page.next.is_some();
    items.truncate(limit);
    let next = items.last().filter(|_| is_cut).map(|record| record.no);
    Ok(Some(Page { items, next }))
}

fn id_of(row: &Row) -> Option<JobId> {
    match row {
        Row::Job(job) => Some(job.id),
        Row::DeadLetter(row) => Some(row.id),
        Row::Parked(row) => Some(row.id),
        Row::Cell(_)
        | Row::Assignment(_)
        | Row::Definition(_)
        | Row::Cursor(_)
        | Row::Backlog(_)
        | Row::Fate(_)
        | Row::Edit(_)
        | Row::Wait(_)
        | Row::Ready(_)
        | Row::Leased(_)
        | Row::Key(_)
        | Row::Attempts(_)
        | Row::Mark(_)
        | Row::Quarantine(_)
        | Row::Request(_) => None,
    }
}

/// Jobs as read, the first of these ids: as many as have `SCAN_BYTES_MAX` bytes; the ids are cut to them.
async fn read_views(store: &SharedStore, running: &Running, ids: &mut Vec<JobId>) -> Result<Vec<JobView>, Refusal> {
    // Both rows of a job as of one moment; the small one first, so that the bound falls between jobs.
    let both = |id: &JobId| [RowKey::Leased(*id), RowKey::Job(*id)];
    let keys: Vec<RowKey> = ids.iter().flat_map(both).collect();
    let read = read_rows_within(store, &keys, limits::SCAN_BYTES_MAX)
        .await
        .map_err(away)?;
    ids.truncate(read.count / 2);
    let mut rows = read.rows;
    let mut views = Vec::with_capacity(ids.len());
    for id in ids.iter().copied() {
        let Some(Row::Job(job)) = rows.remove(&RowKey::Job(id)).flatten() else {
            continue;
        };
        let leased = rows.remove(&RowKey::Leased(id)).flatten().and_then(Row::into_leased);
        let leased: Option<Arc<LeasedRow>> = leased.map(Arc::from);
        let progress = leased.as_ref().and_then(|leased| running.progress(id, leased.token));
        views.push(JobView {
            job: Arc::from(job),
            leased,
            progress,
        });
    }
    Ok(views)
}

/// A schedule; one in quarantine is shown with the reason, by its newest definition that can be read.
async fn read_schedule(
    store: &SharedStore,
    map: ShardMap,
    cursor: CursorRow,
) -> Result<Option<ScheduleFacts>, Refusal> {
    let slot = Slot::of_schedule(&cursor.tenant, &cursor.name);
    let key = RowKey::Definition(
        slot,
        cursor.tenant.clone(),
        cursor.name.clone(),
        cursor.incarnation,
        cursor.definition,
    );
    let aside = quarantine_key(map.shard_of(slot), &cursor.tenant, &cursor.name, cursor.definition);
    let (mut rows, mut bad) = read_rows(store, &[key.clone(), aside.clone()]).await.map_err(away)?;
    let aside = rows.remove(&aside).flatten().and_then(Row::into_quarantine);
    let reason = aside.filter(|row| !is_mark(row)).map(|row| row.reason);
    let (definition, reason) = match rows.remove(&key).flatten().and_then(Row::into_definition) {
        Some(definition) => (definition, reason),
        None => {
            let Some(definition) = newest_definition(store, &cursor).await? else {
                return Ok(None);
            };
            let missing = || Arc::from("its definition cannot be read");
            (definition, Some(reason.unwrap_or_else(missing)))
        }
    };
    let range = KeyRange::of_life(Kind::Backlog, &cursor.tenant, &cursor.name, &cursor.incarnation);
    let rows = read_all(store, range, &mut bad).await.map_err(away)?;
    let backlogs = rows.into_iter().filter_map(Row::into_backlog).map(|row| *row);
    Ok(Some(ScheduleFacts {
        backlogs: backlogs.collect(),
        view: view_of(*definition, cursor, reason),
    }))
}

async fn newest_definition(
    store: &SharedStore,
    cursor: &CursorRow,
) -> Result<Option<Box<ScheduleDefinition>>, Refusal> {
    let range = KeyRange::of_life(Kind::Definition, &cursor.tenant, &cursor.name, &cursor.incarnation);
    let rows = read_all(store, range, &mut Vec::new()).await.map_err(away)?;
    Ok(rows.into_iter().filter_map(Row::into_definition).last())
}

async fn read_fates(store: &SharedStore, query: FateQuery) -> Result<Page<FateSpan, (StoreTime, StoreTime)>, Refusal> {
    let (tenant, name) = &query.name;
    let key = RowKey::Cursor(Slot::of_schedule(tenant, name), tenant.clone(), name.clone());
    let cursor = read_one(store, key).await?.and_then(Row::into_cursor);
    let Some(life) = query.incarnation.or(cursor.as_ref().map(|cursor| cursor.incarnation)) else {
        return Ok(Page {
            items: Vec::new(),
            next: None,
        });
    };
    let whole = KeyRange::of_life(Kind::Fate, tenant, name, &life);
    let start = query.from.map_or(whole.clone(), |from| {
        KeyRange::fates_between(tenant, name, &life, from, StoreTime::MAX)
    });
    let range = match query.after {
        Some((to, from)) => {
            let key = RowKey::Fate(
                Slot::of_schedule(tenant, name),
                tenant.clone(),
                name.clone(),
                life,
                to,
                from,
            );
            start.after(&key_bytes(&key))
        }
        None => start,
    };
    let page = read_page(store, range, query.limit.min(limits::SCAN_ROWS_MAX))
        .await
        .map_err(away)?;
    let begins_in_time = |span: &FateSpan| query.to.is_none_or(|to| span.from < to);
    let closed = page.rows.into_iter().filter_map(|(_, row)| row.into_fate());
    let closed = closed.map(|row| row.span);
    let mut items: Vec<FateSpan> = closed.filter(begins_in_time).collect();
    let next = page.next.and(items.last().map(|span| (span.to, span.from)));
    let open = cursor
        .filter(|cursor| cursor.incarnation == life)
        .and_then(|cursor| cursor.open);
    if next.is_none() {
        items.extend(open.filter(|span| begins_in_time(span) && query.from.is_none_or(|from| span.to > from)));
    }
    Ok(Page { items, next })
}

async fn read_one(store: &SharedStore, key: RowKey) -> Result<Option<Row>, Refusal> {
    let (mut rows, bad) = read_rows(store, std::slice::from_ref(&key)).await.map_err(away)?;
    match bad.into_iter().next() {
        Some(row) => Err(unreadable(&row)),
        None => Ok(rows.remove(&key).flatten()),
    }
}

fn all_slots() -> (u32, u32) {
    (0, limits::SLOT_COUNT)
}

fn away(error: StoreError) -> Refusal {
    Refusal::new(
        RefusalKind::Unavailable,
        "store_unavailable",
        error.to_string(),
        "try again in a moment",
    )
}

/// No version of the definition can be read: nothing to show, and an edit or a delete still works.
fn no_definition() -> Refusal {
    Refusal::new(
        RefusalKind::Unavailable,
        "row_unreadable",
        "no version of the schedule's definition can be read; it is in quarantine",
        "edit the schedule to replace its definition, or delete it; see the quarantine list",
    )
}

fn unreadable(row: &BadRow) -> Refusal {
    let detail = format!("the row that says so cannot be read: {}", row.reason);
    Refusal::new(
        RefusalKind::Unavailable,
        "row_unreadable",
        detail,
        "see the quarantine list and the log",
    )
}
