//! Rust handlers: the trait for users of the library, and how one is run.
//!
//! Owns: the registry and the only place where a panic is caught. Must never: let a handler's panic, hang or
//! endless output reach the worker. Next: `signal` for what a handler can hear and say.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use fencepost_core::ids::{JobId, Token};
use fencepost_core::job::{EffectProof, Outcome, RetryAdvice, Verdict};
use fencepost_core::name::Name;
use fencepost_core::target::Payload;
use fencepost_core::time::{Span, StoreTime};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::attempt::{AttemptContext, failed, stopped, succeeded, with_error};
use super::signal::{CancelSignal, StopReason};
use super::tail::OutputTail;

/// The name of the built-in handler that does nothing and succeeds.
pub const NOOP: &str = "noop";

/// Work in Rust, carried out by a worker in this process.
///
/// Any `Fn(HandlerContext) -> impl Future` is one. Handlers share threads with the worker: blocking work
/// belongs on a thread of its own. An effect on another system is safe only through its idempotency key or
/// the token, as the guide on exactly-once effects shows.
pub trait Handler: Send + Sync {
    /// Carries out one attempt. The output is kept up to its limit (the tail).
    fn run(&self, context: HandlerContext) -> BoxFuture<'static, Result<Vec<u8>, HandlerError>>;
}

impl<F, R> Handler for F
where
    F: Fn(HandlerContext) -> R + Send + Sync,
    R: Future<Output = Result<Vec<u8>, HandlerError>> + Send + 'static,
{
    fn run(&self, context: HandlerContext) -> BoxFuture<'static, Result<Vec<u8>, HandlerError>> {
        Box::pin(self(context))
    }
}

/// What a handler knows of its attempt.
#[derive(Clone)]
pub struct HandlerContext {
    /// The job.
    pub job: JobId,
    /// The same for every attempt of the job.
    pub idempotency_key: String,
    /// Larger than that of every earlier attempt of the job, and of its schedule's line.
    pub token: Token,
    /// Counted from 1.
    pub attempt: u32,
    /// The schedule, if the job is one of its occurrences.
    pub schedule: Option<Name>,
    /// The nominal instant.
    pub scheduled_for: StoreTime,
    /// The deadline, as the time from the start of the attempt after which it is dropped.
    pub timeout: Span,
    /// The job's input.
    pub payload: Payload,
    /// Tells when to stop; see [`CancelSignal::requested`] and [`CancelSignal::stopped`].
    pub cancel: CancelSignal,
}

impl HandlerContext {
    /// Tells how far the work is. The newest text is shown with the job (`current.progress`) by the node that runs it,
    /// for as long as it runs. The lease needs no word: the worker keeps it while the handler runs.
    pub fn progress(&self, text: &str) {
        self.cancel.set_progress(text);
    }
}

/// Why a handler failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerError {
    /// May the job be tried again by its policy.
    pub retryable: bool,
    /// Is it certain that nothing happened; only then is an at-most-once job tried again.
    pub no_effect: bool,
    /// For people.
    pub message: String,
}

impl HandlerError {
    /// Try again; something may have happened.
    #[must_use]
    pub fn retry(message: impl Into<String>) -> Self {
        Self {
            retryable: true,
            no_effect: false,
            message: message.into(),
        }
    }

    /// Do not try again.
    #[must_use]
    pub fn stop(message: impl Into<String>) -> Self {
        Self {
            retryable: false,
            no_effect: false,
            message: message.into(),
        }
    }

    /// The same error, with the promise that nothing happened.
    #[must_use]
    pub fn without_effect(mut self) -> Self {
        self.no_effect = true;
        self
    }
}

/// Handlers by name.
#[derive(Clone)]
pub struct HandlerRegistry {
    handlers: BTreeMap<Name, Arc<dyn Handler>>,
}

impl Default for HandlerRegistry {
    /// The built-in handlers only.
    fn default() -> Self {
        Self {
            handlers: BTreeMap::new(),
        }
    }
}

impl HandlerRegistry {
    /// Registers a handler; an earlier one of that name is replaced.
    pub fn register(&mut self, name: Name, handler: impl Handler + 'static) {
        self.handlers.insert(name, Arc::new(handler));
    }

    /// The names a job can use here.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.handlers.keys().map(Name::as_str).chain([NOOP])
    }

    /// Carries out one attempt of the handler of that name.
    pub(super) async fn run(
        &self,
        name: &Name,
        attempt: &AttemptContext,
        cancel: CancelSignal,
        grace: Span,
    ) -> Outcome {
        match self.handlers.get(name) {
            Some(handler) => run_handler(handler.as_ref(), attempt, cancel, grace).await,
            None if name.as_str() == NOOP => succeeded(OutputTail::default()),
            None => {
                let error = format!("handler_unknown: no handler named {name} on this worker; register it there");
                failed(
                    RetryAdvice::ByPolicy,
                    EffectProof::NoEffect,
                    &error,
                    OutputTail::default(),
                )
            }
        }
    }
}

async fn run_handler(handler: &dyn Handler, attempt: &AttemptContext, cancel: CancelSignal, grace: Span) -> Outcome {
    let context = context(attempt, cancel.clone());
    let started: BoxFuture<'_, _> = Box::pin(async { handler.run(context).await });
    let mut work = std::pin::pin!(AssertUnwindSafe(Marked { inner: started }).catch_unwind());
    let ended = tokio::select! {
        biased;
        ended = &mut work => Ok(ended),
        reason = cancel.stopped() => Err(reason),
        _ = tokio::time::timeout(attempt.timeout.to_std(), std::future::pending::<()>()) => {
            let verdict = Verdict::TimedOut { effect: EffectProof::Unproven };
            return with_error(verdict, "timed_out: the handler did not return in time", OutputTail::default());
        }
    };
    let ended = match ended {
        Ok(ended) => Ok(ended),
        // Nothing it does counts any more: it gets no time to do more.
        Err(StopReason::LeaseLost) => Err(StopReason::LeaseLost),
        Err(reason @ (StopReason::CancelRequested | StopReason::Draining)) => {
            let grace = grace.min(attempt.timeout).to_std();
            tokio::time::timeout(grace, work).await.map_err(|_| reason)
        }
    };
    match ended {
        Ok(Ok(result)) => returned(result, cancel.requested()),
        Ok(Err(panic)) => panicked(panic.as_ref()),
        Err(reason) => stopped(reason, EffectProof::Unproven, OutputTail::default()),
    }
}

fn context(attempt: &AttemptContext, cancel: CancelSignal) -> HandlerContext {
    HandlerContext {
        job: attempt.job,
        idempotency_key: attempt.idempotency_key(),
        token: attempt.token,
        attempt: attempt.attempt,
        schedule: attempt.schedule.clone(),
        scheduled_for: attempt.scheduled_for,
        timeout: attempt.timeout,
        payload: attempt.payload.clone(),
        cancel,
    }
}

/// A handler that returns after it was asked to stop has either finished all the same, or stopped.
fn returned(result: Result<Vec<u8>, HandlerError>, stop: Option<StopReason>) -> Outcome {
    let mut tail = OutputTail::default();
    let error = match result {
        Ok(output) => {
            tail.push(&output);
            return succeeded(tail);
        }
        Err(error) => error,
    };
    let effect = if error.no_effect {
        EffectProof::NoEffect
    } else {
        EffectProof::Unproven
    };
    let retry = if error.retryable {
        RetryAdvice::ByPolicy
    } else {
        RetryAdvice::Stop
    };
    let verdict = match stop {
        Some(StopReason::CancelRequested) => Verdict::Cancelled { effect },
        Some(StopReason::LeaseLost | StopReason::Draining) | None => Verdict::Failed { retry, effect },
    };
    with_error(verdict, &format!("handler_error: {}", error.message), tail)
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> Outcome {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let error = format!("handler_panicked: {}", text.unwrap_or("without a message"));
    failed(
        RetryAdvice::ByPolicy,
        EffectProof::Unproven,
        &error,
        OutputTail::default(),
    )
}

thread_local! {
    static IN_HANDLER: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is inside a user's handler right now: such a panic is caught and counted as a failed
/// attempt, any other one ends the process. For the panic hook.
#[must_use]
pub fn panic_is_a_handlers() -> bool {
    IN_HANDLER.get()
}

/// Marks the thread while the future is polled.
struct Marked<F> {
    inner: F,
}

impl<F: Future + Unpin> Future for Marked<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let _mark = Mark(IN_HANDLER.replace(true));
        Pin::new(&mut self.inner).poll(cx)
    }
}

struct Mark(bool);

impl Drop for Mark {
    fn drop(&mut self) {
        IN_HANDLER.set(self.0);
    }
}

#[cfg(all(test, not(madsim)))]
#[path = "handler_tests.rs"]
mod tests;
