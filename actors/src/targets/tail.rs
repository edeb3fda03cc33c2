//! The tail of an attempt's output: bounded whatever a target sends.
//!
//! Owns: keeping the last bytes. Must never: grow beyond its limit or interpret what it keeps.
//! Next: `http` and `command`, which feed it.

use std::collections::VecDeque;
use std::sync::Arc;

use fencepost_core::limits::OUTPUT_TAIL_BYTES_MAX;

/// The last `OUTPUT_TAIL_BYTES_MAX` bytes of what was pushed.
#[derive(Clone, Debug, Default)]
pub struct OutputTail {
    bytes: VecDeque<u8>,
}

impl OutputTail {
    /// Adds output, dropping the oldest bytes beyond the limit.
    pub fn push(&mut self, chunk: &[u8]) {
        let skip = chunk.len().saturating_sub(OUTPUT_TAIL_BYTES_MAX);
        let kept = chunk.get(skip..).unwrap_or_default();
        let over = (self.bytes.len() + kept.len()).saturating_sub(OUTPUT_TAIL_BYTES_MAX);
        self.bytes.drain(..over.min(self.bytes.len()));
        self.bytes.extend(kept);
    }

    /// What is kept, as an outcome carries it.
    #[must_use]
    pub fn into_output(self) -> Arc<[u8]> {
        Arc::from(Vec::from(self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_tail_is_the_end_of_everything_pushed(chunks in prop::collection::vec((any::<u8>(), 0_usize..40_000), 0..8)) {
            let mut tail = OutputTail::default();
            let mut all = Vec::new();
            for (byte, count) in chunks {
                let chunk = vec![byte; count];
                tail.push(&chunk);
                all.extend(chunk);
            }
            let from = all.len().saturating_sub(OUTPUT_TAIL_BYTES_MAX);
            prop_assert_eq!(&*tail.into_output(), &all[from..]);
        }
    }
}
