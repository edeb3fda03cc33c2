//! Cold rows for inputs that need them: fetched, corrected by the overlay, handed in.
//!
//! Owns: the loop "look, fetch what is missing, look again, step". Must never: step on a row that a
//! stamped batch has changed (PROTOCOL F4). Next: `needs.rs` (which rows an input needs), `fetch.rs`.

use crate::gateway::{ScheduleRequest, ShardRequest};
use crate::shell::fetch::{BadRow, RowsRead, read_rows_within};
use crate::shell::inbox::Waiting;
use crate::shell::messages::{Answering, FromWorker, row_unreadable};
use crate::shell::needs::{Known, Needs, schedule_input};
use crate::shell::open_shard::OpenShard;
use crate::shell::overlay::FetchId;
use crate::shell::shard_actor::ShardActor;
use actix::Context;
use fencepost_core::ids::{JobId, Token, WorkerId};
use fencepost_core::lease_manager::io::LeaseInput;
use fencepost_core::limits::{BATCH_BYTES_MAX, SCAN_BYTES_MAX};
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

    fn request_key(&self, name: &(Name, Name), request: u64) -> Option<RowKey> {
        self.open.machine.scheduler().request_key(name, request)
    }

    fn run_now_id(&self, name: &(Name, Name), request: u64) -> Option<JobId> {
        self.open.machine.scheduler().run_now_id(name, request)
    }

    fn holds(&self, id: JobId, token: Token) -> bool {
        self.open.machine.leases().holds(id, token)
    }
}

/// A worker's message in parts, each of which moves jobs of about `BATCH_BYTES_MAX` bytes at most: they are
/// written anew.
fn in_parts(message: FromWorker, weigh: impl Fn(JobId) -> usize) -> Vec<FromWorker> {
    match message {
        FromWorker::Outcomes { items } => {
            let parts = split(items, |(id, _, outcome)| weigh(*id) + outcome.output.len());
            parts.into_iter().map(|items| FromWorker::Outcomes { items }).collect()
        }
        FromWorker::HandBack { items } => {
            let parts = split(items, |(id, _)| weigh(*id));
            parts.into_iter().map(|items| FromWorker::HandBack { items }).collect()
        }
        other @ (FromWorker::Offer { .. } | FromWorker::Heartbeat { .. } | FromWorker::Begin { .. }) => vec![other],
    }
}

fn split<T>(items: Vec<T>, weigh: impl Fn(&T) -> usize) -> Vec<Vec<T>> {
    let (mut parts, mut bytes) = (vec![Vec::new()], 0);
    for item in items {
        let weight = weigh(&item);
        if bytes > 0 && bytes + weight > BATCH_BYTES_MAX {
            parts.push(Vec::new());
            bytes = 0;
        }
        bytes += weight;
        parts.last_mut().expect("never empty").push(item);
    }
    parts
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
        let Some(open) = self.open.as_ref() else { return };
        let leases = open.machine.leases();
        for part in in_parts(message, |id| leases.lease_bytes(id)) {
            self.gather(Needs::worker(worker.clone(), part, received_at), ctx);
        }
    }

    fn gather(&mut self, needs: Needs, ctx: &mut Context<ShardActor>) {
        let gathering = Gathering {
            needs,
            fetched: BTreeMap::new(),
            fetch: None,
        };
        self.take_up_later(Waiting::Gathering(Box::new(gathering)), ctx);
    }

    /// Steps if every row is known, fetches the missing ones otherwise.
    pub(crate) fn go_on(&mut self, mut gathering: Gathering, ctx: &mut Context<ShardActor>) {
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
            return self.step_now(input, ctx);
        }
        gathering.fetch.get_or_insert_with(|| open.overlay.begin_fetch());
        let store = self.parts.store.clone();
        let reading = async move {
            let read = read_rows_within(&store, &missing, SCAN_BYTES_MAX).await;
            read.map(|read| (read, missing))
        };
        let hand_in =
            move |shard: &mut ShardActor, (read, asked): (RowsRead, Vec<RowKey>), ctx: &mut Context<ShardActor>| {
                let bad = read.bad;
                let unreadable = !bad.is_empty();
                shard.quarantine(bad);
                // Unreadable is not absent: no twin is made, no job is called unknown (F9).
                if let Some(reply) = gathering.needs.reply().filter(|_| unreadable) {
                    return shard.refuse_unreadable(reply, gathering.fetch, ctx);
                }
                let rest = gathering
                    .needs
                    .take(read.rows, asked.get(read.count..), &mut gathering.fetched);
                shard.take_up_later(Waiting::Gathering(Box::new(gathering)), ctx);
                if let Some(rest) = rest {
                    shard.gather(rest, ctx);
                }
            };
        self.read_aside(reading, hand_in, ctx);
    }

    /// Nothing was done, whoever owns the shard: this needs no proof (`hosting.rs`).
    pub(crate) fn refuse_unreadable(&mut self, reply: ReplyTo, fetch: Option<FetchId>, ctx: &mut Context<ShardActor>) {
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
            self.parts.notes.row_quarantined(shard);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f33_a_message_is_split_by_the_bytes_of_the_jobs_it_moves() {
        let third = BATCH_BYTES_MAX / 3;
        let parts = split(vec![third; 7], |bytes| *bytes);
        assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 1]);
        let large = split(vec![2 * BATCH_BYTES_MAX; 2], |bytes| *bytes);
        assert_eq!(large.len(), 2, "one that is too large goes alone");
        assert_eq!(split(vec![0; 5_000], |bytes| *bytes).len(), 1);
        assert_eq!(
            split(Vec::<usize>::new(), |bytes| *bytes).len(),
            1,
            "an empty message is one"
        );
    }
}
