//! The second step of a group commit: the high-water mark, then the answers.
//!
//! Owns: a thread of its own. A small group's mark comes with its rows and is written beside its journal
//! entry; a large one's follows it, beside the next group's entry. It takes all that waits and writes the
//! highest mark once. Must never: answer before both the journal entry and the mark are durable. Next:
//! `mark.rs`, `redo.rs`, `committer.rs`.

use super::mark::{Mark, MarkFile, MarkSlot};
use super::queue::Queue;
use crate::store::{Committed, OpenError, Opened, StoreError};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot::Sender;

/// An answer that waits for its mark.
pub(super) enum Answer {
    Open(Sender<Result<Opened, OpenError>>, Result<Opened, OpenError>),
    Commit(Sender<Committed>, Committed),
    Repair(std::sync::mpsc::Sender<Committed>, Committed),
}

/// What the commit thread tells.
pub(super) enum ToMarker {
    /// A group is on its way into the journal; everything before it is synced there.
    Prepared(MarkSlot),
    /// A group is synced in the journal.
    Synced(Synced),
}

/// A synced group.
pub(super) struct Synced {
    pub(super) mark: Mark,
    pub(super) answers: Vec<Answer>,
}

impl Answer {
    pub(super) fn give(self) {
        match self {
            Answer::Open(sender, answer) => {
                let _ = sender.send(answer);
            }
            Answer::Commit(sender, answer) => {
                let _ = sender.send(answer);
            }
            Answer::Repair(sender, answer) => {
                let _ = sender.send(answer);
            }
        }
    }

    /// What became of it is not known any more.
    pub(super) fn give_unknown(self, why: &str) {
        match self {
            Answer::Open(sender, _) => {
                let _ = sender.send(Err(StoreError::Broken(why.to_owned()).into()));
            }
            Answer::Commit(sender, _) => {
                let _ = sender.send(Committed::Unknown(why.to_owned()));
            }
            Answer::Repair(sender, _) => {
                let _ = sender.send(Committed::Unknown(why.to_owned()));
            }
        }
    }
}

pub(super) struct Marker {
    pub(super) file: MarkFile,
    /// The highest mark in the file.
    pub(super) written: u64,
    /// The last group whose journal entry and mark are durable, for all to see.
    pub(super) durable: Arc<Mutex<Mark>>,
    pub(super) queue: Arc<Queue>,
    #[cfg(any(test, feature = "planted"))]
    pub(super) planted: super::PlantedFaults,
}

impl Marker {
    pub(super) fn run(mut self, told: &Receiver<ToMarker>) {
        let _guard = PanicGuard(self.queue.clone(), "the marker thread panicked");
        while let Ok(first) = told.recv() {
            let (mut slot, mut groups) = (None, Vec::new());
            for message in std::iter::once(first).chain(told.try_iter()) {
                match message {
                    ToMarker::Prepared(next) => slot = Some(next),
                    ToMarker::Synced(group) => groups.push(group),
                }
            }
            // What is marked already need not wait for the mark of the next group.
            let ready = groups
                .iter()
                .take_while(|group| group.mark.sequence <= self.written)
                .count();
            groups.drain(..ready).for_each(|group| self.settle(group));
            let newest = groups.last().map(|group| group.mark);
            let behind = newest.filter(|mark| slot.as_ref().is_none_or(|slot| slot.mark.sequence < mark.sequence));
            let slot = behind.map(Mark::alone).or(slot);
            if let Some(slot) = slot
                && let Err(why) = self.advance(&slot)
            {
                self.queue.break_down(&why);
            }
            groups.into_iter().for_each(|group| self.settle(group));
        }
    }

    fn settle(&mut self, group: Synced) {
        match self.queue.broken() {
            None => {
                *super::locked(&self.durable) = group.mark;
                group.answers.into_iter().for_each(Answer::give);
            }
            Some(why) => group.answers.into_iter().for_each(|answer| answer.give_unknown(&why)),
        }
    }

    fn advance(&mut self, slot: &MarkSlot) -> Result<(), String> {
        if slot.mark.sequence <= self.written || self.queue.broken().is_some() {
            return Ok(());
        }
        self.write(slot)
            .map_err(|error| format!("the high-water mark cannot be written: {error}"))?;
        self.written = slot.mark.sequence;
        Ok(())
    }

    fn write(&mut self, slot: &MarkSlot) -> std::io::Result<()> {
        #[cfg(any(test, feature = "planted"))]
        {
            if self.planted.without_mark || self.planted.answer_before_sync {
                return Ok(());
            }
            if self.planted.fail_mark_at.is_some_and(|at| slot.mark.sequence >= at) {
                return Err(std::io::Error::other("planted fault"));
            }
        }
        self.file.write(slot)
    }
}

/// A thread that panics breaks the store: nothing is acknowledged by a silent rest.
pub(super) struct PanicGuard(pub(super) Arc<Queue>, pub(super) &'static str);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.break_down(self.1);
        }
    }
}
