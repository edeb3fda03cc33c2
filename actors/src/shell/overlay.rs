//! The overlay: what stamped batches say about rows that a fetch may still show as they were.
//!
//! Owns: PROTOCOL F4. A batch stays here until it is durable and every fetch that began before that
//! has been answered; a fetched row is always overlaid before a step. Must never: drop a batch
//! early. Next: `log.rs`, `fetch.rs`.

use crate::shell::log::Sealed;
use crate::shell::writes::Writes;
use fencepost_core::ids::BatchNo;
use fencepost_core::row::{Row, RowKey};
use fencepost_storage::keys::{KeyRange, key_bytes};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// A fetch in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FetchId(u64);

#[derive(Debug)]
struct Layer {
    batch: Rc<Sealed>,
    /// Set when durable: fetches below this number began before.
    retired_at: Option<FetchId>,
}

/// Sealed batches that fetches may not have seen.
#[derive(Debug, Default)]
pub struct Overlay {
    layers: VecDeque<Layer>,
    next: u64,
    open: BTreeSet<FetchId>,
}

impl Overlay {
    /// A batch was sealed and is about to be committed.
    pub fn push(&mut self, batch: Rc<Sealed>) {
        let known = self
            .layers
            .back()
            .is_some_and(|layer| layer.batch.number >= batch.number);
        if !known {
            self.layers.push_back(Layer {
                batch,
                retired_at: None,
            });
        }
    }

    /// Batches up to `number` are durable.
    pub fn durable(&mut self, number: BatchNo) {
        let now = FetchId(self.next);
        for layer in self.layers.iter_mut().filter(|layer| layer.batch.number <= number) {
            layer.retired_at.get_or_insert(now);
        }
        self.drop_retired();
    }

    /// A fetch begins.
    pub fn begin_fetch(&mut self) -> FetchId {
        let id = FetchId(self.next);
        self.next += 1;
        self.open.insert(id);
        id
    }

    /// A fetch was answered and its rows were overlaid.
    pub fn end_fetch(&mut self, id: FetchId) {
        self.open.remove(&id);
        self.drop_retired();
    }

    /// What the stamped batches say about `key`: `None` is nothing, `Some(None)` deleted.
    /// `building` are the writes not sealed yet.
    pub fn lookup<'a>(&'a self, building: &'a Writes, key: &RowKey) -> Option<Option<&'a Row>> {
        if self.layers.is_empty() && building.is_empty() {
            return None;
        }
        let key = key_bytes(key);
        let sealed = || {
            self.layers
                .iter()
                .rev()
                .find_map(|layer| layer.batch.writes.lookup(&key))
        };
        building.lookup(&key).or_else(sealed)
    }

    /// Writes with keys in `range`, the newest for each key: what a scan must be corrected by.
    pub fn range<'a>(&'a self, building: &'a Writes, range: &KeyRange) -> BTreeMap<Vec<u8>, Option<&'a Row>> {
        let mut found = BTreeMap::new();
        for layer in &self.layers {
            layer.batch.writes.lay_range(range, &mut found);
        }
        building.lay_range(range, &mut found);
        found
    }

    /// How many batches are kept.
    pub fn len(&self) -> usize {
        self.layers.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    fn drop_retired(&mut self) {
        let oldest = self.open.first().copied();
        let needed = |retired: FetchId| oldest.is_some_and(|fetch| fetch < retired);
        while self
            .layers
            .front()
            .is_some_and(|layer| layer.retired_at.is_some_and(|retired| !needed(retired)))
        {
            self.layers.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_core::ids::{JobId, Slot};
    use fencepost_core::machine::Write;
    use fencepost_core::row::{DeadLetterRow, ParkedRow};
    use fencepost_core::time::StoreTime;

    fn id(n: u8) -> JobId {
        JobId::fresh(Slot::new(0).unwrap(), [n; 14])
    }

    fn put(n: u8) -> Write {
        Write::Put {
            row: Row::Parked(ParkedRow {
                id: id(n),
                at: StoreTime(0),
            }),
            expect: fencepost_core::machine::Expect::Any,
        }
    }

    fn none() -> Writes {
        Writes::default()
    }

    fn sealed(number: u64, writes: Vec<Write>) -> Rc<Sealed> {
        Rc::new(Sealed {
            number: BatchNo(number),
            writes: writes.into(),
        })
    }

    #[test]
    fn f04_a_batch_stays_until_fetches_begun_before_its_durability_are_answered() {
        let mut overlay = Overlay::default();
        let fetch = overlay.begin_fetch();
        overlay.push(sealed(1, vec![put(1)]));
        overlay.durable(BatchNo(1));
        assert!(
            overlay.lookup(&none(), &RowKey::Parked(id(1))).is_some(),
            "the slow fetch may show the old row"
        );
        let later = overlay.begin_fetch();
        overlay.end_fetch(fetch);
        assert!(overlay.is_empty(), "a fetch begun after durability sees the row itself");
        overlay.end_fetch(later);
    }

    #[test]
    fn the_newest_write_wins_and_deletes_show() {
        let mut overlay = Overlay::default();
        overlay.push(sealed(1, vec![put(1), put(2)]));
        let building = Writes::from(vec![Write::Delete(RowKey::Parked(id(1)))]);
        assert_eq!(overlay.lookup(&building, &RowKey::Parked(id(1))), Some(None));
        assert!(matches!(
            overlay.lookup(&building, &RowKey::Parked(id(2))),
            Some(Some(_))
        ));
        assert_eq!(overlay.lookup(&building, &RowKey::Parked(id(3))), None);
        let range = overlay.range(&building, &KeyRange::parked((0, 1)));
        assert_eq!(range.len(), 2);
        assert_eq!(range.get(&key_bytes(&RowKey::Parked(id(1)))), Some(&None));
    }

    #[test]
    fn kinds_do_not_meet() {
        let other = Write::Put {
            row: Row::DeadLetter(DeadLetterRow {
                id: id(1),
                at: StoreTime(0),
            }),
            expect: fencepost_core::machine::Expect::Any,
        };
        let overlay = Overlay::default();
        assert_eq!(overlay.lookup(&Writes::from(vec![other]), &RowKey::Parked(id(1))), None);
    }
}
