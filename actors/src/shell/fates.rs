//! Closed fate spans of a schedule, for the auditor's pages and for a backfill.
//!
//! Owns: reading a stretch of one life's spans, corrected by the overlay. Must never: decide what they
//! mean. Next: `window.rs`, `fencepost_core::scheduler_shard` (the sweep, backfill).

use crate::shell::fetch::{PageRead, SharedStore, read_page};
use crate::shell::inbox::Waiting;
use crate::shell::overlay::FetchId;
use crate::shell::shard_actor::ShardActor;
use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};
use fencepost_core::fate::FateSpan;
use fencepost_core::ids::Incarnation;
use fencepost_core::limits::{BACKFILL_FATES_MAX, SCAN_ROWS_MAX};
use fencepost_core::name::Name;
use fencepost_core::row::Row;
use fencepost_core::scheduler_shard::io::ScheduleInput;
use fencepost_core::shard::ShardInput;
use fencepost_core::time::StoreTime;
use fencepost_storage::keys::KeyRange;
use fencepost_storage::store::StoreError;
use std::collections::BTreeMap;

/// One life of a schedule.
pub(crate) struct Life {
    pub(crate) name: (Name, Name),
    pub(crate) incarnation: Incarnation,
}

/// What the spans are for.
enum Purpose {
    /// The page that the auditor ordered.
    Audit(Life),
    /// The input of a backfill, which waits for them; those of this life that begin before this instant.
    Backfill(Box<ScheduleInput>, Incarnation, StoreTime),
}

pub(crate) struct Spans {
    purpose: Purpose,
    range: KeyRange,
    read: PageRead,
    fetch: FetchId,
}

impl Life {
    /// Spans that end after an instant.
    fn after(&self, after: StoreTime) -> KeyRange {
        let (tenant, name) = &self.name;
        KeyRange::fates_between(tenant, name, &self.incarnation, after, StoreTime::MAX)
    }
}

impl ShardActor {
    /// A page for the auditor.
    pub(crate) fn load_fates(&mut self, life: Life, after: StoreTime, limit: usize, ctx: &mut Context<ShardActor>) {
        let range = life.after(after);
        self.read_fates(Purpose::Audit(life), range, (limit, limit), ctx);
    }

    /// Gives a backfill the spans of its range, then steps it; an unknown name needs none.
    pub(crate) fn gather_backfill(&mut self, input: ScheduleInput, ctx: &mut Context<ShardActor>) {
        let ScheduleInput::Backfill { name, from, to, .. } = &input else {
            return;
        };
        let (name, from, to) = (name.clone(), *from, *to);
        let incarnation = self
            .open
            .as_ref()
            .and_then(|open| open.machine.scheduler().incarnation_of(&name));
        let Some(incarnation) = incarnation else {
            return self.step(ShardInput::Schedule(input), ctx);
        };
        let range = Life { name, incarnation }.after(from);
        let purpose = Purpose::Backfill(Box::new(input), incarnation, to);
        self.read_fates(purpose, range, (SCAN_ROWS_MAX, BACKFILL_FATES_MAX), ctx);
    }

    fn read_fates(&mut self, purpose: Purpose, range: KeyRange, limits: (usize, usize), ctx: &mut Context<ShardActor>) {
        let Some(open) = self.open.as_mut() else { return };
        let fetch = open.overlay.begin_fetch();
        let store = self.parts.store.clone();
        let life = self.life;
        let end = match &purpose {
            Purpose::Audit(_) => StoreTime::MAX,
            Purpose::Backfill(_, _, to) => *to,
        };
        let reading = async move {
            let read = read_until(&store, range.clone(), end, limits).await?;
            Ok(Spans {
                purpose,
                range,
                read,
                fetch,
            })
        };
        ctx.spawn(
            reading
                .into_actor(self)
                .map(move |result: Result<Spans, StoreError>, shard, ctx| {
                    if shard.life != life {
                        return;
                    }
                    match result {
                        Ok(spans) => shard.take_up_later(Waiting::Spans(Box::new(spans)), ctx),
                        Err(error) => shard.on_store_error(error, ctx),
                    }
                }),
        );
    }

    pub(crate) fn on_fates(&mut self, mut spans: Spans, ctx: &mut Context<ShardActor>) {
        self.quarantine(std::mem::take(&mut spans.read.bad));
        let Some(open) = self.open.as_mut() else { return };
        open.sync_overlay();
        let building = open.log.building();
        let covered = match &spans.read.next {
            Some(next) => spans.range.before(next),
            None => spans.range,
        };
        let mut rows: BTreeMap<Vec<u8>, Row> = spans.read.rows.into_iter().collect();
        for (key, row) in open.overlay.range(building, &covered) {
            match row {
                Some(row) => rows.insert(key, row.clone()),
                None => rows.remove(&key),
            };
        }
        open.overlay.end_fetch(spans.fetch);
        let is_end = spans.read.next.is_none();
        let fates: Vec<FateSpan> = rows
            .into_values()
            .filter_map(Row::into_fate)
            .map(|row| row.span)
            .collect();
        let input = match spans.purpose {
            Purpose::Audit(Life { name, incarnation }) => ScheduleInput::FatesLoaded {
                name,
                incarnation,
                fates,
                is_end,
            },
            Purpose::Backfill(input, life, _) => with_fates(*input, life, fates),
        };
        self.step_now(ShardInput::Schedule(input), ctx);
    }
}

/// Pages until a span begins at or after `end`, or the most is read; `next` is where reading stopped.
async fn read_until(
    store: &SharedStore,
    range: KeyRange,
    end: StoreTime,
    (page_max, most): (usize, usize),
) -> Result<PageRead, StoreError> {
    let mut all = PageRead::default();
    let mut rest = range;
    loop {
        let page = read_page(store, rest.clone(), page_max).await?;
        all.rows.extend(page.rows);
        all.bad.extend(page.bad);
        all.next = page.next;
        let is_past = matches!(all.rows.last(), Some((_, Row::Fate(row))) if row.span.from >= end);
        match &all.next {
            Some(next) if !is_past && all.rows.len() < most => rest = rest.starting_at(next),
            _ => return Ok(all),
        }
    }
}

fn with_fates(input: ScheduleInput, incarnation: Incarnation, spans: Vec<FateSpan>) -> ScheduleInput {
    match input {
        ScheduleInput::Backfill {
            reply,
            name,
            from,
            to,
            cap,
            rerun,
            request,
            dry_run,
            life: _,
            fates: _,
        } => ScheduleInput::Backfill {
            reply,
            name,
            from,
            to,
            cap,
            rerun,
            request,
            dry_run,
            life: Some(incarnation),
            fates: spans,
        },
        other => other,
    }
}
