//! The frame of a test that asks a node or its API.
//!
//! Owns: the runtime that actors want, and the end of a test that waits for what never comes. Must never: judge.

use std::time::Duration;

/// Far above what any of these tests takes, also on a machine that builds beside them.
const WHOLE_TEST: Duration = Duration::from_mins(5);

/// Runs a test to its end. Its loops may wait for a state without a bound of their own: here it is.
#[allow(clippy::disallowed_methods, reason = "a test is a main of its own, in real time")]
pub fn run<F: Future<Output = ()>>(test: F) {
    let ended = actix::System::new().block_on(async { tokio::time::timeout(WHOLE_TEST, test).await });
    assert!(ended.is_ok(), "what this test waits for never came in {WHOLE_TEST:?}");
}
