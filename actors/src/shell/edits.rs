//! Pages of the histories of edits, for the walk that drops old entries.
//!
//! Owns: reading their keys, which say all that it asks for: an entry that cannot be read goes with its time, too. No
//! batch on its way writes an old one. Must never: decide which is old. Next: `requests.rs`,
//! `fencepost_core::scheduler_shard` (past edits).

use crate::shell::fetch::SharedStore;
use crate::shell::shard_actor::ShardActor;
use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};
use fencepost_core::limits::SCAN_BYTES_MAX;
use fencepost_core::row::RowKey;
use fencepost_core::scheduler_shard::io::{Loaded, ScheduleInput};
use fencepost_core::shard::ShardInput;
use fencepost_storage::keys::{KeyRange, key_bytes, parse_key};
use fencepost_storage::store::StoreError;

impl ShardActor {
    pub(crate) fn load_edits(&mut self, after: Option<RowKey>, limit: usize, ctx: &mut Context<ShardActor>) {
        let plan = &self.parts.plan;
        let whole = KeyRange::edits(plan.map.slots_of(plan.shard));
        let range = match after {
            Some(key) => whole.after(&key_bytes(&key)),
            None => whole,
        };
        let store = self.parts.store.clone();
        let life = self.life;
        let reading = read_keys(store, range, limit);
        ctx.spawn(reading.into_actor(self).map(move |read, actor, ctx| {
            if actor.life != life {
                return;
            }
            match read {
                Ok((edits, next)) => {
                    let input = ScheduleInput::Loaded(Loaded::Edits { edits, next });
                    actor.step(ShardInput::Schedule(input), ctx);
                }
                Err(error) => actor.on_store_error(error, ctx),
            }
        }));
    }
}

/// The keys of a page, and the last of them where more follow.
async fn read_keys(
    store: SharedStore,
    range: KeyRange,
    limit: usize,
) -> Result<(Vec<RowKey>, Option<RowKey>), StoreError> {
    let scan = range.scan_page(limit, SCAN_BYTES_MAX);
    let page = store.scan(scan.clone()).await?;
    let bytes = page.iter().map(|(key, value)| key.len() + value.len()).sum();
    let goes_on = scan.is_done(page.len(), bytes);
    let keys: Vec<RowKey> = page.iter().filter_map(|(key, _)| parse_key(key).ok()).collect();
    let next = keys.last().filter(|_| goes_on).cloned();
    Ok((keys, next))
}
