//! A claim: a short-lived worker with as many slots as were asked for.
//!
//! Owns: waiting for attempts, and the promise that the same claim is answered with the same attempts (F14). Must
//! never: take more once it is answered. What comes later goes back by the rules of a worker that drains. Next:
//! `attempt.rs`, `../worker/actor.rs`.

use super::Desk;
use super::attempt::Attempt;
use crate::net::rt::spawn;
use crate::node::lanes::start_on;
use crate::targets::{AttemptContext, CancelSignal, CarryRemote, not_claimed};
use crate::watched::Watched;
use crate::worker::{ToWorker, WorkerActor, WorkerParts};
use actix::Addr;
use fencepost_core::ids::{JobId, Token, WorkerId};
use fencepost_core::job::Outcome;
use fencepost_core::lease_manager::io::Recorded;
use fencepost_core::limits::{CLAIM_GATHER_MS, CLAIM_MS_MAX, CLAIM_WAIT_MS_MIN, CLAIMS_OPEN_MAX, REPORTS_KEPT_MAX};
use fencepost_core::name::Name;
use fencepost_core::refusal::{Refusal, RefusalKind};
use fencepost_core::time::Span;
use fencepost_core::worker::WorkerConfig;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready, select};
use std::pin::pin;
use std::sync::{Arc, OnceLock, Weak};
use tokio::sync::oneshot;

/// Which claim: the worker's name and its own number for it.
pub(super) type Id = (Name, Arc<str>);

/// What a worker asks for.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Who.
    pub worker: Name,
    /// The worker's number for this claim; the same number gets the same attempts.
    pub claim: Arc<str>,
    /// From these queues, at least one.
    pub queues: Vec<Name>,
    /// At most so many.
    pub count: u32,
    /// Waits so long while there is nothing.
    pub wait: Span,
}

/// An attempt for a worker.
#[derive(Clone, Debug)]
pub struct Handed {
    /// To be sent back with each word about it.
    pub grant: String,
    /// What to do.
    pub context: AttemptContext,
    /// It is the worker's for this long from now; each heartbeat says it anew.
    pub left: Span,
}

/// One claim.
pub(super) struct Claim {
    id: Id,
    count: usize,
    desk: Weak<Desk>,
    address: OnceLock<Addr<WorkerActor>>,
    state: Watched<State>,
}

#[derive(Default)]
struct State {
    attempts: Vec<Arc<Attempt>>,
    /// How many calls wait for the answer.
    callers: usize,
    /// Nobody waits any more: it is answered with what it has.
    abandoned: bool,
    /// Takes nothing more.
    answered: bool,
    /// Nothing of it is left.
    gone: bool,
}

impl Desk {
    /// Attempts for a worker, as soon as there are any; none if nothing came in time.
    ///
    /// # Errors
    /// The node drains, or too many claims are open.
    pub async fn claim(self: &Arc<Self>, ask: Ask) -> Result<Vec<Handed>, Refusal> {
        let (claim, is_new) = self.open_claim(&ask)?;
        let call = Call::of(&claim);
        if is_new {
            spawn(serve(self.clone(), claim.clone(), ask.clone()));
        }
        claim.state.wait_until(|state| state.answered).await;
        call.note_answered();
        let handed = claim
            .state
            .lock()
            .attempts
            .iter()
            .filter_map(|attempt| self.hand(&ask.worker, attempt))
            .collect();
        Ok(handed)
    }

    fn hand(&self, worker: &Name, attempt: &Attempt) -> Option<Handed> {
        Some(Handed {
            left: attempt.left()?,
            grant: self.seal.close(worker, &attempt.grant),
            context: attempt.context.clone()?,
        })
    }

    /// The claim of this number, and whether it is new.
    fn open_claim(self: &Arc<Self>, ask: &Ask) -> Result<(Arc<Claim>, bool), Refusal> {
        let id = (ask.worker.clone(), ask.claim.clone());
        let mut state = self.state();
        if let Some(claim) = state.claims.get(&id) {
            return Ok((claim.clone(), false));
        }
        if state.draining {
            return Err(away(
                "The server is shutting down.",
                "Claim from another server, or later.",
            ));
        }
        if state.claims.len() >= CLAIMS_OPEN_MAX {
            let detail = format!("{CLAIMS_OPEN_MAX} claims are open here already.");
            return Err(away(
                &detail,
                "Claim more attempts at once with fewer claims, or try again later.",
            ));
        }
        if state.ended.is_full() {
            let detail = format!("{REPORTS_KEPT_MAX} attempts have ended here and are not recorded yet.");
            return Err(away(
                &detail,
                "Send the reports again, and claim when they are recorded.",
            ));
        }
        let claim = Arc::new(Claim {
            id: id.clone(),
            count: ask.count as usize,
            desk: Arc::downgrade(self),
            address: OnceLock::new(),
            state: Watched::default(),
        });
        state.claims.insert(id, claim.clone());
        Ok((claim, true))
    }

    async fn start_worker(&self, claim: &Arc<Claim>, ask: &Ask) -> Option<(Addr<WorkerActor>, WorkerId)> {
        let number = {
            let mut state = self.state();
            state.claims_made += 1;
            state.claims_made
        };
        let id = self.parts.worker.beside(number);
        let mut config = WorkerConfig::new(ask.count, self.parts.map);
        config.queues = ask.queues.iter().map(Name::remote_line).collect();
        config.heartbeat = self.parts.heartbeat;
        config.lease_margin = self.lease_margin();
        let parts = WorkerParts {
            clock: self.parts.clock.clone(),
            runner: self.parts.runner.clone().carrying(claim.clone()),
            id: id.clone(),
            config,
            trust: self.parts.trust.clone(),
            lease: self.parts.lease,
            ways: self.parts.ways.clone(),
        };
        let address = start_on(&self.parts.lane, move || WorkerActor::new(parts)).await?;
        Some((address, id))
    }
}

fn away(detail: &str, hint: &str) -> Refusal {
    Refusal::new(RefusalKind::Unavailable, "claims_unavailable", detail, hint)
}

/// The life of a claim, from its first offer until the last of its attempts is recorded.
async fn serve(desk: Arc<Desk>, claim: Arc<Claim>, ask: Ask) {
    if let Some((address, id)) = desk.start_worker(&claim, &ask).await {
        let _ = claim.address.set(address.clone());
        claim.gather(&desk, ask.wait).await;
        let (tell, drained) = oneshot::channel();
        // From when this is handled on, nothing starts any more: what the claim has now is the answer.
        let _ = address
            .send(ToWorker::Drain(Span::from_millis(CLAIM_MS_MAX), tell))
            .await;
        let unwanted = claim.answer();
        for attempt in unwanted {
            let _ = attempt.release().await;
        }
        let _ = drained.await;
        // Nothing is left to be told: what is not recorded by now never will be.
        let attempts = claim.state.lock().attempts.clone();
        for attempt in attempts {
            desk.note_recorded(attempt.key(), Recorded::Stale);
        }
        desk.parts.ways.part(&id).await;
        let _ = address.send(ToWorker::Stop).await;
        // What it still said in between has brought the way back to it along.
        desk.parts.ways.part_here(&id).await;
    } else {
        claim.answer();
    }
    desk.state().claims.remove(&claim.id);
    claim.state.change(|state| state.gone = true);
}

impl Claim {
    /// Waits until there is something, and a little longer for more.
    async fn gather(&self, desk: &Desk, wait: Span) {
        let any = self
            .state
            .wait_until(|state| !state.attempts.is_empty() || state.abandoned);
        let wait = wait.max(Span::from_millis(CLAIM_WAIT_MS_MIN));
        select(pin!(any), desk.parts.clock.sleep(wait)).await;
        let all = self
            .state
            .wait_until(|state| state.attempts.is_empty() || state.attempts.len() >= self.count || state.abandoned);
        select(pin!(all), desk.parts.clock.sleep(Span::from_millis(CLAIM_GATHER_MS))).await;
    }

    /// Fixes what it has. What nobody waits for any more is certainly not delivered: it goes back.
    fn answer(&self) -> Vec<Arc<Attempt>> {
        let mut unwanted = Vec::new();
        self.state.change(|state| {
            state.answered = true;
            if state.abandoned && state.callers == 0 {
                unwanted = state.attempts.clone();
            }
        });
        unwanted
    }

    /// It is answered at once with what it has.
    pub(super) fn abandon(&self) {
        self.state.change(|state| state.abandoned = true);
    }

    pub(super) async fn gone(&self) {
        self.state.wait_until(|state| state.gone).await;
    }

    pub(super) async fn tell(&self, message: ToWorker) {
        if let Some(address) = self.address.get() {
            let _ = address.send(message).await;
        }
    }
}

/// A call that waits for a claim's answer. One that is dropped before was broken off by its caller.
struct Call<'a> {
    claim: &'a Claim,
    answered: bool,
}

impl Call<'_> {
    fn of(claim: &Claim) -> Call<'_> {
        claim.state.change(|state| state.callers += 1);
        Call { claim, answered: false }
    }

    fn note_answered(mut self) {
        self.answered = true;
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let answered = self.answered;
        self.claim.state.change(|state| {
            state.callers -= 1;
            state.abandoned |= !answered && state.callers == 0;
        });
    }
}

impl CarryRemote for Claim {
    fn carry(self: Arc<Self>, context: AttemptContext, signal: CancelSignal) -> BoxFuture<'static, Outcome> {
        let Some(desk) = self.desk.upgrade() else {
            return ready(not_claimed()).boxed();
        };
        let attempt = Arc::new(Attempt::new(&self, &desk, context, signal));
        desk.state().attempts.insert(attempt.key(), attempt.clone());
        let mut is_late = false;
        self.state.change(|state| match state.answered {
            true => is_late = true,
            false => state.attempts.push(attempt.clone()),
        });
        async move {
            if is_late {
                // It began after the answer was fixed: nobody will ever hear of it.
                let _ = attempt.release().await;
            }
            let outcome = attempt.run().await;
            if attempt.is_forfeited() {
                attempt.let_go().await;
                desk.note_forfeited(&attempt);
            }
            desk.note_end(&attempt);
            outcome
        }
        .boxed()
    }

    fn recorded(&self, items: &[(JobId, Token, Recorded)]) {
        let Some(desk) = self.desk.upgrade() else { return };
        for (job, token, recorded) in items {
            desk.note_recorded((*job, *token), *recorded);
        }
    }
}
