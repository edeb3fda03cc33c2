//! What a worker tells a running attempt (stop, lease extended) and what the attempt tells back (progress).
//!
//! Owns: the one shared cell between the two. Must never: decide whether an attempt should stop, or touch
//! the store. Next: `handler` and `command`, which listen; the worker's shell, which speaks.

use std::sync::Arc;

use crate::watched::Watched;
use fencepost_core::limits::ERROR_BYTES_MAX;
use fencepost_core::time::Span;
pub use fencepost_core::worker::io::StopReason;

#[derive(Default)]
struct State {
    stop: Option<StopReason>,
    lease_left: Option<Span>,
    lease_extensions: u64,
    progress: Option<String>,
}

type Shared = Watched<State>;

/// The worker's end.
#[derive(Clone, Default)]
pub struct AttemptControl {
    shared: Arc<Shared>,
}

/// The attempt's end.
#[derive(Clone)]
pub struct CancelSignal {
    shared: Arc<Shared>,
}

/// Makes both ends. `lease_left` is the time the lease has now, if the target should be told
/// (a command's supervisor ends the command when it passes without an extension).
#[must_use]
pub fn attempt_signal(lease_left: Option<Span>) -> (AttemptControl, CancelSignal) {
    let control = AttemptControl::default();
    control.shared.lock().lease_left = lease_left;
    let signal = CancelSignal {
        shared: control.shared.clone(),
    };
    (control, signal)
}

impl AttemptControl {
    /// Asks the attempt to stop. The first reason stands.
    pub fn stop(&self, reason: StopReason) {
        self.shared.change(|state| {
            state.stop.get_or_insert(reason);
        });
    }

    /// Says that the lease now ends this far from now.
    pub fn extend_lease(&self, left: Span) {
        self.shared.change(|state| {
            state.lease_left = Some(left);
            state.lease_extensions += 1;
        });
    }
}

impl CancelSignal {
    /// A signal that nobody will ever give.
    #[must_use]
    pub fn never() -> Self {
        attempt_signal(None).1
    }

    /// Whether the attempt is asked to stop, and why.
    #[must_use]
    pub fn requested(&self) -> Option<StopReason> {
        self.shared.lock().stop
    }

    /// Waits until the attempt is asked to stop.
    pub async fn stopped(&self) -> StopReason {
        self.shared.wait_for(|state| state.stop).await
    }

    /// Keeps the newest progress text; longer texts are cut.
    pub fn set_progress(&self, text: &str) {
        let cut = cut_text(text, ERROR_BYTES_MAX).to_owned();
        self.shared.lock().progress = Some(cut);
    }

    /// The newest progress text.
    #[must_use]
    pub fn progress(&self) -> Option<String> {
        self.shared.lock().progress.clone()
    }

    /// The lease as the worker last stated it, with the count of extensions so far.
    #[must_use]
    pub fn lease(&self) -> (u64, Option<Span>) {
        let state = self.shared.lock();
        (state.lease_extensions, state.lease_left)
    }

    /// Waits for either: an extension after the one counted `seen`, or that the attempt is asked to stop. With
    /// `cancel_is_known` a request to cancel is no news.
    pub async fn stopped_or_extended(&self, seen: u64, cancel_is_known: bool) -> Result<(u64, Span), StopReason> {
        let is_news = |reason: &StopReason| !(cancel_is_known && *reason == StopReason::CancelRequested);
        self.shared
            .wait_for(|state| match (state.stop.filter(is_news), state.lease_left) {
                (Some(reason), _) => Some(Err(reason)),
                (None, Some(left)) if state.lease_extensions > seen => Some(Ok((state.lease_extensions, left))),
                (None, _) => None,
            })
            .await
    }

    /// Waits for an extension after the one counted `seen`.
    pub async fn lease_extended(&self, seen: u64) -> (u64, Span) {
        self.shared
            .wait_for(|state| match state.lease_left {
                Some(left) if state.lease_extensions > seen => Some((state.lease_extensions, left)),
                _ => None,
            })
            .await
    }
}

/// The longest beginning of `text` that fits into `bytes_max` and ends at a character.
#[must_use]
pub fn cut_text(text: &str, bytes_max: usize) -> &str {
    if text.len() <= bytes_max {
        return text;
    }
    let end = (0..=bytes_max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}

#[cfg(all(test, not(madsim)))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_stop_reason_stands_and_wakes_every_listener() {
        let (control, signal) = attempt_signal(None);
        let other = signal.clone();
        let listening = tokio::spawn(async move { other.stopped().await });
        tokio::task::yield_now().await;
        control.stop(StopReason::CancelRequested);
        control.stop(StopReason::LeaseLost);
        assert_eq!(listening.await.unwrap(), StopReason::CancelRequested);
        assert_eq!(signal.requested(), Some(StopReason::CancelRequested));
    }

    #[tokio::test]
    async fn an_extension_before_the_wait_is_not_missed() {
        let (control, signal) = attempt_signal(Some(Span::from_secs(1)));
        assert_eq!(signal.lease(), (0, Some(Span::from_secs(1))));
        control.extend_lease(Span::from_secs(9));
        assert_eq!(signal.lease_extended(0).await, (1, Span::from_secs(9)));
    }

    #[test]
    fn progress_is_cut_at_a_character() {
        let signal = CancelSignal::never();
        signal.set_progress(&"é".repeat(ERROR_BYTES_MAX));
        let kept = signal.progress().unwrap();
        assert!(kept.len() <= ERROR_BYTES_MAX && kept.chars().all(|c| c == 'é'));
        assert_eq!(cut_text("aé", 2), "a");
    }
}
