//! A clock that stands until the test moves it.
//!
//! Owns: its sleepers. Must never: wait for real time. Next: `frames.rs`.

use fencepost::clock::Clock;
use fencepost_core::time::{Monotonic, Span};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Mutex;
use tokio::sync::oneshot;

#[derive(Default)]
pub struct HandClock(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    now: u64,
    sleepers: Vec<(u64, oneshot::Sender<()>)>,
}

impl HandClock {
    /// Moves the clock and wakes who is due.
    pub fn advance(&self, span: Span) {
        let mut inner = self.0.lock().unwrap();
        inner.now += span.0;
        let now = inner.now;
        let (due, later) = std::mem::take(&mut inner.sleepers)
            .into_iter()
            .partition(|(at, _)| *at <= now);
        inner.sleepers = later;
        for (_, wake) in due {
            let _ = wake.send(());
        }
    }

    /// How many sleep.
    pub fn sleepers(&self) -> usize {
        let mut inner = self.0.lock().unwrap();
        inner.sleepers.retain(|(_, wake)| !wake.is_closed());
        inner.sleepers.len()
    }
}

impl Clock for HandClock {
    fn wall(&self) -> i64 {
        0
    }

    fn mono(&self) -> Monotonic {
        Monotonic(self.0.lock().unwrap().now)
    }

    fn sleep(&self, span: Span) -> BoxFuture<'static, ()> {
        let (wake, woken) = oneshot::channel();
        let mut inner = self.0.lock().unwrap();
        let at = inner.now.saturating_add(span.0);
        inner.sleepers.push((at, wake));
        woken.map(|_| ()).boxed()
    }
}
