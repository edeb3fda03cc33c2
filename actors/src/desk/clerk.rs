//! The clerk: a worker beside the node's own that takes no work, and says what nobody else is left to say.
//!
//! Owns: reports that came after their attempt had ended here (F18), and hand-backs for claims that are gone (F14).
//! Both are said until an owner has answered. Must never: ask for work, or say that nothing was begun of what was
//! handed out. Next: `attempt.rs`, `../cluster/near_workers.rs`, `fencepost_core::worker` (`elsewhere.rs`).

use super::{Desk, Key};
use crate::net::rt::spawn;
use crate::node::lanes::start_on;
use crate::targets::{AttemptContext, CancelSignal, CarryRemote, not_claimed};
use crate::worker::{ToWorker, WorkerActor, WorkerParts};
use actix::Addr;
use fencepost_core::ids::{JobId, Token};
use fencepost_core::job::Outcome;
use fencepost_core::lease_manager::io::Recorded;
use fencepost_core::time::Span;
use fencepost_core::worker::WorkerConfig;
use fencepost_core::worker::io::WorkerInput;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use std::sync::{Arc, Weak};
use tokio::sync::{OnceCell, oneshot};

/// The clerk of a desk; it is there once there is something to say.
#[derive(Default)]
pub(super) struct Clerk {
    address: OnceCell<Addr<WorkerActor>>,
}

impl Desk {
    /// Says it until an owner has answered. False if this node is going away.
    pub(super) async fn tell_clerk(self: &Arc<Self>, said: WorkerInput) -> bool {
        let started = self.clerk.address.get_or_try_init(|| async {
            let started = self.start_clerk().await;
            started.ok_or(())
        });
        match started.await {
            Ok(clerk) => clerk.send(ToWorker::Input(said)).await.is_ok(),
            Err(()) => false,
        }
    }

    /// Attempts of claims that are gone go back, unless they were handed out; false if all of them were.
    pub fn give_back(self: &Arc<Self>, mut items: Vec<Key>) -> bool {
        {
            let state = self.state();
            items.retain(|key| !state.attempts.contains_key(key));
        }
        if items.is_empty() {
            return false;
        }
        let desk = self.clone();
        spawn(async move {
            desk.tell_clerk(WorkerInput::NeverBegun { items }).await;
        });
        true
    }

    /// Waits until nothing of the clerk's is unanswered, at the latest for about the span.
    pub(super) async fn drain_clerk(&self, within: Span) {
        let Some(clerk) = self.clerk.address.get() else {
            return;
        };
        let (tell, drained) = oneshot::channel();
        if clerk.send(ToWorker::Drain(within, tell)).await.is_ok() {
            let _ = drained.await;
        }
    }

    async fn start_clerk(self: &Arc<Self>) -> Option<Addr<WorkerActor>> {
        let mut config = WorkerConfig::new(1, self.parts.map);
        config.takes_work = false;
        config.heartbeat = self.parts.heartbeat;
        let answers = Arc::new(Answers(Arc::downgrade(self)));
        let parts = WorkerParts {
            clock: self.parts.clock.clone(),
            runner: self.parts.runner.clone().carrying(answers),
            id: self.parts.worker.clerk(),
            config,
            trust: self.parts.trust.clone(),
            lease: self.parts.lease,
            ways: self.parts.ways.clone(),
        };
        start_on(&self.parts.lane, move || WorkerActor::new(parts)).await
    }
}

/// Hears what the owners say to late reports.
struct Answers(Weak<Desk>);

impl CarryRemote for Answers {
    fn carry(self: Arc<Self>, _: AttemptContext, _: CancelSignal) -> BoxFuture<'static, Outcome> {
        ready(not_claimed()).boxed()
    }

    fn recorded(&self, items: &[(JobId, Token, Recorded)]) {
        let Some(desk) = self.0.upgrade() else { return };
        for (job, token, recorded) in items {
            let attempt = desk.state().attempts.get(&(*job, *token)).cloned();
            if let Some(attempt) = attempt {
                attempt.note_late_recorded(*recorded);
                desk.note_late(attempt.key(), true);
            }
        }
    }
}
