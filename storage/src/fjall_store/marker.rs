//! The second step of a large group's commit: the high-water mark, then the answers.
//!
//! Owns: a thread of its own, so that the next group's journal write runs beside this group's mark.
//! It takes all groups that wait and writes the highest mark once. Small groups do not come here: their
//! mark comes first, with their rows. Must never: answer before the mark is durable. Next: `mark.rs`,
//! `committer.rs`.

use super::mark::{Mark, MarkFile};
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
    pub(super) file: Arc<Mutex<MarkFile>>,
    /// The highest acknowledged mark, for all to see.
    pub(super) durable: Arc<Mutex<Mark>>,
    pub(super) queue: Arc<Queue>,
}

impl Marker {
    pub(super) fn run(mut self, synced: &Receiver<Synced>) {
        let _guard = PanicGuard(self.queue.clone(), "the marker thread panicked");
        let mut answers = Vec::new();
        while let Ok(first) = synced.recv() {
            let mut mark = first.mark;
            answers.extend(first.answers);
            while let Ok(next) = synced.try_recv() {
                mark = next.mark;
                answers.extend(next.answers);
            }
            self.settle(mark, &mut answers);
        }
    }

    fn settle(&mut self, mark: Mark, answers: &mut Vec<Answer>) {
        let broken = match self.queue.broken() {
            Some(why) => Some(why),
            None => self.advance(mark).err(),
        };
        match broken {
            None => answers.drain(..).for_each(Answer::give),
            Some(why) => {
                self.queue.break_down(&why);
                answers.drain(..).for_each(|answer| answer.give_unknown(&why));
            }
        }
    }

    fn advance(&mut self, mark: Mark) -> Result<(), String> {
        super::locked(&self.file)
            .write(&mark.alone())
            .map_err(|error| format!("the high-water mark cannot be written: {error}"))?;
        let mut durable = super::locked(&self.durable);
        if mark.sequence > durable.sequence {
            *durable = mark;
        }
        Ok(())
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
