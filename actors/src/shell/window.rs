//! Pages of a shard's ready and wait ranges for the LeaseManager's windows.
//!
//! Owns: a page's reading and its correction by the overlay. Must never: show a row that a stamped
//! batch deleted, or hide one that it wrote (PROTOCOL F4, F7, F34). Next: `gather.rs`.

use crate::shell::fetch::{PageRead, SharedStore, read_jobs_within, read_page};
use crate::shell::inbox::Waiting;
use crate::shell::overlay::FetchId;
use crate::shell::shard_actor::ShardActor;
use actix::Context;
use fencepost_core::ids::JobId;
use fencepost_core::job::Job;
use fencepost_core::lease_manager::io::LeaseInput;
use fencepost_core::name::Name;
use fencepost_core::row::{ReadyRow, Row, RowKey};
use fencepost_core::shard::ShardInput;
use fencepost_core::time::StoreTime;
use fencepost_storage::keys::{KeyRange, parse_key};
use fencepost_storage::store::StoreError;
use std::collections::BTreeMap;

/// Which page.
#[derive(Clone, Debug)]
enum Window {
    Ready { class: (Name, Name) },
    Wait,
    Moved,
}

/// A page being read: the stretch of keys it covers, its rows and their jobs.
pub(crate) struct Page {
    window: Window,
    range: KeyRange,
    read: PageRead,
    jobs: BTreeMap<JobId, Job>,
    fetch: FetchId,
}

impl ShardActor {
    pub(crate) fn load_ready(
        &mut self,
        class: (Name, Name),
        from: Option<ReadyRow>,
        limit: usize,
        ctx: &mut Context<ShardActor>,
    ) {
        let whole = KeyRange::ready_class(self.parts.plan.shard, &class.0, &class.1);
        let range = starting(whole, from.map(RowKey::Ready));
        self.load(Window::Ready { class }, range, limit, ctx);
    }

    pub(crate) fn load_wait(&mut self, from: Option<(StoreTime, JobId)>, limit: usize, ctx: &mut Context<ShardActor>) {
        let range = self.waits_from(from);
        self.load(Window::Wait, range, limit, ctx);
    }

    pub(crate) fn load_moved(&mut self, from: Option<(StoreTime, JobId)>, limit: usize, ctx: &mut Context<ShardActor>) {
        let range = self.waits_from(from);
        self.load(Window::Moved, range, limit, ctx);
    }

    fn waits_from(&self, from: Option<(StoreTime, JobId)>) -> KeyRange {
        let shard = self.parts.plan.shard;
        let from = from.map(|(at, id)| RowKey::Wait(shard, at, id));
        starting(KeyRange::wait(shard), from)
    }

    fn load(&mut self, window: Window, range: KeyRange, limit: usize, ctx: &mut Context<ShardActor>) {
        let Some(open) = self.open.as_mut() else { return };
        let fetch = open.overlay.begin_fetch();
        let store = self.parts.store.clone();
        let reading = async move {
            let mut read = read_page(&store, range.clone(), limit).await?;
            let jobs = read_page_jobs(&store, &mut read).await?;
            Ok(Page {
                window,
                range,
                read,
                jobs,
                fetch,
            })
        };
        let hand_in = |shard: &mut ShardActor, page, ctx: &mut Context<ShardActor>| {
            shard.take_up_later(Waiting::Page(Box::new(page)), ctx);
        };
        self.read_aside(reading, hand_in, ctx);
    }

    /// Corrects the page by what was stamped since, fetches jobs that this brought in, steps.
    pub(crate) fn on_page(&mut self, mut page: Page, ctx: &mut Context<ShardActor>) {
        self.quarantine(std::mem::take(&mut page.read.bad));
        let Some(open) = self.open.as_mut() else { return };
        open.sync_overlay();
        let building = open.log.building();
        let covered = match &page.read.next {
            Some(next) => page.range.clone().before(next),
            None => page.range.clone(),
        };
        let mut rows: BTreeMap<Vec<u8>, Row> = page.read.rows.drain(..).collect();
        for (key, row) in open.overlay.range(building, &covered) {
            match row {
                Some(row) => rows.insert(key, row.clone()),
                None => rows.remove(&key),
            };
        }
        let mut missing = Vec::new();
        for id in rows.values().filter_map(placed_id) {
            match open.overlay.lookup(building, &RowKey::Job(id)) {
                Some(Some(Row::Job(job))) => _ = page.jobs.insert(id, (**job).clone()),
                Some(_) => _ = page.jobs.remove(&id),
                None if !page.jobs.contains_key(&id) => missing.push(id),
                None => {}
            }
        }
        page.read.rows = rows.into_iter().collect();
        if missing.is_empty() {
            return self.finish_page(page, ctx);
        }
        self.fetch_missing(page, missing, ctx);
    }

    fn fetch_missing(&mut self, mut page: Page, missing: Vec<JobId>, ctx: &mut Context<ShardActor>) {
        let store = self.parts.store.clone();
        let reading = async move {
            let mut bad = Vec::new();
            let (jobs, count) = read_jobs_within(&store, &missing, &mut bad).await?;
            page.read.end_at(missing.get(count));
            let read = missing.get(..count).unwrap_or(&missing);
            // A place row whose job is not there names nothing that could run: leave it out.
            page.read
                .rows
                .retain(|(_, row)| placed_id(row).is_none_or(|id| jobs.contains_key(&id) || !read.contains(&id)));
            page.jobs.extend(jobs);
            Ok((page, bad))
        };
        let hand_in = |shard: &mut ShardActor, (page, bad), ctx: &mut Context<ShardActor>| {
            shard.quarantine(bad);
            shard.take_up_later(Waiting::Page(Box::new(page)), ctx);
        };
        self.read_aside(reading, hand_in, ctx);
    }

    fn finish_page(&mut self, page: Page, ctx: &mut Context<ShardActor>) {
        let Some(open) = self.open.as_mut() else { return };
        open.overlay.end_fetch(page.fetch);
        let end = page.read.next.is_none();
        let horizon = page.read.next.as_deref().and_then(|key| parse_key(key).ok());
        let mut jobs = page.jobs;
        let input = match page.window {
            Window::Ready { class } => {
                let rows = page.read.rows.into_iter().filter_map(|(_, row)| row.into_ready());
                let rows = rows.filter_map(|row| jobs.remove(&row.id).map(|job| (row, job)));
                let horizon = horizon.and_then(|key| {
                    let RowKey::Ready(row) = key else { return None };
                    Some(row)
                });
                LeaseInput::ReadyLoaded {
                    class,
                    rows: rows.collect(),
                    end,
                    horizon,
                }
            }
            window @ (Window::Wait | Window::Moved) => {
                let rows = page.read.rows.into_iter().filter_map(|(_, row)| row.into_wait());
                let rows = rows.filter_map(|row| jobs.remove(&row.id).map(|job| (row, job)));
                let rows = rows.collect();
                let horizon = horizon.and_then(|key| {
                    let RowKey::Wait(_, at, id) = key else { return None };
                    Some((at, id))
                });
                match window {
                    Window::Moved => LeaseInput::MovedPage { rows, next: horizon },
                    Window::Wait | Window::Ready { .. } => LeaseInput::WaitLoaded { rows, end, horizon },
                }
            }
        };
        self.step_now(ShardInput::Lease(input), ctx);
    }
}

/// The jobs of a page; ends the page early when they have many bytes.
async fn read_page_jobs(store: &SharedStore, read: &mut PageRead) -> Result<BTreeMap<JobId, Job>, StoreError> {
    let ids: Vec<JobId> = read.rows.iter().filter_map(|(_, row)| placed_id(row)).collect();
    let (jobs, count) = read_jobs_within(store, &ids, &mut read.bad).await?;
    read.end_at(ids.get(count));
    Ok(jobs)
}

impl PageRead {
    /// Ends the page before the row of this job, if there is one.
    fn end_at(&mut self, id: Option<&JobId>) {
        let Some(id) = id else { return };
        let at = self.rows.iter().position(|(_, row)| placed_id(row) == Some(*id));
        if let Some((at, (key, _))) = at.and_then(|at| Some((at, self.rows.get(at)?))) {
            self.next = Some(key.clone());
            self.rows.truncate(at);
        }
    }
}

fn starting(whole: KeyRange, from: Option<RowKey>) -> KeyRange {
    match from {
        Some(from) => whole.starting_at_row(&from),
        None => whole,
    }
}

/// The job that a place row names.
fn placed_id(row: &Row) -> Option<JobId> {
    match row {
        Row::Ready(row) => Some(row.id),
        Row::Wait(row) => Some(row.id),
        Row::Cell(_)
        | Row::Assignment(_)
        | Row::Definition(_)
        | Row::Cursor(_)
        | Row::Backlog(_)
        | Row::Fate(_)
        | Row::Edit(_)
        | Row::Job(_)
        | Row::Leased(_)
        | Row::Parked(_)
        | Row::Key(_)
        | Row::DeadLetter(_)
        | Row::Attempts(_)
        | Row::Mark(_)
        | Row::Quarantine(_)
        | Row::Request(_) => None,
    }
}
