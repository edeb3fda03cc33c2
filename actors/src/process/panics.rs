//! A panic ends the process: an actor that dies silently would leave a shard that nobody steps.
//!
//! Owns: the hook. Must never: let a panic outside a user's handler be survived. Next: `exit.rs`,
//! `../targets/handler.rs` (the one place that catches).

use crate::process::exit;
use crate::targets::panic_is_a_handlers;
use std::sync::atomic::{AtomicBool, Ordering};

/// The store is being opened: the engine asserts on some damaged bytes of its lists instead of saying so.
static OPENING: AtomicBool = AtomicBool::new(false);

/// Opens a store; a panic meanwhile is a refusal of the folder, with its own exit code and word.
pub fn while_opening<T>(open: impl FnOnce() -> T) -> T {
    OPENING.store(true, Ordering::SeqCst);
    let opened = open();
    OPENING.store(false, Ordering::SeqCst);
    opened
}

/// Installs the hook: prints where and what, then ends the process, unless the panic is inside a
/// user's handler, where it is caught and counted as a failed attempt.
pub fn end_on_panic() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        default(info);
        let place = info
            .location()
            .map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
        if OPENING.load(Ordering::SeqCst) {
            exit::end_now(
                exit::STORE_REFUSED,
                &format!(
                    "the storage engine cannot read its own files (store_damaged){place}: restore the folder \
                     from a backup; nothing was changed"
                ),
            );
        }
        if !panic_is_a_handlers() {
            exit::end_now(
                exit::PANIC,
                &format!("a part of the server failed{place}; it stops rather than go on half"),
            );
        }
    }));
}
