//! Exit codes of a server process, in one place. The command line's own are in `docs/cli.md`.
//!
//! Owns: the numbers and the one call that ends a process at once. Must never: be called on a path
//! that could still answer a client. Next: `panics.rs`.

use crate::process::say::say_failure;
use std::process::ExitCode;

/// Drained and stopped.
pub const STOPPED: u8 = 0;
/// The store is broken or poisoned: nothing more is acknowledged.
pub const STORE_BROKEN: u8 = 70;
/// Fencepost itself failed (a panic anywhere but in a user's handler).
pub const PANIC: u8 = 71;
/// The store refused to open: damaged, newer, or in use by another process.
pub const STORE_REFUSED: u8 = 72;
/// The listener could not be bound or is not allowed.
pub const LISTEN_REFUSED: u8 = 73;
/// A second signal: stopped at once, without a drain.
pub const SECOND_SIGNAL: u8 = 130;

/// Every code of a server with its meaning, in order; `docs/cli.md` shows the same table (a test compares them).
/// A server may also end with `Failed`, `Usage` or `Invalid` of `crate::problem::Exit`, before it has begun.
pub const EXITS: &[(u8, &str)] = &[
    (STOPPED, "told to stop (TERM, Ctrl-C), drained and stopped"),
    (
        STORE_BROKEN,
        "the store is broken, was restored or exchanged meanwhile, or went on to a level that this version does not know; \
         or another process took this node's name: nothing more was acknowledged",
    ),
    (PANIC, "a part of the server failed; report it"),
    (
        STORE_REFUSED,
        "the store was not opened: damaged, newer, half-restored, a backup, or in use by another process; or `token`, \
         `mesh-secret` or `grant-key` cannot be used; or the cell does not take this node",
    ),
    (
        LISTEN_REFUSED,
        "an address cannot be listened on, or is not loopback; or the node's certificate cannot be used",
    ),
    (SECOND_SIGNAL, "a second signal: stopped at once, without a drain"),
];

/// A code for `main` to return.
pub fn code(code: u8) -> ExitCode {
    ExitCode::from(code)
}

/// Ends the process now: no destructors, no drain. What was acknowledged is durable.
#[allow(
    clippy::disallowed_methods,
    clippy::exit,
    reason = "the one place that ends the process"
)]
pub fn end_now(code: u8, why: &str) -> ! {
    say_failure(&format!("fencepost: {why} (exit code {code})"));
    std::process::exit(i32::from(code))
}
