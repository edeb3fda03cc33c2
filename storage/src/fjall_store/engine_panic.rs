//! The engine asserts on some damaged bytes of its own lists instead of saying so.
//!
//! Owns: making such a panic a refusal of the folder, for every command that opens a store. Must never:
//! cover a panic of a store that runs. Next: `start.rs`.

use super::error::StartError;
use super::folder::Folder;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static OPENING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is opening a store: a panic meanwhile is caught and told as a `StartError`, so a
/// panic hook has nothing to say or to end.
pub fn is_opening() -> bool {
    OPENING.get()
}

/// Opens; a panic meanwhile is a refusal. What it leaves half-built is dropped unseen.
pub(super) fn as_refusal<T>(folder: &Folder, open: impl FnOnce() -> Result<T, StartError>) -> Result<T, StartError> {
    OPENING.set(true);
    let opened = catch_unwind(AssertUnwindSafe(open));
    OPENING.set(false);
    opened.unwrap_or_else(|_| {
        Err(StartError::Engine {
            path: folder.database(),
            reason: "its lists of files are damaged, and it gave up on them".into(),
        })
    })
}
