//! hyper's executor, timer and stream adapter over the runtime alias, for both worlds.
//!
//! Owns: the three small types that hyper asks of a runtime. Must never: be replaced by hyper-util's
//! `TokioExecutor` or `TokioTimer`; those talk to the real runtime and panic in the simulator.
//! Next: `targets::http` for the client side, the API's accept loop for the server side.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Executor, Sleep, Timer};

/// A runtime stream as hyper wants it. The adapter holds no executor or timer, so it works in both worlds.
pub use hyper_util::rt::TokioIo as HyperIo;

/// Runs a future on this thread's executor, in both worlds.
#[allow(clippy::disallowed_methods, reason = "this is the runtime module")]
pub fn spawn_local(future: impl Future<Output = ()> + 'static) {
    #[cfg(madsim)]
    tokio::task::spawn_local(future);
    #[cfg(not(madsim))]
    actix_rt::spawn(future);
}

/// Runs a future on the current runtime, in both worlds.
pub fn spawn(future: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(future);
}

/// Starts an actor on this thread: the only way in this codebase, so that the simulator schedules it.
pub fn start_actor<A: actix::Actor<Context = actix::Context<A>>>(actor: A) -> actix::Addr<A> {
    let running = actix::Context::new().into_future(actor);
    let address = running.address();
    spawn_local(running);
    address
}

/// Runs hyper's background futures on the current runtime.
#[derive(Clone, Copy, Debug, Default)]
pub struct HyperExecutor;

impl<F> Executor<F> for HyperExecutor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        tokio::spawn(future);
    }
}

/// Gives hyper the runtime's monotonic time and sleeps.
///
/// A server must install it (`builder.timer(HyperTimer)`): without a timer hyper's header timeout is ignored.
#[derive(Clone, Copy, Debug, Default)]
pub struct HyperTimer;

impl Timer for HyperTimer {
    #[allow(
        clippy::disallowed_methods,
        reason = "hyper's own timer: it must agree with `now` below"
    )]
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(HyperSleep {
            inner: Box::pin(tokio::time::sleep(duration)),
        })
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        self.sleep(deadline.saturating_duration_since(self.now()))
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "hyper's own timer: it must agree with the sleeps above"
    )]
    fn now(&self) -> Instant {
        #[cfg(madsim)]
        return tokio::time::Instant::now();
        #[cfg(not(madsim))]
        return tokio::time::Instant::now().into_std();
    }
}

/// One sleep; the boxed inner makes it `Unpin` without any unsafe projection.
struct HyperSleep {
    inner: Pin<Box<tokio::time::Sleep>>,
}

impl Future for HyperSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.inner.as_mut().poll(cx)
    }
}

impl Sleep for HyperSleep {}

#[cfg(all(test, not(madsim)))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn executor_runs_what_it_is_given() {
        let (tell, told) = tokio::sync::oneshot::channel();
        HyperExecutor.execute(async move {
            tell.send(7).ok();
        });
        assert_eq!(told.await, Ok(7));
    }

    #[tokio::test]
    async fn a_sleep_until_the_past_ends_at_once() {
        let timer = HyperTimer;
        let past = timer.now();
        timer.sleep_until(past).await;
    }
}
