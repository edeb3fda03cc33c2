//! Ranges of keys: what a scan names when it looks for every row of a duty.
//!
//! Owns: the bounds, half-open. Must never: miss a row of its kind or reach into a neighbour's.
//! Next: `store.rs` (`Scan`).

use super::{Kind, key_bytes, put_class, put_life, put_schedule, put_shard, put_time};
use crate::store::Scan;
use fencepost_core::ids::{Incarnation, JobId, ShardId, Slot};
use fencepost_core::name::Name;
use fencepost_core::row::RowKey;
use fencepost_core::time::StoreTime;

/// `[from, to)` in key order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// Inclusive.
    pub from: Vec<u8>,
    /// Exclusive.
    pub to: Vec<u8>,
}

/// The first key after all that start with `prefix`. Every kind byte is below 255, so a prefix that
/// begins with one always has an end.
pub fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            break;
        }
    }
    end
}

/// Slots from the first to before the second, as `ShardMap::slots_of` gives them.
pub type Slots = (u32, u32);

impl KeyRange {
    /// All keys that start with `prefix`.
    pub fn prefix(prefix: Vec<u8>) -> KeyRange {
        let to = prefix_end(&prefix);
        KeyRange { from: prefix, to }
    }

    /// All rows of a kind.
    pub fn kind(kind: Kind) -> KeyRange {
        KeyRange::prefix(vec![kind.byte()])
    }

    /// All rows of a kind whose keys begin with a slot (`Definition`, `Cursor`, `Backlog`, `Fate`,
    /// `Edit`, `Job`, `Key`, `DeadLetter`, `Parked`, `Attempts`, `Leased`).
    pub fn of_slots(kind: Kind, slots: Slots) -> KeyRange {
        let bound = |slot: u32| {
            let mut key = vec![kind.byte()];
            key.extend_from_slice(&u16::try_from(slot).unwrap_or(u16::MAX).to_be_bytes());
            key
        };
        KeyRange {
            from: bound(slots.0),
            to: bound(slots.1),
        }
    }

    /// All rows of a kind whose keys begin with a shard (`Wait`, `Ready`, `Mark`, `Quarantine`).
    pub fn of_shard(kind: Kind, shard: ShardId) -> KeyRange {
        let mut key = vec![kind.byte()];
        put_shard(&mut key, shard);
        KeyRange::prefix(key)
    }

    /// Jobs of a slot range.
    pub fn jobs(slots: Slots) -> KeyRange {
        KeyRange::of_slots(Kind::Job, slots)
    }

    /// From one row to another of its kind, both included.
    pub fn up_to_row(first: &RowKey, last: &RowKey) -> KeyRange {
        KeyRange {
            from: key_bytes(first),
            to: prefix_end(&key_bytes(last)),
        }
    }

    /// Attempts of a job that are not in its row any more, from this page on.
    pub fn attempts(id: JobId, page: u32) -> KeyRange {
        let mut whole = vec![Kind::Attempts.byte()];
        whole.extend_from_slice(id.as_bytes());
        KeyRange {
            from: key_bytes(&RowKey::Attempts(id, page)),
            ..KeyRange::prefix(whole)
        }
    }

    /// Leased rows of a slot range.
    pub fn leased(slots: Slots) -> KeyRange {
        KeyRange::of_slots(Kind::Leased, slots)
    }

    /// Parked (uncertain) jobs of a slot range.
    pub fn parked(slots: Slots) -> KeyRange {
        KeyRange::of_slots(Kind::Parked, slots)
    }

    /// Dead letters of a slot range.
    pub fn dead_letters(slots: Slots) -> KeyRange {
        KeyRange::of_slots(Kind::DeadLetter, slots)
    }

    /// Idempotency keys of a slot range.
    pub fn keys(slots: Slots) -> KeyRange {
        KeyRange::of_slots(Kind::Key, slots)
    }

    /// Cursors of a slot range: one for each live schedule.
    pub fn cursors(slots: Slots) -> KeyRange {
        KeyRange::of_slots(Kind::Cursor, slots)
    }

    /// Definitions of a slot range, all versions.
    pub fn definitions(slots: Slots) -> KeyRange {
        KeyRange::of_slots(Kind::Definition, slots)
    }

    /// Backlogs of a slot range.
    pub fn backlogs(slots: Slots) -> KeyRange {
        KeyRange::of_slots(Kind::Backlog, slots)
    }

    /// Closed fate spans of a slot range.
    pub fn fates(slots: Slots) -> KeyRange {
        KeyRange::of_slots(Kind::Fate, slots)
    }

    /// Edit records of a slot range.
    pub fn edits(slots: Slots) -> KeyRange {
        KeyRange::of_slots(Kind::Edit, slots)
    }

    /// Assignments of all scopes.
    pub fn assignments() -> KeyRange {
        KeyRange::kind(Kind::Assignment)
    }

    /// Waiting jobs of a shard, earliest first.
    pub fn wait(shard: ShardId) -> KeyRange {
        KeyRange::of_shard(Kind::Wait, shard)
    }

    /// Ready jobs of a shard, all classes.
    pub fn ready(shard: ShardId) -> KeyRange {
        KeyRange::of_shard(Kind::Ready, shard)
    }

    /// Ready jobs of one class, in order of priority, then time. Its `to` is where a skip scan over
    /// classes goes on: `ready(shard).starting_at(ready_class(..).to)` with limit 1 finds the next.
    pub fn ready_class(shard: ShardId, queue: &Name, tenant: &Name) -> KeyRange {
        let mut key = vec![Kind::Ready.byte()];
        put_class(&mut key, shard, queue, tenant);
        KeyRange::prefix(key)
    }

    /// Low-water marks of a shard.
    pub fn marks(shard: ShardId) -> KeyRange {
        KeyRange::of_shard(Kind::Mark, shard)
    }

    /// Quarantined rows of a shard.
    pub fn quarantines(shard: ShardId) -> KeyRange {
        KeyRange::of_shard(Kind::Quarantine, shard)
    }

    /// Rows of one schedule name over all its lives (`Definition`, `Backlog`, `Fate`, `Edit`).
    pub fn of_schedule(kind: Kind, tenant: &Name, name: &Name) -> KeyRange {
        let mut key = vec![kind.byte()];
        put_schedule(&mut key, Slot::of_schedule(tenant, name), tenant, name);
        KeyRange::prefix(key)
    }

    /// Rows of one life of a schedule (`Definition`, `Backlog`, `Fate`, `Edit`).
    pub fn of_life(kind: Kind, tenant: &Name, name: &Name, incarnation: &Incarnation) -> KeyRange {
        let mut key = vec![kind.byte()];
        put_life(&mut key, Slot::of_schedule(tenant, name), tenant, name, incarnation);
        KeyRange::prefix(key)
    }

    /// Fates of one life that end after `from` and at or before `to` (all spans that touch
    /// `(from, to]`, except one that ends later: read one more beyond the end for that).
    pub fn fates_between(
        tenant: &Name,
        name: &Name,
        incarnation: &Incarnation,
        from: StoreTime,
        to: StoreTime,
    ) -> KeyRange {
        let whole = KeyRange::of_life(Kind::Fate, tenant, name, incarnation);
        let bound = |at: StoreTime| {
            let mut key = whole.from.clone();
            put_time(&mut key, at);
            prefix_end(&key)
        };
        KeyRange {
            from: bound(from),
            to: bound(to),
        }
    }

    /// The part at or after the key `from`, never before this range's own start.
    #[must_use]
    pub fn starting_at(mut self, from: &[u8]) -> KeyRange {
        if from > self.from.as_slice() {
            self.from = from.to_vec();
        }
        self
    }

    /// The part at or after the row `from`.
    #[must_use]
    pub fn starting_at_row(self, from: &RowKey) -> KeyRange {
        self.starting_at(&super::key_bytes(from))
    }

    /// The part after the key `last`: the next page.
    #[must_use]
    pub fn after(self, last: &[u8]) -> KeyRange {
        let mut next = last.to_vec();
        next.push(0);
        self.starting_at(&next)
    }

    /// The part before the key `first`: the next page backwards.
    #[must_use]
    pub fn before(mut self, first: &[u8]) -> KeyRange {
        if first < self.to.as_slice() {
            self.to = first.to_vec();
        }
        self
    }

    /// Whether the key lies in it.
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= self.from.as_slice() && key < self.to.as_slice()
    }

    /// A scan of it, first keys first.
    pub fn scan(self, limit: usize) -> Scan {
        Scan {
            from: self.from,
            to: self.to,
            limit,
            bytes: usize::MAX,
            backwards: false,
        }
    }

    /// A scan of it that ends early at this many bytes, first keys first.
    pub fn scan_page(self, limit: usize, bytes: usize) -> Scan {
        Scan {
            bytes,
            ..self.scan(limit)
        }
    }

    /// A scan of it, last keys first.
    pub fn scan_back(self, limit: usize) -> Scan {
        Scan {
            from: self.from,
            to: self.to,
            limit,
            bytes: usize::MAX,
            backwards: true,
        }
    }
}
