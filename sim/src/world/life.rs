//! The lives of a machine's process, one after another.
//!
//! Owns: which one it is, and whether it is over. Must never: start or end a process. Next: `server.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Shared by all who hold the machine.
#[derive(Clone, Default)]
pub struct Life(Arc<AtomicU64>);

impl Life {
    /// Which one; odd while the process runs.
    pub fn number(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Whether the process runs.
    pub fn is_on(&self) -> bool {
        self.number() % 2 == 1
    }

    /// The next one, if none is on.
    pub fn begin(&self) -> Option<u64> {
        (!self.is_on()).then(|| self.turn())
    }

    /// Ends the one that is on; false if none is.
    pub fn end(&self) -> bool {
        let was_on = self.is_on();
        if was_on {
            self.turn();
        }
        was_on
    }

    fn turn(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
}
