//! Cold rows for inputs that need them: fetched, corrected by the overlay, handed in.
//!
//! Owns: the loop "look, fetch what is missing, look again, step". Must never: step on a row that a
//! stamped batch has changed (PROTOCOL F4). Next: `needs.rs` (which rows an input needs), `fetch.rs`.

use crate::gateway::{ScheduleRequest, ShardRequest};
use crate::shell::fetch::{BadRow, read_rows};
use crate::shell::messages::{Answering, FromWorker, row_unreadable};
use crate::shell::needs::{Known, Needs, schedule_input};
use crate::shell::open_shard::OpenShard;
use crate::shell::overlay::FetchId;
use crate::shell::shard_actor::ShardActor;
use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};
use fencepost_core::ids::{JobId, Token, WorkerId};
use fencepost_core::lease_manager::io::LeaseInput;
use fencepost_core::machine::ReplyTo;
use fencepost_core::name::Name;
use fencepost_core::row::{QuarantineRow, Row, RowKey};
use fencepost_core::shard::ShardInput;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A fetch whose rows are not all there yet.
pub(crate) struct Gathering {
    pub(crate) needs: Needs,
    pub(crate) fetched: BTreeMap<RowKey, Option<Row>>,
    pub(crate) fetch: Option<FetchId>,
}

/// What is known of rows: overlay first, then what was fetched.
pub(crate) struct Look<'a> {
    open: &'a OpenShard,
    fetched: &'a BTreeMap<RowKey, Option<Row>>,
}

impl Known for Look<'_> {
    fn row(&self, key: &RowKey) -> Option<Option<Row>> {
        let building = self.open.log.building();
        let stamped = self.open.overlay.lookup(building, key).map(|row| row.cloned());
        stamped.or_else(|| self.fetched.get(key).cloned())
    }

    fn run_now_id(&self, name: &(Name, Name), request: u64) -> Option<JobId> {
        self.open.machine.scheduler().run_now_id(name, request)
    }

    fn holds(&self, id: JobId, token: Token) -> bool {
        self.open.machine.leases().holds(id, token)
    }
}

impl ShardActor {
    pub(crate) fn gather_client(&mut self, request: ShardRequest, answering: Answering, ctx: &mut Context<ShardActor>) {
        let reply = self.expect_reply(answering);
        match request {
            ShardRequest::Schedule(name, request @ ScheduleRequest::Backfill { .. }) => {
                self.gather_backfill(schedule_input(reply, name, request), ctx);
            }
            request => self.gather(Needs::client(reply, request), ctx),
        }
    }

    pub(crate) fn gather_worker(&mut self, worker: WorkerId, message: FromWorker, ctx: &mut Context<ShardActor>) {
        let received_at = self.parts.clock.mono();
        self.gather(Needs::worker(worker, message, received_at), ctx);
    }

    fn gather(&mut self, needs: Needs, ctx: &mut Context<ShardActor>) {
        self.go_on(
            Gathering {
                needs,
                fetched: BTreeMap::new(),
                fetch: None,
            },
            ctx,
        );
    }

    /// Steps if every row is known, fetches the missing ones otherwise.
    fn go_on(&mut self, mut gathering: Gathering, ctx: &mut Context<ShardActor>) {
        let Some(open) = self.open.as_mut() else { return };
        open.sync_overlay();
        let missing = gathering.needs.missing(&Look {
            open,
            fetched: &gathering.fetched,
        });
        if missing.is_empty() {
            let input = gathering.needs.into_input(&Look {
                open,
                fetched: &gathering.fetched,
            });
            if let Some(fetch) = gathering.fetch {
                open.overlay.end_fetch(fetch);
            }
            return self.step(input, ctx);
        }
        gathering.fetch.get_or_insert_with(|| open.overlay.begin_fetch());
        let store = self.parts.store.clone();
        let life = self.life;
        let reading = async move { read_rows(&store, &missing).await };
        ctx.spawn(reading.into_actor(self).map(move |result, shard, ctx| {
            if shard.life != life {
                return;
            }
            match result {
                Ok((rows, bad)) => {
                    let unreadable = !bad.is_empty();
                    shard.quarantine(bad);
                    // Unreadable is not absent: no twin is made, no job is called unknown (F9).
                    if let Some(reply) = gathering.needs.reply().filter(|_| unreadable) {
                        return shard.refuse_unreadable(reply, gathering.fetch, ctx);
                    }
                    gathering.fetched.extend(rows);
                    shard.go_on(gathering, ctx);
                }
                Err(error) => shard.on_store_error(error, ctx),
            }
        }));
    }

    fn refuse_unreadable(&mut self, reply: ReplyTo, fetch: Option<FetchId>, ctx: &mut Context<ShardActor>) {
        if let (Some(open), Some(fetch)) = (self.open.as_mut(), fetch) {
            open.overlay.end_fetch(fetch);
        }
        self.answer(reply, Err(row_unreadable()));
        // Commits the quarantine.
        self.step(ShardInput::Lease(LeaseInput::Tick), ctx);
    }

    /// Puts rows that could not be read aside, with the reason (PROTOCOL F9).
    pub(crate) fn quarantine(&mut self, bad: Vec<BadRow>) {
        let shard = self.parts.plan.shard;
        for row in bad {
            tracing::error!(shard = shard.0, reason = row.reason, "row quarantined");
            let quarantined = self.open.as_mut().map(|open| {
                let at = open.stated_time();
                let row = QuarantineRow {
                    shard,
                    key: row.key,
                    reason: Arc::from(row.reason),
                    at,
                    deaths: 0,
                };
                open.log.stamp_quiet(fencepost_core::machine::Write::Put {
                    row: Row::Quarantine(Box::new(row)),
                    expect: fencepost_core::machine::Expect::Any,
                });
            });
            debug_assert!(quarantined.is_some(), "rows are read for an open shard");
        }
    }
}
