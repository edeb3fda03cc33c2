//! The ShardLog: numbers batches, merges steps while commits are in flight, holds effects back.
//!
//! Owns: the order "durable before visible" (PROTOCOL F2, F3). Must never: do IO or know a machine.
//! A batch gets its number when it is sealed and keeps its bytes until the store has answered for
//! good. Next: `overlay.rs`, `shard_actor.rs`.

use crate::shell::writes::Writes;
use fencepost_core::ids::BatchNo;
use fencepost_core::limits::{BATCH_BYTES_MAX, BATCH_WRITES_MAX};
use fencepost_core::machine::Write;
use std::collections::VecDeque;
use std::rc::Rc;

/// Writes of one or more steps under one number.
#[derive(Debug)]
pub struct Sealed {
    /// Number within the epoch.
    pub number: BatchNo,
    /// Rows.
    pub writes: Writes,
}

/// Batches and held-back effects of one epoch.
#[derive(Debug)]
pub struct CommitLog<E> {
    next: BatchNo,
    building: Writes,
    sealed: VecDeque<Rc<Sealed>>,
    durable: BatchNo,
    held: VecDeque<(BatchNo, Vec<E>)>,
}

impl<E> CommitLog<E> {
    /// The log of a freshly opened epoch: nothing is committed in it yet.
    pub fn new() -> CommitLog<E> {
        CommitLog::after(BatchNo(0))
    }

    /// The log of an epoch in which batches up to this one are durable.
    pub fn after(durable: BatchNo) -> CommitLog<E> {
        CommitLog {
            next: BatchNo(durable.0 + 1),
            building: Writes::default(),
            sealed: VecDeque::new(),
            durable,
            held: VecDeque::new(),
        }
    }

    /// Takes a step's writes and effects. Returns the effects that may be released at once: all of
    /// them when nothing stamped is waiting, none otherwise.
    pub fn stamp(&mut self, writes: Vec<Write>, effects: Vec<E>) -> Vec<E> {
        self.building.append(writes);
        let after = self.stamped();
        if self.building.len() >= BATCH_WRITES_MAX || self.building.bytes() >= BATCH_BYTES_MAX {
            self.seal();
        }
        if after == self.durable {
            return effects;
        }
        if !effects.is_empty() {
            match self.held.back_mut() {
                Some((number, held)) if *number == after => held.extend(effects),
                _ => self.held.push_back((after, effects)),
            }
        }
        Vec::new()
    }

    /// The batch to commit after the first `sent` ones, which are on their way: seals what was merged
    /// meanwhile. The caller commits it and answers with `durable`, in order, or ends.
    pub fn next_to_commit(&mut self, sent: usize) -> Option<Rc<Sealed>> {
        if self.sealed.len() <= sent {
            self.seal();
        }
        self.sealed.get(sent).cloned()
    }

    /// Batch `number` is durable: returns the effects that waited for it.
    pub fn durable(&mut self, number: BatchNo) -> Vec<E> {
        let front = self.sealed.pop_front();
        assert!(
            front.is_some_and(|batch| batch.number == number),
            "commits are answered in order"
        );
        self.durable = number;
        let mut released = Vec::new();
        while self.held.front().is_some_and(|(after, _)| *after <= number) {
            released.extend(self.held.pop_front().into_iter().flat_map(|(_, effects)| effects));
        }
        released
    }

    /// Releases everything that is held back: a planted bug.
    #[cfg(madsim)]
    pub fn release_all(&mut self) -> Vec<E> {
        self.held.drain(..).flat_map(|(_, effects)| effects).collect()
    }

    /// Takes a write that no caller waits for (a quarantine).
    pub fn stamp_quiet(&mut self, write: Write) {
        self.building.push(write);
    }

    /// Sealed batches, oldest first.
    pub fn sealed(&self) -> impl Iterator<Item = &Rc<Sealed>> {
        self.sealed.iter()
    }

    /// The last batch that holds a stamped write, durable or not: what an answer must wait for.
    pub fn stamped(&self) -> BatchNo {
        match (self.building.is_empty(), self.sealed.back()) {
            (false, _) => self.next,
            (true, Some(last)) => last.number,
            (true, None) => self.durable,
        }
    }

    /// Writes stamped but not sealed yet.
    pub fn building(&self) -> &Writes {
        &self.building
    }

    /// Whether nothing is stamped and not durable.
    pub fn is_idle(&self) -> bool {
        self.building.is_empty() && self.sealed.is_empty()
    }

    /// Row writes stamped and not durable: what back-pressure looks at.
    pub fn backlog(&self) -> usize {
        self.building.len() + self.sealed.iter().map(|batch| batch.writes.len()).sum::<usize>()
    }

    /// Bytes stamped and not durable.
    pub fn backlog_bytes(&self) -> usize {
        self.building.bytes() + self.sealed.iter().map(|batch| batch.writes.bytes()).sum::<usize>()
    }

    fn seal(&mut self) {
        if self.building.is_empty() {
            return;
        }
        self.sealed.push_back(Rc::new(Sealed {
            number: self.next,
            writes: std::mem::take(&mut self.building),
        }));
        self.next = BatchNo(self.next.0 + 1);
    }
}

impl<E> Default for CommitLog<E> {
    fn default() -> CommitLog<E> {
        CommitLog::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_core::row::RowKey;

    fn write() -> Vec<Write> {
        vec![Write::Delete(RowKey::Cell)]
    }

    #[test]
    fn f03_an_answer_that_wrote_nothing_waits_for_the_batch_it_read() {
        let mut log = CommitLog::new();
        assert!(log.stamp(write(), vec!["created"]).is_empty());
        let first = log.next_to_commit(0).unwrap();
        assert!(
            log.stamp(Vec::new(), vec!["replay"]).is_empty(),
            "it read what is in flight"
        );
        assert_eq!(log.durable(first.number), ["created", "replay"]);
        assert_eq!(log.stamp(Vec::new(), vec!["free"]), ["free"]);
    }

    #[test]
    fn f02_a_batch_keeps_its_number_and_bytes_until_it_is_settled() {
        let mut log = CommitLog::new();
        log.stamp(write(), vec![1]);
        let first = log.next_to_commit(0).unwrap();
        log.stamp(write(), vec![2]);
        let again = log.next_to_commit(0).unwrap();
        assert!(
            Rc::ptr_eq(&first, &again),
            "unknown is settled by sending the same bytes again"
        );
        assert_eq!(log.durable(first.number), [1]);
        let second = log.next_to_commit(0).unwrap();
        assert_eq!(second.number, BatchNo(2));
        assert_eq!(log.durable(second.number), [2]);
        assert!(log.is_idle());
    }

    #[test]
    fn effects_keep_their_order_over_batches() {
        let mut log = CommitLog::new();
        log.stamp(write(), vec![1]);
        let first = log.next_to_commit(0).unwrap();
        log.stamp(write(), vec![2]);
        log.stamp(Vec::new(), vec![3]);
        assert_eq!(log.durable(first.number), [1]);
        let second = log.next_to_commit(0).unwrap();
        assert_eq!(log.durable(second.number), [2, 3]);
    }

    #[test]
    fn f33_a_batch_is_closed_by_its_bytes_too() {
        let big = |len: usize| Write::Put {
            row: fencepost_core::row::Row::Quarantine(Box::new(fencepost_core::row::QuarantineRow {
                shard: fencepost_core::ids::ShardId(0),
                key: std::sync::Arc::from([1].as_slice()),
                reason: "x".repeat(len).into(),
                at: fencepost_core::time::StoreTime(0),
                deaths: 0,
            })),
            expect: fencepost_core::machine::Expect::Any,
        };
        let mut log = CommitLog::new();
        let quarter = BATCH_BYTES_MAX / 4;
        for step in 0..9 {
            log.stamp(vec![big(quarter)], vec![step]);
        }
        assert_eq!(log.sealed().count(), 2, "four of nine each, one is still gathered");
        assert!(log.sealed().all(|batch| batch.writes.len() == 4));
        assert!(log.backlog_bytes() > 9 * quarter, "back-pressure sees the bytes");
        let first = log.next_to_commit(0).unwrap();
        assert_eq!(log.durable(first.number), [0, 1, 2, 3]);
        assert!(log.backlog_bytes() < 6 * quarter);
    }
}
