//! Row writes in the order they were stamped, found by key.
//!
//! Owns: an index that is made only when someone looks, and then only for what came since. Must
//! never: lose the newest write of a key. Next: `log.rs`, `overlay.rs`.

use fencepost_core::machine::Write;
use fencepost_core::row::Row;
use fencepost_storage::keys::{KeyRange, key_bytes};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Writes of one batch.
#[derive(Debug, Default)]
pub struct Writes {
    list: Vec<Write>,
    /// What they weigh.
    bytes: usize,
    index: RefCell<Index>,
}

/// The place of each key's newest write, for the first `done` writes.
#[derive(Debug, Default)]
struct Index {
    done: usize,
    places: BTreeMap<Vec<u8>, usize>,
}

impl Writes {
    /// Takes one more.
    pub fn push(&mut self, write: Write) {
        self.bytes += write.weight();
        self.list.push(write);
    }

    /// Takes more, in order.
    pub fn append(&mut self, mut writes: Vec<Write>) {
        self.bytes += writes.iter().map(Write::weight).sum::<usize>();
        if self.list.is_empty() {
            self.list = writes;
        } else {
            self.list.append(&mut writes);
        }
    }

    /// All, in order.
    pub fn as_slice(&self) -> &[Write] {
        &self.list
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Bytes of their rows, roughly.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// What they say about `key`: `None` is nothing, `Some(None)` deleted.
    pub fn lookup(&self, key: &[u8]) -> Option<Option<&Row>> {
        if self.list.is_empty() {
            return None;
        }
        self.bring_up_to_date();
        let place = self.index.borrow().places.get(key).copied()?;
        self.list.get(place).map(row_in)
    }

    /// What they say about the keys in `range`, laid over what `found` says already.
    pub fn lay_range<'a>(&'a self, range: &KeyRange, found: &mut BTreeMap<Vec<u8>, Option<&'a Row>>) {
        if self.list.is_empty() {
            return;
        }
        self.bring_up_to_date();
        let index = self.index.borrow();
        for (key, place) in index.places.range(range.from.clone()..range.to.clone()) {
            if let Some(write) = self.list.get(*place) {
                found.insert(key.clone(), row_in(write));
            }
        }
    }

    fn bring_up_to_date(&self) {
        let mut index = self.index.borrow_mut();
        for (place, write) in self.list.iter().enumerate().skip(index.done) {
            index.places.insert(bytes_of(write), place);
        }
        index.done = self.list.len();
    }
}

impl From<Vec<Write>> for Writes {
    fn from(list: Vec<Write>) -> Writes {
        let mut writes = Writes::default();
        writes.append(list);
        writes
    }
}

/// The key a write names, as stored.
fn bytes_of(write: &Write) -> Vec<u8> {
    match write {
        Write::Put { row, .. } => key_bytes(&row.key()),
        Write::Delete(key) => key_bytes(key),
    }
}

fn row_in(write: &Write) -> Option<&Row> {
    match write {
        Write::Put { row, .. } => Some(row),
        Write::Delete(_) => None,
    }
}
