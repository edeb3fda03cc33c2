//! Bounds of calls at targets, commands, and resource-side guards.
//!
//! Owns: numbers only. Must never: hold logic. Next: `mod.rs`, where they are checked against each other.

/// Addresses that one host name may lead to; each is checked.
pub const RESOLVED_ADDRESS_COUNT_MAX: usize = 64;
/// Addresses of one host that an attempt tries to connect to.
pub const CONNECT_TRIES_MAX: usize = 4;
/// Time for one address to take a connection.
pub const CONNECT_MS: u64 = 10_000;
/// Bytes of a target's answer before its body: status line, headers and interim answers.
pub const ANSWER_HEAD_BYTES_MAX: usize = 64 << 10;
/// Bytes read of the body of a target's answer; the rest is not read.
pub const ANSWER_BODY_BYTES_MAX: usize = 1 << 20;
/// How long an answer that lies in the socket is looked for when a call is to end; nothing more is sent.
pub const LAST_ANSWER_MS: u64 = 50;
/// Longest wait that a target may ask for with Retry-After; a longer one is shortened.
pub const RETRY_AFTER_MS_MAX: u64 = 86_400_000;
/// Bytes of a key or a line at a resource-side guard.
pub const GUARD_KEY_BYTES_MAX: usize = 512;
/// Bytes of the result that a guard stores with a key.
pub const GUARD_RESULT_BYTES_MAX: usize = 64 << 10;
/// Longest time between TERM and KILL of a command.
pub const GRACE_MS_MAX: u64 = 600_000;
/// Time between TERM and KILL of a command that names none.
pub const GRACE_MS: u64 = 10_000;
/// How long output is awaited after a command's end: only what left its group can hold the pipe.
pub const LAST_OUTPUT_MS: u64 = 500;
/// How late a command's supervisor may be before the server ends the command's group by itself.
pub const SUPERVISOR_LATE_MS: u64 = 2_000;
