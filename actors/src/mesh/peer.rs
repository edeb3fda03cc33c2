//! Calls to one other node, over whatever connection there is to it.
//!
//! Owns: which calls wait, which were sent, and the honest answer when a connection breaks: `NotSent`
//! when nothing of a call left, `NoAnswer` when it may have arrived. Calls keep their order. Must
//! never: send a call twice; who made it decides. Next: `queue.rs`, `link.rs`.

use crate::clock::SharedClock;
use crate::mesh::NodeFacts;
use crate::mesh::body::Body;
use crate::mesh::envelope::{ServiceId, Status};
use crate::mesh::queue::{Item, Pushed, SendQueue};
use fencepost_core::time::Span;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, ready, select};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Why a call brought no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Nothing of it was sent.
    #[error("{0}")]
    NotSent(&'static str),
    /// It may have arrived.
    #[error("{0}")]
    NoAnswer(&'static str),
    /// The other node refused it before anything was done: it has no such service, or not for us.
    #[error("the other node has no such service for this one")]
    NoService,
}

/// One other node.
#[derive(Clone)]
pub struct Peer {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) queue: SendQueue,
    clock: SharedClock,
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    next: u64,
    waiting: BTreeMap<u64, Waiting>,
    /// Who is at the other end, while there is a connection.
    facts: Option<NodeFacts>,
    /// Version of the protocol that was agreed on for it.
    protocol: Option<u16>,
}

struct Waiting {
    is_sent: bool,
    answer: oneshot::Sender<Result<Vec<u8>, CallError>>,
}

impl Peer {
    pub(super) fn new(clock: SharedClock) -> Peer {
        Peer {
            shared: Arc::new(Shared {
                queue: SendQueue::default(),
                clock,
                calls: Mutex::default(),
            }),
        }
    }

    /// Who is at the other end, while there is a connection.
    pub fn facts(&self) -> Option<NodeFacts> {
        self.shared.lock().facts.clone()
    }

    /// Version of the protocol on the connection that there is.
    pub fn protocol(&self) -> Option<u16> {
        self.shared.lock().protocol
    }

    /// Calls a service of the other node. The call takes its place in the queue now; it waits there
    /// for a connection, and for its answer, for `wait` in all.
    pub fn call(
        &self,
        service: ServiceId,
        body: impl Into<Body>,
        wait: Span,
    ) -> BoxFuture<'static, Result<Vec<u8>, CallError>> {
        let shared = self.shared.clone();
        let (answer, answered) = oneshot::channel();
        let id = shared.expect(answer);
        let item = Item::Request {
            id,
            service,
            deadline: shared.clock.mono() + wait,
            body: body.into(),
        };
        let refused = match shared.queue.push(item) {
            Pushed::Waits | Pushed::Shed => None,
            Pushed::Full => Some("too many calls wait for the other node"),
            Pushed::Closed => Some("the connection is closed"),
        };
        if let Some(why) = refused {
            shared.forget(id);
            return ready(Err(CallError::NotSent(why))).boxed();
        }
        async move {
            let guard = Guard { shared: &shared, id };
            match select(answered, shared.clock.sleep(wait)).await {
                Either::Left((Ok(answer), _)) => answer,
                Either::Left((Err(_), _)) => Err(CallError::NoAnswer("the connection is closed")),
                Either::Right(((), _)) => Err(guard.give_up()),
            }
        }
        .boxed()
    }

    /// Sends a hint; false if it was dropped.
    pub fn tell(&self, service: ServiceId, body: Vec<u8>) -> bool {
        let item = Item::Tell { service, body };
        matches!(self.shared.queue.push(item), Pushed::Waits | Pushed::Shed)
    }

    /// Whether it is the same one.
    pub fn is(&self, other: &Peer) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// No more connections to it; calls in flight end.
    pub fn close(&self) {
        self.shared.queue.close();
        self.shared.fail_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expect(&self, answer: oneshot::Sender<Result<Vec<u8>, CallError>>) -> u64 {
        let mut calls = self.lock();
        calls.next += 1;
        let id = calls.next;
        calls.waiting.insert(id, Waiting { is_sent: false, answer });
        id
    }

    fn forget(&self, id: u64) -> Option<Waiting> {
        self.lock().waiting.remove(&id)
    }

    /// Who is there now, and the version of the protocol; nobody once the connection has ended.
    pub(super) fn set_facts(&self, there: Option<(NodeFacts, u16)>) {
        let (facts, protocol) = there.unzip();
        let mut calls = self.lock();
        (calls.facts, calls.protocol) = (facts, protocol);
    }

    /// About to be sent: false if nobody waits for it any more.
    pub(super) fn mark_sent(&self, id: u64) -> bool {
        match self.lock().waiting.get_mut(&id) {
            Some(waiting) => {
                waiting.is_sent = true;
                true
            }
            None => false,
        }
    }

    /// The connection that there is has no form of it.
    pub(super) fn fail_unsaid(&self, id: u64) {
        if let Some(waiting) = self.forget(id) {
            let why = "the other node is of the version before, which has no such call";
            let _ = waiting.answer.send(Err(CallError::NotSent(why)));
        }
    }

    /// An answer came; it changes nothing if nobody waits for it or it was not asked for on this node.
    pub(super) fn on_answer(&self, id: u64, status: Status, body: &[u8]) {
        let waiting = {
            let mut calls = self.lock();
            let is_sent = calls.waiting.get(&id).is_some_and(|waiting| waiting.is_sent);
            is_sent.then(|| calls.waiting.remove(&id)).flatten()
        };
        let Some(waiting) = waiting else { return };
        let _ = waiting.answer.send(match status {
            Status::Done => Ok(body.to_vec()),
            Status::NoService => Err(CallError::NoService),
            Status::Busy => Err(CallError::NotSent("the other node is busy")),
        });
    }

    /// The connection broke: what was sent has no answer; what waits goes over the next one.
    pub(super) fn fail_sent(&self) {
        let mut calls = self.lock();
        let sent: Vec<u64> = calls
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.is_sent)
            .map(|(id, _)| *id)
            .collect();
        for id in sent {
            if let Some(waiting) = calls.waiting.remove(&id) {
                let _ = waiting.answer.send(Err(CallError::NoAnswer("the connection broke")));
            }
        }
    }

    fn fail_all(&self) {
        self.fail_sent();
        for (_, waiting) in std::mem::take(&mut self.lock().waiting) {
            let _ = waiting.answer.send(Err(CallError::NotSent("the connection is closed")));
        }
    }
}

/// Takes a call off the list when its caller stops waiting, however it does.
struct Guard<'a> {
    shared: &'a Shared,
    id: u64,
}

impl Guard<'_> {
    fn give_up(&self) -> CallError {
        match self.shared.forget(self.id) {
            Some(waiting) if !waiting.is_sent => CallError::NotSent("there was no connection in time"),
            _ => CallError::NoAnswer("no answer came in time"),
        }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.shared.forget(self.id);
    }
}
