//! What handlers call: a system outside the cluster, its state in memory, its calls over the simulated network.
//!
//! Owns: the ends that a user's code holds. Must never: let a call be made or answered but over that network, or an
//! effect go unrecorded. Next: `../world/services.rs`, which carries calls and treats them as the target's faults say.

use super::seat::here;
use crate::world::services::{self, Work};
use fencepost::targets::HandlerError;
use std::sync::{Arc, Mutex, PoisonError};

/// A system outside the cluster: a bank, a mail provider, a database. Clones share its state.
///
/// It stands on the machine of the target: faults of kind `target-…` befall it, a `cut` from it cuts it off. A call
/// that was sent arrives, whatever became of the process that sent it.
pub struct Service<S>(Arc<Mutex<S>>);

impl<S> Clone for Service<S> {
    fn clone(&self) -> Self {
        Service(self.0.clone())
    }
}

/// What a call does, as the checkers must know it.
#[derive(Debug, Default)]
pub struct Effects(Vec<String>);

impl Effects {
    /// Something happened that must happen at most once for the job, and by this name: `charge`, `mail to the buyer`.
    /// A job that succeeded must have had one effect at least.
    pub fn applied(&mut self, what: impl Into<String>) {
        self.0.push(what.into());
    }

    pub(crate) fn into_names(self) -> Vec<String> {
        self.0
    }
}

/// No answer came: what the call does may have happened, or may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoAnswer;

impl std::fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the service did not answer")
    }
}

impl std::error::Error for NoAnswer {}

impl From<NoAnswer> for HandlerError {
    fn from(none: NoAnswer) -> HandlerError {
        HandlerError::retry(none.to_string())
    }
}

impl<S: Send + 'static> Service<S> {
    /// A service in this state when each run begins.
    pub fn new(state: S) -> Service<S> {
        Service(Arc::new(Mutex::new(state)))
    }

    /// Sends a call, lets the service do `work` when it arrives, and waits for the answer.
    ///
    /// # Errors
    /// No answer came.
    ///
    /// # Panics
    /// It is polled outside of a handler: the handler awaits its calls itself and hands them to no other future that
    /// runs beside it.
    pub async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut S, &mut Effects) -> T + Send + 'static,
    ) -> Result<T, NoAnswer> {
        let caller = here().expect("a service is called by a handler, in the handler's own future");
        let (state, slot) = (self.0.clone(), Arc::new(Mutex::new(None)));
        let answer = slot.clone();
        let work: Work = Box::new(move |effects| {
            let result = work(&mut state.lock().unwrap_or_else(PoisonError::into_inner), effects);
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        });
        let is_answered = services::send(caller, work).await.is_ok();
        let result = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
        result.filter(|_| is_answered).ok_or(NoAnswer)
    }
}
