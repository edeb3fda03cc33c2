//! Opening a shard: own its scope, then read everything its machines need to start.
//!
//! Owns: the order open, then read (what an open holder reads is at least as durable as the open,
//! PROTOCOL F5). Must never: decide. Next: `shard_actor.rs`.

#[cfg(madsim)]
use crate::planted::{self, Bug};
use crate::shell::fetch::{BadRow, SharedStore, read_all, read_jobs, read_last, read_page, read_rows};
use fencepost_core::ids::{BatchNo, Epoch, Generation, Holder, Incarnation, JobId, Scope, ShardId, ShardMap, WorkerId};
use fencepost_core::job::Job;
use fencepost_core::lease_manager::io::LeaseOpened;
use fencepost_core::level::Level;
use fencepost_core::limits::{CLASS_PAGE_ROWS, SCAN_BYTES_MAX, SCAN_ROWS_MAX};
use fencepost_core::machine::Write;
use fencepost_core::name::Name;
use fencepost_core::row::{LeasedRow, MarkRow, QuarantineRow, Row, RowKey};
use fencepost_core::scheduler_shard::io::{LostCursor, ScheduleOpened};
use fencepost_core::scheduler_shard::marks::{leave_marks, read_marks};
use fencepost_core::shard::ShardOpened;
use fencepost_core::time::StoreTime;
use fencepost_storage::codec::encode_batch;
use fencepost_storage::keys::{KeyRange, Kind, key_bytes, parse_key};
use fencepost_storage::store::{Commit, Committed, KeyValue, Open, OpenError, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Of a schedule: tenant, name, and which life of the name.
type Life<'a> = (&'a Name, &'a Name, &'a Incarnation);

/// Who opens what.
#[derive(Clone, Debug)]
pub struct OpenPlan {
    /// Which shard.
    pub shard: ShardId,
    /// The cell's map.
    pub map: ShardMap,
    /// The cell's generation.
    pub generation: Generation,
    /// This node.
    pub node: Name,
    /// This node's worker: leases of its earlier boots belong to the dead.
    pub local: Option<WorkerId>,
}

/// An opened shard.
#[derive(Debug)]
pub struct Loaded {
    /// This owner's epoch.
    pub epoch: Epoch,
    /// This owner's nonce.
    pub holder: Holder,
    /// What its machines start from.
    pub opened: ShardOpened,
    /// Rows that could not be read.
    pub bad: Vec<BadRow>,
    /// Marks that must be durable before anything is evaluated; empty where there is nothing to.
    pub marks: Vec<Write>,
    /// Owners in a row that ended before they had proven themselves.
    pub deaths: u32,
    /// The cell's: an owner before this one may have written rows of it.
    pub level: Level,
}

/// Opens a shard's scope and reads its start.
pub async fn open_and_load(store: SharedStore, plan: OpenPlan, holder: Holder) -> Result<Loaded, OpenError> {
    let scope = Scope::Shard(plan.shard);
    let expected = store.epoch(scope).await?;
    let request = Open {
        scope,
        holder,
        expected,
        node: plan.node.clone(),
    };
    let opened = store.open(request).await?;
    let level = check_cell(&store, plan.generation, plan.map).await?;
    let mut bad = Vec::new();
    let slots = plan.map.slots_of(plan.shard);
    let mut schedules = load_schedules(&store, slots, &mut bad).await?;
    let (owner_marks, deaths) = load_quarantine(&store, &plan, opened.at, &mut schedules).await?;
    let leased = load_leased(&store, slots, &mut bad).await?;
    let classes = load_classes(&store, plan.shard).await?;
    let marks = load_marks(&store, plan.shard, &mut bad).await?;
    // What was read while another owner wrote is of no one moment: machines would find contradictions in it.
    if !store.check(scope, holder, opened.epoch).await? {
        let current = store.epoch(scope).await?;
        return Err(OpenError::Moved { current });
    }
    let dead_node = plan.local.map(|worker| (worker.node, worker.boot));
    let leases = LeaseOpened {
        leased,
        classes,
        marks,
        dead_node,
    };
    Ok(Loaded {
        epoch: opened.epoch,
        holder,
        opened: ShardOpened { schedules, leases },
        bad,
        marks: owner_marks,
        deaths,
        level,
    })
}

/// Takes back the owner's mark of this process, if it stands: it was told to stop before its shard was open. An
/// opening that was on its way may still come in between, once.
pub async fn leave(store: SharedStore, plan: OpenPlan, holder: Holder) -> Result<(), OpenError> {
    match leave_once(&store, &plan, holder).await {
        Err(OpenError::Moved { .. }) => leave_once(&store, &plan, holder).await,
        left => left,
    }
}

async fn leave_once(store: &SharedStore, plan: &OpenPlan, holder: Holder) -> Result<(), OpenError> {
    let scope = Scope::Shard(plan.shard);
    let request = Open {
        scope,
        holder,
        expected: store.epoch(scope).await?,
        node: plan.node.clone(),
    };
    let opened = store.open(request).await?;
    let rows = read_quarantine(store, plan.shard).await?;
    let writes = leave_marks(plan.shard, &rows, &boot_of(plan), opened.at);
    if writes.is_empty() {
        return Ok(());
    }
    let batch = encode_batch(&writes, false).map_err(|error| StoreError::Unavailable(error.to_string()))?;
    let committed = store.commit(Commit {
        scope,
        holder,
        epoch: opened.epoch,
        number: BatchNo(1),
        batch: Arc::new(batch),
    });
    match committed.await {
        Committed::Committed(_) | Committed::Already(_) => Ok(()),
        Committed::Stale => Err(OpenError::Moved { current: opened.epoch }),
        other => Err(StoreError::Unavailable(other.to_string()).into()),
    }
}

/// A restore of a store that this node outlived raised the generation: what it knows of the cell is no longer
/// true, and its tokens would be the lost side's (PROTOCOL F11). It must start anew. Answers the cell's level.
pub(crate) async fn check_cell(
    store: &SharedStore,
    generation: Generation,
    map: ShardMap,
) -> Result<Level, StoreError> {
    let (rows, bad) = read_rows(store, &[RowKey::Cell]).await?;
    // Raised to a level that this build does not know, say: it must not write another row.
    if let Some(row) = bad.first() {
        let why = format!("the cell's own row cannot be read any more: {}", row.reason);
        return Err(StoreError::Broken(why));
    }
    let cell = rows.into_values().flatten().find_map(|row| match row {
        Row::Cell(cell) => Some(cell),
        _ => None,
    });
    #[cfg(madsim)]
    let map = match (planted::is_planted(Bug::ShardCountChanged), &cell) {
        (true, Some(cell)) => ShardMap::new(cell.shards).unwrap_or(map),
        (true, None) | (false, _) => map,
    };
    match cell.filter(|cell| cell.generation == generation && cell.shards == map.count()) {
        Some(cell) => Ok(cell.level),
        None => Err(StoreError::Broken(
            "the store behind this node was restored or exchanged since the node started".to_owned(),
        )),
    }
}

async fn load_schedules(
    store: &SharedStore,
    slots: (u32, u32),
    bad: &mut Vec<BadRow>,
) -> Result<ScheduleOpened, StoreError> {
    let mut opened = ScheduleOpened::default();
    let mut unread = Vec::new();
    for range in [
        KeyRange::definitions(slots),
        KeyRange::cursors(slots),
        KeyRange::backlogs(slots),
    ] {
        for row in read_all(store, range, &mut unread).await? {
            #[cfg(madsim)]
            let row = planted_life(row);
            match row {
                Row::Definition(row) => opened.definitions.push(*row),
                #[cfg(madsim)]
                Row::Cursor(row) if planted::is_planted(Bug::MissedWindowDropped) => {
                    let now = store.now(Scope::Coordinator).await?.time;
                    opened.cursors.push(fencepost_core::schedule::CursorRow {
                        nominal: row.nominal.max(now),
                        ..*row
                    });
                }
                Row::Cursor(row) => opened.cursors.push(*row),
                Row::Backlog(row) => opened.backlogs.push(*row),
                other @ (Row::Cell(_)
                | Row::Assignment(_)
                | Row::Fate(_)
                | Row::Edit(_)
                | Row::Job(_)
                | Row::Wait(_)
                | Row::Ready(_)
                | Row::Leased(_)
                | Row::Parked(_)
                | Row::Key(_)
                | Row::DeadLetter(_)
                | Row::Attempts(_)
                | Row::Mark(_)
                | Row::Quarantine(_)
                | Row::Request(_)) => bad.push(misplaced(&other)),
            }
        }
    }
    for row in unread {
        tell_unreadable(store, row, &mut opened, bad).await?;
    }
    let lives = opened.cursors.iter().map(|c| (&c.tenant, &c.name, &c.incarnation));
    let recorded = newest_edits(store, lives.collect()).await?;
    opened.recorded.extend(recorded);
    Ok(opened)
}

/// `last_recorded` of all these lives, in as few reads as there are pages of edits: a store that is far
/// must not be asked once for each schedule. What a page leaves of a life with many edits is read over.
async fn newest_edits(
    store: &SharedStore,
    lives: Vec<Life<'_>>,
) -> Result<BTreeMap<(Name, Name), StoreTime>, StoreError> {
    let mut lives: Vec<(KeyRange, Life<'_>)> = lives.into_iter().map(|life| (edits_of(life), life)).collect();
    lives.sort_by(|(one, _), (other, _)| one.from.cmp(&other.from));
    let mut newest = BTreeMap::new();
    let mut rest = lives.as_slice();
    while let (Some((first, _)), Some((last, _))) = (rest.first(), rest.last()) {
        let whole = KeyRange {
            from: first.from.clone(),
            to: last.to.clone(),
        };
        let scan = whole.scan_page(SCAN_ROWS_MAX, SCAN_BYTES_MAX);
        let page = store.scan(scan.clone()).await?;
        for (key, _) in &page {
            rest = not_before(rest, key);
            if rest.first().is_some_and(|(edits, _)| edits.contains(key)) {
                newest.extend(edit_at(key));
            }
        }
        if !scan.is_done(page.len(), bytes_of(&page)) {
            break;
        }
        if let Some((_, life)) = rest.first() {
            newest.extend(last_recorded(store, *life).await?);
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    Ok(newest)
}

fn bytes_of(page: &[KeyValue]) -> usize {
    page.iter().map(|(key, value)| key.len() + value.len()).sum()
}

fn edits_of((tenant, name, incarnation): Life<'_>) -> KeyRange {
    KeyRange::of_life(Kind::Edit, tenant, name, incarnation)
}

/// The lives whose edits do not end before this key.
fn not_before<'a, 'b>(lives: &'a [(KeyRange, Life<'b>)], key: &[u8]) -> &'a [(KeyRange, Life<'b>)] {
    let gone = lives.partition_point(|(edits, _)| edits.to.as_slice() <= key);
    lives.get(gone..).unwrap_or_default()
}

/// Which schedule's edit, and its instant, by the key alone.
fn edit_at(key: &[u8]) -> Option<((Name, Name), StoreTime)> {
    match parse_key(key) {
        Ok(RowKey::Edit(_, tenant, name, _, at, _)) => Some(((tenant, name), at)),
        _ => None,
    }
}

/// Instant of the newest entry in the history of edits, by its key alone: a row that cannot be read has its
/// place all the same.
async fn last_recorded(store: &SharedStore, life: Life<'_>) -> Result<Option<((Name, Name), StoreTime)>, StoreError> {
    let newest = store.scan(edits_of(life).scan_back(1)).await?.pop();
    Ok(newest.and_then(|(key, _)| edit_at(&key)))
}

/// A row of a schedule that cannot be read hides no schedule (F9).
async fn tell_unreadable(
    store: &SharedStore,
    row: BadRow,
    opened: &mut ScheduleOpened,
    bad: &mut Vec<BadRow>,
) -> Result<(), StoreError> {
    match parse_key(&row.key) {
        Ok(RowKey::Cursor(_, tenant, name)) => {
            let of_name = opened
                .definitions
                .iter()
                .filter(|d| d.tenant == tenant && d.name == name);
            let Some(life) = of_name.map(|d| d.incarnation).max() else {
                bad.push(row);
                return Ok(());
            };
            let recorded = last_recorded(store, (&tenant, &name, &life)).await?;
            opened.recorded.extend(recorded);
            let fates = KeyRange::of_life(Kind::Fate, &tenant, &name, &life);
            let first = read_page(store, fates.clone(), 1).await?.rows.pop().map(|(_, row)| row);
            let last = read_last(store, fates).await?.and_then(Row::into_fate);
            let ends = first.and_then(Row::into_fate).zip(last);
            let closed = ends.map(|(first, last)| (first.span.from, last.span.to));
            opened.lost.push(LostCursor {
                reason: format!("its cursor row cannot be read: {}", row.reason).into(),
                tenant,
                name,
                closed,
            });
        }
        Ok(RowKey::Definition(_, tenant, name, _, version)) => {
            let reason = format!("its definition cannot be read: {}", row.reason).into();
            opened.unreadable.push((tenant, name, version, reason));
            bad.push(row);
        }
        Ok(
            RowKey::Cell
            | RowKey::Assignment(_)
            | RowKey::Backlog(..)
            | RowKey::Fate(..)
            | RowKey::Edit(..)
            | RowKey::Job(_)
            | RowKey::Wait(..)
            | RowKey::Ready(_)
            | RowKey::Leased(_)
            | RowKey::Parked(_)
            | RowKey::Key(..)
            | RowKey::DeadLetter(_)
            | RowKey::Attempts(..)
            | RowKey::Mark(..)
            | RowKey::Quarantine(..)
            | RowKey::Request(..),
        )
        | Err(_) => bad.push(row),
    }
    Ok(())
}

/// What earlier owners left in the quarantine range, and the marks of this one.
async fn load_quarantine(
    store: &SharedStore,
    plan: &OpenPlan,
    at: StoreTime,
    schedules: &mut ScheduleOpened,
) -> Result<(Vec<Write>, u32), StoreError> {
    let rows = read_quarantine(store, plan.shard).await?;
    if schedules.cursors.is_empty() && schedules.lost.is_empty() {
        return Ok((Vec::new(), 0));
    }
    let found = read_marks(plan.shard, &rows, &boot_of(plan), at);
    schedules.poisons = found.poisons;
    schedules.is_careful = found.deaths > 0;
    schedules.is_marked = true;
    Ok((found.writes, found.deaths))
}

async fn read_quarantine(store: &SharedStore, shard: ShardId) -> Result<Vec<QuarantineRow>, StoreError> {
    let rows = read_all(store, KeyRange::quarantines(shard), &mut Vec::new()).await?;
    let rows = rows.into_iter().filter_map(Row::into_quarantine);
    Ok(rows.map(|row| *row).collect())
}

/// This process, as its marks name it.
fn boot_of(plan: &OpenPlan) -> String {
    plan.local.as_ref().map_or_else(String::new, ToString::to_string)
}

/// The planted bug: what was decided last is open again, under another life.
#[cfg(madsim)]
fn planted_life(mut row: Row) -> Row {
    if !planted::is_planted(Bug::FiresUnderAnotherId) {
        return row;
    }
    if let Row::Definition(row) = &mut row {
        row.incarnation.place = 7;
    }
    if let Row::Backlog(row) = &mut row {
        row.incarnation.place = 7;
    }
    if let Row::Cursor(row) = &mut row {
        row.incarnation.place = 7;
        if let Some(open) = row.open.take() {
            (row.nominal, row.kept) = (open.from, None);
        }
    }
    row
}

async fn load_leased(
    store: &SharedStore,
    slots: (u32, u32),
    bad: &mut Vec<BadRow>,
) -> Result<Vec<(LeasedRow, Job)>, StoreError> {
    let rows = read_all(store, KeyRange::leased(slots), bad).await?;
    let leased: Vec<LeasedRow> = rows.into_iter().filter_map(Row::into_leased).map(|row| *row).collect();
    let ids: Vec<JobId> = leased.iter().map(|row| row.id).collect();
    let mut jobs = read_jobs(store, ids, bad).await?;
    let mut pairs = Vec::with_capacity(leased.len());
    for row in leased {
        match jobs.remove(&row.id) {
            Some(job) => pairs.push((row, job)),
            None => bad.push(BadRow {
                key: key_bytes(&RowKey::Leased(row.id)).into(),
                reason: "a lease without a readable job".into(),
            }),
        }
    }
    Ok(pairs)
}

/// The classes with ready rows: what a page leaves of its last class is skipped. A page grows while it finds
/// many classes and shrinks while it finds few, so that neither many small classes cost many reads, nor few
/// large ones many rows.
async fn load_classes(store: &SharedStore, shard: ShardId) -> Result<Vec<(Name, Name)>, StoreError> {
    let mut classes: Vec<(Name, Name)> = Vec::new();
    let mut rest = KeyRange::ready(shard);
    let mut limit = CLASS_PAGE_ROWS;
    loop {
        let scan = rest.clone().scan_page(limit, SCAN_BYTES_MAX);
        let page = store.scan(scan.clone()).await?;
        let known = classes.len();
        for key in page.iter().filter_map(|(key, _)| parse_key(key).ok()) {
            let RowKey::Ready(row) = key else { continue };
            let class = (row.queue, row.tenant);
            if classes.last() != Some(&class) {
                classes.push(class);
            }
        }
        let Some((last, _)) = page.last().filter(|_| scan.is_done(page.len(), bytes_of(&page))) else {
            return Ok(classes);
        };
        rest = rest.after(last);
        if let Some((queue, tenant)) = classes.last() {
            rest = rest.starting_at(&KeyRange::ready_class(shard, queue, tenant).to);
        }
        limit = match (classes.len() - known) * 2 >= limit {
            true => (limit * 2).min(SCAN_ROWS_MAX),
            false => (limit / 2).max(CLASS_PAGE_ROWS),
        };
    }
}

async fn load_marks(store: &SharedStore, shard: ShardId, bad: &mut Vec<BadRow>) -> Result<Vec<MarkRow>, StoreError> {
    let rows = read_all(store, KeyRange::marks(shard), bad).await?;
    Ok(rows.into_iter().filter_map(Row::into_mark).collect())
}

fn misplaced(row: &Row) -> BadRow {
    let key = row.key();
    BadRow {
        key: key_bytes(&key).into(),
        reason: format!("a row of kind {} in a foreign range", Kind::of_row(&key).byte()),
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
