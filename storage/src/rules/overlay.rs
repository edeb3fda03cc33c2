//! The writes of a group so far, by key: a small open-addressed table that can be undone.
//!
//! Owns: its own hashing, so that order and cost are the same in every run. Must never: be iterated
//! in hash order. Next: `mod.rs`.

use crate::store::Bytes;

/// Later writes of a key shadow earlier ones; an undo forgets everything after a mark.
#[derive(Default)]
pub(super) struct Overlay {
    entries: Vec<Entry>,
    /// Index into `entries` plus one; zero is free. A power of two, at most half full.
    table: Vec<u32>,
}

struct Entry {
    hash: u64,
    key: Bytes,
    value: Option<Bytes>,
    /// The entry that this one shadows, plus one; zero for none.
    before: u32,
}

/// How many writes there were.
#[derive(Clone, Copy)]
pub(super) struct Mark(usize);

impl Overlay {
    pub(super) fn mark(&self) -> Mark {
        Mark(self.entries.len())
    }

    /// The newest write of `key`: `Some(None)` for a delete, `None` for no write at all.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<&Bytes>> {
        if self.entries.is_empty() {
            return None;
        }
        let place = self.place(hash(key), key);
        let index = *self.table.get(place)?;
        let entry = self.entries.get(usize::try_from(index).ok()?.checked_sub(1)?)?;
        Some(entry.value.as_ref())
    }

    pub(super) fn insert(&mut self, key: Bytes, value: Option<Bytes>) {
        if self.entries.len() * 2 >= self.table.len() {
            self.grow();
        }
        let hash = hash(&key);
        let place = self.place(hash, &key);
        let index = u32::try_from(self.entries.len() + 1).expect("a group holds far fewer writes than 2^32");
        if let Some(slot) = self.table.get_mut(place) {
            let before = std::mem::replace(slot, index);
            self.entries.push(Entry {
                hash,
                key,
                value,
                before,
            });
        }
    }

    /// Forgets the writes after the mark. What a forgotten entry shadowed is seen again; a freed
    /// slot never breaks a probe, because entries leave in the reverse order of their coming.
    pub(super) fn undo(&mut self, mark: Mark) {
        while self.entries.len() > mark.0 {
            let Some(last) = self.entries.last() else {
                return;
            };
            let place = self.place(last.hash, &last.key);
            let before = last.before;
            if let Some(slot) = self.table.get_mut(place) {
                *slot = before;
            }
            self.entries.pop();
        }
    }

    /// Where `key` stands or would stand.
    fn place(&self, hash: u64, key: &[u8]) -> usize {
        let mask = self.table.len() - 1;
        let mut place = usize::try_from(hash >> 20).unwrap_or(0) & mask;
        while let Some(index) = self.table.get(place).copied().filter(|index| *index != 0) {
            let is_it = usize::try_from(index - 1)
                .ok()
                .and_then(|index| self.entries.get(index))
                .is_some_and(|entry| entry.hash == hash && *entry.key == *key);
            if is_it {
                break;
            }
            place = (place + 1) & mask;
        }
        place
    }

    fn grow(&mut self) {
        let size = (self.table.len() * 2).max(64);
        self.table.clear();
        self.table.resize(size, 0);
        for index in 0..self.entries.len() {
            let Some(entry) = self.entries.get(index) else {
                return;
            };
            let place = self.place(entry.hash, &entry.key);
            let next = u32::try_from(index + 1).unwrap_or(0);
            if let Some(slot) = self.table.get_mut(place) {
                *slot = next;
            }
        }
    }
}

/// Eight bytes at a time, multiply and fold; not for secrets.
fn hash(key: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = (key.len() as u64).wrapping_mul(MULTIPLIER);
    let mut chunks = key.chunks_exact(8);
    for chunk in &mut chunks {
        let word = chunk.try_into().map_or(0, u64::from_le_bytes);
        state = (state ^ word).wrapping_mul(MULTIPLIER);
        state ^= state >> 29;
    }
    for byte in chunks.remainder() {
        state = (state ^ u64::from(*byte)).wrapping_mul(MULTIPLIER);
    }
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn it_is_a_map_that_can_be_undone(
            kept in prop::collection::vec((0_u8..40, any::<Option<u8>>()), 0..200),
            undone in prop::collection::vec((0_u8..80, any::<Option<u8>>()), 0..200),
        ) {
            let mut overlay = Overlay::default();
            let mut map = BTreeMap::new();
            let bytes = |byte: u8| Bytes::from(vec![byte; 1 + usize::from(byte % 11)]);
            for (key, value) in kept {
                overlay.insert(bytes(key), value.map(bytes));
                map.insert(bytes(key), value.map(bytes));
            }
            let mark = overlay.mark();
            for (key, value) in undone {
                overlay.insert(bytes(key), value.map(bytes));
                let value = value.map(bytes);
                prop_assert_eq!(overlay.get(&bytes(key)), Some(value.as_ref()));
            }
            overlay.undo(mark);
            for key in 0..80 {
                let expected = map.get(&bytes(key)).map(Option::as_ref);
                prop_assert_eq!(overlay.get(&bytes(key)), expected);
            }
        }
    }
}
