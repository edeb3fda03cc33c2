//! What must hold of a coordinator after each step.
//!
//! Owns: assertions only. Next: `mod.rs`, `host/check.rs`.

use super::{Coordinator, Standing};

impl Coordinator {
    /// Panics if it contradicts itself.
    pub fn check(&self) {
        let shards = usize::from(self.config.shards.count());
        assert_eq!(self.rows.len(), shards, "a row for each shard of the map");
        assert_eq!(self.books.len(), shards, "a book for each shard of the map");
        assert!(
            self.pending.is_empty() || matches!(self.standing, Standing::Active(_)),
            "only the one that decides has a batch in flight"
        );
        for (shard, row) in &self.pending {
            let known = self.rows.get(usize::from(*shard)).and_then(Option::as_ref);
            let before = known.map_or(0, |row| row.version);
            let follows = match self.unreadable.contains(shard) {
                true => row.version > before,
                false => row.version == before + 1,
            };
            assert!(follows, "each decision follows the one before it");
        }
    }
}
