//! The line in front of the commit thread.
//!
//! Owns: what waits, and the one place that knows the store is broken. Must never: drop an item
//! without an answer. Next: `committer.rs`.

use crate::batch::RawWrite;
use crate::store::{Commit, Committed, Open, OpenError, Opened, StoreError};
use fencepost_core::limits::{GROUP_ENOUGH_BYTES, IDLE_LOOK_MS};
use fencepost_core::row::ScopeRow;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot::Sender;

/// One request with the place for its answer.
pub(super) enum Item {
    Open {
        request: Open,
        answer: Sender<Result<Opened, OpenError>>,
    },
    Commit {
        request: Commit,
        answer: Sender<Committed>,
    },
    /// Writes of an offline step, past the rules.
    Repair {
        writes: Vec<RawWrite>,
        scopes: Vec<ScopeRow>,
        answer: std::sync::mpsc::Sender<Committed>,
    },
}

/// Called once, with the reason, when the store breaks; the process must end.
pub(super) type OnBroken = Box<dyn FnOnce(&str) + Send>;

#[derive(Default)]
struct State {
    items: Vec<Item>,
    /// The commit thread sleeps until something is there.
    idle: bool,
    /// It waits for more callers, until so many items are there.
    expected: Option<usize>,
    closed: bool,
    broken: Option<String>,
    on_broken: Option<OnBroken>,
}

pub(super) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
    ended: Condvar,
}

impl Item {
    /// Of its rows.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Item::Open { .. } | Item::Repair { .. } => 0,
            Item::Commit { request, .. } => request.batch.bytes,
        }
    }

    /// For an item that was certainly not applied.
    pub(super) fn refuse(self, why: &str) {
        match self {
            Item::Open { answer, .. } => {
                let _ = answer.send(Err(StoreError::Broken(why.to_owned()).into()));
            }
            Item::Commit { answer, .. } => {
                let _ = answer.send(Committed::Unavailable(why.to_owned()));
            }
            Item::Repair { answer, .. } => {
                let _ = answer.send(Committed::Unavailable(why.to_owned()));
            }
        }
    }
}

impl Queue {
    pub(super) fn new(on_broken: Option<OnBroken>) -> Queue {
        Queue {
            state: Mutex::new(State {
                on_broken,
                ..State::default()
            }),
            filled: Condvar::new(),
            ended: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, item: Item) {
        let mut state = self.lock();
        let refusal = match &state.broken {
            Some(why) => Some(why.clone()),
            None if state.closed => Some("the store has ended".to_owned()),
            None => None,
        };
        match refusal {
            Some(why) => {
                drop(state);
                item.refuse(&why);
            }
            None => {
                state.items.push(item);
                let wake = std::mem::take(&mut state.idle);
                let waiting = state.items.len();
                let complete = state.expected.take_if(|expected| waiting >= *expected).is_some();
                drop(state);
                if wake {
                    self.filled.notify_one();
                }
                if complete {
                    self.ended.notify_all();
                }
            }
        }
    }

    /// Waits for items and takes all that wait; false when the store is closed and nothing waits. It takes none once
    /// nobody came for so long that it is time to look after the folder. While there is little, more may come for as
    /// long as `patience` says, or until as many wait as the last group had: then its callers are back, or others have
    /// taken their place.
    pub(super) fn take(&self, into: &mut Vec<Item>, last: usize, patience: impl FnOnce() -> Duration) -> bool {
        let mut state = self.lock();
        while state.items.is_empty() {
            if state.closed || state.broken.is_some() {
                return false;
            }
            state.idle = true;
            let (back, waited) = self
                .filled
                .wait_timeout(state, Duration::from_millis(IDLE_LOOK_MS))
                .unwrap_or_else(PoisonError::into_inner);
            state = back;
            if waited.timed_out() && state.items.is_empty() {
                return true;
            }
        }
        state.idle = false;
        let bytes = state.items.iter().map(Item::bytes).sum::<usize>();
        let has_enough = bytes >= GROUP_ENOUGH_BYTES || state.items.len() >= last;
        let span = if has_enough { Duration::ZERO } else { patience() };
        if !span.is_zero() {
            state.expected = Some(last);
            let waits = |state: &mut State| state.expected.is_some() && !state.closed && state.broken.is_none();
            let (back, _) = self
                .ended
                .wait_timeout_while(state, span, waits)
                .unwrap_or_else(PoisonError::into_inner);
            state = back;
            state.expected = None;
        }
        std::mem::swap(&mut state.items, into);
        true
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
        self.ended.notify_all();
    }

    /// Why the store is broken, if it is.
    pub(super) fn broken(&self) -> Option<String> {
        self.lock().broken.clone()
    }

    /// From now on nothing is acknowledged; the first call reports it.
    pub(super) fn break_down(&self, why: &str) {
        let mut state = self.lock();
        if state.broken.is_none() {
            state.broken = Some(why.to_owned());
        }
        let report = state.on_broken.take();
        let waiting = std::mem::take(&mut state.items);
        drop(state);
        self.filled.notify_all();
        self.ended.notify_all();
        for item in waiting {
            item.refuse(why);
        }
        if let Some(report) = report {
            tracing::error!(why, "the store is broken");
            report(why);
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test of the engine's own threads")]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    /// Longer than a test may take: whoever waits for it to end hangs.
    const FOREVER: Duration = Duration::from_secs(3_600);

    fn push(queue: &Queue) {
        let (answer, _) = channel();
        queue.push(Item::Repair {
            writes: Vec::new(),
            scopes: Vec::new(),
            answer,
        });
    }

    #[test]
    fn a_group_waits_for_its_last_callers_and_no_longer() {
        let queue = Arc::new(Queue::new(None));
        push(&queue);
        let taker = queue.clone();
        let taken = std::thread::spawn(move || {
            let mut items = Vec::new();
            assert!(taker.take(&mut items, 3, || FOREVER));
            items.len()
        });
        push(&queue);
        assert!(!taken.is_finished(), "two of three are there");
        push(&queue);
        assert_eq!(taken.join().unwrap(), 3);
    }

    #[test]
    fn as_many_as_the_last_group_had_wait_for_nobody() {
        let queue = Queue::new(None);
        let mut items = Vec::new();
        for last in [0, 1, 2] {
            push(&queue);
            push(&queue);
            assert!(queue.take(&mut items, last, || FOREVER));
            assert_eq!(items.drain(..).count(), 2);
        }
    }
}
