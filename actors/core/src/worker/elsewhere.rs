//! What was done, or never begun, outside of this worker, and nobody else is left to say.
//!
//! Owns: taking such words in. From there on they are as a worker's own: said until an owner has answered (F14, F18).
//! Must never: hold a lease for them. Next: `outcomes.rs`.

use super::WorkerMachine;
use super::book::{Done, Key};
use super::drain::Stage;
use super::io::WorkerEffect;
use crate::ids::{JobId, ShardId, Token};
use crate::job::Outcome;
use crate::time::Monotonic;
use std::collections::{BTreeMap, BTreeSet};

impl WorkerMachine {
    pub(super) fn on_came_late(
        &mut self,
        now: Monotonic,
        items: Vec<(JobId, Token, Outcome)>,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let mut touched = BTreeSet::new();
        for (id, token, outcome) in items {
            let (shard, key) = (self.shard_of(id), (id, token));
            let Some(book) = self.book_mut(shard).filter(|book| !book.knows(&key)) else {
                continue;
            };
            let (held, sent_at) = (false, None);
            book.done.insert(key, Done { outcome, held, sent_at });
            if !book.unsent.contains(&key) {
                book.unsent.push_back(key);
            }
            self.unrecorded += 1;
            touched.insert(shard);
        }
        self.begin_anew();
        for shard in touched {
            self.send_outcomes_soon(now, shard, effects);
        }
    }

    pub(super) fn on_never_begun(&mut self, now: Monotonic, items: Vec<Key>, effects: &mut Vec<WorkerEffect>) {
        let mut back: BTreeMap<ShardId, Vec<Key>> = BTreeMap::new();
        for key in items {
            let shard = self.shard_of(key.0);
            if self.book_mut(shard).is_some_and(|book| !book.knows(&key)) {
                back.entry(shard).or_default().push(key);
            }
        }
        self.begin_anew();
        for (shard, keys) in back {
            self.hand_back(now, shard, keys, effects);
        }
    }

    /// One that was drained may have something left again.
    fn begin_anew(&mut self) {
        if self.stage == Stage::Drained {
            self.stage = Stage::Draining;
        }
    }
}
