//! A thread that wakes sleepers to a fraction of a millisecond.
//!
//! Owns: sleeps of a few milliseconds, for which the runtime's timer, which counts whole milliseconds
//! upwards, is too coarse: a job that is due now would wait for one to two of them. Must never: be
//! reachable from the simulator, or hold a sleeper for longer than that. Next: `../clock.rs`.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::oneshot;

/// Sleepers by their instant, in order of coming.
#[derive(Debug, Default)]
struct Sleepers {
    by_instant: BTreeMap<(Instant, u64), oneshot::Sender<()>>,
    last: u64,
    ended: bool,
}

#[derive(Debug, Default)]
struct Shared {
    sleepers: Mutex<Sleepers>,
    changed: Condvar,
}

/// The thread's handle; the thread ends with it.
#[derive(Debug)]
pub struct FineTimer(Arc<Shared>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Sleepers> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FineTimer {
    /// Starts the thread; without one, whoever asks sleeps by the runtime's timer.
    #[allow(clippy::disallowed_methods, reason = "production's main makes this thread")]
    pub fn start() -> Option<FineTimer> {
        let shared = Arc::new(Shared::default());
        let run = shared.clone();
        let thread = std::thread::Builder::new().name("fine-timer".to_owned());
        thread.spawn(move || wake_sleepers(&run)).ok()?;
        Some(FineTimer(shared))
    }

    /// Told at this instant.
    pub fn wake_at(&self, at: Instant) -> oneshot::Receiver<()> {
        let (tell, told) = oneshot::channel();
        let mut sleepers = self.0.lock();
        sleepers.last += 1;
        let key = (at, sleepers.last);
        sleepers.by_instant.insert(key, tell);
        let is_first = sleepers
            .by_instant
            .first_key_value()
            .is_some_and(|(first, _)| *first == key);
        drop(sleepers);
        if is_first {
            self.0.changed.notify_one();
        }
        told
    }
}

impl Drop for FineTimer {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.changed.notify_one();
    }
}

#[allow(clippy::disallowed_methods, reason = "a part of production's clock")]
fn wake_sleepers(shared: &Shared) {
    let mut sleepers = shared.lock();
    while !sleepers.ended {
        let first = sleepers.by_instant.first_key_value().map(|((at, _), _)| *at);
        let Some(at) = first else {
            sleepers = shared.changed.wait(sleepers).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let left = at.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            let (back, _) = shared
                .changed
                .wait_timeout(sleepers, left)
                .unwrap_or_else(PoisonError::into_inner);
            sleepers = back;
            continue;
        }
        if let Some((_, tell)) = sleepers.by_instant.pop_first() {
            // Who does not want to be woken any more is gone.
            let _ = tell.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    #[allow(clippy::disallowed_methods, reason = "a test of the clock itself")]
    async fn sleepers_are_woken_in_the_order_of_their_instants_and_never_early() {
        let timer = FineTimer::start().unwrap();
        let now = Instant::now();
        let at = |millis| now + Duration::from_millis(millis);
        let (late, early, past) = (timer.wake_at(at(9)), timer.wake_at(at(3)), timer.wake_at(now));
        drop(timer.wake_at(at(1)));
        past.await.unwrap();
        early.await.unwrap();
        assert!(Instant::now() >= at(3));
        late.await.unwrap();
        assert!(Instant::now() >= at(9));
    }
}
