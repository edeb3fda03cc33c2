//! Runs that have ended, on their way to the worker's actor in groups.
//!
//! Owns: the line between the runs and the actor, both on one thread. Ends do not go through the actor's
//! mailbox: ten thousand runs that end at once would fill it, and what shards send would be refused.
//! Must never: lose an outcome. At most one for each slot waits here. Next: `actor.rs`.

use fencepost_core::ids::{JobId, Token};
use fencepost_core::job::Outcome;
use fencepost_core::limits::OUTCOME_ITEMS_MAX;
use futures_util::stream::{Stream, unfold};
use std::cell::RefCell;
use std::rc::Rc;
use tokio::sync::Notify;

/// A run's end.
pub type End = (JobId, Token, Outcome);

/// Runs that ended together, `OUTCOME_ITEMS_MAX` at most.
pub struct Ends(pub Vec<End>);

/// The line; clones share it.
#[derive(Clone, Default)]
pub struct EndedRuns(Rc<Line>);

#[derive(Default)]
struct Line {
    waiting: RefCell<Vec<End>>,
    filled: Notify,
}

impl EndedRuns {
    /// Takes the end of a run.
    pub fn push(&self, end: End) {
        let mut waiting = self.0.waiting.borrow_mut();
        waiting.push(end);
        if waiting.len() == 1 {
            self.0.filled.notify_one();
        }
    }

    /// What has gathered, group by group; it never ends.
    pub fn groups(&self) -> impl Stream<Item = Ends> + use<> {
        unfold(self.clone(), |line| async move {
            loop {
                if let Some(ends) = line.take() {
                    return Some((ends, line));
                }
                line.0.filled.notified().await;
            }
        })
    }

    fn take(&self) -> Option<Ends> {
        let mut waiting = self.0.waiting.borrow_mut();
        let count = waiting.len().min(OUTCOME_ITEMS_MAX);
        (count > 0).then(|| Ends(waiting.drain(..count).collect()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use fencepost_core::ids::Slot;
    use fencepost_core::job::Verdict;
    use futures_util::{FutureExt as _, StreamExt as _};
    use std::sync::Arc;

    fn end(n: usize) -> End {
        let mut drawn = [0; 14];
        drawn.iter_mut().zip(n.to_be_bytes()).for_each(|(to, from)| *to = from);
        let outcome = Outcome {
            verdict: Verdict::Succeeded,
            error: None,
            output: Arc::from([].as_slice()),
        };
        (JobId::fresh(Slot::new(0).unwrap(), drawn), Token::default(), outcome)
    }

    #[test]
    fn what_ends_together_is_taken_together_in_order_and_in_bounded_groups() {
        let ended = EndedRuns::default();
        let mut groups = Box::pin(ended.groups());
        assert!(groups.next().now_or_never().is_none(), "nothing has ended");
        let count = OUTCOME_ITEMS_MAX + 3;
        (0..count).for_each(|n| ended.push(end(n)));
        let mut taken = Vec::new();
        for expected in [OUTCOME_ITEMS_MAX, 3] {
            let Ends(group) = groups.next().now_or_never().unwrap().unwrap();
            assert_eq!(group.len(), expected);
            taken.extend(group.into_iter().map(|(id, ..)| id));
        }
        assert!(taken.iter().eq((0..count).map(|n| end(n).0).collect::<Vec<_>>().iter()));
        assert!(groups.next().now_or_never().is_none());
        ended.push(end(0));
        assert_eq!(groups.next().now_or_never().unwrap().unwrap().0.len(), 1);
    }
}
