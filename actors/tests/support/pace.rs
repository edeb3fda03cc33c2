//! Waiting for conditions, in one place.
//!
//! Owns: the only clock and the only pause of these tests. Must never: be used to let time pass instead of
//! asking for a condition; `at` is for instants that are the test itself (when to kill).

use std::time::{Duration, Instant};

/// How long anything may take before a test gives up; far above what it takes.
pub const LONG: Duration = Duration::from_secs(60);

fn breathe() {
    std::thread::park_timeout(Duration::from_millis(2));
}

/// Looks until there is something.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    within(LONG, &mut look).unwrap_or_else(|| panic!("never came: {what}"))
}

/// Looks until it is so.
pub fn until_true(what: &str, mut look: impl FnMut() -> bool) {
    until(what, || look().then_some(()));
}

/// Looks until there is something, or until the limit.
pub fn within<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() >= end {
            return None;
        }
        breathe();
    }
}

/// An instant this much from now, to be reached by `reach`.
pub fn from_now(span: Duration) -> Instant {
    Instant::now() + span
}

/// Waits for an instant.
pub fn reach(at: Instant) {
    while Instant::now() < at {
        breathe();
    }
}

/// How long something takes.
pub fn took<T>(what: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    let result = what();
    (result, begun.elapsed())
}

/// The wall clock, in microseconds since 1970.
pub fn wall_micros() -> i64 {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap();
    i64::try_from(since.as_micros()).unwrap()
}
