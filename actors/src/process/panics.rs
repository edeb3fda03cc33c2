//! A panic ends the process: an actor that dies silently would leave a shard that nobody steps.
//!
//! Owns: the hook. Must never: let a panic outside a user's handler be survived. Next: `exit.rs`,
//! `../targets/handler.rs` (the one place that catches).

use crate::process::exit;
use crate::targets::panic_is_a_handlers;
use fencepost_storage::fjall_store::is_opening;

/// Installs the hook: prints where and what, then ends the process, unless the panic is inside a
/// user's handler, where it is caught and counted as a failed attempt, or inside the engine while it opens
/// a store, where it is caught and told as a refusal of the folder.
pub fn end_on_panic() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if is_opening() {
            return;
        }
        default(info);
        let place = info
            .location()
            .map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
        if !panic_is_a_handlers() {
            exit::end_now(
                exit::PANIC,
                &format!("a part of the server failed{place}; it stops rather than go on half"),
            );
        }
    }));
}

/// For commands that are no server: what the engine's panic means is told as a refusal, not by the panic.
pub fn keep_quiet_while_opening() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !is_opening() {
            default(info);
        }
    }));
}
