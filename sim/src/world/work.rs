//! What is in work where: what makes the death of a machine felt.
//!
//! Owns: the count of calls that are open at each machine, and of what it has granted or runs. Must never: change what
//! happens. Next: `director.rs` (asks before it kills), `store.rs`, `http.rs`, `target.rs` (begin and end).

use super::server::Server;
use super::{SERVER_IP, STORE_IP, World};
use crate::runtime::SimNode;
use fencepost_core::ids::{Scope, ShardMap};
use fencepost_core::row::{Row, RowKey};
use fencepost_storage::codec::decode_row;
use fencepost_storage::keys::parse_key;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

/// Calls that are open, by machine. Clones share it.
#[derive(Clone, Default)]
pub struct Work(Arc<Mutex<BTreeMap<Ipv4Addr, u64>>>);

/// A call that is open; it ends with this.
pub struct InWork {
    work: Work,
    at: Ipv4Addr,
}

impl Work {
    fn change(&self, at: Ipv4Addr, change: impl FnOnce(&mut u64)) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(open.entry(at).or_default());
    }

    /// A call is open at this machine from now on.
    pub fn begin(&self, at: Ipv4Addr) -> InWork {
        self.change(at, |open| *open += 1);
        InWork { work: self.clone(), at }
    }

    /// How many are open there.
    pub fn open_at(&self, at: Ipv4Addr) -> u64 {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(&at).copied().unwrap_or(0)
    }
}

impl Drop for InWork {
    fn drop(&mut self) {
        self.work.change(self.at, |open| *open = open.saturating_sub(1));
    }
}

/// Whether the death of this machine would end something: requests and calls that are open at it, batches that it has
/// sent and that are not settled, attempts that it runs or has granted; of the store's machine, commits that are not
/// synced, and requests at the API, which need it.
pub fn is_at_work(world: &World, server: &Server, node: &SimNode) -> bool {
    let is_stores = node.ip() == STORE_IP;
    let needs_it = is_stores && (server.store.model.unsynced() > 0 || world.work.open_at(SERVER_IP) > 0);
    needs_it || world.work.open_at(node.ip()) > 0 || (!is_stores && has_attempts(world, server, node))
}

fn has_attempts(world: &World, server: &Server, node: &SimNode) -> bool {
    let Some(map) = ShardMap::new(world.options.shards) else {
        return false;
    };
    let (mut owners, mut leased) = (BTreeMap::new(), Vec::new());
    for (key, value) in server.store.model.durable_rows() {
        let is_wanted = matches!(parse_key(&key), Ok(RowKey::Leased(_) | RowKey::Assignment(_)));
        match is_wanted.then(|| decode_row(&key, &value)) {
            Some(Ok(Row::Assignment(row))) => {
                owners.insert(row.scope, row.node);
            }
            Some(Ok(Row::Leased(row))) => leased.push(*row),
            _ => {}
        }
    }
    leased.iter().any(|row| {
        let owner = owners.get(&Scope::Shard(map.shard_of(row.id.slot())));
        row.worker.node.as_str() == node.name() || owner.is_some_and(|owner| owner.as_str() == node.name())
    })
}
