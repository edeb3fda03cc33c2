//! What waits to be sent to one node: bounded, shedding the oldest message that may be dropped.
//!
//! Owns: the bound. A call that finds no room is refused at once, so that its caller slows down; an
//! answer always finds room (the calls in work are bounded until their answers are written); a hint makes room by
//! pushing out the oldest hint. Must never: reorder. Next: `peer.rs`, `link.rs`.

use crate::mesh::body::Body;
use crate::mesh::envelope::{ServiceId, Status};
use fencepost_core::limits::{SEND_QUEUE_BYTES_MAX, SEND_QUEUE_FRAMES_MAX};
use fencepost_core::time::Monotonic;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, OwnedSemaphorePermit};

/// One thing to be sent.
#[derive(Debug)]
pub(super) enum Item {
    Request {
        id: u64,
        service: ServiceId,
        deadline: Monotonic,
        body: Body,
    },
    /// Of a call that came over this connection; lets the next call in once it is written.
    Answer {
        link: u64,
        id: u64,
        status: Status,
        body: Vec<u8>,
        _room: Option<OwnedSemaphorePermit>,
    },
    Tell {
        service: ServiceId,
        body: Vec<u8>,
    },
}

impl Item {
    fn bytes(&self) -> usize {
        match self {
            Item::Request { body, .. } => body.len(),
            Item::Answer { body, .. } | Item::Tell { body, .. } => body.len(),
        }
    }

    fn is_droppable(&self) -> bool {
        matches!(self, Item::Tell { .. })
    }
}

/// What became of an item that was to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    Waits,
    /// It waits; the oldest hint went instead.
    Shed,
    Full,
    Closed,
}

#[derive(Default)]
pub(super) struct SendQueue {
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Default)]
struct State {
    items: VecDeque<Item>,
    bytes: usize,
    is_closed: bool,
}

impl State {
    fn has_room(&self, bytes: usize) -> bool {
        self.items.len() < SEND_QUEUE_FRAMES_MAX && self.bytes + bytes <= SEND_QUEUE_BYTES_MAX
    }

    fn shed_oldest(&mut self) -> bool {
        let oldest = self.items.iter().position(Item::is_droppable);
        let gone = oldest.and_then(|at| self.items.remove(at));
        self.bytes -= gone.as_ref().map_or(0, Item::bytes);
        gone.is_some()
    }
}

impl SendQueue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, item: Item) -> Pushed {
        let mut state = self.lock();
        if state.is_closed {
            return Pushed::Closed;
        }
        let mut pushed = Pushed::Waits;
        let always = matches!(item, Item::Answer { .. });
        while !always && !state.has_room(item.bytes()) {
            // A hint must not push out a call; a call may push out hints.
            if !state.shed_oldest() {
                return Pushed::Full;
            }
            pushed = Pushed::Shed;
        }
        state.bytes += item.bytes();
        state.items.push_back(item);
        drop(state);
        self.wake.notify_one();
        pushed
    }

    /// The oldest item, if one waits.
    pub(super) fn pop(&self) -> Option<Item> {
        let mut state = self.lock();
        let item = state.items.pop_front()?;
        state.bytes -= item.bytes();
        Some(item)
    }

    /// Waits until something was pushed or the queue was closed, once for each time.
    pub(super) async fn pushed(&self) {
        self.wake.notified().await;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Takes nothing any more; what waited is gone.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.items.clear();
        state.bytes = 0;
        drop(state);
        self.wake.notify_one();
    }

    /// Drops answers: their callers are gone with the connection.
    pub(super) fn drop_answers(&self) {
        let mut state = self.lock();
        state.items.retain(|item| !matches!(item, Item::Answer { .. }));
        state.bytes = state.items.iter().map(Item::bytes).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tell(number: u8) -> Item {
        Item::Tell {
            service: ServiceId(1),
            body: vec![number],
        }
    }

    fn request(bytes: usize) -> Item {
        Item::Request {
            id: 1,
            service: ServiceId(1),
            deadline: Monotonic(0),
            body: vec![0; bytes].into(),
        }
    }

    #[test]
    fn the_oldest_hint_goes_when_there_is_no_room() {
        let queue = SendQueue::default();
        assert_eq!(queue.push(request(1)), Pushed::Waits);
        for number in 0..SEND_QUEUE_FRAMES_MAX - 1 {
            assert_eq!(queue.push(tell(u8::try_from(number % 251).unwrap())), Pushed::Waits);
        }
        assert_eq!(queue.push(tell(252)), Pushed::Shed);
        assert_eq!(queue.push(request(1)), Pushed::Shed, "a call pushes out a hint");
        assert!(
            matches!(queue.pop(), Some(Item::Request { .. })),
            "calls stay, in order"
        );
        assert!(matches!(queue.pop(), Some(Item::Tell { body, .. }) if body == [2]));
    }

    #[test]
    fn a_call_without_room_is_refused_and_an_answer_never() {
        let queue = SendQueue::default();
        assert_eq!(queue.push(request(SEND_QUEUE_BYTES_MAX)), Pushed::Waits);
        assert_eq!(queue.push(request(1)), Pushed::Full);
        assert_eq!(queue.push(tell(1)), Pushed::Full, "a hint does not push out a call");
        let answer = Item::Answer {
            link: 1,
            id: 1,
            status: Status::Done,
            body: vec![0; 8],
            _room: None,
        };
        assert_eq!(queue.push(answer), Pushed::Waits);
        queue.drop_answers();
        queue.pop();
        assert!(queue.pop().is_none());
        assert_eq!(
            queue.push(request(SEND_QUEUE_BYTES_MAX)),
            Pushed::Waits,
            "all room is back"
        );
        queue.close();
        assert_eq!(queue.push(tell(1)), Pushed::Closed);
    }
}
