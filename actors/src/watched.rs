//! A value that several look at and change, and whose changes can be waited for.
//!
//! Owns: that no change is missed between a look and the wait for the next one. Must never: hold its lock over an
//! await. Next: `targets/signal.rs` and `desk/`, which are built on it.

use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The value.
#[derive(Debug, Default)]
pub(crate) struct Watched<T> {
    value: Mutex<T>,
    changed: Notify,
}

impl<T> Watched<T> {
    /// With this value.
    pub(crate) fn new(value: T) -> Watched<T> {
        Watched {
            value: Mutex::new(value),
            changed: Notify::new(),
        }
    }

    /// A look; changes made through it wake nobody.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes it, and wakes all that wait.
    pub(crate) fn change(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.lock());
        self.changed.notify_waiters();
    }

    /// Waits until something is found in it.
    pub(crate) async fn wait_for<R>(&self, look: impl Fn(&T) -> Option<R>) -> R {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(found) = look(&self.lock()) {
                return found;
            }
            changed.await;
        }
    }

    /// Waits until it is so.
    pub(crate) async fn wait_until(&self, is_so: impl Fn(&T) -> bool) {
        self.wait_for(|value| is_so(value).then_some(())).await;
    }

    /// The next change; it counts from when this is first polled or enabled.
    pub(crate) fn next_change(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }
}
