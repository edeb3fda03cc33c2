//! Who owns which shard, as this node has read it last.
//!
//! Owns: the table that the gateway asks for the way to an owner. It may be old; an owner that is none says
//! so. Must never: decide. Next: `member.rs` (who fills it in).

use fencepost_core::coordinator::board::BoardView;
use fencepost_core::coordinator::io::Assigned;
use fencepost_core::ids::ShardId;
use fencepost_core::name::Name;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where a shard is owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// By this node.
    Here,
    /// By another one, which is reached there.
    There(Arc<str>),
    /// By nobody that can be reached.
    Nobody,
}

/// The table of a node.
#[derive(Debug)]
pub struct Owners {
    node: Name,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    rows: Vec<Option<Assigned>>,
    addresses: BTreeMap<Name, Arc<str>>,
}

impl Owners {
    /// Knows nothing yet.
    pub fn new(node: Name) -> Owners {
        Owners {
            node,
            table: Mutex::default(),
        }
    }

    /// Who owns a shard.
    pub fn owner(&self, shard: ShardId) -> Owner {
        let table = self.lock();
        let row = table.rows.get(usize::from(shard.0)).and_then(Option::as_ref);
        match row {
            Some(row) if row.node == self.node => Owner::Here,
            Some(row) => table
                .addresses
                .get(&row.node)
                .map_or(Owner::Nobody, |address| Owner::There(address.clone())),
            None => Owner::Nobody,
        }
    }

    /// Whether every shard has an owner, and those of this node are among `open`.
    pub fn is_settled(&self, is_open: impl Fn(usize) -> bool) -> bool {
        let table = self.lock();
        let mut rows = table.rows.iter().enumerate();
        let is_fine = |(number, row): (usize, &Option<Assigned>)| {
            row.as_ref().is_some_and(|row| row.node != self.node || is_open(number))
        };
        !table.rows.is_empty() && rows.all(is_fine)
    }

    /// Rows as read. One that cannot be read any more is as it was: rows do not go.
    pub(super) fn learn_rows(&self, rows: &[Option<Assigned>]) {
        let mut table = self.lock();
        table.rows.resize(rows.len(), None);
        for (known, row) in table.rows.iter_mut().zip(rows) {
            if row.is_some() {
                known.clone_from(row);
            }
        }
    }

    /// Where nodes are reached.
    pub(super) fn learn_view(&self, view: &BoardView) {
        let reachable = view.sessions.iter().filter(|session| !session.address.is_empty());
        let addresses = reachable.map(|session| (session.node.clone(), session.address.clone()));
        self.lock().addresses = addresses.collect();
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
