//! A clock that runs until a test stops it, and is moved by hand from then on.
//!
//! Owns: its sleepers. Must never: wait for real time once it stands. Next: `../node/draining.rs`, `../http/away.rs`.

use fencepost::clock::{Clock, SharedClock};
use fencepost_core::time::{Monotonic, Span};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

/// The machine's clock until it is stopped; then the test moves it.
pub struct Stoppable {
    running: SharedClock,
    stopped: Mutex<Option<Stopped>>,
}

struct Stopped {
    /// Wall and monotonic time when it was stopped.
    wall: i64,
    mono: Monotonic,
    ahead: Span,
    sleepers: Vec<(Span, oneshot::Sender<()>)>,
}

impl Stoppable {
    /// Runs with this one until it is stopped.
    pub fn new(running: SharedClock) -> Arc<Stoppable> {
        Arc::new(Stoppable {
            running,
            stopped: Mutex::new(None),
        })
    }

    /// From now on it stands.
    pub fn stop(&self) {
        *self.stopped.lock().unwrap() = Some(Stopped {
            wall: self.running.wall(),
            mono: self.running.mono(),
            ahead: Span::ZERO,
            sleepers: Vec::new(),
        });
    }

    /// Moves on and wakes who is due.
    pub fn advance(&self, span: Span) {
        let mut guard = self.stopped.lock().unwrap();
        let stopped = guard.as_mut().unwrap();
        stopped.ahead = stopped.ahead + span;
        let ahead = stopped.ahead;
        let (due, later) = std::mem::take(&mut stopped.sleepers)
            .into_iter()
            .partition(|(at, _)| *at <= ahead);
        stopped.sleepers = later;
        for (_, wake) in due {
            let _ = wake.send(());
        }
    }
}

impl Clock for Stoppable {
    fn wall(&self) -> i64 {
        let stopped = self.stopped.lock().unwrap();
        let ahead = |stopped: &Stopped| stopped.wall + i64::try_from(stopped.ahead.0).unwrap();
        stopped.as_ref().map_or_else(|| self.running.wall(), ahead)
    }

    fn mono(&self) -> Monotonic {
        let stopped = self.stopped.lock().unwrap();
        stopped
            .as_ref()
            .map_or_else(|| self.running.mono(), |stopped| stopped.mono + stopped.ahead)
    }

    fn sleep(&self, span: Span) -> BoxFuture<'static, ()> {
        let mut guard = self.stopped.lock().unwrap();
        let Some(stopped) = guard.as_mut() else {
            return self.running.sleep(span);
        };
        let (wake, woken) = oneshot::channel();
        stopped.sleepers.push((stopped.ahead + span, wake));
        woken.map(|_| ()).boxed()
    }
}

/// Lets everything run that can.
pub async fn rest() {
    for _ in 0..2_000 {
        tokio::task::yield_now().await;
    }
}
