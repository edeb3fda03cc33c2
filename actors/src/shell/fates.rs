//! Closed fate spans of a schedule, for the auditor's pages and for a backfill.
//!
//! Owns: reading a stretch of one life's spans, corrected by the overlay. Must never: decide what they
//! mean. Next: `window.rs`, `fencepost_core::scheduler_shard` (the sweep, backfill).

use crate::shell::fetch::{PageRead, RowsRead, SharedStore, read_page, read_rows_within};
use crate::shell::inbox::Waiting;
use crate::shell::overlay::FetchId;
use crate::shell::shard_actor::ShardActor;
use actix::Context;
use fencepost_core::fate::FateSpan;
use fencepost_core::ids::Incarnation;
use fencepost_core::limits::{BACKFILL_FATES_MAX, SCAN_BYTES_MAX, SCAN_ROWS_MAX};
use fencepost_core::name::Name;
use fencepost_core::row::{Row, RowKey};
use fencepost_core::schedule::RequestRow;
use fencepost_core::scheduler_shard::io::{Loaded, ScheduleInput};
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
    /// The input of a backfill, which waits for them.
    Backfill(Box<Backfill>),
}

struct Backfill {
    input: ScheduleInput,
    /// Spans of this life are read,
    life: Incarnation,
    /// that begin before this instant,
    to: StoreTime,
    /// and this row of the request, where there are such rows.
    request: Option<RowKey>,
}

pub(crate) struct Spans {
    purpose: Purpose,
    range: KeyRange,
    read: PageRead,
    /// The row of the request, of a backfill.
    seen: RowsRead,
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
        let ScheduleInput::Backfill {
            name,
            from,
            to,
            request,
            ..
        } = &input
        else {
            return;
        };
        let (name, from, to) = (name.clone(), *from, *to);
        let scheduler = self.open.as_ref().map(|open| open.machine.scheduler());
        let of_life = scheduler.and_then(|of| Some((of.incarnation_of(&name)?, of.request_key(&name, *request))));
        let Some((life, request)) = of_life else {
            return self.step(ShardInput::Schedule(input), ctx);
        };
        let incarnation = life;
        let range = Life { name, incarnation }.after(from);
        let purpose = Purpose::Backfill(Box::new(Backfill {
            input,
            life,
            to,
            request,
        }));
        self.read_fates(purpose, range, (SCAN_ROWS_MAX, BACKFILL_FATES_MAX), ctx);
    }

    fn read_fates(&mut self, purpose: Purpose, range: KeyRange, limits: (usize, usize), ctx: &mut Context<ShardActor>) {
        let Some(open) = self.open.as_mut() else { return };
        let fetch = open.overlay.begin_fetch();
        let store = self.parts.store.clone();
        let (end, request) = match &purpose {
            Purpose::Audit(_) => (StoreTime::MAX, Vec::new()),
            Purpose::Backfill(backfill) => (backfill.to, backfill.request.iter().cloned().collect()),
        };
        let reading = async move {
            let read = read_until(&store, range.clone(), end, limits).await?;
            let seen = read_rows_within(&store, &request, SCAN_BYTES_MAX).await?;
            Ok(Spans {
                purpose,
                range,
                read,
                seen,
                fetch,
            })
        };
        let hand_in = |shard: &mut ShardActor, spans, ctx: &mut Context<ShardActor>| {
            shard.take_up_later(Waiting::Spans(Box::new(spans)), ctx);
        };
        self.read_aside(reading, hand_in, ctx);
    }

    pub(crate) fn on_fates(&mut self, mut spans: Spans, ctx: &mut Context<ShardActor>) {
        self.quarantine(std::mem::take(&mut spans.read.bad));
        let is_unreadable = !spans.seen.bad.is_empty();
        self.quarantine(std::mem::take(&mut spans.seen.bad));
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
        let seen = match &spans.purpose {
            Purpose::Audit(_) => None,
            Purpose::Backfill(backfill) => backfill.request.as_ref().and_then(|key| {
                let stamped = open.overlay.lookup(building, key).map(|row| row.cloned());
                stamped.unwrap_or_else(|| spans.seen.rows.remove(key).flatten())
            }),
        };
        open.overlay.end_fetch(spans.fetch);
        let is_end = spans.read.next.is_none();
        let fates: Vec<FateSpan> = rows
            .into_values()
            .filter_map(Row::into_fate)
            .map(|row| row.span)
            .collect();
        let input = match spans.purpose {
            Purpose::Audit(Life { name, incarnation }) => ScheduleInput::Loaded(Loaded::Fates {
                name,
                incarnation,
                fates,
                is_end,
            }),
            Purpose::Backfill(backfill) if is_unreadable => match backfill.input.reply() {
                // Unreadable is not absent: it may have been carried out.
                Some(reply) => return self.refuse_unreadable(reply, None, ctx),
                None => return,
            },
            Purpose::Backfill(backfill) => {
                let seen = seen.and_then(Row::into_request);
                with_rows(backfill.input, backfill.life, seen, fates)
            }
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

fn with_rows(
    input: ScheduleInput,
    incarnation: Incarnation,
    seen: Option<Box<RequestRow>>,
    spans: Vec<FateSpan>,
) -> ScheduleInput {
    match input {
        ScheduleInput::Backfill {
            reply,
            name,
            from,
            to,
            cap,
            rerun,
            request,
            seen: _,
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
            seen,
            dry_run,
            life: Some(incarnation),
            fates: spans,
        },
        other => other,
    }
}
